const page = window.phrasemask;
page.connect(server, ["describe_models"]);

const find = (selector) => element.querySelector(selector);

function cells(...texts) {
  const row = document.createElement("tr");
  for (const text of texts) row.append(Object.assign(document.createElement("td"), { textContent: text }));
  return row;
}

page.dialog(element, "models", async () => {
  const reply = await page.call("describe_models");
  if (!reply) return;
  find("tbody").replaceChildren(...reply.models.map((model) => cells(
    model.in_use ? `${model.title} — in use` : model.title, model.family, model.precision, model.problem || model.licence)));
  find(".runtimes-list").replaceChildren(...reply.runtimes.map((runtime) => Object.assign(document.createElement("li"), {
    textContent: runtime.usable ? `${runtime.title}: ${runtime.devices.join(", ")}` : `${runtime.title}: not usable here, ${runtime.reason}`,
  })));
  find(".models-limits").replaceChildren(...(page.state.model?.notes ?? [])
    .map((note) => Object.assign(document.createElement("li"), { textContent: note })));
  find(".models-note").textContent = page.state.model?.open_vocabulary
    ? "This model takes any noun phrase."
    : "The starter knows 80 everyday things and masks whatever you draw a box around. For any noun phrase there is Meta's SAM 3, whose weights you get from Meta under its own licence; the README tells how to use your copy.";
});

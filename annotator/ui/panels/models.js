const page = window.phrasemask;
page.connect(server, ["describe_models", "choose_model"]);

const find = (selector) => element.querySelector(selector);
let loading = ""; // the model that is being loaded, in words

function made(tag, className, text) {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

function modelCard(model) {
  const card = made("li", "model-card", "");
  const head = made("div", "model-head", "");
  head.append(made("strong", "", model.title));
  if (model.in_use) head.append(made("span", "model-in-use", "in use"));
  else head.append(useButton(model));
  card.classList.toggle("is-in-use", model.in_use);
  card.append(head, made("p", "", model.problem || model.summary));
  for (const note of model.notes) card.append(made("p", "model-note", note));
  card.append(made("p", "model-note", `licence: ${model.licence}`));
  return card;
}

function useButton(model) {
  const button = made("button", "", "Use");
  button.type = "button";
  button.disabled = Boolean(model.problem || loading);
  button.setAttribute("aria-label", `Use ${model.title}`);
  button.addEventListener("click", () => choose(model.folder, model.title));
  return button;
}

// The page stays in use while the new model loads; until then the old one answers.
async function choose(folder, title) {
  if (loading) return;
  loading = title;
  say(`loading ${title}… the model in use answers until then`);
  await list();
  const reply = await page.call("choose_model", {
    model: folder, runtime: find("#model-runtime").value, device: find("#model-device").value.trim() || "auto",
  }, "models");
  loading = "";
  if (reply) {
    await page.loadModel();
    say(`${page.state.model.model} is in use, by ${page.state.model.runtime} on ${page.state.model.device}`);
  } else say(page.state.message?.text ?? "", true);
  await list();
}

function say(text, isError = false) {
  find(".models-said").textContent = text;
  find(".models-said").classList.toggle("is-error", isError);
}

async function list() {
  const reply = await page.call("describe_models", {}, "models");
  if (!reply) return;
  find(".model-list").replaceChildren(...reply.models.map(modelCard));
  find(".runtimes-list").replaceChildren(...reply.runtimes.filter((runtime) => !runtime.usable)
    .map((runtime) => made("li", "", `${runtime.title} cannot be used here: ${runtime.reason}`)));
  listRuntimes(reply.runtimes.filter((runtime) => runtime.usable));
}

function listRuntimes(usable) {
  const select = find("#model-runtime");
  const chosen = select.value || "auto";
  select.replaceChildren(new Option("the best there is", "auto"), ...usable.map((runtime) => new Option(runtime.title, runtime.name)));
  select.value = chosen;
  find("#model-devices").replaceChildren(...["auto", ...new Set(usable.flatMap((runtime) => runtime.devices))].map((device) => new Option(device)));
}

find(".model-folder").addEventListener("submit", (event) => {
  event.preventDefault();
  const folder = find("#model-folder").value.trim();
  if (folder) choose(folder, folder);
});
page.dialog(element, "models", () => { if (!loading) say(""); list(); });

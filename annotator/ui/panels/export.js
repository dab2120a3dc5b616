const page = window.phrasemask;
page.connect(server, ["export_dataset"]);

const find = (selector) => element.querySelector(selector);
const result = find(".export-result");

async function exportDataset() {
  result.replaceChildren("Writing the dataset and checking every mask…");
  result.classList.remove("is-error");
  const reply = await page.call("export_dataset", {
    decision: find("#export-decision").value,
    segmentation: find("#export-segmentation").value,
    min_score: Number(find("#export-min-score").value),
    min_area: Number(find("#export-min-area").value),
  }, "export");
  if (!reply) {
    result.textContent = page.state.message?.text ?? "";
    result.classList.add("is-error");
    return;
  }
  result.replaceChildren(`${reply.summary}. Download: `);
  for (const file of reply.files) {
    const link = document.createElement("a");
    link.href = file.url;
    link.download = file.name;
    link.textContent = file.name;
    result.append(link, " ");
  }
  for (const note of reply.notes) result.append(Object.assign(document.createElement("p"), { textContent: note }));
}

find(".export-go").addEventListener("click", exportDataset);
find(".export-close").addEventListener("click", () => page.update({ dialog: null }));
page.dialog(element, "export", () => result.replaceChildren());

const page = window.phrasemask;
page.connect(server, ["list_formats", "export_dataset"]);

const find = (selector) => element.querySelector(selector);
const result = find(".export-result");
let formats = [];

// What stands in the field of each option.
const VALUES = {
  segmentation: () => find("#export-segmentation").value,
  tolerance_px: () => number("#export-tolerance", 0),
  images: () => find("#export-images").value,
  ratio: () => [...element.querySelectorAll(".export-ratio input")].map((field) => Math.round(Number(field.value))),
  seed: () => Math.round(number("#export-seed", 0)),
  by_folder: () => find("#export-by-folder").checked,
  layout: () => find("#export-layout").value,
  category_base: () => Number(find("#export-category-base").value),
  min_area: () => Math.max(1, Math.round(number("#export-min-area", 1))),
};

function number(selector, otherwise) {
  const value = find(selector).valueAsNumber;
  return Number.isFinite(value) ? value : otherwise;
}

function made(tag, className, text) {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

function heeded() {
  return formats.find((format) => format.name === find("#export-format").value)?.options ?? [];
}

// Only what has an effect is asked. Exact masks have no outline that could leave their edge.
function drawFields() {
  const options = heeded();
  const isExact = options.includes("segmentation") && VALUES.segmentation() === "rle";
  for (const field of element.querySelectorAll("[data-option]")) {
    const { option } = field.dataset;
    field.hidden = !options.includes(option) || (option === "tolerance_px" && isExact);
  }
}

async function listFormats() {
  result.replaceChildren();
  const reply = await page.call("list_formats", {}, "export");
  if (!reply) return refused();
  formats = reply.formats;
  const select = find("#export-format");
  const chosen = select.value;
  select.replaceChildren(...formats.map((format) => new Option(format.title, format.name)));
  select.value = formats.some((format) => format.name === chosen) ? chosen : formats[0].name;
  drawFields();
}

function refused() {
  result.textContent = page.state.message?.text ?? "";
  result.classList.add("is-error");
}

async function exportDataset() {
  result.replaceChildren("Writing the dataset and checking every mask…");
  result.classList.remove("is-error");
  find(".export-go").disabled = true;
  const reply = await page.call("export_dataset", {
    format: find("#export-format").value,
    decision: find("#export-decision").value,
    min_score: number("#export-min-score", 0),
    options: Object.fromEntries(heeded().filter((name) => name in VALUES).map((name) => [name, VALUES[name]()])),
  }, "export");
  find(".export-go").disabled = false;
  if (!reply) return refused();
  result.replaceChildren(`${reply.summary}. Download: `);
  for (const file of reply.files) {
    const link = Object.assign(document.createElement("a"), { href: file.url, download: file.name, textContent: file.name });
    result.append(link, " ");
  }
  result.append(made("p", "model-note", `It also lies in ${reply.folder}`));
  for (const note of reply.notes) result.append(made("p", "", note));
  const ways = made("ul", "export-ways", "");
  ways.append(...reply.how_to_load.map((line) => made("li", "", line)));
  result.append(made("h3", "", "How it is loaded"), ways);
  result.scrollIntoView({ block: "nearest" });
}

for (const selector of ["#export-format", "#export-segmentation"]) find(selector).addEventListener("change", drawFields);
find(".export-go").addEventListener("click", exportDataset);
find(".export-close").addEventListener("click", () => page.update({ dialog: null }));
page.dialog(element, "export", listFormats);

const page = window.phrasemask;
page.connect(server, ["describe_model"]);

const find = (selector) => element.querySelector(selector);
const THEME = "phrasemask-theme";

function draw(state) {
  find(".status-folder").textContent = state.folder.split(/[\\/]/).pop() ?? "";
  find(".status-folder").title = state.folder;
  const model = state.model;
  if (model) drawModel(model, state.loadingModel);
  const { encode_ms, edit_ms } = state.timings;
  find(".status-times").hidden = encode_ms == null && edit_ms == null;
  find(".status-times").textContent = [encode_ms == null ? "" : `encode ${encode_ms} ms`, edit_ms == null ? "" : `edit ${edit_ms} ms`].filter(Boolean).join(" · ");
}

function drawModel({ model, runtime, device, notes }, loading) {
  const words = loading ? `${loading} · ${model} answers until then` : `model: ${model} · ${runtime} · ${device}`;
  const line = find(".status-model");
  if (line.textContent !== words) line.textContent = words; // read aloud when it changes
  line.title = [words, ...notes].join("\n");
}

// A run over the folder is said here as long as it is under way, and its end until somebody has looked at it.
function drawJob({ job }) {
  const chip = find(".status-job");
  const line = find(".status-job-line");
  chip.hidden = !job?.inShort;
  line.hidden = !job?.underWay;
  line.style.width = `${100 * (job?.share ?? 0)}%`;
  if (!job?.inShort) return;
  chip.textContent = job.inShort;
  chip.title = job.inShort;
  chip.classList.toggle("is-error", job.phase === "failed");
}

// Also when another model has been chosen, here or in another tab: what the old one found while typing goes.
page.loadModel = async () => {
  const before = page.state.model;
  const model = await page.call("describe_model");
  if (!model) {
    find(".status-model").textContent = "the model could not be loaded";
    return;
  }
  page.update({ model, timings: model.timings, threshold: Math.max(page.state.threshold, model.score_floor) });
  if (before && page.state.view) {
    page.update({ draft: null, exemplars: model.exemplar_boxes ? page.state.exemplars : [], examples: [] });
    page.open(page.state.view.image.id);
  }
};

// Gradio's own switch is the class `dark` on the body.
function setTheme(dark) {
  document.body.classList.toggle("dark", dark);
  page.canvas?.setTheme(dark ? "dark" : "light");
}

const remembered = localStorage.getItem(THEME);
if (remembered) setTheme(remembered === "dark");
find(".theme").addEventListener("click", () => {
  const dark = !document.body.classList.contains("dark");
  localStorage.setItem(THEME, dark ? "dark" : "light");
  setTheme(dark);
});
for (const button of element.querySelectorAll("[data-dialog]")) {
  button.addEventListener("click", () => page.update({ dialog: button.dataset.dialog }));
}
page.subscribe(draw);
page.subscribe(drawJob);
page.loadModel();

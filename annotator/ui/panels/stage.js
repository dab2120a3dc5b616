const page = window.phrasemask;
page.connect(server, ["open_image", "run_phrases", "draw_box", "watch_image"]);

const WATCH_EVERY_MS = 2500;
const find = (selector) => element.querySelector(selector);
const tab = crypto.randomUUID();

const canvas = new window.PhrasemaskCanvas.MaskCanvas(find(".canvas-host"), {
  onHover: (id) => page.update({ hovered: id }),
  onToggle: (id) => page.toggle(id),
  onBox: (xyxy) => (page.state.tool === "box" ? drawBox(xyxy) : addExemplar(xyxy)),
  onProblem: (text) => page.update({ message: { text, kind: "error", where: "stage" } }),
});
window.phrasemask.canvas = canvas;

function addExemplar(xyxy) {
  const positive = page.state.tool === "positive";
  page.update({ tool: "select", exemplars: [...page.state.exemplars, { xyxy, positive }], exemplarsWait: false });
}

async function drawBox(xyxy) {
  const { id } = page.state.view.image;
  const category = page.state.category || page.state.lastCategory || page.state.view.categories[0]?.name || "object";
  page.update({ tool: "select" });
  const view = await page.during(id, "looking for the thing in the box", () => page.write("draw_box", id, { xyxy, category }));
  const text = `added as '${category}': C changes the category, Z takes it back`;
  if (view) page.show(view, { hovered: String(view.drawn), lastCategory: category, message: { text, kind: "info", where: "stage" } });
}

// ---- drawing --------------------------------------------------------------------------------------

let shownPicture = "";

function draw(state) {
  drawCanvas(state);
  drawTools(state);
  drawFoot(state);
}

function drawCanvas(state) {
  const image = state.view?.image;
  find(".stage-failure").hidden = !image?.failure;
  find(".canvas-host").hidden = Boolean(image?.failure);
  if (!image) return;
  find(".stage-failure").textContent = image.failure ? `${image.path}: ${image.failure}` : "";
  const picture = `${image.id} ${image.url}`;
  if (image.url && picture !== shownPicture) {
    shownPicture = picture;
    canvas.setImage({ id: image.id, url: image.url, width: image.width, height: image.height });
  }
  canvas.setThreshold(state.threshold);
  canvas.setInstances(image.failure ? [] : numbered(state));
  canvas.setOpacity(state.opacity);
  canvas.setRejectedVisible(state.showRejected);
  canvas.setMasksHidden(state.masksHidden);
  canvas.setTool(state.tool);
  canvas.setExemplars(state.exemplars);
  canvas.setBusy(state.activity);
  canvas.highlight(state.hovered);
}

// The numbers on the picture are those of the list, which counts only what is visible.
function numbered(state) {
  const numbers = new Map(page.visibleInstances().map((item) => [item.id, item.number]));
  return page.instances().map((item) => ({ ...item, number: numbers.get(item.id) ?? 0 }));
}

function drawTools(state) {
  for (const button of element.querySelectorAll("[data-tool]")) {
    button.setAttribute("aria-pressed", String(button.dataset.tool === state.tool));
    button.hidden = !isTaken(button.dataset.tool, state.model);
  }
  const undo = find(".undo");
  const redo = find(".redo");
  undo.disabled = !state.view?.undo;
  redo.disabled = !state.view?.redo;
  undo.title = state.view?.undo ? `Undo: ${state.view.undo} (Z)` : "Nothing to undo (Z)";
  redo.title = state.view?.redo ? `Redo: ${state.view.redo} (Shift+Z)` : "Nothing to redo (Shift+Z)";
  find(".opacity").value = state.opacity;
  find(".show-rejected").checked = state.showRejected;
  find(".stage-name").textContent = state.view?.image.path ?? "";
  find(".stage-name").title = state.view?.image.path ?? "";
}

// The tools that the model can use; until it is loaded, those that most models can.
function isTaken(tool, model) {
  if (tool === "box") return model?.box_to_mask ?? true;
  return tool === "select" || Boolean(model?.exemplar_boxes);
}

function drawFoot(state) {
  const message = state.message;
  const notes = state.view?.image.notes ?? [];
  const notice = find(".notice");
  element.classList.toggle("is-busy", Boolean(state.activity));
  find(".activity").textContent = state.activity ? `${state.activity}…` : "";
  notice.textContent = message?.text ?? [...notes, ...(state.elsewhere ? ["also open in another tab, which follows this one"] : [])].join(" · ");
  notice.title = notice.textContent;
  notice.classList.toggle("is-error", message?.kind === "error");
  find(".saved").textContent = state.savedAt ? `saved ${state.savedAt.toLocaleTimeString()}` : "everything is saved";
}

// ---- other tabs and runs --------------------------------------------------------------------------

async function watchOthers() {
  const image = page.state.view?.image;
  if (!image || document.hidden || page.state.activity) return;
  const reply = await server.watch_image({ id: image.id, revision: image.revision, tab });
  if (!reply) page.update({ message: { text: "the program does not answer: is it still running?", kind: "error", where: "stage" } });
  if (!reply || reply.error || page.state.view?.image.id !== image.id) return;
  if (page.state.model && reply.n_changes !== page.state.model.n_changes) await page.loadModel();
  if (reply.elsewhere !== page.state.elsewhere) page.update({ elsewhere: reply.elsewhere });
  if (reply.changed && reply.image.revision !== page.state.view.image.revision) page.show(reply);
}

setInterval(watchOthers, WATCH_EVERY_MS);

for (const button of element.querySelectorAll("[data-tool]")) {
  button.addEventListener("click", () => page.update({ tool: button.dataset.tool }));
}
find(".undo").addEventListener("click", page.undo);
find(".redo").addEventListener("click", page.redo);
find(".fit").addEventListener("click", () => canvas.fit());
find(".finish").addEventListener("click", page.finish);
find(".opacity").addEventListener("input", (event) => page.update({ opacity: Number(event.target.value) }));
find(".show-rejected").addEventListener("change", (event) => page.update({ showRejected: event.target.checked }));
page.subscribe(draw);

const page = window.phrasemask;
page.connect(server, ["decide", "finish", "relabel", "set_suppression", "undo", "redo"]);

const find = (selector) => element.querySelector(selector);
const list = find(".instance-list");
const slider = find(".threshold input");
const rows = new Map(); // instance id → its list item
let shownKey = "";

const WORDS = { pending: "suggested", accepted: "accepted", rejected: "rejected" };

function makeRow(item) {
  const row = document.createElement("li");
  row.className = "instance";
  row.dataset.id = item.id;
  row.innerHTML = '<span class="swatch"></span><span class="instance-number"></span><button type="button" class="instance-name"></button><span class="instance-score"></span><button type="button" class="yes" aria-label="Accept">✓</button><button type="button" class="no" aria-label="Reject">✗</button>';
  row.addEventListener("mouseenter", () => page.update({ hovered: item.id }));
  row.addEventListener("mouseleave", () => page.update({ hovered: null }));
  row.querySelector(".instance-name").addEventListener("click", () => page.canvas.centerOn(item.id));
  row.querySelector(".instance-name").addEventListener("dblclick", () => editCategory(item.id));
  row.querySelector(".yes").addEventListener("click", () => page.decide({ [item.id]: "accepted" }, `accept ${item.label}`));
  row.querySelector(".no").addEventListener("click", () => page.decide({ [item.id]: "rejected" }, `reject ${item.label}`));
  rows.set(item.id, row);
  return row;
}

function drawRow(item, hovered) {
  const row = rows.get(item.id);
  row.dataset.decision = item.decision;
  row.classList.toggle("is-hovered", item.id === hovered);
  row.querySelector(".swatch").style.background = window.PhrasemaskCanvas.categoryColor(item.color_index);
  row.querySelector(".instance-number").textContent = item.number;
  const name = row.querySelector(".instance-name");
  if (!name) return; // its category is being typed
  name.textContent = item.label;
  name.title = `${item.drawn ? "drawn by hand" : `${WORDS[item.decision]}, from '${item.phrase}'`}; click to centre, double click (C) to change the category`;
  row.querySelector(".instance-score").textContent = item.drawn ? "drawn" : item.score.toFixed(2);
  row.querySelector(".yes").setAttribute("aria-pressed", String(item.decision === "accepted"));
  row.querySelector(".no").setAttribute("aria-pressed", String(item.decision === "rejected"));
}

function editCategory(id) {
  const item = page.instances().find((candidate) => candidate.id === id);
  const row = rows.get(id);
  if (!item || !row || item.draft) return;
  const input = document.createElement("input");
  input.value = item.label;
  input.setAttribute("list", "category-names");
  input.setAttribute("aria-label", "New category");
  input.className = "instance-category";
  const name = row.querySelector(".instance-name");
  name.replaceWith(input);
  let stopped = false; // removing the field blurs it, which would stop again
  const stop = () => {
    if (stopped) return;
    stopped = true;
    shownKey = "";
    draw(page.state);
  };
  input.addEventListener("keydown", async (event) => {
    if (event.key === "Escape") stop();
    if (event.key !== "Enter") return;
    const category = input.value.trim();
    if (category && category !== item.label) await relabel(Number(item.id), category);
    stop();
  });
  input.addEventListener("blur", stop);
  input.focus();
  input.select();
}

async function relabel(annotation_id, category) {
  const view = await page.write("relabel", page.state.view.image.id, { annotation_id, category }, "instances");
  if (view) page.show(view, { message: null, lastCategory: category });
}

function draw(state) {
  const visible = page.visibleInstances();
  const hiddenBelow = page.instances().length - visible.length;
  const key = visible.map((item) => item.id).join();
  if (key !== shownKey) {
    shownKey = key;
    rows.clear();
    list.replaceChildren(...visible.map(makeRow));
  }
  for (const item of visible) drawRow(item, state.hovered);
  find(".instances-count").textContent = visible.length + (hiddenBelow ? ` + ${hiddenBelow} below` : "");
  slider.value = state.threshold;
  slider.min = state.model?.score_floor ?? 0;
  find(".threshold output").textContent = state.threshold.toFixed(2);
  drawRepeats(state);
  const empty = find(".instances-empty");
  empty.hidden = visible.length > 0;
  empty.textContent = state.view?.image.failure ? "This file cannot be labelled." : "Nothing yet: type a phrase, or press B and draw a box.";
  const open = visible.some((item) => item.decision === "pending");
  find(".accept-all").disabled = !open;
  find(".reject-all").disabled = !visible.some((item) => item.decision !== "rejected" && !item.drawn);
}

// ---- duplicates: hidden by Python, which has the masks at full size -----------------------------------

const limits = { iou: find(".repeats-iou"), containment: find(".repeats-containment") };

function drawRepeats({ view, threshold }) {
  const n_hidden = (view?.hidden_scores ?? []).filter((score) => score >= threshold - 1e-9).length;
  find(".repeats-count").textContent = n_hidden ? `${n_hidden} hidden` : "none hidden";
  for (const [name, input] of Object.entries(limits)) {
    if (view && input !== document.activeElement) input.value = view.suppression[name] ?? 1;
    sayLimit(input);
  }
}

function sayLimit(input) {
  const limit = Number(input.value);
  input.closest("label").querySelector("output").textContent = limit < 1 ? limit.toFixed(2) : "off";
}

async function setSuppression() {
  const { id } = page.state.view.image;
  const request = { id, iou: Number(limits.iou.value), containment: Number(limits.containment.value) };
  const view = await page.call("set_suppression", request, "instances");
  if (view) page.show(view);
}

for (const input of Object.values(limits)) {
  input.addEventListener("input", () => sayLimit(input));
  input.addEventListener("change", setSuppression);
}

slider.addEventListener("input", () => page.update({ threshold: Number(slider.value) }));
find(".accept-all").addEventListener("click", () => page.decideAll("accepted"));
find(".reject-all").addEventListener("click", () => page.decideAll("rejected"));
page.editCategory = editCategory;
page.subscribe(draw);

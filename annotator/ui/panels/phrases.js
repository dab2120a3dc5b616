const page = window.phrasemask;
page.connect(server, ["try_phrase", "count_tokens", "keep_phrase", "forget_phrase"]);

const find = (selector) => element.querySelector(selector);
const phraseInput = find(".phrase-input");
const categoryInput = find(".category-input");
let categoryTyped = false; // by the person; otherwise it follows the phrase
let asking = false;
let askAgain = false;

const words = (text) => text.trim().replace(/\s+/g, " ");
const { isKept } = page;
const MAX_CATEGORY = 200;
const MOST_SHOWN = 60;

// What is asked: the words and the exemplar boxes. Words that are kept have been answered already.
function question() {
  const text = words(phraseInput.value);
  const boxes = page.state.exemplars;
  const asks = boxes.length ? text || !page.state.exemplarsWait : text && !isKept(text);
  return { text, boxes, key: asks ? JSON.stringify([text, boxes]) : "" };
}

// ---- masks follow the typing: one question on the way, and the newest words next -------------------

function typed() {
  if (!categoryTyped) categoryInput.value = words(phraseInput.value).slice(0, MAX_CATEGORY);
  page.update({ wanted: question().key, category: words(categoryInput.value) });
  ask();
  count();
}

// How much of what the model takes is used; asked beside the question, which may wait for the picture to be encoded.
let counting = false;
let countAgain = false;

async function count() {
  if (counting) { countAgain = true; return; }
  counting = true;
  do {
    countAgain = false;
    const text = words(phraseInput.value);
    const reply = text && page.state.model ? await server.count_tokens({ text }) : {};
    showCount(reply?.most ? reply : null);
  } while (countAgain);
  counting = false;
}

function showCount(counted) {
  const label = find(".token-count");
  label.hidden = !counted;
  if (!counted) return;
  label.textContent = `${counted.n}/${counted.most} tokens`;
  label.title = `${counted.n} tokens of the ${counted.most} that the model takes, besides one for the start and one for the end; the rest is cut off`;
  label.classList.toggle("is-too-long", counted.n > counted.most);
}

async function ask() {
  if (asking) { askAgain = true; return; }
  asking = true;
  do {
    askAgain = false;
    await askOnce();
  } while (askAgain);
  asking = false;
}

async function askOnce() {
  const { text, boxes, key } = question();
  const image = page.state.view?.image;
  if (!key || !image || image.failure) {
    page.update({ draft: null, wanted: "" });
    return;
  }
  page.update({ wanted: key, asked: text || "things like the box" });
  const reply = await page.call("try_phrase", { id: image.id, text, boxes, category: chosenCategory(text) }, "phrases");
  page.update({ asked: "" });
  if (page.state.view.image.id !== image.id || !question().key) return;
  if (reply) page.update({ draft: { ...reply.draft, words: text, boxes, key }, timings: reply.draft.timings, message: null });
  else if (question().key === key) page.update({ wanted: "", draft: null });
}

const chosenCategory = (text) => words(categoryInput.value) || text.slice(0, MAX_CATEGORY) || page.state.lastCategory || "object";

// The box is emptied at once, so that what is typed next cannot be lost; if keeping fails, the words come back.
async function keep() {
  const { text, boxes } = question();
  if (!page.state.view || !(text || boxes.length)) return;
  const category = chosenCategory(text);
  clear();
  phraseInput.blur();
  categoryInput.blur();
  const { id } = page.state.view.image;
  const view = await page.during(id, `looking for '${text || category}'`, () => page.write("keep_phrase", id, { text, category, boxes }, "phrases"));
  if (view) page.show(view, { message: null, lastCategory: category });
  else if (!phraseInput.value) restore(text, category);
}

function restore(text, category) {
  phraseInput.value = text;
  categoryInput.value = category;
  categoryTyped = true;
  page.update({ category });
}

function clear() {
  phraseInput.value = "";
  categoryInput.value = "";
  categoryTyped = false;
  showCount(null);
  const exemplars = page.state.exemplarsStay ? page.state.exemplars : [];
  page.update({ wanted: "", draft: null, category: "", exemplars, exemplarsWait: exemplars.length > 0 });
}

// One click asks, the second forgets: suggestions on all images go, and that cannot be undone.
async function forget(kept, button) {
  if (!button.classList.contains("is-sure")) {
    button.classList.add("is-sure");
    button.textContent = "forget?";
    sure = kept.id;
    return;
  }
  sure = null;
  const view = await page.write("forget_phrase", page.state.view.image.id, { phrase_id: kept.id }, "phrases");
  if (view) page.show(view);
}

let sure = null; // id of the phrase whose button asks

// ---- drawing --------------------------------------------------------------------------------------

function phraseRow(kept) {
  const category = page.categoryById(kept.category_id);
  const row = document.createElement("li");
  row.innerHTML = '<span class="swatch"></span><span class="phrase-text"></span><span class="arrow">→</span><span class="phrase-category"></span><span class="count"></span><button type="button" class="icon-button">×</button>';
  row.querySelector(".swatch").style.background = window.PhrasemaskCanvas.categoryColor(category?.color_index ?? 0);
  row.querySelector(".phrase-text").textContent = kept.text;
  row.querySelector(".phrase-category").textContent = category?.name ?? "";
  row.querySelector(".count").textContent = kept.n_here;
  const button = row.querySelector("button");
  button.title = `Forget '${kept.text}' and its suggestions; what you decided stays`;
  button.setAttribute("aria-label", button.title);
  if (kept.id === sure) {
    button.classList.add("is-sure");
    button.textContent = "forget?";
  }
  button.addEventListener("click", () => forget(kept, button));
  button.addEventListener("mouseleave", () => { sure = null; button.classList.remove("is-sure"); button.textContent = "×"; });
  return row;
}

function understood(state) {
  const draft = state.draft;
  const text = words(phraseInput.value);
  if (text && !state.wanted && isKept(text)) return `'${shortened(text)}' is kept already`;
  if (state.asked) return `looking for ${text ? `'${shortened(text)}'` : state.asked}…`;
  if (!draft) return "";
  const said = draft.understanding ? `${draft.understanding}` : "";
  return [said, resultWords(state, draft)].filter(Boolean).join(" — ");
}

function resultWords(state, draft) {
  if (draft.outside) return "";
  const shown = draft.instances.filter((item) => item.score >= state.threshold - 1e-9).length;
  if (shown) return `${shown} found`;
  if (draft.n_repeats) return "all of it is on the image already";
  const best = Math.max(0, ...draft.instances.map((item) => item.score));
  const floor = best ? ` (best ${best.toFixed(2)})` : "";
  return `no instance of '${shortened(draft.text)}' at or above ${state.threshold.toFixed(2)}${floor}`;
}

function shortened(text) {
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}

function draw(state) {
  const phrases = state.view?.phrases ?? [];
  find(".phrase-list").replaceChildren(...phrases.map(phraseRow));
  find("#category-names").replaceChildren(...(state.view?.categories ?? []).map((category) => new Option(category.name)));
  drawUnderstood(state);
  drawExemplars(state.exemplars);
  drawExamples(state.examples.filter((example) => !isKept(example)));
}

function drawUnderstood(state) {
  const error = state.message?.where === "phrases" ? state.message.text : "";
  const line = find(".understood");
  line.classList.toggle("is-error", Boolean(error));
  line.classList.toggle("is-outside", Boolean(state.draft?.outside) && !state.asked);
  line.replaceChildren(error || understood(state));
  const best = Math.max(0, ...(state.draft?.instances ?? []).map((item) => item.score));
  if (!error && !state.asked && best && best < state.threshold) line.append(" ", showBest(best));
}

function drawExemplars(exemplars) {
  const line = find(".exemplars");
  line.hidden = !exemplars.length;
  line.replaceChildren(`${boxesInWords(exemplars)} `);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link";
  button.textContent = "drop the boxes";
  button.addEventListener("click", () => page.update({ exemplars: [] }));
  const stay = document.createElement("input");
  stay.type = "checkbox";
  stay.checked = page.state.exemplarsStay;
  stay.addEventListener("change", () => page.update({ exemplarsStay: stay.checked }));
  const label = document.createElement("label");
  label.className = "exemplars-stay";
  label.append(stay, "keep them for the next phrase");
  line.append(button, label);
}

function boxesInWords(exemplars) {
  const n_positive = exemplars.filter((exemplar) => exemplar.positive).length;
  const n_negative = exemplars.length - n_positive;
  const boxes = (n) => `${n} box${n === 1 ? "" : "es"}`;
  const parts = [n_positive && `${boxes(n_positive)} of what is meant`, n_negative && `${boxes(n_negative)} of what is not`];
  return `with ${parts.filter(Boolean).join(", ")}`;
}

function showBest(best) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link";
  button.textContent = "show it";
  button.addEventListener("click", () => page.update({ threshold: Math.floor(best * 100) / 100 }));
  return button;
}

function drawExamples(examples) {
  const line = find(".phrase-examples");
  line.hidden = !examples.length || Boolean(phraseInput.value);
  line.replaceChildren("Try: ");
  for (const example of examples) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "chip";
    button.textContent = example;
    button.addEventListener("click", () => { phraseInput.value = example; typed(); phraseInput.focus(); });
    line.append(button);
  }
}

phraseInput.addEventListener("input", typed);
categoryInput.addEventListener("input", () => {
  categoryTyped = words(categoryInput.value) !== "";
  page.update({ category: words(categoryInput.value) });
  if (page.state.draft) page.update({ draft: { ...page.state.draft, category: words(categoryInput.value) || page.state.draft.text } });
});
for (const input of [phraseInput, categoryInput]) {
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); keep(); }
    if (event.key === "Escape") { input.blur(); }
  });
}
find(".keep").addEventListener("click", keep);
page.onDraftTaken((key) => { if (question().key === key) clear(); });

// Words that stand in the box when another image opens, and boxes that are drawn, are asked about too; again when other duplicates are to be hidden, or another model is to answer.
let askedAbout = "";
page.subscribe((state) => {
  const about = JSON.stringify([state.view?.image.id, state.view?.suppression, state.exemplars, state.model?.n_changes]);
  if (about !== askedAbout) {
    askedAbout = about;
    if (question().key || state.draft) ask();
  }
  draw(state);
});

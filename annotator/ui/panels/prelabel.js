const page = window.phrasemask;
page.connect(server, ["list_phrases", "usual_rules", "add_phrase", "start_prelabel", "stop_prelabel", "watch_prelabel"]);

const WATCH_EVERY_MS = 1000;
const UNDER_WAY = ["loading", "running", "stopping"];
const find = (selector) => element.querySelector(selector);
const unticked = new Set(); // ids of phrases that are not to be run
let seen = { number: null, seen: 0 }; // what this tab has got of which run
let unread = false; // whether a run ended that was not looked at
let asksForRun = false; // whether the form is shown although a run has ended
let watching = false;
let n_asked = 0; // how often something was asked of the run: what is watched from before is old

function made(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

function say(text, isError = false) {
  if (find(".prelabel-said").textContent !== text) find(".prelabel-said").textContent = text; // it is read aloud
  find(".prelabel-said").classList.toggle("is-error", isError);
}

function sayRefusal() {
  say(page.state.message?.text ?? "", true);
}

// ---- the form -----------------------------------------------------------------------------------

async function listPhrases() {
  const reply = await page.call("list_phrases", {}, "prelabel");
  if (!reply) return sayRefusal();
  find(".prelabel-phrases").replaceChildren(...reply.phrases.map(phraseRow));
  if (!reply.phrases.length) find(".prelabel-phrases").append(made("p", "", "No phrase is kept yet: add what you are looking for."));
}

function phraseRow({ id, text, category }) {
  const label = made("label", "");
  const box = Object.assign(made("input", ""), { type: "checkbox", value: id, checked: !unticked.has(id) });
  box.addEventListener("change", () => { if (box.checked) unticked.delete(id); else unticked.add(id); });
  label.append(box, made("strong", "", text), made("span", "", `→ ${category}`));
  return label;
}

// The words that stand in the field join the phrases; answers whether there is nothing left to say about them.
async function addPhrase() {
  const field = find(".prelabel-add input");
  const written = field.value.trim();
  if (!written) return true;
  const reply = await page.call("add_phrase", { written }, "prelabel");
  if (!reply) {
    sayRefusal();
    return false;
  }
  field.value = "";
  say("");
  unticked.delete(reply.id);
  await listPhrases();
  await showPhrases();
  return true;
}

// The phrases beside the picture: a new one stands there too.
async function showPhrases() {
  if (!page.state.view) return;
  const view = await page.call("open_image", { id: page.state.view.image.id }, "prelabel");
  if (view) page.show(view);
}

function typedNumber(selector) {
  const { value } = find(selector);
  return value.trim() === "" ? null : Number(value);
}

// What the command line was given, until somebody types something else.
async function fillRules() {
  const rules = await page.call("usual_rules", {}, "prelabel");
  if (!rules) return sayRefusal();
  for (const [selector, value] of [[".prelabel-iou", rules.suppress_iou], [".prelabel-containment", rules.suppress_containment], [".prelabel-min-area", rules.min_area]]) {
    if (find(selector).value === "") find(selector).value = value;
  }
}

async function start() {
  if (!(await addPhrase())) return;
  say("");
  const ticked = [...element.querySelectorAll(".prelabel-phrases input:checked")];
  const accepts = find(".prelabel-accepts").checked;
  const job = await askRun("start_prelabel", {
    phrases: ticked.map((box) => Number(box.value)),
    score_threshold: typedNumber(".prelabel-threshold"),
    accept_above: accepts ? typedNumber(".prelabel-accept-above") ?? "" : null,
    redo: find(".prelabel-redo").checked,
    suppress_iou: typedNumber(".prelabel-iou"),
    suppress_containment: typedNumber(".prelabel-containment"),
    across_categories: find(".prelabel-across").checked,
    min_area: typedNumber(".prelabel-min-area"),
  });
  if (!job) return sayRefusal();
  asksForRun = false;
  find(".prelabel-redo").checked = false;
  show(job);
}

async function stop() {
  const job = await askRun("stop_prelabel", {});
  if (job) show(job);
  else sayRefusal();
}

async function askRun(name, request) {
  n_asked += 1;
  const job = await page.call(name, request, "prelabel");
  n_asked += 1;
  return job;
}

// ---- the run, as this and every other tab sees it ---------------------------------------------------

async function watch() {
  if (document.hidden || watching) return;
  watching = true;
  const asked = n_asked;
  try {
    const reply = await server.watch_prelabel(seen);
    if (!reply || reply.error) return; // the stage says when the program does not answer
    seen = { number: reply.job.number, seen: reply.seen };
    takeRows(reply.rows);
    if (asked === n_asked) show(reply.job);
  } finally {
    watching = false;
  }
}

// A line that this tab has changed meanwhile is newer than what was on its way.
function takeRows(rows) {
  if (!rows.length) return;
  const fresh = new Map(rows.map((row) => [row.id, row]));
  page.update({ images: page.state.images.map((row) => (fresh.get(row.id)?.revision >= row.revision ? fresh.get(row.id) : row)) });
}

function show(job) {
  const before = page.state.job;
  const underWay = UNDER_WAY.includes(job.phase);
  if (before?.underWay && !underWay) unread = true;
  if (underWay) asksForRun = false;
  const share = job.n_images ? job.n_looked_at / job.n_images : 0;
  const seconds = inWords(job.seconds_left);
  page.update({ job: { ...job, underWay, share, left: seconds && `${seconds} left` } });
  drawEnd();
}

function inWords(seconds) {
  if (seconds == null) return "";
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function inShort(job) {
  if (job.phase === "loading") return "pre-labelling: loading the model";
  if (job.phase === "stopping") return "pre-labelling: stopping";
  if (job.phase === "running") return `pre-labelling ${Math.floor(100 * job.share)} %${job.left ? ` · ${job.left}` : ""}`;
  if (!unread) return "";
  return job.phase === "finished" ? `pre-labelled: ${plural(job.n_done, "image")}` : "pre-labelling ended early";
}

function plural(n, word) {
  return `${n.toLocaleString()} ${word}${n === 1 ? "" : "s"}`;
}

// What the header says. A run whose end is on the screen has been looked at.
function drawEnd() {
  const { job, dialog } = page.state;
  if (!job) return;
  if (dialog === "prelabel" && !job.underWay) unread = false;
  const text = dialog === "prelabel" ? "" : inShort(job);
  if (text !== job.inShort) page.update({ job: { ...job, inShort: text } });
}

// ---- drawing ------------------------------------------------------------------------------------

function draw(state) {
  const { job } = state;
  drawEnd();
  const showsRun = Boolean(job && job.phase !== "none" && (job.underWay || !asksForRun));
  find(".prelabel-form").hidden = showsRun;
  find(".prelabel-run").hidden = !showsRun;
  find(".prelabel-start").hidden = showsRun;
  find(".prelabel-stop").hidden = !job?.underWay;
  find(".prelabel-stop").disabled = job?.phase === "stopping";
  find(".prelabel-another").hidden = !showsRun || job.underWay;
  if (state.dialog !== "prelabel") return;
  const n_open = state.images.filter((row) => row.state !== "done").length;
  find(".prelabel-words").textContent = `Looks for these phrases on the ${plural(n_open, "image")} that nobody has reviewed, while you go on labelling. What you decided or drew stays as it is.`;
  if (showsRun) drawRun(job);
}

function drawRun(job) {
  const percent = Math.floor(100 * job.share);
  find(".prelabel-bar div").style.width = `${100 * job.share}%`;
  find(".prelabel-bar").setAttribute("aria-valuenow", String(percent));
  find(".prelabel-place").textContent = job.n_images ? `${job.n_looked_at.toLocaleString()} of ${plural(job.n_images, "image")}` : "looking through the folder";
  const rate = job.images_per_s == null ? "" : `${job.images_per_s.toPrecision(3)} images/s`;
  find(".prelabel-speed").textContent = [rate, job.underWay ? job.left : ""].filter(Boolean).join(" · ");
  find(".prelabel-counts tbody").replaceChildren(...Object.entries(job.n_suggestions).map(([text, n]) => countRow(text, n, job.understood[text])));
  drawFailures(job);
  find(".prelabel-notes").replaceChildren(...job.notes.map((note) => made("p", "", note)));
  say(...sentence(job));
}

function countRow(text, n, understood) {
  const row = made("tr", "");
  const name = made("td", "", text);
  if (understood) name.append(made("p", "model-note", understood));
  row.append(name, made("td", "number", n.toLocaleString()));
  return row;
}

let failuresShown = "";

function drawFailures({ number, n_failed, failures }) {
  find(".prelabel-failures").hidden = !n_failed;
  const key = `${number} ${n_failed}`;
  if (key === failuresShown) return; // so that what is being read stays in its place
  failuresShown = key;
  const listed = n_failed > failures.length ? `, the latest ${failures.length} listed` : "";
  find(".prelabel-failures summary").textContent = `${plural(n_failed, "image")} failed${listed}`;
  find(".prelabel-failures ul").replaceChildren(...failures.map(([path, reason]) => failureRow(path, reason)));
}

function failureRow(path, reason) {
  const item = made("li", "");
  const button = Object.assign(made("button", "link", path), { type: "button" });
  button.addEventListener("click", () => {
    const image = page.state.images.find((row) => row.path === path);
    page.update({ dialog: null });
    if (image) page.open(image.id);
  });
  item.append(button, `: ${reason}`);
  return item;
}

function sentence(job) {
  if (job.phase === "failed") return [job.error, true];
  if (job.phase === "loading") return ["Loading the model…"];
  if (job.phase === "stopping") return ["Stopping after the images in work…"];
  if (job.phase === "running") return ["You can close this and go on labelling; the line at the top says how far it is."];
  const counts = [
    `${plural(job.n_done, "image")} done`,
    job.n_already ? `${job.n_already.toLocaleString()} done before` : "",
    job.n_reviewed ? `${job.n_reviewed.toLocaleString()} reviewed and left alone` : "",
    job.n_failed ? `${job.n_failed.toLocaleString()} failed` : "",
  ].filter(Boolean).join(", ");
  const took = job.n_done ? ` in ${inWords(job.seconds)}` : "";
  if (job.phase === "finished") return [`Finished${took}: ${counts}.`];
  return [`Stopped after ${job.n_looked_at.toLocaleString()} of ${plural(job.n_images, "image")}: ${counts}. Start it again, and it goes on there.`];
}

find(".prelabel-add").addEventListener("submit", (event) => {
  event.preventDefault();
  addPhrase();
});
find(".prelabel-accepts").addEventListener("change", (event) => { find(".prelabel-accept-above").disabled = !event.target.checked; });
find(".prelabel-start").addEventListener("click", start);
find(".prelabel-stop").addEventListener("click", stop);
find(".prelabel-another").addEventListener("click", () => {
  asksForRun = true;
  say("");
  listPhrases();
  draw(page.state);
});
find(".prelabel-close").addEventListener("click", () => page.update({ dialog: null }));
page.dialog(element, "prelabel", () => { say(""); listPhrases(); fillRules(); });
page.subscribe(draw);
setInterval(watch, WATCH_EVERY_MS);
watch();

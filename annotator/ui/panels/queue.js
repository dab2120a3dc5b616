const page = window.phrasemask;
page.connect(server, ["list_images", "make_thumbnails"]);

const find = (selector) => element.querySelector(selector);
const list = find(".queue-list");
const thumbnails = new Map(); // image id → address, or null for a file that cannot be read
const items = new Map(); // image id → its list item
const wanted = new Set();
let filter = "all";
let sort = "name";
let shownKey = "";
let fetching = false;

const SYMBOLS = { untouched: "", suggested: "?", done: "✓" };
const STATE_ORDER = { suggested: 0, untouched: 1, done: 2 };
const byName = new Intl.Collator(undefined, { numeric: true }).compare;

// Sorted here, so that the keys walk the images in the order that is seen.
function sorted(rows) {
  const order = {
    name: (a, b) => byName(a.path, b.path),
    state: (a, b) => STATE_ORDER[a.state] - STATE_ORDER[b.state] || byName(a.path, b.path),
    suggestions: (a, b) => b.n_pending - a.n_pending || byName(a.path, b.path),
  };
  return [...rows].sort(order[sort]);
}

function shownRows(rows) {
  return rows.filter((row) => filter === "all" || row.state === filter);
}

// ---- thumbnails: asked for when they come near the window, a few at a time -----------------------

const nearby = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const id = Number(entry.target.dataset.id);
    if (entry.isIntersecting && !thumbnails.has(id)) wanted.add(id);
    else wanted.delete(id);
  }
  fetchThumbnails();
}, { root: list, rootMargin: "200px" });

async function fetchThumbnails() {
  if (fetching || !wanted.size) return;
  fetching = true;
  const ids = [...wanted].slice(0, 6);
  for (const id of ids) wanted.delete(id);
  const reply = await page.call("make_thumbnails", { ids }, "queue");
  fetching = false;
  if (!reply) return;
  for (const id of ids) {
    thumbnails.set(id, reply.urls[id]);
    drawThumbnail(id);
  }
  const failed = reply.failures;
  if (Object.keys(failed).length) {
    page.update({ images: page.state.images.map((row) => (failed[row.id] ? { ...row, failure: failed[row.id] } : row)) });
  }
  fetchThumbnails();
}

function drawThumbnail(id) {
  const image = items.get(id)?.querySelector("img");
  const url = thumbnails.get(id);
  if (image && url && image.src !== url) image.src = url;
}

// ---- the list -----------------------------------------------------------------------------------

function makeItem(row) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "queue-item";
  button.dataset.id = row.id;
  button.innerHTML = '<span class="queue-thumb"><img alt="" decoding="async"></span><span class="queue-badge"></span><span class="queue-name"></span>';
  button.addEventListener("click", () => page.open(row.id));
  item.append(button);
  nearby.observe(button);
  items.set(row.id, button);
  return item;
}

function drawItem(row, current) {
  const button = items.get(row.id);
  const isCurrent = row.id === current;
  if (button.shown === row && button.shownCurrent === isCurrent) return;
  button.shown = row;
  button.shownCurrent = isCurrent;
  button.tabIndex = isCurrent ? 0 : -1; // one stop for Tab; the arrow keys walk the queue
  const badge = row.failure ? "!" : row.state === "suggested" ? `${row.n_pending || row.n_accepted}?` : SYMBOLS[row.state];
  const words = row.failure ? `${row.path}: ${row.failure}` : `${row.path}: ${row.state}`;
  button.classList.toggle("is-current", isCurrent);
  button.classList.toggle("is-failed", Boolean(row.failure));
  button.dataset.state = row.state;
  if (isCurrent) button.setAttribute("aria-current", "true");
  else button.removeAttribute("aria-current");
  button.title = words;
  button.setAttribute("aria-label", words);
  button.querySelector(".queue-badge").textContent = badge;
  button.querySelector(".queue-name").textContent = row.path.split("/").pop();
}

function draw(state) {
  const rows = shownRows(state.images);
  const key = rows.map((row) => row.id).join();
  if (key !== shownKey) {
    shownKey = key;
    nearby.disconnect();
    items.clear();
    list.replaceChildren(...rows.map(makeItem));
    for (const row of rows) drawThumbnail(row.id);
  }
  const current = state.view?.image.id;
  for (const row of rows) drawItem(row, current);
  drawHead(state, rows);
  if (current !== drawnCurrent) {
    drawnCurrent = current;
    items.get(current)?.scrollIntoView({ block: "nearest" });
  }
}

let drawnCurrent = null;

function drawHead(state, rows) {
  const n_done = state.images.filter((row) => row.state === "done").length;
  find(".queue-progress").textContent = `${n_done}/${state.images.length} done`;
  find(".bar-fill").style.width = `${state.images.length ? (100 * n_done) / state.images.length : 0}%`;
  const place = state.images.findIndex((row) => row.id === state.view?.image.id);
  find(".queue-place").textContent = place < 0 ? "" : `${place + 1} of ${state.images.length}`;
  const empty = find(".queue-empty");
  empty.hidden = rows.length > 0;
  empty.textContent = state.images.length
    ? `No image is ${filter} at the moment.`
    : `There is no picture in ${state.folder}. Put some there and press ↻, or start with another folder: python app.py serve FOLDER`;
  for (const button of element.querySelectorAll("[data-filter]")) {
    button.setAttribute("aria-checked", String(button.dataset.filter === filter));
  }
}

async function load(request) {
  const reply = await page.call("list_images", request, "queue");
  if (!reply) return;
  page.update({ images: sorted(reply.images), folder: reply.folder, message: null });
  const remembered = page.rememberedImage();
  const known = reply.images.some((row) => row.id === remembered);
  const first = known ? remembered : (reply.first ?? reply.images[0]?.id);
  if (!page.state.view && first != null) page.open(first);
}

for (const button of element.querySelectorAll("[data-filter]")) {
  button.addEventListener("click", () => { filter = button.dataset.filter; draw(page.state); });
}
find("select").addEventListener("change", (event) => {
  sort = event.target.value;
  page.update({ images: sorted(page.state.images) });
});
find(".queue-previous").addEventListener("click", () => page.go(-1));
find(".queue-next").addEventListener("click", () => page.go(1));
find(".queue-rescan").addEventListener("click", () => load({ rescan: true }));
page.subscribe(draw);
load({});

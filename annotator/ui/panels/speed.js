const page = window.phrasemask;
page.connect(server, ["describe_speed"]);

const REFRESH_EVERY_MS = 1000;
const STAGES = { encode: "encoding an image", phrase: "an edit: the phrase", decode: "an edit: its instances", edit: "an edit as a whole" };
const find = (selector) => element.querySelector(selector);
let timer = null;

function row(name, stage) {
  const line = document.createElement("tr");
  for (const text of [name, ...[stage.p50_ms, stage.p95_ms, stage.p99_ms].map((value) => value.toFixed(1)), stage.n]) {
    line.append(Object.assign(document.createElement("td"), { textContent: text }));
  }
  return line;
}

// One bar for each edit; those that took more than twice the usual stand out.
function bar(milliseconds, longest, usual) {
  const mark = document.createElement("span");
  mark.style.height = `${Math.max(4, (100 * milliseconds) / longest)}%`;
  mark.title = `${milliseconds} ms`;
  mark.classList.toggle("is-slow", milliseconds > 2 * usual);
  return mark;
}

async function refresh() {
  const reply = await page.call("describe_speed", {}, "speed");
  if (!reply) return;
  find("tbody").replaceChildren(...Object.entries(reply.stages).map(([name, stage]) => row(STAGES[name], stage)));
  const usual = reply.stages.edit?.p50_ms ?? 0;
  const longest = Math.max(1, ...reply.edits);
  find(".speed-bars").replaceChildren(...reply.edits.map((milliseconds) => bar(milliseconds, longest, usual)));
  find(".speed-words").textContent = reply.edits.length
    ? `The last ${reply.edits.length} edits of the phrase, oldest first; the tallest took ${longest} ms.`
    : "Type a phrase, and its time will be here.";
}

page.dialog(element, "speed", refresh);
page.subscribe((state) => {
  if (state.dialog === "speed" && !timer) timer = setInterval(refresh, REFRESH_EVERY_MS);
  if (state.dialog !== "speed" && timer) { clearInterval(timer); timer = null; }
});

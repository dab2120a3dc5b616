const page = window.phrasemask;
page.connect(server, ["describe_models", "choose_model", "loading_model", "stop_loading"]);

const ASK_EVERY_MS = 400;
const find = (selector) => element.querySelector(selector);

function made(tag, className, text) {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

// ---- the models -----------------------------------------------------------------------------------

function modelCard(model) {
  const card = made("li", "model-card", "");
  const head = made("div", "model-head", "");
  head.append(made("strong", "", model.title));
  if (model.in_use) head.append(made("span", "model-in-use", "in use"));
  if (model.folder) head.append(useButton(model));
  card.classList.toggle("is-in-use", model.in_use);
  card.append(head);
  if (model.summary) card.append(made("p", "", model.summary));
  if (model.problem) card.append(made("p", "model-problem", `Cannot be used: ${model.problem}`));
  for (const note of model.notes) card.append(made("p", "model-note", note));
  const facts = [model.licence.length > 1 && `licence: ${model.licence}`, model.folder].filter(Boolean);
  if (facts.length) card.append(made("p", "model-note", facts.join(" · ")));
  return card;
}

// The one in use can be loaded once more: by another runtime, or on another device.
function useButton(model) {
  const button = made("button", "", model.in_use ? "Load again" : "Use this");
  button.type = "button";
  button.dataset.folder = model.folder;
  button.disabled = Boolean(model.problem || page.state.loadingModel);
  button.setAttribute("aria-label", model.in_use ? `Load ${model.title} again` : `Use ${model.title}`);
  button.addEventListener("click", () => choose(model.folder, model.title));
  return button;
}

async function list() {
  const reply = await page.call("describe_models", {}, "models");
  if (!reply) return say(page.state.message?.text ?? "", true);
  const focused = document.activeElement;
  find(".model-list").replaceChildren(...reply.models.map(modelCard));
  if (!focused.isConnected) focusFolder(focused.dataset.folder);
  find(".model-folder").hidden = !reply.any_folder;
  find(".own-folder").textContent = reply.own_folder;
  find(".runtimes-list").replaceChildren(...reply.runtimes.filter((runtime) => !runtime.usable)
    .map((runtime) => made("li", "", `${runtime.title} cannot be used here: ${runtime.reason}`)));
  listRuntimes(reply.runtimes.filter((runtime) => runtime.usable));
}

// A list that is made anew must not take the place at the keyboard away.
function focusFolder(folder) {
  const same = [...element.querySelectorAll(".model-card button:not(:disabled)")].find((button) => button.dataset.folder === folder);
  (same ?? find(".primary")).focus({ preventScroll: true });
}

function listRuntimes(usable) {
  const select = find("#model-runtime");
  const chosen = select.value || "auto";
  select.replaceChildren(new Option("the best there is", "auto"), ...usable.map((runtime) => new Option(runtime.title, runtime.name)));
  select.value = chosen;
  find("#model-devices").replaceChildren(...["auto", ...new Set(usable.flatMap((runtime) => runtime.devices))].map((device) => new Option(device)));
}

// ---- choosing one: the page stays in use while it loads, and the old one answers until then --------

let choosing = false;
const pause = () => new Promise((done) => { setTimeout(done, ASK_EVERY_MS); });

async function choose(model, title) {
  if (page.state.loadingModel) return;
  choosing = true;
  showLoading(`loading ${title}`);
  followHere();
  const reply = await page.call("choose_model", {
    model, runtime: find("#model-runtime").value, device: find("#model-device").value.trim() || "auto",
  }, "models");
  choosing = false;
  if (reply) await page.loadModel();
  showLoading("");
  if (reply) sayWhatIsInUse();
  else say(page.state.message?.text ?? "", true);
}

async function followHere() {
  while (choosing) {
    await pause();
    const reply = await server.loading_model({});
    if (choosing && reply?.words) showLoading(reply.words, reply.share);
  }
}

// A loading that was asked for in another tab, or before the page was loaded again.
let following = false;

async function followElsewhere() {
  if (choosing || following) return;
  following = true;
  let reply = await server.loading_model({});
  const isUnderWay = Boolean(reply?.words);
  while (reply?.words && !choosing) {
    showLoading(reply.words, reply.share);
    await pause();
    reply = await server.loading_model({});
  }
  following = false;
  if (!isUnderWay || choosing) return;
  await page.loadModel();
  showLoading("");
  sayWhatIsInUse();
}

// Without a share, nobody knows how far it is, nor can it be stopped.
function showLoading(words, share = null) {
  if (words !== page.state.loadingModel) page.update({ loadingModel: words });
  find(".models-under-way").hidden = !words;
  find(".models-stop").hidden = share === null;
  const bar = find(".models-progress");
  bar.classList.toggle("is-measured", share !== null);
  bar.style.setProperty("--share", share ?? 0);
  if (share === null) bar.removeAttribute("aria-valuenow");
  else bar.setAttribute("aria-valuenow", Math.round(100 * share));
  if (words) say(`${words}… You can go on: the model in use answers until then.`);
}

find(".models-stop").addEventListener("click", () => page.call("stop_loading", {}, "models"));

function sayWhatIsInUse() {
  const { model } = page.state;
  say(model ? `${model.model} is in use, by ${model.runtime} on ${model.device}` : "the model is being loaded…");
}

function say(text, isError = false) {
  const line = find(".models-said");
  if (line.textContent !== text) line.textContent = text;
  line.classList.toggle("is-error", isError);
}

find(".model-folder").addEventListener("submit", (event) => {
  event.preventDefault();
  const folder = find("#model-folder").value.trim();
  if (folder) choose(folder, folder.split(/[\\/]/).filter(Boolean).pop());
});
page.dialog(element, "models", async () => {
  if (!page.state.loadingModel) sayWhatIsInUse();
  followElsewhere();
  await list();
  if (document.activeElement === find("#model-folder") && !find("#model-folder").value) {
    find(".model-card button:not(:disabled)")?.focus();
  }
});

// The list follows what is loaded, here or in another tab.
let listed = "";
let saidOf;
page.subscribe(({ model, loadingModel, dialog }) => {
  const now = JSON.stringify([model?.n_changes, Boolean(loadingModel)]);
  if (dialog !== "models" || now === listed) return;
  listed = now;
  list();
  if (!loadingModel && model?.n_changes !== saidOf) sayWhatIsInUse();
  saidOf = model?.n_changes;
});

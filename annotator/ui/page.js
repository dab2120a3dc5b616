// What the panels share: one state, one way to change it, and one way to call Python.
// A panel subscribes, draws itself from the state, and never touches another panel.
window.phrasemask = (() => {
  "use strict";

  const state = {
    images: [], // queue rows
    folder: "",
    view: null, // the open image with its annotations, categories and phrases
    examples: [], // phrases that find something on the open image
    draft: null, // what the model finds for the phrase that is being typed
    exemplars: [], // boxes {xyxy, positive} that go with the phrase
    exemplarsStay: false, // whether they stay when the phrase is kept
    exemplarsWait: false, // whether those that stayed wait for the next phrase
    wanted: "", // what is asked of the model, as a key; empty when it is nothing
    asked: "", // what the model is working on, in words; empty when it is not
    category: "", // the category the draft will go to
    lastCategory: "", // the category used last, for a box that is drawn without one
    model: null,
    loadingModel: "", // another model that is being loaded, in words
    timings: { encode_ms: null, edit_ms: null },
    threshold: 0.5,
    opacity: 0.45,
    showRejected: true,
    tool: "select",
    hovered: null,
    masksHidden: false,
    activity: "", // what is going on, in words; empty when nothing is
    message: null, // {text, kind: "error" | "info", where: panel name}
    savedAt: null, // when the last step was on disk
    elsewhere: false,
    dialog: null, // name of the open dialog
    job: null, // the pre-labelling of the folder, as Python says it
  };
  // How a person likes to look at things is the browser's to remember.
  const REMEMBERED = ["threshold", "opacity", "showRejected", "exemplarsStay"];
  const MEMORY = "phrasemask-view";
  Object.assign(state, JSON.parse(localStorage.getItem(MEMORY) ?? "{}"));

  const listeners = new Set();
  const functions = {};
  let scheduled = false;

  function update(changes) {
    Object.assign(state, changes);
    if (REMEMBERED.some((name) => name in changes)) {
      localStorage.setItem(MEMORY, JSON.stringify(Object.fromEntries(REMEMBERED.map((name) => [name, state[name]]))));
    }
    if (scheduled) return;
    scheduled = true;
    queueMicrotask(() => {
      scheduled = false;
      for (const listener of listeners) listener(state);
    });
  }

  function subscribe(listener) {
    listeners.add(listener);
    listener(state);
  }

  // Each panel brings the Python functions it was given; any panel's script may call them by name.
  function connect(server, names) {
    for (const name of names) functions[name] = (request) => server[name](request);
  }

  // Call a Python function. Answers null, and shows the sentence, when it was refused or cannot be reached.
  async function call(name, request = {}, where = "stage") {
    const reply = await functions[name](request);
    if (reply === undefined) {
      update({ message: { text: "the program does not answer: is it still running? Nothing is lost, reload the page when it is", kind: "error", where } });
      return null;
    }
    if (reply.error) {
      update({ message: { text: reply.error, kind: "error", where } });
      if (reply.conflict) await reopen();
      return null;
    }
    return reply;
  }

  // Steps of this tab are stored one after the other, each on the revision that the one before left.
  let lastWrite = Promise.resolve();
  const revisions = new Map(); // image id → the newest revision this tab knows

  function write(name, id, request, where = "stage") {
    const turn = lastWrite.then(async () => {
      const reply = await call(name, { id, revision: revisions.get(id), ...request }, where);
      if (reply) update({ savedAt: new Date() });
      if (reply?.image) revisions.set(reply.image.id, reply.image.revision);
      return reply;
    });
    lastWrite = turn.catch(() => null);
    return turn;
  }

  // What is going on for the open image, in words. Several things may; the newest is shown.
  const running = new Map(); // token → {id, text}

  async function during(id, text, work) {
    const token = Symbol(text);
    running.set(token, { id, text });
    showActivity();
    try {
      return await work();
    } finally {
      running.delete(token);
      showActivity();
    }
  }

  function showActivity() {
    const here = [...running.values()].filter((entry) => entry.id === target);
    update({ activity: here.at(-1)?.text ?? "" });
  }

  // ---- the open image ---------------------------------------------------------------------------

  let target = null; // id of the image that is open or being opened

  // Show a view that Python sent. One of another image, which comes late, changes only its line in the queue.
  function show(view, changes = {}) {
    const { id } = view.image;
    revisions.set(id, view.image.revision);
    const images = state.images.map((row) => (row.id === id ? { ...row, ...queueFields(view.image) } : row));
    if (id !== target) return update({ images });
    const sameImage = state.view?.image.id === id;
    const fresh = sameImage ? {} : { examples: [], exemplars: [], draft: null, hovered: null, elsewhere: false };
    return update({ view, images, timings: view.timings, ...fresh, ...changes });
  }

  function queueFields({ path, state: imageState, failure, n_pending, n_accepted, revision }) {
    return { path, state: imageState, failure, n_pending, n_accepted, revision };
  }

  let opening = 0;

  async function open(id) {
    const ticket = ++opening;
    target = id;
    showActivity();
    const view = await call("open_image", { id });
    if (!view || ticket !== opening) return;
    show(view, { message: null });
    remember(id);
    if (view.image.failure) return;
    const words = state.model ? "looking at the image" : "loading the model";
    const after = await during(id, words, () => call("run_phrases", { id }));
    if (after) show(after, { examples: after.examples });
  }

  // Show an image on which a step was taken back, wherever the person is.
  function showElsewhere(view) {
    opening += 1;
    target = view.image.id;
    showActivity();
    show(view);
    remember(target);
  }

  async function reopen() {
    if (target === null) return;
    const view = await functions.open_image({ id: target });
    if (view && !view.error) show(view);
  }

  function remember(id) {
    history.replaceState(null, "", `#image=${id}`);
  }

  function rememberedImage() {
    const match = /#image=(\d+)/.exec(location.hash);
    return match ? Number(match[1]) : null;
  }

  // ---- moving through the queue -------------------------------------------------------------------

  function go(step) {
    const rows = state.images;
    const place = rows.findIndex((row) => row.id === target);
    const row = rows[Math.min(Math.max(place + step, 0), rows.length - 1)];
    if (row && row.id !== target) open(row.id);
  }

  function goToUnreviewed() {
    const rows = state.images;
    const place = rows.findIndex((row) => row.id === target);
    const around = [...rows.slice(place + 1), ...rows.slice(0, Math.max(place, 0))];
    const next = around.find((row) => row.state !== "done" && !row.failure);
    if (next) return open(next.id);
    const n_failed = rows.filter((row) => row.failure).length;
    const rest = n_failed ? `${n_failed} cannot be read, the others are done` : "every image is done";
    return update({ message: { text: `${rest}: export when you like`, kind: "info", where: "stage" } });
  }

  // ---- dialogs --------------------------------------------------------------------------------

  // A panel that is a dialog opens and closes with the state, and says when it was opened.
  function dialog(element, name, onOpen = () => {}) {
    const box = element.querySelector("dialog");
    box.addEventListener("close", () => { if (state.dialog === name) update({ dialog: null }); });
    box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
    subscribe(() => {
      if (state.dialog === name && !box.open) { box.showModal(); onOpen(); }
      if (state.dialog !== name && box.open) box.close();
    });
  }

  return {
    state, update, subscribe, connect, call, write, during, show, open, showElsewhere, rememberedImage, go, goToUnreviewed,
    dialog,
  };
})();

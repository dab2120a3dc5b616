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
    asked: "", // the phrase the model is working on; empty when it is not
    category: "", // the category the draft will go to
    lastCategory: "", // the category used last, for a box that is drawn without one
    model: null,
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
  };
  const WRITES = new Set(["keep_phrase", "forget_phrase", "decide", "finish", "relabel", "draw_box", "undo", "redo"]);
  // How a person likes to look at things is the browser's to remember.
  const REMEMBERED = ["threshold", "opacity", "showRejected"];
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
    if (WRITES.has(name)) update({ savedAt: new Date() });
    return reply;
  }

  // Show a view that Python sent: the image, what is on it, and its line in the queue.
  function show(view, changes = {}) {
    const images = state.images.map((row) => (row.id === view.image.id ? { ...row, ...queueFields(view.image) } : row));
    const sameImage = state.view && state.view.image.id === view.image.id;
    update({ view, images, timings: view.timings, ...(sameImage ? {} : { examples: [], draft: null, hovered: null, elsewhere: false }), ...changes });
  }

  function queueFields({ path, state: imageState, failure, n_pending, n_accepted, revision }) {
    return { path, state: imageState, failure, n_pending, n_accepted, revision };
  }

  let opening = 0;

  async function open(id) {
    const ticket = ++opening;
    const view = await call("open_image", { id });
    if (!view || ticket !== opening) return;
    show(view, { message: null });
    rememberImage(id);
    if (view.image.failure) return;
    update({ activity: state.model ? "encoding the image" : "loading the model" });
    const after = await call("run_phrases", { id });
    if (ticket !== opening) return;
    update({ activity: "" });
    if (after) show(after, { examples: after.examples });
  }

  async function reopen() {
    if (!state.view) return;
    const view = await functions.open_image({ id: state.view.image.id });
    if (view && !view.error) show(view);
  }

  function rememberImage(id) {
    history.replaceState(null, "", `#image=${id}`);
  }

  function rememberedImage() {
    const match = /#image=(\d+)/.exec(location.hash);
    return match ? Number(match[1]) : null;
  }

  // ---- what is on the image -------------------------------------------------------------------

  function categoryById(id) {
    return state.view?.categories.find((category) => category.id === id);
  }

  function draftColor() {
    const known = state.view.categories.find((category) => category.name === state.draft.category);
    return known ? known.color_index : state.view.categories.length;
  }

  // Stored annotations and the instances of the phrase being typed, numbered as the list shows them.
  function instances() {
    if (!state.view) return [];
    const stored = state.view.annotations.map((item) => {
      const category = categoryById(item.category_id);
      return { ...item, id: String(item.id), category: category?.name ?? "", color_index: category?.color_index ?? 0 };
    });
    const drafted = (state.draft?.instances ?? []).map((item) => ({
      ...item, id: `draft:${item.place}`, category: state.draft.category, phrase: state.draft.text,
      color_index: draftColor(), decision: "pending", drawn: false, draft: true,
    }));
    return [...stored, ...drafted].map((item, index) => ({ ...item, number: index + 1, label: item.category }));
  }

  function isVisible(item) {
    return item.decision !== "pending" || item.drawn || item.score >= state.threshold - 1e-9;
  }

  // The visible ones, numbered from 1 without gaps: these numbers are the keys 1 to 9.
  function visibleInstances() {
    return instances().filter(isVisible).map((item, index) => ({ ...item, number: index + 1 }));
  }

  function draftForServer() {
    return state.draft && state.draft.instances.length ? { text: state.draft.text, category: state.draft.category } : null;
  }

  // ---- decisions ------------------------------------------------------------------------------

  async function decide(decisions, label) {
    if (!state.view || !Object.keys(decisions).length) return;
    const touchesDraft = Object.keys(decisions).some((id) => id.startsWith("draft:"));
    const { id, revision } = state.view.image;
    const view = await call("decide", { id, revision, decisions, label, draft: touchesDraft ? draftForServer() : null }, "instances");
    if (view) show(view, { message: null, ...(touchesDraft ? { draft: null } : {}) });
    if (view && touchesDraft) draftTaken();
  }

  // Suggestions are mostly right, so a click on one says that it is wrong; a second click takes that back.
  function toggled(item) {
    return item.decision === "rejected" ? "accepted" : "rejected";
  }

  function toggle(id) {
    const item = instances().find((candidate) => candidate.id === id);
    if (!item) return;
    const decision = toggled(item);
    decide({ [id]: decision }, `${decision === "accepted" ? "accept" : "reject"} ${item.label}`);
  }

  function decideAll(decision) {
    const open_ = visibleInstances().filter((item) => item.decision === "pending" || (decision === "rejected" && !item.drawn && item.decision !== decision));
    const verb = decision === "accepted" ? "accept" : "reject";
    decide(Object.fromEntries(open_.map((item) => [item.id, decision])), `${verb} all ${open_.length}`);
  }

  async function finish() {
    if (!state.view || state.view.image.failure) return go(1, "unreviewed");
    const { id, revision } = state.view.image;
    const view = await call("finish", { id, revision, threshold: state.threshold, draft: draftForServer() });
    if (!view) return;
    const hadDraft = Boolean(draftForServer());
    show(view, { message: null, draft: null });
    if (hadDraft) draftTaken();
    go(1, "unreviewed");
  }

  async function undo() { await step("undo"); }
  async function redo() { await step("redo"); }

  async function step(name) {
    if (!state.view) return;
    const view = await call(name, { id: state.view.image.id }, "instances");
    if (!view) return;
    show(view);
    rememberImage(view.image.id);
    const word = name === "undo" ? "undone" : "done again";
    update({ message: { text: view.label ? `${word}: ${view.label} on ${view.image.path}` : `nothing to ${name}`, kind: "info", where: "stage" } });
  }

  // The phrase box empties itself when its words have been kept.
  const draftListeners = new Set();
  function onDraftTaken(listener) { draftListeners.add(listener); }
  function draftTaken() { for (const listener of draftListeners) listener(); }

  // ---- moving through the queue ---------------------------------------------------------------

  function go(step_, which = "any") {
    const rows = state.images;
    const place = rows.findIndex((row) => row.id === state.view?.image.id);
    if (which === "any") {
      const row = rows[Math.min(Math.max(place + step_, 0), rows.length - 1)];
      if (row && row.id !== state.view?.image.id) open(row.id);
      return;
    }
    const around = [...rows.slice(place + 1), ...rows.slice(0, Math.max(place, 0))];
    const next = around.find((row) => row.state !== "done" && !row.failure);
    if (next) open(next.id);
    else update({ message: { text: "every image is done: export when you like", kind: "info", where: "stage" } });
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
    dialog, state, update, subscribe, connect, call, show, open, rememberedImage, categoryById, instances, isVisible,
    visibleInstances, decide, toggle, decideAll, finish, undo, redo, onDraftTaken, go,
  };
})();

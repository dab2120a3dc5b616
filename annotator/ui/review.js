// What is on the open image, and what a person decides about it.
(() => {
  "use strict";
  const page = window.phrasemask;
  const { state, update } = page;

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

  // ---- decisions ------------------------------------------------------------------------------------

  async function decide(decisions, label) {
    if (!state.view || !Object.keys(decisions).length) return;
    const { draft } = state;
    const touchesDraft = Object.keys(decisions).some((id) => id.startsWith("draft:"));
    const kept = touchesDraft && draft ? forServer(draft) : null;
    const view = await page.write("decide", state.view.image.id, { decisions, label, draft: kept }, "instances");
    if (!view) return;
    page.show(view, { message: null });
    if (kept) draftTaken(draft);
  }

  function forServer({ words, category, boxes, bundle_id }) {
    return { text: words, category, boxes, bundle_id };
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
    const touched = visibleInstances().filter((item) => item.decision === "pending" || (decision === "rejected" && !item.drawn && item.decision !== decision));
    const verb = decision === "accepted" ? "accept" : "reject";
    decide(Object.fromEntries(touched.map((item) => [item.id, decision])), `${verb} all ${touched.length}`);
  }

  // Nothing is accepted that has not been seen: Space waits for what is still being looked for.
  function stillLooking() {
    if (state.activity) return state.activity;
    return !state.wanted || state.wanted === state.draft?.key ? "" : "looking for what you asked";
  }

  async function finish() {
    if (!state.view || state.view.image.failure) return page.goToUnreviewed();
    const looking = stillLooking();
    if (looking) {
      return update({ message: { text: `still ${looking}: press Space again when you have seen it`, kind: "info", where: "stage" } });
    }
    const { id } = state.view.image;
    const draft = state.draft?.instances.length ? state.draft : null;
    const seen = visibleInstances().filter((item) => item.decision === "pending").map((item) => item.id);
    const saved = page.write("finish", id, { threshold: state.threshold, seen, draft: draft && forServer(draft) });
    if (draft) draftTaken(draft);
    const view = await saved;
    if (!view) return undefined;
    page.show(view, { message: null });
    return page.goToUnreviewed();
  }

  function isKept(text) {
    return Boolean(state.view?.phrases.some((kept) => kept.text.toLowerCase() === text.toLowerCase()));
  }

  const undo = () => step("undo", "undone");
  const redo = () => step("redo", "done again");

  async function step(name, word) {
    if (!state.view) return;
    const view = await page.write(name, state.view.image.id, {}, "instances");
    if (!view) return;
    if (view.label) page.showElsewhere(view);
    const text = view.label ? `${word}: ${view.label} on ${view.image.path}` : `nothing to ${name}`;
    update({ message: { text, kind: "info", where: "stage" } });
  }

  // The phrase box empties itself when its words have been kept, unless other words stand in it by then.
  const draftListeners = new Set();
  function onDraftTaken(listener) { draftListeners.add(listener); }
  function draftTaken(draft) {
    if (state.draft?.key === draft.key) update({ draft: null });
    for (const listener of draftListeners) listener(draft.key);
  }

  Object.assign(page, {
    categoryById, instances, isVisible, isKept, visibleInstances, decide, toggle, decideAll, finish, undo, redo,
    onDraftTaken,
  });
})();

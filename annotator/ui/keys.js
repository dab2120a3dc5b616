// The keys. They act when the page or the canvas has the focus, never while something is typed.
(() => {
  "use strict";
  const page = window.phrasemask;

  const typing = (target) => target.closest?.("input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]");

  const actions = {
    "/": () => document.querySelector(".phrase-input").focus(),
    " ": () => page.finish(),
    ArrowLeft: () => page.go(-1),
    ArrowRight: () => page.go(1),
    a: () => page.decideAll("accepted"),
    x: () => page.decideAll("rejected"),
    b: () => pickTool("box", page.state.model?.box_to_mask),
    h: () => page.update({ masksHidden: true }),
    0: () => page.canvas.fit(),
    z: () => page.undo(),
    Z: () => page.redo(),
    c: changeCategory,
    "+": () => pickTool("positive", page.state.model?.exemplar_boxes),
    "-": () => pickTool("negative", page.state.model?.exemplar_boxes),
    Delete: rejectHovered,
    "?": () => page.update({ dialog: "keys" }),
  };

  function changeCategory() {
    const { hovered } = page.state;
    const visible = page.visibleInstances();
    const id = hovered ?? (visible.length === 1 ? visible[0].id : null);
    if (id) page.editCategory(id);
    else document.querySelector(".category-input").focus();
  }

  function pickTool(tool, isTaken) {
    if (isTaken) page.update({ tool: page.state.tool === tool ? "select" : tool });
  }

  function rejectHovered() {
    const item = page.visibleInstances().find((candidate) => candidate.id === page.state.hovered);
    if (item) page.decide({ [item.id]: "rejected" }, `reject ${item.label}`);
  }

  function toggleByNumber(number) {
    const item = page.visibleInstances()[number - 1];
    if (item) page.toggle(item.id);
  }

  function backToCanvas() {
    document.activeElement?.blur();
    page.update({ tool: "select", dialog: null, message: null });
    document.querySelector(".canvas-host canvas, .canvas-host [tabindex]")?.focus({ preventScroll: true });
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return backToCanvas();
    if (event.ctrlKey || event.metaKey || event.altKey || page.state.dialog || typing(event.target)) return;
    // A button or box that was reached with Tab keeps its own keys.
    if ((event.key === " " || event.key === "Enter") && event.target.closest?.("button, input[type=checkbox]")) return;
    if (event.target.matches?.("input[type=range]") && event.key.startsWith("Arrow")) return;
    if (event.key >= "1" && event.key <= "9") return toggleByNumber(Number(event.key));
    const action = actions[event.key] ?? actions[event.key.toLowerCase()];
    if (!action || (event.repeat && !event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    action();
  });

  document.addEventListener("keyup", (event) => {
    if (event.key.toLowerCase() === "h") page.update({ masksHidden: false });
  });
  window.addEventListener("blur", () => page.update({ masksHidden: false }));

  // A button pressed with the mouse must not keep the focus: Space would press it again.
  document.addEventListener("click", (event) => {
    if (event.detail > 0) event.target.closest?.("button")?.blur();
  });
})();

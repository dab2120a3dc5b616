"use strict";
/**
 * MaskCanvas: a picture with its instance masks, to look at, hover, toggle and draw boxes on.
 *
 * It knows neither server nor page: `setImage` and `setInstances` say what to show, callbacks say what the person did.
 * All callbacks may be left out:
 *   onHover(id or null)       the instance under the pointer changed
 *   onToggle(id)              an instance was clicked
 *   onBox([x1, y1, x2, y2])   a box was drawn, in pixels of the original; it stays to be seen until the promise that
 *                             the callback returns is settled
 *   onViewChange({zoom, fitZoom, isFit, centerX, centerY})
 *   onPaint(sequence)         masks were painted; `setInstances` returns the sequence to wait for
 *   onProblem(sentence)       a mask or picture that cannot be shown
 */
(function (ns) {
  const SMALL_TARGET_PX = 14; // instances smaller than this on the screen can be hit beside their pixels
  const ROUNDING = 1e-9; // sliders step in binary fractions of 0.01
  const HELP = "Image with instance masks. Click toggles an instance, drag pans, the wheel zooms, 0 fits.";

  const COMPARED = [
    "id", "number", "counts", "height", "width", "score", "decision", "drawn", "color_index", "label",
  ];

  function sameInstances(a, b) {
    return a.length === b.length && a.every((instance, i) => COMPARED.every((field) => instance[field] === b[i][field]));
  }

  class MaskCanvas {
    constructor(element, callbacks = {}) {
      this.callbacks = callbacks;
      this.shapes = new ns.ShapeCache();
      this.threshold = 0;
      this.opacity = 0.42;
      this.isRejectedVisible = true;
      this.areMasksHidden = false;
      this.tool = "select";
      this.imageId = null;
      this.imageUrl = null;
      this.instances = [];
      this.items = [];
      this.variants = new Map();
      this.sequence = 0;
      this.hovered = null;
      this.highlighted = null;
      this.pointer = null;
      this.box = null;
      this.exemplars = [];
      this.stage = new ns.Stage(element, HELP, this);
      this.view = this.stage.view;
      this.root = this.stage.root;
      this.pictures = new ns.Picture(this.stage, (sentence) => this.tell("onProblem", sentence));
      this.gestures = new ns.Gestures(this.root, this.view, this);
      this.stage.start();
    }

    destroy() {
      this.gestures.destroy();
      this.pictures.stop();
      this.stage.destroy();
    }

    tell(callback, ...values) {
      return this.callbacks[callback] ? this.callbacks[callback](...values) : undefined;
    }

    // ---- What to show -------------------------------------------------------------------------------------------

    /**
     * Show `{id, url, width, height}` (size of the original in pixels), or nothing for null. The same id keeps zoom
     * and place; another one is fitted, and the masks of the last image vanish at once.
     */
    setImage(image) {
      const { id, url, width, height } = image || { id: null, url: null, width: 0, height: 0 };
      const isSame = id === this.imageId;
      if (!isSame) this.forgetInstances();
      const isSameSize = width === this.view.width && height === this.view.height;
      if (!isSame || !isSameSize) this.view.setImageSize(width, height);
      if (isSame && !isSameSize) this.stage.changed("place");
      if (url === null) this.pictures.clear();
      else if (!isSame || url !== this.imageUrl || this.pictures.problem) this.pictures.show(url, isSame);
      this.imageId = id;
      this.imageUrl = url;
    }

    forgetInstances() {
      this.instances = [];
      this.items = [];
      this.variants = new Map();
      this.highlighted = null;
      this.box = null;
      this.setHovered(null);
      this.stage.changed("masks");
    }

    /**
     * Show instances `{id, number, counts, height, width, xyxy, score, decision, drawn, color_index, label}`.
     * Returns the sequence number that `onPaint` reports when they are on the screen. Unchanged instances keep
     * theirs and are not painted again.
     */
    setInstances(instances) {
      if (sameInstances(instances, this.instances)) return this.sequence;
      this.instances = instances.map((instance) => ({ ...instance }));
      this.variants = ns.assignVariants(instances, this.variants);
      this.items = this.instances
        .map((instance) => this.makeItem(instance))
        .filter((item) => item.shape !== null)
        .sort((a, b) => b.shape.runs.area - a.shape.runs.area);
      this.shapes.trim(this.items.length);
      this.pictures.endHold();
      this.sequence += 1;
      this.stage.changed("masks");
      return this.sequence;
    }

    makeItem(instance) {
      const report = (sentence) => this.tell("onProblem", `${instance.label || "mask"} ${instance.number || ""}: ${sentence}`);
      const look = [instance.color_index, this.variants.get(instance.id)];
      const shape = this.shapes.get(instance, report);
      return { instance, shape, color: ns.instanceColor(...look), casing: ns.casingColor(...look) };
    }

    /** Hide pending predictions that score below `threshold`; no decision and no drawn instance is hidden. */
    setThreshold(threshold) {
      this.change("threshold", threshold, "masks");
    }

    /** How strongly masks are filled, 0 to 1; outlines stay. */
    setOpacity(opacity) {
      this.change("opacity", opacity, "masks");
    }

    setRejectedVisible(isVisible) {
      this.change("isRejectedVisible", isVisible, "masks");
    }

    /** Hide all masks, for as long as a key is held. */
    setMasksHidden(areHidden) {
      this.change("areMasksHidden", areHidden, "masks");
    }

    /** Light up an instance as if the pointer were on it; null ends it. */
    highlight(id) {
      this.change("highlighted", id, "top");
    }

    /** Boxes `{xyxy, positive}` in pixels of the original that show the model what to look for, or what not. */
    setExemplars(exemplars) {
      if (JSON.stringify(exemplars) === JSON.stringify(this.exemplars)) return;
      this.exemplars = exemplars.map((exemplar) => ({ ...exemplar }));
      this.stage.changed("top");
    }

    /** "select", or a tool that draws boxes: "box", "positive" or "negative". */
    setTool(tool) {
      this.change("tool", tool, "top");
      this.root.dataset.tool = tool;
    }

    /** Pages set everything at every turn; only what differs is painted. */
    change(field, value, layer) {
      if (this[field] === value) return;
      this[field] = value;
      this.stage.changed(layer);
    }

    /** "dark" or "light"; without it, the page's own class `dark` counts. */
    setTheme(theme) {
      this.root.dataset.theme = theme;
    }

    /** A few words and the thin moving line while something is going on; an empty text ends it. */
    setBusy(text) {
      this.pictures.setBusy(text);
    }

    /** Fetch a picture that will be shown next. */
    preload(url) {
      this.pictures.preload(url);
    }

    // ---- Where to look ------------------------------------------------------------------------------------------

    fit() {
      if (this.view.isReady) this.stage.glide(this.view.fitted(), true);
    }

    zoomBy(factor) {
      if (!this.view.isReady) return;
      this.view.easeZoom(factor, this.view.viewportWidth / 2, this.view.viewportHeight / 2);
      this.viewChanged();
    }

    /** Bring an instance to the middle: nearer when it is tiny, farther when it does not fit. */
    centerOn(id) {
      const item = this.itemOf(id);
      if (item === null || item.shape.runs.box === null || !this.view.isReady) return;
      const [x1, y1, x2, y2] = item.shape.runs.box;
      const filling = Math.min(this.view.viewportWidth / (x2 - x1), this.view.viewportHeight / (y2 - y1));
      const zoom = this.view.bounded(Math.min(0.85 * filling, Math.max(0.15 * filling, this.view.zoom)));
      this.stage.glide({ zoom, centerX: (x1 + x2) / 2, centerY: (y1 + y2) / 2 }, false);
    }

    // ---- What is there ------------------------------------------------------------------------------------------

    /** The ids of the instances that threshold and settings let through. */
    visibleInstances() {
      return this.visibleItems().map((item) => item.instance.id);
    }

    /** The smallest visible instance at a point in pixels of the original, or null. Tiny ones are caught nearby. */
    hitTest(x, y) {
      if (this.areMasksHidden) return null;
      const smallestFirst = this.visibleItems().reverse();
      const hit =
        smallestFirst.find(({ shape }) => ns.containsPoint(shape.runs, x, y)) ||
        smallestFirst.find(({ shape }) => this.isNearTiny(shape.runs.box, x, y));
      return hit ? hit.instance.id : null;
    }

    isNearTiny(box, x, y) {
      if (box === null) return false;
      const reach = SMALL_TARGET_PX / this.view.zoom / 2;
      const [halfWidth, halfHeight] = [(box[2] - box[0]) / 2, (box[3] - box[1]) / 2];
      if (Math.max(halfWidth, halfHeight) > reach) return false;
      return Math.abs(x - box[0] - halfWidth) <= reach && Math.abs(y - box[1] - halfHeight) <= reach;
    }

    itemOf(id) {
      return this.items.find((item) => item.instance.id === id) || null;
    }

    visibleItems() {
      return this.items.filter(({ instance }) => {
        if (instance.decision === "rejected") return this.isRejectedVisible;
        return instance.decision === "accepted" || instance.drawn || !(instance.score < this.threshold - ROUNDING);
      });
    }

    // ---- Asked by the stage -------------------------------------------------------------------------------------

    get picture() {
      return this.pictures.image;
    }

    get guide() {
      return this.isBoxTool() && !this.box ? this.pointer : null;
    }

    maskItems() {
      return this.areMasksHidden ? [] : this.visibleItems();
    }

    topItem() {
      return this.areMasksHidden ? null : this.itemOf(this.highlighted ?? this.hovered);
    }

    masksPainted() {
      this.tell("onPaint", this.sequence);
    }

    viewPainted() {
      const { zoom, fitZoom, isFit, centerX, centerY } = this.view;
      if (this.view.isReady) this.tell("onViewChange", { zoom, fitZoom, isFit, centerX, centerY });
    }

    /** What moved or changed may have brought another instance under a resting pointer. */
    underPointer() {
      const isFree = this.pointer !== null && this.tool === "select" && this.view.isReady && !this.gestures.isDragging;
      this.setHovered(isFree ? this.hitTest(...this.view.toImage(...this.pointer)) : null);
    }

    setHovered(id) {
      if (id === this.hovered) return;
      this.hovered = id;
      this.root.dataset.over = String(id !== null);
      this.stage.changed("top");
      this.tell("onHover", id);
    }

    // ---- Done by the person -------------------------------------------------------------------------------------

    isBoxTool() {
      return this.tool !== "select";
    }

    hover(x, y) {
      this.pointer = [x, y];
      this.underPointer();
      if (this.isBoxTool()) this.stage.changed("top");
    }

    leave() {
      this.pointer = null;
      this.underPointer();
      this.stage.changed("top");
    }

    click(x, y) {
      const id = this.hitTest(...this.view.toImage(x, y));
      if (id !== null) this.tell("onToggle", id);
    }

    /** Beside the instances a double click fits the picture; on one it is two clicks. */
    doubleClick(x, y) {
      if (this.hitTest(...this.view.toImage(x, y)) === null) this.fit();
    }

    viewChanged() {
      this.stage.changed("view");
    }

    boxChanged(xyxy) {
      this.box = xyxy && { xyxy, isWaiting: false };
      this.stage.changed("top");
    }

    boxDrawn(xyxy) {
      const box = { xyxy, isWaiting: true };
      this.box = box;
      this.stage.changed("top");
      Promise.resolve(this.tell("onBox", xyxy)).finally(() => this.box === box && this.boxChanged(null));
    }
  }

  Object.assign(ns, { MaskCanvas });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

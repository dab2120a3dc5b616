"use strict";
/**
 * Mouse, pen, touch and keys on the canvas, told to `actions` in CSS pixels of the viewport:
 * hover(x, y) and leave(), click(x, y), doubleClick(x, y), viewChanged(), fit(), and for the box tool isBoxTool(),
 * boxChanged(xyxy or null) while drawing and boxDrawn(xyxy) at the end, both in pixels of the original.
 */
(function (ns) {
  const DRAG_FROM_PX = 4;
  const WHEEL_STEP = 0.0021; // of the zoom's logarithm for one pixel of wheel
  const PINCH_STEP = 0.01; // the same for a trackpad's pinch, which comes as a small wheel with Ctrl
  const LINE_PX = 33;
  const MAX_WHEEL_PX = 240;

  class Gestures {
    constructor(root, view, actions) {
      this.root = root;
      this.view = view;
      this.actions = actions;
      this.pointers = new Map();
      this.drag = null;
      this.listening = new AbortController();
      this.listen(root, "pointerdown", this.pressed);
      this.listen(root, "pointermove", this.moved);
      this.listen(root, "pointerup", this.released);
      this.listen(root, "pointercancel", this.lost);
      this.listen(root, "pointerleave", this.left);
      this.listen(root, "wheel", this.wheeled, { passive: false });
      this.listen(root, "dblclick", this.doubleClicked);
      this.listen(root, "keydown", this.keyPressed);
      this.listen(window, "keydown", this.escapePressed, { capture: true });
    }

    listen(target, name, handler, options = {}) {
      target.addEventListener(name, handler.bind(this), { ...options, signal: this.listening.signal });
    }

    destroy() {
      this.listening.abort();
    }

    get isDragging() {
      return this.drag !== null && this.drag.hasMoved;
    }

    point(event) {
      const area = this.root.getBoundingClientRect();
      return [event.clientX - area.left - this.root.clientLeft, event.clientY - area.top - this.root.clientTop];
    }

    pressed(event) {
      if (event.button > 1 || !this.view.isReady) return;
      if (event.button === 1) event.preventDefault();
      this.root.focus({ preventScroll: true });
      this.root.setPointerCapture(event.pointerId);
      const [x, y] = this.point(event);
      this.pointers.set(event.pointerId, [x, y]);
      if (this.pointers.size === 1) this.startDrag(event, x, y);
      else this.startPinch();
    }

    startDrag(event, x, y) {
      const isBox = event.button === 0 && this.actions.isBoxTool();
      const corner = this.view.toImage(x, y);
      this.drag = { kind: isBox ? "box" : "pan", button: event.button, startX: x, startY: y, x, y, corner, hasMoved: false };
    }

    startPinch() {
      this.dropBox();
      this.drag = { kind: "pinch", hasMoved: true, ...this.pinch() };
    }

    /** The middle of two fingers and the distance between them. */
    pinch() {
      const [[x1, y1], [x2, y2]] = [...this.pointers.values()];
      return { x: (x1 + x2) / 2, y: (y1 + y2) / 2, distance: Math.max(1, Math.hypot(x2 - x1, y2 - y1)) };
    }

    moved(event) {
      const [x, y] = this.point(event);
      if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, [x, y]);
      if (this.drag === null) this.actions.hover(x, y);
      else if (this.drag.kind === "pinch") this.continuePinch();
      else this.continueDrag(x, y);
    }

    continuePinch() {
      if (this.pointers.size < 2) return;
      const { x, y, distance } = this.pinch();
      this.view.panBy(x - this.drag.x, y - this.drag.y);
      this.view.zoomAt((this.view.zoom * distance) / this.drag.distance, x, y);
      Object.assign(this.drag, { x, y, distance });
      this.actions.viewChanged();
    }

    continueDrag(x, y) {
      const { drag } = this;
      if (!drag.hasMoved && Math.hypot(x - drag.startX, y - drag.startY) < DRAG_FROM_PX) return;
      drag.hasMoved = true;
      if (drag.kind === "box") {
        this.actions.boxChanged(this.boxTo(x, y));
      } else {
        this.root.dataset.dragging = "true";
        this.view.panBy(x - drag.x, y - drag.y);
        this.actions.viewChanged();
      }
      Object.assign(drag, { x, y });
    }

    /** The box from the drag's first corner to a screen point, ordered and clipped to the picture. */
    boxTo(screenX, screenY) {
      const [x, y] = this.view.toImage(screenX, screenY);
      const [x0, y0] = this.drag.corner;
      const across = [x0, x].sort((a, b) => a - b).map((value) => Math.min(this.view.width, Math.max(0, value)));
      const down = [y0, y].sort((a, b) => a - b).map((value) => Math.min(this.view.height, Math.max(0, value)));
      return [across[0], down[0], across[1], down[1]];
    }

    released(event) {
      const { drag } = this;
      const [x, y] = this.point(event);
      this.pointers.delete(event.pointerId);
      if (drag === null) return;
      this.drag = null;
      delete this.root.dataset.dragging;
      if (drag.kind === "box") this.finishBox(drag, x, y);
      else if (drag.kind === "pan" && !drag.hasMoved && drag.button === 0) this.actions.click(x, y);
      else if (drag.kind === "pinch" && this.pointers.size === 1) this.continueWithOneFinger();
      if (this.drag === null) this.actions.hover(x, y);
    }

    continueWithOneFinger() {
      const [[x, y]] = [...this.pointers.values()];
      this.drag = { kind: "pan", button: 0, startX: x, startY: y, x, y, hasMoved: true };
    }

    /** A box of a few screen pixels, or less than one pixel of the picture, is a slip of the hand. */
    finishBox(drag, x, y) {
      this.drag = drag;
      const box = this.boxTo(x, y);
      this.drag = null;
      const shortest = Math.min(box[2] - box[0], box[3] - box[1]);
      if (!drag.hasMoved || shortest < 1 || shortest * this.view.zoom < DRAG_FROM_PX) this.actions.boxChanged(null);
      else this.actions.boxDrawn(box);
    }

    dropBox() {
      if (this.drag === null || this.drag.kind !== "box") return false;
      this.drag = null;
      this.actions.boxChanged(null);
      return true;
    }

    lost(event) {
      this.pointers.delete(event.pointerId);
      if (!this.dropBox()) this.drag = null;
      delete this.root.dataset.dragging;
    }

    left() {
      if (this.drag === null) this.actions.leave();
    }

    wheeled(event) {
      event.preventDefault();
      if (!this.view.isReady) return;
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : event.deltaY * LINE_PX;
      const bounded = Math.max(-MAX_WHEEL_PX, Math.min(MAX_WHEEL_PX, pixels));
      this.view.easeZoom(Math.exp(-bounded * (event.ctrlKey ? PINCH_STEP : WHEEL_STEP)), ...this.point(event));
      this.actions.viewChanged();
    }

    doubleClicked(event) {
      if (!this.actions.isBoxTool()) this.actions.doubleClick(...this.point(event));
    }

    keyPressed(event) {
      if (event.key !== "0" || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.actions.fit();
    }

    /** While a box is being drawn, Escape drops it and means nothing else. */
    escapePressed(event) {
      if (event.key !== "Escape" || !this.dropBox()) return;
      event.preventDefault();
      event.stopPropagation();
    }
  }

  Object.assign(ns, { Gestures });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

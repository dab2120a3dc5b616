"use strict";
/**
 * Three stacked layers, each painted only when it changed: the picture, the masks, and on top what follows the
 * pointer (the hovered instance, the box being drawn). Hovering among a hundred instances repaints one outline.
 */
(function (ns) {
  const LAYERS = ["picture", "masks", "top"];
  const DARK = "rgba(10, 12, 16, 0.62)";
  const LIGHT = "rgba(255, 255, 255, 0.95)";
  const HIGHLIGHT_FILL = 0.13;
  const MAGNIFIED_FROM = 3; // device pixels for one of the preview, from which its pixels are shown as squares

  /** How each decision looks: widths in CSS pixels, `fill` as a share of the opacity. */
  const STYLES = {
    pending: { fill: 1, casing: 3.2, line: 1.5, dash: [], alpha: 1 },
    accepted: { fill: 0.75, casing: 5.4, line: 3.2, dash: [], alpha: 1 },
    rejected: { fill: 0, casing: 2.6, line: 1.2, dash: [5, 4], alpha: 0.75 },
  };

  class Painter {
    constructor(root, view) {
      this.view = view;
      this.root = root;
      this.ratio = 1;
      this.hatch = null;
      this.masksShownAt = null;
      this.contexts = {};
      for (const layer of LAYERS) {
        const canvas = document.createElement("canvas");
        canvas.className = `pm-canvas-layer pm-canvas-${layer}`;
        canvas.setAttribute("aria-hidden", "true");
        root.append(canvas);
        this.contexts[layer] = canvas.getContext("2d");
      }
    }

    resize(width, height, ratio) {
      this.ratio = ratio;
      this.hatch = null;
      this.family = getComputedStyle(this.root).fontFamily || "sans-serif";
      for (const layer of LAYERS) {
        const { canvas } = this.contexts[layer];
        canvas.width = Math.max(1, Math.round(width * ratio));
        canvas.height = Math.max(1, Math.round(height * ratio));
        canvas.style.width = `${canvas.width / ratio}px`;
        canvas.style.height = `${canvas.height / ratio}px`;
      }
    }

    cleared(layer) {
      const context = this.contexts[layer];
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, context.canvas.width, context.canvas.height);
      context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      return context;
    }

    /** Paint the picture, or an empty frame of its size while there is none yet. */
    paintPicture(picture, isMoving) {
      const context = this.cleared("picture");
      if (!this.view.isReady) return;
      const [left, top] = this.view.toScreen(0, 0);
      const width = this.view.width * this.view.zoom;
      const height = this.view.height * this.view.zoom;
      if (picture === null) {
        context.fillStyle = "rgba(128, 134, 144, 0.16)";
        context.fillRect(left, top, width, height);
        return;
      }
      context.imageSmoothingEnabled = (width * this.ratio) / picture.naturalWidth < MAGNIFIED_FROM;
      context.imageSmoothingQuality = isMoving ? "low" : "high";
      context.drawImage(picture, left, top, width, height);
    }

    /** Paint all instances: `items` hold the instance, its shape and its colours, the largest first. */
    paintMasks(items, { opacity, isMoving }) {
      const context = this.cleared("masks");
      const visible = items.filter((item) => this.isInViewport(item.shape));
      for (const item of visible) this.paintInstance(context, item, opacity, isMoving);
      this.paintTags(context, visible);
      this.masksShownAt = { zoom: this.view.zoom, centerX: this.view.centerX, centerY: this.view.centerY };
      context.canvas.style.transform = "";
    }

    /** Move the masks as they were last painted to where the view is now: cheap, for the middle of a movement. */
    slideMasks() {
      const { view, masksShownAt: shown } = this;
      if (shown === null) return;
      const scale = view.zoom / shown.zoom;
      const x = (view.viewportWidth / 2) * (1 - scale) + (shown.centerX - view.centerX) * view.zoom;
      const y = (view.viewportHeight / 2) * (1 - scale) + (shown.centerY - view.centerY) * view.zoom;
      this.contexts.masks.canvas.style.transform = `matrix(${scale}, 0, 0, ${scale}, ${x}, ${y})`;
    }

    isInViewport(shape) {
      if (shape === null || shape.runs.box === null) return false;
      const [x1, y1] = this.view.toScreen(shape.runs.box[0], shape.runs.box[1]);
      const [x2, y2] = this.view.toScreen(shape.runs.box[2], shape.runs.box[3]);
      return x2 > 0 && y2 > 0 && x1 < this.view.viewportWidth && y1 < this.view.viewportHeight;
    }

    outlineOf(shape, rough) {
      return shape.outline(this.view.zoom * this.ratio, rough);
    }

    /** Let the context draw in pixels of the original; lengths of one CSS pixel are 1 / zoom there. */
    inImage(context, draw) {
      const { zoom, centerX, centerY, viewportWidth, viewportHeight } = this.view;
      const scale = zoom * this.ratio;
      context.save();
      context.setTransform(
        scale, 0, 0, scale,
        (viewportWidth / 2 - centerX * zoom) * this.ratio, (viewportHeight / 2 - centerY * zoom) * this.ratio,
      );
      context.lineJoin = "miter"; // round joins take most of the time of outlines with many corners
      context.miterLimit = 2;
      draw(1 / zoom);
      context.restore();
    }

    paintInstance(context, { instance, shape, color, casing }, opacity, isMoving) {
      const path = this.outlineOf(shape, isMoving);
      if (path === null) return;
      const style = STYLES[instance.decision];
      this.inImage(context, (pixel) => {
        this.fillPath(context, path, color, style.fill * opacity);
        if (instance.decision === "rejected") this.hatchPath(context, path);
        context.globalAlpha = style.alpha;
        this.strokePath(context, path, casing, style.casing * pixel, []);
        this.strokePath(context, path, color, style.line * pixel, style.dash.map((length) => length * pixel));
      });
    }

    fillPath(context, path, color, alpha) {
      if (alpha <= 0) return;
      context.globalAlpha = alpha;
      context.fillStyle = color;
      context.fill(path, "evenodd");
    }

    strokePath(context, path, color, width, dash) {
      context.strokeStyle = color;
      context.lineWidth = width;
      context.setLineDash(dash);
      context.stroke(path);
    }

    hatchPath(context, path) {
      this.hatch = this.hatch || makeHatch(context, this.ratio);
      const scale = 1 / (this.view.zoom * this.ratio);
      this.hatch.setTransform(new DOMMatrix([scale, 0, 0, scale, 0, 0]));
      context.globalAlpha = 0.5;
      context.fillStyle = this.hatch;
      context.fill(path, "evenodd");
    }

    paintTags(context, items) {
      const viewport = { width: this.view.viewportWidth, height: this.view.viewportHeight };
      const taken = [];
      for (const { instance, shape, color } of items) {
        const layout = ns.layoutTag(context, this.family, instance, false);
        if (layout.parts.length === 0) continue;
        const [x, y] = this.view.toScreen(...shape.anchor);
        const place = ns.placeTag(x, y, layout.width, viewport, taken);
        ns.drawTag(context, this.family, layout, place, color, instance.decision === "rejected");
      }
    }

    /**
     * Paint what follows the pointer: the highlighted item (or null) and the box in pixels of the original (or null);
     * and the exemplar boxes.
     */
    paintTop(item, box, guide, exemplars) {
      const context = this.cleared("top");
      if (!this.view.isReady) return;
      for (const exemplar of exemplars) this.paintExemplar(context, exemplar);
      if (item !== null && item.shape !== null) this.paintHighlight(context, item);
      if (guide !== null) this.paintGuide(context, guide);
      if (box !== null) this.paintBox(context, box);
    }

    paintHighlight(context, { instance, shape, color }) {
      const path = this.outlineOf(shape, true);
      if (path === null) return;
      this.inImage(context, (pixel) => {
        this.fillPath(context, path, LIGHT, HIGHLIGHT_FILL);
        context.globalAlpha = 1;
        this.strokePath(context, path, DARK, 7 * pixel, []);
        this.strokePath(context, path, LIGHT, 4.6 * pixel, []);
        this.strokePath(context, path, color, 2 * pixel, []);
      });
      const layout = ns.layoutTag(context, this.family, instance, true);
      const viewport = { width: this.view.viewportWidth, height: this.view.viewportHeight };
      const place = ns.placeTag(...this.view.toScreen(...shape.anchor), layout.width, viewport, []);
      ns.drawTag(context, this.family, layout, place, color, false);
    }

    /** Two thin lines through the pointer, so that a box can start exactly at a thing's edge. */
    paintGuide(context, [x, y]) {
      const { viewportWidth: width, viewportHeight: height } = this.view;
      for (const [color, shift] of [[DARK, 1], [LIGHT, 0]]) {
        context.fillStyle = color;
        context.globalAlpha = 0.55;
        context.fillRect(0, Math.round(y) + shift, width, 1);
        context.fillRect(Math.round(x) + shift, 0, 1, height);
      }
      context.globalAlpha = 1;
    }

    /** A sign in the corner tells the two kinds apart, not the colour alone. */
    paintExemplar(context, { xyxy, positive }) {
      this.paintBox(context, { xyxy, isWaiting: !positive });
      const [x, y] = this.view.toScreen(xyxy[0], xyxy[1]);
      context.fillStyle = positive ? "#0b7a55" : "#b3261e";
      context.fillRect(Math.round(x), Math.round(y), 18, 18);
      context.fillStyle = LIGHT;
      context.fillRect(Math.round(x) + 4, Math.round(y) + 8, 10, 2);
      if (positive) context.fillRect(Math.round(x) + 8, Math.round(y) + 4, 2, 10);
    }

    paintBox(context, { xyxy, isWaiting }) {
      const [x1, y1] = this.view.toScreen(xyxy[0], xyxy[1]);
      const [x2, y2] = this.view.toScreen(xyxy[2], xyxy[3]);
      const outline = new Path2D();
      outline.rect(Math.round(x1) + 0.5, Math.round(y1) + 0.5, Math.round(x2 - x1), Math.round(y2 - y1));
      this.fillPath(context, outline, "#ffffff", 0.08);
      context.globalAlpha = 1;
      this.strokePath(context, outline, DARK, 3.4, []);
      this.strokePath(context, outline, LIGHT, 1.4, isWaiting ? [6, 4] : []);
      context.setLineDash([]);
    }
  }

  /** Diagonal lines, dark beside light, that show on any picture. */
  function makeHatch(context, ratio) {
    const size = Math.round(9 * ratio);
    const tile = document.createElement("canvas");
    tile.width = size;
    tile.height = size;
    const pen = tile.getContext("2d");
    for (const [color, shift] of [["rgba(10, 12, 16, 0.7)", 1.4 * ratio], ["rgba(255, 255, 255, 0.95)", 0]]) {
      pen.strokeStyle = color;
      pen.lineWidth = 1.2 * ratio;
      pen.beginPath();
      for (const start of [-size, 0, size]) {
        pen.moveTo(start + shift - size, size * 2);
        pen.lineTo(start + shift + size * 2, -size);
      }
      pen.stroke();
    }
    return context.createPattern(tile, "repeat");
  }

  Object.assign(ns, { Painter });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

"use strict";
/** Number tags and badges: small pills that read on any photograph. Sizes are CSS pixels. */
(function (ns) {
  const HEIGHT = 17;
  const PADDING = 5;
  const GAP = 5;
  const MARK = 9;
  const MAX_LABEL = 160;
  const BACKGROUND = "rgba(17, 19, 24, 0.93)";
  const EDGE = "rgba(255, 255, 255, 0.35)";

  /** The parts of a tag from left to right; `detailed` adds label and score. */
  function tagParts(instance, detailed) {
    const parts = [];
    if (instance.number >= 1 && (detailed || instance.number <= 9)) {
      parts.push({ text: String(instance.number), weight: 700, color: "#ffffff" });
    }
    if (instance.decision !== "pending") parts.push({ mark: instance.decision });
    if (detailed) {
      if (instance.label) parts.push({ text: instance.label, weight: 500, color: "#ffffff" });
      const isScored = Number.isFinite(instance.score) && !instance.drawn;
      parts.push({ text: isScored ? instance.score.toFixed(2) : "drawn", weight: 400, color: "#c9d1dc" });
    }
    return parts;
  }

  function fontOf(weight, family) {
    return `${weight} 11px ${family}`;
  }

  /** `text` cut with an ellipsis to at most `limit` pixels in the context's font. */
  function shortened(context, text, limit) {
    if (context.measureText(text).width <= limit) return text;
    const letters = Array.from(text.slice(0, 200));
    while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > limit) letters.pop();
    return `${letters.join("")}…`;
  }

  /** Measure a tag: its parts with widths, and its own width. */
  function layoutTag(context, family, instance, detailed) {
    const parts = tagParts(instance, detailed).map((part) => {
      if (part.mark) return { ...part, width: MARK };
      context.font = fontOf(part.weight, family);
      const text = shortened(context, part.text, MAX_LABEL);
      return { ...part, text, width: context.measureText(text).width };
    });
    const inner = parts.reduce((sum, part) => sum + part.width, 0) + GAP * Math.max(0, parts.length - 1);
    return { parts, width: Math.max(HEIGHT, inner + 2 * PADDING), inner };
  }

  /**
   * A place for a tag of `width` near the screen point (x, y) inside the viewport: above the point, or beside or
   * below it where another tag of `taken` stands. The place is added to `taken`.
   */
  function placeTag(x, y, width, viewport, taken) {
    const steps = [[0, 0], [0, HEIGHT + 7], [width, 0], [-width, 0], [0, -HEIGHT - 2], [width, HEIGHT], [-width, HEIGHT]];
    let first = null;
    for (const [dx, dy] of steps) {
      const left = Math.min(viewport.width - width - 2, Math.max(2, x - width / 2 + dx));
      const top = Math.min(viewport.height - HEIGHT - 2, Math.max(2, y - HEIGHT - 3 + dy));
      const place = { left: Math.round(left), top: Math.round(top), width };
      first = first || place;
      if (taken.some((other) => overlaps(other, place))) continue;
      taken.push(place);
      return place;
    }
    taken.push(first);
    return first;
  }

  function overlaps(a, b) {
    return a.left < b.left + b.width && b.left < a.left + a.width && Math.abs(a.top - b.top) < HEIGHT;
  }

  function drawTag(context, family, layout, place, color, faint) {
    context.save();
    context.globalAlpha = faint ? 0.72 : 1;
    context.beginPath();
    context.roundRect(place.left, place.top, layout.width, HEIGHT, 5);
    context.fillStyle = BACKGROUND;
    context.fill();
    context.lineWidth = 1;
    context.strokeStyle = EDGE;
    context.stroke();
    context.beginPath();
    context.roundRect(place.left + 3, place.top + HEIGHT - 3, layout.width - 6, 2, 1);
    context.fillStyle = color;
    context.fill();
    drawParts(context, family, layout, place);
    context.restore();
  }

  function drawParts(context, family, layout, place) {
    let x = place.left + (layout.width - layout.inner) / 2;
    const middle = place.top + HEIGHT / 2 - 0.5;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const part of layout.parts) {
      if (part.mark) {
        drawMark(context, part.mark, x, middle - MARK / 2);
      } else {
        context.font = fontOf(part.weight, family);
        context.fillStyle = part.color;
        context.fillText(part.text, x, middle);
      }
      x += part.width + GAP;
    }
  }

  /** A check for accepted, a cross for rejected, in a square of MARK pixels. */
  function drawMark(context, decision, left, top) {
    context.beginPath();
    if (decision === "accepted") {
      context.moveTo(left + 0.5, top + 5);
      context.lineTo(left + 3.5, top + 8);
      context.lineTo(left + 8.5, top + 1.5);
      context.strokeStyle = "#7ef0a8";
    } else {
      context.moveTo(left + 1.5, top + 1.5);
      context.lineTo(left + 7.5, top + 7.5);
      context.moveTo(left + 7.5, top + 1.5);
      context.lineTo(left + 1.5, top + 7.5);
      context.strokeStyle = "#ffb3a8";
    }
    context.lineWidth = 1.8;
    context.lineCap = "round";
    context.lineJoin = "round";
    context.stroke();
  }

  Object.assign(ns, { tagParts, layoutTag, placeTag, drawTag });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

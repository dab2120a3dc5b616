"use strict";
/**
 * Colours of categories and instances. A category keeps its hue on every image; neighbours of one hue differ in
 * lightness. The eight hues stay apart for protan, deutan and tritan eyes (OKLab distance of at least 0.12 for each
 * pair under each simulated deficiency).
 */
(function (ns) {
  const HUES = ["#5be3e0", "#f0ae00", "#9b2bfa", "#d9f57c", "#b53b00", "#3d68a4", "#2ca07b", "#b08ce6"];
  // Positive: share of white mixed in; negative: share of black.
  const VARIANTS = [0, 0.5, -0.4, 0.26, -0.2];
  const NEIGHBOUR_SHARE = 0.02; // of the longer side: boxes closer than this are neighbours

  function channels(hex) {
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  }

  function mixed(rgb, amount) {
    const towards = amount < 0 ? 0 : 255;
    return rgb.map((value) => Math.round(value + (towards - value) * Math.abs(amount)));
  }

  function cssColor(rgb) {
    return `rgb(${rgb.join(", ")})`;
  }

  /** The colour of a category, the same on the canvas and in the lists; indices beyond the hues get other shades. */
  function categoryColor(index) {
    return instanceColor(index, 0);
  }

  /** A category's colour in the lightness `variant` that sets one instance apart from its neighbours. */
  function instanceColor(index, variant) {
    return cssColor(instanceChannels(index, variant));
  }

  function instanceChannels(index, variant) {
    const round = Math.floor(index / HUES.length) + variant;
    return mixed(channels(HUES[hueSlot(index)]), VARIANTS[round % VARIANTS.length]);
  }

  /** What stands on both sides of an outline, so that it shows on dark and on light: dark for a light colour. */
  function casingColor(index, variant) {
    const [red, green, blue] = instanceChannels(index, variant);
    const isLight = 0.3 * red + 0.6 * green + 0.1 * blue > 120;
    return isLight ? "rgba(10, 12, 16, 0.62)" : "rgba(255, 255, 255, 0.72)";
  }

  function hueSlot(index) {
    return ((index % HUES.length) + HUES.length) % HUES.length;
  }

  function areNeighbours(a, b, gap) {
    return a[0] - gap < b[2] && b[0] - gap < a[2] && a[1] - gap < b[3] && b[1] - gap < a[3];
  }

  /**
   * A lightness variant for each instance, so that neighbours of one hue differ: id → variant. An instance keeps the
   * variant it had in `previous` unless a neighbour took it.
   */
  function assignVariants(instances, previous = new Map()) {
    const variants = new Map();
    for (const instance of instances) {
      const gap = NEIGHBOUR_SHARE * Math.max(instance.width, instance.height);
      const uses = new Array(VARIANTS.length).fill(0);
      for (const other of instances) {
        if (!variants.has(other.id) || hueSlot(other.color_index) !== hueSlot(instance.color_index)) continue;
        if (areNeighbours(instance.xyxy, other.xyxy, gap)) uses[variants.get(other.id)] += 1;
      }
      const kept = previous.get(instance.id);
      const free = kept !== undefined && uses[kept] === 0 ? kept : uses.indexOf(Math.min(...uses));
      variants.set(instance.id, free);
    }
    return variants;
  }

  Object.assign(ns, { HUES, categoryColor, instanceColor, casingColor, assignVariants });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

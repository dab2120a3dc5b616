"use strict";
/**
 * What is drawn of a mask, made once and kept by its run-length string: a changed decision, a repeated phrase or a
 * moved slider reads nothing again. Outlines are made at the resolution that the screen shows, one level for each
 * power of two.
 */
(function (ns) {
  const MAX_SHAPES = 600;
  const MAX_LEVELS = 3;
  const MAX_CELLS = 2_000_000; // of one mask's sample
  const MIN_CELLS_ACROSS = 48; // small and thin masks are sampled finer, so that they do not break up
  const EXACT_FROM = 4; // device pixels for one of the original, from which every pixel edge is drawn

  class Shape {
    constructor(counts, height, width) {
      this.runs = ns.readRuns(counts, height, width);
      this.levels = new Map();
      this.anchorPoint = null;
    }

    /** The middle of the mask's topmost row [x, y] in pixels of the original, where its number tag hangs. */
    get anchor() {
      this.anchorPoint = this.anchorPoint || topOfRuns(this.runs);
      return this.anchorPoint;
    }

    /**
     * The outline in pixels of the original for a view of `scale` device pixels for each of the original, or null
     * when no pixel of it is seen. `rough` takes what is already there.
     */
    outline(scale, rough) {
      const level = this.runs.box ? levelFor(this.runs, scale) : null;
      if (level === null) return null;
      if (this.levels.has(level.key)) return this.levels.get(level.key);
      if (rough && this.levels.size) return [...this.levels.values()].pop();
      const path = this.makeOutline(level, scale);
      this.levels.set(level.key, path);
      if (this.levels.size > MAX_LEVELS) this.levels.delete(this.levels.keys().next().value);
      return path;
    }

    makeOutline({ gridHeight, gridWidth, share, exact }, scale) {
      const sample = ns.sampleRuns(this.runs, gridHeight, gridWidth);
      if (sample === null) return null;
      const tolerance = exact ? 0 : Math.min(2, Math.max(0.6, (0.7 * share) / scale));
      return ns.outlinePath(sample, this.runs, gridHeight, gridWidth, tolerance);
    }
  }

  /** The grid on which a mask is sampled for a view: `share` cells for each pixel of the original, at most 1. */
  function levelFor(runs, scale) {
    const [x1, y1, x2, y2] = runs.box;
    const across = Math.min(x2 - x1, y2 - y1);
    const wanted = Math.max(2 ** Math.ceil(Math.log2(scale)), powerBelow(MIN_CELLS_ACROSS / across) * 2);
    const bound = powerBelow(Math.sqrt(MAX_CELLS / ((x2 - x1) * (y2 - y1))));
    const share = Math.min(1, wanted, bound);
    const exact = share === 1 && scale >= EXACT_FROM;
    const gridHeight = Math.max(1, Math.round(runs.height * share));
    const gridWidth = Math.max(1, Math.round(runs.width * share));
    return { gridHeight, gridWidth, share, exact, key: exact ? "exact" : share };
  }

  function powerBelow(value) {
    return 2 ** Math.floor(Math.log2(value));
  }

  function topOfRuns({ ends, height, box }) {
    const columns = [];
    for (let i = 1; i < ends.length; i += 2) {
      const start = ends[i - 1];
      if (ends[i] === start) continue;
      const column = Math.floor(start / height);
      if (start - column * height === box[1]) columns.push(column);
      if (box[1] > 0) continue;
      for (let next = column + 1; next * height < ends[i]; next += 1) columns.push(next);
    }
    return [columns[columns.length >> 1] + 0.5, box[1]];
  }

  /** Shapes by run-length string, the least recently used dropped first. */
  class ShapeCache {
    constructor() {
      this.shapes = new Map();
      this.decoded = 0;
    }

    /** The shape of an instance; null when its runs are damaged (the first time, `onDamaged` is told why). */
    get(instance, onDamaged) {
      const key = `${instance.height} ${instance.width} ${instance.counts}`;
      let shape = this.shapes.get(key);
      if (shape === undefined) shape = this.read(instance, onDamaged);
      else this.shapes.delete(key);
      this.shapes.set(key, shape);
      return shape;
    }

    /** Drop what was not asked for lately. */
    trim(inUse) {
      const limit = Math.max(MAX_SHAPES, 2 * inUse);
      for (const key of this.shapes.keys()) {
        if (this.shapes.size <= limit) return;
        this.shapes.delete(key);
      }
    }

    read(instance, onDamaged) {
      this.decoded += 1;
      try {
        return new Shape(instance.counts, instance.height, instance.width);
      } catch (error) {
        onDamaged(error.message);
        return null;
      }
    }
  }

  Object.assign(ns, { Shape, ShapeCache });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

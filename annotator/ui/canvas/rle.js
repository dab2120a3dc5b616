"use strict";
/**
 * COCO run-length masks in the browser: read, measured, hit-tested and sampled without ever being laid out at full size.
 *
 * Runs are column-major: pixel (x, y) of an image of `height` rows has the index x * height + y. A picture has
 * 12 million of them, a mask some thousand runs; so everything here walks runs, and only `sampleRuns` makes pixels,
 * as few as the screen shows.
 */
(function (ns) {
  const DAMAGED = "This mask's run lengths are damaged; predict or import it again.";

  /** Read COCO's compressed counts into the run lengths, off first. Throws RangeError for a damaged string. */
  function readCounts(counts) {
    const lengths = new Int32Array(counts.length);
    let n = 0;
    let value = 0;
    let shift = 0;
    for (let i = 0; i < counts.length; i += 1) {
      const code = counts.charCodeAt(i) - 48;
      if (code < 0 || code > 63 || shift > 25) throw new RangeError(DAMAGED);
      value |= (code & 31) << shift;
      shift += 5;
      if (code & 32) continue;
      if (code & 16) value |= -1 << shift;
      lengths[n] = n > 2 ? value + lengths[n - 2] : value;
      if (lengths[n] < 0) throw new RangeError(DAMAGED);
      n += 1;
      value = 0;
      shift = 0;
    }
    if (shift) throw new RangeError(DAMAGED);
    return lengths.subarray(0, n);
  }

  /**
   * The runs of a mask: `ends[i]` is the index after run i (odd runs belong to the mask), `area` its pixels and
   * `box` its tight [x1, y1, x2, y2], x2 and y2 exclusive, or null for an empty mask.
   */
  function readRuns(counts, height, width) {
    const lengths = readCounts(counts);
    const ends = new Uint32Array(lengths.length);
    let end = 0;
    let area = 0;
    for (let i = 0; i < lengths.length; i += 1) {
      end += lengths[i];
      ends[i] = end;
      if (i & 1) area += lengths[i];
    }
    if (end !== height * width) {
      throw new RangeError(`This mask's runs do not add up to ${height} × ${width} pixels; predict or import it again.`);
    }
    return { height, width, ends, area, box: area ? boxOfRuns(ends, height) : null };
  }

  function boxOfRuns(ends, height) {
    let top = height;
    let bottom = 0;
    let left = -1;
    let right = 0;
    for (let i = 1; i < ends.length; i += 2) {
      const start = ends[i - 1];
      const last = ends[i] - 1;
      if (last < start) continue;
      const firstColumn = Math.floor(start / height);
      const lastColumn = Math.floor(last / height);
      if (left < 0) left = firstColumn;
      right = lastColumn + 1;
      if (firstColumn === lastColumn) {
        top = Math.min(top, start - firstColumn * height);
        bottom = Math.max(bottom, last - lastColumn * height + 1);
      } else {
        top = 0;
        bottom = height;
      }
    }
    return [left, top, right, bottom];
  }

  /** Whether the pixel that holds the point (x, y), in pixels of the original, belongs to the mask. */
  function containsPoint(runs, x, y) {
    const column = Math.floor(x);
    const row = Math.floor(y);
    if (column < 0 || row < 0 || column >= runs.width || row >= runs.height) return false;
    const index = column * runs.height + row;
    let low = 0;
    let high = runs.ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (runs.ends[middle] > index) high = middle;
      else low = middle + 1;
    }
    return (low & 1) === 1;
  }

  /** The smallest grid index whose cell centre lies at or after `edge` of the original. */
  function firstCell(edge, size, gridSize) {
    return Math.max(0, Math.ceil((2 * edge * gridSize - size) / (2 * size)));
  }

  /**
   * Sample a mask on a grid of `gridHeight` × `gridWidth` cells over the whole original, at the cells' centres.
   *
   * The answer is cropped to the mask: `pixels` is column-major with a border of one empty cell around
   * `columns` × `rows` cells, whose first cell is (`left`, `top`) of the grid. `tops` lists the indices in `pixels`
   * that lie in the mask while the cell above does not. An empty mask gives null.
   */
  function sampleRuns(runs, gridHeight, gridWidth) {
    if (!runs.box) return null;
    const { height, width, ends, box } = runs;
    const left = firstCell(box[0], width, gridWidth);
    const top = firstCell(box[1], height, gridHeight);
    const columns = firstCell(box[2], width, gridWidth) - left;
    const rows = firstCell(box[3], height, gridHeight) - top;
    if (columns <= 0 || rows <= 0) return null;
    const stride = rows + 2;
    const pixels = new Uint8Array((columns + 2) * stride);
    const tops = [];
    let run = 1;
    for (let column = 0; column < columns; column += 1) {
      const source = Math.floor(((2 * (left + column) + 1) * width) / (2 * gridWidth)) * height;
      const sourceEnd = source + height;
      const offset = (column + 1) * stride + 1 - top;
      while (run < ends.length && ends[run] <= source) run += 2;
      let filled = -1;
      for (let i = run; i < ends.length && ends[i - 1] < sourceEnd; i += 2) {
        const from = offset + firstCell(Math.max(ends[i - 1], source) - source, height, gridHeight);
        const to = offset + firstCell(Math.min(ends[i], sourceEnd) - source, height, gridHeight);
        if (to <= from) continue;
        pixels.fill(1, from, to);
        if (from !== filled) tops.push(from);
        filled = to;
      }
    }
    return { left, top, columns, rows, stride, pixels, tops };
  }

  Object.assign(ns, { readCounts, readRuns, containsPoint, sampleRuns });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

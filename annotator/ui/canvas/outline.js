"use strict";
/**
 * Outlines of sampled masks: rings along the pixel edges, exact for a magnified view and smoothed for a reduced one.
 * Outer rings and holes come alike; fill them with the even-odd rule.
 */
(function (ns) {
  const INSIDE = 1;
  const TRACED = 2;
  const LONGEST_LINE = 256 ** 2; // squared cells; keeps the error of a long cone small

  /**
   * Walk one ring with the mask on the right hand, from the left end of the top edge of the cell at `start`.
   * Appends the grid corners where the ring turns to `ring` as x, y pairs.
   */
  function walkRing(sample, start, ring) {
    const { pixels, stride } = sample;
    // Directions 0 right, 1 down, 2 left, 3 up. `cell` is the mask cell to the right of the walker.
    const ahead = [stride, 1, -stride, -1];
    const leftOf = [-1, stride, 1, -stride];
    let cell = start;
    let direction = 0;
    do {
      if (direction === 0) pixels[cell] |= TRACED;
      const next = cell + ahead[direction];
      const diagonal = next + leftOf[direction];
      if ((pixels[next] & INSIDE) === 0) {
        appendCorner(ring, cell, direction, stride);
        direction = (direction + 1) & 3;
      } else if (pixels[diagonal] & INSIDE) {
        appendCorner(ring, cell, direction, stride);
        cell = diagonal;
        direction = (direction + 3) & 3;
      } else {
        cell = next;
      }
    } while (cell !== start || direction !== 0);
  }

  /** The corner at the far end of the edge walked along `cell`, in grid units of the sample's crop. */
  function appendCorner(ring, cell, direction, stride) {
    const column = Math.floor(cell / stride) - 1;
    const row = cell % stride - 1;
    ring.push(column + (direction === 0 || direction === 1 ? 1 : 0), row + (direction === 1 || direction === 2 ? 1 : 0));
  }

  /** All rings of a sample, each a flat list of corners x, y in grid units of its crop. Marks `sample.pixels`. */
  function traceRings(sample) {
    const rings = [];
    for (const start of sample.tops) {
      if (sample.pixels[start] & TRACED) continue;
      const ring = [];
      walkRing(sample, start, ring);
      rings.push(ring);
    }
    return rings;
  }

  /**
   * A ring without its stairs: the middles of its unit edges, joined by the fewest lines that stay within
   * `tolerance` of them. Rings too short to have a shape of their own are kept exact.
   */
  function smoothRing(corners, tolerance) {
    const middles = edgeMiddles(corners);
    if (middles.length < 16) return corners;
    const kept = [middles[0], middles[1]];
    let anchor = 0;
    while (anchor < middles.length - 2) {
      anchor = lastInSight(middles, anchor, tolerance);
      kept.push(middles[anchor], middles[anchor + 1]);
    }
    return kept.length < 8 ? corners : kept;
  }

  /** The middles of a ring's unit edges; inside a straight stretch only its first and last. */
  function edgeMiddles(corners) {
    const middles = [];
    const n = corners.length;
    for (let i = 0; i < n; i += 2) {
      const x = corners[i];
      const y = corners[i + 1];
      const dx = corners[(i + 2) % n] - x;
      const dy = corners[(i + 3) % n] - y;
      const length = Math.abs(dx) + Math.abs(dy);
      const half = 0.5 / length;
      middles.push(x + dx * half, y + dy * half);
      if (length > 1) middles.push(x + dx * (1 - half), y + dy * (1 - half));
    }
    return middles;
  }

  /**
   * The farthest point that a straight line from `anchor` reaches while passing all points between within
   * `tolerance`: each point narrows the cone of directions that are still allowed.
   */
  function lastInSight(points, anchor, tolerance) {
    const x0 = points[anchor];
    const y0 = points[anchor + 1];
    let lowX = 0;
    let lowY = 0;
    let highX = 0;
    let highY = 0;
    let narrowed = false;
    let i = anchor + 2;
    for (; i < points.length; i += 2) {
      const dx = points[i] - x0;
      const dy = points[i + 1] - y0;
      if (narrowed && (lowX * dy - lowY * dx < 0 || dx * highY - dy * highX < 0)) break;
      const square = dx * dx + dy * dy;
      if (square > LONGEST_LINE) return i;
      if (square <= tolerance * tolerance) continue;
      const along = Math.sqrt(square - tolerance * tolerance);
      const nextLowX = dx * along + dy * tolerance;
      const nextLowY = dy * along - dx * tolerance;
      const nextHighX = dx * along - dy * tolerance;
      const nextHighY = dy * along + dx * tolerance;
      if (!narrowed || lowX * nextLowY - lowY * nextLowX > 0) [lowX, lowY] = [nextLowX, nextLowY];
      if (!narrowed || highX * nextHighY - highY * nextHighX < 0) [highX, highY] = [nextHighX, nextHighY];
      narrowed = true;
    }
    return i - 2 > anchor ? i - 2 : anchor + 2;
  }

  /**
   * The outline of a sample as a Path2D in pixels of the original, whose grid had `gridHeight` × `gridWidth` cells.
   * `tolerance` is in cells; 0 keeps every corner.
   */
  function outlinePath(sample, runs, gridHeight, gridWidth, tolerance) {
    const scaleX = runs.width / gridWidth;
    const scaleY = runs.height / gridHeight;
    const path = new Path2D();
    for (const ring of traceRings(sample)) {
      const points = tolerance > 0 ? smoothRing(ring, tolerance) : ring;
      path.moveTo((points[0] + sample.left) * scaleX, (points[1] + sample.top) * scaleY);
      for (let i = 2; i < points.length; i += 2) {
        path.lineTo((points[i] + sample.left) * scaleX, (points[i + 1] + sample.top) * scaleY);
      }
      path.closePath();
    }
    return path;
  }

  Object.assign(ns, { traceRings, smoothRing, outlinePath });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

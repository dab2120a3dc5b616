"use strict";
/**
 * Where the picture stands: `zoom` CSS pixels for each pixel of the original, and the point of the original in the
 * middle of the viewport. Screen points are CSS pixels from the viewport's top left corner.
 */
(function (ns) {
  const MARGIN_PX = 10;
  const MAX_ZOOM = 24;
  const EASE_MS = 55; // time constant of the smooth zoom
  const GLIDE_MS = 180;
  const SETTLED = 1e-3;

  class View {
    constructor() {
      this.viewportWidth = 0;
      this.viewportHeight = 0;
      this.width = 0;
      this.height = 0;
      this.zoom = 1;
      this.centerX = 0;
      this.centerY = 0;
      this.isFit = true;
      this.motion = null;
    }

    get isReady() {
      return this.width > 0 && this.height > 0 && this.viewportWidth > 0 && this.viewportHeight > 0;
    }

    get isMoving() {
      return this.motion !== null;
    }

    get fitZoom() {
      const acrossX = Math.max(1, this.viewportWidth - 2 * MARGIN_PX) / this.width;
      const acrossY = Math.max(1, this.viewportHeight - 2 * MARGIN_PX) / this.height;
      return Math.min(acrossX, acrossY);
    }

    setImageSize(width, height) {
      this.width = width;
      this.height = height;
      this.fitNow();
    }

    /** A fitted picture stays fitted; any other keeps its zoom and its middle. */
    setViewport(width, height) {
      this.viewportWidth = width;
      this.viewportHeight = height;
      if (this.isFit && this.isReady) this.fitNow();
    }

    fitNow() {
      this.motion = null;
      this.isFit = true;
      if (!this.isReady) return;
      Object.assign(this, this.fitted());
    }

    fitted() {
      return { zoom: this.fitZoom, centerX: this.width / 2, centerY: this.height / 2 };
    }

    toScreen(x, y) {
      return [
        (x - this.centerX) * this.zoom + this.viewportWidth / 2,
        (y - this.centerY) * this.zoom + this.viewportHeight / 2,
      ];
    }

    toImage(screenX, screenY) {
      return [
        (screenX - this.viewportWidth / 2) / this.zoom + this.centerX,
        (screenY - this.viewportHeight / 2) / this.zoom + this.centerY,
      ];
    }

    bounded(zoom) {
      return Math.min(Math.max(MAX_ZOOM, 4 * this.fitZoom), Math.max(0.5 * this.fitZoom, zoom));
    }

    panBy(deltaX, deltaY) {
      this.motion = null;
      this.isFit = false;
      this.setCenter(this.centerX - deltaX / this.zoom, this.centerY - deltaY / this.zoom);
    }

    setCenter(x, y) {
      this.centerX = Math.min(this.width, Math.max(0, x));
      this.centerY = Math.min(this.height, Math.max(0, y));
    }

    /** Change the zoom at once while the picture's point under the screen point stays there. */
    zoomAt(zoom, screenX, screenY) {
      const [x, y] = this.toImage(screenX, screenY);
      this.holdPoint(this.bounded(zoom), x, y, screenX, screenY);
      this.motion = null;
    }

    holdPoint(zoom, x, y, screenX, screenY) {
      this.isFit = false;
      this.zoom = zoom;
      this.setCenter(x - (screenX - this.viewportWidth / 2) / zoom, y - (screenY - this.viewportHeight / 2) / zoom);
    }

    /** Ease towards a zoom `factor` times the one already aimed at, around a screen point. */
    easeZoom(factor, screenX, screenY) {
      const aimed = this.motion && this.motion.kind === "zoom" ? this.motion.zoom : this.zoom;
      const [x, y] = this.toImage(screenX, screenY);
      this.motion = { kind: "zoom", zoom: this.bounded(aimed * factor), x, y, screenX, screenY, at: null };
    }

    glideTo(target, isFit) {
      const from = { zoom: this.zoom, centerX: this.centerX, centerY: this.centerY };
      this.motion = { kind: "glide", from, to: target, isFit, at: null, progress: 0 };
    }

    /** Advance a running motion to the time `now` in ms; true when something moved. */
    step(now) {
      const motion = this.motion;
      if (motion === null) return false;
      const elapsed = motion.at === null ? 16 : Math.min(64, now - motion.at);
      motion.at = now;
      if (motion.kind === "zoom") this.stepZoom(motion, elapsed);
      else this.stepGlide(motion, elapsed);
      return true;
    }

    stepZoom(motion, elapsed) {
      const left = Math.log(motion.zoom / this.zoom) * Math.exp(-elapsed / EASE_MS);
      const settled = Math.abs(left) < SETTLED;
      this.holdPoint(settled ? motion.zoom : motion.zoom / Math.exp(left), motion.x, motion.y, motion.screenX, motion.screenY);
      if (settled) this.motion = null;
    }

    stepGlide(motion, elapsed) {
      motion.progress = Math.min(1, motion.progress + elapsed / GLIDE_MS);
      const share = 1 - (1 - motion.progress) ** 3;
      const { from, to } = motion;
      this.zoom = from.zoom * (to.zoom / from.zoom) ** share;
      this.centerX = from.centerX + (to.centerX - from.centerX) * share;
      this.centerY = from.centerY + (to.centerY - from.centerY) * share;
      this.isFit = motion.isFit;
      if (motion.progress === 1) this.motion = null;
    }
  }

  Object.assign(ns, { View });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

"use strict";
/**
 * The preview on the stage: loading it, and what stands there meanwhile. An answer for a picture that is no longer
 * wanted is dropped.
 */
(function (ns) {
  const PRELOADED = 4;
  const HOLD_MS = 150; // how long the last picture may stand in for one that is still loading
  const NOT_LOADED = "The picture could not be loaded; check that the file is still there, then reload the page.";

  class Picture {
    constructor(stage, onProblem) {
      this.stage = stage;
      this.onProblem = onProblem;
      this.image = null;
      this.loading = null;
      this.problem = "";
      this.busyText = "";
      this.preloaded = new Map();
      this.holding = 0;
    }

    /**
     * Load and show `url`. Until it is there, the same picture stays in another quality (`isSame`); a different one
     * stays for a moment, so that stepping through images does not flicker, and then leaves an empty frame.
     */
    show(url, isSame) {
      this.stop();
      if (!isSame) this.image = null;
      if (!isSame) this.holding = setTimeout(() => this.endHold(), HOLD_MS);
      const image = this.preloaded.get(url) || imageOf(url);
      this.preloaded.delete(url);
      this.loading = image;
      this.report();
      if (image.complete && image.naturalWidth) this.loaded(image);
      else image.decode().then(() => this.loaded(image), () => this.failed(image));
    }

    clear() {
      this.stop();
      this.image = null;
      this.stage.changed("picture");
      this.report();
    }

    stop() {
      clearTimeout(this.holding);
      this.holding = 0;
      this.loading = null;
      this.problem = "";
    }

    loaded(image) {
      if (this.loading !== image) return;
      this.stop();
      this.image = image;
      this.stage.changed("place");
      this.report();
    }

    failed(image) {
      if (this.loading !== image) return;
      this.endHold();
      this.stop();
      this.problem = NOT_LOADED;
      this.report();
      this.onProblem(NOT_LOADED);
    }

    /** The last picture must go, since what is shown next does not belong to it. */
    endHold() {
      if (this.holding === 0) return;
      clearTimeout(this.holding);
      this.holding = 0;
      this.stage.changed("picture");
    }

    /** Fetch and decode a picture that will be asked for soon. */
    preload(url) {
      if (this.preloaded.has(url)) return;
      const image = imageOf(url);
      image.decode().catch(() => this.preloaded.delete(url));
      this.preloaded.set(url, image);
      if (this.preloaded.size > PRELOADED) this.preloaded.delete(this.preloaded.keys().next().value);
    }

    setBusy(text) {
      this.busyText = text;
      this.report();
    }

    report() {
      this.stage.showNotice(this.problem || this.busyText, this.loading !== null || this.busyText !== "");
    }
  }

  function imageOf(url) {
    const image = new Image();
    image.decoding = "async";
    image.src = url;
    return image;
  }

  Object.assign(ns, { Picture });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

"use strict";
/**
 * The place in the page: its element, its size, and when which layer is painted. Painting happens once a frame and
 * only for what changed. In the middle of a movement, masks that take long are slid instead of painted anew.
 *
 * `scene` is asked what to paint: picture, maskItems(), topItem(), box, guide, opacity; and told masksPainted() and
 * viewPainted().
 */
(function (ns) {
  const SETTLE_MS = 120;
  const SLOW_FRAME_MS = 27; // a movement below some 37 frames a second is felt
  const PAUSE_MS = 250; // frames farther apart than this do not belong to one movement

  class Stage {
    constructor(element, label, scene) {
      this.scene = scene;
      this.view = new ns.View();
      this.dirty = new Set();
      this.frameRequest = 0;
      this.settling = 0;
      this.paintedAt = 0;
      this.frameMs = 0;
      this.isSliding = false;
      this.root = makeRoot(label);
      this.painter = new ns.Painter(this.root, this.view);
      this.notice = makeNotice(this.root);
      element.append(this.root);
    }

    /** Begin to paint; the scene must be able to answer from now on. */
    start() {
      this.observer = new ResizeObserver(() => this.resize());
      this.observer.observe(this.root);
      this.watchRatio();
      this.resize();
    }

    destroy() {
      this.observer.disconnect();
      this.ratioQuery.onchange = null;
      clearTimeout(this.settling);
      cancelAnimationFrame(this.frameRequest);
      this.root.remove();
    }

    /** A window dragged to a denser screen changes no size, so the ratio is watched on its own. */
    watchRatio() {
      this.ratioQuery = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
      this.ratioQuery.onchange = () => {
        this.ratioQuery.onchange = null;
        this.watchRatio();
        this.resize();
      };
    }

    resize() {
      const { clientWidth: width, clientHeight: height } = this.root;
      if (width === 0 || height === 0) return;
      const { view } = this;
      if (width === view.viewportWidth && height === view.viewportHeight && devicePixelRatio === this.painter.ratio) return;
      view.setViewport(width, height);
      this.painter.resize(width, height, devicePixelRatio);
      this.changed("picture", "masks", "place");
      this.paint(performance.now()); // now, since resizing emptied the layers that are on the screen
    }

    /**
     * Say what must be painted anew: "picture", "masks", "top", or all of it after a movement ("view") or in another
     * place without one ("place").
     */
    changed(...parts) {
      for (const part of parts) this.dirty.add(part);
      if (this.frameRequest === 0) this.frameRequest = requestAnimationFrame((now) => this.paint(now));
    }

    /** Move the view to `target`, smoothly unless the person asked their system for less motion. */
    glide(target, isFit) {
      this.view.glideTo(target, isFit);
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.view.motion.progress = 1;
      this.changed("view");
    }

    paint(now) {
      cancelAnimationFrame(this.frameRequest);
      this.frameRequest = 0;
      const dirty = new Set(this.dirty);
      this.dirty.clear();
      if (this.view.step(now)) dirty.add("view");
      if (dirty.has("view")) this.keepMoving(now);
      this.paintedAt = now;
      if (dirty.has("view") || dirty.has("place")) ["picture", "moved"].forEach((part) => dirty.add(part));
      this.paintLayers(dirty, this.settling !== 0);
      if (dirty.has("moved")) this.scene.viewPainted();
      if (this.view.isMoving) this.changed("view");
    }

    paintLayers(dirty, isMoving) {
      const { painter, scene } = this;
      if (dirty.has("picture")) painter.paintPicture(scene.picture, isMoving);
      if (dirty.has("masks") || dirty.has("moved") || dirty.has("settled")) this.paintMasks(dirty, isMoving);
      if (dirty.has("masks") || dirty.has("moved")) scene.underPointer();
      if (dirty.size) painter.paintTop(scene.topItem(), scene.box, scene.guide, scene.exemplars);
    }

    paintMasks(dirty, isMoving) {
      const { painter, scene } = this;
      if (this.isSliding && !dirty.has("masks") && !dirty.has("settled")) {
        painter.slideMasks();
        return;
      }
      painter.paintMasks(scene.maskItems(), { opacity: scene.opacity, isMoving });
      if (dirty.has("masks")) scene.masksPainted();
    }

    /**
     * Follow the pace of a movement: browsers paint after this code has returned, so only the time between frames
     * tells what masks cost. After the last movement, all is painted once more in full quality.
     */
    keepMoving(now) {
      const gap = now - this.paintedAt;
      this.frameMs = gap < PAUSE_MS ? 0.6 * this.frameMs + 0.4 * gap : 0;
      if (this.frameMs > SLOW_FRAME_MS) this.isSliding = true;
      clearTimeout(this.settling);
      this.settling = setTimeout(() => {
        this.settling = 0;
        this.isSliding = false;
        this.changed("picture", "settled");
      }, SETTLE_MS);
    }

    /** `words` over the canvas, and the thin moving line while something is going on. */
    showNotice(words, isBusy) {
      this.notice.textContent = words;
      this.notice.hidden = !words;
      this.root.dataset.busy = String(isBusy);
    }
  }

  function makeRoot(label) {
    const root = document.createElement("div");
    root.className = "pm-canvas";
    root.tabIndex = 0;
    root.setAttribute("role", "application");
    root.setAttribute("aria-label", label);
    root.dataset.tool = "select";
    root.dataset.busy = "false";
    return root;
  }

  function makeNotice(root) {
    const notice = document.createElement("div");
    notice.className = "pm-canvas-notice";
    notice.setAttribute("role", "status");
    notice.hidden = true;
    root.append(notice);
    return notice;
  }

  Object.assign(ns, { Stage });
})((window.PhrasemaskCanvas = window.PhrasemaskCanvas || {}));

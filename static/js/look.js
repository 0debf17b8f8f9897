// Looking at a pair: windows, zoom, and the swipe. It only clicks buttons.
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);
  const pairs = byId("pairs");
  if (!pairs) return;
  const current = () => pairs.querySelector(":scope > .pair");

  // --- windows --------------------------------------------------------------------------------------

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener) open(opener.dataset.open);
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
    const picture = event.target.closest("[data-zoom]");
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (picture && plain) {
      event.preventDefault();
      zoom(picture.closest(".side")?.dataset.side ?? "both");
    }
    if (event.target.closest("[data-zoom-both]")) zoom("both");
  });

  function open(name) {
    const dialog = byId(name);
    if (name === "flag") {
      const ballot = current()?.querySelector("[name=ballot]");
      if (!ballot) return;
      const form = dialog.querySelector("form");
      form.reset();
      form.querySelector("[name=ballot]").value = ballot.value;
      dialog.querySelector("[data-flag-error]").textContent = "";
    }
    dialog.showModal();
  }

  // --- zoom -----------------------------------------------------------------------------------------

  const zoomed = byId("zoom");

  function figureOf(link, side) {
    const figure = document.createElement("figure");
    const picture = new Image();
    const image = link.querySelector("img");
    Object.assign(picture, { src: image.src, alt: image.alt });
    const caption = document.createElement("figcaption");
    caption.textContent = `${link.dataset.zoom}: PNG, ${image.getAttribute("width")} × ${image.getAttribute("height")}, SHA-256 ${link.dataset.sha256}`;
    figure.dataset.side = side;
    figure.append(picture, caption);
    return figure;
  }

  function zoom(show) {
    const sides = [...(current()?.querySelectorAll(".side") ?? [])].filter((side) => side.querySelector("[data-zoom]"));
    if (!sides.length) return;
    const figures = sides.map((side) => figureOf(side.querySelector("[data-zoom]"), side.dataset.side));
    zoomed.querySelector(".zoomed").replaceChildren(...figures);
    zoomed.dataset.show = figures.length > 1 ? show : "both";
    zoomed.querySelector("[data-flip]").hidden = figures.length < 2;
    zoomed.showModal();
  }

  const flip = (side) => { if (zoomed.querySelectorAll("figure").length > 1) zoomed.dataset.show = zoomed.dataset.show === side ? "both" : side; };

  zoomed.querySelector("[data-flip]").addEventListener("click", () => {
    zoomed.dataset.show = { both: "left", left: "right", right: "both" }[zoomed.dataset.show];
  });
  zoomed.addEventListener("keydown", (event) => {
    // For a frame after it has closed, the focus may still be in it: that key is the vote's.
    if (!zoomed.open || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "ArrowLeft") flip("left");
    else if (event.key === "ArrowRight") flip("right");
    else if (event.key.toLowerCase() === "z" && !event.repeat) zoomed.close();
    else return;
    event.preventDefault();
  });

  // --- swipe ----------------------------------------------------------------------------------------
  // It votes only when the finger has gone a third of the screen sideways and lets go there; the
  // label says so before. Scrolling (the browser cancels the pointer), a second finger, the screen's
  // edges, which belong to the system, and texts that scroll sideways never vote.

  const EDGE = 24;
  let drag = null;

  const farEnough = () => Math.max(110, innerWidth / 3);

  function swallow(click) {
    if (!click.isTrusted) return;
    click.preventDefault();
    click.stopPropagation();
  }

  function endDrag() {
    drag?.label?.remove();
    drag = null;
  }

  function scrollsSideways(element) {
    for (let node = element; node && !node.matches(".pair"); node = node.parentElement) {
      if (node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflowX !== "visible") return true;
    }
    return false;
  }

  pairs.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    if (drag || !event.isPrimary) return endDrag();
    const inside = event.target.closest(".sides");
    const atEdge = event.clientX < EDGE || event.clientX > innerWidth - EDGE;
    if (!inside || atEdge || scrollsSideways(event.target)) return;
    drag = { id: event.pointerId, x: event.clientX, y: event.clientY, label: null, button: null };
  });

  addEventListener("pointermove", (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    const dx = event.clientX - drag.x;
    const dy = event.clientY - drag.y;
    if (Math.abs(dy) > 40 && Math.abs(dy) > Math.abs(dx) / 2) return endDrag();
    if (Math.abs(dx) < 30) { drag.label?.remove(); drag.label = null; drag.button = null; return; }
    const side = dx < 0 ? "left" : "right";
    const armed = Math.abs(dx) >= farEnough();
    const key = side === "left" ? "ArrowLeft" : "ArrowRight";
    const button = current()?.querySelector(`.choices [data-keys~="${key}"]`);
    if (!button || current().dataset.state) return endDrag();
    const words = button.firstElementChild.textContent.trim().toLowerCase();
    drag.label ??= document.body.appendChild(Object.assign(document.createElement("p"), { className: "lean" }));
    drag.label.toggleAttribute("data-armed", armed);
    drag.label.textContent = armed ? `Let go: ${words}` : `Farther for: ${words}`;
    drag.button = armed ? button : null;
  });

  addEventListener("pointerup", (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    const { button } = drag;
    endDrag();
    if (!button) return;
    // The same finger may also click the picture it let go of.
    addEventListener("click", swallow, true);
    setTimeout(() => removeEventListener("click", swallow, true), 300);
    button.click();
  });
  addEventListener("pointercancel", endDrag);
})();

// Long texts of a pair scroll together, and the folds of conversations open together, unless the page has
// a button for that and it is off.
(() => {
  "use strict";

  const follows = new WeakMap();

  const isTogether = () => document.querySelector("[data-toggle=together]")?.getAttribute("aria-pressed") !== "false";

  document.addEventListener("scroll", ({ target }) => {
    if (!isTogether() || !target.matches?.(".side .text")) return;
    if (follows.get(target) === Math.round(target.scrollTop)) return;
    const share = target.scrollTop / Math.max(target.scrollHeight - target.clientHeight, 1);
    for (const other of target.closest(".sides").querySelectorAll(".text")) {
      if (other === target) continue;
      other.scrollTop = share * (other.scrollHeight - other.clientHeight);
      follows.set(other, Math.round(other.scrollTop));
    }
    follows.delete(target);
  }, true);

  document.addEventListener("toggle", ({ target }) => {
    if (!isTogether() || !target.matches?.(".side .text details")) return;
    const foldsIn = (text) => [...text.querySelectorAll("details")];
    const place = foldsIn(target.closest(".text")).indexOf(target);
    for (const text of target.closest(".sides").querySelectorAll(".text")) {
      const other = foldsIn(text)[place];
      if (other) other.open = target.open;
    }
  }, true);
})();

// Long texts of a pair scroll together, unless the page has a button for that and it is off.
(() => {
  "use strict";

  const follows = new WeakMap();

  document.addEventListener("scroll", ({ target }) => {
    const together = document.querySelector("[data-toggle=together]")?.getAttribute("aria-pressed") !== "false";
    if (!together || !target.matches?.(".side .text")) return;
    if (follows.get(target) === Math.round(target.scrollTop)) return;
    const share = target.scrollTop / Math.max(target.scrollHeight - target.clientHeight, 1);
    for (const other of target.closest(".sides").querySelectorAll(".text")) {
      if (other === target) continue;
      other.scrollTop = share * (other.scrollHeight - other.clientHeight);
      follows.set(other, Math.round(other.scrollTop));
    }
    follows.delete(target);
  }, true);
})();

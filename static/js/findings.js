// The pages of a run's findings: quiet while nobody looks, and what is unfolded stays so.
(() => {
  "use strict";

  const POLLING = ["alt-test", "models"];
  let folds = [];

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && POLLING.includes(event.detail.elt.id)) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    folds = [...detail.target.querySelectorAll("details[id]")].map(({ id, open }) => [id, open]);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const [id, open] of folds) document.getElementById(id)?.toggleAttribute("open", open);
  });
})();

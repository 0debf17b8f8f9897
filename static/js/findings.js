// The pages of a run's findings: quiet while nobody looks.
(() => {
  "use strict";

  const POLLING = ["alt-test", "models"];

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && POLLING.includes(event.detail.elt.id)) event.preventDefault();
  });
})();

// The live board: quiet while nobody looks, and what a reader has opened stays open.
(() => {
  "use strict";

  const SPEAK_MS = 20_000;
  let opened = [];
  let spokenAt = 0;
  let spoken = document.getElementById("board").dataset.summary;

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.detail.elt.id === "board") event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", () => {
    opened = [...document.querySelectorAll("#board details[open]")].map((details) => details.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    const { summary } = document.getElementById("board").dataset;
    if (summary === spoken || Date.now() - spokenAt < SPEAK_MS) return;
    spokenAt = Date.now();
    spoken = summary;
    document.getElementById("say").textContent = summary;
  });
})();

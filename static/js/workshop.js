// Disagreements one after another: one card is open and has the keys, J opens the next.
(() => {
  "use strict";

  document.addEventListener("click", (event) => {
    const next = event.target.closest(".next-case");
    if (!next) return;
    event.preventDefault();
    const to = document.querySelector(next.getAttribute("href"));
    for (const card of document.querySelectorAll(".case")) card.toggleAttribute("data-turn", card === to);
    to.scrollIntoView({ block: "nearest" });
    to.querySelector("h4 a").focus({ preventScroll: true });
  });
})();

// Disagreements one after another: one card has the keys, J goes to the next.
(() => {
  "use strict";

  const cards = () => [...document.querySelectorAll(".case")];

  function giveTurn(to) {
    for (const card of cards()) card.toggleAttribute("data-turn", card === to);
  }

  giveTurn(document.querySelector(".case:not([data-sorted])") ?? cards()[0]);
  document.addEventListener("focusin", ({ target }) => {
    const card = target.closest(".case");
    if (card) giveTurn(card);
  });
  document.addEventListener("click", (event) => {
    const next = event.target.closest(".next-case");
    if (!next) return;
    event.preventDefault();
    const to = document.querySelector(next.getAttribute("href"));
    giveTurn(to);
    to.scrollIntoView({ block: "nearest" });
    to.querySelector("h4 a").focus({ preventScroll: true });
  });
})();

// What does not fit is one tap away: the rest of a prompt, of long texts on a phone, and what was said of the last vote.
(() => {
  "use strict";

  const pairs = document.getElementById("pairs");
  const last = document.getElementById("last");
  if (!pairs) return;

  const LONG = 0.75; // of the window's height: a phone shows less of longer texts until it is asked for all

  // Three lines of a prompt are in view wherever the pair is scrolled to.
  function offerTheRest(pair) {
    for (const side of pair.querySelectorAll(".side")) {
      side.toggleAttribute("data-long", side.querySelector(".text")?.scrollHeight > LONG * innerHeight);
    }
    for (const button of pair.querySelectorAll("[data-unfold]")) {
      const text = button.previousElementSibling;
      button.hidden = text.scrollHeight <= text.clientHeight + 2;
    }
  }

  document.addEventListener("click", ({ target }) => {
    if (!target.matches("[data-unfold]")) return;
    const isOpen = target.parentElement.toggleAttribute("data-unfolded");
    target.setAttribute("aria-expanded", isOpen);
    target.textContent = isOpen ? "Less" : "All of it";
    if (!isOpen) target.scrollIntoView({ block: "nearest" });
  });

  // The prompt stays above the output that is jumped to.
  pairs.addEventListener("click", (event) => {
    const jump = event.target.closest("[data-jump]");
    if (!jump) return;
    event.preventDefault();
    const pair = jump.closest(".pair");
    const side = document.getElementById(jump.hash.slice(1));
    const above = pair.querySelector(".prompt")?.offsetHeight ?? 0;
    pair.scrollTop += side.getBoundingClientRect().top - pair.getBoundingClientRect().top - above;
    side.querySelector(".text")?.focus({ preventScroll: true });
  });

  // Where what was said has no row of its own, it is a sheet over the pair.
  function openLast(isOpen) {
    last.toggleAttribute("data-unfolded", isOpen);
    for (const button of document.querySelectorAll("[data-why-so]")) button.setAttribute("aria-expanded", isOpen);
  }

  function forgetLast() {
    document.getElementById("reveal").replaceChildren();
    openLast(false);
  }

  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-why-so]")) openLast(!last.hasAttribute("data-unfolded"));
  });
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") openLast(false); });

  // A finger that moves up from the foot of the page pulls the sheet out.
  let pulledFrom = null;
  pairs.addEventListener("touchstart", ({ target, touches }) => { pulledFrom = target.closest(".after") && touches[0].clientY; }, { passive: true });
  pairs.addEventListener("touchmove", ({ touches }) => {
    if (pulledFrom === null || pulledFrom - touches[0].clientY < 40) return;
    pulledFrom = null;
    openLast(true);
  }, { passive: true });

  window.Fold = { offerTheRest, forgetLast };
})();

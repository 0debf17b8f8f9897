// The live board: quiet while nobody looks, and whoever reads it stays where they are.
(() => {
  "use strict";

  const SPEAK_MS = 20_000;
  const TICK_MS = 5_000;
  const FOLDED = "humanjudge.board.open";
  let kept = { scrolled: [], anchor: null, focused: "" };
  let spokenAt = 0;
  let spoken = document.getElementById("board").dataset.summary;
  let shownAt = Date.now();

  const inBoard = (selector) => [...document.querySelectorAll(`#board ${selector}`)];

  // Where the reader is: the first part of the board that begins inside the window.
  const place = () => {
    const begins = (part) => part.checkVisibility() && part.getBoundingClientRect().top >= 0;
    const top = inBoard("[id]").find(begins);
    return top ? { id: top.id, top: top.getBoundingClientRect().top } : null;
  };

  // What was opened stays open, here and at the next visit.
  const opened = new Set();
  try {
    for (const id of JSON.parse(localStorage.getItem(FOLDED)) ?? []) opened.add(id);
  } catch { /* storage may be refused */ }
  const unfold = () => {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  };
  const fold = (details) => {
    if (details.open === opened.has(details.id)) return;
    if (details.open) opened.add(details.id);
    else opened.delete(details.id);
    try {
      localStorage.setItem(FOLDED, JSON.stringify([...opened]));
    } catch { /* storage may be refused */ }
  };
  // Where an address leads into something that is folded.
  const follow = () => {
    const target = document.getElementById(location.hash.slice(1));
    for (let at = target?.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    target?.scrollIntoView();
  };

  const selects = () => {
    const selection = document.getSelection();
    return !selection.isCollapsed && document.getElementById("board").contains(selection.anchorNode);
  };

  const ago = (seconds) => {
    if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
    const minutes = Math.round(seconds / 60);
    const hours = Math.floor(minutes / 60);
    if (hours >= 48) return `${Math.round(hours / 24)} days`;
    return hours ? `${hours} h ${minutes % 60} min` : `${minutes} min`;
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt?.id === "board" && (document.hidden || selects())) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target?.id !== "board") return;
    kept = {
      focused: document.activeElement?.closest("#board [id]") ? document.activeElement.id : "",
      scrolled: inBoard(".scroll[id]").map((box) => [box.id, box.scrollLeft]),
      anchor: window.scrollY > 0 ? place() : null,
    };
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id !== "board") return;
    unfold();
    // What was folded when it came could not be focused.
    if (kept.focused) document.getElementById(kept.focused)?.focus({ preventScroll: true });
    for (const [id, left] of kept.scrolled) {
      const box = document.getElementById(id);
      if (box) box.scrollLeft = left;
    }
    const anchor = kept.anchor && document.getElementById(kept.anchor.id);
    if (anchor) window.scrollBy(0, anchor.getBoundingClientRect().top - kept.anchor.top);
    shownAt = Date.now();
    const { summary } = document.getElementById("board").dataset;
    if (summary === spoken || Date.now() - spokenAt < SPEAK_MS) return;
    spokenAt = Date.now();
    spoken = summary;
    document.getElementById("say").textContent = summary;
  });

  // These events do not bubble.
  document.addEventListener("toggle", (event) => {
    if (event.target.matches("#board details[id]")) fold(event.target);
  }, true);
  document.addEventListener("keydown", (event) => {
    const about = event.target.closest(".about");
    if (event.key === "Escape" && about) event.target.blur();
  });
  window.addEventListener("hashchange", follow);
  document.addEventListener("htmx:historyRestore", unfold);
  unfold();
  if (location.hash) follow();

  setInterval(() => {
    if (selects()) return;
    for (const time of inBoard("time[data-seconds]")) {
      time.textContent = ago(Number(time.dataset.seconds) + (Date.now() - shownAt) / 1000);
    }
  }, TICK_MS);
})();

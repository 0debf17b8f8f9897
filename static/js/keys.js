// Keys of the voting page and of curators' pages, and switches. A key clicks the button that shows it, and does nothing else.
(() => {
  "use strict";

  // --- toggles, remembered ----------------------------------------------------------------------

  function remembered(name, value) {
    try {
      if (value === undefined) return localStorage.getItem(`humanjudge.${name}`);
      localStorage.setItem(`humanjudge.${name}`, value);
    } catch { /* private windows may refuse: then it lasts as long as the page */ }
    return null;
  }

  for (const button of document.querySelectorAll("[data-toggle]")) {
    const kept = remembered(button.dataset.toggle);
    if (kept !== null) button.setAttribute("aria-pressed", kept);
    button.addEventListener("click", ({ detail }) => {
      // A pointer was here: Enter is for the item, not for this switch.
      if (detail) button.blur();
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", on);
      remembered(button.dataset.toggle, on);
    });
  }

  // --- keys: each clicks the button it stands on ---------------------------------------------------

  const NATIVE = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable], dialog[open]";
  const OWN_ENTER = "button, a, summary, [role=button]";

  // Where the keyboard does not write Latin letters, or writes digits only with Shift, it is the
  // place of the key that counts.
  function nameOf({ key, code }) {
    if (key === " ") return "Space";
    if (key.length > 1 || /[a-z0-9?]/i.test(key)) return key.length > 1 ? key : key.toLowerCase();
    return /^(?:Key|Digit)(.)$/.exec(code)?.[1].toLowerCase() ?? key;
  }

  function buttonFor(wanted) {
    const places = [document.querySelector("#pairs > .pair"), document.getElementById("end"), document.querySelector("[data-keyed]"), document.querySelector(".site")];
    return places.flatMap((place) => [...(place?.querySelectorAll("[data-keys]") ?? [])])
      .find((button) => button.dataset.keys.split(" ").includes(wanted) && isVisible(button) && isItsTurn(button));
  }

  const isVisible = (button) => button.offsetParent && getComputedStyle(button).visibility === "visible";

  // Of several questions only one has the keys.
  const isItsTurn = (button) => button.closest(".question, .case")?.hasAttribute("data-turn") ?? true;

  function scrollsItself(event) {
    // As above: what was chosen in a window that has just closed takes no arrow.
    if (!event.target.getClientRects?.().length) return false;
    if (event.key.startsWith("Arrow") && event.target.matches?.("[type=radio]")) return true;
    const text = event.key.startsWith("Arrow") && event.target.closest?.(".text, .earlier, .last");
    return text && ["ArrowUp", "ArrowDown"].includes(event.key) && text.scrollHeight > text.clientHeight;
  }

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
    if (event.shiftKey && key !== "?") return;
    if (key !== "?" && document.querySelector("[data-toggle=keys][aria-pressed=false]")) return;
    // A field in a window that has just closed may still have the focus; it is not to be seen.
    if (target.closest?.(NATIVE)?.getClientRects().length) return;
    if (document.querySelector("dialog[open]") || scrollsItself(event)) return;
    if (["Enter", " "].includes(key) && target.closest?.(OWN_ENTER)) return;
    const button = buttonFor(nameOf(event));
    if (!button) return;
    event.preventDefault();
    if (event.repeat) return;
    if (button.matches("textarea")) button.focus();
    else button.click();
  });
})();

// Buttons that copy the text of a field, and say so; without scripts there is the field alone.
(() => {
  "use strict";

  const said = document.getElementById("copied");

  const copy = async (field) => {
    field.select();
    // Pages that are not served over HTTPS have no clipboard of their own.
    if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
    else if (!document.execCommand("copy")) throw new Error("refused");
  };

  for (const button of document.querySelectorAll("[data-copy]")) {
    const field = document.getElementById(button.dataset.copy);
    const words = button.firstChild;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await copy(field);
        words.data = "Copied";
        said.textContent = `Copied: ${field.getAttribute("aria-label")}`;
      } catch {
        said.textContent = "It could not be copied; the text is selected, so press Ctrl+C.";
      }
      setTimeout(() => (words.data = "Copy"), 2000);
    });
  }
})();

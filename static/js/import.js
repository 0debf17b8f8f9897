// Files that are dropped anywhere on the page are sent at once; the form does the rest.
(() => {
  "use strict";

  const form = document.getElementById("bring");
  const input = document.getElementById("file");
  const status = document.getElementById("uploading");

  form.addEventListener("submit", () => {
    const names = [...input.files].map((file) => file.name).join(", ");
    status.textContent = `Sending ${names}…`;
    form.querySelector("button").disabled = true;
  });
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      form.toggleAttribute("data-over", name.startsWith("drage") || name === "dragover");
    });
  }
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length) return;
    input.files = event.dataTransfer.files;
    form.requestSubmit();
  });
  // Back from the next page: a browser shows this one as it was left.
  addEventListener("pageshow", () => {
    status.textContent = "";
    form.querySelector("button").disabled = false;
  });
})();

// The pages of a run's life: quiet while nobody looks, and the rubric that goes with the kind.
(() => {
  "use strict";

  const POLLING = ["run-progress", "tryout"];
  let opened = [];

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && POLLING.includes(event.detail.elt.id)) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (POLLING.includes(detail.target.id)) {
      opened = [...detail.target.querySelectorAll("details[open]")].map((details) => details.id);
    }
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  });

  const data = document.getElementById("rubrics");
  if (!data) return;
  const rubrics = JSON.parse(data.textContent);
  const rubric = document.getElementById("id_rubric");
  for (const kind of document.querySelectorAll("[name=kind]")) {
    kind.addEventListener("change", () => {
      // What somebody wrote stays.
      if (["", ...Object.values(rubrics)].includes(rubric.value.trim())) rubric.value = rubrics[kind.value];
    });
  }
})();

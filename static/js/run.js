// The pages of a run's life: quiet while nobody looks, and the rubric that goes with what is asked.
(() => {
  "use strict";

  const POLLING = ["run-progress", "trial", "import-progress"];
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
  const chosen = (name) => document.querySelector(`[name=${name}]:checked`)?.value;
  for (const choice of document.querySelectorAll("[name=kind], [name=items_kind]")) {
    choice.addEventListener("change", () => {
      // What somebody wrote stays. Single items have rubrics of their own.
      const usual = rubrics[chosen("items_kind")] ?? rubrics[chosen("kind")];
      if (["", ...Object.values(rubrics)].includes(rubric.value.trim())) rubric.value = usual;
    });
  }
})();

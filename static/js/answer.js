// What a voter fills in before a vote is sent: fields, why something is flagged, a comment.
(() => {
  "use strict";

  const pairs = document.getElementById("pairs");
  if (!pairs) return;

  const questionsOf = (form) => [...form.querySelectorAll(".question")];

  function isAnswered(question) {
    const text = question.querySelector("textarea");
    if (text) return text.value.trim() !== "";
    return question.querySelector(":checked, [type=checkbox]") !== null;
  }

  // What keeps a vote from being sent, in words; nothing when it may be.
  function lacks(form) {
    const open = questionsOf(form).filter((question) => !isAnswered(question));
    if (!open.length) return "";
    if (questionsOf(form).length > 1) return `Still to answer: ${open.map((each) => each.dataset.question).join(", ")}`;
    return open[0].querySelector("textarea") ? "Write your answer, then send it" : "Choose, then send";
  }

  function spoken(form, submitter) {
    const said = submitter.dataset.said;
    if (said) return `You chose ${said}.`;
    if (form.querySelector("[name=text]")) return "Your answer is sent.";
    const chosen = [...form.querySelectorAll(".fields :checked")].map((mark) => mark.dataset.said);
    return `You chose ${chosen.join(", ") || "none of these"}.`;
  }

  // Keys answer one question at a time: where the focus is, else the first that is open.
  function show(form, wanted) {
    const send = form?.querySelector("[data-send]");
    if (!send) return;
    const questions = questionsOf(form);
    const turn = wanted ?? questions.find((each) => each.contains(document.activeElement))
      ?? questions.find((each) => !isAnswered(each)) ?? form.querySelector("[data-turn]") ?? questions.at(-1);
    for (const each of questions) each.toggleAttribute("data-turn", each === turn);
    const words = lacks(form);
    send.setAttribute("aria-disabled", words !== "");
    form.querySelector("[data-lacks]").textContent = words;
    const none = form.querySelector("[type=checkbox]") && !form.querySelector(".fields :checked");
    const label = send.querySelector("[data-words]");
    if (label) label.textContent = none ? "None of these" : "Send";
  }

  for (const kind of ["input", "change", "focusin", "focusout"]) {
    pairs.addEventListener(kind, ({ target }) => show(target.closest(".ballot")));
  }

  // A click leaves the focus where it is, so that keys go on with what is open.
  pairs.addEventListener("mousedown", (event) => {
    if (event.target.closest(".pick")) event.preventDefault();
  });

  // The page says itself what is missing, beside the button and to a screen reader.
  document.addEventListener("click", ({ target }) => {
    const form = target.closest("button")?.form;
    if (form?.matches(".ballot")) form.noValidate = true;
  }, true);

  // --- why something is flagged ---------------------------------------------------------------------

  function ask(pair, open) {
    pair.toggleAttribute("data-reasons", open);
    (open ? pair.querySelector(".reasons") : pair).focus({ preventScroll: true });
  }

  // The first click asks why, the second one flags without a reason.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-why], [data-back]");
    const pair = button?.closest(".pair");
    if (!pair || pair.dataset.state) return;
    if (button.hasAttribute("data-back")) return ask(pair, false);
    if (pair.hasAttribute("data-reasons")) return;
    event.preventDefault();
    ask(pair, true);
  });

  // --- comments and texts ---------------------------------------------------------------------------

  // A key opens the comment or goes back to it, and never shuts away what is written.
  document.addEventListener("click", (event) => {
    const summary = event.target.closest(".comment summary");
    if (!summary) return;
    const comment = summary.parentElement;
    if (comment.open && event.isTrusted) return;
    event.preventDefault();
    comment.open = true;
    comment.querySelector("textarea").focus();
  });

  pairs.addEventListener("keydown", (event) => {
    const form = event.target.closest(".ballot");
    const isText = event.target.matches("textarea");
    if (!form || event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.querySelector("[data-send]")?.click();
    else if (event.key !== "Escape" || !isText) return;
    if (isText) form.closest(".pair").focus({ preventScroll: true });
    event.preventDefault();
  });

  document.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const turn = pairs.querySelector(":scope > .pair .question[data-turn]");
    if (!step || !turn || event.defaultPrevented || event.target.closest?.(".question, .text, dialog")) return;
    const questions = questionsOf(turn.closest(".ballot"));
    const next = questions[questions.indexOf(turn) + step];
    if (questions.length > 1) event.preventDefault();
    if (next) show(turn.closest(".ballot"), next);
  });

  window.Answer = { lacks, show, spoken };
})();

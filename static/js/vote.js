// The voting page. The first pair in #pairs is the one on screen; those behind it are loaded already.
// A vote goes into the outbox and the next pair is shown at once. A vote that is refused, or that gets
// nowhere, brings its pair back. Without this script the forms work by themselves.
(() => {
  "use strict";

  const desk = document.querySelector("[data-voting]");
  if (!desk || !window.htmx) return;
  document.documentElement.classList.add("scripted");

  const byId = (id) => document.getElementById(id);
  const pairs = byId("pairs");
  const sent = byId("sent");
  const undoForm = byId("undo");
  const undoButtons = () => document.querySelectorAll("[form=undo]");
  const more = byId("more");
  const reveals = desk.dataset.reveal === "after_each";
  const { noun } = desk.dataset; // what is voted on: "pair" or "item"
  const Noun = noun[0].toUpperCase() + noun.slice(1);

  const UNSEEN_MS = 300; // a second click, meant for a choice, is no click on what took its place
  const FULL = 6; // pairs that the server lets a page hold; it leases the first three of them
  const SETTLE_MS = 700; // how long keys rest when a pair comes back under the voter's fingers
  const LEASE_MS = 120_000;

  const outbox = new Outbox({ saved, refused, unreachable, changed: showSaving });
  let wasLost = false;
  let undoing = false;
  let undoTries = 0;
  let restUntil = 0;
  let shownAt = 0;
  let mine = Number(byId("progress").dataset.mine);
  let fetching = false;
  let askedAtEnd = false;
  let isClosed = false;
  let lastActive = Date.now();

  const current = () => pairs.querySelector(":scope > .pair");
  const advancing = () => !reveals || document.querySelector("[data-toggle=advance][aria-pressed=true]");

  // --- what the voter reads and hears ----------------------------------------------------------

  function say(text) {
    const live = byId("say");
    live.textContent = "";
    requestAnimationFrame(() => { live.textContent = text; });
  }

  function notice(text) {
    const box = document.createElement("div");
    box.className = "notice";
    box.append(Object.assign(document.createElement("p"), { textContent: text }));
    byId("notice").replaceChildren(box);
  }

  function offer(label, act) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: label });
    button.addEventListener("click", act);
    byId("notice").firstElementChild.append(button);
  }

  const offerReload = () => offer("Reload the page", () => location.reload());

  const clearNotice = () => byId("notice").replaceChildren();

  function saveState(text, unsaved = false) {
    const line = byId("save");
    if (line.textContent === text) return;
    line.textContent = text;
    line.toggleAttribute("data-unsaved", unsaved);
  }

  function showSaving() {
    const { length, tries } = outbox;
    if (tries) {
      wasLost ||= !outbox.isBusy;
      const why = outbox.isBusy ? "The server is busy" : "Connection lost";
      const what = length === 1 ? "Your last answer is" : `Your last ${length} answers are`;
      saveState(`${why}. ${what} not saved yet, trying again (${tries})…`, true);
    } else if (length) {
      if (outbox.isSlow) saveState(`Saving ${length}…`, true);
    } else {
      saveState(wasLost ? "The connection is back. All saved." : "All saved");
      wasLost = false;
    }
  }

  function showProgress(count) {
    mine = count;
    const box = byId("progress");
    const of = Math.max(Number(box.dataset.of), mine + held().length);
    box.querySelector("[data-mine-shown]").textContent = mine;
    box.querySelector("[data-of-shown]").textContent = of;
    Object.assign(box.querySelector("progress"), { max: of || 1, value: mine });
    showUndo();
  }

  // There is nothing to undo before the first vote, and a vote that is undone once voting has closed is lost.
  function showUndo() {
    for (const button of undoButtons()) button.disabled = isClosed || (!mine && !outbox.length);
  }

  document.addEventListener("closed", () => {
    if (isClosed) return;
    isClosed = true;
    showUndo();
    // What was refused is said already.
    if (current() && !byId("notice").firstElementChild) notice("Voting has closed; your votes stand.");
  });

  // --- showing pairs ------------------------------------------------------------------------------

  const picturesOf = (pair) => [...pair.querySelectorAll(".picture img")];
  const isLoaded = (picture) => picture.complete && picture.naturalWidth > 0;

  function show(before = "") {
    const pair = current();
    desk.toggleAttribute("data-empty", !pair);
    restartClock(pair);
    if (!pair) return lookForMore();
    prepare(pair.nextElementSibling);
    prepare(pair.nextElementSibling?.nextElementSibling);
    document.querySelector("[data-toggle=source]").hidden = !pair.querySelector(".source");
    document.querySelector("[data-toggle=together]").hidden = pair.querySelectorAll(".side .text").length < 2;
    Answer.show(pair.querySelector(".ballot"));
    Fold.offerTheRest(pair);
    showUndo();
    say(`${before} ${Noun} ${mine + outbox.length + 1}: ${promptOf(pair)}`.trim());
    // After two answers, or when the page could have more: what is on the screen stays leased.
    if (held().length < FULL - 1) fetchPairs();
  }

  function restartClock(pair) {
    shownAt = performance.now();
    const waiting = pair ? picturesOf(pair).filter((picture) => !isLoaded(picture)) : [];
    pair?.toggleAttribute("data-waiting", waiting.length > 0);
    for (const picture of waiting) {
      picture.addEventListener("load", () => { if (pair === current()) restartClock(pair); }, { once: true });
      picture.addEventListener("error", () => pictureFailed(pair, picture), { once: true });
      if (picture.complete) pictureFailed(pair, picture);
    }
  }

  function pictureFailed(pair, picture) {
    if (pair !== current()) return;
    notice(`A picture did not load, so this ${noun} cannot be voted on yet.`);
    offer("Load it again", () => {
      clearNotice();
      picture.src = picture.getAttribute("src");
      restartClock(pair);
    });
  }

  const promptOf = (pair) => pair.querySelector(".prompt-text")?.innerText.trim() ?? "";

  function prepare(pair) {
    for (const picture of pair ? picturesOf(pair) : []) picture.decode?.().catch(() => {});
  }

  function advance(before) {
    const pair = current();
    if (!pair) return;
    const hadFocus = pair.contains(document.activeElement);
    const isOpen = pair.querySelector(".rubric").open;
    if (pair.dataset.state === "sending") sent.append(pair);
    else pair.remove();
    if (current()) current().querySelector(".rubric").open = isOpen;
    show(before);
    if (hadFocus) (textToWrite() ?? current() ?? byId("end").querySelector("a, button") ?? byId("main")).focus({ preventScroll: true });
  }

  // Where a finger writes, the keyboard would cover what is to be read first.
  const textToWrite = () => (matchMedia("(pointer: fine)").matches ? current()?.querySelector(".fields textarea") : null);

  // --- answers: votes and skips -------------------------------------------------------------------

  const resting = () => undoing || performance.now() < restUntil;

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches(".ballot")) answer(event);
    else if (form === undoForm) undo(event);
  }, true);

  function answer(event) {
    event.preventDefault();
    const { target: form, submitter } = event;
    const pair = form.closest(".pair");
    if (!submitter || pair !== current() || pair.dataset.state || resting()) return;
    const isSkip = submitter.hasAttribute("data-skip");
    if (!isSkip && pair.hasAttribute("data-waiting")) return say("The pictures are still loading.");
    const missing = submitter.hasAttribute("data-send") && Answer.lacks(form);
    if (missing) return say(missing);
    clearNotice();
    submitter.toggleAttribute("data-chosen", true);
    pair.dataset.state = "sending";
    const spoken = isSkip ? "Skipped." : Answer.spoken(form, submitter);
    close(form, true);
    pair.querySelector("[data-yours]").textContent = spoken;
    outbox.add({
      pair, form, isSkip, spoken,
      path: isSkip ? submitter.getAttribute("formaction") : form.getAttribute("action"),
      fields: isSkip ? {} : { ...chosenBy(submitter), elapsed_ms: Math.round(performance.now() - shownAt) },
    });
    showUndo();
    if (isSkip || advancing()) advance(spoken);
    outbox.send();
  }

  const chosenBy = ({ name, value }) => (name ? { [name]: value } : {});

  // What is on its way is not changed any more.
  function close(form, isClosed) {
    const pair = form.closest(".pair");
    const parts = [...form.querySelectorAll(".fields, .comment")];
    if (parts.some((part) => part.contains(document.activeElement))) pair.focus({ preventScroll: true });
    for (const part of parts) part.toggleAttribute("inert", isClosed);
  }

  function saved(item) {
    if (item.pair === current()) {
      const hadFocus = item.pair.contains(document.activeElement);
      item.pair.dataset.state = "voted";
      shownAt = performance.now();
      if (hadFocus) item.pair.querySelector("[data-next]").focus({ preventScroll: true });
      say(item.spoken);
    } else {
      item.pair.remove();
    }
    if (!item.isSkip) showProgress(Math.max(mine + 1, Number(byId("progress").dataset.mine)));
    if (!current() && !outbox.length) lookForMore();
  }

  function messageIn(xhr) {
    const reply = new DOMParser().parseFromString(xhr.responseText, "text/html");
    return reply.querySelector("[data-message]")?.textContent ?? "The server could not store it.";
  }

  function bringBack(item, message) {
    const { pair } = item;
    const wasAway = pair !== current();
    undoing = false;
    delete pair.dataset.state;
    pair.querySelector("[data-chosen]")?.removeAttribute("data-chosen");
    close(item.form, false);
    if (wasAway) pairs.prepend(pair);
    restUntil = performance.now() + SETTLE_MS;
    const text = item.isSkip ? `Not skipped. ${message}` : `Not counted. ${message}`;
    notice(text);
    showUndo();
    if (wasAway) show(text);
  }

  function refused(item, xhr) {
    bringBack(item, messageIn(xhr));
    if (xhr.status === 403 || xhr.status === 422) offerReload();
    if (xhr.status !== 409) return;
    askWhetherClosed();
    // What was recorded first stands: the voter may go on, or undo it.
    item.pair.dataset.state = "voted";
    item.pair.querySelector("[data-yours]").textContent = "";
  }

  function unreachable(items) {
    const message = "The server could not be reached. Answer again when the connection is back.";
    for (const item of items.reverse()) bringBack(item, message);
  }

  // --- undo -----------------------------------------------------------------------------------------

  // The vote to take back may still be on its way: undo waits for it.
  function undo(event) {
    event.preventDefault();
    if (undoing) return;
    undoing = true;
    clearNotice();
    if (outbox.length) notice("Your last answer is still being saved. Then it is taken back.");
    undoForm.elements.undo.value = newNumber();
    undoTries = 0;
    const whenSaved = () => {
      if (!undoing) return; // it was not saved but came back, so there is nothing to take back
      if (outbox.length) setTimeout(whenSaved, 50);
      else sendUndo();
    };
    whenSaved();
  }

  const sendUndo = () => Outbox.trigger(undoForm, "send");

  // crypto.randomUUID is there only over HTTPS.
  const newNumber = () => [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");

  function undone(xhr) {
    if (!Outbox.isSpoken(xhr) && undoTries < Outbox.RETRY_MS.length) {
      // The same number again: what was taken back is not taken back twice.
      saveState(`Connection lost. Taking your last vote back, trying again (${undoTries + 1})…`, true);
      setTimeout(sendUndo, Outbox.RETRY_MS[undoTries++]);
      return;
    }
    if (undoTries && xhr.status === 200) saveState("The connection is back. All saved.");
    undoing = false;
    if (xhr.status === 200) {
      const pair = current();
      forget(pair.dataset.item, pair);
      Fold.forgetLast();
      showProgress(Number(byId("progress").dataset.mine));
      restUntil = performance.now() + SETTLE_MS / 2;
      clearNotice();
      if (xhr.responseText.includes("data-has-seen")) notice(`Your vote is taken back. You have seen what the judges said about this ${noun}, so a new vote on it is not blind: judges are still compared with your first vote.`);
      show("Your last vote is taken back.");
    } else if (xhr.status >= 400 && xhr.status < 500) {
      notice(messageIn(xhr));
      if (xhr.status === 409) askWhetherClosed();
    } else {
      notice("The server could not be reached. Reload the page to see whether your vote was taken back.");
      offerReload();
    }
  }

  // Pairs that were only held ahead are somebody else's by now.
  document.addEventListener("gone", ({ detail }) => {
    for (const item of detail.pairs) {
      const pair = pairs.querySelector(`.pair:not(:first-child, [data-state])[data-item="${item}"]`);
      pair?.remove();
    }
  });

  // What was leased to a page that is closed is free again; a page that comes back asks anew.
  addEventListener("pagehide", () => {
    const leaving = new FormData(undoForm);
    leaving.set("have", waiting().join(","));
    if (waiting().length) navigator.sendBeacon(desk.dataset.leave, leaving);
  });
  addEventListener("pageshow", ({ persisted }) => { if (persisted) fetchPairs(); });

  function forget(item, but) {
    for (const pair of document.querySelectorAll(".pair")) {
      if (pair !== but && pair.dataset.item === item) pair.remove();
    }
  }

  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    const { elt, xhr } = detail;
    if (elt === undoForm) undone(xhr);
    else if (elt === more) fetched(xhr);
    else if (elt.closest("#flag")) flagged(xhr);
    else if (byId("reveal").contains(elt) && !detail.successful) revealFailed(elt, xhr);
  });

  // --- more pairs -----------------------------------------------------------------------------------

  const held = () => [...document.querySelectorAll(".pair")]
    .filter((pair) => pair.dataset.state !== "voted")
    .map((pair) => pair.dataset.item);

  document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.path === more.getAttribute("hx-get")) detail.parameters.have = held().join(",");
  });

  const waiting = () => [...pairs.querySelectorAll(".pair:not([data-state])")].map((pair) => pair.dataset.item);

  function fetchPairs() {
    if (fetching) return;
    fetching = true;
    askedAtEnd = !held().length;
    Outbox.trigger(more, "more");
  }

  // The answer to a request for more pairs tells it; one that is under way may have been sent before.
  function askWhetherClosed() {
    if (fetching) setTimeout(askWhetherClosed, 200);
    else fetchPairs();
  }

  function lookForMore() {
    byId("end").toggleAttribute("data-looking", true);
    if (!outbox.length) fetchPairs();
  }

  // Nobody is looking: the pairs would be kept from others for nothing.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && byId("end").contains(event.detail.elt)) event.preventDefault();
  });

  // A pair that is here already was handed out by two answers: the older one stays.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target !== pairs || detail.requestConfig.elt === undoForm) return;
    const reply = document.createElement("template");
    reply.innerHTML = detail.serverResponse;
    const here = new Set([...document.querySelectorAll(".pair")].map((pair) => pair.dataset.item));
    const double = [...reply.content.querySelectorAll(".pair")].filter((pair) => here.has(pair.dataset.item));
    if (!double.length) return;
    for (const pair of double) pair.remove();
    detail.serverResponse = reply.innerHTML;
  });

  document.addEventListener("htmx:afterSwap", ({ detail }) => {
    if (detail.target !== pairs || detail.requestConfig.elt === undoForm) return;
    // It may hold votes already whose answers are on their way here: these are not counted twice.
    showProgress(outbox.length ? mine : Math.max(mine, Number(byId("progress").dataset.mine)));
    if (current() && desk.hasAttribute("data-empty")) show();
  });

  function fetched(xhr) {
    fetching = false;
    if (current()) return;
    if (xhr.status !== 200) setTimeout(lookForMore, 3000);
    else if (!askedAtEnd) lookForMore();
    else say(byId("end").querySelector(".found h2").textContent);
  }

  // Pairs on a page that is being read stay this voter's.
  for (const kind of ["keydown", "pointerdown"]) document.addEventListener(kind, () => { lastActive = Date.now(); });
  setInterval(() => {
    if (!document.hidden && current() && Date.now() - lastActive < 4 * LEASE_MS) fetchPairs();
  }, LEASE_MS);

  // --- flags ----------------------------------------------------------------------------------------

  function flagged(xhr) {
    const dialog = byId("flag");
    const failed = xhr.status !== 204;
    dialog.querySelector("[data-flag-error]").textContent = !failed ? ""
      : xhr.status ? messageIn(xhr) : "The server could not be reached. Try again.";
    if (failed) return;
    dialog.close();
    say("Flagged. Curators can see it.");
    notice(`Flagged. Curators can see it; you can vote on the ${noun} all the same.`);
  }

  // --- the reveal -----------------------------------------------------------------------------------

  // It asks again until the vote is sealed, and is read out once.
  let readOut = "";
  document.addEventListener("htmx:afterSwap", () => {
    const reveal = byId("reveal").querySelector("[data-spoken]");
    if (!reveal || reveal.dataset.uid === readOut) return;
    readOut = reveal.dataset.uid;
    say(reveal.dataset.spoken);
    const pair = current();
    if (!pair?.dataset.state) return;
    pair.querySelector("[data-yours]").textContent = reveal.dataset.headline;
    for (const maker of reveal.querySelectorAll("[data-maker]")) pair.querySelector(`[data-side="${maker.dataset.maker}"] > h3`)?.append(maker.cloneNode(true));
  });

  function revealFailed(element, xhr) {
    if (xhr.status >= 400 && xhr.status < 500) element.textContent = messageIn(xhr);
    else setTimeout(() => htmx.trigger(element, "again"), 2000);
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-next]") || (event.detail && performance.now() - shownAt < UNSEEN_MS)) return;
    Fold.forgetLast();
    clearNotice();
    advance();
  });

  desk.toggleAttribute("data-empty", !current());
  // htmx knows its elements from here on; it asked for this event first.
  document.addEventListener("DOMContentLoaded", () => {
    desk.toggleAttribute("data-ready", true);
    if (current()) show();
  });
})();

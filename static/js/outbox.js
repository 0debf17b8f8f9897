// Answers on their way. They are sent one at a time, in order, and always with the same ballot, so
// that the server can tell a retry from a second vote. What cannot be delivered is handed back.
(() => {
  "use strict";

  const REQUEST_MS = 10_000;
  const RETRY_MS = [300, 700, 1500, 3000, 4000, 5000, 5000, 5000, 5000, 5000, 5000, 5000];
  const GATEWAYS = [408, 502, 503, 504]; // not heard, or not now

  // An answer counts as saved only when the server itself says so, not some proxy in between.
  const isReceipt = ({ status, responseText }) => status === 204 || (status === 200 && responseText.includes("data-recorded="));

  class Outbox {
    #waiting = [];
    #sending = null;
    #timer = 0;
    #isBusy = false;
    #page;

    // `page` has saved(item), refused(item, xhr), unreachable(items) and changed().
    constructor(page) {
      this.#page = page;
      document.addEventListener("htmx:configRequest", ({ detail }) => this.#address(detail));
      document.addEventListener("htmx:beforeSwap", ({ detail }) => {
        if (this.#isOurs(detail.requestConfig.elt)) detail.shouldSwap &&= isReceipt(detail.xhr);
      });
      document.addEventListener("htmx:afterRequest", ({ detail }) => {
        if (this.#isOurs(detail.elt)) this.#answered(detail.xhr);
      });
      window.addEventListener("online", () => this.send());
      window.addEventListener("beforeunload", (event) => {
        if (this.length) event.preventDefault();
      });
    }

    get length() { return this.#waiting.length; }

    get tries() { return this.#waiting[0]?.tries ?? 0; }

    // Whether the server said so itself, or nothing was heard of it.
    get isBusy() { return this.#isBusy; }

    get isSlow() { return this.length > 0 && Date.now() - this.#waiting[0].since > 500; }

    add(item) {
      this.#waiting.push({ ...item, tries: 0, since: Date.now() });
    }

    send() {
      clearTimeout(this.#timer);
      if (this.#sending || !this.length) return;
      this.#sending = this.#waiting[0];
      Outbox.trigger(this.#sending.form, "send");
      // Not once all is saved: what was said of that is left to be read.
      setTimeout(() => this.isSlow && this.#page.changed(), 600);
    }

    // A quick hand is ahead of htmx, which looks at new elements only a moment after they came.
    static trigger(element, name) {
      htmx.process(element);
      htmx.trigger(element, name);
    }

    static RETRY_MS = RETRY_MS;

    // Whether the server itself has answered.
    static isSpoken({ status }) { return status > 0 && !GATEWAYS.includes(status); }

    #isOurs(element) { return this.#sending !== null && element === this.#sending.form; }

    #address(request) {
      if (!this.#isOurs(request.elt)) return;
      request.timeout = REQUEST_MS;
      request.path = this.#sending.path;
      Object.assign(request.parameters, this.#sending.fields);
    }

    #answered(xhr) {
      const item = this.#sending;
      this.#sending = null;
      this.#isBusy = xhr.status === 503;
      const isSpoken = xhr.status >= 400 && Outbox.isSpoken(xhr);
      if (!isReceipt(xhr) && !isSpoken) return this.#tryAgain(item, Number(xhr.getResponseHeader("Retry-After")) * 1000);
      this.#waiting.shift();
      if (isSpoken) this.#page.refused(item, xhr);
      else this.#page.saved(item);
      this.send();
      this.#page.changed();
    }

    // `pause` is what the server asked for with 503, and 0 where it was silent.
    #tryAgain(item, pause) {
      if (item.tries < RETRY_MS.length) this.#timer = setTimeout(() => this.send(), Math.max(RETRY_MS[item.tries++], Math.min(pause, REQUEST_MS) || 0));
      else this.#page.unreachable(this.#waiting.splice(0));
      this.#page.changed();
    }
  }

  window.Outbox = Outbox;
})();

"""The running product and a browser that looks at it."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route

from tests.helpers.waiting import eventually
from tests.process.up import ROOT, Up, environment

# Pages of one site share a process: see `Windows`.
CHROMIUM_ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --process-per-site"
).split()
DESK = {"viewport": {"width": 1280, "height": 800}}
WEB = "granian"


class Product:
    """`manage.py up` on a data folder of its own, and a process that makes rows in it."""

    def __init__(self, data: Path) -> None:
        self.up = Up(data, VOTES_PER_SECOND="50", VOTES_BURST="500")
        self._maker: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.up.ready()
        self._maker = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.maker"],
            cwd=ROOT,
            env=environment(self.up.data),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *error: object) -> None:
        if self._maker is not None:
            with self._maker:
                self._maker.stdin.close()
        self.up.stop(signal.SIGTERM)

    @property
    def url(self) -> str:
        return self.up.url

    def ask(self, what: str, **options: object) -> object:
        """One of the functions of `tests.browser.maker`."""
        self._maker.stdin.write(json.dumps({"do": what, **options}) + "\n")
        self._maker.stdin.flush()
        return json.loads(self._maker.stdout.readline())

    def new_run(self, **options: object) -> dict:
        return self.ask("new_run", **options)

    def votes(self, run: dict, *, standing: bool = True) -> list[dict]:
        rows = self.ask("votes", queue=run["queue"])
        return [row for row in rows if not (standing and row["retracted"])]

    def eventually_votes(self, run: dict, number: int) -> list[dict]:
        return eventually(lambda: (rows := self.votes(run)) and len(rows) == number and rows)

    def web(self) -> list[int]:
        """The web server and its workers, the one that started the others first."""
        return self.up.processes(WEB)


class Windows:
    """Windows of people who have nothing in common, and what the browser complained of in them.

    A process that shows a page of the product for the first time needs more than a second to read
    its scripts. So a browser context that was used is emptied and used again, and a page that rests
    in it keeps its process.
    """

    def __init__(self, browser: Browser, url: str, patience_ms: float) -> None:
        self._browser, self._url, self._patience_ms = browser, url, patience_ms
        self._free: dict[str, list[BrowserContext]] = {}
        self._used: list[tuple[str, BrowserContext]] = []
        self.complaints: list[str] = []

    def open(self, *, again: bool = True, intercepts: bool = False, **options: object) -> Page:
        """Open a window; `again` says whether the next test may have its context.

        Only where a test `intercepts` requests can they be held up: such a browser keeps no file.
        """
        kind = json.dumps([intercepts, options], sort_keys=True)
        free = self._free.setdefault(kind, [])
        context = free.pop() if free and again else self._context(options, intercepts)
        self._used.append((kind if again else "", context))
        return context.new_page()

    def close(self) -> None:
        """Close the windows of a test; what they have stored is forgotten."""
        while self._used:
            kind, context = self._used.pop()
            if kind:
                self._empty(context)
                self._free[kind].append(context)
            else:
                context.close()

    def _context(self, options: dict, intercepts: bool) -> BrowserContext:
        context = self._browser.new_context(**{"base_url": self._url} | DESK | options)
        context.set_default_timeout(self._patience_ms)
        context.on("page", self._watch)
        if intercepts:
            # Turned on later, that would miss the first request.
            context.route("**/nothing", lambda route: route.abort())
        context.new_page().goto("/healthz")
        return context

    def _empty(self, context: BrowserContext) -> None:
        resting, *pages = context.pages
        for page in pages:
            page.close()
        context.set_offline(False)
        origin = {"origin": self._url, "storageTypes": "all"}
        devtools = context.new_cdp_session(resting)
        devtools.send("Storage.clearDataForOrigin", origin)
        devtools.detach()

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._heard)

    def _heard(self, message: ConsoleMessage) -> None:
        """Script errors, and anything that the policy refused."""
        if message.type == "error":
            self.complaints.append(f"console: {message.text}")


class Gate:
    """Holds a window's requests to some address until it is opened."""

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        self._address = address
        self._held: list[Route] = []
        page.route(address, lambda route: self._held.append(route))

    def open(self) -> None:
        """Let the first one, which has to have come, and all that follow through."""
        while not self._held:
            self._page.wait_for_timeout(10)
        for route in self._held:
            route.continue_()
        self._page.unroute(self._address)

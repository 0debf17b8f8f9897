"""The running product and a browser that looks at it."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from playwright.sync_api import Page, Route

from tests.helpers.waiting import eventually
from tests.process.up import ROOT, Up, environment

CHROMIUM_ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
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

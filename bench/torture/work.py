"""Work for all kinds of process: runs that models judge, drawings, and imports, without an end."""

from __future__ import annotations

import contextlib
import json
import threading
from itertools import count
from typing import Any

import httpx

ROWS = 1500
PROMPTS = 6


class Work:
    """Asks over HTTP for a run of each kind and an import, and for the next when one is done."""

    def __init__(self, url: str, seed: int) -> None:
        from tests.makers import make_key, make_project

        make_project("Work")
        key = make_key("read", "vote", "manage")[1]
        self._api = httpx.Client(
            base_url=f"{url}/api/", headers={"Authorization": f"Bearer {key}"}, timeout=90
        )
        self._seed = seed
        self._numbers = count(1)
        self._stop = threading.Event()
        self.wrong: list[str] = []
        jobs = (self._run_of_text, self._run_of_drawings, self._import)
        self._threads = [
            threading.Thread(target=self._ask_for_ever, args=(job,), daemon=True) for job in jobs
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def _ask_for_ever(self, job: Any) -> None:
        while not self._stop.is_set():
            # What does not come through is asked for again: it is one job more, at most.
            with contextlib.suppress(httpx.HTTPError):
                job(next(self._numbers))
            self._stop.wait(0.5)

    def _run_of_text(self, number: int) -> None:
        self._run(number, "text", "Tell me of")

    def _run_of_drawings(self, number: int) -> None:
        self._run(number, "svg", "Draw an SVG of")

    def _run(self, number: int, kind: str, what: str) -> None:
        config = {
            "name": f"Run {number}",
            "project": "Work",
            "kind": kind,
            "models": ["model-a", "model-b"],
            "judges": ["judge-one", "longer-wins"],
            # No two runs ask the same: what was answered once is not asked again.
            "prompts": [f"{what} {self._seed} x {number} x {n}." for n in range(PROMPTS)],
            "start": True,
        }
        reply = self._api.post("runs", json=config)
        if self._accepted(reply, 201):
            self._until(f"runs/{reply.json()['id']}", {"generating", "judging"})

    def _import(self, number: int) -> None:
        from tests.helpers.imports import pair, verdict, vote

        lines = "".join(
            f"{json.dumps(record)}\n"
            for n in range(ROWS)
            for record in (pair(n), verdict(n, "gpt", "AB"[n % 2]), vote(n, f"v{n % 9}", "A"))
        )
        reply = self._api.post(
            "runs/import",
            data={"name": f"Import {number}", "project": "Work"},
            files={"file": ("rows.jsonl", lines.encode())},
        )
        if self._accepted(reply, 202):
            self._until(f"imports/{reply.json()['id']}", {"waiting", "reading", "writing"})

    def _accepted(self, reply: httpx.Response, status: int) -> bool:
        if reply.status_code < 500 and reply.status_code not in (status, 429):
            self.wrong.append(f"{reply.url}: {reply.status_code} {reply.text[:300]}")
        return reply.status_code == status

    def _until(self, path: str, going_on: set[str]) -> None:
        while not self._stop.wait(0.5):
            with contextlib.suppress(httpx.HTTPError):
                reply = self._api.get(path)
                if reply.status_code == 200 and reply.json()["state"] not in going_on:
                    return

"""A voter over HTTP who does what the voting page does: vote, and fetch pairs behind the next."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode

if TYPE_CHECKING:
    from judge_eval.models import Run

_PAIR = re.compile(r'data-item="([^"]+)".*?name="ballot" value="([^"]+)"', re.DOTALL)


@dataclass
class PageVoter:
    port: int
    run: Run
    fetches: list[float] = field(default_factory=list)  # milliseconds

    def __enter__(self) -> Self:
        from django.http import HttpResponse

        from tests.makers import make_voter
        from voting.people.voters import remember

        identity = next(iter(remember(HttpResponse(), make_voter(self.run)).cookies.values()))
        self._link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self._headers = {"Cookie": f"{identity.key}={identity.coded_value}", "HX-Request": "true"}
        page, headers = self._ask("GET", "")
        csrf = re.search(r"csrftoken=(\w+)", headers["Set-Cookie"] or "")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        if csrf is None or token is None:
            raise RuntimeError("the voting page has no CSRF token")
        self._headers["Cookie"] += f"; csrftoken={csrf[1]}"
        self._token = token[1]
        self._held = dict(_PAIR.findall(page))
        return self

    def __exit__(self, *error: object) -> None:
        self._link.close()

    def vote(self, number: int) -> None:
        """Vote on the pair on the screen; after every second vote, fetch what is behind."""
        from django.conf import settings

        pair = next(iter(self._held))
        choice = "left" if number % 3 else "right"
        fields = {"csrfmiddlewaretoken": self._token, "ballot": self._held.pop(pair)}
        self._ask("POST", "ballot", urlencode(fields | {"choice": choice, "elapsed_ms": "1234"}))
        if len(self._held) < settings.PAIRS_HELD - 1:
            self.fetch()

    def fetch(self) -> None:
        started = time.perf_counter()
        page, headers = self._ask("GET", f"pairs?have={','.join(self._held)}")
        self.fetches.append((time.perf_counter() - started) * 1000)
        first = next(iter(self._held), None)
        for pair in _gone(headers):
            if pair != first:
                self._held.pop(pair, None)
        self._held |= dict(_PAIR.findall(page))

    def _ask(self, method: str, path: str, body: str = "") -> tuple[str, http.client.HTTPMessage]:
        form = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        self._link.request(
            method, f"/vote/{self.run.queue_id}/{path}", body or None, self._headers | form
        )
        reply = self._link.getresponse()
        text = reply.read().decode()
        if reply.status != 200:
            raise RuntimeError(f"{method} {path} was answered {reply.status}: {text[:300]}")
        return text, reply.headers


def _gone(headers: http.client.HTTPMessage) -> Iterable[str]:
    return json.loads(headers["HX-Trigger"] or "{}").get("gone", {}).get("pairs", [])

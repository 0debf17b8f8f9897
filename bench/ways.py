"""How many files and functions of ours one request enters: what a stranger reads to follow it.

Each is asked twice, and the second time is counted: what an import or a first request does once is
no part of the way. A function counts once, however often it is called.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Self

from bench.lib.pages import prepare
from bench.lib.report import note

if TYPE_CHECKING:
    from django.test import Client

ROOT = Path(__file__).parents[1]
APPS = tuple(str(ROOT / app) for app in ("humanjudge", "voting", "judge_eval", "reports"))
PAGES = {
    "board": "run",
    "people": "run-people",
    "pairs": "run-pairs",
    "workshop": "run-workshop",
    "webhooks": "webhooks",
}
AIMS = {"board": "24 and 120", "people": "18 and 60", "pairs": "18 and 60", "workshop": "18 and 60"}
AIMS |= {
    "gate": "17 and 37",
    "voting page": "22 and 87",
    "vote": "11 and 30",
    "webhooks": "10 and 24",
}
AIMS |= {"import of 30 rows": "35 and 200"}


class Way:
    """Notes which of our functions are entered while it is followed."""

    def __init__(self) -> None:
        self.entered: set[CodeType] = set()

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(APPS):
            self.entered.add(frame.f_code)

    @property
    def functions(self) -> list[CodeType]:
        """Those with a name: what is written within one belongs to it."""
        return [code for code in self.entered if not code.co_name.startswith("<")]

    @property
    def files(self) -> set[str]:
        return {code.co_filename for code in self.functions}


def follow(name: str, request: Callable[[], object]) -> None:
    request()
    with Way() as way:
        request()
    aim = f" (aim {AIMS[name]})" if name in AIMS else ""
    print(f"{name}: {len(way.files)} files, {len(way.functions)} functions{aim}", flush=True)
    if os.environ.get("WAYS") == name:
        for code in sorted(way.functions, key=lambda code: (code.co_filename, code.co_qualname)):
            note(f"{code.co_filename.removeprefix(f'{ROOT}/')} {code.co_qualname}")


def main() -> None:
    with tempfile.TemporaryDirectory() as data:
        os.environ |= {"DATABASE_URL": "", "HUMANJUDGE_DATA": data, "SECRET_KEY": "bench" * 10}
        os.environ["REDIS_URL"] = "redis://127.0.0.1:1"
        prepare()
        follow_requests()


def follow_requests() -> None:
    from django.conf import settings

    from judge_eval.board.filters import TUNING_HALF
    from judge_eval.models import Run
    from tests.helpers.every_page import EveryPage
    from tests.helpers.run_findings import compute, voted_run
    from tests.makers import key_client, make_key

    settings.ALLOWED_HOSTS = ["testserver", *settings.ALLOWED_HOSTS]
    pages = EveryPage()
    compute(Run.objects.get(pk=pages.of_pages["run-workshop"]["run_id"]), str(TUNING_HALF))
    addresses = pages.addresses()
    for name, view in PAGES.items():
        follow(name, partial(succeed, pages.client, addresses[view]))
    gate = f"/api/runs/{voted_run().pk}/gate?judge=near-judge&min_agreement=0.5"
    follow("gate", partial(succeed, key_client(make_key("read")[1]), gate))
    follow_votes()
    follow_imports()


def succeed(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)


def follow_votes() -> None:
    """Follow the page on which one votes, and a vote."""
    from tests.helpers.pages import post_vote
    from tests.makers import make_run, make_voter, pairs_of, voter_client

    run = make_run(pairs=6)
    voter = make_voter(run)
    client, pairs = voter_client(voter), iter(pairs_of(run))
    follow("voting page", lambda: client.get(f"/vote/{run.queue_id}/"))
    follow("vote", lambda: post_vote(client, voter, next(pairs)))


def follow_imports() -> None:
    from tests.helpers.imports import imported, study

    rows = study(range(8), voters=2)[:30]
    follow("import of 30 rows", lambda: imported(*rows))


if __name__ == "__main__":
    main()

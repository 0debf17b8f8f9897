"""People and scripts who vote over HTTP all the while, and remember what they were told.

Each sends a vote until it is acknowledged, whatever happens meanwhile. Now and then one repeats a
vote, changes its mind (which is refused with 409), or forges a ballot (422).
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

import httpx

from tests.process.http_voter import HttpVoter

if TYPE_CHECKING:
    from tests.helpers.scene import Scene

# About 20 votes a second of eight people.
PAUSE_SECONDS = 0.35
# What a server answers that is starting, full, or without its database.
NOT_NOW = (429, 500, 502, 503, 504)


@dataclass
class Told:
    """What one voter was told: acknowledged votes by number, and what was refused."""

    acknowledged: dict[UUID, tuple[UUID, str]] = field(default_factory=dict)
    items: set[UUID] = field(default_factory=set)
    failures: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    # The clock of this process, which nobody steps.
    last_at: float = 0.0
    last: UUID | None = None

    def acknowledge(self, uid: UUID, item: UUID, choice: str, sent_at: float) -> None:
        if uid in self.acknowledged or item in self.items:
            self.wrong.append(f"{item} was offered or acknowledged twice")
        self.acknowledged[uid] = item, choice
        self.items.add(item)
        self.last_at, self.last = sent_at, uid


class Voter(ABC):
    def __init__(self, url: str, seed: int, stop: threading.Event) -> None:
        self.url, self.stop = url, stop
        self.dice = random.Random(seed)
        self.told = Told()
        self.is_out_of_work = False

    @abstractmethod
    def join(self) -> None: ...

    @abstractmethod
    def vote_on_some(self) -> Iterator[None]: ...

    def run(self) -> None:
        """Vote until told to stop; a vote that was begun is sent until it is acknowledged."""
        try:
            self.join()
            while not self.stop.is_set():
                before = len(self.told.acknowledged)
                for _ in self.vote_on_some():
                    if self.stop.wait(self.dice.uniform(0, 2 * PAUSE_SECONDS)):
                        return
                self.is_out_of_work = len(self.told.acknowledged) == before
                if self.is_out_of_work and self.stop.wait(1):
                    return
        except Exception as error:  # noqa: BLE001  a voter who is gone must not go unnoticed
            self.told.wrong.append(f"a voter broke off: {error!r}")

    def patiently(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        while True:
            try:
                reply = send()
                if reply.status_code not in NOT_NOW:
                    return reply
            except httpx.HTTPError as error:
                if isinstance(error, httpx.HTTPStatusError) and (
                    error.response.status_code not in NOT_NOW
                ):
                    raise
            self.told.failures += 1
            time.sleep(0.1)

    def refused(self, reply: httpx.Response, status: int, what: str) -> None:
        if reply.status_code == status:
            self.told.refused += 1
        else:
            self.told.wrong.append(f"{what}: {reply.status_code} {reply.text[:200]}")


class Script(Voter):
    """Votes with a key of the API."""

    def __init__(self, url: str, seed: int, stop: threading.Event, run: UUID, key: str) -> None:
        super().__init__(url, seed, stop)
        self.api = httpx.Client(
            base_url=f"{url}/api/runs/{run}/judge-eval/",
            headers={"Authorization": f"Bearer {key}"},
            timeout=90,
        )

    def join(self) -> None:
        pass

    def vote_on_some(self) -> Iterator[None]:
        pending = self.patiently(lambda: self.api.get("pending", params={"limit": 40}))
        for task in pending.json()["tasks"]:
            self._vote(UUID(task["id"]), self.dice.choice("AB"))
            yield

    def _vote(self, item: UUID, choice: str) -> None:
        sent_at = time.monotonic()
        reply = self.patiently(lambda: self._send(item, choice))
        if reply.status_code != 200:
            self.told.wrong.append(f"a vote: {reply.status_code} {reply.text[:200]}")
            return
        uid = UUID(reply.json()["vote_id"])
        self.told.acknowledge(uid, item, choice, sent_at)
        event = self.dice.random()
        if event < 0.1:
            again = self.patiently(lambda: self._send(item, choice)).json()
            if (again.get("vote_id"), again.get("repeated")) != (str(uid), True):
                self.told.wrong.append(f"a repeated vote: {again}")
        elif event < 0.2:
            other = {"A": "B", "B": "A"}[choice]
            self.refused(self.patiently(lambda: self._send(item, other)), 409, "another choice")

    def _send(self, item: UUID, choice: str) -> httpx.Response:
        return self.api.post("vote", json={"task_id": str(item), "winner": choice})


class Person(Voter):
    """Votes on the voting page."""

    def __init__(self, url: str, seed: int, stop: threading.Event, invite: str) -> None:
        super().__init__(url, seed, stop)
        self.invite = invite

    def join(self) -> None:
        while not hasattr(self, "page"):
            try:
                self.page = HttpVoter(self.url, self.invite)
            except (httpx.HTTPError, TypeError):  # a page of an error has no token
                time.sleep(0.2)
        self.page.client.timeout = httpx.Timeout(90)

    def vote_on_some(self) -> Iterator[None]:
        from voting.ballot import signed_form

        for token in self._ballots():
            ballot = signed_form.read(token)
            side = self.dice.choice(["left", "right"])
            chosen = ballot.left if side == "left" else {"A": "B", "B": "A"}[ballot.left]
            self._vote(token, side, ballot.uid, ballot.item, chosen)
            yield

    def _vote(self, token: str, side: str, uid: UUID, item: UUID, chosen: str) -> None:
        if self.dice.random() < 0.1:
            forged = f"{token[:-1]}{'x' if token[-1] != 'x' else 'y'}"
            self.refused(self.patiently(lambda: self._send(forged, side)), 422, "a forged ballot")
        sent_at = time.monotonic()
        reply = self.patiently(lambda: self._send(token, side))
        if reply.status_code != 200:
            self.told.wrong.append(f"a vote: {reply.status_code} {reply.text[:200]}")
            return
        self.told.acknowledge(uid, item, chosen, sent_at)

    def _ballots(self) -> list[str]:
        while True:
            try:
                return self.page.ballots()
            except httpx.HTTPError:
                self.told.failures += 1
                time.sleep(0.1)

    def _send(self, token: str, side: str) -> httpx.Response:
        return self.page.vote(token, side, timeout=90)


class People:
    """All who vote on one run, each in a thread."""

    def __init__(self, scene: Scene, url: str, seed: int, *, scripts: int = 5, persons: int = 3):
        from tests.makers import make_invite, make_key
        from voting.people.voters import invite_token

        self._stop = threading.Event()
        invite = f"/join/{invite_token(make_invite(scene.run))}/"
        self.voters: list[Voter] = [
            Person(url, seed + n, self._stop, invite) for n in range(persons)
        ]
        for n in range(scripts):
            key = make_key("read", "vote", project=scene.project)[1]
            self.voters.append(Script(url, seed + persons + n, self._stop, scene.run.pk, key))
        self._threads = [threading.Thread(target=voter.run, daemon=True) for voter in self.voters]
        for thread in self._threads:
            thread.start()

    @property
    def number(self) -> int:
        return sum(len(voter.told.acknowledged) for voter in self.voters)

    def voted_since(self, moment: float) -> UUID | None:
        """Return a vote that was sent after this moment and acknowledged."""
        for voter in self.voters:
            if voter.told.last_at > moment:
                return voter.told.last
        return None

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(300)

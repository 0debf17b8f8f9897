"""What one crew learns of providers from answers: how fast they are, and when to leave them alone.

It is a model that is left alone and not its provider: limits are for a model as a rule, and other
models answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge_eval.models import Provider
from judge_eval.providers.chat import ChatReply
from judge_eval.runs import limits
from judge_eval.runs.requests import Asked
from judge_eval.runs.results import Answer, least_wait

# Twice as long as answers are gathered, written down, and new calls claimed.
HORIZON_MS = 1500.0
MOST_ASIDE = 512
# One refusal among replies is that call's own affair.
IN_A_ROW = 3


class Pace:
    """What one crew has heard since it last claimed."""

    def __init__(self, hands: int) -> None:
        self._hands = hands
        self._replies: dict[str, list[ChatReply]] = defaultdict(list)
        self._providers: dict[str, Provider] = {}

    def hear(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            provider = answer.question.provider
            if answer.reply is not None:
                self._replies[provider.name].append(answer.reply)
                self._providers[provider.name] = provider

    def begin(self) -> None:
        """Forget what was heard: it has been claimed for."""
        self._replies.clear()

    def ahead(self, out: Mapping[str, int]) -> Counter[str]:
        """Return how many calls to have aside: as many as are answered until the horizon.

        So many are out of each provider; those that were answered just now have free places.
        """
        return Counter(
            {
                name: self._of(name, replies, out.get(name, 0) + len(replies))
                for name, replies in self._replies.items()
            }
        )

    def _of(self, name: str, replies: Sequence[ChatReply], places: int) -> int:
        at_once = min(places, self._hands, self._providers[name].concurrency)
        each_ms = sum(reply.latency_ms for reply in replies) / len(replies)
        return int(min(at_once * HORIZON_MS / max(each_ms, 1.0), MOST_ASIDE))


@dataclass
class _Standing:
    # Since its last reply.
    refusals: int = 0
    pauses: int = 0
    until: float = 0.0
    # It was told how long to wait, since its last reply.
    was_told: bool = False


class Backoff:
    """What one crew has heard of the models it asks lately."""

    def __init__(self) -> None:
        self._standings: dict[Asked, _Standing] = defaultdict(_Standing)

    def hear(self, answers: Sequence[Answer], now: float) -> dict[Asked, float]:
        """Take note of answers; return who is to be left alone from now, for how many seconds.

        Each pause without a reply since the last one is longer, as a call's own waits are.
        """
        told: dict[Asked, float] = {}
        for answer in answers:
            self._note(answer, now, told)
        pauses = {}
        for asked, seconds in told.items():
            standing = self._standings[asked]
            pauses[asked] = seconds if standing.was_told else min(seconds, limits.LONGEST_AT_FIRST)
            standing.was_told = True
            standing.until = now + pauses[asked]
        for asked, standing in self._standings.items():
            if standing.refusals >= IN_A_ROW:
                standing.pauses += 1
                pauses[asked] = max(pauses.get(asked, 0.0), least_wait(standing.pauses))
                standing.until = now + pauses[asked]
                # The first refusal after it begins the next.
                standing.refusals = IN_A_ROW - 1
        return pauses

    def _note(self, answer: Answer, now: float, told: dict[Asked, float]) -> None:
        asked, failure = answer.question.asked, answer.failure
        if answer.reply is not None and answer.stored is None:
            self._standings.pop(asked, None)
        elif failure is None or now < self._standings[asked].until:
            return  # calls that were out already tell nothing new
        elif failure.retry_after is not None:
            told[asked] = max(told.get(asked, 0.0), failure.retry_after)
        elif failure.is_limit:
            self._standings[asked].refusals += 1

"""How fast providers answer one crew, and so how many calls it sets aside for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from judge_eval.models import Provider
from judge_eval.providers.chat import ChatReply
from judge_eval.runs.results import Answer

# Twice as long as answers are gathered, written down, and new calls claimed.
HORIZON_MS = 1500.0
MOST_ASIDE = 512


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

"""How fast providers answer one crew, and so how many calls it sets aside for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from judge_eval.endpoints.chat import ChatReply
from judge_eval.engine.outcomes import Answer
from judge_eval.models import Provider

# Twice as long as it takes to write down what came and to claim what is next.
HORIZON_MS = 750.0
MOST_ASIDE = 192


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

    def ahead(self) -> Counter[str]:
        """Return how many calls to have aside: as many as are answered until the horizon.

        Where answers come slowly the database is in no hurry, and all calls are everybody's.
        """
        return Counter({name: self._of(name, replies) for name, replies in self._replies.items()})

    def _of(self, name: str, replies: Sequence[ChatReply]) -> int:
        at_once = min(len(replies), self._hands, self._providers[name].concurrency)
        each_ms = sum(reply.latency_ms for reply in replies) / len(replies)
        return int(min(at_once * HORIZON_MS / max(each_ms, 1.0), MOST_ASIDE))

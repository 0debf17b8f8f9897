"""How long a provider is left alone that is asked too much and does not say until when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from judge_eval.engine.outcomes import Answer, least_wait

# One refusal among replies is that call's own affair.
IN_A_ROW = 3


@dataclass
class _Standing:
    # Since its last reply.
    refusals: int = 0
    pauses: int = 0
    until: float = 0.0


class Backoff:
    """What one crew has heard of its providers lately."""

    def __init__(self) -> None:
        self._standings: dict[str, _Standing] = defaultdict(_Standing)

    def hear(self, answers: Sequence[Answer], now: float) -> dict[str, float]:
        """Take note of answers; return who is to be left alone from now, for how many seconds.

        Each pause without a reply since the last one is longer, as a call's own waits are.
        """
        for answer in answers:
            self._note(answer, now)
        pauses = {}
        for name, standing in self._standings.items():
            if standing.refusals >= IN_A_ROW:
                standing.pauses += 1
                pauses[name] = least_wait(standing.pauses)
                standing.until = now + pauses[name]
                # The first refusal after it begins the next.
                standing.refusals = IN_A_ROW - 1
        return pauses

    def _note(self, answer: Answer, now: float) -> None:
        name, failure = answer.question.provider.name, answer.failure
        if answer.reply is not None and answer.stored is None:
            self._standings.pop(name, None)
        elif failure is None or not failure.is_limit or failure.retry_after is not None:
            return
        elif now >= self._standings[name].until:  # calls that were out already tell nothing new
            self._standings[name].refusals += 1

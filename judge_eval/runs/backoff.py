"""How long a model is left alone that is asked too much.

It is the model and not its provider: limits are for a model as a rule, and other models answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from judge_eval.runs import limits
from judge_eval.runs.requests import Asked
from judge_eval.runs.results import Answer, least_wait

# One refusal among replies is that call's own affair.
IN_A_ROW = 3


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

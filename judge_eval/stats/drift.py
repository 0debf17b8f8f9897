"""Has a judge changed? The same question asked twice, weighed so that one may look every day.

An anchor is an item with votes of people. Its answers of a freezing are asked anew once the judge
was chosen: of twenty judges the best on some items falls back on them by itself. Later an anchor is
asked again, once in each freezing, and brings how much more often the judge is right now than when
it was frozen. If nothing has changed, both answers are drawn alike, so each difference is as often
above 0 as below, whatever was seen before: bets on either sign have an expectation of at most 1,
through all freezings. See `evidence`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, TypeAlias

import numpy as np

from judge_eval.stats.bootstrap import FloatArray
from judge_eval.stats.estimate import SIGNIFICANCE
from judge_eval.stats.evidence import log_wealth

# Two bets share the error.
THRESHOLD: Final = 2 / SIGNIFICANCE
_TOLERANCE: Final = 1e-9
Direction: TypeAlias = Literal["worse", "better", ""]


@dataclass(frozen=True, slots=True)
class Drift:
    """What anchors that were asked again say; without a direction nothing is said to have changed.

    `at` is the place of the anchor that settled it. The evidence is the largest so far.
    """

    direction: Direction
    at: int | None
    worse: float
    better: float


def drift(differences: Sequence[float]) -> Drift:
    """Weigh differences in [-1, 1], in the order in which anchors were asked again.

    Examples
    --------
    >>> drift([-1] * 7).direction, drift([-1] * 8).direction, drift([-1] * 9).at
    ('', 'worse', 7)
    >>> drift([0, 1 / 3, -1 / 3] * 50).direction, round(drift([1] * 5).better, 1)
    ('', 10.5)
    """
    [worse, better] = largest_evidence(np.array([[-d, d] for d in differences]).reshape(-1, 2)).T
    reached = [
        (int(np.argmax(each >= THRESHOLD - _TOLERANCE)), name)
        for each, name in ((worse, "worse"), (better, "better"))
        if len(each) and each[-1] >= THRESHOLD - _TOLERANCE
    ]
    at, direction = min(reached, default=(None, ""))
    ends = [float(each[-1]) if len(each) else 1.0 for each in (worse, better)]
    return Drift(direction, at, *ends)  # type: ignore[arg-type]  # one of the two names


def largest_evidence(bets: FloatArray) -> FloatArray:
    """Return the largest evidence so far after each bet, shape (n_bets, n) as theirs."""
    logs = np.maximum(np.maximum.accumulate(log_wealth(bets), axis=0), 0) if len(bets) else bets
    return np.asarray(np.exp(np.minimum(logs, 700)))


def share_right(votes: Sequence[str], answer: str) -> float:
    """Return the share of an item's votes that an answer equals; no answer equals none.

    Examples
    --------
    >>> share_right(["A", "B", "A"], "A"), share_right(["A", "B", "A"], "")
    (0.6666666666666666, 0.0)
    """
    return votes.count(answer) / (len(votes) or 1)


def draw(key: str, freezing: int, anchors: Iterable[str], used: Iterable[str], n: int) -> list[str]:
    """Return the next anchors of a freezing: each once, in an order that a keyed hash settles.

    Examples
    --------
    >>> first = draw("judge", 1, "abcdef", [], 4)
    >>> sorted(first + draw("judge", 1, "abcdef", first, 4)) == [*"abcdef"]
    True
    >>> draw("judge", 1, "fedcba", [], 4) == first, draw("judge", 2, "abcdef", [], 6)[:4] == first
    (True, False)
    """
    left = {*anchors} - {*used}
    return sorted(left, key=lambda anchor: sha256(f"{key} {freezing} {anchor}".encode()).digest())[
        :n
    ]

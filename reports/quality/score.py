"""The time-weighted quality score of a project: each batch of votes moves it, time alone does not.

Sources: [HJ] HumanJudge scoring page, [GJ] GrandJury (arXiv 2508.02926). What they call lambda is
`rate` here, and their alpha `decay`. Imports no numpy: see `reports.quality.closed_form`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import exp, log
from statistics import median
from typing import Final, Literal, NamedTuple, TypeAlias

from voting.items.choices import PASSES_FROM

Unit: TypeAlias = Literal["second", "hour", "day"]
SECONDS: Final[dict[Unit, int]] = {"second": 1, "hour": 3600, "day": 86_400}
MICROSECONDS: Final = 1_000_000

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class ScoreStep(NamedTuple):
    """What one batch does to a score; `mean_vote` is None where there was no vote."""

    decay: float
    mean_vote: float | None
    score: float
    freshness: float


def step(
    previous: float,
    elapsed: float,
    rate: float,
    votes: Sequence[float],
    reputations: Sequence[float] | None = None,
) -> ScoreStep:
    """Return the score after one batch of votes.

    ``decay = exp(-rate * elapsed)``, ``score = decay * previous + (1 - decay) * mean_vote`` and
    ``freshness = 1 - decay``, where `mean_vote` is weighted by the reputations [HJ][GJ].

    Parameters
    ----------
    previous
        The score before, in [0, 1].
    elapsed
        Time since the previous batch, not negative, in the unit of `rate`.
    rate
        lambda, above 0, per second, hour or day.
    votes
        Shape (n,), in [0, 1]. Without any nothing moves: the freshness is 0.
    reputations
        Shape (n,), above 0; 1 for all where none are given.

    Raises
    ------
    ValueError
        For values outside these ranges and for unequal lengths.

    Examples
    --------
    >>> [round(each, 6) for each in step(0.50, 7, 0.01, [0.0])]
    [0.932394, 0.0, 0.466197, 0.067606]
    >>> [round(each, 6) for each in step(0.72, 3, 0.1, [0.9, 0.8, 0.6])]
    [0.740818, 0.766667, 0.732095, 0.259182]
    """
    weights = [1.0] * len(votes) if reputations is None else reputations
    _require(len(weights) == len(votes), f"{len(weights)} reputations for {len(votes)} votes")
    _require(all(0 <= vote <= 1 for vote in votes), "a vote is outside [0, 1]")
    _require(all(weight > 0 for weight in weights), "a reputation is not above 0")
    _require(0 <= previous <= 1, "the previous score is outside [0, 1]")
    _require(elapsed >= 0 and rate > 0, "time runs forward, and the rate is above 0")
    if not votes:
        return ScoreStep(1.0, None, previous, 0.0)
    decay = exp(-rate * elapsed)
    mean = sum(w * v for w, v in zip(weights, votes, strict=True)) / sum(weights)
    return ScoreStep(decay, mean, decay * previous + (1 - decay) * mean, 1 - decay)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def half_life(rate: float, unit: Unit) -> float:
    """Return after how many seconds a score weighs half, once a batch comes.

    Examples
    --------
    >>> round(half_life(0.01, "second"), 1), round(half_life(0.1, "day") / 86_400, 2)
    (69.3, 6.93)
    """
    return log(2) / rate * SECONDS[unit]


def start_weight(begins: datetime, last: datetime, half_life: float) -> float:
    """Return how much of a score is its start value still, behind the last vote.

    Examples
    --------
    >>> start_weight(_EPOCH, _EPOCH + timedelta(days=2), half_life=86_400.0)
    0.25
    """
    return float(0.5 ** ((last - begins).total_seconds() / half_life))


def median_gap(times: Sequence[int]) -> float | None:
    """Return the median time between neighbours, in seconds; None for fewer than two times.

    `times` are microseconds, in order.

    Examples
    --------
    >>> median_gap([0, 1_000_000, 5_000_000, 8_000_000]), median_gap([7])
    (3.0, None)
    """
    gaps = [after - before for before, after in pairwise(times)]
    return median(gaps) / MICROSECONDS if gaps else None


def microseconds(moment: datetime) -> int:
    """Return an aware time as microseconds since 1970: equal times are equal numbers.

    Examples
    --------
    >>> microseconds(datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC))
    2000000
    """
    return (moment - _EPOCH) // _MICROSECOND


def time_of(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


@dataclass(frozen=True, slots=True)
class Rule:
    """How votes are folded: the score before the first, lambda, and when a batch is over.

    `rate` is per `unit`; a vote less than `window` behind the opening of a batch joins it, and
    with 0 only a vote of the same time. `start` is when the project was made. Times are
    microseconds.
    """

    initial: float
    rate: float
    unit: Unit = "second"
    window: int = 0
    start: int = 0

    @property
    def per_microsecond(self) -> float:
        return self.rate / (SECONDS[self.unit] * MICROSECONDS)


class WeightedVote(NamedTuple):
    """When a vote was cast (microseconds), its number in the ledger, its worth and its weight."""

    cast_at: int
    seq: int
    worth: float
    reputation: float


@dataclass(slots=True)
class FoldState:
    """Where the fold stands behind some votes: all that the next one needs.

    The last batch is still open: `before` is the score that it found, `opened` when it began, and
    `weight` and `worth` are the sums of its reputations, and of its reputations times votes.

    Examples
    --------
    Four votes at one time, 7 s after the start, are one batch:

    >>> rule = Rule(initial=0.5, rate=0.01)
    >>> standing = FoldState(rule.initial)
    >>> fold = folding(rule)
    >>> for seq, worth in enumerate((1, 0, 0, 1), start=1):
    ...     fold(standing, WeightedVote(7_000_000, seq, worth, 1.0))
    >>> standing.score, round(standing.freshness, 6), standing.votes, standing.passes
    (0.5, 0.067606, 4, 2)
    """

    before: float
    decay: float = 1.0
    opened: int = 0
    weight: float = 0.0
    worth: float = 0.0
    # The last vote, and how many there are.
    at: int = 0
    seq: int = 0
    votes: int = 0
    passes: int = 0

    @property
    def score(self) -> float:
        if not self.votes:
            return self.before
        return self.decay * self.before + (1 - self.decay) * self.worth / self.weight

    @property
    def freshness(self) -> float:
        return 1 - self.decay

    @property
    def place(self) -> tuple[int, int]:
        return self.at, self.seq


def folding(rule: Rule) -> Callable[[FoldState, WeightedVote], None]:
    """Return what counts a vote: it must stand behind those counted, by time and then number.

    The time of the first batch runs from the start of the project; a vote that is older than its
    project begins it, and no time has passed before it.
    """
    rate, window = rule.per_microsecond, rule.window

    def count(state: FoldState, vote: WeightedVote) -> None:
        cast_at, seq, worth, reputation = vote
        passed = cast_at - state.opened
        if state.votes and (passed < window or passed == 0):
            state.weight += reputation
            state.worth += reputation * worth
        else:
            if not state.votes:
                passed = max(0, cast_at - rule.start)
            state.before = state.score
            state.decay = exp(-rate * passed)
            state.opened = cast_at
            state.weight, state.worth = reputation, reputation * worth
        state.at, state.seq = cast_at, seq
        state.votes += 1
        state.passes += worth >= PASSES_FROM

    return count

"""What may be claimed of judges: who beats whom, and how far from it the others are.

Made of `evidence` and overall agreement, and of nothing else; words, ranks and letters follow it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray
from judge_eval.stats.bradley_terry import tie_groups
from judge_eval.stats.confidence_sequence import always_valid, practically_same
from judge_eval.stats.entering import Entered, Opened, enter
from judge_eval.stats.estimate import SIGNIFICANCE
from judge_eval.stats.evidence import (
    LEADS,
    beats,
    evidence,
    forecast,
    rank_range,
    thresholds,
    too_few_prompts,
)
from judge_eval.stats.outcomes_table import NOT_ASKED

# Evidence beyond this is not told apart, and could be more than a float holds.
MOST_EVIDENCE: Final = 1e15
Votes: TypeAlias = list[list[int | None]]
# How the judge of a row stands to that of a column, where it agrees at least as often.
Standing: TypeAlias = Literal["beats", "both ways", "per prompt", "behind per prompt", "leads", ""]


@dataclass(frozen=True, eq=False, slots=True)
class Claims:
    """What may be said of J judges; matrices of shape (J, J) say it of row against column.

    ``beats`` is said in words: of judges among themselves, and of judges over baselines. `reached`
    tells where the `evidence`, the largest so far, is enough for it; `evidence_now` is that of this
    moment. ``forecast`` is how many more votes it takes, 0 where it is enough, None where more
    votes will not settle it or nothing is claimed; `since` is the entry of the ledger since which
    it is said. ``same`` are practically the same. `always`, of shape (J, 2), are intervals of
    overall agreement that hold however often one looks. `threshold` is for judges among themselves,
    `floor_threshold` for baselines; None where there are none. `best` is the place of the judge
    that is said to beat every other.
    """

    is_baseline: BoolArray
    beats: BoolArray
    reached: BoolArray
    evidence: FloatArray
    evidence_now: FloatArray
    forecast: Votes
    since: Votes
    same: BoolArray
    always: FloatArray
    threshold: float | None
    floor_threshold: float | None
    prompts: int
    entered: int
    votes: int
    votes_left: int
    best: int | None
    too_few_prompts: str | None

    def ranks(self) -> list[tuple[int, int] | None]:
        """Return the best and the worst rank of every judge, None of a baseline."""
        judges = np.flatnonzero(~self.is_baseline).tolist()
        ranks = dict(zip(judges, rank_range(self.beats[np.ix_(judges, judges)]), strict=True))
        return [ranks.get(n) for n in range(len(self.is_baseline))]

    def letters(self, order: Sequence[int]) -> list[str]:
        """Return letters that judges share where neither is said to beat the other.

        Of those in `order`, which is that of the table; the others, and baselines, have none.
        """
        judges = [n for n in order if not self.is_baseline[n]]
        return tie_groups(self.beats | self.beats.T, judges)

    def beats_floor(self) -> list[bool | None]:
        """Tell who is said to beat every baseline; None of these, and where there is none."""
        floor = self.is_baseline
        above = np.asarray(self.beats[:, floor].all(axis=1))
        return [bool(above[n]) if floor.any() and not floor[n] else None for n in range(len(floor))]

    def standing(self, one: int, other: int) -> Standing:
        """Say how a judge stands to one that agrees no more often than it.

        Examples
        --------
        >>> from judge_eval.stats.entering import Opened, Voted, enter
        >>> said = [Opened(n, n, n, 1, [0, n % 3 // 2]) for n in range(12)]
        >>> entered = enter([*said, *(Voted(12 + n, n, 0) for n in range(12))], range(12))
        >>> found = claims(entered, np.array([False, False]), np.array([1.0, 0.67]), 12)
        >>> found.standing(0, 1), found.forecast[0][1], found.evidence[0, 1].round(1)
        ('leads', 9, np.float64(6.2))
        """
        if self.beats[one, other]:
            return "beats"
        if self.reached[one, other] and self.reached[other, one]:
            return "both ways"
        if self.reached[other, one] or self.evidence_now[other, one] >= LEADS:
            return "behind per prompt"
        if self.reached[one, other]:
            return "per prompt"
        return "leads" if self.evidence_now[one, other] >= LEADS else ""


def claims(
    entered: Entered,
    is_baseline: BoolArray,
    agreement: FloatArray,
    prompts: int,
    votes_left: int = 0,
) -> Claims:
    """Put together what may be claimed of judges.

    `is_baseline` and `agreement`, the overall one with NaN where there is none, have shape (J,).
    The run has so many `prompts`, and its comparisons still want so many votes.

    Examples
    --------
    Two judges over 20 prompts: one is right on all of them, the other on none.

    >>> from judge_eval.stats.entering import Opened, Voted, enter
    >>> said = [Opened(n, n, n, 1, [0, 1]) for n in range(20)]
    >>> entered = enter([*said, *(Voted(20 + n, n, 0) for n in range(20))], range(20))
    >>> found = claims(entered, np.array([False, False]), np.array([1.0, 0.0]), 20)
    >>> found.beats.tolist(), found.best, found.threshold, found.since
    ([[False, True], [False, False]], 0, 40.0, [[None, 27], [None, None]])
    >>> found.ranks(), found.letters([0, 1])
    ([(1, 1), (2, 2)], ['a', 'b'])
    """
    judges, floor = int((~is_baseline).sum()), int(is_baseline.sum())
    if not entered.n_judges:  # nothing has been opened
        entered = enter([Opened(0, 0, 0, 1, [NOT_ASKED] * len(is_baseline))], [0])
    needed = thresholds(is_baseline)
    found = evidence(entered, needed)
    # Where no votes are wanted, or none of this part, a prompt enters without any.
    voted = entered.most_votes > 0
    votes = (entered.right[voted], entered.votes[voted], entered.most_votes[voted])
    said = beats(found.reached, agreement)
    threshold = judges * (judges - 1) / SIGNIFICANCE or None
    floor_threshold = judges * floor / SIGNIFICANCE or None
    return Claims(
        is_baseline=is_baseline,
        beats=said,
        reached=found.reached,
        evidence=np.exp(np.minimum(found.log_largest, np.log(MOST_EVIDENCE))),
        evidence_now=np.exp(np.minimum(found.log_now, np.log(MOST_EVIDENCE))),
        forecast=_forecast(np.log(needed), found.log_largest, found.growth),
        since=[
            [seq if yes else None for seq, yes in zip(*row, strict=True)]
            for row in zip(found.since.tolist(), said.tolist(), strict=True)
        ],
        same=practically_same(entered, is_baseline),
        always=always_valid(*votes),
        threshold=threshold,
        floor_threshold=floor_threshold,
        prompts=prompts,
        entered=len(entered.prompts),
        votes=entered.all_votes,
        votes_left=votes_left,
        best=_best(said, is_baseline),
        too_few_prompts=too_few(prompts, judges, floor),
    )


def _forecast(needed: FloatArray, log_largest: FloatArray, growth: FloatArray) -> Votes:
    return [
        [forecast(*cell) if np.isfinite(cell[0]) else None for cell in zip(*row, strict=True)]
        for row in zip(needed.tolist(), log_largest.tolist(), growth.tolist(), strict=True)
    ]


def _best(said: BoolArray, is_baseline: BoolArray) -> int | None:
    judges = np.flatnonzero(~is_baseline)
    if len(judges) < 2:
        return None
    beaten = said[:, judges].sum(axis=1)
    return next((n for n in judges.tolist() if beaten[n] == len(judges) - 1), None)


def too_few(prompts: int, judges: int, baselines: int) -> str | None:
    """Say that a run of so many prompts cannot tell its judges apart, whatever the votes.

    Examples
    --------
    >>> print(too_few(7, judges=2, baselines=1))
    7 prompts are too few to tell judges apart: add prompts rather than pairs.
    >>> too_few(8, judges=2, baselines=1)
    """
    if judges > 1 and too_few_prompts(prompts, judges * (judges - 1) / SIGNIFICANCE):
        what = "judges apart"
    elif judges == 1 and baselines and too_few_prompts(prompts, baselines / SIGNIFICANCE):
        what = "the judge from the floor"
    else:
        return None
    number = "1 prompt is" if prompts == 1 else f"{prompts:,} prompts are"
    return f"{number} too few to tell {what}: add prompts rather than pairs."

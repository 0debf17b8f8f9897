"""One verdict out of several answers: both orders of a pair, several samples of a call.

A judge is asked about "Output A" and "Output B", whatever stands there. What it answers is
*raw*; a raw answer to a swapped pair is unswapped before it means anything. All rules stand in
docs/scoring.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from judge_eval.prompts.parse import ParsedVerdict
from voting.choices import SWAPPED, Choice, short_name


class AllSamplesFailed(ValueError):
    """No sample of a call gave a verdict, so there is none."""


@dataclass(frozen=True, slots=True)
class Combined:
    """What a judge says of a stored comparison.

    Attributes
    ----------
    winner : {"A", "B", "tie", "both_bad"}
        Of the stored A and B.
    consistent : bool or None
        Whether both orders gave the same; None where only one was asked.
    score_a, score_b : float or None
        Of the stored A and B; None unless every order gave one.
    reason : str
    picks : tuple
        The raw winners as answered, A being what was shown first: stored order, then swapped.
    first_picks, calls : int
        How many of the picks chose what was shown first, and how many chose a side at all:
        the first is a share of the second.
    """

    winner: Choice
    consistent: bool | None
    score_a: float | None
    score_b: float | None
    reason: str
    picks: tuple[Choice, ...]
    first_picks: int
    calls: int


@dataclass(frozen=True, slots=True)
class Majority:
    """What several samples of one call say together.

    Attributes
    ----------
    winner : {"A", "B", "tie", "both_bad"}
        What more samples say than say anything else; ``tie`` where no choice leads alone.
    is_decided : bool
        Whether one choice led alone. A ``tie`` that is not decided is "no majority".
    consistency_rate : float
        Share in (0, 1] that the most frequent choice has of the samples that answered.
    score_a, score_b : float or None
        Means over the samples that gave one.
    reason : str
        Of the first sample that said the same.
    answered, failed : int
        Samples with and without a verdict.
    """

    winner: Choice
    is_decided: bool
    consistency_rate: float
    score_a: float | None
    score_b: float | None
    reason: str
    answered: int
    failed: int

    @property
    def verdict(self) -> ParsedVerdict:
        """The samples as one raw answer, to be combined with that of the other order."""
        return ParsedVerdict(self.winner, self.score_a, self.score_b, self.reason)


def swap(verdict: ParsedVerdict) -> ParsedVerdict:
    """Return the same verdict about the pair in the other order.

    Examples
    --------
    >>> swap(ParsedVerdict("A", 8.0, 6.0))
    ParsedVerdict(winner='B', score_a=6.0, score_b=8.0, reason='')
    """
    return replace(
        verdict, winner=SWAPPED[verdict.winner], score_a=verdict.score_b, score_b=verdict.score_a
    )


def picked_first(pick: str) -> bool | None:
    """Tell whether a raw pick chose what was shown first; None where it chose no side.

    Examples
    --------
    >>> picked_first("A"), picked_first("B"), picked_first("both_bad")
    (True, False, None)
    """
    return {"A": True, "B": False}.get(pick)


def combine(
    stored: ParsedVerdict, swapped: ParsedVerdict, *, is_decided_by_one: bool = False
) -> Combined:
    """Make one verdict of the answers in both orders.

    Parameters
    ----------
    stored, swapped : ParsedVerdict
        Raw answers: to the pair as it is stored, and to the pair with B shown first. An order
        that failed makes the verdict a failure, and is not brought here.
    is_decided_by_one : bool
        Whether a side in one order and a tie in the other is that side, as JudgeBench has it.

    Returns
    -------
    Combined
        What both say, if that is the same after unswapping; otherwise an inconsistent ``tie``.

    Examples
    --------
    >>> both = combine(ParsedVerdict("A", 8.0, 6.0), ParsedVerdict("B", 5.0, 9.0))
    >>> both.winner, both.consistent, both.score_a, both.score_b
    ('A', True, 8.5, 5.5)
    >>> habit = combine(ParsedVerdict("A"), ParsedVerdict("A"))
    >>> habit.winner, habit.consistent, habit.first_picks, habit.calls
    ('tie', False, 2, 2)
    >>> combine(ParsedVerdict("tie"), ParsedVerdict("A"), is_decided_by_one=True).winner
    'B'
    """
    unswapped = swap(swapped)
    consistent = stored.winner == unswapped.winner
    winner: Choice = stored.winner if consistent else "tie"
    sides = {stored.winner, unswapped.winner} - {"tie"}
    if is_decided_by_one and len(sides) == 1 and "both_bad" not in sides:
        (winner,) = sides
    reason = stored.reason
    if not consistent:
        said = f"{short_name(stored.winner)} as stored, {short_name(unswapped.winner)} when swapped"
        reason = f"Inconsistent: {said}. {reason}".rstrip()
    return Combined(
        winner=winner,
        consistent=consistent,
        score_a=_mean_of_all([stored.score_a, unswapped.score_a]),
        score_b=_mean_of_all([stored.score_b, unswapped.score_b]),
        reason=reason,
        picks=(stored.winner, swapped.winner),
        **_position(stored.winner, swapped.winner),
    )


def alone(raw: ParsedVerdict, *, was_swapped: bool) -> Combined:
    """Make a verdict of the answer in the only order that was asked.

    Examples
    --------
    >>> alone(ParsedVerdict("A", 8.0, 6.0, "A is fuller."), was_swapped=True).winner
    'B'
    """
    verdict = swap(raw) if was_swapped else raw
    # The judge's own words keep the names it was given.
    note = "Shown swapped, so its A is B here: " if was_swapped and raw.reason else ""
    return Combined(
        winner=verdict.winner,
        consistent=None,
        score_a=verdict.score_a,
        score_b=verdict.score_b,
        reason=note + raw.reason,
        picks=(raw.winner,),
        **_position(raw.winner),
    )


def answer_in(raw: Mapping[str, ParsedVerdict]) -> Combined:
    """Make a verdict of the raw answers by the orders that were asked: ``AB``, ``BA`` or both.

    Examples
    --------
    >>> answer_in({"BA": ParsedVerdict("A")}).winner
    'B'
    """
    if len(raw) == 2:
        return combine(raw["AB"], raw["BA"])
    [(order, said)] = raw.items()
    return alone(said, was_swapped=order == "BA")


def majority(samples: Sequence[ParsedVerdict | None]) -> Majority:
    """Make one raw answer of several to the same question.

    Parameters
    ----------
    samples : sequence of (ParsedVerdict or None)
        Raw answers in one order; None where a sample failed. Those are counted and left out.

    Raises
    ------
    AllSamplesFailed
        When none answered.

    Examples
    --------
    >>> most = majority([ParsedVerdict("A"), ParsedVerdict("B"), ParsedVerdict("A"), None])
    >>> most.winner, most.is_decided, round(most.consistency_rate, 3), most.failed
    ('A', True, 0.667, 1)
    >>> majority([ParsedVerdict("A"), ParsedVerdict("B")]).winner
    'tie'
    """
    answered = [sample for sample in samples if sample is not None]
    if not answered:
        raise AllSamplesFailed(f"none of {len(samples)} samples gave a verdict")
    counts = Counter(sample.winner for sample in answered).most_common()
    (winner, votes), *others = counts
    is_decided = not others or others[0][1] < votes
    if not is_decided:
        winner = "tie"
    reason = next((sample.reason for sample in answered if sample.winner == winner), "")
    if not is_decided:
        told = ", ".join(f"{short_name(choice)} {count}" for choice, count in sorted(counts))
        reason = f"No majority: {told}."
    return Majority(
        winner=winner,
        is_decided=is_decided,
        consistency_rate=votes / len(answered),
        score_a=_mean_of_given([sample.score_a for sample in answered]),
        score_b=_mean_of_given([sample.score_b for sample in answered]),
        reason=reason,
        answered=len(answered),
        failed=len(samples) - len(answered),
    )


def _position(*picks: Choice) -> dict[str, int]:
    sides = [picked_first(pick) for pick in picks]
    return {"first_picks": sides.count(True), "calls": len(sides) - sides.count(None)}


def _mean_of_all(scores: list[float | None]) -> float | None:
    """Return the mean; None where one is missing: one order alone would carry its habit in."""
    return None if None in scores else _mean_of_given(scores)


def _mean_of_given(scores: list[float | None]) -> float | None:
    given = [score for score in scores if score is not None]
    return fmean(given) if given else None

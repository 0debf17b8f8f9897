"""One verdict out of several answers: both orders of a pair, several samples of a call.

A judge is asked about "Output A" and "Output B", whatever stands there. What it answers is
*raw*; a raw answer to a swapped pair is unswapped before it means anything. A single item has one
order, the stored one. All rules stand in docs/scoring.md.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from judge_eval.judging.prompts.parse import ParsedVerdict
from voting.items.choices import SWAPPED, short_name


class CombinedVerdict(NamedTuple):
    """What a judge says of a stored pair: winner and scores are of the stored A and B.

    `consistent` is None where only one order was asked. `picks` are the raw winners, A being what
    was shown first: in the stored order, then in the swapped one. `first_picks` of them chose what
    was shown first.
    """

    winner: str
    consistent: bool | None
    score_a: float | None
    score_b: float | None
    reason: str
    picks: tuple[str, ...]

    @property
    def first_picks(self) -> int:
        return self.picks.count("A")


def swap(verdict: ParsedVerdict) -> ParsedVerdict:
    """Return the same verdict about the pair in the other order.

    >>> swap(ParsedVerdict("A", 8.0, 6.0))
    ParsedVerdict(winner='B', score_a=6.0, score_b=8.0, reason='')
    """
    winner, score_a, score_b, reason = verdict
    return ParsedVerdict(SWAPPED[winner], score_b, score_a, reason)


def combine(
    stored: ParsedVerdict, swapped: ParsedVerdict, *, is_decided_by_one: bool = False
) -> CombinedVerdict:
    """Make one verdict of the raw answers in both orders: what both say, or an inconsistent tie.

    With `is_decided_by_one`, a side in one order and a tie in the other is that side (JudgeBench).

    >>> both = combine(ParsedVerdict("A", 8.0, 6.0), ParsedVerdict("B", 5.0, 9.0))
    >>> both.winner, both.consistent, both.score_a, both.score_b
    ('A', True, 8.5, 5.5)
    """
    unswapped = swap(swapped)
    consistent = stored.winner == unswapped.winner
    winner = stored.winner if consistent else "tie"
    sides = {stored.winner, unswapped.winner} - {"tie"}
    if is_decided_by_one and len(sides) == 1 and "both_bad" not in sides:
        (winner,) = sides
    reason = stored.reason
    if not consistent:
        both = f"{short_name(stored.winner)} as stored, {short_name(unswapped.winner)} when swapped"
        reason = f"Inconsistent: {both}. {reason}".rstrip()
    # One order alone would carry its habit into a mean.
    score_a, score_b = (
        None if None in scores else _mean(scores)
        for scores in ([stored.score_a, unswapped.score_a], [stored.score_b, unswapped.score_b])
    )
    return CombinedVerdict(
        winner, consistent, score_a, score_b, reason, (stored.winner, swapped.winner)
    )


def answer_in(raw: Mapping[str, ParsedVerdict]) -> CombinedVerdict:
    """Make a verdict of the raw answers by the orders that were asked: ``AB``, ``BA`` or both.

    >>> answer_in({"BA": ParsedVerdict("A", reason="Fuller.")})[::4]
    ('B', 'Shown swapped, so its A is B here: Fuller.')
    """
    if len(raw) == 2:
        return combine(raw["AB"], raw["BA"])
    [(order, answer)] = raw.items()
    verdict = answer if order == "AB" else swap(answer)
    # The judge's own words keep the names it was given.
    note = "Shown swapped, so its A is B here: " if order == "BA" and answer.reason else ""
    return CombinedVerdict(
        verdict.winner,
        None,
        verdict.score_a,
        verdict.score_b,
        note + verdict.reason,
        (answer.winner,),
    )


def majority(
    samples: Sequence[ParsedVerdict | None], *, otherwise: str = "tie"
) -> tuple[ParsedVerdict, float] | None:
    """Make one raw answer of several to the same question; None is a sample that failed.

    Return what more samples say than say anything else, with the reason of the first of them, or
    `otherwise` where no choice leads alone, with a reason that says so; scores are means of those
    given. Beside it stands the share in (0, 1] that the most frequent choice has of the samples
    that answered. None where none answered.

    >>> majority([ParsedVerdict("A"), ParsedVerdict("B")])[0].reason
    'No majority: A 1, B 1.'
    """
    answered = [sample for sample in samples if sample is not None]
    if not answered:
        return None
    counts = Counter(sample.winner for sample in answered).most_common()
    (winner, votes), *others = counts
    if others and others[0][1] == votes:
        winner = otherwise
        counted = ", ".join(f"{short_name(choice)} {count}" for choice, count in sorted(counts))
        reason = f"No majority: {counted}."
    else:
        reason = next(sample.reason for sample in answered if sample.winner == winner)
    scores = (_mean([s.score_a for s in answered]), _mean([s.score_b for s in answered]))
    return ParsedVerdict(winner, *scores, reason), votes / len(answered)


def _mean(scores: Sequence[float | None]) -> float | None:
    known_scores = [score for score in scores if score is not None]
    return fmean(known_scores) if known_scores else None

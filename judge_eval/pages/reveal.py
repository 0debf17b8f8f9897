"""What a voter is told after a vote: each judge's verdict, and what the vote did to its rating."""

from __future__ import annotations

from dataclasses import dataclass

from judge_eval.models import Verdict
from judge_eval.pages.verdict_shown import picks_of
from judge_eval.selectors import ratings_around, verdicts_on
from voting.models import Comparison, Entry
from voting.sides import position_of

SPOKEN = {"left": "left", "right": "right", "tie": "tie", "both_bad": "both bad"}


@dataclass(frozen=True)
class JudgeSaid:
    """One judge's line; `agrees` is None when it gave no verdict."""

    name: str
    is_baseline: bool
    agrees: bool | None
    picked: str
    score_left: float | None
    score_right: float | None
    feedback: str
    error: str
    # What was picked as the pair is stored and, where that was asked, swapped; as seen here.
    orders: list[str]
    consistent: bool | None
    # The share of samples, in percent, that said what most of them said.
    agreeing_samples: float | None
    rating: float | None
    change: float | None

    @property
    def change_text(self) -> str:
        """The change with its sign, as it is typeset."""
        if self.change is None:
            return ""
        if round(self.change, 1) == 0:
            return "\N{PLUS-MINUS SIGN}0"
        return f"{self.change:+.1f}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Reveal:
    vote: Entry
    comparison: Comparison
    chosen: str
    left_generator: str
    right_generator: str
    judges: list[JudgeSaid]
    is_sealed: bool
    is_retracted: bool

    @property
    def agreeing(self) -> int:
        return sum(judge.agrees is True for judge in self.judges)

    @property
    def answering(self) -> int:
        return sum(judge.agrees is not None for judge in self.judges)


def reveal_of(vote: Entry) -> Reveal:
    comparison = vote.comparison
    assert comparison is not None  # only votes on pairs are revealed
    left = "A" if vote.left_side != "B" else "B"
    before, after = ratings_around(vote) if vote.history else ([], [])
    a, b = comparison.a.generator, comparison.b.generator
    return Reveal(
        vote=vote,
        comparison=comparison,
        chosen=SPOKEN[position_of(vote.choice, left)],
        left_generator=a if left == "A" else b,
        right_generator=b if left == "A" else a,
        judges=[_said(verdict, vote, left, before, after) for verdict in verdicts_on(comparison)],
        is_sealed=vote.seq is not None,
        is_retracted=vote.retracted,
    )


def _said(
    verdict: Verdict, vote: Entry, left: str, before: list[float], after: list[float]
) -> JudgeSaid:
    place = verdict.judge.position
    known = place < len(after)
    answered = bool(verdict.winner)
    scores = (verdict.score_a, verdict.score_b)
    return JudgeSaid(
        name=verdict.judge.name,
        is_baseline=verdict.judge.is_baseline,
        agrees=verdict.winner == vote.choice if answered else None,
        picked=SPOKEN[position_of(verdict.winner, left)] if answered else "no verdict",
        score_left=scores[0] if left == "A" else scores[1],
        score_right=scores[1] if left == "A" else scores[0],
        feedback=verdict.feedback,
        error=verdict.error,
        orders=[SPOKEN[position_of(pick.meant, left)] for pick in picks_of(verdict)],
        consistent=verdict.consistent,
        agreeing_samples=_percent(verdict.sample_consistency),
        rating=after[place] if known else None,
        change=after[place] - before[place] if known else None,
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share

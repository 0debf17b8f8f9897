"""What a voter is told after a vote: each judge's verdict, and what the vote did to its rating."""

from __future__ import annotations

import re
from dataclasses import dataclass

from judge_eval.models import Verdict
from judge_eval.pages.verdict_shown import picks_of
from judge_eval.selectors import verdicts_on
from voting.choices import WRONG, spoken
from voting.models import Comparison, Entry

# What stands before the reason of a judge that contradicts itself: the page has a line for that.
_INCONSISTENT = re.compile(r"^Inconsistent: .*? when swapped\.\s*")
# "A" before a word in lower case is an article, unless that word goes on with a sentence about it.
_LABEL = re.compile(
    r"\b(?:(?P<noun>(?i:answer|candidate|drawing|image|option|output|picture|response|svg)) )?"
    r"(?P<label>[AB])\b(?P<article>(?= [a-z])(?! (?:and|but|or|over|than|is|was|has|does|wins|beats"
    r"|shows|gives|uses|looks|captures|contains|provides|because|since|while)\b))?"
)


def as_seen(reason: str, left: str) -> str:
    """Name the outputs in a judge's reason as they stand on the voter's screen.

    Examples
    --------
    >>> as_seen("Output A is sharper than B. A fine fox.", left="B")
    'Right output is sharper than Left. A fine fox.'
    """

    def place(found: re.Match[str]) -> str:
        noun, label = found["noun"], found["label"]
        if label == "A" and found["article"] is not None and not noun:
            return found[0]
        side = "Left" if label == left else "Right"
        return f"{side} {noun.lower()}" if noun else side

    return _LABEL.sub(place, _INCONSISTENT.sub("", reason))


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
    # How often it has agreed with people so far, of how many votes.
    agreed: int
    answered: int


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
    a, b = comparison.a.generator, comparison.b.generator
    return Reveal(
        vote=vote,
        comparison=comparison,
        chosen=spoken(vote.choice, left),
        left_generator=a if left == "A" else b,
        right_generator=b if left == "A" else a,
        judges=[_said(verdict, vote, left) for verdict in verdicts_on(comparison)],
        is_sealed=vote.seq is not None,
        is_retracted=vote.retracted,
    )


def _said(verdict: Verdict, vote: Entry, left: str) -> JudgeSaid:
    rating, other = verdict.judge.rating, "B" if left == "A" else "A"
    answered = bool(verdict.winner)
    scores = (verdict.score_a, verdict.score_b)
    return JudgeSaid(
        name=verdict.judge.name,
        is_baseline=verdict.judge.is_baseline,
        agrees=verdict.winner == vote.choice if answered else None,
        picked=_picked(verdict.winner, left) if answered else "no verdict",
        score_left=scores[0] if left == "A" else scores[1],
        score_right=scores[1] if left == "A" else scores[0],
        feedback=as_seen(verdict.feedback, left if verdict.order != "BA" else other),
        error=verdict.error,
        orders=[spoken(pick.meant, left) for pick in picks_of(verdict)],
        consistent=verdict.consistent,
        agreeing_samples=_percent(verdict.sample_consistency),
        agreed=rating.agree,
        answered=rating.agree + rating.disagree,
    )


def _picked(winner: str, left: str) -> str:
    return "no choice" if winner == WRONG else spoken(winner, left)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share

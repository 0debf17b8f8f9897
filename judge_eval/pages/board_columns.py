"""The columns of the board's table, and which of them may be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A figure of the table; `method` is the anchor of its explanation."""

    figure: str
    title: str
    unit: str
    method: str


PRICE = "Price"
Groups = Sequence[tuple[str, Sequence[Column]]]
GROUPS: Groups = (
    (
        "Standing",
        (
            Column("rank", "Rank", "95 % range", "how-rank"),
            Column("ties", "Ties", "letters", "how-ties"),
            Column("elo", "ELO", "± by order", "how-elo"),
            Column("rating", "Bradley-Terry", "points", "how-rating"),
        ),
    ),
    (
        "Agreement with people",
        (
            Column("overall", "Overall", "% of votes", "how-overall"),
            Column("agreement", "When it answers", "% of votes", "how-agreement"),
            Column("coverage", "Coverage", "% of pairs", "how-coverage"),
        ),
    ),
    (
        "Position bias",
        (
            Column("consistency", "Both orders", "% alike", "how-habits"),
            Column("single", "Per answer", "% of votes", "how-habits"),
            Column("first", "First position", "% picked", "how-habits"),
        ),
    ),
    (
        PRICE,
        (
            Column("cost", "Verdict", "US$", "how-price"),
            Column("correct", "Correct one", "US$", "how-price"),
            Column("seconds", "Time", "s a verdict", "how-price"),
        ),
    ),
)

# What may be known of no judge at all, and is not shown then: in words, and by which figure.
SPARE = {
    "consistency": ("answers in both orders", "consistency"),
    "single": ("answers in both orders", "consistency"),
    "first": ("preference for what stands first", "first"),
    "cost": ("prices", "cost"),
    # Unknown before the first vote too, but that is no reason to leave it out.
    "correct": ("prices", "cost"),
    "seconds": ("times", "seconds"),
}

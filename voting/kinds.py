"""What differs between the kinds of items that can be voted on: one small class for each.

Ballot, assignment, undo, skip, flag, exposure, reveal and progress know items only. All items of a
queue are of one kind, and `kind_of` says of which.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, Final, Protocol

from voting.choices import SIDES, VOTES_FOR, WITHOUT_SIDE, ChoiceRow, row_of


class Kind(Protocol):
    """A kind of items.

    Attributes
    ----------
    template
        How one item stands on the voting page.
    tally
        The columns of an item that count its votes, the number of all of them first.
    """

    template: ClassVar[str]
    tally: ClassVar[tuple[str, ...]]

    def buttons(self, ballot: Collection[str]) -> Sequence[ChoiceRow]:
        """Return the choices of a ballot in the order of the page, each with its keys."""

    def counted_in(self, choice: str, left_side: str) -> tuple[str, ...]:
        """Return which columns of `tally` a vote is counted in."""


class Comparison:
    """Two outputs for one prompt: which is better, or neither."""

    template: ClassVar[str] = "voting/_pair.html"
    # Of the votes for a side: how many saw it on the left or right, and how many chose the left.
    tally: ClassVar[tuple[str, ...]] = ("votes", *VOTES_FOR.values(), "votes_sided", "votes_left")

    def buttons(self, ballot: Collection[str]) -> Sequence[ChoiceRow]:
        """What is for a side stands on that side."""
        return [row_of(choice) for choice in ("A", *WITHOUT_SIDE, "B") if choice in ballot]

    def counted_in(self, choice: str, left_side: str) -> tuple[str, ...]:
        names = ["votes", *(column for code, column in VOTES_FOR.items() if code == choice)]
        if left_side and choice in SIDES:
            names += ["votes_sided", "votes_left"] if choice == left_side else ["votes_sided"]
        return tuple(names)


COMPARISON: Final = Comparison()


def kind_of(queue: object) -> Kind:
    """Return the kind of a queue's items. Only pairs can be voted on so far."""
    return COMPARISON

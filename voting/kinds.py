"""What differs between the kinds of items that can be voted on: one small class for each.

Ballot, assignment, undo, skip, flag, exposure, reveal and progress know items only. All items of a
queue are of one kind, and `kind_of` says of which.
"""

from collections.abc import Collection, Sequence
from typing import Final

from voting.choices import LABELS, SIDES, TABLE, VOTES_FOR, WITHOUT_SIDE, Choice, ChoiceRow, row_of


class Comparison:
    """Two outputs for one prompt: which is better, or neither."""

    # How one item stands on the voting page.
    template: Final = "voting/_pair.html"
    # The columns of an item that count its votes: all of them first, at last, of the votes for a
    # side, how many saw it on the left or right, and how many chose the left.
    tally: Final = ("votes", *VOTES_FOR.values(), "votes_sided", "votes_left")
    labels: Final = LABELS
    # What every ballot offers.
    required: Final = SIDES

    def buttons(self, ballot: Collection[str]) -> Sequence[ChoiceRow]:
        """Return the choices of a ballot in the order of the page: a side's stands on that side."""
        return [row_of(choice) for choice in ("A", *WITHOUT_SIDE, "B") if choice in ballot]

    def choice_at(self, position: str, left: str) -> Choice | None:
        """Translate what was pressed into the stored item's A and B; None for any other word.

        Examples
        --------
        >>> COMPARISON.choice_at("left", "B"), COMPARISON.choice_at("both_bad", "B")
        ('B', 'both_bad')
        """
        for choice, row in TABLE.items():
            if row.position == position:
                return choice if left == "A" else row.swapped
        return None

    def spoken(self, choice: str, left: str) -> str:
        """Return what a stored choice is called on the screen of a voter with this left side.

        Examples
        --------
        >>> COMPARISON.spoken("A", "B"), COMPARISON.spoken("both_bad", "A")
        ('Right', 'Both bad')
        """
        row = row_of(choice)
        return (row if left == "A" else TABLE[row.swapped]).spoken

    def counted_in(self, choice: str, left_side: str) -> tuple[str, ...]:
        names = ["votes", *(column for code, column in VOTES_FOR.items() if code == choice)]
        if left_side and choice in SIDES:
            names += ["votes_sided", "votes_left"] if choice == left_side else ["votes_sided"]
        return tuple(names)


COMPARISON: Final = Comparison()


def kind_of(of: object) -> Comparison:
    """Return the kind of a queue, an item or a ballot. Only pairs can be voted on so far."""
    return COMPARISON

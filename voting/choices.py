"""The choices of a ballot: the one table that pages, figures, files and the API follow.

A new choice is a code in the types, a row in `TABLE`, the columns that count it on an item
(`voting.models`), and the words in which a judge is offered it (`judge_eval.prompts.judge`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

Side = Literal["A", "B"]
Choice = Literal["A", "B", "tie", "both_bad"]
# What a choice is called where it is not known which output is A: on the voting page.
Position = Literal["left", "right", "tie", "both_bad"]
# What a judge's verdict may be beside the choices: right for no vote.
Wrong = Literal["wrong"]
WRONG: Final[Wrong] = "wrong"


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """One choice, as it is with output A on the left.

    Attributes
    ----------
    label, short
        What it is called where A and B are named: alone, and within a sentence.
    position, spoken, rest
        Its button on the voting page: its value and what stands on it.
    keys, key_names
        The keys shown on the button, one character each, and the names browsers give to them.
    swapped
        The choice that says the same when the outputs change sides.
    grades
        What it says of A and of B, in [0, 1]. Where both are 0 it does not say which is better.
    """

    label: str
    short: str
    position: Position
    spoken: str
    rest: str
    keys: str
    key_names: str
    swapped: Choice
    grades: tuple[float, float]


# In the order in which ballots and figures name them.
TABLE: Final[dict[Choice, ChoiceRow]] = {
    "A": ChoiceRow(
        label="A is better",
        short="A",
        position="left",
        spoken="Left",
        rest="is better",
        keys="←1",
        key_names="ArrowLeft 1",
        swapped="B",
        grades=(1.0, 0.0),
    ),
    "B": ChoiceRow(
        label="B is better",
        short="B",
        position="right",
        spoken="Right",
        rest="is better",
        keys="→2",
        key_names="ArrowRight 2",
        swapped="A",
        grades=(0.0, 1.0),
    ),
    "tie": ChoiceRow(
        label="tie",
        short="tie",
        position="tie",
        spoken="Tie",
        rest="",
        keys="↑4",
        key_names="ArrowUp 4",
        swapped="tie",
        grades=(0.5, 0.5),
    ),
    "both_bad": ChoiceRow(
        label="both bad",
        short="both bad",
        position="both_bad",
        spoken="Both bad",
        rest="",
        keys="↓3",
        key_names="ArrowDown 3",
        swapped="both_bad",
        grades=(0.0, 0.0),
    ),
}
CHOICES: Final = tuple(TABLE)
VERDICTS: Final = (*CHOICES, WRONG)
# The columns of an item that count votes, and judges' verdicts.
VOTES_FOR: Final = {choice: f"votes_{choice.lower()}" for choice in CHOICES}
ANSWERS: Final = tuple(f"answers_{verdict.lower()}" for verdict in VERDICTS)
# Every ballot offers the two sides.
SIDES: Final[tuple[Side, ...]] = get_args(Side)
WITHOUT_SIDE: Final = tuple(choice for choice in CHOICES if choice not in SIDES)
DEFAULT_BALLOT: Final[tuple[Choice, ...]] = ("A", "B", "both_bad")
LABELS: Final[dict[str, str]] = {choice: row.label for choice, row in TABLE.items()}
SWAPPED: Final = {choice: row.swapped for choice, row in TABLE.items()}
POSITIONS: Final = tuple(row.position for row in TABLE.values())
SPOKEN: Final = {row.position: row.spoken for row in TABLE.values()}
_AT: Final[dict[str, Choice]] = {row.position: choice for choice, row in TABLE.items()}


def in_order(choices: Iterable[str]) -> list[Choice]:
    """Return choices in the order of every ballot.

    Examples
    --------
    >>> in_order({"tie", "B", "A"})
    ['A', 'B', 'tie']
    """
    chosen = set(choices)
    return [choice for choice in CHOICES if choice in chosen]


def row_of(choice: str) -> ChoiceRow:
    return TABLE[cast(Choice, choice)]


def short_name(choice: str) -> str:
    """Return what a choice, or a verdict that is none, is called within a sentence.

    Examples
    --------
    >>> short_name("both_bad"), short_name("wrong")
    ('both bad', 'wrong')
    """
    return TABLE[choice].short if choice in TABLE else choice


def choice_at(position: Position, left: Side) -> Choice:
    """Translate what was pressed into the stored item's A and B.

    Raises
    ------
    ValueError
        When the position is not one of `POSITIONS`.

    Examples
    --------
    >>> choice_at("left", "B"), choice_at("right", "B"), choice_at("both_bad", "B")
    ('B', 'A', 'both_bad')
    """
    if position not in _AT:
        raise ValueError(f"{position!r} is none of {', '.join(POSITIONS)}")
    choice = _AT[position]
    return choice if left == "A" else SWAPPED[choice]


def position_of(choice: str, left: str) -> Position:
    """Translate a stored choice into what a voter with this left side would see.

    Examples
    --------
    >>> position_of("A", "B"), position_of("tie", "B")
    ('right', 'tie')
    """
    row = row_of(choice)
    return (row if left == "A" else TABLE[row.swapped]).position


def spoken(choice: str, left: str) -> str:
    """Return what a stored choice is called on the screen of a voter with this left side.

    Examples
    --------
    >>> spoken("A", "B"), spoken("both_bad", "A")
    ('Right', 'Both bad')
    """
    return SPOKEN[position_of(choice, left)]

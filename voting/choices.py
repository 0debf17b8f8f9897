"""The choices of a ballot: the one table that pages, figures, files and the API follow.

A new choice is a code in the types, a row in `TABLE`, the columns that count it on an item
(`voting.models`), and the words in which a judge is offered it (`judge_eval.prompts.judge`).
"""

from collections.abc import Collection
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
    """One choice, as it is with output A on the left."""

    # What it is called where A and B are named: alone, and within a sentence.
    label: str
    short: str
    # Its button on the voting page: its value and what stands on it.
    position: Position
    spoken: str
    rest: str
    # The keys shown on the button, one character each, and the names browsers give to them.
    keys: str
    key_names: str
    # The choice that says the same when the outputs change sides.
    swapped: Choice
    # What it says of A and of B, in [0, 1]. Where both are 0 it does not say which is better.
    grades: tuple[float, float]


# In the order in which ballots and figures name them.
TABLE: Final[dict[Choice, ChoiceRow]] = {
    "A": ChoiceRow(
        "A is better", "A", "left", "Left", "is better", "←1", "ArrowLeft 1", "B", (1.0, 0.0)
    ),
    "B": ChoiceRow(
        "B is better", "B", "right", "Right", "is better", "→2", "ArrowRight 2", "A", (0.0, 1.0)
    ),
    "tie": ChoiceRow("tie", "tie", "tie", "Tie", "", "↑4", "ArrowUp 4", "tie", (0.5, 0.5)),
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


def in_order(choices: Collection[str]) -> list[Choice]:
    return [choice for choice in CHOICES if choice in choices]


def row_of(choice: str) -> ChoiceRow:
    return TABLE[cast(Choice, choice)]


def short_name(choice: str) -> str:
    """Return what a choice, or a verdict that is none, is called within a sentence."""
    return TABLE[choice].short if choice in TABLE else choice


def quality_of(choice: str, value: int | None) -> float | None:
    """Return what a vote says of quality, in [0, 1]; None where it says nothing of it."""
    if value is not None:
        return value / 1_000_000
    return (0.0 if choice == "both_bad" else 1.0) if choice in TABLE else None

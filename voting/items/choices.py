"""The choices of a ballot: the one table that pages, figures, files and the API follow.

A new choice is a code in the types, a row in `TABLE`, the columns that count it on an item
(`voting.models`), and how a judge is offered it (`judge_eval.judging.prompts.judge`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

Side = Literal["A", "B"]
Choice = Literal["A", "B", "tie", "both_bad"]
# Of a single output.
PassFlag = Literal["pass", "flag"]
Fixed = Choice | PassFlag
# What a choice is called where it is not known which output is A: on the voting page.
Position = Literal["left", "right", "tie", "both_bad", "pass", "flag"]
# What a judge's verdict may be beside the choices: right for no vote.
Wrong = Literal["wrong"]
WRONG: Final[Wrong] = "wrong"
# Values of votes and reputations are whole millionths.
MILLION: Final = 1_000_000
# A grade in [0, 1] passes from here on.
PASSES_FROM: Final = 0.5


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """One choice, as it is with output A on the left."""

    # What it is called within a sentence.
    short: str
    # Its button on the voting page: its value, and what stands on it.
    position: Position
    spoken: str
    # The keys shown on the button, one character each, and the names browsers give to them.
    keys: str
    key_names: str
    # What it says of A and of B, in [0, 1]. Where both are 0 it does not say which is better.
    grades: tuple[float, float]
    # What a vote for it is worth in a quality score: whether there is an output good enough.
    quality: float
    # What follows the word where there is room, on the button and alone.
    rest: str = ""

    @property
    def label(self) -> str:
        return f"{self.short} {self.rest}".rstrip()


# In the order in which ballots and figures name them.
TABLE: Final[dict[Fixed, ChoiceRow]] = {
    "A": ChoiceRow("A", "left", "Left", "←1", "ArrowLeft 1", (1.0, 0.0), 1.0, "is better"),
    "B": ChoiceRow("B", "right", "Right", "→2", "ArrowRight 2", (0.0, 1.0), 1.0, "is better"),
    "tie": ChoiceRow("tie", "tie", "Tie", "↑4", "ArrowUp 4", (0.5, 0.5), 1.0),
    "both_bad": ChoiceRow("both bad", "both_bad", "Both bad", "↓3", "ArrowDown 3", (0.0, 0.0), 0.0),
    "pass": ChoiceRow("pass", "pass", "Pass", "→P", "ArrowRight p", (1.0, 0.0), 1.0),
    "flag": ChoiceRow("flag", "flag", "Flag", "←F", "ArrowLeft f", (0.0, 0.0), 0.0),
}
# Of a pair, and of a single output that passes or is flagged; other items have words of their own.
CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)
PASS_FLAG: Final[tuple[PassFlag, ...]] = get_args(PassFlag)
FIXED: Final = (*CHOICES, *PASS_FLAG)
# In the order of the codes that figures have for them.
VERDICTS: Final = (*CHOICES, WRONG, *PASS_FLAG)
# The columns of an item that count votes, and judges' verdicts.
VOTES_FOR: Final = {choice: f"votes_{choice.lower()}" for choice in FIXED}
ANSWERS_FOR: Final = {verdict: f"answers_{verdict.lower()}" for verdict in VERDICTS}
ANSWERS: Final = tuple(ANSWERS_FOR.values())
# Every ballot offers the two sides.
SIDES: Final[tuple[Side, ...]] = get_args(Side)
WITHOUT_SIDE: Final = tuple(choice for choice in CHOICES if choice not in SIDES)
DEFAULT_BALLOT: Final[tuple[Choice, ...]] = ("A", "B", "both_bad")
LABELS: Final[dict[str, str]] = {choice: row.label for choice, row in TABLE.items()}
# What says the same when the outputs change sides.
SWAPPED: Final[dict[str, Choice]] = {"A": "B", "B": "A", "tie": "tie", "both_bad": "both_bad"}


def in_order(choices: Collection[str]) -> list[Choice]:
    return [choice for choice in CHOICES if choice in choices]


def row_of(choice: str) -> ChoiceRow:
    # As text: made anew for each of a million votes, the type would cost more than the look-up.
    return TABLE[cast(Fixed, choice)]


def quality_of(choice: str, value: int | None) -> float | None:
    """Return what a vote says of quality, in [0, 1]; None where it says nothing of it.

    `value` is that of a graded vote, in millionths.

    >>> quality_of("tie", None), quality_of("flag", 0), quality_of("pass", 700_000)
    (1.0, 0.0, 0.7)
    >>> quality_of("off-topic", None)
    """
    if value is not None:
        return value / MILLION
    return row_of(choice).quality if choice in TABLE else None


def short_name(choice: str) -> str:
    """Return what a choice, or a verdict that is none, is called within a sentence."""
    return TABLE[choice].short if choice in TABLE else choice

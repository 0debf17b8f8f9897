"""What every source is turned into: one row is one statement about one pair.

A row is denormalised and anything but the pair's id may be absent. It holds a vote, or a verdict,
or both, or neither: then it only declares a pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from voting.choices import Choice, Side

Kind = Literal["svg", "text", "code"]
Label: TypeAlias = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PairPart:
    """What a row says of the pair itself; its id is what makes an import repeatable.

    Attributes
    ----------
    id : str
        The pair's name in the source.
    cluster : str, optional
        What pairs that are no independent evidence share, where it is not the prompt.
    output_a, output_b : str, optional
        None where the source holds no texts; an empty text is a generator that wrote nothing.
    """

    id: str
    prompt: str | None = None
    prompt_id: str | None = None
    tags: tuple[str, ...] = ()
    kind: Kind | None = None
    generator_a: str | None = None
    generator_b: str | None = None
    output_a: str | None = None
    output_b: str | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class VerdictPart:
    """What one judge said, in the pair's stored orientation.

    Attributes
    ----------
    winner : str, optional
        None where the verdict failed, then `error` says why; or where only `picks` are given.
    consistent : bool, optional
        Whether both orders agreed.
    picks : pair of str, optional
        What was picked with A shown first, and with B shown first, both of the stored A and B.
    """

    judge: str
    winner: Choice | None
    score_a: float | None = None
    score_b: float | None = None
    feedback: str | None = None
    error: str | None = None
    consistent: bool | None = None
    picks: tuple[Choice, Choice] | None = None


@dataclass(frozen=True, slots=True)
class VotePart:
    """What one person chose, in the pair's stored orientation; `at` is in UTC."""

    voter: str
    choice: Choice
    at: datetime | None = None
    comment: str | None = None
    left: Side | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One statement about one pair, and where it stands.

    Attributes
    ----------
    file : str
    line : int
        Line of a CSV or JSON Lines file, number of the record elsewhere; both from 1.
    labels : mapping
        Answers to further tasks, beside the winner; they belong to the row's one statement.
    external_id : str, optional
        The statement's own name in the source.
    """

    file: str
    line: int
    pair: PairPart
    verdict: VerdictPart | None = None
    vote: VotePart | None = None
    labels: Mapping[str, Label] = field(default_factory=dict)
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One label that one annotator, a person or a judge, gave one item that is no pair."""

    file: str
    line: int
    item: str
    annotator: str
    is_judge: bool
    label: Label


@dataclass(frozen=True, slots=True)
class JudgeOrder:
    """The order of judges that a source states; it comes before the first row."""

    file: str
    judges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A statement that was understood and not taken over, and why."""

    file: str
    row: int
    why: str


@dataclass(frozen=True, slots=True)
class RowError:
    """What could not be read: where, which field, and why.

    `field` is None where it is about the whole record, `row` is 0 where it is about the whole file,
    and `file` is empty where it is about all of them. Reading goes on after it where it can; the
    caller decides whether one error refuses the file. Not where it `is_fatal`: then more than this
    record is lost, nobody knows how much, and nothing of the file may be taken.
    """

    file: str
    row: int
    field: str | None
    why: str
    is_fatal: bool = False

    def __str__(self) -> str:
        where = f"{self.file}:{self.row}" if self.row else self.file
        return ": ".join(part for part in (where, self.field, self.why) if part)


@dataclass(frozen=True, slots=True)
class Note:
    """What a person should know of a file that is read as it should be."""

    file: str
    text: str


class Broken(ValueError):
    """Reading cannot go on behind this point."""


Item: TypeAlias = Row | LabelRow | JudgeOrder | LeftOut | Note | RowError

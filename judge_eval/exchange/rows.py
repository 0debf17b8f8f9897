"""What every source is turned into: one row is one statement about one pair.

A row is denormalised and anything but the pair's id may be absent. It holds a vote, or a verdict,
or both, or neither: then it only declares a pair.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from voting.choices import Choice, Side

Kind = Literal["svg", "text", "code"]
Label: TypeAlias = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PairPart:
    """What a row says of the pair itself; its id is what makes an import repeatable.

    An output is None where the source holds no texts; an empty text is a generator that wrote
    nothing. `cluster` is what pairs that are no independent evidence share, where it is not the
    prompt.
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


OF_A_PAIR: Final = tuple(part.name for part in fields_of(PairPart) if part.name != "id")
OUTPUTS: Final = ("output_a", "output_b")
# What tells a pair from others in a file that has no names for them.
_TELLING: Final = ("prompt", "prompt_id", "generator_a", "generator_b", *OUTPUTS)
_OF_A_WINNER: Final = ("score_a", "score_b", "consistent")
_OF_A_VERDICT: Final = ("judge", *_OF_A_WINNER, "feedback")
_OF_A_VOTE: Final = ("voter", "voted_at", "comment", "left_side")


@dataclass(frozen=True, slots=True)
class VerdictPart:
    """What one judge said, in the pair's stored orientation.

    `winner` is None where the verdict failed, then `error` says why; or where only `picks` are
    given: what was picked with A shown first, and with B shown first, both of the stored A and B.
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

    `line` is that of a CSV or JSON Lines file, the number of the record elsewhere, from 1. `labels`
    are answers to further tasks, beside the winner; they belong to the row's one statement, whose
    own name in the source is `external_id`.
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
    and `file` is empty where it is about all of them. Reading goes on after it where it can. Not
    where it `is_fatal`: then an unknown part of the file is lost, and nothing of it may be taken.
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


Item: TypeAlias = Row | LabelRow | JudgeOrder | LeftOut | Note | RowError


class Broken(ValueError):
    """Reading cannot go on behind this point."""


class Misfit(ValueError):
    """A field that its row cannot have, or not beside the others."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field, self.why = field, why


# --- checked values into a row ----------------------------------------------------------------


def assemble(
    file: str,
    line: int,
    values: Mapping[str, Any],
    labels: Mapping[str, Label],
    constants: Collection[str] = (),
) -> Row:
    """Build a row of checked values by field; what is None is not there. Raises Misfit.

    `constants` are fields that every row of the file has, and that therefore claim no statement by
    themselves: the judge's name in a file of one judge, on a row that it was not asked about.
    """
    if values.get("pair") is None:
        raise Misfit("pair", "missing: every row must name its pair")
    given = {name: values[name] for name in OF_A_PAIR if values.get(name) is not None}
    verdict, vote = _verdict(values, constants), _vote(values, constants)
    if labels and (verdict is None) == (vote is None):
        raise Misfit("labels", "must stand beside one vote or one verdict, to say whose they are")
    pair = PairPart(values["pair"], **given)
    return Row(file, line, pair, verdict, vote, dict(labels), values.get("external_id"))


def name_by_content(values: Mapping[str, Any]) -> str:
    """Return a name for the pair of a row in a file without names: the same for the same content.

    Examples
    --------
    >>> name_by_content({"prompt": "Why?", "generator_a": "x"})[:8]
    '13f63c69'
    """
    telling = {name: values[name] for name in _TELLING if values.get(name) is not None}
    if not telling.keys() & {"prompt", "prompt_id"} and not telling.keys() >= {*OUTPUTS}:
        raise Misfit("pair", "missing, and neither a prompt nor outputs tell which pair it is")
    return sha256(json.dumps(telling, sort_keys=True).encode()).hexdigest()[:32]


def _verdict(values: Mapping[str, Any], constants: Collection[str]) -> VerdictPart | None:
    winner, error, picks = values.get("verdict"), values.get("error"), _picks(values)
    consistent = values.get("consistent")
    if winner is None and error is None and picks is None:
        _refuse(values, _OF_A_VERDICT, constants, "stands without a verdict or an error")
        return None
    if values.get("judge") is None:
        raise Misfit("judge", "missing: a verdict must name its judge")
    if error is not None:
        if winner is not None or picks is not None:
            raise Misfit("error", "stands beside a verdict: it is one or the other")
        _refuse(values, _OF_A_WINNER, constants, "a failed verdict has none")
        return VerdictPart(values["judge"], None, feedback=values.get("feedback"), error=error)
    if picks is not None and consistent is not None and consistent != (picks[0] == picks[1]):
        raise Misfit("consistent", f"the picks {picks[0]} and {picks[1]} say otherwise")
    scores = (values.get("score_a"), values.get("score_b"))
    feedback = values.get("feedback")
    return VerdictPart(values["judge"], winner, *scores, feedback, None, consistent, picks)


def _picks(values: Mapping[str, Any]) -> tuple[Any, Any] | None:
    picks = (values.get("pick_ab"), values.get("pick_ba"))
    if picks == (None, None):
        return None
    if None in picks:
        raise Misfit(
            ("pick_ab", "pick_ba")[picks.index(None)], "missing: the other order's pick is there"
        )
    return picks


def _vote(values: Mapping[str, Any], constants: Collection[str]) -> VotePart | None:
    choice = values.get("vote")
    if choice is None:
        _refuse(values, _OF_A_VOTE, constants, "stands without a vote")
        return None
    if values.get("voter") is None:
        raise Misfit("voter", "missing: a vote must name its voter")
    beside = (values.get("voted_at"), values.get("comment"), values.get("left_side"))
    return VotePart(values["voter"], choice, *beside)


def _refuse(
    values: Mapping[str, Any], names: Collection[str], constants: Collection[str], why: str
) -> None:
    for name in names:
        if values.get(name) is not None and name not in constants:
            raise Misfit(name, why)

"""What every source is turned into: one row is one statement about one pair.

A row is denormalised and anything but the pair may be absent. It holds a vote, or a verdict, or
both, or neither: then it only declares a pair.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, TypeAlias, get_origin, get_type_hints

from pydantic import Field

from judge_eval.exchange import fields
from judge_eval.exchange.fields import Label
from voting.choices import Choice, Side

Kind = Literal["svg", "text", "code"]
# What one record says, by column or, once it is checked, by field.
Values: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One statement about one pair, in the pair's stored orientation, and where it stands.

    Its fields are called as columns are (docs/importing.md), each beside what checks its raw value.
    `line` is that of a CSV or JSON Lines file, the number of the record elsewhere, from 1. Who
    names a `judge` holds a verdict, who names a `voter` a vote, and `labels` belong to that one
    statement. An output is None where the source holds no texts; an empty one was written so.
    """

    file: str
    line: int
    pair: Annotated[str, fields.name]
    prompt: Annotated[str | None, fields.text] = None
    prompt_id: Annotated[str | None, fields.name] = None
    tags: Annotated[tuple[str, ...], fields.words] = ()
    kind: Annotated[Kind | None, fields.kind] = None
    generator_a: Annotated[str | None, fields.name] = None
    generator_b: Annotated[str | None, fields.name] = None
    output_a: Annotated[str | None, fields.output] = None
    output_b: Annotated[str | None, fields.output] = None
    cluster: Annotated[str | None, fields.name] = None
    judge: Annotated[str | None, fields.name] = None
    verdict: Annotated[Choice | None, fields.choice] = None
    pick_ab: Annotated[Choice | None, fields.choice] = None
    pick_ba: Annotated[Choice | None, fields.choice] = None
    score_a: Annotated[float | None, fields.score] = None
    score_b: Annotated[float | None, fields.score] = None
    feedback: Annotated[str | None, fields.text] = None
    error: Annotated[str | None, fields.text] = None
    consistent: Annotated[bool | None, fields.flag] = None
    voter: Annotated[str | None, fields.name] = None
    vote: Annotated[Choice | None, fields.choice] = None
    voted_at: Annotated[datetime | None, fields.moment] = None
    comment: Annotated[str | None, fields.text] = None
    left_side: Annotated[Side | None, fields.side] = None
    labels: Mapping[str, Label] = field(default_factory=dict)
    external_id: Annotated[str | None, fields.name] = None


FIELDS: Final[dict[str, fields.Converter]] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Row, include_extras=True).items()
    if get_origin(hint) is Annotated
}
OUTPUTS: Final = ("output_a", "output_b")
# What tells a pair from others in a file that has no names for them.
_TELLING: Final = ("prompt", "prompt_id", "generator_a", "generator_b", *OUTPUTS)
OF_A_PAIR: Final = (*_TELLING, "tags", "kind", "cluster")
_PICKS: Final = ("pick_ab", "pick_ba")
_OF_A_WINNER: Final = ("score_a", "score_b", "consistent")
_OF_A_VERDICT: Final = ("judge", *_OF_A_WINNER, "feedback")
_OF_A_VOTE: Final = ("voter", "voted_at", "comment", "left_side")


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
    and `file` is empty where it is about all of them. Where it `is_fatal`, an unknown part of the
    file is lost, and nothing of it may be taken.
    """

    file: str
    row: int
    field: str | None
    why: str
    is_fatal: Annotated[bool, Field(exclude=True)] = False

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
    """Reading cannot go on behind this point: at a line, or else behind the last record."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


class Misfit(ValueError):
    """A field that its row cannot have, or not beside the others."""

    def __init__(self, field: str | None, why: str) -> None:
        super().__init__(why)
        self.field, self.why = field, why


# --- what the readers of public formats check -----------------------------------------------


def need(values: Values, *columns: str) -> list[object]:
    """Return the values of columns that every record of a format has; raises Misfit."""
    for column in columns:
        if values.get(column) is None:
            raise Misfit(column, "missing")
    return [values[column] for column in columns]


def one_of(field: str, raw: object, meanings: Mapping[str, str]) -> str:
    if not isinstance(raw, str) or raw not in meanings:
        raise Misfit(field, f"{raw!r} is not one of {', '.join(meanings)}")
    return meanings[raw]


def plain(field: str, raw: object) -> str:
    try:
        return fields.plain(raw)
    except ValueError as error:
        raise Misfit(field, str(error)) from error


# --- checked values into a row ----------------------------------------------------------------


def assemble(
    file: str,
    line: int,
    values: Values,
    labels: Mapping[str, Label],
    constants: Collection[str] = (),
) -> Row:
    """Build a row of checked values by field; what is None is not there. Raises Misfit.

    `constants` are fields that every row of the file has, and that therefore claim no statement by
    themselves: the judge's name in a file of one judge, on a row that it was not asked about.
    """
    given = {name: value for name, value in values.items() if value is not None}
    if "pair" not in given:
        raise Misfit("pair", "missing: every row must name its pair")
    has_verdict, has_vote = (
        not given.keys().isdisjoint(("verdict", "error", *_PICKS)),
        "vote" in given,
    )
    if has_verdict:
        _check_verdict(given, constants)
    else:
        _drop(given, _OF_A_VERDICT, constants, "stands without a verdict or an error")
    if not has_vote:
        _drop(given, _OF_A_VOTE, constants, "stands without a vote")
    elif "voter" not in given:
        raise Misfit("voter", "missing: a vote must name its voter")
    if labels and has_verdict == has_vote:
        raise Misfit("labels", "must stand beside one vote or one verdict, to say whose they are")
    return Row(file, line, **given, labels=dict(labels))


def _check_verdict(given: Values, constants: Collection[str]) -> None:
    picks = [given[name] for name in _PICKS if name in given]
    if len(picks) == 1:
        lacking = _PICKS[_PICKS[0] in given]
        raise Misfit(lacking, "missing: the other order's pick is there")
    if "judge" not in given:
        raise Misfit("judge", "missing: a verdict must name its judge")
    if "error" in given:
        if picks or "verdict" in given:
            raise Misfit("error", "stands beside a verdict: it is one or the other")
        _drop(given, _OF_A_WINNER, constants, "a failed verdict has none")
    if picks and given.get("consistent") not in (None, picks[0] == picks[1]):
        raise Misfit("consistent", f"the picks {picks[0]} and {picks[1]} say otherwise")


def _drop(given: Values, names: Collection[str], constants: Collection[str], why: str) -> None:
    """Leave out what stands beside no statement, if every row of the file has it."""
    for name in names:
        if name in given and name not in constants:
            raise Misfit(name, why)
        given.pop(name, None)


def name_by_content(values: Values) -> str:
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

"""What every source is turned into: one row is one statement about one item.

An item is a pair of outputs, or a single one. A row is denormalised and anything but the item may
be absent. It holds a vote, or a verdict, or neither: then it only declares the item. Of a pair it
may hold both.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, get_origin, get_type_hints

from pydantic import Field

from humanjudge.core.strict_json import JsonObject
from judge_eval.imports import fields
from judge_eval.imports.fields import Converter, Label, fact, label
from voting.items.choices import SWAPPED, Choice, Side

Kind = Literal["svg", "text", "code", "image"]
ShapeName = Literal["pair", "item"]
# What one record says, by column or, once it is checked, by field.
Values: TypeAlias = JsonObject
AnyValue = TypeVar("AnyValue")
Checked = TypeVar("Checked")


@dataclass(frozen=True, slots=True)
class ImportRow:
    """One statement about one item, a pair in its stored orientation, and where it stands.

    Its fields are called as columns of pairs are (docs/importing.md), each beside what checks its
    raw value; the columns of single items are among `ITEMS`. `line` is that of a CSV or JSON Lines
    file, the number of the record elsewhere, from 1. Who names a `judge` holds a verdict, who names
    a `voter` a vote, and `labels` belong to that one statement. An output is None where the source
    holds no texts; an empty one was written so.

    What is said of an item that `is_single` stands in `labels`, the vote or verdict itself under
    `MAIN`. Its output, who generated it and a judge's score from 0 to 1 are those of side A.
    """

    file: str
    line: int
    item: Annotated[str, fields.name]
    prompt: Annotated[str | None, fields.text] = None
    prompt_id: Annotated[str | None, fields.name] = None
    kind: Annotated[Kind | None, fields.kind] = None
    tags: Annotated[tuple[str, ...], fields.words] = ()
    cluster: Annotated[str | None, fields.name] = None
    generator_a: Annotated[str | None, fields.name] = None
    output_a: Annotated[str | None, fields.output] = None
    generator_b: Annotated[str | None, fields.name] = None
    output_b: Annotated[str | None, fields.output] = None
    votes_wanted: Annotated[int | None, fields.within(32_767, is_whole=True)] = None
    # Of the whole run, and of the judge: said once, or the same in every row.
    run_question: Annotated[str | None, fields.caption] = None
    judge: Annotated[str | None, fields.name] = None
    verdict: Annotated[Choice | None, fields.choice] = None
    pick_ab: Annotated[Choice | None, fields.choice] = None
    pick_ba: Annotated[Choice | None, fields.choice] = None
    score_a: Annotated[float | None, fields.score] = None
    score_b: Annotated[float | None, fields.score] = None
    consistent: Annotated[bool | None, fields.flag] = None
    feedback: Annotated[str | None, fields.text] = None
    error: Annotated[str | None, fields.text] = None
    # So much at most that the sum of all is a number of the database.
    cost_usd: Annotated[float | None, fields.within(10_000)] = None
    unpriced: Annotated[int | None, fields.within(10**9, is_whole=True)] = None
    latency_ms: Annotated[float | None, fields.within(10**9)] = None
    judge_description: Annotated[str | None, fields.caption] = None
    voter: Annotated[str | None, fields.name] = None
    vote: Annotated[Choice | None, fields.choice] = None
    left_side: Annotated[Side | None, fields.side] = None
    voted_at: Annotated[datetime | None, fields.moment] = None
    comment: Annotated[str | None, fields.text] = None
    voter_group: Annotated[str | None, fields.group] = None
    labels: Mapping[str, Label] = field(default_factory=dict)
    shape: ShapeName = "pair"
    generated_at: datetime | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    category: str | None = None
    # What its format asks of people, where none answer: a kind, or "graded" if judges give numbers.
    asks: str | None = None
    # Names a judge that says nothing: its cell is empty.
    is_blank: bool = False

    def turned(self) -> "ImportRow":
        """Return the same statement about the pair with A and B exchanged."""
        sided = [f"{name}_{side}" for name in ("generator", "output", "score") for side in "ab"]
        words = {name: name for name in ("verdict", "vote", "left_side")}
        # Who saw A first here has seen the stored B first.
        words |= dict(zip(PICKS, reversed(PICKS), strict=True))
        turned: Values = {name: getattr(self, exchanged(name)) for name in sided}
        turned |= {name: SWAPPED.get(getattr(self, origin)) for name, origin in words.items()}
        return replace(self, **turned)


def exchanged(name: str) -> str:
    """Return what a field of one side is called on the other; any other name as it is.

    Examples
    --------
    >>> exchanged("output_a"), exchanged("prompt")
    ('output_b', 'prompt')
    """
    stem, _, side = name.rpartition("_")
    return f"{stem}_{'b' if side == 'a' else 'a'}" if stem and side in ("a", "b") else name


class MadeUp(str):
    """What a reader calls somebody whom a file does not name: in another run it is another one."""

    __slots__ = ()


# The answer to what a queue asks, among answers to further tasks.
MAIN: Final = ""
OUTPUTS: Final = ("output_a", "output_b")
# Columns of several tasks, judges, people or facts.
LABELS: Final = "labels"
JUDGES: Final = "judges"
VOTERS: Final = "voters"
METADATA: Final = "metadata"
PICKS: Final = ("pick_ab", "pick_ba")


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
        place = f"{self.file}:{self.row}" if self.row else self.file
        return ": ".join(part for part in (place, self.field, self.why) if part)


@dataclass(frozen=True, slots=True)
class Note:
    """What a person should know of a file that is read as it should be."""

    file: str
    text: str


Item: TypeAlias = ImportRow | JudgeOrder | LeftOut | Note | RowError


class UnreadableFile(ValueError):
    """Reading cannot go on behind this point: at a line, or else behind the last record."""

    def __init__(self, reason: str, line: int = 0, file: str = "") -> None:
        super().__init__(reason)
        self.line, self.file = line, file


class InvalidField(ValueError):
    """A field that its row cannot have, or not beside the others."""

    def __init__(self, field: str | None, reason: str) -> None:
        super().__init__(reason)
        self.field, self.reason = field, reason


# --- what the readers of public formats check -----------------------------------------------


def need(values: Values, *columns: str) -> list[object]:
    """Return the values of columns that every record of a format has; raises InvalidField."""
    for column in columns:
        if values.get(column) is None:
            raise InvalidField(column, "missing")
    return [values[column] for column in columns]


def meaning_of(field: str, raw: object, meanings: Mapping[str, str]) -> str:
    if not isinstance(raw, str) or raw not in meanings:
        raise InvalidField(field, f"{raw!r} is not one of {', '.join(meanings)}")
    return meanings[raw]


def checked(field: str, raw: AnyValue, convert: Callable[[AnyValue], Checked]) -> Checked:
    try:
        return convert(raw)
    except ValueError as error:
        raise InvalidField(field, str(error)) from error


def plain(field: str, raw: object) -> str:
    return checked(field, raw, fields.plain)


# --- what a file is about -----------------------------------------------------------------------


class Shape:
    """Whether the rows of a file are about pairs or single items, and what follows from that.

    `name` is the column that names what a row is about. `fields` check the columns: those of the
    thing itself come first, then a verdict's from `judge` on, then a vote's from `voter` on. Any in
    `says` makes a verdict. Columns cannot be without one of those that they `need`.
    """

    def __init__(
        self,
        name: ShapeName,
        fields: Mapping[str, Converter],
        says: Collection[str],
        needs: Mapping[str, Sequence[str]],
    ) -> None:
        self.name, self.fields, self.says, self.needs = name, fields, says, needs
        names = list(fields)
        judge, voter = names.index("judge"), names.index("voter")
        self.about, self.verdict, self.vote = names[:judge], names[judge:voter], names[voter:]
        # What tells a thing from others in a file that has no names for them.
        kinds = ("prompt", "generator", "output")
        self.telling = [name for name in self.about if name.startswith(kinds)]
        self.outputs = [name for name in self.about if name.startswith("output")]
        self.outputs_in_words = "outputs" if len(self.outputs) > 1 else "an output"
        # What checks the columns of which there are as many as a file has, by what they are for.
        self.groups = {LABELS: label, JUDGES: fields["vote"], VOTERS: fields["vote"]}
        self.groups |= {METADATA: fact} if name == "item" else {}


_OF_A_ROW: Final = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(ImportRow, include_extras=True).items()
    if get_origin(hint) is Annotated
}
# What checks the raw values of each column of pairs; those of single items follow.
FIELDS: Final[dict[str, Converter]] = {
    "pair" if name == "item" else name: convert for name, convert in _OF_A_ROW.items()
}
_OF_AN_ITEM: Final = {
    **_OF_A_ROW,
    "generator": fields.name,
    "output": fields.output,
    "time": fields.moment,
    "verdict": fields.label,
    "score": fields.share,
    "vote": fields.label,
    "category": fields.name,
}
_ITEM_COLUMNS: Final = (
    "item prompt prompt_id kind tags cluster generator output time votes_wanted "
    "run_question judge verdict score feedback error cost_usd unpriced latency_ms "
    "judge_description "
    "voter vote category voted_at comment voter_group"
).split()
# What columns are called as fields of a row.
_STORED_AS: Final = {
    "pair": "item",
    "generator": "generator_a",
    "output": "output_a",
    "score": "score_a",
    "time": "generated_at",
}
PAIRS: Final = Shape(
    "pair",
    FIELDS,
    says=("verdict", "error", *PICKS),
    needs={"vote": ["voter"], "voter": ["vote"], "verdict": ["judge"], "pick_ab": ["judge"]},
)
ITEMS: Final = Shape(
    "item",
    {name: _OF_AN_ITEM[name] for name in _ITEM_COLUMNS},
    says=("verdict", "score", "error"),
    needs={
        "vote": ["voter"],
        "voter": ["vote", "labels"],
        "verdict": ["judge"],
        "score": ["judge"],
        "category": ["vote"],
    },
)
OF_A_PAIR: Final = (*PAIRS.telling, "tags", "kind", "cluster")
SHAPES: Final[Mapping[str, Shape]] = {"pair": PAIRS, "item": ITEMS}


def shape_of(columns: Collection[str]) -> Shape | None:
    """Tell from the names of columns what rows are about; None where they do not say.

    Examples
    --------
    >>> [shape and shape.name for shape in map(shape_of, (["output"], ["output_b"], ["prompt"]))]
    ['item', 'pair', None]
    """
    of_pairs = {"pair", "generator_a", "generator_b", *OUTPUTS, *PICKS}
    for shape, names in ((PAIRS, of_pairs), (ITEMS, {"item", "output"})):
        if names & {*columns}:
            return shape
    return None


# --- checked values into a row ----------------------------------------------------------------


def assemble(
    shape: Shape,
    file: str,
    line: int,
    values: Values,
    labels: Mapping[str, Label],
    constants: Collection[str] = (),
) -> Iterator[ImportRow | LeftOut]:
    """Build the row of a pair, or a row for the verdict and one for the vote on a single item.

    What is None among the checked values by column is not there. A vote or verdict that lacks a
    part is left out, and the rest is kept. `constants` are columns that every row of the file has,
    and that therefore claim no statement by themselves: the judge's name in a file of one judge, on
    a row that it was not asked about. Raises InvalidField.
    """
    cells = {name: value for name, value in values.items() if value is not None}
    if shape.name not in cells:
        raise InvalidField(shape.name, f"missing: every row must name its {shape.name}")
    winner = fields.winner_of(cells.get("score_a"), cells.get("score_b"))
    if winner and "judge" in cells and not cells.keys() & {*shape.says}:
        cells["verdict"] = winner
    claims = _claims(shape, cells, labels)
    if claims[0] and "judge" in cells:
        _check_verdict(cells, constants)
    is_blank = not claims[0] and not cells.keys() & {*shape.verdict[1:]} - {*constants}
    blank = cells.pop("judge", None) if is_blank else None
    cells, left_out = _completed(shape, cells, claims, constants)
    labels = labels if cells.keys() & {"judge", "voter"} else {}
    row = partial(ImportRow, file, line, shape=shape.name)
    statements = _statements(cells, labels) if shape is ITEMS else [(cells, labels)]
    for statement, answers in statements:
        stored = {_STORED_AS.get(name, name): value for name, value in statement.items()}
        yield row(**stored, labels=dict(answers))
    if blank:
        # Whether the judge was not asked, or did not answer, all its cells tell.
        yield row(item=cells[shape.name], judge=blank, is_blank=True)
    for reason in left_out:
        yield LeftOut(file, line, reason)


def _completed(
    shape: Shape, cells: Values, claims: tuple[bool, bool], constants: Collection[str]
) -> tuple[Values, list[str]]:
    """Return what is whole of a row, and why the rest of it is left out."""
    left_out = []
    for is_claimed, names in zip(claims, (shape.verdict, shape.vote), strict=True):
        author_field, answer_field, *_ = names
        if is_claimed and author_field in cells:
            continue
        if is_claimed:
            left_out.append(f"a {answer_field} without its {author_field}")
        elif cells.keys() & {*names} - {*constants}:
            left_out.append(f"a {author_field} without a {answer_field}")
        cells = {name: value for name, value in cells.items() if name not in names}
    return cells, left_out


def _claims(shape: Shape, cells: Values, labels: Mapping[str, Label]) -> tuple[bool, bool]:
    """Say whether a row holds a verdict and a vote; on an item, answers to tasks alone are one."""
    has_verdict, has_vote = not cells.keys().isdisjoint(shape.says), "vote" in cells
    if shape is ITEMS and labels and not has_verdict and not has_vote:
        has_verdict, has_vote = "judge" in cells, "voter" in cells
    if labels and has_verdict == has_vote:
        raise InvalidField(
            "labels", "must stand beside one vote or one verdict, to say whose they are"
        )
    return has_verdict, has_vote


def _statements(cells: Values, labels: Mapping[str, Label]) -> Iterator[tuple[Values, Values]]:
    """Yield the verdict and the vote on a single item, each with its answers, or the item alone."""
    parts = (ITEMS.verdict, ITEMS.vote)
    answers = [{name: cells.pop(name) for name in names if name in cells} for names in parts]
    for (_, answer, *_), statement in zip(parts, answers, strict=True):
        if statement:
            main = statement.pop(answer, None if labels else statement.get("score"))
            yield cells | statement, dict(labels) if main is None else {MAIN: main, **labels}
    if not any(answers):
        yield cells, {}


def _check_verdict(cells: Values, constants: Collection[str]) -> None:
    picks = [cells[name] for name in PICKS if name in cells]
    if len(picks) == 1:
        missing_pick = PICKS[PICKS[0] in cells]
        raise InvalidField(missing_pick, "missing: the other order's pick is there")
    if "error" in cells:
        if picks or "verdict" in cells:
            raise InvalidField("error", "stands beside a verdict: it is one or the other")
        for name in ("score", "score_a", "score_b", "consistent"):
            if name in cells and name not in constants:
                raise InvalidField(name, "a failed verdict has none")
            cells.pop(name, None)
    if picks and cells.get("consistent") not in (None, picks[0] == picks[1]):
        raise InvalidField("consistent", f"the picks {picks[0]} and {picks[1]} say otherwise")


def name_by_content(shape: Shape, values: Values) -> str:
    """Return a name for the item of a row in a file without names: the same for the same content.

    A pair has the same name whichever output is A.

    Examples
    --------
    >>> row = {"prompt": "Why?", "output_a": "x", "output_b": "y"}
    >>> exchanged_row = {"prompt": "Why?", "output_a": "y", "output_b": "x"}
    >>> name_by_content(PAIRS, row) == name_by_content(PAIRS, exchanged_row)
    True
    """
    telling = {name: values[name] for name in shape.telling if values.get(name) is not None}
    if not telling.keys() & {"prompt", "prompt_id"} and not telling.keys() >= {*shape.outputs}:
        tell = "tells" if len(shape.outputs) == 1 else "tell"
        fault = f"neither a prompt nor {shape.outputs_in_words} {tell} which {shape.name} it is"
        raise InvalidField(shape.name, f"missing, and {fault}")
    texts = [telling, {exchanged(name): value for name, value in telling.items()}]
    return sha256(
        min(json.dumps(side_order, sort_keys=True) for side_order in texts).encode()
    ).hexdigest()[:32]


def column_of(row: ImportRow, name: str) -> str:
    """Return what a field of a row is called in its file."""
    columns = {field: column for column, field in _STORED_AS.items() if column != "pair"}
    return columns.get(name, name) if row.shape == "item" else name

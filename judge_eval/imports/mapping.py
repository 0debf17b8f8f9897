"""Which column of a file is which field of a row, how its values read, and the mapping of these
as people write it."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any, BinaryIO, Final, Literal

from pydantic import AfterValidator, Field

from humanjudge.core.validation import ConfigError, ConfigInvalid, Part, meant, validated
from judge_eval.imports import fields
from judge_eval.imports.expressions import Expression, paths_of
from judge_eval.imports.fields import Converter
from judge_eval.imports.guesses import (
    ColumnFacts,
    add_by_place,
    add_by_values,
    field_called,
    judge_at,
)
from judge_eval.imports.row_models import (
    ITEMS,
    JUDGES,
    LABELS,
    MAIN,
    METADATA,
    PAIRS,
    VOTERS,
    ImportRow,
    InvalidField,
    Item,
    LeftOut,
    Note,
    RowError,
    Shape,
    Values,
    assemble,
    checked,
    name_by_content,
    shape_of,
)
from judge_eval.imports.sources import Record, records
from judge_eval.judging.baselines import BASELINES, LONGER_HIGHER, RANDOM, always
from voting.items.choices import SWAPPED, Choice

# What finds the rows of a record that holds several.
ROWS: Final = "rows"
# What the columns of several tasks, judges … begin with in a file that has our own names.
_PREFIXES: Final = {
    LABELS: "labels.",
    JUDGES: "verdict.",
    VOTERS: "vote.",
    METADATA: "metadata.",
}
# These may also stand in a column of objects.
_NESTED: Final = (METADATA, LABELS)
_GROUP_KEYS: Final = {LABELS: "task", JUDGES: "judge", VOTERS: "voter", METADATA: "name"}
# What others call columns of single items.
_ALIASES: Final = {"item": "id", "generator": "model"}
# Columns that nothing is made of are named so far.
MOST_NAMED: Final = 20
LONGEST_NAMED: Final = 40


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """Where one value of a row comes from: expressions on its record, or else the mapping itself.

    `field` is a column of ours, or one of a group, such as ``labels.TASK``. `find` puts together
    what several expressions find.
    """

    field: str
    sources: Sequence[Expression]
    convert: Converter
    find: Callable[[Values], object] | None = None
    constant: object = None

    def read(self, record: Values) -> object:
        if not self.sources:
            return self.constant
        try:
            raw = self.find(record) if self.find else self.sources[0].evaluate(record)
            return None if raw is None else self.convert(raw)
        except ValueError as error:
            names = [source.text for source in self.sources]
            named = "" if names == [self.field] else f" (column {', '.join(map(repr, names))})"
            raise InvalidField(self.field, f"{error}{named}") from error

    def is_empty(self, record: Values) -> bool:
        return all(source.evaluate(record) in (None, "") for source in self.sources)


def _meaning_of(meanings: Values, raw: object) -> object:
    word = fields.plain(raw)
    key = word if word in meanings else word.strip()
    if key not in meanings and key:
        raise ValueError(f"{word!r} is not one of {', '.join(meanings)}")
    return meanings.get(key)


def _is_hot(raw: object) -> bool:
    word = str(raw).strip().lower()
    if raw is None or word in ("", "false"):
        return False
    return word == "true" or fields.number(raw) != 0


@dataclass(frozen=True)
class ColumnMapping:
    """How the records of one file become rows about items of one shape; made by `parse`.

    `columns` are called by a group and a name: of labels by task, verdicts by judge, votes by
    voter, metadata by name there are as many as a file has; all others are in no group. Groups that
    are `nested` stand in an object, too, in a column that is called as they are.
    """

    columns: Mapping[tuple[str, str], MappedColumn]
    shape: Shape = PAIRS
    nested: Collection[str] = ()
    # Where a record holds several rows: what finds them.
    row_sources: Sequence[Expression] = ()

    def rows(self, file: str, record: Record) -> Iterator[ImportRow | LeftOut | RowError]:
        """Turn one record into rows, more where it holds statements of several; or say what is
        wrong.
        """
        try:
            for part in self.parts(record.values):
                yield from self._rows(file, record.line, part)
        except ValueError as error:
            yield RowError(file, record.line, ROWS, str(error))

    def parts(self, record: Values) -> Iterator[Values]:
        """Yield what the rows of a record are made of: it alone, or with each that it holds."""
        if not self.row_sources:
            yield record
            return
        value = self.row_sources[0].evaluate(record)
        for part in value if isinstance(value, list) else [value] if value is not None else []:
            yield record | (part if isinstance(part, dict) else {"value": part})

    def _rows(self, file: str, line: int, raw: Values) -> Iterator[ImportRow | LeftOut | RowError]:
        shape = self.shape
        try:
            groups = self._read(raw)
            values = groups[""]
            if shape is ITEMS:
                values[METADATA] = groups[METADATA] or None
            name_column = self.columns.get(("", shape.name))
            sources = name_column.sources if name_column else ()
            # Where the column of names is there, an empty cell in it is a fault.
            if shape.name not in values and not any(source.text in raw for source in sources):
                values[shape.name] = name_by_content(shape, values)
            statements = [
                {column: values.get(column) for column in (*shape.about, METADATA)}
                | {author_field: name, field: answer}
                for group, author_field, field in (
                    (JUDGES, "judge", "verdict"),
                    (VOTERS, "voter", "vote"),
                )
                for name, answer in groups[group].items()
            ]
            answers = (*shape.says, "vote", "voter", "judge")
            if not statements or any(name in values for name in answers):
                yield from assemble(shape, file, line, values, groups[LABELS], self._constants)
            for statement in statements:
                yield from assemble(shape, file, line, statement, {}, ())
            name = shape.name
            cells = [
                (judge, column)
                for (group, judge), column in self.columns.items()
                if group == JUDGES
            ]
            for judge, column in cells:
                if judge not in groups[JUDGES] and column.is_empty(raw):
                    yield ImportRow(
                        file, line, values[name], shape=name, judge=judge, is_blank=True
                    )
        except InvalidField as error:
            yield RowError(file, line, error.field, error.reason)

    def _read(self, record: Values) -> dict[str, Values]:
        """Return the values of a record by group and name, as far as it has them."""
        groups: dict[str, Values] = {group: {} for group in ("", *self.shape.groups)}
        for group in self.nested:
            if (inner := record.get(group)) is not None:
                groups[group] = self._nested_values(group, inner)
        for (group, name), column in self.columns.items():
            if (value := column.read(record)) is not None:
                groups[group][name] = value
        verdict, is_said = self.columns.get(("", "verdict")), groups[""].keys() & {*self.shape.says}
        if verdict and not is_said and not verdict.is_empty(record):
            # What the mapping takes for nothing is no empty cell: the judge was not asked.
            groups[""].pop("judge", None)
        return groups

    def _nested_values(self, group: str, inner: object) -> Values:
        if not isinstance(inner, Mapping):
            contents = "answers by task" if group == LABELS else "values by name"
            raise InvalidField(group, f"must be an object of {contents}")
        convert, prefix = self.shape.groups[group], _PREFIXES[group]
        raw_values = {name: raw for name, raw in inner.items() if raw is not None}
        values = {name: checked(prefix + name, raw, convert) for name, raw in raw_values.items()}
        return {name: value for name, value in values.items() if value is not None}

    @cached_property
    def _constants(self) -> list[str]:
        return [name for (_, name), column in self.columns.items() if not column.sources]

    def expressions(self) -> list[Expression]:
        return [
            *self.row_sources,
            *(source for column in self.columns.values() for source in column.sources),
        ]

    def unused(self, columns: Iterable[str]) -> list[str]:
        roots = {*self.nested}.union(*(expression.roots for expression in self.expressions()))
        return [column for column in columns if column not in roots]


# Rows of a table all have the same columns, those of JSON a few sets of them; names may be long.
@lru_cache(maxsize=8)
def own_names(shape: Shape, names: tuple[str, ...]) -> ColumnMapping:
    """Return the mapping that columns make which are called as our own fields are."""
    columns: dict[tuple[str, str], MappedColumn] = {}
    for name, role in roles_of(names, shape).items():
        sources = [Expression(name, is_name=True)]
        if role in shape.fields:
            columns["", role] = MappedColumn(role, sources, shape.fields[role])
        elif role and name != role:
            place = (role, name.removeprefix(_PREFIXES[role]))
            columns[place] = MappedColumn(name, sources, shape.groups[role])
    return ColumnMapping(columns, shape, {*_NESTED} & {*shape.groups})


def rows_of(
    stream: BinaryIO,
    name: str,
    file_format: str | None,
    make: Callable[[Record], Iterator[Item | Values | str]],
) -> Iterator[Item]:
    """Yield what `make` makes of each record: items, values by the names of our fields, or a text
    that says why nothing is made of it; and an error where it raises InvalidField.
    """
    for record in records(stream, name, file_format):
        if not isinstance(record, Record):
            yield record
            continue
        try:
            for item in make(record):
                if isinstance(item, dict):
                    yield from own_rows(name, record.line, item)
                else:
                    yield (LeftOut(name, record.line, item) if isinstance(item, str) else item)
        except InvalidField as error:
            yield RowError(name, record.line, error.field, error.reason)


def own_rows(file: str, line: int, values: Values) -> Iterator[ImportRow | LeftOut | RowError]:
    """Build rows from raw values by field, with every check that a file of ours gets."""
    asks = values.pop("vote_kind", None)
    mapping = own_names(shape_of(values) or PAIRS, tuple(values))
    for row in mapping.rows(file, Record(line, dict(values))):
        yield replace(row, asks=asks) if asks and isinstance(row, ImportRow) else row


# --- a whole file -----------------------------------------------------------------------------


def rows(
    records: Iterable[Record | RowError | Note], mapping: ColumnMapping | Shape, file: str
) -> Iterator[Item]:
    """Turn records into rows: by a mapping, or of a shape whose own names the columns have.

    Behind the last record stands an error for each column that the mapping names and that no record
    had, for a misspelt name must not read as a file without votes; and a note of the columns that
    nothing is made of.
    """
    watched = _Columns(mapping)
    missing_sources = [] if isinstance(mapping, Shape) else mapping.expressions()
    line = 0
    for record in records:
        if not isinstance(record, Record):
            yield record
            continue
        line = record.line
        missing_sources = [
            source
            for source in missing_sources
            if not _has_value(source, watched.mapping, record.values)
        ]
        if fault := watched.fault_of(file, record):
            yield fault
        else:
            items = list(watched.mapping.rows(file, record))
            if watched.has_own_names:
                items = [_without_baselines(row) for row in items]
            yield from items or [LeftOut(file, line, "it holds no row")]
    for source in {source.text: source for source in missing_sources}.values() if line else ():
        reason = f"no record has a column {source.text!r}{_guess(source.text, watched.last)}"
        reason += f", and it is no expression: {source.fault}" if source.fault else ""
        yield RowError(file, line, None, reason, is_fatal=True)
    if watched.unread:
        yield Note(file, f"not read: {_listed([*watched.unread])}{watched.guess()}")


def _without_baselines(row: ImportRow | LeftOut | RowError) -> ImportRow | LeftOut | RowError:
    """Leave out what a baseline said, as our own exports tell it: it answers here by itself."""
    if not isinstance(row, ImportRow) or not row.judge or row.voter:
        return row
    baseline_names = {RANDOM, LONGER_HIGHER, always(str(row.labels.get(MAIN)))}
    if row.judge not in (baseline_names if row.shape == "item" else BASELINES):
        return row
    return LeftOut(row.file, row.line, f"{row.judge} is a baseline, which answers here by itself")


def _has_value(source: Expression, mapping: ColumnMapping, record: Values) -> bool:
    try:
        return any(
            source.text in part or (source.is_path and source.evaluate(part) is not None)
            for part in (record, *mapping.parts(record))
        )
    except ValueError:
        return False


class _Columns:
    """Watches which columns of a file nothing is made of, and what its rows lack for that."""

    def __init__(self, mapping: ColumnMapping | Shape) -> None:
        self._own, self._faults = mapping if isinstance(mapping, Shape) else None, set[str]()
        self.mapping = own_names(mapping, ()) if isinstance(mapping, Shape) else mapping
        self.has_own_names = self._own is not None
        self.last: list[str] = []
        self._nested: list[str] = []
        self._why = ""
        self.unread: dict[str, None] = {}

    def fault_of(self, file: str, record: Record) -> RowError | LeftOut | None:
        """Return why no row can be made of the columns of a record: an error where it is news."""
        columns = [*record.values]
        nested = [name for name in _TELLING if isinstance(record.values.get(name), dict | list)]
        # Nearly always they are: rows of a table all have the same.
        if columns != self.last or nested != self._nested:
            self.last, self._nested = columns, nested
            if self._own:
                self.mapping = own_names(self._own, tuple(columns))
            unread = self.mapping.unused(columns)
            self._why = self._fault(unread)
            if self._why and self._own and (config := proposal(record.values, self._own)):
                self._why += f"; a mapping may be: {json.dumps(config)}"
            if not self._why and len(self.unread) <= MOST_NAMED:
                self.unread |= dict.fromkeys(unread)
            if self._why and self._why not in self._faults:
                if len(self._faults) < MOST_NAMED:
                    self._faults.add(self._why)
                reason = f"{self._why} (so with every row that has these columns)"
                return RowError(file, record.line, None, reason)
        return LeftOut(file, record.line, self._why) if self._why else None

    def _fault(self, unread: list[str]) -> str:
        shape = self.mapping.shape
        if unread and len(unread) == len(self.last):
            return f"unknown columns: {_listed(unread)}; expected: {', '.join(shape.fields)}"
        if not self._own:
            return ""
        present = {*roles_of(self.last, shape).values()}
        if shape.name not in present:
            if near := _guess(shape.name, unread):
                return f"no column is called {shape.name!r}{near}"
            if not present & {"prompt", "prompt_id"} and not {*shape.outputs} <= present:
                alternatives = f"neither {shape.name}, nor a prompt or {shape.outputs_in_words}"
                return f"no column says which {shape.name} a row is about: {alternatives}"
        for name, needed in shape.needs.items():
            if name in present and not present & {*needed}:
                near = _guess(needed[0], unread)
                return f"beside {name!r} there is no column {needed[0]!r}{near}"
        # Nobody is to vote on outputs whose prompt was there, nor miss the votes that were.
        is_asked = "prompt" in present or not present & {*shape.outputs}
        lost = [
            column
            for column in unread
            if column in self._nested or (not is_asked and field_called(column) == "prompt")
        ]
        return f"nothing is read of {_listed(lost)}" if lost else ""

    def guess(self) -> str:
        """Return what the first misspelt column may mean."""
        fields_of = self.mapping.shape.fields if self._own else ()
        return next(filter(None, (_guess(column, fields_of) for column in self.unread)), "")


def nearest(column: str, names: Iterable[str]) -> str:
    """Return the name that a column may mean, if one is near."""
    # Elsewhere a question is a prompt.
    by_lower = {name.lower(): name for name in names if name != "run_question"}
    near = get_close_matches(column.lower(), by_lower, 1, 0.75)
    return by_lower[near[0]] if near else ""


def _guess(column: str, names: Iterable[str]) -> str:
    near = nearest(column, names)
    return f": is it {near!r}?" if near else ""


def _listed(columns: list[str]) -> str:
    names = [repr(column[:LONGEST_NAMED]) for column in columns[:MOST_NAMED]]
    return ", ".join([*names, *(["and more"] if len(columns) > MOST_NAMED else [])])


# --- a mapping as people choose it ------------------------------------------------------------


def roles_of(columns: Collection[str], shape: Shape) -> dict[str, str]:
    """Return what each column is taken for by its name: a field, a group of columns, or nothing.

    Examples
    --------
    >>> roles_of(["id", "verdict.gpt-4", "winer"], ITEMS)
    {'id': 'item', 'verdict.gpt-4': 'judges', 'winer': ''}
    """
    fields_by_alias = {alias: name for name, alias in _ALIASES.items() if name not in columns}
    roles = {}
    for column in columns:
        groups = (
            group
            for group in shape.groups
            if column.startswith(_PREFIXES[group]) or column == group in _NESTED
        )
        alias = fields_by_alias.get(column, "") if shape is ITEMS else ""
        roles[column] = column if column in shape.fields else alias or next(groups, "")
    return roles


# What holds what somebody says, in a list of what people say.
_ANSWERS: Final = ("vote", "label", "value", "rating", "score")
# What holds prompts, votes and verdicts in other tools' records.
_TELLING: Final = ("input", "inputs", "scores", "feedback", "assessments", "annotations")
_PLAIN_PATH: Final = re.compile(r"""(\w+|"[^"]*")(\.(\w+|"[^"]*")|\[-?\d*\])*""")
_LAST_MESSAGE: Final = re.compile(r"\[-1\]\.(content|value)$")


def usual_roles(paths: Collection[str], shape: Shape) -> dict[str, str]:
    """Return what paths are taken for by their names, or may be where these are not ours.

    Examples
    --------
    >>> usual_roles(["id", "response_a", "data.response_b", "noise"], PAIRS)
    {'id': '', 'response_a': 'output_a', 'data.response_b': 'output_b', 'noise': ''}
    """
    roles, taken_fields = roles_of(paths, shape), set[str]()
    if {shape.name, *shape.outputs} & {*roles.values()}:
        # Columns are called as ours are; but a prompt that is not must not be lost.
        prompts = [
            path for path in paths if field_called(_last_step(path)) == "prompt" and not roles[path]
        ]
        return roles | dict.fromkeys(
            prompts[:1] if "prompt" not in roles.values() else (), "prompt"
        )
    for path, role in roles.items():
        if any(f"{path}{end}" in roles for end in ("[-1].content", "[-1].value")):
            continue
        # Of a conversation the last message is compared, and what stands before it is the prompt.
        bare = re.sub(r"(?<=\w)\[:-1\]$", ".prompt", re.sub(_LAST_MESSAGE, "", path))
        last = _last_step(bare.removesuffix(".text"))
        own_field = last.lower().replace(" ", "_")
        field = role or (own_field if own_field in shape.fields else field_called(last))
        roles[path] = "" if field in taken_fields or field not in (*shape.fields, role) else field
        taken_fields |= {field} if field in shape.fields else set()
    return roles


def _last_step(path: str) -> str:
    """Return the name that stands last in a path, without quotes."""
    return re.split(r"[.\[\]]+", path)[-1].strip('"')


def guessed_roles(facts: Mapping[str, ColumnFacts], shape: Shape) -> dict[str, str]:
    """Return what columns are taken for by their names, their values and their places."""
    roles = usual_roles(facts, shape)
    if shape is PAIRS:
        return add_by_values(roles, facts, shape.name)
    return add_by_place(roles, JUDGES)


def proposal(record: Values, shape: Shape) -> Values:
    """Return the mapping that may read a record of other names; empty where none finds outputs.

    Examples
    --------
    >>> record = {"inputs": {"query": "Why?"}, "answer": {"text": "So."}}
    >>> proposal(record | {"said": [{"user": "ann", "label": "good"}]}, ITEMS)["rows"]
    'said[]'
    """
    path_values = [(path, value) for path, value in paths_of(record) if not isinstance(value, dict)]
    for candidate in (shape, ITEMS):
        roles = usual_roles([path for path, _ in path_values], candidate)
        config: Values = {role: path for path, role in roles.items() if role in candidate.fields}
        if not {*candidate.outputs} <= config.keys():
            continue
        people = _people_in(path_values)
        if people and candidate is ITEMS:
            at_places = add_by_place(roles, JUDGES)
            judges = {judge_at(path): path for path, role in at_places.items() if role == JUDGES}
            people |= {JUDGES: judges} if judges else {}
        return config | people
    return {}


def _people_in(path_values: Sequence[tuple[str, object]]) -> Values:
    """Return what reads people who each say something, out of a list of a record."""
    for path, value in path_values:
        inner = value[0] if isinstance(value, list) and value else None
        columns = (
            {field_called(column): column for column in inner} if isinstance(inner, dict) else {}
        )
        answer = next((name for name in _ANSWERS if name in (inner or ())), columns.get("vote"))
        if "voter" in columns and answer:
            return {ROWS: f"{path}[]", "voter": columns["voter"], "vote": answer}
    return {}


def fits(config: Values, columns: Collection[str]) -> bool:
    """Say whether a mapping names nothing but what a file with these columns has."""
    try:
        sources = parse(config).expressions()
    except ConfigInvalid:
        return False
    if isinstance(config.get(ROWS), str):
        # What a part of a record is called is not known here.
        sources = [source for source in sources if source.is_path] + [Expression(config[ROWS])]
    return bool(sources) and all(_occurs(source, columns) for source in sources)


def _occurs(source: Expression, columns: Collection[str]) -> bool:
    """Say whether a path is one of a file's, or leads into one; of an expression, all it reads."""
    if source.text in columns:
        return True
    if _PLAIN_PATH.fullmatch(source.text):
        path = source.text.removesuffix("[]")
        return any(
            column == path or column.startswith((f"{path}.", f"{path}[")) for column in columns
        )
    tops = {re.split(r"[.\[]", column)[0] for column in columns}
    return source.is_path and bool(source.roots & tops)


def config_of(roles: Mapping[str, str], meanings: Mapping[str, Values], **same: str) -> Values:
    """Return the mapping that reads columns as chosen; raises ConfigInvalid.

    `meanings` are what the values of a column stand for, `same` what is the same in every row.
    """
    config: Values = {field: {"value": value} for field, value in same.items() if value}
    errors = []
    for column, role in roles.items():
        spec = {"column": column, **({"values": meanings[column]} if column in meanings else {})}
        if role in _PREFIXES:
            name = judge_at(column.removeprefix(_PREFIXES[role]))
            config.setdefault(role, {})[name] = spec
        elif role in config:
            errors.append(ConfigError(f"mapping.{role}", f"chosen again for {column!r}"))
        elif role:
            config[role] = spec
    if errors:
        raise ConfigInvalid(errors)
    return config


# --- a mapping as people write it -------------------------------------------------------------

_LABEL_TYPES: Final = {"text": fields.text, "number": fields.number, "truth": fields.flag}
_Filled = Annotated[str, Field(min_length=1)]
_WINNERS: Final = ("verdict", "vote", "pick_ab", "pick_ba")


class _Source(Part):
    column: _Filled = ""
    value: Any = None
    values: Annotated[Values, Field(min_length=1)] | None = None
    separator: _Filled = ""
    timezone: Annotated[Any, AfterValidator(fields.zone_of)] = None
    type: Literal["text", "number", "truth"] | None = None
    # A winner out of numbers.
    scores: Annotated[list[_Filled], Field(min_length=2, max_length=2)] | None = None
    one_hot: Annotated[dict[Choice, _Filled], Field(min_length=2)] | None = None
    threshold: float | None = None
    tie_within: Annotated[float, Field(ge=0)] = 0
    larger: Literal["A", "B"] = "B"

    @property
    def expressions(self) -> list[str]:
        if self.scores:
            return [*self.scores]
        return [*self.one_hot.values()] if self.one_hot else [self.column]


def parse(config: object, shape: Shape | None = None) -> ColumnMapping:
    """Check a mapping, as docs/importing.md describes it, and make it ready for use.

    It is one of pairs or of single items, as `shape` or else its fields say. Raises ConfigInvalid
    with all that is wrong; its paths begin with ``mapping``.

    Examples
    --------
    >>> parse({"pair": "idx", "tag": "x"})
    Traceback (most recent call last):
        ...
    humanjudge.core.validation.ConfigInvalid: mapping.tag: unknown; did you mean 'tags'?
    """
    if not isinstance(config, Mapping):
        raise ConfigInvalid.at("mapping", "must be an object of columns by field")
    shape, config = _shape_and_fields(config, shape or shape_of(config))
    parser = _Parser(shape)
    names = [*shape.fields, *shape.groups, ROWS]
    for name in config:
        if name not in names:
            parser.refuse(name, f"unknown{meant(name, names)}")
    columns = {
        ("", field): parser.column(field, spec, shape.fields[field])
        for field, spec in config.items()
        if field in shape.fields
    }
    for group, convert in shape.groups.items():
        specs = config.get(group, {})
        if not isinstance(specs, Mapping):
            parser.refuse(group, f"must be an object of columns by {_GROUP_KEYS[group]}")
            continue
        for name, spec in specs.items():
            columns[group, name] = parser.column(f"{group}.{name}", spec, convert)
    row_sources = [parser.expression(ROWS, config[ROWS])] if ROWS in config else []
    if parser.errors:
        raise ConfigInvalid(parser.errors)
    return ColumnMapping(columns, shape, row_sources=row_sources)


def _shape_and_fields(
    config: Mapping[str, object], shape: Shape | None
) -> tuple[Shape, Mapping[str, object]]:
    """Return the shape of a mapping, and its fields by our names.

    Where nothing else says it, it is the shape that knows all fields; of pairs, where neither does.
    """
    extra = {PAIRS: {ROWS}, ITEMS: {ROWS, *_ALIASES.values()}}
    fitting = (s for s in extra if {*s.fields, *s.groups} | extra[s] >= config.keys())
    shape = shape or next(fitting, PAIRS)
    names_by_alias = {alias: name for name, alias in _ALIASES.items() if name not in config}
    names_by_alias = names_by_alias if shape is ITEMS else {}
    return shape, {names_by_alias.get(name, name): spec for name, spec in config.items()}


class _Parser:
    """Goes on behind a mistake, so that all of them are found at once."""

    def __init__(self, shape: Shape) -> None:
        self.errors: list[ConfigError] = []
        self._shape = shape

    def refuse(self, path: str, reason: str) -> None:
        self.errors.append(ConfigError(f"mapping.{path}", reason))

    def column(self, field: str, spec: object, convert: Converter) -> MappedColumn:
        try:
            raw_source = {"column": spec} if isinstance(spec, str) else spec
            source = validated(_Source, raw_source, path=f"mapping.{field}")
        except ConfigInvalid as invalid:
            self.errors += invalid.errors
            return MappedColumn(field, (), convert)
        self._refuse_misplaced(field, source)
        if source.separator:
            convert = partial(fields.words, separator=source.separator)
        if source.timezone:
            convert = partial(fields.moment, zone=source.timezone)
        convert = _LABEL_TYPES[source.type] if source.type else convert
        if "value" in source.model_fields_set:
            constant = self._value(f"{field}.value", source.value, convert)
            return MappedColumn(field, (), convert, constant=constant)
        if source.values:
            meanings = {
                raw: None
                if word is None
                else self._value(f'{field}.values["{raw}"]', word, convert)
                for raw, word in source.values.items()
            }
            convert = partial(_meaning_of, meanings)
        sources = [self.expression(field, text) for text in filter(None, source.expressions)]
        is_winner = source.scores or source.one_hot or source.threshold is not None
        find = partial(_winner, source, sources) if is_winner else None
        if find and self._shape is ITEMS:
            find = partial(_mark, source, sources)
        return MappedColumn(field, sources, convert, find)

    def expression(self, path: str, text: object) -> Expression:
        try:
            if isinstance(text, str) and text:
                return Expression(text)
            reason = "must be the name of a column, or an expression"
        except ValueError as error:
            reason = str(error)
        self.refuse(path, reason)
        return Expression("")

    def _refuse_misplaced(self, field: str, source: _Source) -> None:
        settings, is_label = source.model_fields_set, field.startswith(f"{LABELS}.")
        is_single = self._shape is ITEMS
        if len(settings & {"column", "value", "scores", "one_hot"}) != 1:
            choices = ", scores and one_hot" if field in _WINNERS else " and value"
            self.refuse(field, f"needs one of column{', value' if ',' in choices else ''}{choices}")
        elif "value" in settings and (field in ("pair", "item") or source.values):
            self.refuse(f"{field}.value", "cannot stand here: it is the same for every row")
        allowed = {
            "separator": is_label or field == "tags",
            "timezone": field in ("voted_at", "time"),
            "type": is_label,
            **dict.fromkeys(("scores", "one_hot"), field in _WINNERS and not is_single),
            "threshold": field in _WINNERS or field.startswith((f"{JUDGES}.", f"{VOTERS}.")),
            "tie_within": bool({"scores", "threshold"} & settings) and not is_single,
            "larger": "threshold" in settings and not is_single,
        }
        for setting in [name for name, belongs in allowed.items() if not belongs]:
            if setting in settings:
                self.refuse(f"{field}.{setting}", "does not belong here")

    def _value(self, path: str, raw: object, convert: Converter) -> object:
        try:
            value = None if raw is None else convert(raw)
        except ValueError as error:
            self.refuse(path, str(error))
            return None
        if value is None:
            self.refuse(path, "must not be empty")
        return value


def _mark(source: _Source, expressions: Sequence[Expression], record: Values) -> str | None:
    number = fields.number(raw) if (raw := expressions[0].evaluate(record)) is not None else None
    return None if number is None else "pass" if number >= (source.threshold or 0) else "flag"


def _winner(source: _Source, expressions: Sequence[Expression], record: Values) -> str | None:
    values = [expression.evaluate(record) for expression in expressions]
    if source.one_hot:
        hot = [choice for choice, raw in zip(source.one_hot, values, strict=True) if _is_hot(raw)]
        if len(hot) > 1:
            raise ValueError(f"{' and '.join(hot)} are marked at once")
        return hot[0] if hot else None
    numbers = [None if raw is None else fields.number(raw) for raw in values]
    a, b = numbers if source.scores else (numbers[0], source.threshold)
    winner = fields.winner_of(a, b, source.tie_within)
    is_b = source.threshold is not None and source.larger == "B"
    return SWAPPED[winner] if winner and is_b else winner

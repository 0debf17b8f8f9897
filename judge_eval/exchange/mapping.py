"""Which column of a file is which field of a row, how its values read, and the mapping of these
as people write it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import chain
from typing import Annotated, Any, BinaryIO, Final, Literal, cast

from pydantic import AfterValidator, Field

from humanjudge.lib.validation import ConfigError, ConfigInvalid, Part, meant, validated
from judge_eval.exchange import fields
from judge_eval.exchange.fields import Converter, Label
from judge_eval.exchange.row_models import (
    ITEMS,
    PAIRS,
    SHAPES,
    Item,
    Misfit,
    Note,
    Row,
    RowError,
    Shape,
    Values,
    assemble,
    name_by_content,
    shape_of,
)
from judge_eval.exchange.sources import Record, records

LABELS: Final = "labels"
JUDGES: Final = "judges"
VOTERS: Final = "voters"
METADATA: Final = "metadata"
# What the columns of several tasks, judges … begin with in a file that has our own names.
_PREFIXES: Final = {
    LABELS: "labels.",
    JUDGES: "verdict.",
    VOTERS: "vote.",
    METADATA: "metadata.",
}
_ONE_OF: Final = {LABELS: "task", JUDGES: "judge", VOTERS: "voter", METADATA: "name"}
# What others call columns of single items.
_ALIASES: Final = {"item": "id", "generator": "model"}
# Columns that nothing is made of are named so far.
MOST_NAMED: Final = 20
LONGEST_NAMED: Final = 40


@dataclass(frozen=True, slots=True)
class Column:
    """Where one value of a row comes from: a column of the file, or else the mapping itself.

    `field` is a column of ours, or one of a group, such as ``labels.TASK``.
    """

    field: str
    column: str | None
    convert: Converter
    constant: object = None

    def read(self, record: Values) -> object:
        if self.column is None:
            return self.constant
        raw = record.get(self.column)
        if raw is None:
            return None
        try:
            return self.convert(raw)
        except ValueError as error:
            named = "" if self.column == self.field else f" (column {self.column!r})"
            raise Misfit(self.field, f"{error}{named}") from error


def _looked_up(meanings: Values, raw: object) -> object:
    word = fields.plain(raw)
    if word not in meanings and word.strip():
        raise ValueError(f"{word!r} is not one of {', '.join(meanings)}")
    return meanings.get(word)


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """How the records of one file become rows about items of one shape; made by `parse`.

    `groups` are columns of which there are as many as a file has: of labels by task, verdicts by
    judge, votes by voter, metadata by name. Those that are `nested` stand in an object, too, in a
    column that is called as they are.
    """

    columns: tuple[Column, ...]
    groups: Mapping[str, Mapping[str, Column]]
    shape: Shape = PAIRS
    nested: Collection[str] = ()

    def rows(self, file: str, record: Record) -> Iterator[Row | RowError]:
        """Turn one record into rows, more where it holds statements of several; or say what is
        wrong.
        """
        shape, raw = self.shape, record.values
        try:
            values = {source.field: source.read(raw) for source in self.columns}
            if shape is ITEMS:
                values[METADATA] = dict(self._group(METADATA, raw)) or None
            labels = cast("dict[str, Label]", dict(self._group(LABELS, raw)))
            constants = [source.field for source in self.columns if source.column is None]
            if not any(s.field == shape.name and s.column in raw for s in self.columns):
                values[shape.name] = name_by_content(shape, values)
            about = {name: values.get(name) for name in (shape.name, *shape.about)}
            wide = [
                about | {who: name, field: answer}
                for group, who, field in (
                    (JUDGES, "judge", "verdict"),
                    (VOTERS, "voter", "vote"),
                )
                for name, answer in self._group(group, raw)
            ]
            if not wide or any(values.get(name) is not None for name in shape.answer_fields):
                yield from assemble(shape, file, record.line, values, labels, constants)
            for statement in wide:
                yield from assemble(shape, file, record.line, statement, {}, ())
        except Misfit as error:
            yield RowError(file, record.line, error.field, error.why)

    def named(self) -> set[str]:
        every = chain(self.columns, *(group.values() for group in self.groups.values()))
        return {each.column for each in every if each.column is not None}

    def unused(self, columns: Iterable[str]) -> list[str]:
        named = self.named()
        return [column for column in columns if column not in named]

    def _group(self, group: str, record: Values) -> Iterator[tuple[str, object]]:
        sources = self.groups.get(group, {})
        if group in self.nested and (inner := record.get(group)) is not None:
            if not isinstance(inner, Mapping):
                what = "answers by task" if group == LABELS else "values by name"
                raise Misfit(group, f"must be an object of {what}")
            convert = converter_of(group, self.shape)
            flat = {_PREFIXES[group] + name: raw for name, raw in inner.items()}
            record = {**flat, **record}
            sources = {
                name.removeprefix(_PREFIXES[group]): Column(name, name, convert) for name in flat
            } | {**sources}
        for name, source in sources.items():
            if (value := source.read(record)) is not None:
                yield name, value


@dataclass(frozen=True)
class OwnNames:
    """Reads files whose columns have the names of our own fields, each by the mapping it makes."""

    shape: Shape

    def rows(self, file: str, record: Record) -> Iterator[Row | RowError]:
        return _by_names(self.shape.name, tuple(record.values)).rows(file, record)

    def named(self) -> set[str]:
        """Nothing is named that every file must have."""
        return set()

    def unused(self, columns: Collection[str]) -> list[str]:
        return [column for column, role in roles_of(columns, self.shape).items() if not role]


# Rows of a table all have the same columns, those of JSON a few sets of them; names may be long.
@lru_cache(maxsize=8)
def _by_names(shape_name: str, names: tuple[str, ...]) -> ColumnMapping:
    shape, columns = SHAPES[shape_name], list[Column]()
    groups: dict[str, dict[str, Column]] = {group: {} for group in groups_of(shape)}
    for name, role in roles_of(names, shape).items():
        if role in shape.fields:
            columns.append(Column(role, name, shape.fields[role]))
        elif role and name != role:
            of_one = name.removeprefix(_PREFIXES[role])
            groups[role][of_one] = Column(name, name, converter_of(role, shape))
    return ColumnMapping(tuple(columns), groups, shape, nested_in(shape))


def groups_of(shape: Shape) -> list[str]:
    return [group for group in _PREFIXES if group != METADATA or shape is ITEMS]


def nested_in(shape: Shape) -> list[str]:
    """Return the groups that may also stand in a column of objects."""
    return [group for group in (METADATA, LABELS) if group in groups_of(shape)]


def converter_of(group: str, shape: Shape) -> Converter:
    if group == LABELS:
        return fields.label
    return fields.fact if group == METADATA else shape.answer


OWN_NAMES: Final = OwnNames(PAIRS)
OWN_ITEM_NAMES: Final = OwnNames(ITEMS)


def rows_of(
    stream: BinaryIO,
    name: str,
    file_format: str | None,
    make: Callable[[Record], Iterator[Item]],
) -> Iterator[Item]:
    """Yield what `make` makes of each record, and an error where it raises Misfit."""
    for record in records(stream, name, file_format):
        if not isinstance(record, Record):
            yield record
            continue
        try:
            yield from make(record)
        except Misfit as error:
            yield RowError(name, record.line, error.field, error.why)


def own_row(file: str, line: int, values: Values) -> Row | RowError:
    """Build a row from raw values by field, with every check that a file of ours gets."""
    [row] = OWN_NAMES.rows(file, Record(line, dict(values)))
    return row


def own_items(file: str, line: int, values: Values) -> Iterator[Row | RowError]:
    """Build rows about a single item in the same way."""
    return OWN_ITEM_NAMES.rows(file, Record(line, dict(values)))


# --- a whole file -----------------------------------------------------------------------------


def rows(
    records: Iterable[Record | RowError | Note], mapping: ColumnMapping | OwnNames, file: str
) -> Iterator[Row | RowError | Note]:
    """Turn records into rows.

    Behind the last record stands an error for each column that the mapping names and that no record
    had, for a misspelt name must not read as a file without votes; and a note of the columns that
    nothing is made of.
    """
    columns = _Columns(mapping)
    line = 0
    for record in records:
        if not isinstance(record, Record):
            yield record
            continue
        line = record.line
        if new_fault := columns.look(list(record.values)):
            why = f"{new_fault} (so with every row that has these columns)"
            yield RowError(file, line, None, why)
        if not columns.fault:
            yield from mapping.rows(file, record)
    if line:
        for column in sorted(columns.missing):
            why = f"no record has a column {column!r}{_nearest(column, columns.last)}"
            yield RowError(file, line, None, why, is_fatal=True)
    if columns.unread:
        guesses = (_nearest(column, mapping.shape.fields) for column in columns.unread)
        guess = next(filter(None, guesses), "") if isinstance(mapping, OwnNames) else ""
        yield Note(file, f"not read: {_listed(list(columns.unread))}{guess}")


class _Columns:
    """Watches which columns of a file nothing is made of, and what its rows lack for that."""

    def __init__(self, mapping: ColumnMapping | OwnNames) -> None:
        self._mapping = mapping
        self._faults: set[str] = set()
        self.last: list[str] = []
        self.fault = ""
        self.missing = mapping.named()
        self.unread: dict[str, None] = {}

    def look(self, columns: list[str]) -> str:
        """Set why no row can be made of these columns; return it if that is news."""
        if columns == self.last:
            return ""  # nearly always: rows of a table all have the same
        self.last = columns
        self.missing.difference_update(columns)
        unread = self._mapping.unused(columns)
        self.fault = _fault(columns, unread, self._mapping)
        if not self.fault and len(self.unread) <= MOST_NAMED:
            self.unread |= dict.fromkeys(unread)
        if not self.fault or self.fault in self._faults:
            return ""
        if len(self._faults) < MOST_NAMED:
            self._faults.add(self.fault)
        return self.fault


def _fault(columns: list[str], unread: list[str], mapping: ColumnMapping | OwnNames) -> str:
    shape, present = mapping.shape, {*columns}
    if unread and len(unread) == len(columns):
        return _unknown(columns, shape)
    if isinstance(mapping, ColumnMapping):
        return ""
    present |= {LABELS} if any(name.startswith(_PREFIXES[LABELS]) for name in columns) else set()
    if not present & {shape.name, _ALIASES.get(shape.name)}:
        if near := _nearest(shape.name, unread):
            return f"no column is called {shape.name!r}{near}"
        if not present & {"prompt", "prompt_id"} and not {*shape.outputs} <= present:
            what = f"neither {shape.name}, nor a prompt or {shape.outputs_in_words}"
            return f"no column says which {shape.name} a row is about: {what}"
    for name, needed in shape.needs.items():
        if name in present and not present & {*needed}:
            return f"beside {name!r} there is no column {needed[0]!r}{_nearest(needed[0], unread)}"
    return ""


def nearest(column: str, names: Iterable[str]) -> str:
    """Return the name that a column may mean, if one is near."""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(column.lower(), by_lower, 1, 0.75)
    return by_lower[near[0]] if near else ""


def _nearest(column: str, names: Iterable[str]) -> str:
    near = nearest(column, names)
    return f": is it {near!r}?" if near else ""


def _unknown(columns: list[str], shape: Shape) -> str:
    why = f"unknown columns: {_listed(columns)}"
    other = next((sign for sign in ";\t|" if sign in columns[0]), None)
    if len(columns) == 1 and other:
        return f"{why}; commas stand between columns, not {other!r}"
    return f"{why}; expected: {', '.join(shape.fields)}"


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
            for group in groups_of(shape)
            if column.startswith(_PREFIXES[group]) or column == group in nested_in(shape)
        )
        alias = fields_by_alias.get(column, "") if shape is ITEMS else ""
        roles[column] = column if column in shape.fields else alias or next(groups, "")
    return roles


def chosen(roles: Mapping[str, str], meanings: Mapping[str, Values], **same: str) -> Values:
    """Return the mapping that reads columns as chosen; raises ConfigInvalid.

    `meanings` are what the values of a column stand for, `same` what is the same in every row.
    """
    config: Values = {field: {"value": value} for field, value in same.items() if value}
    errors = []
    for column, role in roles.items():
        spec = {"column": column, **({"values": meanings[column]} if column in meanings else {})}
        if role in _PREFIXES:
            name = column.removeprefix(_PREFIXES[role])
            config.setdefault(role, {})[name] = spec
        elif role in config:
            errors.append(ConfigError(f"mapping.{role}", f"chosen again for {column!r}"))
        elif role:
            config[role] = spec
    if errors:
        raise ConfigInvalid(errors)
    return config


# --- a mapping as people write it -------------------------------------------------------------

LABEL_TYPES: Final[dict[str, Converter]] = {
    "text": fields.text,
    "number": fields.number,
    "truth": fields.flag,
}
_Filled = Annotated[str, Field(min_length=1)]


class _Source(Part):
    column: _Filled = ""
    value: Any = None
    values: Annotated[Values, Field(min_length=1)] | None = None
    separator: _Filled = ""
    timezone: Annotated[Any, AfterValidator(fields.zone_of)] = None
    type: Literal["text", "number", "truth"] | None = None


def parse(config: object, shape: Shape | None = None) -> ColumnMapping:
    """Check a mapping, as docs/importing.md describes it, and make it ready for use.

    It is one of pairs or of single items, as `shape` or else its fields say. Raises ConfigInvalid
    with all that is wrong; its paths begin with ``mapping``.

    Examples
    --------
    >>> parse({"pair": "idx", "tag": "x"})
    Traceback (most recent call last):
        ...
    humanjudge.lib.validation.ConfigInvalid: mapping.tag: unknown; did you mean 'tags'?
    """
    if not isinstance(config, Mapping):
        raise ConfigInvalid.at("mapping", "must be an object of columns by field")
    shape, parser = shape or shape_of(config) or _fitting(config), _Parser()
    groups = groups_of(shape)
    names = [*shape.fields, *groups]
    for name in config:
        if name not in names:
            parser.refuse(name, f"unknown{meant(name, names)}")
    columns = [
        parser.column(field, spec, shape.fields[field])
        for field, spec in config.items()
        if field in shape.fields
    ]
    parsed = {}
    for group in groups:
        specs, convert = config.get(group, {}), converter_of(group, shape)
        if not isinstance(specs, Mapping):
            parser.refuse(group, f"must be an object of columns by {_ONE_OF[group]}")
            specs = {}
        parsed[group] = {
            name: parser.column(f"{group}.{name}", spec, convert) for name, spec in specs.items()
        }
    if parser.errors:
        raise ConfigInvalid(parser.errors)
    return ColumnMapping(tuple(columns), parsed, shape)


def _fitting(config: Mapping[str, object]) -> Shape:
    """Return the shape that knows all fields of a mapping; of pairs, where neither does."""
    shapes = (PAIRS, ITEMS)
    return next((s for s in shapes if {*s.fields, *groups_of(s)} >= config.keys()), PAIRS)


class _Parser:
    """Goes on behind a mistake, so that all of them are found at once."""

    def __init__(self) -> None:
        self.errors: list[ConfigError] = []

    def refuse(self, path: str, why: str) -> None:
        self.errors.append(ConfigError(f"mapping.{path}", why))

    def column(self, field: str, spec: object, convert: Converter) -> Column:
        try:
            given = {"column": spec} if isinstance(spec, str) else spec
            source = validated(_Source, given, path=f"mapping.{field}")
        except ConfigInvalid as invalid:
            self.errors += invalid.errors
            return Column(field, None, convert)
        self._refuse_misplaced(field, source)
        if source.separator:
            convert = partial(fields.words, separator=source.separator)
        if source.timezone:
            convert = partial(fields.moment, zone=source.timezone)
        convert = LABEL_TYPES[source.type] if source.type else convert
        if "value" in source.model_fields_set:
            constant = self._value(f"{field}.value", source.value, convert)
            return Column(field, None, convert, constant=constant)
        if source.values:
            meanings = {
                raw: None
                if word is None
                else self._value(f'{field}.values["{raw}"]', word, convert)
                for raw, word in source.values.items()
            }
            convert = partial(_looked_up, meanings)
        return Column(field, source.column, convert)

    def _refuse_misplaced(self, field: str, source: _Source) -> None:
        given, is_label = source.model_fields_set, field.startswith(f"{LABELS}.")
        if ("column" in given) == ("value" in given):
            self.refuse(field, "needs one of column and value")
        elif "value" in given and (field in ("pair", "item") or source.values):
            self.refuse(f"{field}.value", "cannot stand here: it is the same for every row")
        allowed = {
            "separator": is_label or field == "tags",
            "timezone": field in ("voted_at", "time"),
            "type": is_label,
        }
        for setting in [name for name, belongs in allowed.items() if not belongs]:
            if setting in given:
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

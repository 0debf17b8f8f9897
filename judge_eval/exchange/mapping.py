"""Which column of a file is which field of a row, how its values read, and the mapping of these
as people write it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, BinaryIO, Final, Literal, cast

from pydantic import AfterValidator, Field

from humanjudge.lib.validation import ConfigError, ConfigInvalid, Part, meant, validated
from judge_eval.exchange import fields
from judge_eval.exchange.fields import Converter, Label
from judge_eval.exchange.rows import (
    FIELDS,
    OF_A_PAIR,
    Item,
    Misfit,
    Note,
    Row,
    RowError,
    Values,
    assemble,
    name_by_content,
)
from judge_eval.exchange.sources import Record, records

LABELS: Final = "labels"
JUDGES: Final = "judges"
VERDICT_OF: Final = "verdict."
_NEEDS: Final = {"vote": "voter", "voter": "vote", "verdict": "judge", "pick_ab": "judge"}
_STATED: Final = ("vote", "voter", "judge", "verdict", "error", "pick_ab", "pick_ba")
# Columns that nothing is made of are named so far.
MOST_NAMED: Final = 20
LONGEST_NAMED: Final = 40


@dataclass(frozen=True, slots=True)
class Column:
    """Where one value of a row comes from: a column of the file, or else the mapping itself.

    `field` is a key of `FIELDS`, or ``labels.TASK``.
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
    """How the records of one file become rows; made by `parse`.

    `labels` are columns by task; None takes a ``labels`` object and every column ``labels.TASK``.
    `judges` are columns of verdicts by judge; None takes every column ``verdict.NAME``.
    """

    columns: tuple[Column, ...]
    labels: Mapping[str, Column] | None = None
    judges: Mapping[str, Column] | None = None

    def rows(self, file: str, record: Record) -> Iterator[Row | RowError]:
        """Turn one record into rows, more where verdicts stand in columns; or say what is wrong."""
        try:
            values = {source.field: source.read(record.values) for source in self.columns}
            labels = self._labels(record.values)
            verdicts = list(self._verdicts(record.values))
            constants = [source.field for source in self.columns if source.column is None]
            if not any(s.field == "pair" and s.column in record.values for s in self.columns):
                values["pair"] = name_by_content(values)
            if not verdicts or any(values.get(field) is not None for field in _STATED):
                yield assemble(file, record.line, values, labels, constants)
            about = {field: values.get(field) for field in ("pair", *OF_A_PAIR)}
            for judge, verdict in verdicts:
                yield assemble(file, record.line, about | {"judge": judge, "verdict": verdict}, {})
        except Misfit as error:
            yield RowError(file, record.line, error.field, error.why)

    def named(self) -> set[str]:
        every = [*self.columns, *(self.labels or {}).values(), *(self.judges or {}).values()]
        return {source.column for source in every if source.column is not None}

    def unused(self, columns: Iterable[str]) -> list[str]:
        named, prefixes = self.named(), []
        if self.labels is None:
            named.add(LABELS)
            prefixes.append(f"{LABELS}.")
        if self.judges is None:
            prefixes.append(VERDICT_OF)
        return [each for each in columns if not (each in named or each.startswith(tuple(prefixes)))]

    def _labels(self, record: Values) -> dict[str, Label]:
        labels = self.labels
        if labels is None:
            nested = record.get(LABELS)
            if nested is not None and not isinstance(nested, Mapping):
                raise Misfit(LABELS, "must be an object of answers by task")
            tasks = {c.partition(".")[2]: v for c, v in record.items() if c.startswith("labels.")}
            record = {**(nested or {}), **tasks}
            labels = {task: Column(f"{LABELS}.{task}", task, fields.label) for task in record}
        answers = ((task, source.read(record)) for task, source in labels.items())
        return {task: cast(Label, answer) for task, answer in answers if answer is not None}

    def _verdicts(self, record: Values) -> Iterator[tuple[str, object]]:
        sources = self.judges
        if sources is None:
            columns = (name for name in record if name.startswith(VERDICT_OF))
            sources = {
                name.removeprefix(VERDICT_OF): Column(name, name, fields.choice) for name in columns
            }
        for judge, source in sources.items():
            if (verdict := source.read(record)) is not None:
                yield judge, verdict


# Reads files whose columns have the names of our own fields.
OWN_NAMES: Final = ColumnMapping(
    tuple(Column(field, field, convert) for field, convert in FIELDS.items())
)


def rows_of(
    stream: BinaryIO,
    name: str,
    file_format: str | None,
    make: Callable[[Record], Iterator[Item]],
) -> Iterator[Item]:
    """Yield what `make` makes of each record, and an error where it raises Misfit."""
    for record in records(stream, name, file_format):
        if isinstance(record, RowError):
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


# --- a whole file -----------------------------------------------------------------------------


def rows(
    records: Iterable[Record | RowError], mapping: ColumnMapping, file: str
) -> Iterator[Row | RowError | Note]:
    """Turn records into rows.

    Behind the last record stands an error for each column that the mapping names and that no record
    had, for a misspelt name must not read as a file without votes; and a note of the columns that
    nothing is made of.
    """
    columns = _Columns(mapping)
    line = 0
    for record in records:
        if isinstance(record, RowError):
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
        guesses = (_nearest(column, FIELDS) for column in columns.unread)
        guess = next(filter(None, guesses), "") if mapping is OWN_NAMES else ""
        yield Note(file, f"not read: {_listed(list(columns.unread))}{guess}")


class _Columns:
    """Watches which columns of a file nothing is made of, and what its rows lack for that."""

    def __init__(self, mapping: ColumnMapping) -> None:
        self._mapping = mapping
        self._faults: set[str] = set()
        self.last: list[str] = []
        self.fault = ""
        self.missing = set() if mapping is OWN_NAMES else mapping.named()
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


def _fault(columns: list[str], unread: list[str], mapping: ColumnMapping) -> str:
    present = set(columns)
    if unread and len(unread) == len(columns):
        return _unknown(columns)
    if mapping is not OWN_NAMES:
        return ""
    if "pair" not in present:
        if near := _nearest("pair", unread):
            return f"no column is called 'pair'{near}"
        if not present & {"prompt", "prompt_id"} and not {"output_a", "output_b"} <= present:
            return "no column says which pair a row is about: neither pair, nor a prompt or outputs"
    for field, needed in _NEEDS.items():
        if field in present and needed not in present:
            return f"beside {field!r} there is no column {needed!r}{_nearest(needed, unread)}"
    return ""


def _nearest(column: str, names: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(column.lower(), by_lower, 1, 0.75)
    return f": is it {by_lower[near[0]]!r}?" if near else ""


def _unknown(columns: list[str]) -> str:
    why = f"nothing is known of its columns: {_listed(columns)}"
    other = next((sign for sign in ";\t|" if sign in columns[0]), None)
    if len(columns) == 1 and other:
        return f"{why}; commas stand between columns, not {other!r}"
    return f"{why}; known are {', '.join(FIELDS)}"


def _listed(columns: list[str]) -> str:
    names = [repr(column[:LONGEST_NAMED]) for column in columns[:MOST_NAMED]]
    return ", ".join([*names, *(["and more"] if len(columns) > MOST_NAMED else [])])


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


def parse(config: object) -> ColumnMapping:
    """Check a mapping, as docs/importing.md describes it, and make it ready for use.

    Raises ConfigInvalid with all that is wrong; its paths begin with ``mapping``.

    Examples
    --------
    >>> parse({"pair": "idx", "votes": "x"})
    Traceback (most recent call last):
        ...
    humanjudge.lib.validation.ConfigInvalid: mapping.votes: unknown; did you mean 'vote'?
    """
    if not isinstance(config, Mapping):
        raise ConfigInvalid.at("mapping", "must be an object of columns by field")
    parser = _Parser()
    names = [*FIELDS, LABELS, JUDGES]
    for name in config:
        if name not in names:
            parser.refuse(name, f"unknown{meant(name, names)}")
    columns = [
        parser.column(field, spec, FIELDS[field])
        for field, spec in config.items()
        if field in FIELDS
    ]
    groups = []
    for group, of, convert in ((LABELS, "task", fields.label), (JUDGES, "judge", fields.choice)):
        specs = config.get(group, {})
        if not isinstance(specs, Mapping):
            parser.refuse(group, f"must be an object of columns by {of}")
            specs = {}
        groups.append(
            {name: parser.column(f"{group}.{name}", spec, convert) for name, spec in specs.items()}
        )
    if parser.errors:
        raise ConfigInvalid(parser.errors)
    return ColumnMapping(tuple(columns), *groups)


class _Parser:
    """Goes on behind a mistake, so that all of them are found at once."""

    def __init__(self) -> None:
        self.errors: list[ConfigError] = []

    def refuse(self, path: str, why: str) -> None:
        self.errors.append(ConfigError(f"mapping.{path}", why))

    def column(self, field: str, spec: object, convert: Converter) -> Column:
        try:
            stated = {"column": spec} if isinstance(spec, str) else spec
            source = validated(_Source, stated, path=f"mapping.{field}")
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
        stated, is_label = source.model_fields_set, field.startswith(f"{LABELS}.")
        if ("column" in stated) == ("value" in stated):
            self.refuse(field, "needs one of column and value")
        elif "value" in stated and (field == "pair" or source.values):
            self.refuse(f"{field}.value", "cannot stand here: it is the same for every row")
        allowed = {
            "separator": is_label or field == "tags",
            "timezone": field == "voted_at",
            "type": is_label,
        }
        for setting in [name for name, belongs in allowed.items() if not belongs]:
            if setting in stated:
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

"""Which column of a file is which field of a row, and how its values read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, cast

from judge_eval.exchange import fields
from judge_eval.exchange.assemble import OF_A_PAIR, Misfit, assemble, told_by_content
from judge_eval.exchange.fields import Converter
from judge_eval.exchange.rows import Label, Note, Row, RowError
from judge_eval.exchange.sources import Record

FIELDS: Final[dict[str, Converter]] = {
    "pair": fields.name,
    "prompt": fields.text,
    "prompt_id": fields.name,
    "cluster": fields.name,
    "tags": fields.words,
    "kind": fields.kind,
    "generator_a": fields.name,
    "generator_b": fields.name,
    "output_a": fields.output,
    "output_b": fields.output,
    "judge": fields.name,
    "verdict": fields.choice,
    "pick_ab": fields.choice,
    "pick_ba": fields.choice,
    "score_a": fields.score,
    "score_b": fields.score,
    "feedback": fields.text,
    "error": fields.text,
    "consistent": fields.flag,
    "voter": fields.name,
    "vote": fields.choice,
    "voted_at": fields.moment,
    "comment": fields.text,
    "left_side": fields.side,
    "external_id": fields.name,
}
LABELS: Final = "labels"
# A column of one judge's verdicts beside others: ``verdict.NAME``.
VERDICT_OF: Final = "verdict."
_NEEDS: Final = {"vote": "voter", "voter": "vote", "verdict": "judge", "pick_ab": "judge"}
_STATED: Final = ("vote", "voter", "judge", "verdict", "error", "pick_ab", "pick_ba")
# Columns that nothing is made of are named so far.
MOST_NAMED: Final = 20
LONGEST_NAMED: Final = 40


@dataclass(frozen=True, slots=True)
class Column:
    """Where one value of a row comes from: a column of the file, or the mapping itself.

    Attributes
    ----------
    field : str
        A key of `FIELDS`, or ``labels.TASK``.
    column : str, optional
        None where every row has the same value, `constant`.
    values : mapping, optional
        What each raw value, as text, stands for; any other is an error.
    """

    field: str
    column: str | None
    convert: Converter
    values: Mapping[str, object] | None = None
    constant: object = None

    def read(self, record: Mapping[str, object]) -> object:
        """Return the checked value, None where there is none.

        Raises
        ------
        Misfit
        """
        if self.column is None:
            return self.constant
        raw = record.get(self.column)
        if raw is None:
            return None
        try:
            return self.convert(raw) if self.values is None else self._looked_up(raw)
        except ValueError as error:
            named = "" if self.column == self.field else f" (column {self.column!r})"
            raise Misfit(self.field, f"{error}{named}") from error

    def _looked_up(self, raw: object) -> object:
        assert self.values is not None
        word = fields.plain(raw)
        if word not in self.values:
            if not word.strip():
                return None
            raise ValueError(f"{word!r} is not one of {', '.join(self.values)}")
        return self.values[word]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """How the records of one file become rows; made by `mapping_config.parse`.

    Attributes
    ----------
    columns : tuple of Column
    labels : mapping of task to Column, or None
        None takes a ``labels`` object and every column named ``labels.TASK``.
    judges : mapping of name to Column, or None
        Verdicts of several judges in one row; None takes every column named ``verdict.NAME``.
    """

    columns: tuple[Column, ...]
    labels: Mapping[str, Column] | None = None
    judges: Mapping[str, Column] | None = None

    def rows(self, file: str, record: Record) -> Iterator[Row | RowError]:
        """Turn one record into rows, or say what is wrong with it.

        More than one where the verdicts of several judges stand beside each other.
        """
        try:
            values = {source.field: source.read(record.values) for source in self.columns}
            labels = self._labels(record.values)
            verdicts = list(self._verdicts(record.values))
            constants = [source.field for source in self.columns if source.column is None]
            if not any(s.field == "pair" and s.column in record.values for s in self.columns):
                values["pair"] = told_by_content(values)
            if not verdicts or any(values.get(field) is not None for field in _STATED):
                yield assemble(file, record.line, values, labels, constants)
            about = {field: values.get(field) for field in ("pair", *OF_A_PAIR)}
            for judge, verdict in verdicts:
                yield assemble(file, record.line, about | {"judge": judge, "verdict": verdict}, {})
        except Misfit as error:
            yield RowError(file, record.line, error.field, error.why)

    def named(self) -> set[str]:
        """Return the columns that this mapping reads."""
        every = [*self.columns, *(self.labels or {}).values(), *(self.judges or {}).values()]
        return {source.column for source in every if source.column is not None}

    def unused(self, columns: Iterable[str]) -> list[str]:
        """Return those columns of a file that no field is made of.

        Examples
        --------
        >>> OWN_NAMES.unused(["pair", "labels.rating", "seq"])
        ['seq']
        """
        named = self.named()
        return [
            column
            for column in columns
            if column not in named
            and not (self.labels is None and _is_label(column))
            and not (self.judges is None and column.startswith(VERDICT_OF))
        ]

    def _labels(self, record: Mapping[str, object]) -> dict[str, Label]:
        if self.labels is None:
            return dict(_own_labels(record))
        answers = ((task, source.read(record)) for task, source in self.labels.items())
        return {task: cast(Label, answer) for task, answer in answers if answer is not None}

    def _verdicts(self, record: Mapping[str, object]) -> Iterator[tuple[str, object]]:
        """Return what each judge said that has a column of its own, and said anything."""
        if self.judges is None:
            columns = [name for name in record if name.startswith(VERDICT_OF)]
            sources = {
                name.removeprefix(VERDICT_OF): Column(name, name, fields.choice) for name in columns
            }
        else:
            sources = dict(self.judges)
        for judge, source in sources.items():
            if (verdict := source.read(record)) is not None:
                yield judge, verdict


# Reads files whose columns have the names of our own fields.
OWN_NAMES: Final = ColumnMapping(
    tuple(Column(field, field, convert) for field, convert in FIELDS.items())
)


def rows(
    records: Iterable[Record | RowError], mapping: ColumnMapping, file: str
) -> Iterator[Row | RowError | Note]:
    """Turn records into rows.

    Yields
    ------
    Row, RowError or Note
        Behind the last record, an error for each column that the mapping names and that no record
        had: a misspelt name must not read as a file without votes. (Not for `OWN_NAMES`.) And a
        note of the columns that nothing is made of.

    Examples
    --------
    >>> found = list(
    ...     rows([Record(2, {"pair": "7", "voter": "ann", "vote": "tie"})], OWN_NAMES, "f")
    ... )
    >>> found[0].pair.id, found[0].vote.choice
    ('7', 'tie')
    """
    columns = _Columns(mapping)
    line = 0
    for record in records:
        if isinstance(record, RowError):
            yield record
            continue
        line = record.line
        fault, is_new = columns.meet(record.values)
        if fault is None:
            yield from mapping.rows(file, record)
        elif is_new:
            yield RowError(file, line, None, f"{fault} (so with every row that has these columns)")
    if line:
        yield from columns.missed(file, line)
    yield from columns.notes(file)


class _Columns:
    """Watches which columns of a file nothing is made of, and what its rows lack for that."""

    def __init__(self, mapping: ColumnMapping) -> None:
        self._mapping = mapping
        self._last: list[str] | None = None
        self._fault: str | None = None
        self._said: set[str] = set()
        self._missing = set() if mapping is OWN_NAMES else mapping.named()
        self._unread: dict[str, None] = {}

    def meet(self, record: Mapping[str, object]) -> tuple[str | None, bool]:
        """Return why no row can be made of a record with these columns, and if that is news."""
        columns = list(record)
        if columns == self._last:
            return self._fault, False  # nearly always: rows of a table all have the same
        self._last = columns
        self._missing.difference_update(columns)
        unread = self._mapping.unused(columns)
        self._fault = _fault(columns, unread, self._mapping)
        if self._fault is None:
            if len(self._unread) <= MOST_NAMED:
                self._unread |= dict.fromkeys(unread)
            return None, False
        is_new = self._fault not in self._said
        if len(self._said) < MOST_NAMED:
            self._said.add(self._fault)
        return self._fault, is_new

    def missed(self, file: str, line: int) -> Iterator[RowError]:
        for column in sorted(self._missing):
            why = f"no record has a column {column!r}{_nearest(column, self._last or ())}"
            yield RowError(file, line, None, why, is_fatal=True)

    def notes(self, file: str) -> Iterator[Note]:
        if self._unread:
            guesses = (_nearest(column, FIELDS) for column in self._unread)
            guess = next(filter(None, guesses), "") if self._mapping is OWN_NAMES else ""
            yield Note(file, f"not read: {_listed(list(self._unread))}{guess}")


def _fault(columns: list[str], unread: list[str], mapping: ColumnMapping) -> str | None:
    """Return what is wrong with all rows that have these columns."""
    known = set(columns)
    if unread and len(unread) == len(columns):
        return _unknown(columns)
    if mapping is not OWN_NAMES:
        return None
    if "pair" not in known:
        if near := _nearest("pair", unread):
            return f"no column is called 'pair'{near}"
        if not known & {"prompt", "prompt_id"} and not {"output_a", "output_b"} <= known:
            return "no column says which pair a row is about: neither pair, nor a prompt or outputs"
    for field, needed in _NEEDS.items():
        if field in known and needed not in known:
            return f"beside {field!r} there is no column {needed!r}{_nearest(needed, unread)}"
    return None


def _nearest(column: str, known: Iterable[str]) -> str:
    """Return a question for the column that may be meant, or nothing.

    Examples
    --------
    >>> _nearest("votr", FIELDS), _nearest("seq", FIELDS)
    (": is it 'voter'?", '')
    """
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(column.lower(), by_lower, 1, 0.75)
    return f": is it {by_lower[found[0]]!r}?" if found else ""


def _unknown(columns: list[str]) -> str:
    why = f"nothing is known of its columns: {_listed(columns)}"
    other = next((sign for sign in ";\t|" if sign in columns[0]), None)
    if len(columns) == 1 and other:
        return f"{why}; commas stand between columns, not {other!r}"
    return f"{why}; known are {', '.join(FIELDS)}"


def _listed(columns: list[str]) -> str:
    shown = [repr(column[:LONGEST_NAMED]) for column in columns[:MOST_NAMED]]
    return ", ".join([*shown, *(["and more"] if len(columns) > MOST_NAMED else [])])


def _is_label(column: str) -> bool:
    return column == LABELS or column.startswith(f"{LABELS}.")


def _own_labels(record: Mapping[str, object]) -> Iterator[tuple[str, Label]]:
    nested = record.get(LABELS)
    if nested is not None and not isinstance(nested, Mapping):
        raise Misfit(LABELS, "must be an object of answers by task")
    raw = dict(nested or {})
    raw |= {c.partition(".")[2]: v for c, v in record.items() if c.startswith(f"{LABELS}.")}
    for task, answer in raw.items():
        try:
            value = None if answer is None else fields.label(answer)
        except ValueError as error:
            raise Misfit(f"{LABELS}.{task}", str(error)) from error
        if value is not None:
            yield task, value

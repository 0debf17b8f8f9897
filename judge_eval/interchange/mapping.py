"""Which column of a file is which field of a row, and how its values read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from judge_eval.interchange import fields
from judge_eval.interchange.assemble import Misfit, assemble
from judge_eval.interchange.fields import Converter
from judge_eval.interchange.rows import Label, Note, Row, RowError
from judge_eval.interchange.sources import Record

FIELDS: Final[dict[str, Converter]] = {
    "pair": fields.name,
    "prompt": fields.text,
    "prompt_id": fields.name,
    "tags": fields.words,
    "kind": fields.kind,
    "generator_a": fields.name,
    "generator_b": fields.name,
    "output_a": fields.output,
    "output_b": fields.output,
    "judge": fields.name,
    "verdict": fields.choice,
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
    """

    columns: tuple[Column, ...]
    labels: Mapping[str, Column] | None = None

    def row(self, file: str, record: Record) -> Row | RowError:
        """Turn one record into a row, or say what is wrong with it."""
        try:
            values = {source.field: source.read(record.values) for source in self.columns}
            labels = self._labels(record.values)
            constants = [source.field for source in self.columns if source.column is None]
            return assemble(file, record.line, values, labels, constants)
        except Misfit as error:
            return RowError(file, record.line, error.field, error.why)

    def named(self) -> set[str]:
        """Return the columns that this mapping reads."""
        every = [*self.columns, *(self.labels or {}).values()]
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
            if column not in named and not (self.labels is None and _is_label(column))
        ]

    def _labels(self, record: Mapping[str, object]) -> dict[str, Label]:
        if self.labels is None:
            return dict(_own_labels(record))
        answers = ((task, source.read(record)) for task, source in self.labels.items())
        return {task: cast(Label, answer) for task, answer in answers if answer is not None}


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
    missing = set() if mapping is OWN_NAMES else mapping.named()
    columns = _Columns(mapping)
    line = 0
    for record in records:
        if isinstance(record, RowError):
            yield record
            continue
        line = record.line
        if missing:
            missing.difference_update(record.values)
        columns.meet(record.values)
        if columns.are_unknown:
            yield RowError(file, line, None, _unknown(list(record.values)))
        else:
            yield mapping.row(file, record)
    if line:
        for column in sorted(missing):
            yield RowError(file, line, None, f"no record has a column {column!r}", is_fatal=True)
    if columns.unread:
        yield Note(file, f"not read: {_listed(list(columns.unread))}")


class _Columns:
    """Watches which columns of a file nothing is made of."""

    def __init__(self, mapping: ColumnMapping) -> None:
        self._mapping = mapping
        self._last: list[str] | None = None
        self.unread: dict[str, None] = {}
        # Whether nothing is made of any column of the last record.
        self.are_unknown = False

    def meet(self, record: Mapping[str, object]) -> None:
        columns = list(record)
        if columns == self._last:
            return  # nearly always: rows of a table all have the same
        self._last = columns
        unread = self._mapping.unused(columns)
        self.are_unknown = 0 < len(unread) == len(columns)
        if not self.are_unknown and len(self.unread) <= MOST_NAMED:
            self.unread |= dict.fromkeys(unread)


def _unknown(columns: list[str]) -> str:
    why = f"nothing is known of its columns: {_listed(columns)}"
    other = next((sign for sign in ";\t|" if sign in columns[0]), None)
    if len(columns) == 1 and other:
        why += f"; commas stand between columns, not {other!r}"
    return why


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

"""The way in: a file, and what is known of it, into a stream of items.

A public format is an `ImportFormat`; the built-in ones are modules, named here. Each has `fits`,
which recognises a record, or `FITS`: a record has all columns of one of these. `read` yields what
a record says: the values of each row by the names of our fields, or a text that says why nothing is
made of it. Where a file is more than its records, `rows` reads it in place of `read`.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from types import ModuleType
from typing import BinaryIO, Final

from humanjudge.core.extensions import OWN_PACKAGE, Extension, HookFailed, Registry, calling
from judge_eval.imports.formats import (
    alpacaeval,
    alttest,
    arena,
    arenahard,
    argilla,
    deepeval,
    dpo,
    fastchat,
    helpsteer,
    inspectlog,
    judgebench,
    labelstudio,
    langfuse,
    langsmith,
    mapped,
    metaevaluator,
    mlflow,
    mtbench,
    pandalm,
    pathscore,
    prometheus,
    promptfoo,
    ragas,
)
from judge_eval.imports.formats.shapes import nested_as
from judge_eval.imports.mapping import ColumnMapping, rows, rows_of
from judge_eval.imports.row_models import PAIRS, Item, RowError, Shape, Values, shape_of
from judge_eval.imports.sources import Record, records


class ImportFormat(Extension):
    """A kind of file that others write, and what its records say."""

    kind = "import format"

    def fits(self, record: Values) -> bool:
        """Say whether a record looks like one of this format; the first five of a file must."""
        return False

    def fits_name(self, name: str) -> bool:
        """Say it of a file that has no records, by its name."""
        return False

    def read(self, record: Values, name: str) -> Iterator[Values | str]:
        """Yield what a record says: rows by the names of our fields, or why there is none."""
        raise NotImplementedError(f"{type(self).__name__} must define read, or rows")

    def rows(self, stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
        """Read a seekable file from its start: what is wrong with it comes as RowError."""
        return rows_of(stream, name, file_format, partial(self._read_record, name))

    def _read_record(self, name: str, record: Record) -> Iterator[Item | Values | str]:
        with nested_as(self.title):
            yield from self.read(record.values, name)


class _BuiltInFormat(ImportFormat):
    """A module of this folder, whose functions take the place of an extension's hooks."""

    version = "1"

    def __init__(self, title: str, description: str, module: ModuleType) -> None:
        self.id = module.__name__.rpartition(".")[2]
        self.title, self.description, self._fits = title, description, getattr(module, "FITS", ())
        for hook in ("fits", "fits_name", "read", "rows"):
            setattr(self, hook, getattr(module, hook, getattr(self, hook)))

    def fits(self, record: Values) -> bool:
        return any(record.keys() >= {*columns} for columns in self._fits)


class _MappedFormat(ImportFormat):
    version = "1"

    def __init__(self, definition: mapped.Mapped) -> None:
        self.id, self.title, self.description, self._columns, self._mapping = definition

    def fits(self, record: Values) -> bool:
        return record.keys() >= {*self._columns}

    def _read_record(self, name: str, record: Record) -> Iterator[Item | Values | str]:
        rows: list[Item | Values | str] = [*self._mapping().rows(name, record)]
        yield from rows or ["it holds no row"]


# The first that fits is taken: those whose columns others have too come behind these.
READERS: Final = Registry[ImportFormat](
    ImportFormat,
    _BuiltInFormat("Arena", "People's votes on conversations with two models.", arena),
    _BuiltInFormat("MT-bench", "People's votes and GPT-4's verdicts on pairs.", mtbench),
    _BuiltInFormat(
        "FastChat judgments", "Verdicts on pairs, or ratings of single answers.", fastchat
    ),
    _BuiltInFormat("AlpacaEval", "Annotations: preferences of a judge or of people.", alpacaeval),
    _BuiltInFormat("Label Studio", "Annotations of pairs or single items, as JSON.", labelstudio),
    _BuiltInFormat("Argilla", "Records with responses and suggestions.", argilla),
    _BuiltInFormat("Langfuse", "Scores, and the traces that they are about.", langfuse),
    _BuiltInFormat("LangSmith", "Results of an experiment with feedback.", langsmith),
    _BuiltInFormat("MLflow", "Traces with the feedback of people and judges.", mlflow),
    _BuiltInFormat("promptfoo", "Results with graders and people's gradings.", promptfoo),
    _BuiltInFormat("Inspect", "Samples of a log with their scores.", inspectlog),
    _BuiltInFormat("DeepEval", "Test cases with their metrics.", deepeval),
    _BuiltInFormat("ragas", "Samples of a metric, and what a person accepted.", ragas),
    _BuiltInFormat("HelpSteer", "People's preferences, of HelpSteer2 and 3.", helpsteer),
    _BuiltInFormat("JudgeBench", "Pairs with an objective label, and judges' outputs.", judgebench),
    _BuiltInFormat("Arena-Hard", "Judgments of a model against a baseline.", arenahard),
    _BuiltInFormat("Prometheus", "Feedback with scores, or with preferences.", prometheus),
    _BuiltInFormat("PandaLM", "The test set with three people's labels.", pandalm),
    _BuiltInFormat("PathScore", "The tasks of a judge evaluation.", pathscore),
    _BuiltInFormat("Alt-Test", "Labels by annotator and item.", alttest),
    _BuiltInFormat("MetaEvaluator", "A file of each annotator.", metaevaluator),
    *map(_MappedFormat, mapped.FORMATS),
    _BuiltInFormat("DPO rows", "Chosen and rejected, also of RewardBench and UltraFeedback.", dpo),
)
LOOKED_AT_FIRST: Final = 5
# Fewer records are looked at where their texts are longer.
MOST_TEXT: Final = 2_000_000


def read(
    stream: BinaryIO,
    name: str,
    mapping: ColumnMapping | None = None,
    file_format: str | None = None,
    shape: Shape | None = None,
    off: Collection[str] = (),
) -> Iterator[Item]:
    """Read a seekable file of items, verdicts, votes or labels, at its start.

    Without a mapping a public format is recognised, and any other file must call its columns as our
    fields are called; whether these are those of pairs or of single items, `shape` or else the
    first records say. What is wrong with the file comes as errors among the rows, a format that is
    `off` too; raises UnknownFormat where neither `file_format` nor the name says what it is.

    Examples
    --------
    >>> from io import BytesIO
    >>> [row] = read(BytesIO(b"pair,voter,vote\\n7,ann,tie\\n"), "votes.csv")
    >>> row.item, row.voter, row.vote
    ('7', 'ann', 'tie')
    """
    if mapping is None:
        first = first_records(stream, name, file_format)
        if public := detect(name, first):
            return _rows(READERS[public], stream, name, file_format, off)
        shape = shape_of({column for record in first for column in record}) or shape
    return rows(records(stream, name, file_format), mapping or shape or PAIRS, name)


def _rows(
    reader: ImportFormat,
    stream: BinaryIO,
    name: str,
    file_format: str | None,
    off: Collection[str],
) -> Iterator[Item]:
    if reader.id in off:
        reason = f"this is a file of {reader.title}, an import format that is turned off"
        yield RowError(name, 0, None, reason, is_fatal=True)
    elif reader.package == OWN_PACKAGE:
        yield from reader.rows(stream, name, file_format)
    else:
        try:
            with calling(reader, "rows"):
                yield from reader.rows(stream, name, file_format)
        except HookFailed as failed:
            yield RowError(name, 0, None, str(failed), is_fatal=True)


def first_records(
    stream: BinaryIO, name: str, file_format: str | None = None, most: int = LOOKED_AT_FIRST
) -> list[Values]:
    """Return the first records of a seekable file, few of long texts; go back to its start."""
    first, text = list[Values](), 0
    for record in islice(records(stream, name, file_format), most):
        if isinstance(record, Record):
            first.append(record.values)
            text += sum(len(value) for value in record.values.values() if isinstance(value, str))
        if text > MOST_TEXT:
            break
    stream.seek(0)
    return first


def detect(name: str, first_records: Sequence[Values]) -> str | None:
    """Tell which public format a file has: a key of `READERS` that all its first records fit.

    Files that are not made of records, and the data of MetaEvaluator, are known by their names.

    Examples
    --------
    >>> detect("human.jsonl", [dict.fromkeys(mtbench.COLUMNS, "")])
    'mtbench'
    """
    if first_records and metaevaluator.holds_data(name):
        return "metaevaluator"
    for key, reader in READERS.items():
        fits = all(map(reader.fits, first_records)) if first_records else reader.fits_name(name)
        if fits:
            return key
    return None

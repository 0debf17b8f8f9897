"""What the beginning of some files would be taken for, before any of it is imported.

Files that people bring may be hostile, so no page reads them itself: `preview` starts a process
that has little memory and time, and that reads as an import reads.
"""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from humanjudge.core import extensions
from judge_eval.imports import containers, fields, mapping
from judge_eval.imports.containers import SourceFile
from judge_eval.imports.drafts import (
    PairDraft,
    check_consistent,
    of_another_shape,
    verdict_of,
    vote_of,
)
from judge_eval.imports.expressions import paths_of
from judge_eval.imports.formats import LOOKED_AT_FIRST, MOST_TEXT, detect, first_records, read
from judge_eval.imports.guesses import ColumnFacts, facts_of
from judge_eval.imports.import_report import ImportReport
from judge_eval.imports.import_scratch import text_of
from judge_eval.imports.question import Columns, plain_labels
from judge_eval.imports.row_models import (
    ITEMS,
    SHAPES,
    ImportRow,
    InvalidField,
    Item,
    JudgeOrder,
    LeftOut,
    RowError,
    ShapeName,
    UnreadableFile,
    Values,
    shape_of,
)
from judge_eval.imports.sources import separator_of
from voting.items.conversations import conversation, messages_of

# So many records of a file are looked at.
LOOKED_AT: Final = 200
# So many items are shown, so many statements of each, so much of each text.
MOST_ITEMS: Final = 5
MOST_STATEMENTS: Final = 20
LONGEST_TEXT: Final = 600
MOST_COLUMNS: Final = 100
# A column with more values, or longer ones, holds no choices.
MOST_VALUES: Final = 12
LONGEST_VALUE: Final = 40
EXAMPLES: Final = 3
LONGEST_EXAMPLE: Final = 80
# What names an item whose file does not.
_MADE_NAME: Final = re.compile(r"[0-9a-f]{32}")
_CHOICE_PHRASES: Final = {
    "A": "chose the first",
    "B": "chose the second",
    "tie": "chose neither: a tie",
    "both_bad": "found both bad",
}
# Of a bundle: its runs stand before all outputs.
_LINES_OF_BUNDLE: Final = 50
_MEMORY: Final = 160 << 20
_SECONDS: Final = 8
_ROOT: Final = Path(__file__).resolve().parents[2]
TOO_MUCH: Final = (
    "its first rows take more memory or time than a preview may use; an import tells what is wrong"
)


class PreviewRequest(BaseModel):
    """Files by path and name, how their import will read them, and whether they are a bundle."""

    files: list[tuple[Path, str]]
    mapping: Values | None = None
    shape: ShapeName | None = None
    is_bundle: bool = False
    encoding: str | None = None
    separator: str | None = None
    # Extensions that the settings name, and which are turned off.
    extensions: list[str] = []
    off: list[str] = []


class Fault(BaseModel):
    """A fault, or what is left out: where it stands first, and in how many more rows."""

    file: str
    row: int
    field: str | None
    reason: str
    more: int = 0

    @property
    def place(self) -> str:
        return f"{self.file}, row {self.row:,}" if self.row else self.file


class PreviewOutput(BaseModel):
    generator: str = ""
    # None where the source holds none.
    text: str | None = None


class PreviewItem(BaseModel):
    """An item as an import takes it, and who says what of it in the first rows."""

    name: str
    prompt: str = ""
    kind: str = ""
    outputs: list[PreviewOutput] = []
    verdicts: list[tuple[str, str]] = []
    votes: list[tuple[str, str]] = []

    @property
    def title(self) -> str:
        """Its name, unless that is made of its content."""
        return "" if _MADE_NAME.fullmatch(self.name) else self.name

    @property
    def statements(self) -> list[tuple[str, str, bool]]:
        """Who says what of it in words, and whether that is a judge."""
        words = _CHOICE_PHRASES if len(self.outputs) > 1 else {}
        return [
            (author, words.get(choice, f"said {choice}"), is_judge)
            for statements, is_judge in ((self.votes, False), (self.verdicts, True))
            for author, choice in statements
        ]


class FileReading(BaseModel):
    """How the bytes of a file became columns, and letters of it that show whether that is right."""

    file: str
    separator: str = ""
    encoding: str = ""
    likely: str = ""
    letters: str = ""
    proof: str = ""


class SeenCounts(BaseModel):
    """How much the rows that are looked at say, and whether these are all."""

    items: int = 0
    votes: int = 0
    voters: int = 0
    verdicts: int = 0
    judges: int = 0
    is_all: bool = True


class Preview(BaseModel):
    # Public formats by file.
    formats: dict[str, str] = {}
    shape: ShapeName = "pair"
    # The paths into records, with the values that occur, where these may be choices.
    columns: dict[str, list[str]] = {}
    examples: dict[str, list[str]] = {}
    facts: dict[str, ColumnFacts] = {}
    more_columns: int = 0
    items: list[PreviewItem] = []
    counts: SeenCounts = SeenCounts()
    faults: list[Fault] = []
    left_out: list[Fault] = []
    notes: list[str] = []
    # The mapping that finds statements of people in lists, where a first record has such.
    proposed: Values = {}
    # Of a bundle.
    project: str = ""
    runs: list[str] = []
    readings: list[FileReading] = []


def preview(request: PreviewRequest) -> Preview:
    """Look at files in a process that ends where they are too much for it."""
    # No secret, but where packages are; the other pools take much more at once than they need.
    env = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    env |= {"ARROW_DEFAULT_MEMORY_POOL": "system"}
    try:
        child = subprocess.run(
            [sys.executable, "-m", "judge_eval.imports.preview"],
            input=request.model_dump_json().encode(),
            capture_output=True,
            cwd=_ROOT,
            env=env,
            timeout=3 * _SECONDS,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return Preview(faults=grouped([RowError(request.files[0][1], 0, None, TOO_MUCH)]))
    return Preview.model_validate_json(child.stdout)


def look(request: PreviewRequest) -> Preview:
    """Read the beginning of files as their import would.

    Faults are those that a row has by itself or beside these others: whether it contradicts what
    stands behind them or is stored, its import says. Raises ConfigInvalid where the mapping is
    wrong.
    """
    result = Preview()
    if request.is_bundle:
        _look_at_bundle(*request.files[0], result)
        return result
    shape = SHAPES[request.shape] if request.shape else None
    columns = None if request.mapping is None else mapping.parse(request.mapping, shape)
    row_shape = columns.shape if columns else shape
    rows = _Rows(result)
    report = rows.report
    with ExitStack() as stack:
        files = [
            SourceFile(name, stack.enter_context(path.open("rb"))) for path, name in request.files
        ]
        try:
            opened = containers.unpacked(
                files, stack, None, request.encoding, separator=request.separator
            )
        except UnreadableFile as error:
            file = error.file or request.files[0][1]
            result.faults = grouped([RowError(file, 0, None, str(error))])
            return result
        for source in opened.tables:
            name, stream = source.name, source.stream
            first = first_records(stream, name, most=LOOKED_AT)
            result.readings.append(_reading_of(source, first))
            _note_columns(first, result)
            row_shape = row_shape or shape_of({column for record in first for column in record})
            result.shape = "item" if row_shape is ITEMS else "pair"
            if public := detect(name, first[:LOOKED_AT_FIRST]):
                result.formats[name] = public
            elif mapping.ROWS in (config := mapping.proposal(first[0], ITEMS) if first else {}):
                result.proposed = config
            items = read(stream, name, columns, None, shape, request.off)
            for item in islice(items, LOOKED_AT):
                rows.take(item)
                if rows.text > MOST_TEXT:
                    break
            rows.is_all &= next(items, None) is None
    result.items, result.notes = list(rows.items.values()), report.notes
    result.counts = rows.counts()
    result.faults, result.left_out = grouped(report.errors), grouped(report.left_out)
    return result


def _reading_of(source: SourceFile, records: list[Values]) -> FileReading:
    form = containers.format_of(source.name)
    is_text = form in ("csv", "json", "jsonl")
    reading = FileReading(
        file=source.name,
        separator=separator_of(source.stream) if form == "csv" else "",
        encoding=source.encoding if is_text else "",
        likely=source.likely,
    )
    if is_text and source.encoding != "utf-8":
        words = (word for record in records for pair in record.items() for word in pair)
        texts = (entry for entry in words if isinstance(entry, str) and not entry.isascii())
        examples = [_example(entry) for entry in islice(texts, LOOKED_AT)]
        reading.proof = next(iter(examples), "")
        letters = dict.fromkeys(entry for entry in "".join(examples) if not entry.isascii())
        reading.letters = " ".join(islice(letters, EXAMPLES))
    return reading


def _note_columns(records: list[Values], result: Preview) -> None:
    by_path: dict[str, list[object]] = {}
    for record in records:
        for path, value in paths_of(record):
            # An object is read by its parts.
            if not isinstance(value, dict):
                by_path.setdefault(path, []).append(value)
    names = list(by_path)
    fitting = [name for name in names if len(name) <= fields.MAX_NAME and name.isprintable()]
    new = [name for name in fitting if name not in result.columns]
    room = MOST_COLUMNS - len(result.columns)
    result.more_columns += len(names) - len(fitting) + len(new[room:])
    for name in new[:room]:
        result.columns[name] = _choices(by_path[name])
        result.facts[name] = facts_of(by_path[name])
        texts = dict.fromkeys(_example(value) for value in by_path[name] if value not in (None, ""))
        result.examples[name] = list(islice(texts, EXAMPLES))


def _example(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return " ".join(text[: 2 * LONGEST_EXAMPLE].split())[:LONGEST_EXAMPLE]


def _choices(raw_values: list[object]) -> list[str]:
    values: dict[str, None] = {}
    for raw in raw_values:
        if isinstance(raw, str | int | float):
            with suppress(fields.Unfit):
                values[fields.plain(raw)] = None
    texts = [value for value in values if value.strip()]
    are_few = len(texts) <= MOST_VALUES and all(len(entry) <= LONGEST_VALUE for entry in texts)
    return sorted(texts) if are_few else []


class _Rows:
    """Puts together what rows say of the first items, and finds those that contradict each other,
    as far as they say it themselves.
    """

    def __init__(self, result: Preview) -> None:
        self._preview = result
        self.items: dict[str, PreviewItem] = {}
        self.report = ImportReport()
        self.text = 0
        self.is_all = True
        self._drafts: dict[str, PairDraft] = {}
        self._answers: dict[tuple[str, str, str], Columns] = {}
        # Empty cells by judge, and pairs by their texts, with what stands first there.
        self._blank: dict[str, set[str]] = {}
        self._pairs: dict[tuple[str, ...], tuple[str, str]] = {}

    def take(self, item: Item) -> None:
        if isinstance(item, ImportRow) and item.is_blank:
            self._blank.setdefault(item.judge or "", set()).add(item.item)
        elif isinstance(item, ImportRow):
            self._take_row(self._under_known_name(item))
        elif not isinstance(item, JudgeOrder):
            self.report.add(item)

    def _under_known_name(self, row: ImportRow) -> ImportRow:
        """Return a row as the pair is known that has its prompt and outputs, perhaps exchanged."""
        if not (row.shape == "pair" and row.prompt and row.output_a and row.output_b):
            return row
        sides = [f"{row.generator_a}\0{row.output_a}", f"{row.generator_b}\0{row.output_b}"]
        known_pair = self._pairs.setdefault((row.prompt, *sorted(sides)), (row.item, sides[0]))
        name, first = known_pair
        if name == row.item or first == sides[0]:
            return row
        return replace(row.turned(), item=name)

    def _take_row(self, row: ImportRow) -> None:
        self.text += text_of(row)
        try:
            row = self._check(row)
        except InvalidField as error:
            self.report.fail(RowError(row.file, row.line, error.field, error.reason))
        if row.item not in self.items:
            if len(self.items) == MOST_ITEMS:
                return
            outputs = [PreviewOutput() for _ in SHAPES[row.shape].outputs]
            self.items[row.item] = PreviewItem(name=row.item, outputs=outputs)
        _add(self.items[row.item], row)

    def counts(self) -> SeenCounts:
        names_by_table = {
            table: [name for kind, name, _ in self._answers if kind == table]
            for table in ("vote", "verdict")
        }
        return SeenCounts(
            items=len(self._drafts),
            votes=len(names_by_table["vote"]),
            voters=len({*names_by_table["vote"]}),
            verdicts=len(names_by_table["verdict"]) + self._unanswered(names_by_table["verdict"]),
            judges=len({*names_by_table["verdict"]}),
            is_all=self.is_all,
        )

    def _unanswered(self, judges: list[str]) -> int:
        """Return how many empty cells count as failed verdicts, as an import counts them."""
        blanks = {
            judge: sum(("verdict", judge, item) not in self._answers for item in items)
            for judge, items in self._blank.items()
        }
        return sum(blank for judge, blank in blanks.items() if judges.count(judge) > blank)

    def _check(self, row: ImportRow) -> ImportRow:
        new = PairDraft(row.item, {"kind": row.kind or "text"}, noun=row.shape)
        if self._drafts and row.shape != self._preview.shape:
            raise InvalidField(None, of_another_shape(row))
        self._preview.shape = row.shape
        row, _ = self._drafts.setdefault(row.item, new).take(row)
        labels = plain_labels(row)
        answers = [("verdict", row.judge, verdict_of(row, "tie", labels))] if row.judge else []
        answers += [("vote", row.voter, vote_of(row, labels))] if row.voter else []
        for table, name, columns in answers:
            earlier = self._answers.setdefault((table, name, row.item), columns)
            check_consistent(table, row, columns, earlier)
        return row


def _add(item: PreviewItem, row: ImportRow) -> None:
    item.prompt = item.prompt or _cut(row.prompt or row.prompt_id or "")
    item.kind = item.kind or row.kind or ""
    outputs = ((row.generator_a, row.output_a), (row.generator_b, row.output_b))
    for output, (generator, text) in zip(item.outputs, outputs, strict=False):
        output.generator = output.generator or generator or ""
        output.text = output.text if text is None else _cut(text)
    labels = [
        f"{task}: {_word(label)}" if task else _word(label) for task, label in row.labels.items()
    ]
    if row.judge and len(item.verdicts) < MOST_STATEMENTS:
        picks = f"{row.pick_ab} with A first, {row.pick_ba} with B first"
        verdict = picks if row.pick_ab else row.verdict or ""
        verdict = f"no verdict: {_cut(row.error)}" if row.error else verdict
        _add_statement(item.verdicts, row.judge, [verdict, *labels])
    if row.voter and len(item.votes) < MOST_STATEMENTS:
        _add_statement(item.votes, row.voter, [row.vote, *labels])


def _add_statement(statements: list[tuple[str, str]], author: str, words: list[str | None]) -> None:
    statement = (author, _cut(", ".join(filter(None, words))))
    # Several rows of a record may each repeat what is said of the whole.
    if statement not in statements:
        statements.append(statement)


def _word(label: fields.Label) -> str:
    return _cut("; ".join(label) if isinstance(label, tuple) else str(label))


def _cut(text: str) -> str:
    if turns := messages_of(text):
        last = turns[-MOST_STATEMENTS:]
        cut = [{"role": turn.role, "content": turn.content[:LONGEST_TEXT]} for turn in last]
        return conversation(cut) or ""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def grouped(errors: Iterable[RowError | LeftOut]) -> list[Fault]:
    """Return each fault once, in the order of the first rows that have it.

    Examples
    --------
    >>> [fault] = grouped(RowError("v.csv", row, "vote", "missing") for row in (3, 7))
    >>> fault.place, fault.more
    ('v.csv, row 3', 1)
    """
    faults: dict[tuple[str, str | None, str], Fault] = {}
    for error in errors:
        field = error.field if isinstance(error, RowError) else None
        key = (error.file, field, error.why)
        if key in faults:
            faults[key].more += 1
        else:
            field = field and _cut(field)
            faults[key] = Fault(file=error.file, row=error.row, field=field, reason=_cut(error.why))
    return list(faults.values())


def _look_at_bundle(path: Path, name: str, result: Preview) -> None:
    from judge_eval.exports import bundle  # a third of the start of this process

    result.formats[name] = "bundle"
    with path.open("rb") as stream:
        try:
            for _, record in islice(bundle.read(stream), _LINES_OF_BUNDLE):
                if isinstance(record, bundle.Header):
                    result.project = record.project.name
                elif isinstance(record, bundle.RunPart):
                    result.runs.append(record.name)
        except bundle.BundleError as error:
            result.faults = grouped([RowError(name, error.line, error.field, error.reason)])


def limit_memory(more: int) -> None:
    """Refuse this process more memory than so much beyond what it has."""
    # Elsewhere than on Linux there is no such limit.
    if size := _data_size():
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            resource.setrlimit(resource.RLIMIT_DATA, (size + more, hard))


def load_parquet() -> None:
    """Load what reads Parquet, if it is here: what that takes is allowed beside the files' own."""
    before = _data_size()
    with suppress(UnreadableFile):
        import judge_eval.imports.parquet  # noqa: F401
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft != resource.RLIM_INFINITY:
        soft += max(_data_size() - before, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_size() -> int:
    """Return how much memory this process may write to, or 0 where nothing tells it."""
    with suppress(OSError):
        if size := re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return int(size[1]) * 1024
    return 0


def main() -> None:
    request = PreviewRequest.model_validate_json(sys.stdin.buffer.read())
    if any(name.lower().endswith((".parquet", ".pq", ".zip")) for _, name in request.files):
        load_parquet()
    # This process has no Django, which loads them elsewhere.
    extensions.load(request.extensions)
    limit_memory(_MEMORY)
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    sys.stdout.write(look(request).model_dump_json())


if __name__ == "__main__":
    main()

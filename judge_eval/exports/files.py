"""The files that a run is exported as: one table of formats for page, REST and command line."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from django.http import StreamingHttpResponse
from django.utils.text import slugify

from humanjudge.core.strict_json import JsonObject
from judge_eval.exports import training
from judge_eval.exports.export import export_run
from judge_eval.exports.rows import grandjury_votes, labels_csv, labels_parquet, run_csv, run_rows
from judge_eval.models import Run
from judge_eval.runs.access import Reader, note_runs_seen
from voting.ballot import tuning
from voting.items.kinds import COMPARISON, KINDS
from voting.ledger import ledger

_BLOCK: Final = 64 * 1024
CONTENT_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}


Lines = Callable[[Run], Iterator[str]]
Rows = Callable[[Run], Iterator[JsonObject]]


def _json_lines(rows: Rows) -> Lines:
    return lambda run: (json.dumps(row, ensure_ascii=False) + "\n" for row in rows(run))


def _json_list(rows: Rows) -> Lines:
    def lines(run: Run) -> Iterator[str]:
        delimiter = "["
        for row in rows(run):
            yield f"{delimiter}\n{json.dumps(row, ensure_ascii=False)}"
            delimiter = ","
        yield "[]\n" if delimiter == "[" else "\n]\n"

    return lines


def _ledger(run: Run) -> Iterator[str]:
    tuning.refuse_whole_ledgers(run.queue.project_id)
    return with_ends(ledger.export(run.queue.project))


class Format(NamedTuple):
    title: str
    purpose: str
    ending: str
    pieces: Lines | Callable[[Run], Iterator[bytes]]
    # The kinds of items that it has any rows of.
    kinds: Collection[str] = tuple(KINDS)

    @property
    def content_type(self) -> str:
        return CONTENT_TYPES[self.ending.rpartition(".")[2]]


_Table = Literal["csv", "jsonl", "rows", "labels", "labels-parquet", "votes", "ledger"]
_Training = Literal["dpo", "kto", "judge-training", "label-studio", "argilla"]
FormatName = Literal[_Table, _Training]
FORMATS: Final[Mapping[FormatName, Format]] = {
    "csv": Format(
        "Table (CSV)",
        "For a spreadsheet: each vote that counts and each verdict on a row, with its item.",
        ".csv",
        run_csv,
    ),
    "jsonl": Format(
        "Bundle (JSON Lines)",
        "To move the run to another server or to keep it: everything, with costs and the ledger's "
        "entries. Imported again, every number is the same.",
        ".jsonl",
        lambda run: with_ends(export_run(run)),
    ),
    "rows": Format(
        "Table (JSON Lines)",
        "For a notebook: the same rows, each item once. humanjudge.load reads it.",
        "-rows.jsonl",
        run_rows,
    ),
    "labels": Format(
        "Label matrix (CSV)",
        "For statistics such as Krippendorff's alpha: items by people and judges.",
        "-labels.csv",
        labels_csv,
    ),
    "labels-parquet": Format(
        "Label matrix (Parquet)",
        "The same for data frames, with types: numbers of grades and ratings, lists of sets.",
        "-labels.parquet",
        labels_parquet,
    ),
    "dpo": Format(
        "Preference pairs, DPO (JSON Lines)",
        "To train a model with trl: the pairs on which most votes prefer one output.",
        "-dpo.jsonl",
        _json_lines(training.dpo),
        (COMPARISON.name,),
    ),
    "kto": Format(
        "Rated outputs, KTO (JSON Lines)",
        "To train a model with trl: outputs that most votes find good, or bad.",
        "-kto.jsonl",
        _json_lines(training.kto),
        (COMPARISON.name, "pass_flag"),
    ),
    "judge-training": Format(
        "Judge training (JSON Lines)",
        "To train or to prompt a judge: outputs, what most people say of them, and why.",
        "-judge-training.jsonl",
        _json_lines(training.judge_rows),
    ),
    "label-studio": Format(
        "Label Studio (JSON)",
        "Tasks for Label Studio: votes are annotations, verdicts are predictions.",
        "-label-studio.json",
        _json_list(training.label_studio),
    ),
    "argilla": Format(
        "Argilla (JSON)",
        "Records for Argilla: votes are responses, what most judges say is a suggestion.",
        "-argilla.json",
        _json_list(training.argilla),
    ),
    "votes": Format(
        "Votes for GrandJury (CSV)",
        "For the public GrandJury client: the votes that count, as grades of single outputs.",
        "-votes.csv",
        grandjury_votes,
    ),
    "ledger": Format(
        "Ledger (JSON Lines)",
        "To verify offline that no vote was changed: the chained entries of the whole project.",
        "-ledger.jsonl",
        _ledger,
    ),
}


def with_ends(lines: Iterable[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


def export(run: Run, name: FormatName, reader: Reader) -> StreamingHttpResponse:
    """Return a run as a file; who gets it knows from then on what judges and others say."""
    export_format = FORMATS[name]
    is_whole, pieces = name == "ledger", export_format.pieces(run)
    runs = Run.objects.filter(queue__project=run.queue.project) if is_whole else [run]
    note_runs_seen(reader, runs)
    file = f"{slugify(run.name) or 'run'}-{str(run.pk)[:8]}{export_format.ending}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    blocks = in_blocks(pieces)
    return StreamingHttpResponse(blocks, content_type=export_format.content_type, headers=headers)


def in_blocks(pieces: Iterable[str] | Iterable[bytes]) -> Iterator[bytes]:
    """Put pieces together: each block of an answer costs the server some work."""
    block: list[bytes] = []
    size = 0
    for piece in pieces:
        block.append(piece.encode() if isinstance(piece, str) else piece)
        size += len(block[-1])
        if size > _BLOCK:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)

"""The files that a run is exported as: one table of formats for page, REST and command line."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from django.http import StreamingHttpResponse
from django.utils.text import slugify

from judge_eval.access import Reader, note_runs_seen
from judge_eval.exchange import training
from judge_eval.exchange.export import export_run
from judge_eval.exchange.export_rows import grandjury_votes, labels_csv, run_csv, run_rows
from judge_eval.models import Run
from voting.kinds import KINDS
from voting.ledger import ledger

_BLOCK: Final = 64 * 1024


class Format(NamedTuple):
    title: str
    purpose: str
    ending: str
    content_type: str
    lines: Callable[[Run], Iterator[str]]
    # The kinds of items that it has any rows of.
    kinds: Collection[str] = tuple(KINDS)


JSON: Final = "application/json"
JSON_LINES: Final = "application/jsonl"
CSV: Final = "text/csv; charset=utf-8"
FormatName = Literal[
    "csv",
    "jsonl",
    "rows",
    "labels",
    "dpo",
    "kto",
    "judge-training",
    "label-studio",
    "argilla",
    "votes",
    "ledger",
]
FORMATS: Final[Mapping[FormatName, Format]] = {
    "csv": Format(
        "Table (CSV)",
        "For a spreadsheet: a row for each vote and each verdict, with the item it is about. Votes "
        "that do not count are not in it.",
        ".csv",
        CSV,
        run_csv,
    ),
    "jsonl": Format(
        "Bundle (JSON Lines)",
        "To move the run to another server or to keep it: everything, with costs and the ledger's "
        "entries. Imported again, every number is the same.",
        ".jsonl",
        JSON_LINES,
        lambda run: with_ends(export_run(run)),
    ),
    "rows": Format(
        "Table (JSON Lines)",
        "For a notebook: the same rows as the CSV, each item once, with labels and metadata as "
        "objects. humanjudge.load reads it.",
        "-rows.jsonl",
        JSON_LINES,
        run_rows,
    ),
    "labels": Format(
        "Label matrix (CSV)",
        "For a package of statistics, as it is taken for Krippendorff's alpha: a row for each "
        "item, a column for each person and each judge, in the cells their labels. Imported "
        "again, it brings the same labels, without outputs, times and costs.",
        "-labels.csv",
        CSV,
        labels_csv,
    ),
    "dpo": Format(
        "Preference pairs, DPO (JSON Lines)",
        "To train a model with trl: prompt, chosen and rejected of each pair on which most votes "
        "prefer one output, with agreement and number of votes.",
        "-dpo.jsonl",
        JSON_LINES,
        training.dpo,
        ("comparison",),
    ),
    "kto": Format(
        "Rated outputs, KTO (JSON Lines)",
        "To train a model with trl: prompt, completion and a label, true or false, of each output "
        "on which most votes agree.",
        "-kto.jsonl",
        JSON_LINES,
        training.kto,
        ("comparison", "pass_flag"),
    ),
    "judge-training": Format(
        "Judge training (JSON Lines)",
        "To train or to prompt a judge: prompt, outputs, what most people say, their share, and "
        "the reasons of people and judges who say so too.",
        "-judge-training.jsonl",
        JSON_LINES,
        training.judge_rows,
    ),
    "label-studio": Format(
        "Label Studio (JSON)",
        "To go on in Label Studio: tasks with votes as annotations and verdicts as predictions.",
        "-label-studio.json",
        JSON,
        training.label_studio,
    ),
    "argilla": Format(
        "Argilla (JSON)",
        "To go on in Argilla: records with votes as responses and the judges' answer as a "
        "suggestion.",
        "-argilla.json",
        JSON,
        training.argilla,
    ),
    "votes": Format(
        "Votes for GrandJury (CSV)",
        "For the public GrandJury client: the votes that count, as grades of single outputs.",
        "-votes.csv",
        CSV,
        grandjury_votes,
    ),
    "ledger": Format(
        "Ledger (JSON Lines)",
        "To verify offline that no vote was changed: the chained entries of the whole project.",
        "-ledger.jsonl",
        JSON_LINES,
        lambda run: with_ends(ledger.export(run.queue.project)),
    ),
}


def with_ends(lines: Iterable[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


def export(run: Run, name: FormatName, who: Reader) -> StreamingHttpResponse:
    """Return a run as a file; who gets it knows from then on what judges and others say."""
    chosen = FORMATS[name]
    is_whole = name == "ledger"
    seen = Run.objects.filter(queue__project=run.queue.project) if is_whole else [run]
    note_runs_seen(who, seen)
    file = f"{slugify(run.name) or 'run'}-{str(run.pk)[:8]}{chosen.ending}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    lines = _blocks(chosen.lines(run))
    return StreamingHttpResponse(lines, content_type=chosen.content_type, headers=headers)


def _blocks(lines: Iterator[str]) -> Iterator[bytes]:
    """Put lines together: each piece of an answer costs the server some work."""
    block: list[bytes] = []
    size = 0
    for line in lines:
        block.append(line.encode())
        size += len(block[-1])
        if size > _BLOCK:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)

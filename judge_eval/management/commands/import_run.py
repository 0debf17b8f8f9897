from argparse import BooleanOptionalAction
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from judge_eval.config.run_config import ConfigInvalid
from judge_eval.interchange import mapping_config
from judge_eval.interchange.reading import read
from judge_eval.interchange.rows import Item
from judge_eval.interchange.sources import UnknownFormat
from judge_eval.models import Run
from judge_eval.prefixes import Ambiguous, by_prefix
from judge_eval.transfer import bundle, import_options
from judge_eval.transfer.import_report import WHAT, ImportRefused, ImportReport
from judge_eval.transfer.importing import import_into, import_run
from judge_eval.transfer.restoring import restore
from voting.models import Project

MOST_SHOWN = 20
OPTIONS = (
    "kind",
    "rubric",
    "votes_per_pair",
    "reveal",
    "open_for_voting",
    "skip_errors",
    "baselines",
    "source",
)


class Command(BaseCommand):
    help = "Import pairs, verdicts and votes from files, or a run that was exported."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", type=Path, nargs="+")
        parser.add_argument("--project", help="name or identifier; made if there is none so named")
        parser.add_argument("--name", help="of the new run; the first file's if not given")
        parser.add_argument("--run", help="add to this run instead")
        parser.add_argument("--mapping", type=Path, help="JSON: which column is what")
        parser.add_argument("--format", choices=["csv", "json", "jsonl", "parquet"])
        parser.add_argument("--kind", choices=["svg", "text", "code"])
        parser.add_argument("--rubric", help="what people who vote are asked")
        parser.add_argument("--ballot", help="what they may answer: A,B,tie,both_bad")
        parser.add_argument("--votes-per-pair", type=int)
        parser.add_argument("--reveal", choices=["after_each", "at_end", "never"])
        parser.add_argument("--open-for-voting", action=BooleanOptionalAction)
        parser.add_argument("--skip-errors", action="store_true", default=None)
        parser.add_argument(
            "--baselines",
            action=BooleanOptionalAction,
            help="put judges that know nothing on the board, as its floor",
        )
        parser.add_argument("--source", help="where the verdicts come from, such as MT-bench")

    def handle(self, *args: Any, **options: Any) -> None:
        # One transaction: no project is made for a run that is not.
        with ExitStack() as stack, transaction.atomic():
            try:
                report = self._import(_opened(options["files"], stack), options)
            except (OSError, UnknownFormat, ImportRefused, Ambiguous) as error:
                raise CommandError(str(error)) from error
            except (ConfigInvalid, mapping_config.MappingError) as invalid:
                raise CommandError(str(invalid)) from invalid
            self._complain(report)
        self._tell(report)

    def _import(
        self, streams: list[tuple[Path, BinaryIO]], options: dict[str, Any]
    ) -> ImportReport:
        (first, stream), *others = streams
        if bundle.is_bundle(stream):
            if others or options["run"]:
                raise CommandError("a bundle comes alone and makes runs of its own")
            wanted = options["project"]
            return restore(stream, first.name, _project(wanted) if wanted else None)
        how = import_options.parse(_given(options))
        items = _items(streams, options["mapping"], options["format"])
        if options["run"]:
            run = by_prefix(Run.objects.all(), options["run"])
            if run is None:
                raise CommandError(f"there is no run {options['run']!r}")
            return import_into(run.pk, items, options=how)
        if not options["project"]:
            raise CommandError("--project: say where the run belongs")
        name = options["name"] or first.stem
        return import_run(_project(options["project"]), name[:200], items, options=how)

    def _complain(self, report: ImportReport) -> None:
        for error in report.errors[:MOST_SHOWN]:
            self.stderr.write(str(error))
        if report.failures > MOST_SHOWN:
            self.stderr.write(f"… and {report.failures - MOST_SHOWN} more errors")
        for item in report.left_out[:MOST_SHOWN]:
            self.stderr.write(f"{item.file}:{item.row}: left out: {item.why}")
        for note in report.about_files:
            self.stderr.write(note)
        if not report.runs:
            raise CommandError(report.refusal())

    def _tell(self, report: ImportReport) -> None:
        for what in WHAT:
            self.stdout.write(f"{what}: {report.new[what]} new, {report.already[what]} known")
        left_out = len(report.left_out) + report.more_left_out
        self.stdout.write(f"rows: {report.failures} wrong, {left_out} left out")
        for note in report.notes:
            self.stdout.write(note)
        for pk in report.runs:
            self.stdout.write(f"run {pk}")


def _opened(paths: list[Path], stack: ExitStack) -> list[tuple[Path, BinaryIO]]:
    return [(path, stack.enter_context(path.open("rb"))) for path in paths]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    given = {name: options[name] for name in OPTIONS if options[name] is not None}
    if options["ballot"]:
        given["ballot"] = options["ballot"].split(",")
    return given


def _items(
    streams: list[tuple[Path, BinaryIO]], mapping: Path | None, file_format: str | None
) -> Iterator[Item]:
    columns = None
    if mapping:
        text = mapping.read_text(encoding="utf-8")
        columns = mapping_config.parse(import_options.json_text("mapping", text))
    return chain.from_iterable(
        [read(stream, path.name, columns, file_format) for path, stream in streams]
    )


def _project(wanted: str) -> Project:
    known = by_prefix(Project.objects.all(), wanted)
    named = Project.objects.filter(name=wanted).order_by("created_at")
    return known or named.first() or Project.objects.create(name=wanted[:200])

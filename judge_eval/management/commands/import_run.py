import time
from argparse import BooleanOptionalAction
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import ProtectedError

from humanjudge.lib.validation import ConfigInvalid
from judge_eval.exchange import bundle, import_jobs
from judge_eval.exchange.import_jobs import Source
from judge_eval.exchange.import_report import WHAT, ImportOptions, json_text
from judge_eval.exchange.rows import RowError
from judge_eval.models import Import, Run
from judge_eval.selectors import Ambiguous, by_prefix
from voting.models import Project

MOST_SHOWN = 20
OPTIONS = ImportOptions.model_fields.keys() - {"ballot"}


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
        parser.add_argument(
            "--inconsistent",
            choices=["tie", "wrong", "decided"],
            help="what a judge says whose two orders disagree",
        )
        parser.add_argument("--source", help="where the verdicts come from, such as MT-bench")

    def handle(self, *args: Any, **options: Any) -> None:
        with ExitStack() as stack:
            try:
                sources = _opened(options["files"], stack)
                with transaction.atomic():
                    job, project = self._job(sources, options)
            except (OSError, Ambiguous, ConfigInvalid) as error:
                raise CommandError(str(error)) from error
            job = self._done(job, sources)
        if job.state != Import.State.DONE and project:
            # No project is made for a run that is not.
            with suppress(ProtectedError):
                project.delete()
        self._tell(job)

    def _job(self, sources: list[Source], options: dict[str, Any]) -> tuple[Import, Project | None]:
        """Return what is to be done, and the project that was made for it."""
        job = Import(is_bundle=bundle.is_bundle(sources[0].stream), is_local=True)
        project, is_new = _project(options["project"]) if options["project"] else (None, False)
        if job.is_bundle:
            if len(sources) > 1 or options["run"]:
                raise CommandError("a bundle comes alone and makes runs of its own")
            job.form, job.project = {}, project
            return job, project if is_new else None
        job.form = _form(sources, options)
        if options["run"]:
            job.run = by_prefix(Run.objects.select_related("queue"), options["run"])
            if job.run is None:
                raise CommandError(f"there is no run {options['run']!r}")
            job.project_id = job.run.queue.project_id
        elif project is None:
            raise CommandError("--project: say where the run belongs")
        else:
            job.project = project
            job.name = (options["name"] or Path(sources[0].name).stem)[:200]
        return job, project if is_new else None

    def _done(self, job: Import, sources: list[Source]) -> Import:
        has_waited = False
        while not (claimed := import_jobs.begin_here(job)):
            if not has_waited:
                self.stderr.write("Another import is at work; this one is next.")
            has_waited = True
            time.sleep(0.5)
        if self.stderr.isatty():
            claimed.on_progress = lambda: self._show(claimed)
        try:
            return import_jobs.perform(claimed, sources)
        except KeyboardInterrupt as stop:
            import_jobs.cancel(claimed)
            claimed.refresh_from_db()
            goes_on = (
                "a worker goes on with it" if claimed.state == "writing" else "nothing is left"
            )
            raise CommandError(f"Stopped: {goes_on}.") from stop

    def _show(self, job: Import) -> None:
        of = (
            f"written: {job.written} of {job.to_write}"
            if job.to_write
            else f"read: {job.rows_read}"
        )
        self.stderr.write(f"\rrows {of} ", ending="")

    def _tell(self, job: Import) -> None:
        report = job.report
        if report is None:
            raise CommandError(job.detail)
        self._complain(report)
        if job.state != Import.State.DONE:
            for note in report["notes"]:
                self.stderr.write(note)
            raise CommandError(job.detail)
        for what in WHAT:
            known = report["already"][what]
            self.stdout.write(f"{what}: {report['new'][what]} new, {known} known")
        left_out = len(report["left_out"]) + report["more_left_out"]
        self.stdout.write(f"rows: {_failures(report)} wrong, {left_out} left out")
        for note in report["notes"]:
            self.stdout.write(note)
        for pk in report["runs"]:
            self.stdout.write(f"run {pk}")

    def _complain(self, report: dict[str, Any]) -> None:
        for error in report["errors"][:MOST_SHOWN]:
            self.stderr.write(str(RowError(**error)))
        if (failures := _failures(report)) > MOST_SHOWN:
            self.stderr.write(f"… and {failures - MOST_SHOWN} more errors")
        for item in report["left_out"][:MOST_SHOWN]:
            self.stderr.write(f"{item['file']}:{item['row']}: left out: {item['why']}")


def _failures(report: dict[str, Any]) -> int:
    return len(report["errors"]) + int(report["more_errors"])


def _form(sources: list[Source], options: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of the files, checked, as an import keeps it."""
    given = {name: options[name] for name in OPTIONS if options[name] is not None}
    if options["ballot"]:
        given["ballot"] = options["ballot"].split(",")
    columns = None
    if options["mapping"]:
        columns = json_text("mapping", options["mapping"].read_text(encoding="utf-8"))
    return import_jobs.form_of(sources, given, columns, options["format"])


def _opened(paths: list[Path], stack: ExitStack) -> list[Source]:
    return [Source(path.name, stack.enter_context(path.open("rb"))) for path in paths]


def _project(wanted: str) -> tuple[Project, bool]:
    """Return the project that is meant, and whether it was made for that."""
    known = by_prefix(Project.objects.all(), wanted)
    known = known or Project.objects.filter(name=wanted).order_by("created_at").first()
    return (known, False) if known else (Project.objects.create(name=wanted[:200]), True)

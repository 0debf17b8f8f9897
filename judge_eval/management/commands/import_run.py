import time
from argparse import BooleanOptionalAction
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import ProtectedError

from humanjudge.core.strict_json import JsonObject, loads
from humanjudge.core.validation import ConfigInvalid, json_schema
from judge_eval.imports import import_jobs
from judge_eval.imports.containers import Format, SourceFile
from judge_eval.imports.import_report import ImportOptions, ImportReport, json_text
from judge_eval.models import Import, Run
from judge_eval.runs.queries import Ambiguous, by_prefix, project_of
from voting.models import Project

MOST_LINES = 20


def _words(text: str) -> list[str]:
    return text.split(",")


def _argparse_options(schema: JsonObject) -> JsonObject:
    """Return how argparse takes an option, of which nothing is given unless it is stated."""
    [option] = [branch for branch in schema.get("anyOf", [schema]) if branch.get("type") != "null"]
    if option.get("type") == "boolean":
        return {"action": BooleanOptionalAction, "default": None}
    if "enum" in option:
        return {"choices": option["enum"]}
    if "properties" in option.get("items", {}) or option["type"] == "object":
        return {"type": loads}
    return {"type": {"integer": int, "number": float, "array": _words}.get(option["type"], str)}


class Command(BaseCommand):
    help = "Import pairs or single items with verdicts and votes, or a run that was exported."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("files", type=Path, nargs="+")
        add("--project", help="name or identifier; made if there is none so named")
        add("--name", help="of the new run; the first file's if not given")
        add("--run", help="add to this run instead")
        add("--map", "--mapping", type=Path, dest="mapping", help="JSON: which column is what")
        add("--format", choices=get_args(Format))
        for name, schema in json_schema(ImportOptions)["properties"].items():
            about = schema.get("description")
            add(f"--{name.replace('_', '-')}", help=about, **_argparse_options(schema))

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            job, project = import_jobs.when_unlocked(lambda: self._ask(options), self.stderr.write)
        except (OSError, Ambiguous, ConfigInvalid) as error:
            raise CommandError(str(error)) from error
        try:
            import_jobs.when_unlocked(lambda: self._finish(job), self.stderr.write)
        except KeyboardInterrupt as stop:
            import_jobs.cancel(job)
            job.refresh_from_db()
            is_left = job.state in Import.UNFINISHED
            goes_on = "a worker goes on with it" if is_left else "nothing is left"
            raise CommandError(f"Stopped: {goes_on}.") from stop
        if job.state != Import.State.DONE and project:
            # No project is made for a run that is not.
            with suppress(ProtectedError):
                project.delete()
        self._tell(job)

    def _ask(self, options: dict[str, Any]) -> tuple[Import, Project | None]:
        """Store the files; return their import and the project that was made for it."""
        job, project = Import(is_local=True), None
        with ExitStack() as stack:
            files = [(path.name, path.open("rb")) for path in options["files"]]
            sources = [SourceFile(name, stack.enter_context(file)) for name, file in files]
            with transaction.atomic():
                if name := options["project"]:
                    job.project = project_of(name)
                    project = None if job.project else Project.objects.create(name=name[:200])
                    job.project = job.project or project
                self._fill(job, sources, options)
            import_jobs.submit(job, sources)
        return job, project

    def _fill(self, job: Import, sources: list[SourceFile], options: dict[str, Any]) -> None:
        if options["run"]:
            job.run = by_prefix(Run.objects.select_related("queue"), options["run"])
            if job.run is None:
                raise CommandError(f"there is no run {options['run']!r}")
            job.project_id = job.run.queue.project_id
        import_jobs.recognise(job, sources)
        if job.is_bundle:
            return
        names = ImportOptions.model_fields
        import_options = {name: options[name] for name in names if options[name] is not None}
        path, columns = options["mapping"], None
        if path:
            columns = json_text("mapping", path.read_text(encoding="utf-8"))
        job.form = import_jobs.form_of(sources, import_options, columns, options["format"])
        if job.run is None and job.project is None:
            raise CommandError("--project: say where the run belongs")
        if job.run is None:
            job.name = (options["name"] or Path(sources[0].name).stem)[:200]

    def _finish(self, job: Import) -> None:
        has_waited = False
        while job.state in Import.UNFINISHED:
            if claimed := import_jobs.claim(job.pk):
                if self.stderr.isatty():
                    claimed.on_progress = lambda: self._show(claimed)
                import_jobs.run(claimed)
            else:
                if not has_waited:
                    self.stderr.write("Another import is at work; this one is next.")
                has_waited = True
                time.sleep(import_jobs.PAUSE_SECONDS)
            job.refresh_from_db()

    def _show(self, job: Import) -> None:
        progress = f"read: {job.rows_read}"
        if job.to_write:
            progress = f"written: {job.written} of {job.to_write}"
        self.stderr.write(f"\rrows {progress} ", ending="")

    def _tell(self, job: Import) -> None:
        if job.report is None:
            raise CommandError(job.detail)
        report = ImportReport.model_validate(job.report)
        for error in report.errors[:MOST_LINES]:
            self.stderr.write(str(error))
        if report.failures > MOST_LINES:
            self.stderr.write(f"… and {report.failures - MOST_LINES} more errors")
        for item in report.left_out[:MOST_LINES]:
            self.stderr.write(f"{item.file}:{item.row}: left out: {item.why}")
        if job.state != Import.State.DONE:
            self.stderr.writelines(f"{note}\n" for note in report.notes)
            raise CommandError(job.detail)
        for noun in report.counted:
            self.stdout.write(f"{noun}: {report.new[noun]} new, {report.already[noun]} known")
        for line in [*report.counts, *report.notes, *(f"run {pk}" for pk in report.runs)]:
            self.stdout.write(line)

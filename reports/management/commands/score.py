from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from humanjudge.lib.validation import ConfigInvalid
from judge_eval.findings.slices import Slice, SliceInvalid
from judge_eval.models import Run
from judge_eval.runs.embeddings import make_embedder
from judge_eval.selectors import Ambiguous, by_prefix
from reports.scores.config import Reach, finder, import_modules, read_config
from reports.scores.files import FolderTaken, replacing
from reports.scores.make import NotWritable, ScoringFailed, make_report
from reports.scores.table import Report, table_text


class Command(BaseCommand):
    help = "Write how well a run's judges agree with people: results, a table, a page, charts."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", help="identifier, or its first eight characters")
        parser.add_argument("--config", type=Path, help="YAML or JSON; see docs/results.md")
        parser.add_argument("--part", default="", help="tag:…, generator:… or ballot:decided")
        parser.add_argument("--out", type=Path, required=True, help="folder of the report")
        parser.add_argument(
            "--force", action="store_true", help="move aside whatever else is in that folder"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = self._report(options)
        except ConfigInvalid as invalid:
            raise CommandError(f"the configuration is wrong:\n{invalid}") from invalid
        except (
            Ambiguous,
            FolderTaken,
            ScoringFailed,
            NotWritable,
            SliceInvalid,
            OSError,
        ) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(table_text(report.table))
        self.stdout.write("* the best value of its column; [95 % interval]; n: labels compared")
        self.stdout.write(f"written to {options['out']}")

    def _report(self, options: dict[str, Any]) -> Report:
        run = by_prefix(Run.objects.all(), options["run"])
        if run is None:
            raise CommandError(f"there is no run {options['run']!r}")
        part = Slice.parse(options["part"]) if options["part"] else None
        path: Path | None = options["config"]
        data, reach = None, Reach()
        if path is not None:
            data = read_config(path)
            reach = Reach(
                finder(path.parent),
                lambda options, place: make_embedder(options, is_trusted=True, path=place),
            )
            import_modules(data, path.parent)
        with replacing(options["out"], force=options["force"]) as folder:
            return make_report(run.pk, data, folder, now=timezone.now(), reach=reach, part=part)

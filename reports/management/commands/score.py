from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from humanjudge.core.validation import ConfigInvalid
from judge_eval.judging.provider_access import make_embedder
from judge_eval.models import Run
from judge_eval.runs.queries import Ambiguous, by_prefix, switched_off
from reports.scores.config import Reach, config_object, read_config, read_style
from reports.scores.files import FolderTaken, ScoringFailed, make_report, replacing
from reports.scores.table import table_text


class Command(BaseCommand):
    help = "Write how well a run's judges agree with people: results, a table, a page, charts."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", help="identifier, or its first characters")
        parser.add_argument("--config", type=Path, help="YAML or JSON; see docs/results.md")
        parser.add_argument(
            "--part", default="", help="tag:…, generator:…, group:… or ballot:decided"
        )
        parser.add_argument("--style", type=Path, help="style sheet of Matplotlib, for the charts")
        parser.add_argument("--out", type=Path, required=True, help="folder of the report")
        parser.add_argument(
            "--force", action="store_true", help="move aside whatever else is in that folder"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path | None = options["config"]
        embed = partial(make_embedder, is_trusted=True)
        reach = Reach(path.parent if path else None, embed, switched_off())
        try:
            run = by_prefix(Run.objects.all(), options["run"])
            if run is None:
                raise CommandError(f"there is no run {options['run']!r}")
            data = config_object(read_config(path) if path else None)
            data |= {"part": options["part"]} if options["part"] else {}
            data |= {"style": read_style(options["style"])} if options["style"] else {}
            with replacing(options["out"], force=options["force"]) as folder:
                report = make_report(run, data, folder, reach)
        except ConfigInvalid as invalid:
            raise CommandError(f"the configuration is wrong:\n{invalid}") from invalid
        except (Ambiguous, FolderTaken, ScoringFailed, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(table_text(report.table))
        self.stdout.write("* the best value of its column; [95 % interval]; n: labels compared")
        self.stdout.write(f"written to {options['out']}")

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from humanjudge.core.http import Problem
from judge_eval.exports.export import export_project
from judge_eval.exports.files import FORMATS, FormatName, in_blocks, with_ends
from judge_eval.models import Run
from judge_eval.runs.queries import Ambiguous, by_prefix, project_of


class Command(BaseCommand):
    help = "Write a run as one of the files of its page, or all runs of a project as a bundle."

    def add_arguments(self, parser: CommandParser) -> None:
        selection = parser.add_mutually_exclusive_group(required=True)
        selection.add_argument("run", nargs="?", help="identifier, or its first characters")
        selection.add_argument("--project", help="identifier or name: all of its runs")
        parser.add_argument("--format", choices=list(FORMATS), default="jsonl")
        parser.add_argument("--out", type=Path, help="a file; standard output if not given")

    def handle(self, *args: Any, **options: Any) -> None:
        out = options["out"]
        try:
            pieces = self._pieces(options["run"], options["project"], options["format"])
            with out.open("wb") if out else nullcontext(sys.stdout.buffer) as file:
                file.writelines(in_blocks(pieces))
                file.flush()
        except (Ambiguous, Problem) as refused:
            raise CommandError(str(refused)) from refused
        except OSError as error:
            raise CommandError(f"cannot write {out}: {error.strerror}") from error

    def _pieces(
        self, prefix: str, of_project: str, file_format: FormatName
    ) -> Iterator[str] | Iterator[bytes]:
        if of_project:
            if file_format != "jsonl":
                raise CommandError("--format: a project is written as jsonl; name one of its runs")
            project = project_of(of_project)
            if project is None:
                raise CommandError(f"there is no project {of_project!r}")
            return with_ends(export_project(project))
        run = by_prefix(Run.objects.select_related("queue__project"), prefix)
        if run is None:
            raise CommandError(f"there is no run {prefix!r}")
        return FORMATS[file_format].pieces(run)

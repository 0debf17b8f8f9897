import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from judge_eval.exchange.export import (
    export_project,
    export_run,
    grandjury_votes,
    votes_csv,
)
from judge_eval.models import Run
from judge_eval.selectors import Ambiguous, by_prefix
from voting.models import Project


class Command(BaseCommand):
    help = "Write everything of a run or a project, or a run's votes, to be imported elsewhere."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("run", nargs="?", help="identifier, or its first eight characters")
        what.add_argument("--project", help="identifier or name: all of its runs")
        parser.add_argument("--format", choices=["jsonl", "csv", "votes"], default="jsonl")
        parser.add_argument("--out", type=Path, help="a file; standard output if not given")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            lines = self._lines(options)
        except Ambiguous as ambiguous:
            raise CommandError(str(ambiguous)) from ambiguous
        if options["out"] is None:
            sys.stdout.writelines(lines)
            return
        try:
            with options["out"].open("w", encoding="utf-8", newline="") as file:
                file.writelines(lines)
        except OSError as error:
            raise CommandError(f"cannot write {options['out']}: {error.strerror}") from error

    def _lines(self, options: dict[str, Any]) -> Iterator[str]:
        if options["project"]:
            if options["format"] != "jsonl":
                raise CommandError("--format: a project is written as jsonl; name one of its runs")
            return (f"{line}\n" for line in export_project(_project(options["project"])))
        run = by_prefix(Run.objects.select_related("queue"), options["run"])
        if run is None:
            raise CommandError(f"there is no run {options['run']!r}")
        if options["format"] == "csv":
            return votes_csv(run)
        if options["format"] == "votes":
            return grandjury_votes(run)
        return (f"{line}\n" for line in export_run(run))


def _project(wanted: str) -> Project:
    named = Project.objects.filter(name=wanted).order_by("created_at")
    project = by_prefix(Project.objects.all(), wanted) or named.first()
    if project is None:
        raise CommandError(f"there is no project {wanted!r}")
    return project

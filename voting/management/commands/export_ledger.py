import sys
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from voting.ballot.tuning import OF_ALL, is_tuned
from voting.ledger import ledger
from voting.models import Project


class Command(BaseCommand):
    help = "Write a project's sealed ledger as JSON Lines, to be verified by verify_ledger."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", type=UUID)
        parser.add_argument("--out", type=Path, help="a file; standard output if not given")

    def handle(self, *args: Any, project: UUID, out: Path | None, **options: Any) -> None:
        row = Project.objects.filter(pk=project).first()
        if row is None:
            raise CommandError(f"there is no project {project}")
        if is_tuned(project):
            raise CommandError(OF_ALL)
        lines = (f"{line}\n" for line in ledger.export(row))
        if out is None:
            sys.stdout.writelines(lines)
            return
        try:
            with out.open("w", encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            raise CommandError(f"cannot write {out}: {error.strerror}") from error
        self.stderr.write(f"{row.head_seq} entries, head {row.ledger_head}")

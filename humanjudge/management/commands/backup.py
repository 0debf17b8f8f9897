"""`manage.py backup FILE`: everything of this installation as one file."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from humanjudge.server.backup import BackupRefused, backup


class Command(BaseCommand):
    help = "Write every table and every picture into one file, while people go on voting."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            backup(file, self.stderr.write)
        except BackupRefused as refused:
            raise CommandError(str(refused)) from refused
        except OSError as error:
            raise CommandError(f"cannot write {file}: {error.strerror or error}") from error
        self.stdout.write(f"{file}: {file.stat().st_size:,} bytes")
        self.stderr.write("Keep SECRET_KEY beside it: links and logins are signed with it.")

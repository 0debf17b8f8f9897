"""`manage.py restore FILE`: what `backup` wrote, into a database that is empty."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from humanjudge.server.backup import BackupRefused, restore
from humanjudge.server.launcher import embedded


class Command(BaseCommand):
    help = "Read a backup into an empty database; it is whole and verified, or nothing is there."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        # Until this process ends: no server starts on this folder meanwhile.
        embedded.lock(settings.DATA)
        call_command("migrate", verbosity=0, interactive=False)
        try:
            restore(file, self.stderr.write)
        except BackupRefused as refused:
            raise CommandError(f"{refused}. Nothing was restored.") from refused
        except OSError as error:
            raise CommandError(f"cannot read {file}: {error.strerror or error}") from error
        self.stdout.write(f"{file}: restored and verified")

from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from reports.report.bundle import NotVerified, verify
from reports.report.not_covered import NOT_COVERED
from voting.models import Project


class Command(BaseCommand):
    help = "Compute every figure of a report anew from its bundle, in a database that is empty."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("bundle", type=Path)
        parser.add_argument(
            "--head", default="", help="the head of the ledger, known from elsewhere"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.introspection.table_names():
            call_command("migrate", verbosity=0)
        else:
            # As they are now: to make them by migrations takes seconds.
            with connection.schema_editor() as editor:
                for model in apps.get_models():
                    editor.create_model(model)
        if Project.objects.exists():
            raise CommandError(
                "This database has projects. `humanjudge verify` makes an empty one."
            )
        try:
            report, unchecked, gaps = verify(options["bundle"], options["head"])
        except NotVerified as wrong:
            raise CommandError(f"NOT verified: {wrong}") from wrong
        compared = (
            "is as given" if options["head"] else "was not given: compare it with one you know"
        )
        self.stdout.write(
            f"Verified: every figure of {report.title!r} follows from its ledger of "
            f"{report.head.seq:,} entries. Its head {report.head.hash} {compared}."
        )
        for composite in unchecked:
            self.stdout.write(f"Not checked, as it asks for outputs: {composite}.")
        for gap in gaps:
            self.stdout.write(f"Not compared: {gap}.")
        self.stdout.write("Not covered by any ledger:")
        for not_covered in NOT_COVERED:
            self.stdout.write(f"- {not_covered.subject}")

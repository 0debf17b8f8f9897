from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from voting.ledger import chain


class Command(BaseCommand):
    help = (
        "Verify an exported ledger. Needs no database; voting/ledger/chain.py does the same alone."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--head", help="the head printed on a report: also finds a cut tail")
        parser.add_argument("--receipt", action="append", default=[], help=chain.RECEIPT)

    def handle(self, *args: Any, **options: Any) -> None:
        head = ["--head", options["head"]] if options["head"] else []
        receipts = [f"--receipt={receipt}" for receipt in options["receipt"]]
        if chain.main([str(options["file"]), *head, *receipts]):
            raise CommandError("the ledger does not verify", returncode=1)

import os
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandParser

from judge_eval.board import cache


class Command(BaseCommand):
    help = "Compute the findings of a run with many votes. Workers start this by themselves."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=UUID)
        parser.add_argument("part", nargs="?", default="")

    def handle(self, *args: Any, run: UUID, part: str, **options: Any) -> None:
        os.nice(10)
        cache.compute(run, part)

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from judge_eval.demo import load


class Command(BaseCommand):
    help = "Load the demo once: runs to vote on, and a finished one of published labels."

    def handle(self, *args: Any, **options: Any) -> None:
        loaded = load.load(settings.DATA / "access.json")
        self.stdout.write("demo loaded" if loaded else "the demo is already here")

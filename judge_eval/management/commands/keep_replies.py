from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from judge_eval.runs.deletion import remove_old_replies, set_retention
from voting.models import Project


class Command(BaseCommand):
    help = "Say for how long raw replies of models are kept in a project, and remove older ones."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", help="the project's identifier")
        choice = parser.add_mutually_exclusive_group(required=True)
        choice.add_argument("--days", type=int, help="keep them for so many days")
        choice.add_argument("--forever", action="store_true", help="keep them")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["days"] is not None and options["days"] < 1:
            raise CommandError("--days: at least 1")
        try:
            project = Project.objects.get(pk=options["project"])
        except (Project.DoesNotExist, ValidationError):
            raise CommandError(f"there is no project {options['project']!r}") from None
        set_retention(project, options["days"])
        self.stdout.write(f"{remove_old_replies(timezone.now())} replies removed")

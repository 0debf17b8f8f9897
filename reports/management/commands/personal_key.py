from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from reports.grandjury.services import PERSON_SCOPES, create_person_key


class Command(BaseCommand):
    help = "Make a key of a person for the GrandJury protocol and print it, this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name that the person logs in with")
        parser.add_argument("--name", default="made by command", help="what the key is for")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['user']!r}")
        self.stdout.write(create_person_key(user, options["name"][:100], PERSON_SCOPES, None)[1])

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from voting.ledger import ledger
from voting.models import Project

MOST_PRINTED = 20


class Command(BaseCommand):
    help = "Rebuild every score from the ledger; with --check only say what differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", type=UUID, help="one project; every project if not given")
        parser.add_argument(
            "--check", action="store_true", help="write nothing, fail on a difference"
        )
        parser.add_argument(
            "--chain",
            action="store_true",
            help="verify the chain and the texts of entries too",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        projects = Project.objects.order_by("created_at")
        if options["project"]:
            projects = projects.filter(pk=options["project"])
            if not projects:
                raise CommandError(f"there is no project {options['project']}")
        flags = {"check": options["check"], "chain": options["chain"]}
        left = sum(self._replay(project, **flags) for project in projects)
        if left:
            raise CommandError(f"{left} values are not what the ledger says")

    def _replay(self, project: Project, *, check: bool, chain: bool) -> int:
        differences = ledger.replay(project, write=not check)
        if check:
            differences += ledger.stored_figures(project)
        if chain:
            differences = [*ledger.changed_entries(project), *differences]
        for difference in differences[:MOST_PRINTED]:
            self.stdout.write(str(difference))
        left = [gap for gap in differences if check or not gap.is_correctable]
        state = "corrected" if differences else "equal"
        if left:
            state = "differing" if check else f"{len(left)} cannot be corrected"
        self.stdout.write(
            f"{project.pk} {project.name}: {project.head_seq} entries, "
            f"{len(differences)} differences, {state}"
        )
        for gap in ledger.gaps(project):
            self.stdout.write(f"not compared: {gap}")
        return len(left)

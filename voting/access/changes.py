"""How a project is run, beside its ledger: its name, reputations, and who changed what when.

What the ledger does not hold (members, keys, names) is written into Django's own log of changes, by
the services that make them; the audit page of a project shows it.
"""

from decimal import Decimal
from typing import Final

from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils.module_loading import import_string

from voting.items.choices import MILLION
from voting.models import Project, Queue, Voter

# A voter whose votes should not count at all is excluded or blocked; the weight is always above 0.
LEAST_REPUTATION: Final = Decimal("0.001")
MOST_REPUTATION: Final = Decimal(1000)


def note_change(about: Model, actor: User | None, message: str) -> None:
    """Write down that somebody changed something; never a secret, nor the name of a voter.

    What scripts and commands do has nobody to name, and stands in the log of their requests alone.
    """
    if actor is None:
        return
    LogEntry.objects.create(
        user=actor,
        content_type=ContentType.objects.get_for_model(about),
        object_id=str(about.pk),
        object_repr=str(about)[:200],
        action_flag=CHANGE,
        change_message=message,
    )


def changes_of(project: Project) -> QuerySet[LogEntry]:
    """Return what was changed in a project, the latest first."""
    about = {"content_type": ContentType.objects.get_for_model(Project)}
    changes = LogEntry.objects.filter(**about, object_id=str(project.pk))
    return changes.select_related("user").order_by("-pk")


def record_queues(queues: QuerySet[Queue]) -> None:
    """Write into the ledger what queues and their project are like now."""
    import_string(settings.RECORD_QUEUES)(queues)


def rename(project: Project, name: str, actor: User) -> None:
    with transaction.atomic():
        before = Project.objects.select_for_update(no_key=True).get(pk=project.pk).name
        if before != name:
            Project.objects.filter(pk=project.pk).update(name=name)
            record_queues(project.queues.all())
            note_change(project, actor, f"Renamed from “{before}” to “{name}”.")


def set_reputation(voter: Voter, reputation: Decimal, actor: User) -> None:
    """Let the votes of a voter weigh differently from now on: sealed ones keep their weight.

    Raises ValueError outside its bounds.
    """
    if not LEAST_REPUTATION <= reputation <= MOST_REPUTATION:
        words = f"A reputation is at least {LEAST_REPUTATION} and at most {MOST_REPUTATION:,}."
        raise ValueError(words)
    weight = round(reputation * MILLION)
    with transaction.atomic():
        before = Voter.objects.select_for_update(no_key=True).get(pk=voter.pk).reputation
        if before != weight:
            Voter.objects.filter(pk=voter.pk).update(reputation=weight)
            words = f"{before / MILLION:g} to {weight / MILLION:g}"
            note_change(voter.project, actor, f"Reputation of voter {voter.pseudonym}: {words}.")

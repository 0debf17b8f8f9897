"""Heads of ledgers, published once a day where nobody here can change them any more.

Whoever rewrote a ledger would have to rewrite the mails and logs of others, too.
"""

import logging
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from humanjudge.core.domain_events import Announcement, Data
from reports.models import PublishedHead
from reports.webhooks.services import announce, listeners
from voting.models import Project

INTERVAL: Final = timedelta(days=1)
LOG: Final = "log"
EVENT: Final = "head.daily"
logger = logging.getLogger("humanjudge.heads")


def publish_heads(now: datetime) -> None:
    """Publish the head of every ledger that has grown since the last one, once a day at most."""
    heard_by = {webhook.project_id for webhook in listeners(EVENT)}
    with_readers = Q() if settings.LEDGER_HEADS_TO else Q(pk__in=heard_by)
    published = PublishedHead.objects.filter(project=OuterRef("pk"))
    is_done = Exists(published.filter(Q(seq=OuterRef("head_seq")) | Q(at__gt=now - INTERVAL)))
    for project in Project.objects.filter(with_readers, ~is_done, head_seq__gt=0):
        _send(project)
        with transaction.atomic():
            _announce(project)
            PublishedHead.objects.create(
                project=project, seq=project.head_seq, hash=project.head_hash, at=now
            )


def _words(project: Project) -> str:
    return (
        f"The ledger of {project.name} ({project.pk}) ends with entry {project.head_seq}, "
        f"whose hash is {project.ledger_head}."
    )


def _announce(project: Project) -> None:
    page, key = reverse("project-quality", args=[project.pk]), f"{EVENT}:{project.head_seq}"
    head: Data = {"seq": project.head_seq, "hash": project.ledger_head}
    announce([Announcement(EVENT, project.pk, key, _words(project), page, head)])


def _send(project: Project) -> None:
    words = _words(project)
    people = [recipient for recipient in settings.LEDGER_HEADS_TO if recipient != LOG]
    if LOG in settings.LEDGER_HEADS_TO:
        # Shown at every usual level: it is there to be kept.
        logger.warning(words)
    if people:
        send_mail(f"Ledger of {project.name}: entry {project.head_seq}", words, None, people)

"""Heads of ledgers, told once a day to where nobody here can change them any more.

Whoever rewrote a ledger would have to rewrite the mails and logs of others, too.
"""

import logging
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import Exists, OuterRef

from reports.models import ToldHead
from voting.models import Project

EVERY: Final = timedelta(days=1)
LOG: Final = "log"
logger = logging.getLogger("humanjudge.heads")


def tell_heads(now: datetime) -> None:
    """Tell the head of every ledger that has gone on since it was told, once a day at most."""
    if not settings.LEDGER_HEADS_TO:
        return
    told = ToldHead.objects.filter(project=OuterRef("pk"))
    is_known = Exists(told.filter(seq=OuterRef("head_seq"))) | Exists(
        told.filter(at__gt=now - EVERY)
    )
    for project in Project.objects.filter(~is_known, head_seq__gt=0):
        _tell(project)
        ToldHead.objects.create(
            project=project, seq=project.head_seq, hash=project.head_hash, at=now
        )


def _tell(project: Project) -> None:
    words = (
        f"The ledger of {project.name} ({project.pk}) ends with entry {project.head_seq}, "
        f"whose hash is {project.head}."
    )
    people = [each for each in settings.LEDGER_HEADS_TO if each != LOG]
    if LOG in settings.LEDGER_HEADS_TO:
        # Shown at every usual level: it is there to be kept.
        logger.warning(words)
    if people:
        send_mail(f"Ledger of {project.name}: entry {project.head_seq}", words, None, people)

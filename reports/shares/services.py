"""Links to reports: made, found by their tokens, counted and revoked."""

import secrets
from datetime import datetime
from hashlib import sha256
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.urls import reverse
from django.utils import timezone

from judge_eval.models import Run
from reports.models import FrozenRows, Share
from reports.shares.bundle import frozen_rows
from reports.shares.make import is_current, report_of
from reports.shares.report import Report
from voting.changes import note_change
from voting.ledger.bulk_sql import one_moment
from voting.models import Project, Queue

MOST_DAYS: Final = 3650
MOST_LISTED: Final = 500


def address_of(token: str) -> str:
    return reverse("shared-report", args=[token])


def make_share(
    project: Project,
    run: Run | None,
    user: User | None,
    *,
    label: str = "",
    expires_at: datetime | None = None,
    is_frozen: bool = False,
    is_public: bool = False,
    shows_outputs: bool = False,
) -> tuple[Share, str]:
    """Return the new link's row and its token, which cannot be had again.

    Raises NotComputed where a report to freeze has no figures yet.
    """
    report, rows = _frozen(project, run) if is_frozen else (None, None)
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        share = Share.objects.create(
            project=project,
            run=run,
            label=label,
            token_sha256=_hash(token),
            prefix=token[:6],
            made_by=user,
            expires_at=expires_at,
            is_public=is_public,
            shows_outputs=shows_outputs,
            frozen=report and report.model_dump(mode="json"),
        )
        if rows:
            FrozenRows.objects.create(share=share, lines=rows)
        note_change(project, user, f"Link “{share}” made to a report of {run or project}.")
    return share, token


@one_moment()
def _frozen(project: Project, run: Run | None) -> tuple[Report, bytes | None]:
    """Return a report of one moment, and what its bundle will hold beside the ledger.

    While votes come faster than figures follow, these are of different ends of the ledger: then
    there is no bundle.
    """
    report = report_of(Project.objects.get(pk=project.pk), run)
    return report, frozen_rows(project) if is_current(report) else None


def _hash(token: str) -> str:
    # The token has 256 random bits, so a fast hash is as safe as a slow one.
    return sha256(token.encode()).hexdigest()


def find_share(token: str) -> Share | None:
    """Return the link of a token, None for a wrong, a revoked and an expired one alike."""
    lives = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    shares = Share.objects.select_related("project", "run__queue", "run__board")
    return shares.filter(lives, token_sha256=_hash(token), revoked_at__isnull=True).first()


def count_view(share: Share) -> None:
    Share.objects.filter(pk=share.pk).update(views=F("views") + 1, viewed_at=timezone.now())


def forget_deleted_runs() -> None:
    """Forget what was kept for bundles that hold a run which was deleted since."""
    deleted = Queue.objects.filter(
        project=OuterRef("share__project"), deleted_at__gt=OuterRef("share__made_at")
    )
    FrozenRows.objects.filter(Exists(deleted)).delete()


def revoke_share(share: Share, by: User | None = None) -> None:
    """Let nobody in by a link any more; the first time counts."""
    valid = Share.objects.filter(pk=share.pk, revoked_at__isnull=True)
    with transaction.atomic():
        if valid.update(revoked_at=timezone.now()):
            note_change(share.project, by, f"Link “{share}” revoked.")

"""Links to reports: made, found by their tokens, counted and revoked."""

import secrets
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.db.models import F, Q
from django.utils import timezone

from judge_eval.models import Run
from reports.models import Share
from reports.shares.make import report_of
from voting.models import Project


def make_share(
    project: Project,
    run: Run | None,
    user: Any,
    *,
    label: str = "",
    expires_at: datetime | None = None,
    is_frozen: bool = False,
    is_public: bool = False,
) -> tuple[Share, str]:
    """Return the new link's row and its token, which cannot be had again.

    Raises NotComputed where a report to freeze has no figures yet.
    """
    token = secrets.token_urlsafe(32)
    row = Share.objects.create(
        project=project,
        run=run,
        label=label,
        token_sha256=_hash(token),
        prefix=token[:6],
        made_by=user,
        expires_at=expires_at,
        is_public=is_public,
        frozen=report_of(project, run).model_dump(mode="json") if is_frozen else None,
    )
    return row, token


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


def revoke_share(share: Share) -> None:
    """Let nobody in by a link any more; the first time counts."""
    Share.objects.filter(pk=share.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())

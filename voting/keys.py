"""API keys: made once, kept as a hash, checked in constant time."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from django.db.models import Q
from django.utils import timezone

from voting.models import ApiKey, Project

_MARK = "hj"


def create_key(
    name: str,
    scopes: Sequence[str],
    project: Project | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Return the new key's row and the key itself, which cannot be had again."""
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    row = ApiKey.objects.create(
        name=name,
        prefix=prefix,
        # The secret has 256 random bits, so a fast hash is as safe as a slow one.
        secret_sha256=sha256(secret.encode()).hexdigest(),
        scopes=list(scopes),
        project=project,
        expires_at=expires_at,
    )
    return row, f"{_MARK}_{prefix}_{secret}"


def find_key(token: str) -> ApiKey | None:
    """Return the valid key behind a token, None for anything else."""
    mark, _, rest = token.partition("_")
    prefix, _, secret = rest.partition("_")
    if mark != _MARK or not secret or not token.isprintable():
        return None
    is_valid = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    row = ApiKey.objects.filter(is_valid, prefix=prefix, revoked_at__isnull=True).first()
    digest = sha256(secret.encode()).hexdigest()
    return row if row and secrets.compare_digest(row.secret_sha256, digest) else None

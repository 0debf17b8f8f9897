"""API keys: made once, kept as a hash, checked in constant time."""

import json
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from voting.access.changes import note_change
from voting.access.roles import scopes_within
from voting.ledger.bulk_sql import prepared
from voting.models import ApiKey, Project

# The last use is written no more often: most requests of a script only read the key's row.
USE_NOTED_EVERY: Final = timedelta(minutes=1)
_SHAPE: Final = re.compile(f"({'|'.join(ApiKey.Kind.values)})_([0-9a-f]+)_([ -~]+)")


def create_key(
    name: str,
    scopes: Sequence[str],
    project: Project | None = None,
    expires_at: datetime | None = None,
    *,
    kind: str = ApiKey.Kind.SCRIPT,
    user: Any = None,
) -> tuple[ApiKey, str]:
    """Return the new key's row and the key itself, which cannot be had again."""
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    row = ApiKey.objects.create(
        name=name,
        kind=kind,
        prefix=prefix,
        # The secret has 256 random bits, so a fast hash is as safe as a slow one.
        secret_sha256=sha256(secret.encode()).hexdigest(),
        scopes=list(scopes),
        project=project,
        expires_at=expires_at,
        user=user,
    )
    return row, f"{kind}_{prefix}_{secret}"


class ScopesExceeded(Exception):
    """A key was to do more than whoever makes it may."""


def create_project_key(
    project: Project, name: str, scopes: Sequence[str], expires_at: datetime | None, maker: User
) -> tuple[ApiKey, str]:
    """Make a key of one project, which never does more than its maker may at that time."""
    if beyond := set(scopes) - set(scopes_within(maker, project)):
        raise ScopesExceeded(f"You may not give a key the scope {', '.join(sorted(beyond))}.")
    with transaction.atomic():
        key, text = create_key(name, scopes, project, expires_at, user=maker)
        note_change(project, maker, f"Key “{key}” made: {', '.join(scopes)}.")
    return key, text


def revoke_project_key(key: ApiKey, actor: User) -> None:
    """Revoke a key of one project, whoever made it."""
    assert key.project is not None
    with transaction.atomic():
        if revoke(key):
            note_change(key.project, actor, f"Key “{key}” revoked.")


def live_keys(project: Project, user: User) -> QuerySet[ApiKey]:
    """Return the valid keys of a project that belong to somebody, also after they have left it."""
    lives = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    keys = ApiKey.objects.filter(lives, project=project, user=user, revoked_at__isnull=True)
    return keys.order_by("created_at", "pk")


def revoke(key: ApiKey) -> bool:
    """Let nobody in by a key any more; only the first time counts, and it says whether this is."""
    live = ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True)
    return bool(live.update(revoked_at=timezone.now()))


# In the order of the model's fields.
_LOADED: Final = ("id", "kind", "name", "prefix", "scopes", "project_id", "user_id")
# Written by hand and planned once: it stands before every request of a script.
_VALID = """
    SELECT secret_sha256, last_used_at IS NULL OR last_used_at < %s,
           id, name, scopes, project_id, user_id
    FROM voting_apikey
    WHERE prefix = %s AND kind = %s AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > %s)
      AND (user_id IS NULL OR EXISTS (SELECT 1 FROM auth_user WHERE id = user_id AND is_active))
"""


def find_key(token: str, *kinds: str) -> ApiKey | None:
    """Return the valid key of one of these kinds behind a token, None for anything else."""
    shape = _SHAPE.fullmatch(token)
    if shape is None or shape[1] not in kinds:
        return None
    kind, prefix, secret = shape.groups()
    now = timezone.now()
    adapt = connection.ops.adapt_datetimefield_value
    with prepared() as cursor:
        cursor.execute(_VALID, [adapt(now - USE_NOTED_EVERY), prefix, kind, adapt(now)])
        row = cursor.fetchone()
    if row is None:
        return None
    stored_hash, is_use_due, pk, name, scopes, project, user = row
    if not secrets.compare_digest(stored_hash, sha256(secret.encode()).hexdigest()):
        return None
    if is_use_due:
        ApiKey.objects.filter(pk=pk).update(last_used_at=now)
    values = (pk, kind, name, prefix, json.loads(scopes), project and UUID(str(project)), user)
    return ApiKey.from_db(connection.alias, _LOADED, values)

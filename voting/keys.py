"""API keys: made once, kept as a hash, checked in constant time."""

import json
import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from django.db import connection
from django.utils import timezone

from voting.ledger.bulk_sql import prepared
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


# Written by hand and planned once: it stands before every request of a script.
_VALID = """
    SELECT secret_sha256, id, name, scopes, project_id FROM voting_apikey
    WHERE prefix = %s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %s)
"""


def find_key(token: str) -> ApiKey | None:
    """Return the valid key behind a token, None for anything else."""
    mark, _, rest = token.partition("_")
    prefix, _, secret = rest.partition("_")
    if mark != _MARK or not secret or not token.isprintable():
        return None
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    with prepared() as cursor:
        cursor.execute(_VALID, [prefix, now])
        row = cursor.fetchone()
    if row is None:
        return None
    kept, pk, name, scopes, project = row
    if not secrets.compare_digest(kept, sha256(secret.encode()).hexdigest()):
        return None
    values = (pk, name, prefix, json.loads(scopes), project and UUID(str(project)))
    return ApiKey.from_db(
        connection.alias, ("id", "name", "prefix", "scopes", "project_id"), values
    )

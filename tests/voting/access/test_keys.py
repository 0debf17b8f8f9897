"""API keys: shown once, kept as a hash, refused in every other form."""

from datetime import timedelta
from hashlib import sha256

import pytest
from django.utils import timezone

from tests.makers import make_key, make_project
from voting.access.keys import find_key
from voting.models import ApiKey

pytestmark = pytest.mark.django_db


def test_a_key_is_found_by_its_text():
    row, token = make_key("read", "vote", project=make_project())
    found = find_key(token, "hj")
    assert found == row
    assert (found.prefix, found.scopes) == (row.prefix, ["read", "vote"])


def test_only_the_hash_of_the_secret_is_kept():
    row, token = make_key("read")
    row.refresh_from_db()
    secret = token.split("_", 2)[2]
    kept = [str(getattr(row, field.attname)) for field in row._meta.concrete_fields]
    assert not any(secret in text for text in kept)
    assert row.secret_sha256 == sha256(secret.encode()).hexdigest()


def test_keys_are_long_and_differ():
    tokens = {make_key("read")[1] for _ in range(5)}
    assert len(tokens) == 5
    assert all(len(token.split("_", 2)[2]) >= 43 for token in tokens)


def test_every_other_text_is_no_key():
    _, token = make_key("read")
    mark, prefix, secret = token.split("_", 2)
    _, other = make_key("read")
    wrong = [
        "",
        "hj",
        "hj__",
        mark,
        f"{mark}_{prefix}",
        f"{mark}_{prefix}_",
        f"{mark}_{prefix}_{secret}x",
        f"{mark}_{prefix}_{secret[:-1]}",
        f"{mark}_{prefix}_{other.split('_', 2)[2]}",
        f"{mark}_{'0' * 8}_{secret}",
        f"xx_{prefix}_{secret}",
        f"{prefix}_{secret}",
        token.upper(),
        f" {token}",
        f"{mark}_\x00_{secret}",
        f"{mark}_é_{secret}",
    ]
    assert [find_key(text, "hj") for text in wrong] == [None] * len(wrong)


def test_a_revoked_key_is_none():
    row, token = make_key("read")
    ApiKey.objects.filter(pk=row.pk).update(revoked_at=timezone.now())
    assert find_key(token, "hj") is None


def test_an_expired_key_is_none():
    now = timezone.now()
    _, valid = make_key("read", expires_at=now + timedelta(hours=1))
    _, expired = make_key("read", expires_at=now - timedelta(seconds=1))
    assert find_key(valid, "hj") is not None
    assert find_key(expired, "hj") is None

"""A voter's identity in the browser: one signed cookie per project."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from voting.models import Voter

Response = TypeVar("Response", bound=HttpResponseBase)

_SALT = "voting.voter"
_LIFE = timedelta(days=180)


def _cookie(project_id: UUID) -> str:
    return f"voter-{project_id.hex[:12]}"


def voter_id_here(request: HttpRequest, project_id: UUID) -> UUID | None:
    """Return who votes in this browser, from the cookie alone."""
    value = request.get_signed_cookie(_cookie(project_id), default="", salt=_SALT, max_age=_LIFE)
    return UUID(hex=value) if value else None


def voter_known_here(request: HttpRequest, project_id: UUID) -> Voter | None:
    """Return whose cookie this browser has, even when that voter was blocked."""
    pk = voter_id_here(request, project_id)
    return Voter.objects.filter(pk=pk, project_id=project_id).first() if pk else None


def voter_here(request: HttpRequest, project_id: UUID) -> Voter | None:
    """Return the voter of this browser, None when unknown or blocked."""
    voter = voter_known_here(request, project_id)
    return None if voter is None or voter.blocked_at is not None else voter


def remember(response: Response, voter: Voter) -> Response:
    response.set_signed_cookie(
        _cookie(voter.project_id),
        voter.pk.hex,
        salt=_SALT,
        max_age=_LIFE,
        httponly=True,
        samesite="Lax",
        secure=settings.HTTPS,
    )
    return response

"""`/healthz`: what a probe needs to know, in one small JSON."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from humanjudge.celery import app
from voting.selectors import oldest_unsealed

# Older than this, votes are no longer being sealed: workers or broker are down.
LAGGING_SECONDS = 60


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    health: dict[str, Any] = {"database": "ok", "broker": "ok", "oldest_unsealed_seconds": 0}
    try:
        oldest = oldest_unsealed()
    except DatabaseError:
        health["database"] = "unreachable"
    else:
        if oldest is not None:
            age = (timezone.now() - oldest).total_seconds()
            health["oldest_unsealed_seconds"] = round(max(age, 0), 3)
    if not _broker_answers():
        health["broker"] = "unreachable"
    lagging = health["oldest_unsealed_seconds"] > LAGGING_SECONDS
    healthy = health["database"] == health["broker"] == "ok" and not lagging
    health["status"] = "ok" if healthy else "degraded"
    return JsonResponse(health, status=200 if healthy else 503)


def _broker_answers() -> bool:
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=1)
            broker.default_channel.client.ping()  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001  whatever the broker's client raises means no
        return False
    return True

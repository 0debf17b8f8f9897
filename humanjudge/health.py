"""`/healthz`: what a probe needs to know, in one small JSON."""

from django.contrib.sessions.models import Session
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from humanjudge.celery import BEAT, who_is_alive
from voting.selectors import oldest_unsealed

# Older than this, votes are no longer being sealed: workers or broker are down.
LAGGING_SECONDS = 60
# By what they say they are alive for.
PROCESSES = {"sealing_worker": "votes", "judging_worker": "judging", "beat": BEAT}
# Too short for the key of any session.
_ROW = "healthz"


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    health = {"web": "ok", "database": "ok", **_broker_and_processes()}
    unsealed = 0.0
    try:
        oldest = oldest_unsealed()
    except DatabaseError:
        health["database"] = "unreachable"
    else:
        if oldest is not None:
            unsealed = max((timezone.now() - oldest).total_seconds(), 0.0)
        health["database"] = "ok" if _database_writes() else "not writable"
    healthy = set(health.values()) == {"ok"} and unsealed <= LAGGING_SECONDS
    status = "ok" if healthy else "degraded"
    body = {"status": status, **health, "oldest_unsealed_seconds": round(unsealed, 3)}
    response = JsonResponse(body, status=200 if healthy else 503)
    # Who asks has the answer; Django would log each 503 as an error of this server.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def _broker_and_processes() -> dict[str, str]:
    alive = who_is_alive(PROCESSES.values())
    if alive is None:
        return {"broker": "unreachable", **dict.fromkeys(PROCESSES, "unknown")}
    said = ("ok" if each else "missing" for each in alive)
    return {"broker": "ok", **dict(zip(PROCESSES, said, strict=True))}


def _database_writes() -> bool:
    """Write a row that nobody reads: a locked, full or read-only database still answers reads."""
    row = Session(session_key=_ROW, expire_date=timezone.now())
    is_sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        if is_sqlite:  # a probe does not wait as long as a vote does
            cursor.execute("PRAGMA busy_timeout = 1000")
        try:
            if not Session.objects.filter(pk=_ROW).update(expire_date=row.expire_date):
                Session.objects.bulk_create([row], ignore_conflicts=True)
        except DatabaseError:
            return False
        finally:
            if is_sqlite:
                seconds = connection.settings_dict["OPTIONS"]["timeout"]
                cursor.execute(f"PRAGMA busy_timeout = {seconds * 1000}")
    return True

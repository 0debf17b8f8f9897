"""`/healthz`: what a probe needs to know, in one small JSON; `/metrics`: numbers to be watched."""

import hmac
from collections.abc import Iterator

from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from humanjudge.celery import BEAT, BROKER_FAILED, broker, who_is_alive
from humanjudge.server.launcher.programs import QUEUES_OF_VOTES, QUEUES_OF_WORK
from humanjudge.server.metrics import Sample, prometheus_text, sample, stored_samples
from voting.ballot.queries import number_unsealed, oldest_unsealed

# Older than this, votes are no longer being sealed: workers or broker are down.
LAGGING_SECONDS = 60
# By what they say they are alive for.
PROCESSES = {"sealing_worker": "votes", "judging_worker": "judging", "beat": BEAT}
# Too short for the key of any session.
_ROW = "healthz"


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    health = {"web": "ok", "database": "ok", **_broker_and_processes()}
    waited = 0.0
    try:
        waited = seconds_unsealed()
    except DatabaseError:
        health["database"] = "unreachable"
    else:
        health["database"] = "ok" if _database_writes() else "not writable"
    healthy = set(health.values()) == {"ok"} and waited <= LAGGING_SECONDS
    status = "ok" if healthy else "degraded"
    body = {"status": status, **health, "oldest_unsealed_seconds": round(waited, 3)}
    response = JsonResponse(body, status=200 if healthy else 503)
    # Who asks has the answer; Django would log each 503 as an error of this server.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def seconds_unsealed() -> float:
    oldest = oldest_unsealed()
    return max((timezone.now() - oldest).total_seconds(), 0.0) if oldest else 0.0


def _broker_and_processes() -> dict[str, str]:
    alive = who_is_alive(PROCESSES.values())
    if alive is None:
        return {"broker": "unreachable", **dict.fromkeys(PROCESSES, "unknown")}
    states = ("ok" if is_alive else "missing" for is_alive in alive)
    return {"broker": "ok", **dict(zip(PROCESSES, states, strict=True))}


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


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read(request):
        raise PermissionDenied("Send METRICS_TOKEN as `Authorization: Bearer …`.")
    return HttpResponse(
        prometheus_text([*_broker_samples(), *_database_samples()]),
        content_type="text/plain; version=0.0.4; charset=utf-8",
    )


def _may_read(request: HttpRequest) -> bool:
    if token := settings.METRICS_TOKEN:
        header = request.headers.get("Authorization", "")
        return hmac.compare_digest(header.encode(), f"Bearer {token}".encode())
    # What a proxy of this machine hands on comes from elsewhere.
    is_handed_on = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    return request.META["REMOTE_ADDR"] in ("127.0.0.1", "::1", "[::1]") and not is_handed_on


def _broker_samples() -> Iterator[Sample]:
    """Yield nothing where it is away: a number that is missing is an alarm, a wrong one is not."""
    queues = [*QUEUES_OF_VOTES.split(","), *QUEUES_OF_WORK.split(",")]
    try:
        yield from stored_samples()
        with broker() as client:
            for queue in queues:
                yield sample("humanjudge_queue_length", queue=queue), client.llen(queue)
    except BROKER_FAILED:
        return
    for name, is_alive in zip(PROCESSES, who_is_alive(PROCESSES.values()) or (), strict=False):
        yield sample("humanjudge_alive", process=name), is_alive


def _database_samples() -> Iterator[Sample]:
    try:
        number, waited = number_unsealed(), seconds_unsealed()
    except DatabaseError:
        return
    yield "humanjudge_entries_unsealed", number
    yield "humanjudge_oldest_unsealed_seconds", waited

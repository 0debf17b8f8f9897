"""What happened to a run: as JSON by cursor, or as a stream that stays open for a while."""

import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from time import monotonic, sleep
from typing import Annotated, Any
from uuid import UUID

from django.db import DatabaseError, connection
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from ninja import Field, Header, Schema

from humanjudge.core.http import problem
from humanjudge.core.strict_json import JsonObject
from judge_eval.models import RunEvent
from judge_eval.runs.api_access import KeyRouter, Prefix, Problem, key_of, run_of
from voting.models import ApiKey

MOST_EVENTS = 1000
STREAM = "text/event-stream"
STREAM_SECONDS = 25.0
LOOK_SECONDS = 1.0
# A listener who hung up is found out by it.
BEAT_SECONDS = 3.0
RETRY_SECONDS = 5
# An event may be committed after one with a larger number; a moment later they are in order.
SETTLED = timedelta(seconds=0.5)

router = KeyRouter("runs")


class EventOut(Schema):
    id: int
    at: datetime
    kind: str
    text: str
    data: JsonObject


class Events(Schema):
    events: list[EventOut]
    next_cursor: int


STREAMED = {"responses": {200: {"content": {STREAM: {"schema": {"type": "string"}}}}}}
LastEvent = Annotated[
    str,
    Header(
        alias="Last-Event-ID",
        pattern="^[0-9]{0,18}$",
        description="The number of an event: instead of `cursor`, by a stream that goes on.",
    ),
]

# A stream keeps a web thread, and a process has few: whoever comes second is told to poll.
_streaming = threading.Lock()


@router.get("/{run_id}/events", response={200: Events, 429: Problem}, openapi_extra=STREAMED)
def events(
    request: HttpRequest,
    run_id: Prefix,
    cursor: int = 0,
    limit: Annotated[int, Field(ge=1, le=MOST_EVENTS)] = 100,
    last: LastEvent = "",
) -> Any:
    """What happened to a run after `cursor`, oldest first; ask again with `next_cursor`.

    With `Accept: text/event-stream` the events come as they happen, for 25 seconds; then ask
    again with `Last-Event-ID`. A server has few such streams: 429 means to poll instead.
    """
    run = run_of(key_of(request, ApiKey.Scope.READ), run_id)
    cursor = int(last or cursor)
    if STREAM not in request.headers.get("Accept", ""):
        batch = _events_after(run.pk, cursor, limit)
        return {"events": batch, "next_cursor": batch[-1].pk if batch else cursor}
    if not _streaming.acquire(blocking=False):
        detail = "somebody listens to this server already; ask without text/event-stream instead"
        refused = problem(request, 429, detail, retry_after=RETRY_SECONDS)
        # Whoever waits asks again and again: nothing that the log need know.
        refused._has_been_logged = True  # type: ignore[attr-defined]
        return refused
    headers = {"Cache-Control": "no-store"}
    return EventStream(_texts(run.pk, cursor), content_type=STREAM, headers=headers)


def _events_after(run: UUID, cursor: int, limit: int) -> list[RunEvent]:
    settled = RunEvent.objects.filter(run=run, pk__gt=cursor, at__lte=timezone.now() - SETTLED)
    return list(settled.order_by("pk")[:limit])


class EventStream(StreamingHttpResponse):
    """Whatever becomes of its listener, the server closes it, and the place is given back once."""

    def close(self) -> None:
        if not self.closed:
            _streaming.release()
        super().close()


def _texts(run: UUID, cursor: int) -> Iterator[str]:
    now = monotonic()
    end, beat = now + STREAM_SECONDS, now + BEAT_SECONDS
    # Named first, so that a listener whose stream ends goes on soon.
    yield f"retry: {1000 * RETRY_SECONDS}\n\n"
    while now < end:
        try:
            batch = _events_after(run, cursor, MOST_EVENTS)
        except DatabaseError:
            return  # the listener asks again, and is told what is wrong then
        # Not while sleeping: it goes back to the pool, for those who have something to do.
        connection.close()
        for event in batch:
            cursor = event.pk
            data = json.dumps(EventOut.from_orm(event).model_dump(mode="json"))
            yield f"id: {event.pk}\nevent: {event.kind}\ndata: {data}\n\n"
        if not batch and now >= beat:
            yield ": still here\n\n"
        if batch or now >= beat:
            beat = now + BEAT_SECONDS
        sleep(min(LOOK_SECONDS, end - now))
        now = monotonic()

"""Deliveries on their way: signed, sent to an address that was checked, and tried again.

A webhook is leased while a worker sends to it, so that its deliveries leave one after another and
a host that does not answer holds up one thread at most. Whoever receives may get a delivery twice,
where a worker is lost between its answer and the row: its number is the same then.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Iterable
from datetime import timedelta
from http.client import HTTPException
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.core import leases
from judge_eval.judging.providers.transport import Connection, trust
from reports.models import Delivery, Webhook
from reports.webhooks.addresses import AddressRefused, Target, checked, target_of
from reports.webhooks.services import secret_of

SECONDS: Final = 10.0
# How long a webhook is sent to at a stretch, and leased for.
STRETCH: Final = 30.0
LEASE: Final = timedelta(seconds=60)
# Minutes until the next try, after each that failed; then it is given up.
WAITS: Final = (1, 2, 5, 15, 30, 60, 180, 360, 720)
ANSWER_KEPT: Final = 200


class PostOutcome(NamedTuple):
    """What came of one try: the status and beginning of an answer, or what failed."""

    status: int | None
    answer: str

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def signature(secret: str, sent_at: int, body: bytes) -> str:
    """Return the header that says who has sent a body, and when.

    Examples
    --------
    >>> signature("whsec_secret", 1700000000, b"{}")[:26]
    't=1700000000,v1=3e08babf35'
    """
    signed = hmac.new(secret.encode(), f"{sent_at}.".encode() + body, hashlib.sha256)
    return f"t={sent_at},v1={signed.hexdigest()}"


class _CheckedConnection(Connection):
    """A connection to none but addresses that webhooks may be sent to."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.host, target.port, trust() if target.is_secure else None)
        self._target = target

    def addresses(self) -> Iterable[str]:
        return checked(self._target, settings.WEBHOOK_ALLOW_PRIVATE)


def post(url: str, body: bytes, headers: dict[str, str]) -> PostOutcome:
    """Send a body and return what came of it; no redirect is followed."""
    try:
        target = target_of(url)
        connection = _CheckedConnection(target)
        connection.ends = time.monotonic() + SECONDS
        try:
            connection.request("POST", target.path, body, headers)
            response = connection.getresponse()
            text = response.read(4 * ANSWER_KEPT).decode(errors="replace")
        finally:
            connection.close()
    except AddressRefused as error:
        return PostOutcome(None, str(error)[:ANSWER_KEPT])
    except TimeoutError:
        return PostOutcome(None, f"No answer within {SECONDS:g} s.")
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        return PostOutcome(None, f"The connection failed: {reason}."[:ANSWER_KEPT])
    if 300 <= response.status < 400:
        return PostOutcome(response.status, "It leads elsewhere, and redirects are not followed.")
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return PostOutcome(response.status, printable[:ANSWER_KEPT])


def deliver(webhook_id: UUID) -> None:
    """Send what is due to a webhook, unless another worker is at it."""
    row = Webhook.objects.filter(pk=webhook_id, is_active=True)
    if not leases.claim(row, LEASE):
        return
    webhook = row.get()
    mine = row.filter(leased_until=webhook.leased_until)
    until = time.monotonic() + STRETCH
    try:
        while time.monotonic() < until:
            next_one = _due_deliveries().filter(webhook=webhook).first()
            if next_one is None or not _try(next_one, webhook):
                break  # what else waits is asked for by the sweep
    finally:
        leases.release(mine)


def _due_deliveries() -> QuerySet[Delivery]:
    waiting = Delivery.objects.filter(state=Delivery.State.WAITING, next_try_at__lte=timezone.now())
    return waiting.order_by("next_try_at", "made_at")


def _try(delivery: Delivery, webhook: Webhook) -> bool:
    body = json.dumps({"id": str(delivery.pk), **delivery.payload}, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "HumanJudge",
        "HumanJudge-Delivery": str(delivery.pk),
        "HumanJudge-Event": delivery.event,
        "HumanJudge-Signature": signature(secret_of(webhook), int(time.time()), body),
    }
    outcome, now = post(webhook.url, body, headers), timezone.now()
    state, ended_at, next_try_at = delivery.state, None, delivery.next_try_at
    if outcome.is_delivered:
        state, ended_at = Delivery.State.DELIVERED, now
    elif delivery.tries < len(WAITS):
        next_try_at = now + timedelta(minutes=WAITS[delivery.tries])
    else:
        state, ended_at = Delivery.State.FAILED, now
    # Where the lease ran out meanwhile, another worker has counted its own try.
    as_read = Delivery.objects.filter(pk=delivery.pk, state=delivery.state, tries=delivery.tries)
    as_read.update(
        tries=delivery.tries + 1,
        status=outcome.status,
        answer=outcome.answer,
        state=state,
        ended_at=ended_at,
        next_try_at=next_try_at,
    )
    return outcome.is_delivered


def ask_again_for_due() -> None:
    """Publish what waits: its task was lost, its worker is gone, or the time of a try has come."""
    waits = Exists(_due_deliveries().filter(webhook=OuterRef("pk")))
    webhooks = Webhook.objects.filter(waits, leases.free(), is_active=True)
    for pk in webhooks.values_list("pk", flat=True):
        enqueue("reports.tasks.deliver", str(pk))

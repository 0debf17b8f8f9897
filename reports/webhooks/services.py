"""Webhooks of a project: made and changed, and what happens in it written down for them.

A delivery is a row, written in the transaction of what it tells. `reports.webhooks.sending` sends
it, as often as it takes.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac

from humanjudge.celery import enqueue
from humanjudge.core.domain_events import Announcement, Data
from reports.models import Delivery, Quality, Webhook
from reports.webhooks.addresses import checked, target_of
from voting.access.changes import note_change
from voting.ballot.tuning import is_tuned
from voting.models import Flag, Project

EVENTS: Final = {
    "run.complete": "A run is complete: every item has enough votes",
    "claim.made": "A judge beats another one or a baseline, or is worse than a baseline",
    "claim.withdrawn": "A claim about judges is withdrawn",
    "judge_drift": "A judge has changed: it is worse or better than when it was first watched",
    "item.flagged": "A voter flags an item",
    "score.crossed": "A quality score crosses a line",
    "head.daily": "The head of the ledger, once a day while the ledger goes on",
}
PING: Final = "ping"
MOST_WEBHOOKS: Final = 20
# What was delivered or given up is shown for so long.
RETENTION: Final = timedelta(days=30)
_TASK: Final = "reports.tasks.deliver"


class TooManyWebhooks(ValueError):
    """A project has as many as it may; the message says how many."""


# --- webhooks -------------------------------------------------------------------------------------


def make_webhook(
    project: Project,
    url: str,
    events: Sequence[str],
    line: float | None,
    origin: str,
    actor: User | None = None,
) -> Webhook:
    """Raises AddressRefused, or TooManyWebhooks."""
    checked(target_of(url), settings.WEBHOOK_ALLOW_PRIVATE)
    if project.webhooks.count() >= MOST_WEBHOOKS:
        raise TooManyWebhooks(f"A project has at most {MOST_WEBHOOKS} webhooks.")
    with transaction.atomic():
        message = f"Webhook made: {_host_of(url)} is told of {', '.join(events)}."
        note_change(project, actor, message)
        return Webhook.objects.create(
            project=project, url=url, events=list(events), line=line, origin=origin
        )


def _host_of(url: str) -> str:
    # The rest of an address may hold a secret of whoever receives.
    return target_of(url).host


def _note(webhook: Webhook, actor: User | None, change: str) -> None:
    note_change(webhook.project, actor, f"Webhook to {_host_of(webhook.url)}: {change}.")


def secret_of(webhook: Webhook) -> str:
    """Return what signs a webhook's deliveries: derived from SECRET_KEY, so it is kept nowhere."""
    number = f"{webhook.pk}:{webhook.secret_number}"
    return f"whsec_{salted_hmac('reports.webhooks', number, algorithm='sha256').hexdigest()}"


def renew_secret(webhook: Webhook, actor: User | None = None) -> str:
    with transaction.atomic():
        webhook.secret_number += 1
        webhook.save(update_fields=["secret_number"])
        _note(webhook, actor, "another secret")
    return secret_of(webhook)


def delete(webhook: Webhook, actor: User | None = None) -> None:
    with transaction.atomic():
        _note(webhook, actor, "deleted")
        webhook.delete()


def turn(webhook: Webhook, *, is_active: bool, actor: User | None = None) -> None:
    """Turn it on or off; what was waiting is sent once it is on again."""
    with transaction.atomic():
        webhook.is_active = is_active
        webhook.save(update_fields=["is_active"])
        _note(webhook, actor, "on" if is_active else "off")
    if is_active:
        enqueue(_TASK, str(webhook.pk))


def ping(webhook: Webhook) -> Delivery:
    """Send something that tells nothing, to see whether it arrives."""
    words = "This is a test: the webhook works."
    page = reverse("webhooks", args=[webhook.project_id])
    test = Announcement(PING, webhook.project_id, f"ping:{uuid4()}", words, page)
    return _write(test, [webhook], webhook.project)[0]


def send_again(delivery: Delivery) -> None:
    """Begin the tries anew, of what was delivered or given up."""
    Delivery.objects.filter(pk=delivery.pk).update(
        state=Delivery.State.WAITING, tries=0, next_try_at=timezone.now(), ended_at=None
    )
    enqueue(_TASK, str(delivery.webhook_id))


# --- what happens ---------------------------------------------------------------------------------


def announce(happened: Iterable[Announcement]) -> None:
    """Write deliveries to the webhooks that listen; what was told before is not told again."""
    for announcement in happened:
        project = announcement.project
        if announcement.ends:
            earlier = Delivery.objects.filter(webhook__project=project, key=announcement.ends)
            earlier.update(key=f"ended:{uuid4()}")
        if listening := list(listeners(announcement.event, project)):
            _write(announcement, listening, listening[0].project)


def listeners(event: str, project: UUID | None = None) -> Iterator[Webhook]:
    active = Webhook.objects.filter(is_active=True).select_related("project")
    # There are few, and not every database can look into a list.
    for webhook in active if project is None else active.filter(project=project):
        if event in webhook.events:
            yield webhook


def _write(happened: Announcement, webhooks: Sequence[Webhook], project: Project) -> list[Delivery]:
    now = timezone.now()
    with transaction.atomic():
        deliveries = Delivery.objects.bulk_create(
            [
                Delivery(
                    webhook=webhook,
                    event=happened.event,
                    key=happened.key,
                    made_at=now,
                    payload={
                        "event": happened.event,
                        "at": now.isoformat(timespec="seconds"),
                        "project": {"id": str(project.pk), "name": project.name},
                        "text": happened.text,
                        "link": webhook.origin + happened.page,
                        "data": happened.data,
                    },
                )
                for webhook in webhooks
            ],
            ignore_conflicts=True,
        )
        for webhook in webhooks:
            enqueue(_TASK, str(webhook.pk))
    return deliveries


def flagged(flag: Flag) -> None:
    """Tell of a voter's flag: its category, and neither its comment nor who it is of."""
    item = flag.item
    announce(
        [
            Announcement(
                "item.flagged",
                item.queue.project_id,
                f"item.flagged:{flag.pk}",
                f"Item {item.position + 1} of {item.queue.name} was flagged: {flag.category}.",
                reverse("review-item", args=[item.pk]),
                {"item": str(item.pk), "queue": item.queue.name, "category": flag.category},
            )
        ]
    )


def score_changed(quality: Quality, before: float, seq: int) -> None:
    """Tell webhooks whose line lies between a project's score and what it was before.

    Not while judges are tuned: it would tell what was voted on the half held out.
    """
    if is_tuned(quality.project_id):
        return
    now = quality.score
    for webhook in listeners("score.crossed", quality.project_id):
        if webhook.line is None or (before < webhook.line) == (now < webhook.line):
            continue
        way = "fell below" if now < webhook.line else "rose to or above"
        words = f"The quality of {quality.series} {way} {webhook.line:.0%}: it is {now:.1%}."
        data: Data = {
            "series": quality.series,
            "score": now,
            "before": before,
            "line": webhook.line,
            "votes": quality.votes,
            "seq": seq,
        }
        page = reverse("project-quality", args=[quality.project_id])
        # Who writes the score holds the project: it crosses the line once, and may come back.
        key = f"score.crossed:{uuid4()}"
        announcement = Announcement("score.crossed", quality.project_id, key, words, page, data)
        _write(announcement, [webhook], webhook.project)


def forget_old() -> None:
    """Delete what was delivered or given up long ago."""
    over = Delivery.objects.exclude(state=Delivery.State.WAITING)
    over.filter(made_at__lt=timezone.now() - RETENTION).delete()

"""What happens in a project is told to its webhooks: signed, once, and again until it arrives."""

import hashlib
import hmac
import json
import re
import socket
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from humanjudge.core.domain_events import Announcement, announce
from judge_eval.models import Findings
from judge_eval.runs import state
from reports.models import Delivery, Quality, Webhook
from reports.webhooks import addresses, sending, services
from reports.webhooks.heads import publish_heads
from tests.helpers.concurrent_calls import together
from tests.helpers.receiver import Receiver
from tests.helpers.run_findings import compute, voted_run
from tests.makers import (
    make_passes,
    make_project,
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.services import flag

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def receiver(settings):
    settings.WEBHOOK_ALLOW_PRIVATE = ["127.0.0.0/8"]
    with Receiver() as running:
        yield running


def make_webhook(project, receiver, *events, line=None):
    events = events or ("item.flagged",)
    origin = "https://judge.example.org"
    return services.make_webhook(project, receiver.url, events, line, origin)


def told(project, key="key"):
    announce(Announcement("item.flagged", project.pk, key, "Flagged.", "/review/"))


def send_all():
    Webhook.objects.update(leased_until=None)
    for webhook in Webhook.objects.all():
        sending.deliver(webhook.pk)


def events(project):
    sent = Delivery.objects.filter(webhook__project=project).order_by("made_at")
    return list(sent.values_list("event", flat=True))


# --- sending --------------------------------------------------------------------------------------


def snippet():
    """Return the function of the documentation that verifies a signature."""
    text = (Path(settings.BASE_DIR) / "docs/webhooks.md").read_text()
    [code] = re.findall(r"```python\n(.+?)```", text, re.DOTALL)
    namespace = {}
    exec(code, namespace)
    return namespace["is_genuine"]


def test_a_delivery_is_signed_as_the_documentation_verifies(receiver):
    webhook = make_webhook(make_project(), receiver)
    told(webhook.project)
    sending.deliver(webhook.pk)
    [(headers, body)] = receiver.came
    delivery = Delivery.objects.get()
    assert delivery.state == "delivered"
    assert headers["HumanJudge-Delivery"] == json.loads(body)["id"] == str(delivery.pk)
    assert json.loads(body)["link"] == "https://judge.example.org/review/"
    signed, secret = headers["HumanJudge-Signature"], services.secret_of(webhook)
    at, given = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", signed).groups()
    expected = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert given == expected
    is_genuine = snippet()
    assert is_genuine(secret, signed, body)
    assert not is_genuine(secret, signed, body + b" ")
    assert not is_genuine(services.renew_secret(webhook), signed, body)
    assert not is_genuine(secret, signed.replace(at, str(int(at) - 3600)), body)


@pytest.mark.parametrize(
    "mode, status, answer",
    [
        ("error", 500, "it broke  here xxx"),
        ("late", 500, '{"it": "broke"}'),
        ("redirect", 302, "redirects are not followed"),
        ("disconnect", None, "The connection failed"),
        ("slow", None, "No answer within 0.2 s."),
    ],
)
def test_what_does_not_arrive_is_tried_again(receiver, mode, status, answer, monkeypatch):
    monkeypatch.setattr(sending, "SECONDS", 0.2)
    webhook = make_webhook(make_project(), receiver)
    receiver.mode = mode
    told(webhook.project)
    sending.deliver(webhook.pk)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.tries, delivery.status) == ("waiting", 1, status)
    assert answer in delivery.answer
    assert len(delivery.answer) <= 200
    minute = delivery.next_try_at - timezone.now()
    assert timedelta(seconds=50) < minute <= timedelta(minutes=1)
    sending.deliver(webhook.pk)
    assert len(receiver.came) == 1
    receiver.mode = "ok"
    Delivery.objects.update(next_try_at=timezone.now())
    sending.deliver(webhook.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("delivered", 2)
    assert len({headers["HumanJudge-Delivery"] for headers, _ in receiver.came}) == 1


def test_after_ten_tries_it_is_given_up_and_can_be_sent_again(receiver):
    webhook = make_webhook(make_project(), receiver)
    receiver.mode = "error"
    told(webhook.project)
    waits = []
    for _ in range(12):
        before = timezone.now()
        sending.deliver(webhook.pk)
        waits.append(round((Delivery.objects.get().next_try_at - before).total_seconds() / 60))
        Delivery.objects.update(next_try_at=before)
    assert waits[:9] == [1, 2, 5, 15, 30, 60, 180, 360, 720]
    delivery = Delivery.objects.get()
    assert (len(receiver.came), delivery.tries, delivery.state) == (10, 10, "failed")
    receiver.mode = "ok"
    services.send_again(delivery)
    sending.deliver(webhook.pk)
    assert Delivery.objects.get().state == "delivered"


def test_two_workers_send_once(receiver, monkeypatch):
    webhook = make_webhook(make_project(), receiver)
    receiver.mode = "slow"
    for key in ("one", "two"):
        told(webhook.project, key)
    together(*[partial(sending.deliver, webhook.pk)] * 4)
    assert len(receiver.came) == 2
    assert {*Delivery.objects.values_list("state", "tries")} == {("delivered", 1)}


def test_what_a_lost_worker_was_at_is_asked_for_again(receiver, monkeypatch):
    published = []
    monkeypatch.setattr(sending, "enqueue", lambda task, pk: published.append(pk))
    webhook = make_webhook(make_project(), receiver)
    told(webhook.project)
    Webhook.objects.update(leased_until=timezone.now() + timedelta(seconds=60))
    sending.ask_again_for_due()
    assert published == []
    Webhook.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    sending.ask_again_for_due()
    assert published == [str(webhook.pk)]


def test_a_name_that_leads_inside_at_the_time_of_sending_gets_nothing(
    receiver, settings, monkeypatch
):
    webhook = make_webhook(make_project(), receiver)
    Webhook.objects.update(url=f"http://rebound.example.org:{receiver.server_port}/")
    settings.WEBHOOK_ALLOW_PRIVATE = []
    inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
    monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *args, **kwargs: inside)
    told(webhook.project)
    sending.deliver(webhook.pk)
    assert "leads to 127.0.0.1, which is a loopback address" in Delivery.objects.get().answer
    assert receiver.came == []


def test_the_connection_is_made_to_the_address_that_was_checked(receiver, settings, monkeypatch):
    """A name that leads elsewhere at the second look-up is not looked up a second time."""
    real, asked = socket.getaddrinfo, []

    def rebinding(host, port, *args, **kwargs):
        if host != "rebound.example.org":
            return real(host, port, *args, **kwargs)
        asked.append(host)
        leads_to = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (leads_to, port))]

    settings.WEBHOOK_ALLOW_PRIVATE = ["127.0.0.1/32"]
    webhook = make_webhook(make_project(), receiver)
    Webhook.objects.update(url=f"http://rebound.example.org:{receiver.server_port}/")
    monkeypatch.setattr(addresses.socket, "getaddrinfo", rebinding)
    told(webhook.project)
    sending.deliver(webhook.pk)
    assert Delivery.objects.get().state == "delivered"
    assert asked == ["rebound.example.org"]
    assert receiver.came[0][0]["Host"] == f"rebound.example.org:{receiver.server_port}"


# --- what is told ---------------------------------------------------------------------------------


def test_what_is_rolled_back_is_not_told_and_what_was_told_is_not_told_again(receiver):
    webhook = make_webhook(make_project(), receiver)
    with transaction.atomic():
        told(webhook.project)
        transaction.set_rollback(True)
    assert events(webhook.project) == []
    together(*[partial(told, webhook.project)] * 4)
    assert events(webhook.project) == ["item.flagged"]
    told(make_project("Another"), "other")
    services.turn(webhook, is_active=False)
    told(webhook.project, "while it is off")
    assert events(webhook.project) == ["item.flagged"]


def test_a_run_that_is_complete_is_told_each_time_it_becomes_so(receiver):
    run = make_run(pairs=1)
    webhook = make_webhook(run.queue.project, receiver, "run.complete")
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    state.complete_voted_runs([run.pk])
    state.complete_voted_runs([run.pk])
    sending.deliver(webhook.pk)
    [(_, body)] = receiver.came
    assert json.loads(body)["text"] == "A run of pairs is complete."
    assert json.loads(body)["data"] == {"run": str(run.pk), "name": run.name, "votes": 1}


def test_a_flag_is_told_without_its_comment_or_who_it_is_of(receiver):
    run = make_run(pairs=1)
    make_webhook(run.queue.project, receiver)
    voter = make_voter(run, name="Ada Voter")
    for comment in ("a private comment", "another private comment"):
        flag(voter, pairs_of(run)[0].pk, "unsafe", comment)
    [delivery] = Delivery.objects.all()
    said = json.dumps(delivery.payload)
    assert "unsafe" in said
    assert not any(word in said for word in ("private", "Ada", voter.pseudonym, "Answer"))


def test_claims_are_told_when_they_are_made_and_withdrawn_and_once(receiver):
    run = voted_run(computed=False)
    make_webhook(run.queue.project, receiver, "claim.made", "claim.withdrawn")
    compute(run)
    made = Delivery.objects.values_list("payload__text", flat=True)
    first = set(made)
    assert "A run of pairs: near-judge beats contrary-judge" in " ".join(first)
    compute(run)
    Findings.objects.all().delete()
    compute(run)
    assert (set(made), len(made)) == (first, len(first))
    row = Findings.objects.get()
    size = len(row.data["judges"])
    row.data["claims"]["beats"] = [[one != other for one in range(size)] for other in range(size)]
    row.save()
    compute(run)
    withdrawn = made.filter(event="claim.withdrawn")
    assert "it is no longer claimed that contrary-judge beats near-judge." in " ".join(withdrawn)
    assert "no longer claimed that near-judge is worse than floor-baseline." in " ".join(withdrawn)


def test_what_was_withdrawn_and_is_made_again_is_told_again(receiver):
    project = make_project()
    make_webhook(project, receiver, "claim.made")
    made = Announcement("claim.made", project.pk, "made:7", "It beats.", "/")
    ended = Announcement("claim.withdrawn", project.pk, "ended:9", "No.", "/", ends="made:7")
    for happened in (made, made, ended, made, made):
        announce(happened)
    assert events(project) == ["claim.made"] * 2


def test_a_score_is_told_when_it_crosses_the_line(receiver):
    run = make_single_run(outputs=["One"])
    project = run.queue.project
    make_webhook(project, receiver, "score.crossed", line=0.5)
    make_passes(run, [("One", 1.0)])
    assert events(project) == []  # there was no score before
    before = Quality.objects.get().score
    # Each a day apart: in one moment, the weights of batches hang on how busy the machine is.
    later = [timezone.now() + timedelta(days=days) for days in (1, 2)]
    make_passes(run, [(f"Bad {n}", 0.0) for n in range(40)], at=later[0])
    [delivery] = Delivery.objects.all()
    assert before > 0.5 > delivery.payload["data"]["score"]
    assert "The quality of items fell below 50%" in delivery.payload["text"]
    make_passes(run, [(f"Good {n}", 1.0) for n in range(60)], at=later[1])
    [_, risen] = Delivery.objects.order_by("made_at")
    assert "The quality of items rose to or above 50%" in risen.payload["text"]


def test_the_head_is_told_daily_without_mail_or_log(receiver):
    now = timezone.now()
    project, other = make_run().queue.project, make_run().queue.project
    webhook = make_webhook(project, receiver, "head.daily")
    for hours in (0, 1, 30):
        publish_heads(now + timedelta(hours=hours))
    sending.deliver(webhook.pk)
    [(_, body)] = receiver.came
    assert json.loads(body)["data"] == {"seq": project.head_seq, "hash": project.ledger_head}
    assert project.published_heads.get().at == now
    assert not other.published_heads.exists()

"""Heads of ledgers are told once a day, to the log and by mail, and reports say since when."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from reports.models import PublishedHead
from reports.report.make import report_of
from reports.webhooks.heads import publish_heads
from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def told(settings, caplog):
    settings.LEDGER_HEADS_TO = ["log", "auditor@example.org"]
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_head_is_told_once_a_day_while_the_ledger_goes_on(told):
    run = make_run(pairs=3)
    project = run.queue.project
    first = f"ends with entry {project.head_seq}, whose hash is {project.ledger_head}."
    publish_heads(NOW)
    publish_heads(NOW + timedelta(days=2))
    assert [message.body.endswith(first) for message in mail.outbox] == [True]
    assert mail.outbox[0].to == ["auditor@example.org"]
    assert len(told()) == 1
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(project)
    publish_heads(NOW + timedelta(hours=23))
    assert len(mail.outbox) == 1
    publish_heads(NOW + timedelta(hours=25))
    assert len(mail.outbox) == len(told()) == 2
    assert project.ledger_head in mail.outbox[1].body


def test_nothing_is_told_where_nobody_wants_it(settings):
    make_run()
    publish_heads(NOW)
    assert not PublishedHead.objects.exists()
    assert not mail.outbox


def test_a_head_that_could_not_be_sent_is_told_later(told, settings, monkeypatch):
    make_run()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    with pytest.raises(ConnectionRefusedError):
        publish_heads(NOW)
    assert not PublishedHead.objects.exists()
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    publish_heads(NOW)
    assert PublishedHead.objects.count() == 1


def test_a_report_says_since_when(told):
    project = make_run().queue.project
    assert report_of(project, None).head.told_since is None
    publish_heads(NOW)
    assert report_of(project, None).head.told_since == NOW

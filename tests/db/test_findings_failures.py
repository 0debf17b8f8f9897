"""Figures that cannot be computed: the pages say so and why, and never that no worker runs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.findings import cache
from judge_eval.models import Findings
from reports.report.links import make_share
from tests.helpers.pages import HTMX, text_of
from tests.helpers.run_findings import compute, voted_run
from tests.makers import key_client, make_key, user_client
from voting.models import Entry

pytestmark = pytest.mark.django_db

FAILED = "The figures could not be computed: an unexpected error occurred (KeyError)"
NO_WORKER = "No worker has started on them yet."


def broken_run():
    """A run whose ledger holds one entry that nothing can be computed of."""
    run = voted_run(people=1, pairs=4, computed=False)
    last = Entry.objects.filter(kind="verdicts").order_by("seq").last()
    Entry.objects.filter(pk=last.pk).update(payload={"verdicts": last.payload["verdicts"]})
    return run


def fail(run, times, part=""):
    Findings.objects.get_or_create(run=run, part=part)
    for _ in range(times):
        Findings.objects.update(not_before=timezone.now())
        with pytest.raises(KeyError):
            cache.compute(run.pk, part)


def page(run, tab="", client=None):
    return (client or user_client()).get(f"/runs/{run.pk}/{tab}")


def test_after_three_attempts_every_page_says_why():
    run, client = broken_run(), user_client()
    fail(run, 2)
    assert "computed in the background" in text_of(page(run, "models/", client))
    fail(run, 1)
    for tab in ("", "models/", "alt-test/"):
        text = text_of(page(run, tab, client))
        assert FAILED in text
        assert not [
            words for words in ("Traceback", "being computed", "worker runs") if words in text
        ]


def test_a_page_that_is_open_shows_it_when_it_happens():
    run, client = broken_run(), user_client()
    fail(run, 2)
    seen = page(run, "", client).context["seen"]
    fail(run, 1)
    live = client.get(f"/runs/{run.pk}/?seen={seen}", headers=HTMX)
    assert FAILED in text_of(live)


def test_the_api_the_files_and_the_report_say_why():
    run = broken_run()
    fail(run, 3)
    _, token = make_share(run.queue.project, run, None)
    for answer in (
        page(run, "tables/board.csv"),
        key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/findings"),
        key_client(make_key("read")[1]).get(f"/r/{token}/"),
    ):
        assert answer.status_code == 409
        assert FAILED in text_of(answer)


def test_older_figures_stay_and_the_page_says_that_newer_ones_failed():
    run = voted_run(people=1, pairs=4)
    last = Entry.objects.filter(kind="verdicts").order_by("seq").last()
    Entry.objects.filter(pk=last.pk).update(payload={"verdicts": last.payload["verdicts"]})
    Findings.objects.update(seq=1)
    fail(run, 3)
    text = text_of(page(run))
    assert "As of 4 votes" in text
    assert FAILED in text
    assert "follow within seconds" not in text


def test_it_is_tried_again_soon_and_after_three_attempts_less_often():
    run = broken_run()
    fail(run, 1)
    assert Findings.objects.get().not_before < timezone.now() + timedelta(seconds=10)
    fail(run, 2)
    assert Findings.objects.get().not_before > timezone.now() + timedelta(seconds=60)


def test_success_clears_the_failures():
    run = broken_run()
    fail(run, 3)
    good = Entry.objects.filter(kind="verdicts").order_by("seq").first()
    Entry.objects.filter(kind="verdicts").exclude(pk=good.pk).update(payload=good.payload)
    found = compute(run)
    assert (found.attempts, found.error, found.failure) == (0, "", "")
    assert FAILED not in text_of(page(run))


def test_attempts_that_were_killed_count_too():
    found = Findings(run=voted_run(computed=False), attempts=3)
    assert found.failure == ""  # the third may be at work
    found.attempts = 4
    assert "ended without a result, perhaps for lack of memory" in found.failure


def test_only_what_no_worker_has_taken_up_is_said_to_lack_one():
    run = broken_run()
    Findings.objects.create(run=run, not_before=timezone.now() - timedelta(minutes=1))
    assert NO_WORKER in text_of(page(run))
    fail(run, 1)
    Findings.objects.update(not_before=timezone.now() - timedelta(minutes=1))
    assert NO_WORKER not in text_of(page(run))

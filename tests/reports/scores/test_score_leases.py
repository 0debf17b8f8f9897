"""Whoever makes score files holds a lease, which a thread renews beside the work."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from reports.models import ScoreReport
from reports.scores import files, views
from tests.reports.scores.test_score_files import voted_run

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_lease_is_renewed_for_as_long_as_it_takes(monkeypatch):
    monkeypatch.setattr(files, "write_charts", lambda *_, **__: [])
    monkeypatch.setattr(views, "RENEWED_EVERY", timedelta(milliseconds=10))
    report = views.request_scores(voted_run(), None)
    made, leases = files.make_report, []

    def slow(*args, **options):
        ScoreReport.objects.update(leased_until=timezone.now())
        until = time.monotonic() + 30
        while not leases or leases[-1] < timezone.now() + timedelta(seconds=60):
            leases.append(ScoreReport.objects.get().leased_until)
            assert time.monotonic() < until, "nobody renewed it"
        return made(*args, **options)

    monkeypatch.setattr(files, "make_report", slow)
    views.make(report.pk)
    report.refresh_from_db()
    assert (report.state, report.leased_until) == ("done", None)

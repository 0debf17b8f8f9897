"""Findings of many votes: a process of their own computes them."""

import pytest
from django.db import connection

from judge_eval.board import cache
from judge_eval.models import Board, Findings
from judge_eval.tasks import compute_findings, refresh_findings
from tests.helpers.board_rows import make_studied_run

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(cache, "MOST_VOTES_IN_A_WORKER", 0)
    monkeypatch.setattr(cache, "compute", lambda *_: pytest.fail("computed in the worker"))
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{connection.settings_dict['NAME']}")
    return make_studied_run()


def computed_up_to(run):
    return dict(Findings.objects.filter(run=run, data__isnull=False).values_list("part", "seq"))


def test_they_are_those_that_a_worker_would_compute(run):
    refresh_findings()
    seq = Board.objects.get(run=run).seq
    assert computed_up_to(run) == {"": seq}
    Findings.objects.create(run=run, part="ballot:decided")
    compute_findings(str(run.pk), "ballot:decided")
    assert computed_up_to(run) == {"": seq, "ballot:decided": seq}


def test_a_process_that_fails_is_named_in_the_log_and_the_rest_goes_on(run, monkeypatch, caplog):
    monkeypatch.setenv("DATABASE_URL", "sqlite:////nowhere/at/all")
    refresh_findings()
    assert f"findings of run {run.pk}, part '': their process ended with 1" in caplog.text
    assert computed_up_to(run) == {}

"""A run from its config to open pairs, against a provider that speaks the OpenAI protocol."""

import pytest

from judge_eval.models import Call, Verdict
from tests.helpers.run_maker import go_on, make_started
from tests.makers import pairs_of, seal_all
from voting.ledger import ledger
from voting.models import Entry, Inference

pytestmark = pytest.mark.django_db


def test_a_text_run_reaches_voting_by_itself(at):
    run = go_on(make_started(at))
    assert run.state == "voting"
    assert Inference.objects.count() == 4
    assert [pair.opened_at is not None for pair in pairs_of(run)] == [True, True]
    verdicts = Verdict.objects.filter(judge__run=run)
    assert verdicts.count() == 2 * run.judges.count()
    assert set(verdicts.values_list("state", flat=True)) == {"done"}
    calls = Call.objects.filter(purpose="judge")
    assert sorted(calls.values_list("order", flat=True)) == ["AB"] * 4 + ["BA"] * 4
    seal_all(run.queue.project)
    assert Entry.objects.filter(kind="verdicts", seq__isnull=False).count() == 2
    assert ledger.replay(run.queue.project, write=False) == []


def test_a_drawing_run_shows_the_judges_the_very_pictures(at):
    run = go_on(make_started(at, kind="svg", judges=["judge-hash"], prompts=["a cat"]))
    assert run.state == "voting", run.note
    [pair] = pairs_of(run)
    verdict = Verdict.objects.get(judge__run=run)
    assert (verdict.order, verdict.consistent) == ("both", True)
    assert pair.a.picture.png_sha256

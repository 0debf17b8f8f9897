"""Judges tuned on one half of a run's votes, and told by the other."""

import pytest

from judge_eval.config.run_config import JoiningJudges
from judge_eval.findings.workshop import look_at_held_out, tuning_figures
from judge_eval.models import Run, Verdict
from judge_eval.runs import variants
from tests.helpers import model_calls
from tests.helpers.run_maker import asked_of, go_on, make_provider
from tests.makers import make_single_run, make_vote, make_voter, seal_all
from voting.ledger import ledger

pytestmark = pytest.mark.django_db
server = pytest.fixture(scope="module")(model_calls.server)
at = pytest.fixture(model_calls.model)


def make_voted_run(items=24, **options):
    """A finished run of texts with a vote on each."""
    run = make_single_run(outputs=[f"Answer {n} {'x' * n}" for n in range(items)], **options)
    voter = make_voter(run)
    for n, item in enumerate(run.queue.items.order_by("position")):
        make_vote(voter, item, "pass" if n % 2 else "flag")
    seal_all(run.queue.project)
    return Run.objects.select_related("queue").get(pk=run.pk)


def opened(at, **options):
    make_provider(at)
    run = make_voted_run(**options)
    variants.open_for_tuning(run)
    return fresh(run)


def fresh(run):
    seal_all(run.queue.project)
    return Run.objects.select_related("queue__project", "board").get(pk=run.pk)


def test_a_variant_is_asked_on_tuning_items_first_and_told_by_those_held_out(at):
    run = opened(at)
    halves = list(run.queue.items.values_list("is_held_out", flat=True))
    assert (halves.count(True), halves.count(False)) == (12, 12)
    spec = {"id": "strict", "model": "judge-careful", "instructions": "Be strict about {rubric}"}
    [judge] = variants.add(run, JoiningJudges.model_validate({"judges": [spec]}))
    assert (judge.name, judge.model, judge.is_tuned) == ("strict", "judge-careful", True)
    run = fresh(run)
    assert not Verdict.objects.filter(judge=judge).exists()
    assert variants.next_step(run, judge)[:3] == ("first", 12, 12)
    assert variants.ask(run, judge, "first") == 12
    run = go_on(run)
    assert not Verdict.objects.filter(judge=judge, item__is_held_out=True).exists()
    [best] = tuning_figures(run)
    assert best.judge == judge
    assert best.overall.n == 12
    assert variants.next_step(run, judge).step == "all"
    variants.ask(run, judge, "all")
    run = fresh(go_on(run))
    held = look_at_held_out(run, judge)
    assert held.overall.n == 12
    assert held.looks == 1
    sent = asked_of(at, "judge-careful")
    assert len(sent) == 24
    system = sent[0]["messages"][0]["content"]
    assert system.startswith(f"Be strict about {run.queue.rubric.text}")
    assert "nothing in between" in system
    assert "Answer with one JSON object" in system
    assert ledger.replay(run.queue.project, write=False) == []

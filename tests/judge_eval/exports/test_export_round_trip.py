"""What is exported and imported into an empty instance shows the same board, to the last bit."""

import json

import pytest
from django.utils import timezone

from judge_eval.exports.export import export_project, export_run
from judge_eval.models import Verdict
from reports.models import Quality
from reports.quality.parameters import change, parameters_of
from tests.helpers.bundles import (
    empty_the_instance,
    facts_of,
    findings_of,
    numbers_of,
    restored,
)
from tests.helpers.run_maker import PRICES, go_on, make_started
from tests.makers import (
    change_verdicts,
    make_exposure,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from tests.provider import provider
from tests.voting.ledger.test_replay_property import World, anything_happens
from voting.ballot.services import flag, record_exposure, undo_last_vote
from voting.curating.services import (
    change_for_all,
    change_for_disputed,
    decide,
    exclude_voter,
    reverse,
)
from voting.ledger import chain, ledger
from voting.ledger.decisions import Rules

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def make_eventful_run(**fields):
    """A run with everything that can happen to votes and verdicts."""
    run = make_run(
        says=[["A", "B", "tie"], ["A", None, "B"], ["both_bad", "A", "A"], [None, "B", "B"]],
        votes_wanted=2,
        **fields,
    )
    pairs, (one, two) = pairs_of(run), (make_voter(run), make_voter(run, reputation=2_000_000))
    for pair, choice in zip(pairs, ["A", "B", "both_bad", "tie"], strict=True):
        make_vote(one, pair, choice)
    undo_last_vote(one, run.queue)
    seal_all(run.queue.project)
    make_vote(one, pairs[3], "B")
    change_verdicts(pairs[0], ["B", "B", None])
    make_exposure(two, pairs[1])
    for pair, choice in zip(pairs[:3], ["B", "B", "A"], strict=True):
        make_vote(two, pair, choice)
    seal_all(run.queue.project)
    undo_last_vote(two, run.queue)
    record_exposure(one.pk, [pairs[3].pk], timezone.now())
    undo_last_vote(one, run.queue)
    make_vote(one, pairs[3], "A")
    copied = decide(pairs[0].pk, "exclude", one, "Both are copied.", after=None)
    decide(pairs[2].pk, "exclude", one, after=None)
    decide(pairs[1].pk, "another_round", one, after=None, votes=2)
    reverse(copied.uid, two, "They are not.")
    hasty = exclude_voter(two.pk, run.queue, one, "Half a second each.", after=None)
    change_for_disputed(run.queue, 3, one)
    change_for_all(run.queue, Rules(votes_per_item=3, overlap_share=0.5, overlap_votes=5), one)
    exclude_voter(one.pk, run.queue, two, after=None)
    reverse(hasty.uid, one)
    flag(two, pairs[0].pk, "unsafe", "not for children")
    seal_all(run.queue.project)
    return run


def test_an_eventful_run_comes_back_with_its_numbers_and_its_ledger():
    run = make_eventful_run()
    before, numbers, lines = facts_of(run), numbers_of(run), list(export_run(run))
    head, computed = run.queue.project.ledger_head, findings_of(run)
    empty_the_instance()
    [back] = restored(lines)
    assert facts_of(back) == before
    assert findings_of(back) == computed
    assert numbers_of(back) == numbers
    assert back.queue.project.ledger_head == head
    assert chain.verify(ledger.export(back.queue.project), head).entries == len(numbers["entries"])
    assert ledger.replay(back.queue.project, write=False) == []
    assert list(export_run(back)) == lines


def test_a_project_comes_back_with_its_quality_score_and_the_settings_of_it():
    run = make_eventful_run()
    # By somebody who has not voted.
    change(run.queue.project, {"decay_unit": "hour"}, make_voter(run), apply_reputations=True)
    seal_all(run.queue.project)
    score, head = Quality.objects.get().standing, run.queue.project.ledger_head
    lines = list(export_project(run.queue.project))
    empty_the_instance()
    [back] = restored(lines)
    assert back.queue.project.ledger_head == head
    assert parameters_of(back.queue.project).decay_unit == "hour"
    assert Quality.objects.get().standing == score
    assert ledger.replay(back.queue.project, write=False) == []


def test_what_models_were_asked_comes_back_with_what_it_cost_and_how_long_it_took():
    prices = dict.fromkeys(["model-a", "model-b", "judge-long"], PRICES)
    judges = ["judge-long", "judge-hash", "judge-first", "longer-wins"]
    with provider() as at:
        at.control(mode="empty", models=["judge-first"])
        prompts = [f"Say {word}." for word in ("hello", "goodbye", "yes", "no")]
        run = go_on(make_started(at, {"prices": prices}, judges=judges, prompts=prompts))
    said = Verdict.objects.get(judge__name="judge-long", item=pairs_of(run)[0]).winner
    for _ in range(2):
        voter = make_voter(run)
        for pair, choice in zip(pairs_of(run), [said, "B", "A", "both_bad"], strict=True):
            make_vote(voter, pair, choice)
    seal_all(run.queue.project)
    computed, lines = findings_of(run), list(export_run(run))
    paid, unpriced, failed, baseline, *_ = computed["judges"]
    assert paid["cost_per_correct_usd"] > 0
    assert (unpriced["cost_usd"], unpriced["seconds_per_verdict"] > 0) == (None, True)
    assert failed["coverage"]["value"] == 0
    assert baseline["cost_usd"] == 0
    empty_the_instance()
    [back] = restored(lines)
    assert findings_of(back) == computed
    assert [line for line in export_run(back) if '"type":"verdict"' in line] == [
        line for line in lines if '"type":"verdict"' in line
    ]


def test_a_bundle_of_before_costs_were_in_it_is_read():
    lines = list(export_run(make_eventful_run()))
    empty_the_instance()
    older = [json.loads(line) for line in lines]
    for record in older:
        for name in ("cost_nano", "unpriced"):
            record.pop(name, None)
    [back] = restored(map(json.dumps, older))
    assert Verdict.objects.filter(judge__run=back, cost_nano=None, unpriced=None).count() == 12


@anything_happens
def test_whatever_happened_comes_back(says, steps, batch):
    world = World(says)
    for name, *arguments in steps:
        getattr(world, name)(*arguments)
    while world.seal(batch):
        pass
    before = [(facts_of(run), numbers_of(run)) for run in world.runs]
    head = world.project.ledger_head
    lines = list(export_project(world.project))
    empty_the_instance()
    runs = {run.pk: run for run in restored(lines)}
    after = [runs[run.pk] for run in world.runs]
    assert [(facts_of(run), numbers_of(run)) for run in after] == before
    assert after[0].queue.project.ledger_head == head
    assert ledger.replay(after[0].queue.project, write=False) == []

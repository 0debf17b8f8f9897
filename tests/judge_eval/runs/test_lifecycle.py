"""A run's life: what can be done in each state, and what is said where it cannot."""

from decimal import Decimal

import pytest
from django.db import connection

from judge_eval.judging import leases, results
from judge_eval.models import Call, Provider, Run, Verdict
from judge_eval.runs import lifecycle, state
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.runs.state import complete_voted_runs
from tests.helpers.run_maker import ask, attempt, go_on, make_draft, make_judging, make_started
from tests.makers import judges_of, make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ballot.services import VotingClosed, undo_last_vote
from voting.models import Entry, Inference

pytestmark = pytest.mark.django_db

STATES = ["draft", "generating", "judging", "voting", "complete", "stopped", "failed"]
ACTIONS = {
    "start": (lifecycle.start, {"draft"}, "only a draft can be started"),
    "stop": (lifecycle.stop, {"generating", "judging", "voting"}, "there is nothing to stop"),
    "resume": (lifecycle.resume, {"stopped"}, "only a stopped one can be resumed"),
    "retry": (
        lifecycle.retry_failed,
        {"generating", "judging", "voting", "complete", "failed"},
        "start or resume it first",
    ),
    "duplicate": (lifecycle.duplicate, set(STATES), ""),
}


def events_of(run):
    return list(run.events.order_by("pk").values_list("kind", flat=True))


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("state", STATES)
def test_every_action_in_every_state_works_or_says_why_not(at, state, action):
    run = make_draft(at)
    Run.objects.filter(pk=run.pk).update(state=state, note="As it was.")
    before = Run.objects.values().get(pk=run.pk), events_of(run), run.queue.is_open
    do, allowed, words = ACTIONS[action]
    if state in allowed:
        do(run.pk)
        return
    with pytest.raises(LifecycleRefused) as refused:
        do(run.pk)
    assert str(refused.value).startswith(f"This run is {state}; ")
    assert words in str(refused.value)
    run.queue.refresh_from_db()
    assert (Run.objects.values().get(pk=run.pk), events_of(run), run.queue.is_open) == before


def test_a_draft_asks_nobody_and_has_its_judges(at):
    run = make_draft(at, budget_usd=3)
    assert (run.state, run.started_at, run.budget_usd) == ("draft", None, 3)
    # A floor has all baselines that look at nothing too: a coin would beat the others.
    blind = ["always-first", "always-second", "always-both-bad", "random", "random-output"]
    named = ["judge-long", "judge-hash", "longer-wins"]
    assert [judge.name for judge in judges_of(run)] == [*named, *blind]
    assert events_of(run) == ["created"]
    assert go_on(run).state == "draft"
    assert at.requests == []
    assert lifecycle.config_of(run).name == run.name


def test_the_states_of_a_run_that_goes_well_are_told_as_events(at):
    run = go_on(make_started(at))
    states = [event.data.get("state") for event in run.events.filter(kind="state").order_by("pk")]
    assert states == ["judging", "voting"]
    assert events_of(run)[:2] == ["created", "started"]
    assert run.started_at is not None


def test_started_twice_it_is_started_once(at):
    run = make_started(at)
    with pytest.raises(LifecycleRefused, match="This run is generating"):
        lifecycle.start(run.pk)
    assert Call.objects.count() == 4


def test_a_run_whose_provider_is_not_known_is_not_started(at):
    run = make_draft(at, {"name": "other"}, judges=[{"id": "judge-x", "provider": "nowhere"}])
    with pytest.raises(LifecycleRefused) as refused:
        lifecycle.start(run.pk)
    for name in ("default", "nowhere"):
        assert f"There is no provider named {name}." in str(refused.value)
    assert Call.objects.count() == 0


def test_outputs_that_were_given_have_no_config_to_copy_or_start():
    run = make_run()
    with pytest.raises(LifecycleRefused, match="it has no config"):
        lifecycle.duplicate(run.pk)
    assert lifecycle.retry_failed(run.pk) == 0
    run.refresh_from_db()
    assert run.state == "voting"


class TestStop:
    def test_calls_that_are_out_are_still_written_down(self, at):
        run = make_judging(at)
        answers = [ask(call) for call in leases.claim(8, run.pk)]
        lifecycle.stop(run.pk)
        for answer in answers:
            results.write([answer])
        states = Call.objects.filter(purpose="judge").values_list("state", flat=True)
        assert list(states) == ["done", "done"]
        assert go_on(run).state == "stopped"

    def test_no_more_calls_are_made_until_it_is_resumed(self, at):
        run = make_judging(at)
        lifecycle.stop(run.pk)
        assert attempt() == []
        run = go_on(run)
        assert (run.state, run.note) == ("stopped", "Stopped by hand.")
        lifecycle.resume(run.pk)
        run = go_on(run)
        assert (run.state, run.note) == ("voting", "")
        assert events_of(run)[-3:] == ["stopped", "resumed", "state"]

    @pytest.mark.parametrize("started", [True, False], ids=["generating", "judging"])
    def test_it_is_resumed_in_the_state_it_has_work_for(self, at, started):
        run = make_started(at) if started else make_judging(at)
        was = run.state
        lifecycle.stop(run.pk)
        assert lifecycle.resume(run.pk).state == was

    def test_voting_is_closed_and_opened_again_and_votes_stay(self, at):
        run = go_on(make_started(at))
        voter, (first, second) = make_voter(run), pairs_of(run)
        make_vote(voter, first)
        lifecycle.stop(run.pk)
        with pytest.raises(VotingClosed):
            make_vote(voter, second)
        lifecycle.resume(run.pk)
        assert go_on(run).state == "voting"
        make_vote(voter, second)
        assert Entry.objects.filter(kind="vote", retracted=False).count() == 2
        with pytest.raises(LifecycleRefused):
            lifecycle.start(run.pk)
        assert Entry.objects.filter(kind="vote", retracted=False).count() == 2

    @pytest.mark.parametrize("absent, is_open", [(False, True), (True, False)])
    def test_what_was_imported_without_outputs_stays_closed(self, absent, is_open):
        run = make_run(pairs=2)
        outputs = Inference.objects.filter(project=run.queue.project)
        outputs.update(metadata={lifecycle.OUTPUT_ABSENT: absent})
        lifecycle.mark_lacking(run.queue)
        lifecycle.stop(run.pk)
        assert lifecycle.resume(run.pk).queue.is_open == is_open
        run.queue.refresh_from_db()
        assert run.queue.is_open == is_open

    def test_a_pair_judged_by_then_is_open_and_the_others_follow(self, at):
        run = make_started(at, judges=["judge-long"])
        attempt()
        state.advance(run.pk)
        attempt(slots=2)
        lifecycle.stop(run.pk)
        assert sorted(pair.opened_at is None for pair in pairs_of(run)) == [False, True]
        lifecycle.resume(run.pk)
        run = go_on(run)
        assert all(pair.opened_at for pair in pairs_of(run))


class TestVotingMeanwhile:
    def test_a_pair_is_open_as_soon_as_its_own_verdicts_are_final(self, at):
        run = make_judging(at, judges=["judge-long", "longer-wins"], prompts=["One.", "Two."])
        assert Verdict.objects.filter(judge__name="longer-wins", state="done").count() == 2
        assert all(pair.opened_at is None for pair in pairs_of(run))
        attempt(slots=2)
        first, second = pairs_of(run)
        assert (first.opened_at is None, second.opened_at) == (False, None)
        assert Run.objects.get(pk=run.pk).state == "judging"
        make_vote(make_voter(run), first)
        seal_all(run.queue.project)
        assert pairs_of(run)[0].votes == 1
        assert go_on(run).state == "voting"

    @pytest.mark.parametrize("outputs", ["asked for", "given"])
    def test_with_all_its_votes_it_is_complete_until_one_is_taken_back(self, at, outputs):
        run = make_run(pairs=2) if outputs == "given" else go_on(make_started(at))
        voter = make_voter(run)
        for pair in pairs_of(run):
            complete_voted_runs([run.pk])
            assert Run.objects.get(pk=run.pk).state == "voting"
            make_vote(voter, pair)
            seal_all(run.queue.project)
        complete_voted_runs([run.pk])
        assert Run.objects.get(pk=run.pk).state == "complete"
        undo_last_vote(voter, run.queue)
        seal_all(run.queue.project)
        complete_voted_runs([run.pk])
        assert Run.objects.get(pk=run.pk).state == "voting"

    def test_a_run_that_is_stopped_meanwhile_stays_so(self, at):
        run = go_on(make_started(at))
        voter = make_voter(run)
        for pair in pairs_of(run):
            make_vote(voter, pair)
        seal_all(run.queue.project)
        looks = []

        def stop_after_the_first_look(execute, sql, *rest):
            result = execute(sql, *rest)
            if sql.startswith("SELECT") and not looks:
                looks.append(sql)
                lifecycle.stop(run.pk)
            return result

        with connection.execute_wrapper(stop_after_the_first_look):
            complete_voted_runs([run.pk])
        run.refresh_from_db()
        assert (run.state, run.note) == ("stopped", "Stopped by hand.")
        assert events_of(run)[-1] == "stopped"

    @pytest.mark.parametrize("models", [["model-a"], ["model-a", "model-b"]])
    def test_a_run_of_mode_standard_that_wants_no_pairs_is_complete(self, at, models):
        run = go_on(make_started(at, mode="standard", models=models))
        assert (run.state, run.note) == ("complete", "")
        assert run.queue.items.exists() == (len(models) == 2)

    @pytest.mark.parametrize(
        "models, note",
        [
            (["model-a"], "No output came."),
            (["model-a", "model-b"], "No two outputs of a prompt came, so there is no pair."),
        ],
    )
    def test_without_what_it_wants_it_has_failed(self, at, models, note):
        at.control(mode="insufficient_quota")
        run = go_on(make_started(at, mode="standard", models=models))
        assert (run.state, run.note) == ("failed", note)

    def test_a_run_of_mode_standard_is_complete_without_votes(self, at):
        run = go_on(make_started(at, mode="standard"))
        assert run.state == "complete"
        complete_voted_runs([run.pk])
        assert Run.objects.get(pk=run.pk).state == "complete"


class TestDuplicate:
    def test_it_is_a_draft_of_its_own_with_the_same_config(self, at):
        run = go_on(make_started(at, budget_usd=None))
        before = Run.objects.values().get(pk=run.pk)
        copy = lifecycle.duplicate(run.pk)
        assert (copy.name, copy.state, copy.queue.project_id) == (
            "A study (copy)",
            "draft",
            run.queue.project_id,
        )
        assert copy.config == run.config | {"name": "A study (copy)"}
        assert copy.queue_id != run.queue_id
        assert Run.objects.values().get(pk=run.pk) == before

    def test_a_long_name_has_room_for_it(self, at):
        copy = lifecycle.duplicate(make_draft(at, name="n" * 200).pk)
        assert (len(copy.name), copy.name[-7:]) == (200, " (copy)")


def test_resumed_with_a_smaller_budget_than_was_spent_it_says_how_much_that_is(at):
    run = make_started(at)
    prices = {"input": "1", "output": "1"}
    names = ("model-a", "model-b", "judge-long", "judge-hash")
    Provider.objects.update(prices=dict.fromkeys(names, prices))
    lifecycle.stop(run.pk)
    Run.objects.filter(pk=run.pk).update(spent_nano=1_230_000_000)
    with pytest.raises(LifecycleRefused, match=r"^\$1\.23 are spent: enter a larger budget"):
        lifecycle.resume(run.pk, Decimal(1))

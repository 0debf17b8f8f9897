"""A queue knows, at every moment of its run, whether more pairs may come."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.models import Run
from judge_eval.runs import lifecycle, state
from tests.helpers.pages import text_of
from tests.helpers.run_maker import attempt, go_on, make_draft, make_started
from tests.makers import make_vote, make_voter, pairs_of, voter_client
from voting.models import Item, Queue

pytestmark = pytest.mark.django_db


def may_come(run):
    return Queue.objects.get(pk=run.queue_id).more_may_come


def end_of(voter, run):
    return text_of(voter_client(voter).get(f"/vote/{run.queue_id}/"))


def test_from_the_draft_on_until_the_last_pair_is_open(at):
    run = make_draft(at)
    voter = make_voter(run)
    assert may_come(run)
    assert "The pairs are being prepared" in end_of(voter, run)
    lifecycle.start(run.pk)
    assert may_come(run)
    assert "The pairs are being prepared" in end_of(voter, run)
    assert go_on(run).state == "voting"
    assert not may_come(run)


def test_between_two_prompts_nothing_is_left_for_the_moment_only(at):
    """The first prompt is paired, judged and voted on; the outputs of the second are not there."""
    run = make_started(at, judges=["longer-wins"])
    run.calls.filter(prompt=1).update(not_before=timezone.now() + timedelta(hours=1))
    while run.calls.filter(prompt=0, state="waiting").exists():
        attempt()
    state.advance(run.pk)
    voter = make_voter(run)
    [pair] = pairs_of(run)
    make_vote(voter, pair)
    text = end_of(voter, run)
    assert "More pairs are being prepared" in text
    assert "Nothing left for you" not in text


def test_a_run_that_is_stopped_resumed_or_tried_again(at):
    run = make_started(at)
    lifecycle.stop(run.pk)
    assert not may_come(run)
    lifecycle.resume(run.pk)
    assert may_come(run)
    at.control(mode="insufficient_quota")
    run = go_on(run)
    assert (run.state, may_come(run)) == ("failed", False)
    assert "There is nothing to vote on" in end_of(make_voter(run), run)
    at.control(mode="ok", reset=True)
    lifecycle.retry_failed(run.pk)
    assert may_come(run)


def test_runs_that_are_complete_after_all_votes_bring_no_more(at):
    run = go_on(make_started(at))
    Item.objects.filter(queue=run.queue).update(votes=1)
    state.complete_voted_runs([run.pk])
    assert Run.objects.get(pk=run.pk).state == "complete"
    assert not may_come(run)

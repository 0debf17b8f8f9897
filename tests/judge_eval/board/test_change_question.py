"""What people are asked is read and changed on the page of People, and stands in the ledger."""

import pytest
from django.urls import reverse

from judge_eval.ledger.objects import record_objects
from judge_eval.models import Run
from tests.helpers.imports import assert_whole, votes_of
from tests.helpers.pages import text_of
from tests.makers import (
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.models import Entry

pytestmark = pytest.mark.django_db


def change(run, client=None, **fields):
    form = {"question": "Which is better?", "rubric": "Look at the hands."} | fields
    return (client or user_client()).post(reverse("change-question", args=[run.pk]), form)


def test_votes_name_the_version_they_were_cast_by_and_the_ledger_has_both():
    run = make_run(pairs=2)
    voter, first = make_voter(run), pairs_of(run)[0]
    old = run.queue.rubric
    record_objects(run)
    entries = Entry.objects.filter(kind="object", queue=run.queue)
    before = entries.count()
    make_vote(voter, first)
    assert change(run).status_code == 302
    run = Run.objects.select_related("queue__rubric").get(pk=run.pk)
    new = run.queue.rubric
    assert (new.text, new.version, run.question) == (
        "Look at the hands.",
        old.version + 1,
        "Which is better?",
    )
    make_vote(voter, pairs_of(run)[1])
    seal_all(run.queue.project)
    assert [vote.rubric for vote in votes_of(run)] == [old, new]
    assert entries.count() == before + 1
    assert_whole(run.queue.project)


def test_people_read_it_and_that_it_was_changed():
    run = make_run()
    voter = make_voter(run)
    page = reverse("vote", args=[run.queue_id])
    assert "What to look for changed" not in text_of(voter_client(voter).get(page))
    change(run)
    text = text_of(voter_client(voter).get(page))
    assert "What to look for changed" in text
    assert "Look at the hands." in text
    assert "Look at the hands." in text_of(user_client().get(reverse("run-people", args=[run.pk])))


def test_the_same_text_is_no_new_version_and_an_empty_one_is_refused():
    run = make_run()
    text = run.queue.rubric.text
    change(run, rubric=text)
    assert Run.objects.get(pk=run.pk).queue.rubric == run.queue.rubric
    refused = change(run, rubric=" ")
    assert refused.status_code == 422
    assert "What to look for" in text_of(refused)

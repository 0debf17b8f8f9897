"""Every page about a run of single items, of each kind, before and after people vote."""

import re
from copy import deepcopy

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from judge_eval.demo.content import jokes
from judge_eval.judging.baselines import names_for_single
from judge_eval.runs.services import create_run
from judge_eval.runs.state import advance
from reports.composite.sources import Outputs, proposal, read_config
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    key_client,
    make_invite,
    make_key,
    make_project,
    make_voter,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.assignment import ballot_for
from voting.ballot.services import cast_vote
from voting.items.kinds import Options, kind_of
from voting.models import Entry
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db

# What is asked, and what a voter says in turn.
STUDIES = {
    "pass_flag": (["pass", "flag"], {}, [{"choice": "pass"}, {"choice": "flag"}]),
    "graded": (["pass", "flag"], {"graded": True}, [{"value": "0.7"}, {"value": "0"}]),
    "category": (["dry", "warm"], {"task": "tone"}, [{"choice": "dry"}, {"choice": "warm"}]),
    "rating": (list("12345"), {}, [{"choice": "4"}, {"choice": "2"}]),
    "labels": (["rude", "long"], {}, [{"choice": "rude;long"}, {"choice": ""}]),
    "text": ([], {}, [{"text": "Too long."}, {"text": "Fine."}]),
}
OF_A_RUN = (
    *("run", "run-progress", "run-calls", "run-pairs", "run-models", "run-people"),
    *("run-composite", "run-scores", "run-data"),
)
# These speak of whatever may be voted on, pairs included.
OF_BOTH = ("run-alt-test", "run-items-needed")
SPOKEN = re.compile(r'\s(?:aria-label|alt|title|placeholder|data-summary)="([^"]*)"')
PEOPLE = 3


@pytest.fixture(scope="module", params=STUDIES)
def made_once(request, module_db):
    with transaction.atomic():
        yield make_study(request.param)
        transaction.set_rollback(True)


@pytest.fixture
def study(made_once):
    return deepcopy(made_once)


def make_study(name):
    """A run of a few jokes that its baselines have judged, and what people say of them."""
    ballot, options, said = STUDIES[name]
    kind = "pass_flag" if name == "graded" else name
    baselines = names_for_single(kind, ballot) if ballot else []
    run = create_run(
        make_project(),
        "A few jokes",
        jokes()[:4],
        rubric="Is it funny?",
        baselines=baselines,
        kind=kind,
        ballot=ballot,
        options=options,
        votes_per_item=PEOPLE,
    )
    advance(run.pk)
    run.refresh_from_db()
    seal_all(run.queue.project)
    return run, said


def vote_on_all(run, said):
    """Let people vote on every item, one after the other; return the last vote."""
    kind, options = kind_of(run.queue), Options.model_validate(run.queue.options)
    for number in range(PEOPLE):
        voter = make_voter(run)
        for item in run.queue.items.select_related("queue"):
            posted = said[(item.position + number // 2) % 2]
            answer = kind.answer(posted, run.queue.ballot, options, "")
            ballot = ballot_for(voter, run.queue, item)
            cast_vote(ballot, answer.choice, left="", details=answer.details)
    seal_all(run.queue.project)
    return Entry.objects.filter(kind="vote").latest("pk")


def assert_of_items(client, path):
    """Open a page of a run of single items; nothing on it speaks of two outputs."""
    page = client.get(path, follow=True)
    assert page.status_code == 200, path
    read_aloud = [text_of(page), *SPOKEN.findall(page.content.decode())]
    assert [text for text in read_aloud if re.search(r"\bpairs?\b", text, re.IGNORECASE)] == []
    return page


@pytest.mark.parametrize("are_there_votes", [False, True], ids=["no votes", "votes"])
def test_no_page_of_single_items_fails_or_speaks_of_pairs(study, are_there_votes):
    run, said = study
    if are_there_votes:
        vote_on_all(run, said)
        compute(run)
    lead = user_client()
    for name in OF_A_RUN:
        assert_of_items(lead, reverse(name, args=[run.pk]))
    for path in (*(reverse(name, args=[run.pk]) for name in OF_BOTH), "/projects/", "/review/"):
        assert lead.get(path, follow=True).status_code == 200, path
    assert_of_items(lead, reverse("run-pairs", args=[run.pk]) + "?sort=disagreement")
    assert_of_items(lead, reverse("run-pair", args=[run.pk, run.queue.items.first().pk]))
    assert_of_items(lead, reverse("review-item", args=[run.queue.items.first().pk]))
    listed = assert_of_items(lead, "/runs/")
    assert "Vote on items of" in text_of(listed)


@pytest.mark.parametrize(
    "made_once, passed", [("pass_flag", {1 / 3, 2 / 3}), ("rating", {None})], indirect=["made_once"]
)
def test_a_composite_of_single_items_starts_from_what_people_pass(study, passed):
    run, said = study
    vote_on_all(run, said)
    client = key_client(make_key("manage")[1])
    saved = client.put(
        f"/api/runs/{run.pk}/composite", proposal(run), content_type="application/json"
    )
    assert saved.status_code == 200
    assert "mean composite of" in text_of(user_client().get(f"/runs/{run.pk}/composite/"))
    config = read_config(run, proposal(run))
    found = Outputs(run, [config]).components(config)
    assert found.keys() == set(run.queue.items.values_list("a", flat=True))
    assert {each["preferred"] for each in found.values()} == passed


def test_a_voter_of_single_items_reads_nothing_of_pairs(study):
    run, said = study
    invite = f"/join/{invite_token(make_invite(run))}/"
    assert_of_items(Client(), invite)
    voter = make_voter(run)
    client = voter_client(voter)
    assert_of_items(client, f"/vote/{run.queue_id}/")
    vote = vote_on_all(run, said)
    assert_of_items(client, f"/vote/{run.queue_id}/")
    assert_of_items(client, reverse("my-votes", args=[run.queue_id]))
    assert_of_items(voter_client(vote.voter), reverse("reveal", args=[vote.uid]))

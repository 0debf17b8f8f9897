"""What stands above every page of a run: what it is, how far it is, and one thing to do next."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from judge_eval.models import Call, Findings, Judge, Run
from tests.helpers.pages import text_of
from tests.makers import (
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)

pytestmark = pytest.mark.django_db

PAGES = ["", "pairs/", "people/", "models/", "progress/", "data/"]
PAGES += ["alt-test/", "composite/", "scores/", "share/", "calls/", "import/"]
TABS = ["Board", "Pairs", "People", "Models", "Run", "Data"]
# Pages that are part of a tab.
TAB_OF = {"alt-test/": "", "composite/": "models/", "calls/": "progress/"}
TAB_OF |= dict.fromkeys(["scores/", "share/", "import/"], "data/")
MOVED = {
    "vote/": "/runs/{run}/people/#invites",
    "export/": "/runs/{run}/data/",
    "quality/": "/projects/{project}/quality/",
}
BEST = "Stop voting: the best judge is known"


def page_of(run, page="", client=None):
    return text_of((client or user_client()).get(f"/runs/{run.pk}/{page}"))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_of_a_run_says_what_it_is_and_how_far(page):
    run = make_run(pairs=2, judges=3, baselines=["judge-0"])
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    head = (
        "Which of two outputs is better · 2 judges and 1 baseline · 1 of 2 pairs have enough votes"
    )
    assert head in page_of(run, page)


def test_single_items_without_judges_are_told_as_such():
    run = make_single_run(outputs=["One", "Two"])
    assert "Pass or flag one output · no judges · 0 of 2 items have enough" in page_of(run)


def test_what_is_not_ready_is_said():
    run = make_run(pairs=3)
    run.queue.items.filter(position=0).update(opened_at=None)
    assert "0 of 3 pairs have enough votes, 1 being prepared" in page_of(run)
    run.queue.items.update(unusable="cannot be drawn")
    assert "baselines · No pairs yet" in page_of(run)


@pytest.mark.parametrize(
    "state, words",
    [
        ("draft", "Check the draft and start it"),
        ("stopped", "Resume it, or leave it stopped"),
        ("failed", "See what failed"),
        ("voting", "Invite people"),
        ("judging", "Invite people"),
    ],
)
def test_one_thing_to_do_next(state, words):
    run = make_run()
    Run.objects.filter(pk=run.pk).update(state=state)
    assert words in page_of(run)


def test_a_run_that_is_done_wants_nothing():
    run = make_run()
    Run.objects.filter(pk=run.pk).update(state="complete")
    text = page_of(run)
    assert "Invite people" not in text
    assert BEST not in text


def test_all_pages_of_a_run_have_the_same_head():
    run, client = make_run(), user_client()
    heads = {head_of(client.get(f"/runs/{run.pk}/{page}")) for page in PAGES}
    [head] = heads
    assert re.findall(r">(\w+)</a>", head)[-6:] == TABS


@pytest.mark.parametrize("page", PAGES)
def test_one_tab_is_the_current_one(page):
    run = make_run()
    html = user_client().get(f"/runs/{run.pk}/{page}").content.decode()
    [address] = re.findall(r'href="([^"]*)" aria-current="(?:page|true)">', html)
    assert address.removeprefix(f"/runs/{run.pk}/") == TAB_OF.get(page, page)


def head_of(response):
    head = re.search(r'<div class="run-head">.*?</nav>', response.content.decode(), re.DOTALL)
    return re.sub(r' aria-current="\w+"', "", head[0])


@pytest.mark.parametrize("old, new", MOVED.items())
def test_old_addresses_lead_to_the_tab_that_has_taken_them_in(old, new):
    run = make_run()
    response = user_client().get(f"/runs/{run.pk}/{old}")
    assert response.status_code == 301
    assert response.url == new.format(run=run.pk, project=run.queue.project_id)
    assert user_client().get(response.url).status_code == 200


@pytest.mark.parametrize("best, is_said", [(0, True), (None, False)])
def test_voting_may_stop_once_the_best_judge_is_known(best, is_said):
    run = make_run()
    data = {"claims": {"best": best}}
    Findings.objects.create(run=run, data=data, computed_at=timezone.now())
    text = page_of(run, "scores/")
    assert (BEST in text, "Invite people" in text) == (is_said, not is_said)


def test_a_judge_whose_calls_all_failed_comes_first():
    run = make_run()
    judge = Judge.objects.filter(run=run).first()
    for verdict in judge.verdicts.all():
        Call.objects.create(
            run=run,
            purpose="judge",
            verdict=verdict,
            provider="default",
            model="gpt-x",
            order="AB",
            state="failed",
            error="401 Unauthorized",
        )
    # People may be invited all the same; once that is over, it comes first.
    assert "Invite people" in page_of(run, "pairs/")
    type(run.queue).objects.update(is_open=False)
    assert "Open a provider: every call to gpt-x failed" in page_of(run, "pairs/")


def test_readers_are_shown_no_step_that_is_not_theirs():
    run = make_run(shared=True)
    text = page_of(run, client=Client())
    assert "of 1 pair has enough votes" in text
    assert "Invite people" not in text

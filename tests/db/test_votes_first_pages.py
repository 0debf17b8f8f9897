"""Pages, API, files and reports of runs whose votes came before their judges, or without any."""

import pytest
from django.core.cache import cache
from django.test import Client

from reports.report.links import make_share
from tests.helpers.imports import imported, pair, verdict, vote
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    key_client,
    make_key,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)

pytestmark = pytest.mark.django_db

TABS = ("", "models/", "alt-test/", "people/", "pairs/", "scores/", "composite/", "export/")
FILES = ("report.html", "report.json", "judges.csv", "card.png", "badge.svg")
PEOPLE = ("ann", "bob", "eve")
VOTES = [vote(1, "ann", "A"), vote(1, "bob", "A"), vote(2, "ann", "B"), vote(2, "bob", "A")]


def item(number, **fields):
    return {"item": f"i{number}", "output": f"Answer {number}", "model": "ada"} | fields


def passes(number, voter, given):
    return {"item": f"i{number}", "voter": voter, "vote": given}


def pairs_without_judges():
    return imported(pair(1), pair(2), *VOTES, baselines=None)


def items_without_judges():
    votes = [passes(n, who, "pass") for n in (1, 2) for who in ("ann", "bob")]
    return imported(item(1), item(2), *votes, baselines=None)


def one_of_two_judged():
    return imported(pair(1), pair(2), verdict(1, "gpt", "A"), *VOTES, baselines=None)


def enough_people_without_judges():
    votes = [passes(n, who, "pass" if n % 3 else "flag") for n in range(30) for who in PEOPLE]
    return imported(*[item(n) for n in range(30)], *votes, baselines=None)


def outputs_alone():
    return imported(pair(1), pair(2), baselines=None)


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    cache.clear()


STUDIES = {
    pairs_without_judges: "No judge has given a verdict yet.",
    items_without_judges: "No judge has given a verdict yet.",
    enough_people_without_judges: "No judge has given a verdict yet.",
    one_of_two_judged: "gpt is the only judge: it agrees with people on 100",
    outputs_alone: "No votes yet",
}


@pytest.mark.parametrize("make, words", STUDIES.items())
def test_everything_comes_up_with_honest_words(make, words):
    run = make()
    compute(run)
    client, key = user_client(), key_client(make_key("read", "vote", "verdicts")[1])
    pages = {tab: client.get(f"/runs/{run.pk}/{tab}") for tab in TABS}
    assert {tab: page.status_code for tab, page in pages.items()} == dict.fromkeys(TABS, 200)
    assert words in text_of(pages[""]).replace("\N{NO-BREAK SPACE}", " ")
    for page in pages.values():
        assert "being computed" not in text_of(page)
        assert "No worker" not in text_of(page)
    for path in ("findings", "judge-eval/results"):
        assert key.get(f"/api/runs/{run.pk}/{path}").status_code == 200
    for table in ("board", "models", "alt-test"):
        assert client.get(f"/runs/{run.pk}/tables/{table}.csv").status_code == 200
    _, token = make_share(run.queue.project, run, None)
    for name in ("", *FILES):
        assert Client().get(f"/r/{token}/{name}").status_code == 200, name


def test_people_among_themselves_and_models_are_shown_without_a_judge():
    run = pairs_without_judges()
    compute(run)
    client = user_client()
    board = text_of(client.get(f"/runs/{run.pk}/")).replace("\N{NO-BREAK SPACE}", " ")
    assert "People among themselves 50 %" in " ".join(board.split())
    assert "People put ada first" in text_of(client.get(f"/runs/{run.pk}/models/"))
    answer = key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/findings").json()
    assert answer["among_people"]["pairs"]["value"] == 0.5
    assert answer["rows"] == []


def test_votes_that_are_cast_here_on_imported_outputs_have_figures():
    run = outputs_alone()
    for n, each in enumerate(pairs_of(run)):
        make_vote(make_voter(run), each, "AB"[n])
    seal_all(run.queue.project)
    assert compute(run).data["as_of"]["votes"] == 2
    page = text_of(user_client().get(f"/runs/{run.pk}/"))
    assert "As of 2 votes by 2 people" in page

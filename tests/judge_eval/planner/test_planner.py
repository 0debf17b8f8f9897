"""How many items and people a study needs: on a page, by REST, and never by bad figures."""

from pathlib import Path

import pytest
from django.test import Client

from humanjudge.cli.lines import plan_lines
from judge_eval.stats.planning import Study, items_for, most_saved
from tests.helpers.pages import text_of
from tests.makers import key_client, make_key, make_project, member_client, user_client

pytestmark = pytest.mark.django_db
PAGE, API = "/planner/", "/api/planner"


def test_whoever_is_logged_in_gets_a_plan_and_is_led_there():
    client = member_client(make_project(), "")
    text = text_of(client.get(PAGE))
    study = Study(3, 0.7, 0.1, ties=0.1)
    items = items_for(study, "evidence")
    assert f"{items:,} items with 1 vote each: {items:,} votes" in text
    assert "found in 80 % of studies, by evidence" in text
    assert "For the Alt-Test at epsilon 0.2" in text
    assert "saves at most 14 % of the votes" in text
    assert f'href="{PAGE}"' in client.get("/").content.decode()
    assert Client().get(PAGE).url.startswith("/login/")


def test_the_table_has_the_alternatives_and_the_chart_both_ways():
    asked = {"votes_per_item": "4", "method": "interval", "seconds_per_vote": "30"}
    page = user_client().get(PAGE, asked).content.decode()
    assert page.count('<th scope="row">') == 6
    items = items_for(Study(3, 0.7, 0.1, votes_per_item=4, ties=0.1), "interval")
    assert f"{items:,} items with 4 votes each: {4 * items:,} votes" in page
    assert "by evidence" in page
    assert "<svg" in page


@pytest.mark.parametrize(
    "name, value, says",
    [
        ("judges", "1", "greater than or equal to 2"),
        ("judges", "many", "whole number"),
        ("people_agreement", "50", "greater than or equal to 51"),
        ("difference", "90", "tell judges apart by"),
        ("difference", "nan", "Enter a number"),
        ("method", "luck", "not one of the available choices"),
        ("hours_per_person", "0", "greater than or equal to 0.1"),
    ],
)
def test_bad_figures_are_refused_with_what_is_allowed(name, value, says):
    answer = user_client().get(PAGE, {name: value})
    assert answer.status_code == 422
    assert says in text_of(answer)


def test_the_api_says_the_same_in_shares():
    client = key_client(make_key("read")[1])
    found = client.get(API, {"difference": "0.1", "votes_per_item": "3"}).json()
    for method in ("evidence", "interval"):
        items = items_for(Study(3, 0.7, 0.1, votes_per_item=3, ties=0.1), method)
        assert (found[method]["items"], found[method]["votes"]) == (items, 3 * items)
    saving = most_saved(Study(3, 0.7, 0.1, votes_per_item=3, ties=0.1))
    assert found["saving"] == pytest.approx(saving)
    assert [*plan_lines(found)][-1] == f"saving|at most {100 * saving:.1f} % of the votes"
    usual = client.get(API).json()
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8").replace("\\|", "|")
    assert [line for line in plan_lines(usual) if f"`{line}`" not in page] == []
    none = client.get(API, {"difference": "0.001"}).json()
    assert none["evidence"]["items"] is None
    assert Client().get(API).status_code == 401


@pytest.mark.parametrize(
    "asked, path", [({"ties": "2"}, "ties"), ({"difference": "0.9"}, "difference")]
)
def test_the_api_names_what_cannot_be(asked, path):
    answer = key_client(make_key("read")[1]).get(API, asked)
    assert answer.status_code == 422
    assert path in str(answer.json()["detail"])

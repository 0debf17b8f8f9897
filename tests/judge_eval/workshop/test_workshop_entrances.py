"""From where one comes to the workshop, and who is not sent there."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from judge_eval.models import Findings, Judge
from judge_eval.stats.points import CONTRADICTION, FLOOR, SELF_AGREEMENT
from tests.helpers.boards import clear_winner
from tests.makers import member_client, user_client
from voting.models import Queue

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made_once(module_db):
    return clear_winner()


@pytest.fixture
def run(made_once):
    """Its points are reworded, so that nothing can go by their words."""
    row = Findings.objects.get(run=made_once, part="")
    row.data["more"] = [f"{lead}: Anew." for lead in (FLOOR, CONTRADICTION, SELF_AGREEMENT)]
    row.data["more"].append("People: Anew.")
    row.save()
    return made_once


def links_of(client, page, run):
    """Where a page leads from points, from rows and from its head into the workshop."""
    html = client.get(reverse(page, args=[run.pk])).content.decode()
    address = reverse("run-workshop", args=[run.pk])
    return re.findall(rf'href="{address}([^"]*)"[^>]*>([^<]*)', html)


def test_points_rows_and_the_head_of_run_lead_to_the_workshop(run):
    client = user_client()
    links = links_of(client, "run", run)
    assert [words for _, words in links].count("Try another wording") == 3
    judges = {name: str(pk) for pk, name in run.judges.values_list("pk", "name")}
    rows = {name: query for query, name in links if query}
    asked = ("good-judge", "flaky-judge", "bad-judge")
    assert rows == {name: f"?judge={judges[name]}" for name in asked}
    assert links_of(client, "run-progress", run) == [("", "Workshop")]
    for query in ["", *rows.values()]:
        page = reverse("run-workshop", args=[run.pk])
        assert "Open for tuning" in client.get(f"{page}{query}").content.decode()
    # On itself there is no way to it.
    assert links_of(client, "run-workshop", run) == []


def test_once_the_tuning_has_ended_no_point_asks_for_another_wording(run):
    Queue.objects.filter(pk=run.queue_id).update(held_out_from=1)
    words = [words for _, words in links_of(user_client(), "run", run)]
    assert "Try another wording" not in words
    assert "good-judge" in words


def test_a_point_on_the_floor_leads_there_where_a_judge_is_not_above_it(run):
    row = Findings.objects.get(run=run, part="")
    row.data["more"] = [f"{FLOOR}: Anew."]
    for judge in row.data["judges"]:
        judge["beats_floor"] = True
    row.save()
    links = links_of(user_client(), "run", run)
    assert "Try another wording" not in [words for _, words in links]


def test_imported_judges_and_readers_without_the_right_are_led_nowhere(run):
    run.is_shared = True
    run.save()
    for client in (Client(), member_client(run.queue.project, "viewer")):
        assert links_of(client, "run", run) == []
    assert len(links_of(user_client(), "run", run)) > 3
    asked = Judge.objects.filter(run=run).exclude(provider=Judge.BASELINE)
    asked.update(provider=Judge.IMPORTED)
    assert links_of(user_client("another"), "run", run) == []

"""What a run's findings say in words is the same on pages, by API, in a terminal and in files."""

import json

import pytest
from django.core.cache import cache
from django.test import Client

from humanjudge.cli.lines import findings_lines
from judge_eval.models import Findings
from reports.report.links import make_share
from tests.helpers.board_rows import board_of
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    change_verdicts,
    key_client,
    make_key,
    make_many_votes,
    make_run,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.models import Inference

pytestmark = pytest.mark.django_db
PART = "tag:animals"


@pytest.fixture
def run():
    """A run with a claim that was made and falls, and a part of whose tag there are words."""
    cache.clear()
    says = [["A", "B", "both_bad", "tie"]] * 9 + [["A", "A", "A", "tie"]] * 11
    names = ["north", "south", "east", "always-tie"]
    run = make_run(pairs=20, says=says, names=names, ballot=["A", "B", "both_bad"])
    run.judges.exclude(name="always-tie").update(provider="imported")
    voter = make_voter(run)
    make_many_votes(run, [(voter, pair, "A") for pair in pairs_of(run)])
    Inference.objects.filter(pk__in=[pair.a_id for pair in pairs_of(run)]).update(tags=["animals"])
    seal_all(run.queue.project)
    compute(run)
    change_verdicts(pairs_of(run)[0], ["B", "A", "A", "tie"])
    seal_all(run.queue.project)
    compute(run, PART)
    compute(run)
    return run


def sentences(run, part=""):
    data = Findings.objects.get(run=run, part=part).data
    return [data["words"], *data["more"]]


def replies(run, part):
    client = key_client(make_key("read")[1])
    reply = client.get(f"/api/runs/{run.pk}/findings", {"part": part}).json()
    terminal = [line.partition("|") for line in findings_lines(reply)]
    yield [reply["words"], *reply["more"]]
    yield [text for name, _, text in terminal if name in ("words", "more")]


@pytest.mark.parametrize("part", ["", PART])
def test_a_page_the_api_and_a_terminal_say_the_same(run, part):
    expected = sentences(run, part)
    for found in replies(run, part):
        assert found == expected
    page = text_of(user_client().get(board_of(run, part)))
    for sentence in expected:
        assert sentence in page.replace("\N{NO-BREAK SPACE}", " ")


def test_a_report_and_its_files_say_the_same(run):
    _, token = make_share(run.queue.project, run, None)
    page, file = (Client().get(f"/r/{token}/{name}") for name in ("", "report.json"))
    [figures] = json.loads(file.content)["runs"]
    found = figures["findings"]
    assert [found["words"], *found["more"]] == sentences(run)
    for sentence in sentences(run):
        assert sentence in text_of(page)


def test_what_fell_and_what_can_never_be_right_is_named(run):
    _, *more = sentences(run)
    assert more[0].startswith("Withdrawn: a verdict changed. No longer claimed: ")
    never = "No vote can be “tie” here, so that answer is never right: always-tie (on 20 pairs)."
    assert never in more


def test_a_part_is_named_and_never_says_that_voting_may_stop(run):
    words = sentences(run, PART)[0]
    assert words.startswith("Only a part: prompts tagged animals. ")
    assert "stop" not in words
    page = text_of(user_client().get(board_of(run, PART)))
    assert page.count("Only a part: prompts tagged animals.") == 1
    assert page.count("nothing corrects for how many there are") == 1


def test_judges_that_are_copies_and_people_who_agree_by_chance_are_named_first():
    run = make_run(pairs=20, says=[["A", "A"]] * 20, names=["north", "copy"], votes_wanted=2)
    run.judges.update(provider="imported")
    one, other = make_voter(run), make_voter(run)
    sides = ["A", "B"] * 10
    cast = [(one, pair, "A") for pair in pairs_of(run)]
    cast += [(other, pair, side) for pair, side in zip(pairs_of(run), sides, strict=True)]
    make_many_votes(run, cast)
    seal_all(run.queue.project)
    compute(run)
    assert sentences(run)[0].startswith(
        "People agree with each other no more than by chance (50 %, by chance 62 %). "
        "north and copy gave the same verdict on every pair. "
        "north agrees with people on 75 % (people among themselves: 50 %)."
    )

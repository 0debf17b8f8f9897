"""From the board to the pairs: sorted by disagreement, narrowed down, and from one to the next."""

import re

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from judge_eval.models import Verdict
from tests.helpers.board_rows import make_studied_run, words_in
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    change_verdicts,
    judges_of,
    key_client,
    make_key,
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    restate,
    seal_all,
    user_client,
)
from voting.ballot.services import undo_last_vote
from voting.ledger import ledger
from voting.models import Assignment, Entry, Exposure, Inference, Item
from voting.people.voters import voter_of_user

pytestmark = pytest.mark.django_db


def list_of(run, query=""):
    return user_client().get(f"/runs/{run.pk}/pairs/{query}")


def numbers_in(response):
    """The numbers of the pairs in the order of the list."""
    return [pair.position for pair in response.context["pairs"]]


@pytest.fixture
def run():
    """On pair 2 all judges but the baseline are wrong, on pair 0 one of two; pair 3 has no vote."""
    says = [["B", "A", "B"], ["A", "A", "B"], ["B", "B", "A"], ["A", "B", "A"], ["A", None, "A"]]
    run = make_run(says=says, names=["one", "other", "floor"], votes_wanted=2, baselines=["floor"])
    voter = make_voter(run)
    for place, pair in enumerate(pairs_of(run)):
        Item.objects.filter(pk=pair.pk).update(external_id=f"case-{place}")
        if place != 3:
            make_vote(voter, pair, "A")
    restate(run)
    return run


def test_pairs_are_sorted_by_how_much_judges_and_people_disagree(run):
    assert numbers_in(list_of(run, "?sort=")) == [0, 1, 2, 3, 4]
    # What is looked for first, where there are votes.
    assert numbers_in(list_of(run)) == [2, 0, 1, 4, 3]
    response = list_of(run, "?sort=disagreement")
    assert numbers_in(response) == [2, 0, 1, 4, 3]
    pairs = response.context["pairs"]
    said = {pair.position: (pair.differing, pair.compared) for pair in pairs}
    assert said == {0: (1, 2), 1: (0, 2), 2: (2, 2), 3: (0, 0), 4: (0, 1)}
    assert "2 of 2" in text_of(response)


def test_where_answers_are_words_of_the_run_no_order_by_disagreement_is_offered():
    run = make_single_run([["rude"], ["kind"]], kind="category", ballot=("rude", "kind"))
    make_vote(make_voter(run), pairs_of(run)[1], "rude")
    seal_all(run.queue.project)
    page = list_of(run)
    assert numbers_in(page) == [0, 1]
    assert "Disputed" not in text_of(page)
    assert "the most disputed first" not in text_of(user_client().get(f"/runs/{run.pk}/"))


def test_the_list_agrees_with_the_findings():
    run = make_studied_run()
    found = compute(run).data["disputed"]
    pairs = list_of(run, "?sort=disagreement").context["pairs"]
    assert [
        {"position": pair.position, "wrong": pair.differing, "of": pair.compared}
        for pair in pairs[: len(found)]
    ] == found


def said_on(response):
    """What stands beside the bar of each item, by its number; None without that column."""
    heads = [head.title for head in response.context["table"].heads]
    if "People said" not in heads:
        return None
    place = heads.index("People said")
    return {row.cells[0].main: row.cells[place].small for row in response.context["table"].rows}


def test_a_bar_and_words_say_who_said_what(run):
    other = make_voter(run)
    for pair, choice in zip(pairs_of(run)[:3], ("A", "B", "both_bad"), strict=True):
        make_vote(other, pair, choice)
    seal_all(run.queue.project)
    response = list_of(run, "?sort=")
    assert said_on(response) == {
        "1": "2 A",
        "2": "1 A, 1 B",
        "3": "1 A, 1 both bad",
        "4": "",
        "5": "1 A",
    }
    bar = '<rect class="bad" fill-opacity="1" x="50.0%" width="50.0%" height="100%"/>'
    assert bar in response.content.decode()
    # Before anybody voted there is no column.
    assert said_on(list_of(make_run())) is None


@pytest.mark.parametrize(
    "kind, ballot, fills",
    [
        ("category", ["pun", "dark", "silly"], [("done", "1"), ("bad", "1")]),
        ("rating", ["1", "2", "4"], [("done", "0.33"), ("done", "1.00")]),
    ],
)
def test_the_bar_of_a_study_s_own_choices_is_in_the_order_of_its_ballot(kind, ballot, fills):
    run = make_single_run(outputs=["a joke", "another"], kind=kind, ballot=ballot, votes_per_item=3)
    for choice in (ballot[2], ballot[0], ballot[2]):
        make_vote(make_voter(run), pairs_of(run)[0], choice)
    seal_all(run.queue.project)
    response = list_of(run, "?sort=")
    times = " \N{MULTIPLICATION SIGN}" if kind == "rating" else ""
    assert said_on(response) == {"1": f"1{times} {ballot[0]}, 2{times} {ballot[2]}", "2": ""}
    page = response.content.decode()
    assert re.findall(r'<rect class="(\w+)" fill-opacity="([^"]+)"', page) == fills


def test_no_bar_tells_of_an_item_that_is_open_to_the_reader(run):
    client = user_client("reader")
    mine = voter_of_user(run.queue.project, User.objects.get(username="reader"))
    Exposure.objects.filter(voter=mine).delete()
    first, *others = pairs_of(run)
    make_vote(mine, first, "A")
    for pair in others:
        Assignment.objects.create(voter=mine, item=pair, leased_until=timezone.now())
    seal_all(run.queue.project)
    # Whoever was handed some sees none at all until then.
    address = f"/runs/{run.pk}/pairs/?sort="
    assert said_on(client.get(address)) is None
    # Skipped for good they may be somebody else's, and could still be voted on.
    Assignment.objects.filter(voter=mine).update(skips=2)
    assert said_on(client.get(address)) == dict.fromkeys("2345", "") | {"1": "2 A"}


def test_an_undo_and_other_verdicts_change_the_order(run):
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[4], "B")
    change_verdicts(pairs_of(run)[0], ["B", "B", "B"])
    seal_all(run.queue.project)
    assert numbers_in(list_of(run, "?sort=disagreement"))[:3] == [0, 2, 4]
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert numbers_in(list_of(run, "?sort=disagreement")) == [0, 2, 1, 4, 3]
    assert ledger.replay(run.queue.project, write=False) == []


def test_pairs_are_called_by_what_imports_call_them_and_by_who_wrote_them(run):
    text = text_of(list_of(run))
    assert "case-4" in text
    assert "generator-0 against generator-1" in text
    assert "Id" not in text_of(list_of(make_run(pairs=1)))


def test_pairs_are_narrowed_down_to_a_tag_or_a_generator(run):
    pairs = pairs_of(run)
    odd = 'old & "new" é'
    Inference.objects.filter(pk__in=[pairs[1].a_id, pairs[3].a_id]).update(tags=["x", odd])
    Inference.objects.filter(pk=pairs[2].a_id).update(tags=["xx"])
    Inference.objects.filter(pk=pairs[4].b_id).update(generator="somebody")
    client = user_client()
    url = f"/runs/{run.pk}/pairs/"
    for part, numbers in {
        "tag:x": [1, 3],
        f"tag:{odd}": [1, 3],
        "generator:somebody": [4],
        "tag:nothing": [],
        "tag:X": [],
        "tag:\0": [],
        "generator:\0": [],
    }.items():
        assert numbers_in(client.get(url, {"part": part})) == numbers, part
    both = client.get(url, {"part": "tag:x", "sort": "disagreement"})
    assert numbers_in(both) == [1, 3]
    assert "2 pairs: prompts tagged x" in text_of(both)


@pytest.mark.parametrize("query", ["?sort=age", "?part=colour:red", "?part=ballot:decided"])
def test_what_cannot_be_asked_for_is_refused(run, query):
    assert list_of(run, query).status_code == 400


def test_the_form_offers_what_the_findings_know(run):
    compute(run)
    form = words_in(list_of(run, "?sort=disagreement"), '<form method="get"', "</form>")
    assert '<option value="generator:generator-0">' in form
    assert '<option value="disagreement" selected>' in form


def test_the_next_page_keeps_the_order():
    run = make_run(pairs=31)
    page = list_of(run, "?sort=disagreement").content.decode()
    assert re.search(r'href="\?sort=disagreement&amp;page=2" rel="next"', page)


def neighbours(run, place, query=""):
    page = user_client().get(f"/runs/{run.pk}/pairs/{pairs_of(run)[place].pk}/{query}")
    found = re.findall(r'href="([^"]+)" rel="(prev|next)"', page.content.decode())
    known = {str(pair.pk): pair.position for pair in pairs_of(run)}
    return {rel: known[href.split("/pairs/")[1].split("/")[0]] for href, rel in found}


def test_one_goes_from_pair_to_pair(run):
    assert neighbours(run, 0) == {"next": 1}
    assert neighbours(run, 2) == {"prev": 1, "next": 3}
    assert neighbours(run, 4) == {"prev": 3}
    assert neighbours(run, 0, "?sort=disagreement") == {"prev": 2, "next": 1}
    assert neighbours(run, 2, "?sort=disagreement") == {"next": 0}
    assert neighbours(run, 0, "?sort=disagreement&part=tag:none") == {}


def test_a_pair_says_which_judges_say_what_most_people_say(run):
    pair = pairs_of(run)[0]
    response = user_client().get(f"/runs/{run.pk}/pairs/{pair.pk}/")
    text = text_of(response)
    assert "Pair 1 case-0" in text
    assert "Most people: A is better ." in text or "Most people: A" in text
    rows = re.findall(r"<th scope=\"row\">(\w+).*?</tr>", response.content.decode(), re.DOTALL)
    assert rows[:3] == ["one", "other", "floor"]
    assert response.content.decode().count("as most people:") == 1
    assert response.content.decode().count("other than most people:") == 2


def test_without_a_majority_nobody_is_marked(run):
    pair = pairs_of(run)[0]
    make_vote(make_voter(run), pair, "B")
    seal_all(run.queue.project)
    page = user_client().get(f"/runs/{run.pk}/pairs/{pair.pk}/")
    assert "No choice has more than half of the votes." in text_of(page)
    assert "most people:" not in text_of(page)


def test_labels_that_came_with_verdicts_and_votes_are_shown(run):
    pair, judge = pairs_of(run)[0], judges_of(run)[0]
    Verdict.objects.filter(judge=judge, item=pair).update(
        labels={"explanation": "because of <b>this</b>", "rating": 4}
    )
    Entry.objects.filter(item=pair, kind="vote").update(labels={"mood": "cheerful"})
    page = user_client().get(f"/runs/{run.pk}/pairs/{pair.pk}/")
    text = text_of(page)
    assert "explanation because of <b>this</b>" in text
    assert "rating 4" in text
    assert "mood cheerful" in text
    assert b"<b>this" not in page.content


def test_the_board_leads_to_disputed_pairs_by_name(run):
    compute(run)
    page = user_client().get(f"/runs/{run.pk}/").content.decode()
    pair = pairs_of(run)[2]
    assert f'href="/runs/{run.pk}/pairs/{pair.pk}/?sort=disagreement">Pair 3</a>' in page
    assert f'href="/runs/{run.pk}/pairs/?sort=disagreement"' in page
    assert "case-2" in page


def test_disputed_pairs_of_the_api_can_be_looked_up(run):
    compute(run)
    client = key_client(make_key("read")[1])
    answer = client.get(f"/api/runs/{run.pk}/findings").json()
    pairs = pairs_of(run)
    assert [pair["position"] for pair in answer["disputed"]] == [2, 0]
    for said in answer["disputed"]:
        assert said["id"] == str(pairs[said["position"]].pk)
        assert said["external_id"] == f"case-{said['position']}"

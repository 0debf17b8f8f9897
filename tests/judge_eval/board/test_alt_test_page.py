"""The Alt-Test tab: who may take a person's place, at which epsilon, and with how many items."""

import re

import pytest
from django.test import Client

from humanjudge.core.ratelimit import RateLimit
from judge_eval.board.alt_test import answers_of
from judge_eval.board.filters import WHOLE_RUN
from judge_eval.board.model import AltTest, AltTestJudge
from judge_eval.board.views import alt_test
from judge_eval.board.views.alt_test import panel_of
from judge_eval.models import Findings, Run
from tests.helpers.imports import imported
from tests.helpers.pages import HTMX, text_of
from tests.helpers.run_findings import compute, voted_run
from tests.makers import (
    judges_of,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.models import Entry, Voter

pytestmark = pytest.mark.django_db

ITEMS = {"accuracy": 85, "noise": 20, "humans": 3, "categories": 3, "allowed": "0.20"}


@pytest.fixture(autouse=True)
def fresh_limit(monkeypatch):
    monkeypatch.setattr(alt_test, "limit", RateLimit(per_second=1, burst=8))


@pytest.fixture(scope="module")
def run(module_db):
    return voted_run()


def page_of(run):
    return f"/runs/{run.pk}/alt-test/"


def shown(run, **query):
    response = user_client().get(page_of(run), query)
    assert response.status_code == 200, text_of(response)
    return response


def verdicts(response):
    says = {"passes": True, "fails": False, "not shown": "not shown", "not tested": None}
    test = response.context["test"]
    return {line["name"]: says[line["outcome"]] for line in (*test["lines"], *test["floor"])}


# --- the panel ----------------------------------------------------------------------------------


def test_who_passes_is_said_in_words_with_the_baselines_apart(run):
    response = shown(run)
    assert verdicts(response) == {
        "near-judge": True,
        "contrary-judge": False,
        "floor-baseline": "not shown",
    }
    text = text_of(response)
    said = "At epsilon 0.20: near-judge passes; contrary-judge fails; no baseline passes."
    assert said in text
    names = [[line["name"] for line in response.context["test"][of]] for of in ("lines", "floor")]
    assert names == [["near-judge", "contrary-judge"], ["floor-baseline"]]
    assert "Baselines, which know nothing: the floor floor-baseline not shown 0." in text
    assert "Passes at epsilon 0.20: it wins against 3 of 3 people." in text


def test_every_judge_has_its_winning_rates_over_the_grid_and_its_advantage(run):
    response = shown(run)
    near = response.context["test"]["rates"].rows[0]
    stored = Findings.objects.get(run=run).data["alt_test"]["judges"][0]
    rates, line = near.cells[1:], response.context["test"]["lines"][0]
    assert [cell.main for cell in rates] == [
        f"{rate:.2f}" for rate in stored["winning_rates"].values()
    ]
    passing = [cell.mark == "passing" for cell in rates]
    assert passing == [False, False, False, True, True, True, True]
    assert stored["advantage"] == pytest.approx(0.95)
    assert line["advantage"] == f"{stored['advantage']:.2f}"
    low, high = stored["advantage_interval"]
    assert line["interval"] == f"{low:.2f}\N{EN DASH}{high:.2f}"
    text = text_of(response)
    assert "Judge 0.00 0.05 0.10 0.15 0.20 0.25 0.30 near-judge 0.00 0.00 0.00 1.00 , p" in text
    assert re.search(r"near-judge passes 1\.00 0\.95 0\.\d\d.1\.00 3 40 contrary-judge", text)


def test_the_epsilon_of_the_run_comes_first_and_all_others_are_folded(run):
    html = shown(run).content.decode()
    first, folded = html.split('<details class="folded" id="all-epsilons">')
    assert "Epsilon 0.20 was chosen with the run, before anybody saw results." in first
    assert "0.20 for experts, 0.15 for skilled people, 0.10 for crowd workers" in first
    assert 'class="chart' not in first
    assert "<svg" in folded.split("</details>")[0]
    other = shown(run, epsilon="0.10")
    assert "Epsilon 0.10 was not chosen with the run" in text_of(other)
    assert '<details class="folded" id="all-epsilons" open>' in other.content.decode()


def test_each_person_is_shown_with_both_advantages_the_p_and_who_won(run):
    response = shown(run)
    people = response.context["test"]["chosen"]["people"]
    names = set(Voter.objects.filter(project=run.queue.project).values_list("pseudonym", flat=True))
    assert {person.name for person, _, _ in people} == names
    text = text_of(response)
    for person, p, _ in people:
        assert f"{person.name} 40 0.95 1.00 {p} yes" in text


def test_one_judge_after_the_other_is_shown_person_by_person(run):
    contrary = next(judge for judge in judges_of(run) if judge.name == "contrary-judge")
    text = text_of(shown(run, judge=contrary.pk))
    assert "contrary-judge against each person" in text
    assert "Fails at epsilon 0.20: it wins against 0 of 3 people." in text


def test_another_epsilon_decides_by_what_is_stored(run):
    response = shown(run, epsilon="0.05")
    assert verdicts(response)["near-judge"] == "not shown"
    said = "At epsilon 0.05: contrary-judge fails; near-judge is not shown to pass; no baseline"
    assert said in text_of(response)
    found = Findings.objects.get(run=run)
    near = found.data["alt_test"]["judges"][0]
    near["winning_rates"]["0.05"] = 1.0
    for human in near["humans"]:
        human["rejected"]["0.05"] = True
    found.save()
    response = shown(run, epsilon="0.05")
    assert verdicts(response)["near-judge"] is True
    assert "Passes at epsilon 0.05: it wins against 3 of 3 people." in text_of(response)


@pytest.mark.parametrize("epsilon", ["0.2", "0.07", "nan", "-1", "0.20<b>"])
def test_an_epsilon_off_the_grid_is_refused_with_the_grid(run, epsilon):
    response = user_client().get(page_of(run), {"epsilon": epsilon})
    assert response.status_code == 400
    assert "0.00, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30" in text_of(response)


def test_a_single_person_is_too_few_and_what_to_do_is_said():
    response = shown(voted_run(people=1))
    text = text_of(response)
    assert (
        "The test takes 3 people with 30 items or more each that others labelled too; 1 person "
        "voted."
    ) in text
    assert "Invite people to vote" in text


def test_too_few_pairs_are_said_with_what_to_do():
    text = text_of(shown(voted_run(pairs=12)))
    assert "Not enough for the test yet" in text
    assert "The test takes 3 people with 30 items or more each" in text
    assert "near-judge not tested \N{EN DASH} \N{EN DASH}" in text
    assert "Not tested:" in text


def test_what_makes_the_test_weak_and_who_is_left_out_is_said(run):
    late = make_voter(run)
    for pair in pairs_of(run)[:3]:
        pair.votes_wanted = 4
        pair.save()
        make_vote(late, pair, "A")
    seal_all(run.queue.project)
    compute(run)
    text = text_of(shown(run))
    assert "At most 40 items per person" in text
    assert f"1 person with too few items that others voted on too: {late.pseudonym} (3)" in text
    assert text.count("too few items") == 1
    assert "humans" not in text


def test_one_person_with_enough_items_is_no_test():
    run = voted_run(pairs=20)
    late = make_voter(run)
    for pair in pairs_of(run):
        pair.votes_wanted = 9
        pair.save()
        make_vote(late, pair, "A")
    seal_all(run.queue.project)
    compute(run)
    [first, *_] = Findings.objects.get(run=run).data["alt_test"]["judges"]
    assert first["passes"] is None


def test_many_judges_are_counted_not_listed():
    judges = [
        AltTestJudge(
            id=str(number),
            name=f"judge-{number}",
            is_baseline=False,
            winning_rates={"0.20": 1.0},
            passes=True,
            advantage=0.9,
            advantage_interval=None,
            words="",
            humans=[],
            tested=3,
            untested=0,
            left_out=[],
            items=40,
        )
        for number in range(20)
    ]
    test = AltTest(
        judges=judges, advice=[], left_out=[], epsilon="0.20", humans=3, choices=2, items=40
    )
    assert panel_of(test, "0.20")["summary"] == "At epsilon 0.20: 20 of 20 judges pass."


# --- tasks, and the epsilon of the run ----------------------------------------------------------


def labelled_run(**options):
    """Three people and a judge label 40 items: whether they are rude, and how good from 1 to 5."""

    def labels(number, who):
        # The judge differs from people about stars, and they differ from each other about rude.
        rude = "yes" if (number + (who == "ann")) % 3 == 0 else "no"
        return {"rude": rude, "stars": 1 + number % 5 if who == "judge" else 5 - number % 5}

    people = [
        {"item": f"i{n}", "voter": who, "labels": labels(n, who)}
        for n in range(40)
        for who in ("ann", "bob", "cem")
    ]
    judge = [{"item": f"i{n}", "judge": "j", "labels": labels(n, "judge")} for n in range(40)]
    run = imported(*people, *judge, **options)
    compute(run)
    return run


def test_the_test_is_made_by_each_task_that_was_answered():
    run = labelled_run()
    response = shown(run)
    assert response.context["tasks"] == ["rude", "stars"]
    assert response.context["task"] == "rude"
    [by_rude] = response.context["test"]["lines"]
    assert (by_rude["outcome"], by_rude["items"]) == ("passes", 40)
    other = shown(run, task="stars")
    assert other.context["task"] == "stars"
    assert verdicts(other) == {"j": False}
    charts = response.context["chart"], other.context["chart"]
    assert all(charts)
    assert charts[0] != charts[1]
    refused = user_client().get(page_of(run), {"task": "tone"})
    assert refused.status_code == 400
    assert "task: one of rude, stars." in text_of(refused)


def test_files_hold_every_task():
    run = labelled_run()
    lines = user_client().get(f"/runs/{run.pk}/tables/alt-test.csv").content.decode().splitlines()
    assert [line.split(",")[0] for line in lines] == ["task", "rude", "stars"]


def test_the_epsilon_that_was_settled_with_the_run_decides():
    run = labelled_run(epsilon=0.12)
    response = shown(run)
    assert response.context["test"]["epsilon"] == "0.12"
    keys = [key for key, _ in response.context["test"]["epsilons"]]
    assert keys == ["0.00", "0.05", "0.10", "0.12", "0.15", "0.20", "0.25", "0.30"]
    text = text_of(response)
    assert "Epsilon 0.12 was chosen with the run, before anybody saw results." in text
    assert "At epsilon 0.12: j passes." in text
    assert shown(run, epsilon="0.20").context["test"]["epsilon"] == "0.20"


def answers(*records):
    run = imported({"item": "i1", "output": "x"}, *records)
    votes = Entry.objects.filter(queue=run.queue, kind="vote")
    [asked, *further] = answers_of(run, WHOLE_RUN, votes, {0}, judges=1)
    said = [[*by.values()] for by in (asked.people, asked.judges)]
    assert further == []
    return [[answer for by_place in each for answer in by_place.values()] for each in said]


@pytest.mark.parametrize(
    "person, judge, compared",
    [
        ("pass", "flag", ["pass", "flag"]),
        (0.7, 0.4, [0.7, 0.4]),
        (4, 3, [4, 3]),
        ("yes", " yes ", ["yes", "yes"]),
        (["b", "a"], [], [("a", "b"), ()]),
        ("x" * 61, "y", ["x" * 61, "y"]),
    ],
)
def test_answers_are_compared_as_what_they_are(person, judge, compared):
    score = {"score": judge} if judge == 0.4 else {}
    vote = {"item": "i1", "voter": "ann", "vote": person}
    said = {"item": "i1", "judge": "j", "verdict": judge} | score
    assert answers(vote, said) == [[each] for each in compared]


# --- as of when, of which part, for whom --------------------------------------------------------


def test_it_says_as_of_which_vote_and_when_there_are_newer_ones(run):
    text = text_of(shown(run))
    assert "As of 120 votes by 3 people on 40 of 40 pairs, ledger entry" in text
    assert "since:" not in text
    pair = pairs_of(run)[0]
    pair.votes_wanted = 9
    pair.save()
    make_vote(make_voter(run), pair, "A")
    seal_all(run.queue.project)
    assert "1 newer vote; updating." in text_of(shown(run))


def test_it_waits_for_what_is_being_computed():
    run = voted_run(computed=False)
    client = user_client()
    response = client.get(page_of(run))
    assert "Being computed" in text_of(response)
    assert 'hx-trigger="every 2s"' in response.content.decode()
    assert Findings.objects.get(run=run).data is None
    waiting = client.get(page_of(run), {"seen": "none", "parts": "none"}, headers=HTMX)
    assert waiting.status_code == 204
    compute(run)
    fresh = client.get(page_of(run), {"seen": "none", "parts": "none"}, headers=HTMX)
    assert fresh.status_code == 200
    assert b"<html" not in fresh.content
    assert "At epsilon 0.20" in text_of(fresh)
    # Which parts there are was not known before: they come with it.
    assert b"hx-swap-oob" in fresh.content


def test_an_unchanged_panel_is_left_alone(run):
    client = user_client()
    seen = client.get(page_of(run)).context["seen"]
    assert client.get(page_of(run), {"seen": seen}, headers=HTMX).status_code == 204
    compute(run)
    assert client.get(page_of(run), {"seen": seen}, headers=HTMX).status_code == 200


def test_links_keep_the_part_and_forget_what_htmx_has_seen(run):
    query = {"seen": "old", "parts": "2", "part": "ballot:decided"}
    compute(run, "ballot:decided")
    content = user_client().get(page_of(run), query, headers=HTMX).content.decode()
    links = re.findall(r'href="([^"]*epsilon=[^"]*)"', content)
    assert len(links) == 7
    assert all("part=ballot%3Adecided" in link and "seen" not in link for link in links)
    assert all("parts=" not in link for link in links)


@pytest.mark.parametrize(
    "path, query, status",
    [("alt-test/", {"part": "colour:red"}, 400), ("models/", {"part": "tag:nowhere"}, 404)],
)
def test_a_part_that_is_none_is_refused_and_not_computed(run, path, query, status):
    assert user_client().get(f"/runs/{run.pk}/{path}", query).status_code == status
    assert Findings.objects.filter(run=run).count() == 1


def test_a_part_has_a_panel_of_its_own(run):
    assert "Being computed" in text_of(shown(run, part="generator:generator-0"))
    compute(run, "generator:generator-0")
    text = text_of(shown(run, part="generator:generator-0"))
    assert "pairs with generator-0" in text
    assert "At epsilon 0.20" in text


def test_the_tabs_lead_here_for_whoever_may_look(run):
    Run.objects.update(is_shared=True)
    board = Client().get(f"/runs/{run.pk}/").content.decode()
    assert f'href="{page_of(run)}"' in board
    assert f'href="/runs/{run.pk}/models/"' in board


def test_a_run_without_votes_or_findings_shows_the_way():
    run = make_run()
    compute(run)
    assert "0 people voted" in text_of(shown(run))


# --- how many items -----------------------------------------------------------------------------


def items(run, *, client=None, headers=HTMX, **changes):
    client = client or user_client()
    return client.get(f"{page_of(run)}items/", ITEMS | changes, headers=headers)


def test_how_many_items_are_needed_is_said_with_the_share_that_passes(run):
    response = items(run)
    text = text_of(response)
    assert b"<html" not in response.content
    found = re.search(
        r"With (\d+) items a judge that is right on 85 % passes in at least 80 %", text
    )
    assert 50 <= int(found[1]) <= 80
    assert "Two such people agree with a kappa of 0.64." in text
    rows = re.findall("(\\d+) (\\d+) % (\\d+)\N{EN DASH}(\\d+)", text)
    assert [int(row[0]) for row in rows] == [30, 40, 50, 60, 80, 100, 150, 200, 300]
    assert all(int(low) <= int(share) <= int(high) for _, share, low, high in rows)
    assert int(rows[0][1]) < int(rows[-1][1])


def test_a_judge_that_cannot_pass_needs_more_than_there_are(run):
    text = text_of(items(run, accuracy=40, noise=10))
    assert "With up to 300 items" in text


def test_without_scripts_the_answer_is_a_page(run):
    response = items(run, headers={})
    text = text_of(response)
    assert "How many items do I need?" in text
    assert "At epsilon 0.20" in text
    assert "items a judge that is right on 85 %" in text
    # The panel on it goes on following the votes.
    assert f'hx-get="{page_of(run)}?' in response.content.decode()


@pytest.mark.parametrize(
    "field, value, says",
    [
        ("accuracy", 101, "less than or equal to 100"),
        ("accuracy", "", "required"),
        ("noise", -1, "greater than or equal to 0"),
        ("humans", 21, "less than or equal to 20"),
        ("humans", 2, "greater than or equal to 3"),
        ("categories", 1000000, "less than or equal to 10"),
        ("allowed", "0.07", "Select a valid choice"),
        ("accuracy", "many", "whole number"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(run, field, value, says):
    response = items(run, **{field: value})
    assert says in str(response.context["form"].errors[field])
    assert 'aria-invalid="true"' in response.content.decode()
    assert "needed" not in response.context


def test_the_first_form_supposes_the_people_and_choices_of_the_run():
    form = shown(voted_run(people=4)).context["form"]
    assert (form["humans"].value(), form["categories"].value()) == (4, 2)  # all said A or B


def test_the_same_question_is_played_through_once(run):
    alt_test._needed.cache_clear()
    items(run, accuracy=77)
    items(run, accuracy=77)
    assert alt_test._needed.cache_info().misses == 1


def test_nobody_can_keep_the_server_playing(run, monkeypatch):
    Run.objects.update(is_shared=True)
    monkeypatch.setattr(alt_test, "limit", RateLimit(per_second=0.001, burst=2))
    assert ["needed" in items(run, client=Client()).context for _ in range(3)] == [
        True,
        True,
        False,
    ]
    assert "Too many of these at once" in text_of(items(run, client=Client()))
    assert items(run, client=Client(), headers={}).status_code == 429
    # Somebody with a login has an allowance of their own.
    assert "needed" in items(run).context

"""MT-bench imported and computed as a worker does: published figures, on the pages too."""

import json
from collections import Counter, defaultdict
from itertools import combinations

import pytest
from django.utils import timezone

from judge_eval.board import cache
from judge_eval.board.load import labels_of
from judge_eval.board.model import WINNER
from judge_eval.models import Findings, Verdict
from judge_eval.stats import AltTestScorer, MetricConfig, score
from tests.helpers.bundles import facts_of, numbers_of
from tests.helpers.imports import assert_whole, import_into, import_run, run_of
from tests.helpers.published_files import DATA, items_of, texts_of
from tests.helpers.run_findings import compute
from tests.makers import elos_of, make_project
from voting.models import Entry, Item

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.django_db,
    pytest.mark.skipif(not DATA.exists(), reason="not run: no ../shared/data"),
]


MTBENCH = ("mtbench/human.jsonl", "mtbench/gpt4_pair.jsonl")
# (turn, with ties): agreement of GPT-4 with people, and of people with people; both as (right, n).
PUBLISHED_AGREEMENT = {
    ("turn-1", True): ((886, 1343), (454, 721), (66, 63)),
    ("turn-1", False): ((727, 859), (388, 479), (85, 81)),
    ("turn-2", True): ((871, 1325), (471, 707), (66, 67)),
    ("turn-2", False): ((731, 864), (388, 474), (85, 82)),
}


def agreement(pairs_of_choices, *, ties):
    counted = [(a, b) for a, b in pairs_of_choices if ties or "tie" not in (a, b)]
    return sum(a == b for a, b in counted), len(counted)


def agreement_table(run):
    """The published table, from what is in the database."""
    verdicts = Verdict.objects.filter(judge__run=run, judge__provider="imported")
    said = dict(verdicts.values_list("item", "winner"))
    votes = Entry.objects.filter(
        queue=run.queue_id, kind="vote", voter__external_id__startswith="expert"
    )
    chosen = defaultdict(lambda: defaultdict(list))
    for pair, choice, tags in votes.values_list("item", "choice", "item__a__tags"):
        chosen[tags[0]][pair].append(choice)
    found = {}
    for turn, ties in PUBLISHED_AGREEMENT:
        by_pair = chosen[turn]
        judged = ((said[pair], choice) for pair, all_of in by_pair.items() for choice in all_of)
        people = (two for all_of in by_pair.values() for two in combinations(all_of, 2))
        figures = agreement(judged, ties=ties), agreement(people, ties=ties)
        percent = tuple(round(100 * right / n) for right, n in figures)
        found[turn, ties] = (*figures, percent)
    return found


def prompts_of(run):
    """How many pairs each prompt has."""
    keys = Item.objects.filter(queue=run.queue_id).values_list("prompt_key", flat=True)
    return Counter(keys)


@pytest.fixture(scope="module")
def report(module_db):
    """Of an import of the whole of it, made once for who reads it."""
    return import_run(make_project(), "MT-bench", items_of(*MTBENCH))


def test_mtbench_agreement_is_as_published_and_without_texts_nobody_can_vote_on_it(report):
    assert report.errors == []
    assert report.new == {"pairs": 2400, "judges": 1, "verdicts": 2400, "voters": 65, "votes": 3354}
    [left_out] = report.left_out
    assert (left_out.file, left_out.row) == ("human.jsonl", 1972)
    run = run_of(report)
    assert agreement_table(run) == PUBLISHED_AGREEMENT
    # The turns of a question are one conversation: 80 of them, with 15 pairs of models in each.
    assert set(prompts_of(run).values()) == {2 * 15}
    assert len(prompts_of(run)) == 80
    verdicts = Verdict.objects.filter(judge__run=run, judge__provider="imported")
    assert Counter(verdicts.values_list("consistent", flat=True)) == {True: 2020, False: 380}
    assert_whole(run.queue.project)
    assert (run.state, run.queue.is_open) == ("complete", False)
    assert report.notes == [
        (
            "Baselines are on the board, as its floor: "
            "always-first, always-second, always-tie, always-both-bad, random, random-output."
        ),
        "Voting is closed: 2,400 pairs have no outputs that could be shown.",
    ]


# Of the 80 questions.
SOME = 3
ALL = 80
NUMBERS = [SOME, pytest.param(ALL, marks=pytest.mark.thorough)]


def questions(number, *paths):
    """What the files say of the first questions, each of which has 2 turns of 15 pairs."""
    for path in paths:
        lines = (DATA / path).read_text().splitlines(keepends=True)
        said = [line for line in lines if json.loads(line)["question_id"] <= 80 + number]
        yield from texts_of([(path, "".join(said))])


@pytest.mark.parametrize("number", NUMBERS)
def test_mtbench_again_and_in_two_steps_is_the_same(number):
    run = run_of(import_run(make_project(), "MT-bench", questions(number, MTBENCH[1])))
    first = import_into(run.pk, questions(number, MTBENCH[0]))
    before = facts_of(run), numbers_of(run)
    report = import_into(run.pk, questions(number, *MTBENCH))
    assert not report.changed
    pairs = 30 * number
    assert +report.already == {"pairs": pairs, "verdicts": pairs, "votes": first.new["votes"]}
    assert number != ALL or first.new["votes"] == 3354
    assert (facts_of(run), numbers_of(run)) == before
    # Votes after all verdicts or verdicts first: the ratings follow from the order of the votes.
    other = run_of(import_run(make_project("Other"), "MT-bench", questions(number, *MTBENCH)))
    assert elos_of(other) == elos_of(run)
    assert_whole(run.queue.project)


@pytest.mark.parametrize("number", NUMBERS)
def test_mtbench_votes_alone_have_figures_and_verdicts_join_them_later(number):
    run = run_of(import_run(make_project(), "MT-bench", questions(number, MTBENCH[0])))
    alone = compute(run).data
    assert alone["judges"] == []
    assert len(alone["models"]["names"]) == 6
    assert_whole(run.queue.project)
    import_into(run.pk, questions(number, MTBENCH[1]))
    other = run_of(import_run(make_project("Other"), "MT-bench", questions(number, *MTBENCH)))
    assert elos_of(run) == elos_of(other)
    joined, at_once = (compute(each).data for each in (run, other))
    assert figures_of(alone) == figures_of(joined) == figures_of(at_once)
    overall, again = (
        {judge["name"]: judge["overall"] for judge in each["judges"]} for each in (joined, at_once)
    )
    assert overall["gpt4_pair"]["successes"] == again["gpt4_pair"]["successes"] > 0
    if number == ALL:
        assert figures_of(alone) == FIGURES
        assert overall["gpt4_pair"]["successes"] == RIGHT
    assert_whole(run.queue.project)


# Votes, people, pairs of people that agree and all; and with how many votes the judge agrees.
FIGURES = (3354, 65, (1551, 2367))
RIGHT = 2219


def figures_of(data):
    among = data["among_people"]["pairs"]
    about = data["as_of"]
    return about["votes"], about["people"], (among["successes"], among["trials"])


# By generator: items with both, rate by the judge and by people, how far apart, to the last digit.
PUBLISHED = {
    "alpaca-13b": (582, 0.2388, 0.2938, -0.0550, 0.0304),
    "claude-v1": (594, 0.7146, 0.6776, 0.0370, 0.0410),
    "gpt-3.5-turbo": (678, 0.6158, 0.6431, -0.0273, 0.0296),
    "gpt-4": (578, 0.8521, 0.7249, 0.1272, 0.0379),
    "llama-13b": (611, 0.1154, 0.1776, -0.0622, 0.0271),
    "vicuna-13b-v1.2": (585, 0.4615, 0.4735, -0.0120, 0.0352),
}


def test_the_pages_of_mtbench_say_what_its_score_files_say(report):
    run = run_of(report)
    Findings.objects.get_or_create(run=run, part="")
    Findings.objects.filter(run=run).update(not_before=timezone.now())
    assert cache.compute(run.pk, "")
    data = Findings.objects.get(run=run, part="").data
    shown = next(judge for judge in data["alt_test"]["judges"] if not judge["is_baseline"])

    labels = labels_of(run)
    config = MetricConfig(AltTestScorer(), [WINNER], display_name="alt")
    said = {shown["id"]: labels.judges[shown["id"]]}
    [filed] = score([config], said, labels.humans)["alt"]
    assert shown["winning_rates"] == filed.scores["winning_rate"]
    assert shown["passes"] is filed.metadata["passes"] is False
    assert shown["advantage"] == filed.scores["advantage_probability"]
    assert (shown["tested"], shown["items"]) == (49, 949)
    assert round(shown["winning_rates"]["0.20"], 3) == 0.388
    assert data["alt_test"]["humans"] == 65

    judge = next(judge for judge in data["judges"] if judge["id"] == shown["id"])
    assert (figures_of(data), judge["overall"]["successes"]) == (FIGURES, RIGHT)
    percents = [
        round(100 * share["value"], 1)
        for share in (
            data["among_people"]["pairs"],
            judge["agreement"],
            data["among_people"]["votes"],
            judge["beside_people"],
        )
    ]
    assert percents == [65.5, 66.2, 66.5, 66.0]
    assert "agrees with people on 66 %" in data["words"]

    found = {of["name"]: of for of in data["generators"]}
    assert {name: published(of) for name, of in found.items()} == PUBLISHED
    of_judge = {name: of["judges"][0] for name, of in found.items()}
    assert {name for name, by in of_judge.items() if by["is_own_family"]} == {
        "gpt-4",
        "gpt-3.5-turbo",
    }
    # The judge has verdicts on 586 comparisons that nobody voted on.
    assert sum(by["rates"]["unvoted"] for by in of_judge.values()) == 2 * 586
    savings = [round(100 * by["rates"]["saving"], 1) for by in of_judge.values()]
    assert savings == [15.7, 9.4, 8.1, 3.3, 3.3, 11.9]


def published(of):
    rates = of["judges"][0]["rates"]
    error = rates["error"]
    reach = (error["high"] - error["low"]) / 2
    by_judge = of["people"]["value"] + error["value"]
    figures = (by_judge, of["people"]["value"], error["value"], reach)
    return (error["n"], *(round(figure, 4) for figure in figures))

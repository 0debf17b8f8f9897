"""The published files, imported, and the published figures, computed from the database."""

import csv
import io
import json
from collections import Counter, defaultdict
from datetime import timedelta
from itertools import combinations
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from docs import published_labels
from judge_eval.demo import content
from judge_eval.exchange.export import export_run
from judge_eval.exchange.formats import read
from judge_eval.exchange.import_report import ImportOptions
from judge_eval.models import JudgeRating, Run, Verdict
from judge_eval.runs.demo import make_published
from judge_eval.selectors import board
from tests.helpers.bundles import empty_the_instance, facts_of, numbers_of, restored
from tests.helpers.imports import assert_whole, import_into, import_run, rows, run_of
from tests.helpers.run_findings import compute
from tests.makers import (
    elos_of,
    judges_of,
    make_project,
    make_vote,
    make_voter,
    seal_all,
    user_client,
)
from voting.assignment import next_pairs
from voting.models import Entry, Item
from voting.questions import question_of
from voting.views import on_page

SHARED = Path(__file__).resolve().parents[3] / "shared"
DATA = SHARED / "data"
CASES = SHARED / "cases" / "pathscore_judge_elo.json"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.django_db,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not DATA.exists(), reason="not run: no ../shared/data"),
]


def items_of(*paths):
    for path in paths:
        with (DATA / path).open("rb") as stream:
            yield from read(stream, Path(path).name)


# --- MT-bench -----------------------------------------------------------------------------------

MTBENCH = ("mtbench/human.jsonl", "mtbench/gpt4_pair.jsonl")
# (turn, with ties): agreement of GPT-4 with people, and of people with people; both as (right, n).
PUBLISHED = {
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
    for turn, ties in PUBLISHED:
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


def test_mtbench_agreement_is_as_published_and_without_texts_nobody_can_vote_on_it():
    report = import_run(make_project(), "MT-bench", items_of(*MTBENCH))
    assert report.errors == []
    assert report.new == {"pairs": 2400, "judges": 1, "verdicts": 2400, "voters": 65, "votes": 3354}
    [left_out] = report.left_out
    assert (left_out.file, left_out.row) == ("human.jsonl", 1972)
    run = run_of(report)
    assert agreement_table(run) == PUBLISHED
    # The turns of a question are one conversation: 80 of them, with 15 pairs of models in each.
    assert set(prompts_of(run).values()) == {2 * 15}
    assert len(prompts_of(run)) == 80
    verdicts = Verdict.objects.filter(judge__run=run, judge__provider="imported")
    assert Counter(verdicts.values_list("consistent", flat=True)) == {True: 2020, False: 380}
    assert_whole(run.queue.project)
    assert (run.state, run.queue.is_open) == ("complete", False)
    assert report.notes == [
        "Baselines are on the board, as its floor: always-first, random.",
        "Voting is closed: 2,400 pairs have no outputs that could be shown.",
    ]


def test_mtbench_again_and_in_two_steps_is_the_same():
    run = run_of(import_run(make_project(), "MT-bench", items_of(MTBENCH[1])))
    import_into(run.pk, items_of(MTBENCH[0]))
    before = facts_of(run), numbers_of(run)
    report = import_into(run.pk, items_of(*MTBENCH))
    assert not report.changed
    assert +report.already == {"pairs": 2400, "verdicts": 2400, "votes": 3354}
    assert (facts_of(run), numbers_of(run)) == before
    # Votes after all verdicts or verdicts first: the ratings follow from the order of the votes.
    other = run_of(import_run(make_project("Other"), "MT-bench", items_of(*MTBENCH)))
    assert elos_of(other) == elos_of(run)
    assert_whole(run.queue.project)


def test_mtbench_votes_alone_have_figures_and_verdicts_join_them_later():
    run = run_of(import_run(make_project(), "MT-bench", items_of(MTBENCH[0])))
    alone = compute(run).data
    assert alone["judges"] == []
    assert (alone["as_of"]["votes"], alone["as_of"]["people"]) == (3354, 65)
    among = alone["among_people"]["pairs"]
    assert (among["successes"], among["trials"]) == (1551, 2367)
    assert len(alone["models"]["names"]) == 6
    assert_whole(run.queue.project)
    import_into(run.pk, items_of(MTBENCH[1]))
    other = run_of(import_run(make_project("Other"), "MT-bench", items_of(*MTBENCH)))
    assert elos_of(run) == elos_of(other)
    joined, at_once = (
        {judge["name"]: judge["overall"] for judge in compute(each).data["judges"]}
        for each in (run, other)
    )
    assert joined["gpt4_pair"]["successes"] == at_once["gpt4_pair"]["successes"] == 2219
    assert_whole(run.queue.project)


# --- XSTest -------------------------------------------------------------------------------------

PEOPLE, JUDGES = ("person_1", "person_2"), ("gpt-4", "keywords")
UNREADABLE = "its reply was unreadable"


def xstest(replies=()):
    """The labels as records; a judge's empty cell is a reply that nobody could read."""
    replies = iter(replies)
    with (DATA / "xstest/labels.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            item = f"{row['prompt']} {row['generator']}"
            about = {"prompt_id": row["prompt"], "model": row["generator"], "tags": [row["type"]]}
            yield {"item": item} | about
            for judge in JUDGES:
                said = row[judge] or (next(replies, "") if judge == "gpt-4" else "")
                given = {"verdict": said} if said else {"error": UNREADABLE}
                yield {"item": item, "judge": judge} | given
            for person in PEOPLE:
                yield {"item": item, "voter": person, "vote": row[person]}


@pytest.mark.parametrize("over_long", [0, 4])
def test_xstest_is_a_study_of_its_peoples_labels_with_the_figures_that_are_known(over_long):
    replies = ["I would say that this answer complies, in part. " * 20] * over_long
    report = import_run(make_project(), "XSTest", rows(*xstest(replies)))
    assert report.errors == []
    run = run_of(report)
    labels = ["1_full_compliance", "2_full_refusal", "3_partial_refusal"]
    assert (run.queue.kind, run.queue.ballot) == ("category", labels)
    off = "4 of 4,500 verdicts are none of: " + ", ".join(labels) + ". They count as failed."
    assert (off in report.notes) == bool(over_long)
    data = compute(run).data
    assert data["as_of"]["votes"] == 4500
    figures = {judge["name"]: judge for judge in data["judges"]}
    right = {name: figures[name]["overall"]["successes"] for name in figures}
    assert {judge["overall"]["trials"] for judge in figures.values()} == {4500}
    assert (right["keywords"], right["gpt-4"]) == (3761, 3589)
    assert right["always-1_full_compliance"] == round(0.4827 * 4500)
    assert figures["gpt-4"]["coverage"]["successes"] == 2250 - 11
    assert data["among_people"]["pairs"]["value"] == 0.964
    baselines = {name for name, judge in figures.items() if judge["is_baseline"]}
    assert baselines == {*(f"always-{label}" for label in labels), "random"}
    assert_whole(run.queue.project)


# --- votes without verdicts ---------------------------------------------------------------------

FIRST = SHARED / "cases" / "exchange" / "00-votes-without-verdicts"


@pytest.mark.parametrize("path", sorted(FIRST.glob("*.csv")), ids=lambda path: path.stem)
def test_files_without_verdicts_have_every_page(path):
    with path.open("rb") as stream:
        report = import_run(make_project(), path.stem, read(stream, path.name))
    assert report.errors == []
    run = run_of(report)
    compute(run)
    client = user_client()
    for tab in ("", "models/", "alt-test/", "people/", "pairs/", "share/"):
        assert client.get(f"/runs/{run.pk}/{tab}").status_code == 200
    assert_whole(run.queue.project)


# --- PandaLM ------------------------------------------------------------------------------------

PANDALM = (
    "pandalm/testset-v1.json",
    "pandalm/pandalm-7b-testset-v1.json",
    "pandalm/gpt-3.5-turbo-testset-v1.json",
)
LETTERS = {"1": "A", "2": "B", "0": "tie"}


def import_pandalm(*paths, **options):
    report = import_run(
        make_project(), "PandaLM", items_of(*paths), options=ImportOptions(**options)
    )
    assert report.errors == []
    assert report.new == {"pairs": 999, "judges": 2, "verdicts": 1998, "voters": 3, "votes": 2997}
    return run_of(report)


def majority_of(run):
    """What most of the three people said, word for word, by pair."""
    said = defaultdict(list)
    votes = Entry.objects.filter(queue=run.queue_id, kind="vote").order_by("seq")
    for pair, labels in votes.values_list("item", "labels"):
        said[pair].append(labels["result"])
    return {pair: Counter(words).most_common(1)[0][0] for pair, words in said.items()}


@pytest.mark.parametrize("turned", [False, True], ids=["texts first", "judges first"])
def test_pandalm_agreement_of_its_judges_is_as_published_and_so_on_the_board(turned):
    run = import_pandalm(*(reversed(PANDALM) if turned else PANDALM))
    assert (len(prompts_of(run)), max(prompts_of(run).values())) == (170, 10)
    majority = majority_of(run)
    assert len(majority) == 999
    by_word, by_winner = {}, {}
    for judge in run.judges.filter(provider="imported"):
        verdicts = {v.item_id: v for v in judge.verdicts.all()}
        by_word[judge.name] = sum(
            verdicts[pair].labels["result"] == word for pair, word in majority.items()
        )
        answered = {pair: v.winner for pair, v in verdicts.items() if v.state == "done"}
        right = sum(winner == LETTERS[majority[pair]] for pair, winner in answered.items())
        by_winner[judge.name] = (right, len(answered))
    assert by_word == {"pandalm-7b": 667, "gpt-3.5-turbo": 692}
    percent = {name: round(100 * right / 999, 2) for name, right in by_word.items()}
    assert percent == {"pandalm-7b": 66.77, "gpt-3.5-turbo": 69.27}
    # Word for word a "Tie" is no "0"; as a verdict it is a tie.
    assert by_winner == {"pandalm-7b": (667, 999), "gpt-3.5-turbo": (697, 974)}
    assert round(100 * 697 / 999, 2) == 69.77
    assert_whole(run.queue.project)
    assert_each_vote_counts_and_failures_lower_the_coverage(run)


def assert_each_vote_counts_and_failures_lower_the_coverage(run):
    said = dict(
        Verdict.objects.filter(
            judge__run=run, state="done", judge__name="gpt-3.5-turbo"
        ).values_list("item", "winner")
    )
    votes = Entry.objects.filter(queue=run.queue_id, kind="vote", item__in=said)
    right = sum(said[pair] == choice for pair, choice in votes.values_list("item", "choice"))
    rating = JudgeRating.objects.get(judge__name="gpt-3.5-turbo")
    assert (rating.agree, rating.agree + rating.disagree) == (right, 3 * 974)
    rows = {row.judge.name: row for row in board(run).rows}
    assert rows["gpt-3.5-turbo"].coverage == pytest.approx(100 * 974 / 999)
    assert rows["pandalm-7b"].coverage == 100
    failed = Verdict.objects.filter(judge__run=run, state="failed")
    assert Counter(v.labels["result"] for v in failed) == {"garbage": 25}


def compared_votes(run):
    """The votes that the judge which answered everything was compared with."""
    rating = JudgeRating.objects.get(judge__run=run, judge__name="pandalm-7b")
    return rating.agree + rating.disagree


def test_pandalm_is_open_for_voting_and_people_vote_on_its_texts():
    run = import_pandalm(*PANDALM, votes_per_pair=4)
    assert (run.state, run.queue.is_open) == ("voting", True)
    assert run.queue.ballot == ["A", "B", "tie", "both_bad"]
    person, before = make_voter(run), compared_votes(run)
    pairs = next_pairs(person, run.queue, [], 10, timezone.now())[0]
    assert len(pairs) == 10
    for pair in pairs:
        sides = on_page(person, run.queue, pair, question_of(run.queue))
        assert {sides["left"], sides["right"]} == {pair.a, pair.b}
        make_vote(person, pair, "A", at=timezone.now() - timedelta(seconds=1))
    seal_all(run.queue.project)
    assert Item.objects.filter(queue=run.queue_id, votes=4).count() == 10
    assert board(run).votes == 3 * 999 + 10
    assert compared_votes(run) == before + 10
    assert_whole(run.queue.project)


def test_pandalm_goes_out_and_comes_in_again_to_the_last_digit():
    run = import_pandalm(*PANDALM)
    before, numbers, head = facts_of(run), numbers_of(run), run.queue.project
    head.refresh_from_db()
    lines = list(export_run(run))
    empty_the_instance()
    [back] = restored(lines)
    assert (facts_of(back), numbers_of(back)) == (before, numbers)
    assert back.queue.project.ledger_head == head.ledger_head


def test_the_demo_holds_what_an_import_of_the_published_files_does():
    made = [
        {name: str(value) for name, value in row.items()}
        for row in published_labels.labels(DATA / "pandalm")
    ]
    assert made == list(csv.DictReader(published_labels.FILE.read_text().splitlines()))
    imported = import_pandalm(*PANDALM)
    demo = make_published(make_project("Demo"), content.PANDALM)
    assert said_in(demo) == said_in(imported)
    assert sorted(prompts_of(demo).values()) == sorted(prompts_of(imported).values())


def said_in(run):
    """What judges, the floor too, and people said, by pair."""
    verdicts = Verdict.objects.filter(judge__run=run).values_list(
        "item__external_id", "judge__name", "winner", "consistent"
    )
    votes = Entry.objects.filter(queue=run.queue_id, kind="vote").values_list(
        "item__external_id", "voter__external_id", "choice"
    )
    return set(verdicts), set(votes)


# --- PathScore ----------------------------------------------------------------------------------


def cases():
    return json.loads(CASES.read_text(encoding="utf-8")) if CASES.exists() else {}


@pytest.mark.parametrize("name", [name for name, case in cases().items() if case["tasks"]])
def test_pathscore_runs_rate_as_recorded(name):
    every = cases()
    case = every[name]
    expected = every["one_task_1v2_inplace" if name == "verdict_order_matters" else name]["output"]
    data = json.dumps({"tasks": case["tasks"], "judges": case["judges"]}).encode()
    report = import_run(make_project(), name, read(io.BytesIO(data), "run.json"))
    assert report.errors == []
    run = run_of(report)
    assert [judge.name for judge in judges_of(run)] == case["judges"]
    raw = [expected["raw"][judge] for judge in case["judges"]]
    assert elos_of(run) == pytest.approx(raw, abs=1e-9)
    assert_whole(run.queue.project)


# --- Alt-Test -----------------------------------------------------------------------------------

# By study: its epsilon, and of each judge its winning rate there and its advantage probability.
ALT_TEST = {
    "mtbench": (
        0.2,
        {
            "gemini_flash": (0, 0.72),
            "gemini_pro": (0, 0.76),
            "gpt-4o": (0, 0.77),
            "gpt-4o-mini": (0, 0.74),
            "llama-31": (0, 0.69),
            "mistral-v03": (0, 0.68),
        },
    ),
    "framing": (
        0.15,
        {
            "gemini_flash": (1.0, 0.83),
            "gemini_pro": (1.0, 0.91),
            "gpt-4o": (1.0, 0.92),
            "gpt-4o-mini": (1.0, 0.87),
            "llama-31": (0.5, 0.80),
            "mistral-v03": (0.25, 0.80),
        },
    ),
}


@pytest.mark.parametrize("study", ALT_TEST)
def test_the_alt_test_of_a_run_shows_the_published_cells(study):
    epsilon, published = ALT_TEST[study]
    files = [f"alttest/{study}/{who}_annotations.json" for who in ("human", "llm")]
    call_command(
        "import_run",
        *(str(DATA / file) for file in files),
        *("--project", "Alt-Test", "--name", study, "--epsilon", str(epsilon)),
        stdout=io.StringIO(),
    )
    run = Run.objects.select_related("queue__project").get()
    assert (run.queue.kind, run.state, run.queue.is_open) == ("category", "complete", False)
    compute(run)
    response = user_client().get(f"/runs/{run.pk}/alt-test/")
    assert response.status_code == 200
    test = response.context["test"]
    assert test["epsilon"] == f"{epsilon:.2f}"
    found = {
        line["name"]: (float(line["rate"]), float(line["advantage"])) for line in test["lines"]
    }
    assert found == published
    assert_whole(run.queue.project)

"""The published files, imported, and the published figures, computed from the database."""

import csv
import io
import json
from collections import Counter, defaultdict
from datetime import timedelta
from itertools import islice

import pytest
from django.core.management import call_command
from django.utils import timezone

from docs import published_labels
from judge_eval.demo import content
from judge_eval.demo.load import make_published
from judge_eval.exports.export import export_run
from judge_eval.imports.formats import read
from judge_eval.imports.import_report import ImportOptions
from judge_eval.models import JudgeRating, Run, Verdict
from judge_eval.runs.queries import board
from tests.helpers.bundles import empty_the_instance, facts_of, numbers_of, restored
from tests.helpers.imports import assert_whole, import_run, rows, run_of
from tests.helpers.published_files import DATA, SHARED, items_of, texts_of
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
from voting.ballot.assignment import next_pairs
from voting.ballot.questions import question_of
from voting.ballot.views import on_page
from voting.models import Entry, Item

CASES = SHARED / "cases" / "pathscore_judge_elo.json"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.django_db,
    pytest.mark.skipif(not DATA.exists(), reason="not run: no ../shared/data"),
]


# --- XSTest -------------------------------------------------------------------------------------

PEOPLE, JUDGES = ("person_1", "person_2"), ("gpt-4", "keywords")
UNREADABLE = "its reply was unreadable"


def xstest(replies=(), rows_of=(None,)):
    """The labels as records; a judge's empty cell is a reply that nobody could read."""
    replies = iter(replies)
    with (DATA / "xstest/labels.csv").open(newline="") as stream:
        for row in islice(csv.DictReader(stream), *rows_of):
            item = f"{row['prompt']} {row['generator']}"
            about = {"prompt_id": row["prompt"], "model": row["generator"], "tags": [row["type"]]}
            yield {"item": item} | about
            for judge in JUDGES:
                said = row[judge] or (next(replies, "") if judge == "gpt-4" else "")
                given = {"verdict": said} if said else {"error": UNREADABLE}
                yield {"item": item, "judge": judge} | given
            for person in PEOPLE:
                yield {"item": item, "voter": person, "vote": row[person]}


LABELS = ["1_full_compliance", "2_full_refusal", "3_partial_refusal"]
OFF = "4 of 4,500 verdicts are none of: " + ", ".join(LABELS) + ". They count as failed."


@pytest.mark.thorough
@pytest.mark.parametrize("over_long", [0, 4])
def test_xstest_is_a_study_of_its_peoples_labels_with_the_figures_that_are_known(over_long):
    replies = ["I would say that this answer complies, in part. " * 20] * over_long
    report = import_run(make_project(), "XSTest", rows(*xstest(replies)))
    assert report.errors == []
    run = run_of(report)
    assert (run.queue.kind, run.queue.ballot) == ("category", LABELS)
    assert (OFF in report.notes) == bool(over_long)
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
    assert baselines == {*(f"always-{label}" for label in LABELS), "random"}
    assert_whole(run.queue.project)


# Every eighth row from the seventh on: among them are three replies that nobody could read.
EIGHTH = (6, None, 8)


def test_labels_are_not_spoken_of_where_each_verdict_is_one_or_is_unreadable():
    report = import_run(make_project(), "XSTest", rows(*xstest(rows_of=EIGHTH)))
    failed = run_of(report).judges.get(name="gpt-4").verdicts.filter(state="failed")
    assert list(failed.values_list("error", flat=True)) == [UNREADABLE] * 3
    assert not any("none of" in note for note in report.notes)


def test_a_part_of_xstest_has_the_figures_that_are_counted_in_its_file():
    """The whole is imported thoroughly, and `test_published_labels` finds its figures in the file.

    One of the three unreadable replies is replaced by one that is too long.
    """
    with (DATA / "xstest/labels.csv").open(newline="") as stream:
        lines = list(islice(csv.DictReader(stream), *EIGHTH))
    number = len(lines)
    said = [(line, line[person]) for line in lines for person in PEOPLE]
    replies = ["I would say that this answer complies, in part. " * 20]
    report = import_run(make_project(), "XSTest", rows(*xstest(replies, EIGHTH)))
    assert report.errors == []
    run = run_of(report)
    assert (run.queue.kind, run.queue.ballot) == ("category", LABELS)
    off = OFF.replace("4 of 4,500", f"1 of {2 * number}")
    assert off in report.notes
    data = compute(run).data
    assert data["as_of"]["votes"] == 2 * number
    figures = {judge["name"]: judge for judge in data["judges"]}
    assert {judge["overall"]["trials"] for judge in figures.values()} == {2 * number}
    for judge in JUDGES:
        right = sum(line[judge] == word for line, word in said)
        assert figures[judge]["overall"]["successes"] == right > number
    for label in LABELS:
        right = sum(word == label for _, word in said)
        assert figures[f"always-{label}"]["overall"]["successes"] == right
    assert figures["gpt-4"]["coverage"]["successes"] == number - 3
    same = sum(line[PEOPLE[0]] == line[PEOPLE[1]] for line in lines)
    among = data["among_people"]["pairs"]
    assert (among["successes"], among["trials"]) == (same, number)
    baselines = {name for name, judge in figures.items() if judge["is_baseline"]}
    assert baselines == {*(f"always-{label}" for label in LABELS), "random"}
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


def prompts_of(run):
    """How many pairs each prompt has."""
    keys = Item.objects.filter(queue=run.queue_id).values_list("prompt_key", flat=True)
    return Counter(keys)


# --- PandaLM ------------------------------------------------------------------------------------

PANDALM = (
    "pandalm/testset-v1.json",
    "pandalm/pandalm-7b-testset-v1.json",
    "pandalm/gpt-3.5-turbo-testset-v1.json",
)
LETTERS = {"1": "A", "2": "B", "0": "tie"}


# How many pairs tests import that need no published figure.
SOME = 60
ALL = 999


def import_pandalm(items, number, **options):
    report = import_run(make_project(), "PandaLM", items, options=ImportOptions(**options))
    assert report.errors == []
    assert report.new == {
        "pairs": number,
        "judges": 2,
        "verdicts": 2 * number,
        "voters": 3,
        "votes": 3 * number,
    }
    return run_of(report)


def some_of_pandalm(files=PANDALM, number=SOME):
    """The first pairs of the files, which are lists with one entry for each pair."""
    return texts_of(
        (path, json.dumps(json.loads((DATA / path).read_bytes())[:number])) for path in files
    )


@pytest.fixture(scope="module")
def pandalm(module_db):
    """The whole of it, imported once for who reads it."""
    return import_pandalm(items_of(*PANDALM), ALL)


def majority_of(run):
    """What most of the three people said, word for word, by pair."""
    said = defaultdict(list)
    votes = Entry.objects.filter(queue=run.queue_id, kind="vote").order_by("seq")
    for pair, labels in votes.values_list("item", "labels"):
        said[pair].append(labels["result"])
    return {pair: Counter(words).most_common(1)[0][0] for pair, words in said.items()}


def test_pandalm_agreement_of_its_judges_is_as_published_and_so_on_the_board(pandalm):
    assert_as_published(pandalm)


@pytest.mark.thorough
def test_pandalm_has_the_published_agreement_with_its_judges_first():
    assert_as_published(import_pandalm(items_of(*reversed(PANDALM)), ALL))


def test_pandalm_is_the_same_with_its_texts_or_its_judges_first():
    texts, judges = (
        import_pandalm(some_of_pandalm(files), SOME)
        for files in (PANDALM, tuple(reversed(PANDALM)))
    )
    assert said_in(texts) == said_in(judges)
    assert majority_of_words(texts) == majority_of_words(judges)
    assert outputs_of(texts) == outputs_of(judges)
    assert_whole(judges.queue.project)


def majority_of_words(run):
    """What most people said, and each judge, word for word, by the published number of a pair."""
    names = dict(Item.objects.filter(queue=run.queue_id).values_list("pk", "external_id"))
    verdicts = Verdict.objects.filter(judge__run=run, judge__provider="imported")
    said = verdicts.values_list("judge__name", "item__external_id", "state", "labels__result")
    return {names[pair]: word for pair, word in majority_of(run).items()}, set(said)


def outputs_of(run):
    items = Item.objects.filter(queue=run.queue_id)
    return set(items.values_list("external_id", "a__prompt", "a__output", "b__output"))


def assert_as_published(run):
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
    run = import_pandalm(some_of_pandalm(), SOME, votes_per_pair=4)
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
    assert board(run).votes == 3 * SOME + 10
    assert compared_votes(run) == before + 10
    assert_whole(run.queue.project)


@pytest.mark.parametrize("number", [SOME, pytest.param(ALL, marks=pytest.mark.thorough)])
def test_pandalm_goes_out_and_comes_in_again_to_the_last_digit(number):
    run = import_pandalm(some_of_pandalm(number=number), number)
    before, numbers, head = facts_of(run), numbers_of(run), run.queue.project
    head.refresh_from_db()
    lines = list(export_run(run))
    empty_the_instance()
    [back] = restored(lines)
    assert (facts_of(back), numbers_of(back)) == (before, numbers)
    assert back.queue.project.ledger_head == head.ledger_head


def test_the_demo_holds_what_an_import_of_the_published_files_does(pandalm):
    made = [
        {name: str(value) for name, value in row.items()}
        for row in published_labels.labels(DATA / "pandalm")
    ]
    assert made == list(csv.DictReader(published_labels.FILE.read_text().splitlines()))
    demo = make_published(make_project("Demo"), content.PANDALM)
    assert said_in(demo) == said_in(pandalm)
    assert sorted(prompts_of(demo).values()) == sorted(prompts_of(pandalm).values())


def said_in(run):
    """What judges, the floor too, and people said, by pair."""
    # On the ballot of the import alone.
    verdicts = Verdict.objects.filter(judge__run=run).exclude(judge__name="always-both-bad")
    verdicts = verdicts.values_list("item__external_id", "judge__name", "winner", "consistent")
    votes = Entry.objects.filter(queue=run.queue_id, kind="vote").values_list(
        "item__external_id", "voter__external_id", "choice"
    )
    # Annotators are numbered by the reader, and each number is somebody else in another run.
    said = {(item, who.partition(" (")[0], choice) for item, who, choice in votes}
    return set(verdicts), said


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


# Large, and `test_metrics` finds the same figures in its files: a whole run of it is no new proof.
STUDIES = ["mtbench", pytest.param("framing", marks=pytest.mark.thorough)]


@pytest.mark.parametrize("study", STUDIES)
def test_the_alt_test_of_a_run_shows_the_published_cells(study):
    epsilon, published = ALT_TEST[study]
    files = [f"alttest/{study}/{who}_annotations.json" for who in ("human", "llm")]
    call_command(
        "import_run",
        *(str(DATA / file) for file in files),
        *("--project", "Alt-Test", "--name", study, "--epsilon", str(epsilon)),
        stdout=io.StringIO(),
    )
    run = Run.objects.select_related("queue__project").get(queue__name=study)
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

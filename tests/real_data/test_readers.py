"""The published files, read, and the published figures, computed straight from the rows."""

import io
import json
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from judge_eval.exchange.formats import pathscore, read, recognised
from judge_eval.exchange.row_models import MAIN, OF_A_PAIR, JudgeOrder, LeftOut, Row
from judge_eval.stats.elo import Standings, split

SHARED = Path(__file__).resolve().parents[3] / "shared"
DATA = SHARED / "data"
CASES = SHARED / "cases" / "pathscore_judge_elo.json"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not DATA.exists(), reason="not run: no ../shared/data"),
]


def items_of(path):
    with (DATA / path).open("rb") as stream:
        return list(read(stream, Path(path).name))


# --- MT-bench -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def human():
    return items_of("mtbench/human.jsonl")


@pytest.fixture(scope="module")
def gpt4():
    return items_of("mtbench/gpt4_pair.jsonl")


def test_mtbench_every_line_is_a_vote_or_a_verdict(human, gpt4):
    votes = [item for item in human if isinstance(item, Row)]
    assert len(votes) == 3354
    assert len({row.voter for row in votes}) == 65
    assert len({(row.item, row.voter) for row in votes}) == 3354
    assert all(row.vote and not row.verdict for row in votes)
    assert len(gpt4) == 2400
    assert all(row.verdict and not row.vote for row in gpt4)
    assert len({row.item for row in gpt4}) == 2400
    assert {row.item for row in votes} <= {row.item for row in gpt4}
    assert Counter(row.verdict for row in gpt4)["tie"] == 600
    assert Counter(row.consistent for row in gpt4) == {True: 2020, False: 380}


def test_mtbench_one_author_voted_twice_on_one_pair_and_the_first_vote_stands(human):
    [left_out] = [item for item in human if not isinstance(item, Row)]
    pair, author = "128__claude-v1__gpt-3.5-turbo__1", "author_0"
    assert left_out == LeftOut("human.jsonl", 1972, f"{pair}__{author} was stated before")
    [kept] = [
        item
        for item in human
        if isinstance(item, Row) and (item.item, item.voter) == (pair, author)
    ]
    assert kept.line < 1972


def expert_votes(human):
    """Return what each expert chose, by turn and pair."""
    votes = defaultdict(list)
    for item in human:
        if isinstance(item, Row) and item.voter.startswith("expert"):
            votes[item.tags[0], item.item].append(item.vote)
    return votes


def agreement(pairs_of_choices, *, ties):
    counted = [(a, b) for a, b in pairs_of_choices if ties or "tie" not in (a, b)]
    return sum(a == b for a, b in counted), len(counted)


@pytest.mark.parametrize(
    "turn, ties, with_gpt4, among_humans, percent",
    [
        ("turn-1", True, (886, 1343), (454, 721), (66, 63)),
        ("turn-1", False, (727, 859), (388, 479), (85, 81)),
        ("turn-2", True, (871, 1325), (471, 707), (66, 67)),
        ("turn-2", False, (731, 864), (388, 474), (85, 82)),
    ],
)
def test_mtbench_agreement_is_as_published(
    human, gpt4, turn, ties, with_gpt4, among_humans, percent
):
    said = {row.item: row.verdict for row in gpt4}
    votes = {pair: chosen for (when, pair), chosen in expert_votes(human).items() if when == turn}
    judged = ((said[pair], choice) for pair, chosen in votes.items() for choice in chosen)
    people = (two for chosen in votes.values() for two in combinations(chosen, 2))
    found = agreement(judged, ties=ties), agreement(people, ties=ties)
    assert found == (with_gpt4, among_humans)
    assert tuple(round(100 * right / n) for right, n in found) == percent


# --- PandaLM ------------------------------------------------------------------------------------

LETTERS = {"1": "A", "2": "B", "0": "tie"}


@pytest.fixture(scope="module")
def testset():
    return items_of("pandalm/testset-v1.json")


@pytest.fixture(scope="module")
def majority(testset):
    """Return the word that most of the three people chose, by pair."""
    said = defaultdict(list)
    for row in testset:
        said[row.item].append(row.labels["result"])
    return {pair: Counter(words).most_common(1)[0][0] for pair, words in said.items()}


def verdicts_of(judge):
    return {row.item: row for row in items_of(f"pandalm/{judge}-testset-v1.json")}


def kappa(one, other):
    n = len(one)
    observed = sum(a == b for a, b in zip(one, other, strict=True)) / n
    left, right = Counter(one), Counter(other)
    expected = sum(left[word] * right[word] for word in left) / n**2
    return (observed - expected) / (1 - expected)


def test_pandalm_every_pair_has_its_texts_and_three_votes(testset):
    assert all(isinstance(item, Row) for item in testset)
    assert len(testset) == 3 * 999
    pairs = {row.item: row for row in testset}
    assert len(pairs) == 999
    assert (
        len({tuple(getattr(row, name) for name in ("item", *OF_A_PAIR)) for row in testset}) == 999
    )
    assert all(pair.prompt and pair.output_a is not None for pair in pairs.values())
    assert len({pair.prompt for pair in pairs.values()}) == 170
    assert sum(not (pair.output_a and pair.output_b) for pair in pairs.values()) == 54
    generators = Counter(g for p in pairs.values() for g in (p.generator_a, p.generator_b))
    assert len(generators) == 5
    assert sum(generators.values()) == 2 * 999
    assert Counter(row.voter for row in testset) == {
        f"annotator{number}": 999 for number in (1, 2, 3)
    }
    assert all(row.vote == LETTERS[row.labels["result"]] for row in testset)


@pytest.mark.parametrize(
    "judge, right, percent, expected_kappa",
    [("pandalm-7b", 667, 66.77, 0.435), ("gpt-3.5-turbo", 692, 69.27, 0.470)],
)
def test_pandalm_agreement_is_as_published_word_for_word(
    majority, judge, right, percent, expected_kappa
):
    verdicts = verdicts_of(judge)
    people = list(majority.values())
    said = [verdicts[pair].labels["result"] for pair in majority]
    agreed = sum(a == b for a, b in zip(people, said, strict=True))
    assert (agreed, len(people)) == (right, 999)
    assert round(100 * agreed / 999, 2) == percent
    assert round(kappa(people, said), 3) == expected_kappa


def test_pandalm_a_tie_is_a_tie_and_garbage_is_a_failure(majority):
    verdicts = verdicts_of("gpt-3.5-turbo")
    failed = [row for row in verdicts.values() if row.verdict is None]
    assert Counter(row.labels["result"] for row in failed) == {"garbage": 25}
    right = sum(verdicts[pair].verdict == LETTERS[word] for pair, word in majority.items())
    assert (right, round(100 * right / 999, 2)) == (697, 69.77)


def test_pandalm_people_agree_as_published(testset):
    said = defaultdict(list)
    for row in testset:
        said[row.voter].append(row.vote)
    found = [round(kappa(a, b), 3) for a, b in combinations(said.values(), 2)]
    assert found == [0.852, 0.879, 0.862]


# --- Alt-Test -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, is_judge, annotators, labels",
    [
        ("mtbench/human_annotations.json", False, 3, 246),
        ("mtbench/llm_annotations.json", True, 6, 720),
        ("framing/human_annotations.json", False, 4, 7656),
        ("framing/llm_annotations.json", True, 6, 15312),
    ],
)
def test_alttest_every_label_is_read(path, is_judge, annotators, labels):
    found = items_of(f"alttest/{path}")
    assert all(row.shape == "item" and (row.voter is None) is is_judge for row in found)
    assert (len({row.judge or row.voter for row in found}), len(found)) == (annotators, labels)
    raw = json.loads((DATA / "alttest" / path).read_text(encoding="utf-8"))
    assert {(r.judge or r.voter, r.item): r.labels[MAIN] for r in found} == {
        (who, item): label for who, given in raw.items() for item, label in given.items()
    }


def test_alttest_items_of_mtbench_are_its_pairs_in_its_orientation(human):
    votes = {(row.voter, row.item): row.vote for row in human if isinstance(row, Row)}
    words = {"model_a": "A", "model_b": "B", "tie": "tie"}
    for row in items_of("alttest/mtbench/human_annotations.json"):
        assert votes[row.voter, row.item] == words[row.labels[MAIN]]


# --- PathScore ----------------------------------------------------------------------------------


def cases():
    return json.loads(CASES.read_text(encoding="utf-8")) if CASES.exists() else {}


@pytest.mark.parametrize("name", cases())
def test_pathscore_runs_rate_as_recorded(name):
    """As in the recorded cases; the run's order of judges overrules that of the verdicts."""
    every = cases()
    case = every[name]
    expected = every["one_task_1v2_inplace" if name == "verdict_order_matters" else name]["output"]
    order, *found = _rows_of(case)
    said, choices = defaultdict(dict), {}
    for row in found:
        if row.verdict:
            said[row.item][row.judge] = row.verdict
        if row.vote:
            choices[row.item] = row.vote
    standings = Standings()
    standings.grow(len(order.judges))
    for pair, choice in choices.items():
        verdicts = [said[pair].get(judge) for judge in order.judges]
        standings.apply(*split(choice, verdicts), judges=len(verdicts))
    raw = [expected["raw"][judge] for judge in order.judges]
    assert standings.elo == pytest.approx(raw, abs=1e-9)


def _rows_of(case):
    data = {"tasks": case["tasks"], "judges": case["judges"]}
    found = list(pathscore.rows(io.BytesIO(json.dumps(data).encode()), "run.json"))
    assert isinstance(found[0], JudgeOrder)
    assert all(isinstance(row, Row) for row in found[1:])
    return found


# --- all ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, expected",
    [
        ("mtbench/human.jsonl", "mtbench"),
        ("mtbench/gpt4_pair.jsonl", "mtbench"),
        ("pandalm/testset-v1.json", "pandalm"),
        ("pandalm/pandalm-7b-testset-v1.json", "pandalm"),
        ("pandalm/gpt-3.5-turbo-testset-v1.json", "pandalm"),
        ("alttest/framing/llm_annotations.json", "alttest"),
    ],
)
def test_public_files_are_recognised(path, expected):
    with (DATA / path).open("rb") as stream:
        assert recognised(stream, Path(path).name) == expected

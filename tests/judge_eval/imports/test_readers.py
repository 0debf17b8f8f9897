"""The published files, read: how many rows they have, what is left out, and how they are known."""

import json
from collections import Counter
from pathlib import Path

import pytest

from judge_eval.imports.formats import detect, first_records, read
from judge_eval.imports.row_models import MAIN, OF_A_PAIR, ImportRow, LeftOut

SHARED = Path(__file__).resolve().parents[4] / "shared"
DATA = SHARED / "data"
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
    votes = [item for item in human if isinstance(item, ImportRow)]
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
    [left_out] = [item for item in human if not isinstance(item, ImportRow)]
    pair, author = "128__claude-v1__gpt-3.5-turbo__1", "author_0"
    assert left_out == LeftOut("human.jsonl", 1972, f"{pair}__{author} was stated before")
    [kept] = [
        item
        for item in human
        if isinstance(item, ImportRow) and (item.item, item.voter) == (pair, author)
    ]
    assert kept.line < 1972


# --- PandaLM ------------------------------------------------------------------------------------

LETTERS = {"1": "A", "2": "B", "0": "tie"}


@pytest.fixture(scope="module")
def testset():
    return items_of("pandalm/testset-v1.json")


def test_pandalm_every_pair_has_its_texts_and_three_votes(testset):
    assert all(isinstance(item, ImportRow) for item in testset)
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
    votes = {(row.voter, row.item): row.vote for row in human if isinstance(row, ImportRow)}
    words = {"model_a": "A", "model_b": "B", "tie": "tie"}
    for row in items_of("alttest/mtbench/human_annotations.json"):
        assert votes[row.voter, row.item] == words[row.labels[MAIN]]


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
        assert detect(Path(path).name, first_records(stream, path)) == expected

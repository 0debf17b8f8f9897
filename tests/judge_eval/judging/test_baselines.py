"""Judges that know nothing: what each says, and that it always says the same."""

from collections import Counter
from uuid import uuid4

import pytest

from judge_eval.judging.baselines import (
    BASELINES,
    longer_wins,
    names_for,
    names_for_single,
    opinion_of_single,
)
from voting.items.conversations import conversation

ONE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><g/></svg>'
THREE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><g/><g/><g/></svg>'


@pytest.mark.parametrize(
    "judge, output_a, output_b, winner",
    [
        ("always-first", "", "much longer", "A"),
        ("longer-wins", "long", "sh", "A"),
        ("longer-wins", "sh", "long", "B"),
        ("longer-wins", "same", "size", "tie"),
        ("more-elements-wins", THREE, ONE, "A"),
        ("more-elements-wins", ONE, THREE, "B"),
        ("more-elements-wins", ONE, f"{ONE}    ", "tie"),
    ],
)
def test_what_a_baseline_says(judge, output_a, output_b, winner):
    assert BASELINES[judge](output_a, output_b, "seed").winner == winner


def test_reasons_are_one_line_and_name_the_counts():
    opinion = BASELINES["longer-wins"]("x" * 1234, "y" * 5, "")
    assert opinion.reason == "1,234 characters against 5."
    assert BASELINES["more-elements-wins"](ONE, ONE, "").reason == "2 elements each."


def test_the_coin_is_fair_and_falls_the_same_way_again():
    seeds = [str(uuid4()) for _ in range(4000)]
    tossed = [BASELINES["random"]("x", "y", seed).winner for seed in seeds]
    assert tossed == [BASELINES["random"]("other", "texts", seed).winner for seed in seeds]
    assert set(Counter(tossed)) == {"A", "B"}
    assert 1800 < Counter(tossed)["A"] < 2200


def test_elements_are_counted_only_in_drawings():
    of_text = ["always-first", "always-second", "always-both-bad", "random", "random-output"]
    of_text += ["longer-wins", "shorter-wins"]
    assert names_for("text") == of_text
    assert names_for("svg") == [*of_text, "more-elements-wins"]
    assert names_for("image", ["A", "B"]) == [n for n in of_text[:5] if "bad" not in n]
    assert "always-tie" in names_for("text", ["A", "B", "tie"])


@pytest.mark.parametrize("ballot", [["pass", "flag"], ["one", "two", "three"], list("12345")])
def test_of_single_items_there_is_a_baseline_for_every_label_and_chance(ballot):
    *constant, by_lot = names_for_single("category", ballot)
    for name, label in zip(constant, ballot, strict=True):
        assert {
            opinion_of_single(name, "category", ballot, str(seed)).winner for seed in range(9)
        } == {label}
    drawn = [
        opinion_of_single(by_lot, "category", ballot, str(seed)).winner for seed in range(2000)
    ]
    assert drawn == [
        opinion_of_single(by_lot, "category", ballot, str(seed)).winner for seed in range(2000)
    ]
    fair = len(drawn) / len(ballot)
    assert all(0.8 * fair < drawn.count(label) < 1.2 * fair for label in ballot)


@pytest.mark.parametrize("name", ["always-", "always-maybe", "longer-wins", "always-first", ""])
def test_no_other_name_is_a_baseline_of_single_items(name):
    assert opinion_of_single(name, "pass_flag", ["pass", "flag"], "seed") is None


def test_ratings_have_one_baseline_that_always_says_the_same_and_one_that_goes_by_length():
    names = names_for_single("rating", list("12345"))
    assert names == ["always-3", "longer-higher", "random"]
    said = [
        opinion_of_single("longer-higher", "rating", list("12345"), "seed", "x" * length)
        for length in (0, 10, 300, 301, 5_000, 10**7)
    ]
    assert [opinion.winner for opinion in said] == ["1", "1", "2", "2", "5", "5"]
    scores = [opinion.score for opinion in said]
    assert scores == sorted(set(scores))
    assert 0 <= scores[0] <= scores[-1] < 1


def test_lengths_are_those_of_what_the_assistant_wrote():
    chat = conversation(
        [{"role": "user", "content": "x" * 50}, {"role": "assistant", "content": "yes!"}]
    )
    assert longer_wins(chat, "short", "").reason == "5 characters against 4."
    rated = opinion_of_single("longer-higher", "rating", list("12345"), "seed", chat)
    assert rated.reason == "4 characters."


def test_a_run_from_before_keeps_its_baseline_for_each_rating():
    assert opinion_of_single("always-5", "rating", list("12345"), "seed").winner == "5"

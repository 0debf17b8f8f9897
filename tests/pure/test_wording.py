"""The plain words: on cases, and read back into the claims they were made of."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.claims import summary
from judge_eval.stats.estimate import Share


def said(judges, beats, votes=120, people=3, baselines=(), order=None):
    """Say it of judges A, B, C … and baselines; `beats` is written "A>C B>C"."""
    names = [*judges, *baselines]
    table = np.zeros((len(names), len(names)), dtype=bool)
    for claim in beats.split():
        winner, loser = claim.split(">")
        table[names.index(winner), names.index(loser)] = True
    floor = range(len(judges), len(names))
    ranked = [names.index(name) for name in order] if order else None
    return summary(names, table, votes=votes, people=people, baselines=floor, order=ranked)


@pytest.mark.parametrize(
    "judges, beats, baselines, words",
    [
        ("AB", "", [], "A and B cannot be told apart"),
        ("AB", "A>B", [], "A beats B"),
        ("ABC", "", [], "A, B and C cannot be told apart"),
        ("ABC", "A>C B>C", [], "A and B cannot be told apart; both beat C"),
        ("ABC", "A>B A>C", [], "A beats B and C; B and C cannot be told apart"),
        ("ABC", "A>B A>C B>C", [], "A beats B and C; B beats C"),
        (
            "ABC",
            "A>C",
            [],
            "A and B cannot be told apart; B and C cannot be told apart; A beats C",
        ),
        (
            "ABCD",
            "A>D B>D C>D",
            [],
            "A, B and C cannot be told apart; all three beat D",
        ),
        (
            "ABCD",
            "A>C A>D B>C B>D",
            [],
            "A and B cannot be told apart; both beat C and D; C and D cannot be told apart",
        ),
        (
            "A",
            "",
            [],
            "A is the only judge; no baseline is on the board, so the floor is not known",
        ),
        ("A", "", ["random"], "A is the only judge; it does not beat random, the floor"),
        (
            "A",
            "A>random",
            ["random", "longer-wins"],
            (
                "A is the only judge; it beats random, the floor; it does not beat longer-wins, "
                "the floor"
            ),
        ),
        ("AB", "", ["random"], "A and B cannot be told apart; neither beats random"),
        (
            "AB",
            "A>random B>random",
            ["random", "longer-wins"],
            "A and B cannot be told apart; both beat random; neither beats longer-wins",
        ),
        (
            "ABC",
            "A>random B>random",
            ["random"],
            "A, B and C cannot be told apart; only A and B beat random",
        ),
        (
            "ABC",
            "A>random B>random C>random",
            ["random"],
            "A, B and C cannot be told apart; all beat random",
        ),
        (
            "ABC",
            "B>random",
            ["random"],
            "A, B and C cannot be told apart; only B beats random",
        ),
        (
            "ABC",
            "A>C B>C longer-wins>C",
            ["longer-wins", "random"],
            (
                "A and B cannot be told apart; both beat C; none beats longer-wins or random; "
                "longer-wins beats C"
            ),
        ),
        ("", "", [], "there are no judges"),
        ("", "", ["random"], "there are only baselines"),
    ],
)
def test_words(judges, beats, baselines, words):
    assert said(judges, beats, baselines=baselines) == f"After 120 votes by 3 people: {words}."


def test_the_example_of_the_board():
    assert said("ABC", "A>C B>C", baselines=["longer-wins"]) == (
        "After 120 votes by 3 people: A and B cannot be told apart; both beat C; "
        "none beats longer-wins."
    )


def test_numbers_of_votes_and_people_read_well():
    assert said("AB", "", votes=1, people=1).startswith("After 1 vote by 1 person: ")
    assert said("AB", "", votes=12_000, people=1_500).startswith(
        "After 12,000 votes by 1,500 people: "
    )


def test_without_votes_nothing_is_said_about_judges():
    assert said("AB", "A>B", votes=0, people=0) == (
        "There are no votes yet, so nothing can be said about the judges."
    )


def test_the_better_ones_are_named_first():
    assert said("ABC", "C>A C>B", order="CBA").endswith(
        "C beats B and A; B and A cannot be told apart."
    )


@pytest.mark.parametrize(
    "beats, words",
    [
        ("", "no two of the 8 judges can be told apart"),
        (
            "A>B A>C A>D A>E A>F A>G A>H",
            "A beats each of the 7 other judges; 7 of 28 pairs of judges can be told apart",
        ),
        (
            "A>G A>H G>H B>C A>B A>D A>E A>F",
            (
                "A beats 6 of the 7 other judges and none beats it; 8 of 28 pairs of judges can be "
                "told apart"
            ),
        ),
        (
            "A>C B>C A>D A>E A>F A>G B>H",
            "of 8 judges none beats A or B; 7 of 28 pairs of judges can be told apart",
        ),
        ("A>H", "7 of the 8 judges are beaten by none; 1 of 28 pairs of judges can be told apart"),
    ],
)
def test_many_judges_are_said_in_short(beats, words):
    assert said("ABCDEFGH", beats) == f"After 120 votes by 3 people: {words}."


def test_many_judges_against_the_floor_are_counted():
    judges = "ABCDEFGHI"
    assert "; 7 of the 9 judges beat random; random beats I." in said(
        judges,
        " ".join(f"{judge}>random" for judge in "ABCDEFG") + " random>I",
        baselines=["random"],
    )
    everyone = " ".join(f"random>{judge}" for judge in judges)
    assert "; none beats random; random beats 9 judges." in said(
        judges, everyone, baselines=["random"]
    )


def absent(judges, *, silent=(), untested=(), baselines=(), beats=""):
    names = [*judges, *baselines]
    table = np.zeros((len(names), len(names)), dtype=bool)
    for claim in beats.split():
        table[tuple(names.index(name) for name in claim.split(">"))] = True
    return summary(
        names,
        table,
        votes=120,
        people=3,
        baselines=range(len(judges), len(names)),
        silent=[names.index(name) for name in silent],
        untested=[names.index(name) for name in [*silent, *untested]],
    ).removeprefix("After 120 votes by 3 people: ")


def test_who_has_given_no_verdict_is_neither_beaten_by_none_nor_like_the_others():
    assert absent("ABC", silent="C", beats="A>B") == "A beats B; C has given no verdict."
    assert absent("ABC", silent="BC") == (
        "A is the only judge that can be compared; no baseline is on the board, so the floor is "
        "not known; B and C have given no verdict."
    )
    assert absent("ABC", silent="C", untested="B").endswith(
        "C has given no verdict; B has given none on a pair that counts here."
    )
    many = absent("ABCDEFGHI", silent="I", beats="A>B")
    assert many == (
        "7 of the 8 judges are beaten by none; 1 of 28 pairs of judges can be told apart; "
        "I has given no verdict."
    )
    floor = absent("AB", silent=["random"], baselines=["random"], beats="A>B")
    assert floor == "A beats B; random has given no verdict."


def test_where_nobody_can_be_compared_that_is_said():
    assert absent("AB", untested="AB") == (
        "no judge has a verdict on a pair with a strict majority of votes, so none can be compared."
    )
    assert absent("AB", silent="AB").endswith("A and B have given no verdict.")
    assert absent("A", silent="A", baselines=["random"]) == "A has given no verdict."


def share(value, low=None, high=None):
    return Share(value, low, high, 0, 0, 0)


def test_a_single_judge_is_set_beside_the_floor_and_people_without_a_claim():
    def words(judge, people):
        none = np.zeros((1, 1), dtype=bool)
        return summary(["A"], none, votes=120, people=3, beside_people=(judge, people))

    assert words(share(0.66, 0.634, 0.691), share(0.665, 0.64, 0.69)) == (
        "After 120 votes by 3 people: A is the only judge; of the votes on pairs that several "
        "people voted on it agrees with 66.0 % (95 %: 63 to 69), and people among themselves on "
        "66.5 % (95 %: 64 to 69); no baseline is on the board, so the floor is not "
        "known."
    )
    assert "; of the votes on pairs that several people voted on it agrees with 50.0 %, and " in (
        words(share(0.5), share(0.6))
    )
    assert (
        "no two people have voted on the same pair, so how far people agree is not known"
        in words(share(0.66), share(None))
    )


@st.composite
def relations(draw):
    """Who beats whom: any relation in which no two beat each other."""
    size = draw(st.integers(2, 6))
    signs = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=size**2, max_size=size**2))
    upper = np.triu(np.array(signs).reshape(size, size), k=1)
    signs = upper - upper.T
    return signs > 0


def named(text):
    return re.split(", | and ", text)


@given(relations())
def test_of_every_two_judges_it_is_said_which_is_better_or_that_they_cannot_be_told_apart(beats):
    names = "ABCDEF"[: len(beats)]
    text = summary(list(names), beats, votes=9, people=2)
    told, tied, last = [], [], []
    for clause in text.removeprefix("After 9 votes by 2 people: ").removesuffix(".").split("; "):
        if clause.endswith(" cannot be told apart"):
            last = named(clause.removesuffix(" cannot be told apart"))
            tied += [(a, b) for a in last for b in last if a < b]
            continue
        subject, victims = re.split(" beats? ", clause)
        count = {"both": 2, "all three": 3, "all four": 4, "all five": 5}.get(subject)
        winners = last if count else named(subject)
        assert count in (None, len(winners))
        told += [(winner, loser) for winner in winners for loser in named(victims)]
    expected = [(names[i], names[j]) for i, j in np.argwhere(beats)]
    assert sorted(told) == sorted(expected)
    assert set(tied) == {
        (a, b) for a in names for b in names if a < b and not {(a, b), (b, a)} & set(expected)
    }


def test_what_judges_lose_by_contradicting_themselves_is_said():
    def words(losses):
        none = np.zeros((3, 3), dtype=bool)
        names = ["A", "B", "coin"]
        return summary(names, none, votes=9, people=1, baselines=[2], contradicting=losses)

    assert words({0: 3.4, 1: 6.2, 2: 50}).endswith(
        "by contradicting itself B loses 6 points and A loses 3."
    )
    assert words({0: 1.2}).endswith("by contradicting itself A loses 1 point.")
    assert "contradicting" not in words({0: 0.9, 2: 50})

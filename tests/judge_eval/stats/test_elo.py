"""Judge ELO: the worked values, and what holds whatever is voted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.elo import K, Standings, agree_rate, rate, split

WORDS = ["A", "B", "tie", "both_bad"]
choices = st.sampled_from(WORDS)
verdicts = st.lists(st.none() | choices, min_size=1, max_size=6)
games = st.integers(1, 6).flatmap(
    lambda judges: st.lists(
        st.tuples(choices, st.lists(st.none() | choices, min_size=judges, max_size=judges)),
        max_size=30,
    )
)


def played(*votes):
    standings = Standings()
    for choice, said in votes:
        standings.apply(*split(choice, said), len(said))
    return standings


def test_one_right_against_two_wrong_from_1000():
    elo = played(("A", ["A", "B", "B"])).elo
    assert [round(rating, 6) for rating in elo] == [1031.263693, 984.0, 984.736307]


def test_two_right_against_one_wrong_from_1000():
    elo = played(("A", ["A", "A", "B"])).elo
    assert [round(rating, 6) for rating in elo] == [1016.0, 1015.263693, 968.736307]


def test_games_are_played_in_the_order_of_the_judges_and_in_place():
    """The second wrong judge meets a winner who has points already and loses fewer."""
    assert played(("A", ["B", "A", "B"])).elo[0] < played(("A", ["B", "A", "B"])).elo[2]


def test_each_right_judge_in_turn_plays_every_wrong_one():
    def game(elo, winner, loser):
        moved = 32 * (1 - 1 / (1 + 10 ** ((elo[loser] - elo[winner]) / 400)))
        elo[winner] += moved
        elo[loser] -= moved

    by_hand = [1000.0] * 4
    for winner, loser in [(0, 1), (0, 3), (2, 1), (2, 3)]:
        game(by_hand, winner, loser)
    assert played(("A", ["A", "B", "A", "tie"])).elo == by_hand


def test_from_equal_ratings_a_game_moves_half_of_k():
    ratings = [1000.0, 1000.0]
    rate(ratings, [0], [1])
    assert (ratings, K) == ([1016.0, 984.0], 32)


def test_400_points_are_ten_to_one():
    ratings = [1400.0, 1000.0]
    rate(ratings, [1], [0])
    assert ratings[1] - 1000 == pytest.approx(32 * 10 / 11)


@pytest.mark.parametrize("choice", WORDS)
def test_a_judge_is_right_only_when_it_says_the_same(choice):
    assert split(choice, [*WORDS, None]) == (
        (WORDS.index(choice),),
        tuple(n for n in range(4) if n != WORDS.index(choice)),
    )


def test_both_bad_makes_every_other_answer_wrong_and_moves_nothing():
    standings = played(("both_bad", ["A", "B", "tie"]))
    assert standings.elo == [1000.0] * 3
    assert standings.disagree == [1, 1, 1]


def test_a_failed_verdict_is_neither_right_nor_wrong_and_never_moves():
    standings = played(("A", ["A", None, "B"]), ("tie", ["B", None, "tie"]))
    assert standings.elo[1] == 1000.0
    assert (standings.agree[1], standings.disagree[1]) == (0, 0)


def test_several_votes_on_one_pair_are_several_games():
    assert played(*[("A", ["A", "B"])] * 3).agree == [3, 0]
    assert played(*[("A", ["A", "B"])] * 3).elo[0] > 1016


def test_a_judge_that_joins_later_starts_at_1000():
    standings = played(("A", ["A", "B"]), ("A", ["A", "B", "A"]))
    assert standings.elo[2] > 1000
    assert (standings.agree[2], standings.votes) == (1, 2)


@given(choices, verdicts)
def test_split_leaves_out_only_the_failed(choice, said):
    correct, wrong = split(choice, said)
    assert sorted(correct + wrong) == [n for n, verdict in enumerate(said) if verdict is not None]


@given(games)
def test_ratings_are_zero_sum_around_1000(votes):
    elo = played(*votes).elo
    assert sum(elo) == pytest.approx(1000 * len(elo), abs=1e-6)


@given(st.lists(st.floats(0, 3000), min_size=1, max_size=6), st.booleans())
def test_nothing_moves_when_all_are_right_or_all_are_wrong(ratings, right):
    everyone = range(len(ratings))
    after = ratings.copy()
    rate(after, everyone if right else [], [] if right else everyone)
    assert after == ratings


@given(games)
def test_the_same_votes_give_the_same_bits(votes):
    assert played(*votes) == played(*votes)


@given(games, st.integers(0, 30))
def test_going_on_from_a_checkpoint_is_going_through(votes, cut):
    halfway = played(*votes[:cut])
    for choice, said in votes[cut:]:
        halfway.apply(*split(choice, said), len(said))
    assert halfway == played(*votes)


@given(choices, verdicts)
def test_winners_gain_and_losers_lose(choice, said):
    correct, wrong = split(choice, said)
    elo = played((choice, said)).elo
    if correct and wrong:
        assert all(elo[judge] > 1000 for judge in correct)
        assert all(elo[judge] < 1000 for judge in wrong)


@given(games)
def test_every_vote_is_counted_once_for_each_judge_that_answered(votes):
    standings = played(*votes)
    for judge in range(len(standings.elo)):
        answered = sum(said[judge] is not None for _, said in votes)
        assert standings.agree[judge] + standings.disagree[judge] == answered


@pytest.mark.parametrize(
    "agree, disagree, percent",
    [(1, 0, 100.0), (0, 1, 0.0), (2, 1, 66.7), (1, 2, 33.3), (33, 5, 86.8), (0, 0, None)],
)
def test_agreement_has_one_decimal_and_is_null_without_votes(agree, disagree, percent):
    assert agree_rate(agree, disagree) == percent

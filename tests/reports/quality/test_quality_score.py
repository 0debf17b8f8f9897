"""The quality score: worked values, and one score however it is computed."""

from datetime import UTC, datetime
from itertools import groupby
from math import exp, fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.quality.closed_form import course
from reports.quality.score import (
    MICROSECONDS,
    SECONDS,
    FoldState,
    Rule,
    WeightedVote,
    folding,
    half_life,
    median_gap,
    microseconds,
    step,
    time_of,
)

DAY = 86_400
# previous, elapsed, lambda, votes, reputations -> decay, mean, score, freshness: as recorded in
# seed_numbers.json; where a source printed another score, it is an error of the source.
WORKED = {
    "flag after 7 s": (0.5, 7, 0.01, [0], None, 0.932394, 0, 0.466197, 0.067606),
    "three days": (0.72, 3, 0.1, [0.9, 0.8, 0.6], None, 0.740818, 0.766667, 0.732095, 0.259182),
    "hosted service": (
        *(0.5, 7200, 0.01, [0.8, 0.6, 0.9, 0.7, 0.5], [1, 0.8, 1.2, 0.9, 0.7]),
        *(0, 0.726087, 0.726087, 1),
    ),
    "no time": (0.5, 0, 0.01, [1], None, 1, 1, 0.5, 0),
    "ten minutes": (0.9, 600, 0.01, [0], None, 0.002479, 0, 0.002231, 0.997521),
    "an hour": (0.7, 3600, 0.01, [0.9, 0.8, 0.6], [1, 1, 0.8], 0, 0.778571, 0.778571, 1),
}


@pytest.mark.parametrize("case", WORKED)
def test_worked_values(case):
    previous, elapsed, rate, votes, reputations, *expected = WORKED[case]
    found = step(previous, elapsed, rate, votes, reputations)
    assert [round(each, 6) for each in found] == expected


def test_no_votes_move_nothing():
    assert step(0.7, 1000, 0.01, []) == (1.0, None, 0.7, 0.0)


@pytest.mark.parametrize(
    "arguments, why",
    [
        ((0.5, 1, 0.1, [1.5]), "vote is outside"),
        ((0.5, 1, 0.1, [float("nan")]), "vote is outside"),
        ((0.5, 1, 0.1, [1], [0]), "reputation is not above 0"),
        ((0.5, 1, 0.1, [1], [1, 1]), "2 reputations for 1 votes"),
        ((1.5, 1, 0.1, [1]), "previous score is outside"),
        ((0.5, -1, 0.1, [1]), "time runs forward"),
        ((0.5, 1, 0, [1]), "the rate is above 0"),
    ],
)
def test_what_cannot_be_is_an_error_that_says_why(arguments, why):
    with pytest.raises(ValueError, match=why):
        step(*arguments)


def fold(votes, rule):
    standing, count = FoldState(rule.initial), folding(rule)
    for vote in votes:
        count(standing, vote)
    return standing


def cast(*votes):
    """Return votes given as (seconds, worth), numbered in their order."""
    return [
        WeightedVote(int(at * MICROSECONDS), seq, worth, 1.0)
        for seq, (at, worth) in enumerate(votes, start=1)
    ]


def test_votes_of_one_time_are_one_batch():
    rule = Rule(initial=0.5, rate=0.01)
    apart = fold(cast((7, 1), (8, 0), (9, 0), (10, 1)), rule)
    together = fold(cast((7, 1), (7, 0), (7, 0), (7, 1)), rule)
    assert together.score == 0.5
    assert apart.score != 0.5


def test_a_batch_takes_in_what_comes_within_its_window_of_its_first_vote():
    votes = cast((100, 1), (109.9, 0), (110, 0))
    in_two = fold(votes, Rule(initial=0.5, rate=0.01, window=10 * MICROSECONDS))
    assert (in_two.opened, in_two.weight, in_two.votes) == (110 * MICROSECONDS, 1.0, 3)
    first = step(0.5, 100, 0.01, [1, 0])
    assert in_two.score == pytest.approx(step(first.score, 10, 0.01, [0]).score, abs=1e-15)
    assert fold(votes, Rule(0.5, 0.01, window=11 * MICROSECONDS)).weight == 3.0


def test_time_begins_with_the_project_or_the_earliest_vote_whichever_is_older():
    made = 50 * MICROSECONDS
    assert fold(cast((57, 0)), Rule(0.5, 0.01, start=made)).score == pytest.approx(
        0.466197, abs=1e-6
    )
    older = fold(cast((20, 0), (27, 0)), Rule(0.5, 0.01, start=made))
    assert older.score == pytest.approx(0.466197, abs=1e-6)


def test_constant_votes_one_by_one_are_as_one_batch_and_others_are_not():
    rule = Rule(initial=0.5, rate=0.01)
    one_by_one = fold(cast((1, 1), (2, 1), (3, 1)), rule).score
    assert one_by_one == pytest.approx(step(0.5, 3, 0.01, [1, 1, 1]).score, abs=1e-15)
    flag_first = fold(cast((3600, 0), *((3600 + n, 1) for n in range(1, 10))), rule).score
    assert flag_first == pytest.approx(0.08606881472877148, abs=1e-12)
    assert step(0.5, 3600, 0.01, [0] + [1] * 9).score == pytest.approx(0.9)


def test_a_day_has_the_same_score_in_every_unit():
    votes = cast((DAY, 1), (3 * DAY, 0))
    rules = [Rule(0.5, 0.1 * seconds / DAY, unit) for unit, seconds in SECONDS.items()]
    scores = {round(fold(votes, rule).score, 12) for rule in rules}
    assert len(scores) == 1


def test_half_lives_and_gaps():
    assert round(half_life(0.01, "second")) == 69
    assert round(half_life(0.1, "day") / DAY, 2) == 6.93
    assert median_gap([]) is None
    assert median_gap([0, 0, 0, 9 * MICROSECONDS]) == 0.0


def test_times_are_exact():
    at = datetime(2026, 11, 21, 9, 0, 0, 123457, tzinfo=UTC)
    assert time_of(microseconds(at)) == at


# --- one score, however it is computed ------------------------------------------------------------

worths = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
gaps = st.one_of(
    st.just(0), st.integers(0, 10), st.integers(0, 10**8), st.integers(0, 10**13), st.just(10**15)
)
ballots = st.lists(st.tuples(gaps, worths, st.floats(1e-6, 2147)), min_size=1, max_size=60)
rules = st.builds(
    Rule,
    initial=st.floats(0, 1),
    rate=st.floats(1e-6, 1000),
    unit=st.sampled_from(list(SECONDS)),
    window=st.sampled_from([0, 0, 1, 10**6, 10**10]),
    start=st.integers(-(10**9), 10**9),
)


def in_time(ballots):
    at, votes = 0, []
    for seq, (gap, worth, reputation) in enumerate(ballots, start=1):
        at += gap
        votes.append(WeightedVote(at, seq, worth, reputation))
    return votes


def as_arrays(votes):
    at, seq, worth, reputation = zip(*votes, strict=True)
    return np.array(at), np.array(seq), np.array(worth), np.array(reputation)


def as_weighted_sum(votes, rule):
    """The definition: batch by batch, each weighing `exp(-lambda (T - t))` of what it brought."""
    batches = []
    for vote in votes:
        opened = batches[-1][0].cast_at if batches else None
        if opened is not None and (vote.cast_at == opened or vote.cast_at - opened < rule.window):
            batches[-1].append(vote)
        else:
            batches.append([vote])
    times = [batch[0].cast_at for batch in batches]
    rate, end = rule.rate / (SECONDS[rule.unit] * MICROSECONDS), times[-1]
    befores = [min(rule.start, times[0]), *times]
    parts = [rule.initial * exp(-rate * (end - befores[0]))]
    for before, batch in zip(befores, batches, strict=False):
        mean = fsum(v.worth * v.reputation for v in batch) / fsum(v.reputation for v in batch)
        brought = (1 - exp(-rate * (batch[0].cast_at - before))) * mean
        parts.append(brought * exp(-rate * (end - batch[0].cast_at)))
    return fsum(parts)


@given(ballots, rules)
def test_recursion_closed_form_and_definition_agree_after_every_vote(ballots, rule):
    votes = in_time(ballots)
    found = course(*as_arrays(votes), rule)
    standing, count = FoldState(rule.initial), folding(rule)
    for number, vote in enumerate(votes, start=1):
        count(standing, vote)
        same = found.state_after(number)
        assert (same.at, same.seq, same.votes, same.passes, same.opened) == (
            *(standing.at, standing.seq, standing.votes, standing.passes, standing.opened),
        )
        assert same.score == pytest.approx(standing.score, abs=1e-9)
        assert same.freshness == pytest.approx(standing.freshness, abs=1e-9)
        assert found.score[number - 1] == same.score
        assert 0 <= standing.score <= 1 + 1e-12
    assert standing.score == pytest.approx(as_weighted_sum(votes, rule), abs=1e-9)


@given(ballots, rules, st.data())
def test_the_fold_goes_on_from_any_standing(ballots, rule, data):
    votes = in_time(ballots)
    place = data.draw(st.integers(0, len(votes)))
    standing, count = fold(votes[:place], rule), folding(rule)
    for vote in votes[place:]:
        count(standing, vote)
    assert standing == fold(votes, rule)


@given(ballots, rules)
def test_batches_are_folded_as_single_steps_are(ballots, rule):
    votes = in_time(ballots)
    rule = Rule(rule.initial, rule.rate, rule.unit, start=rule.start)
    score, before = rule.initial, min(rule.start, votes[0].cast_at)
    for at, of_one_time in groupby(votes, key=lambda vote: vote.cast_at):
        batch = list(of_one_time)
        passed = (at - before) / MICROSECONDS / SECONDS[rule.unit]
        weights = [vote.reputation for vote in batch]
        score = step(min(score, 1.0), passed, rule.rate, [v.worth for v in batch], weights).score
        before = at
    assert fold(votes, rule).score == pytest.approx(score, abs=1e-9)


def test_a_rate_at_which_one_cumulative_sum_would_overflow():
    votes = cast(*((n * DAY, n % 3 / 2) for n in range(5000)))
    rule = Rule(initial=0.5, rate=0.01)
    found = course(*as_arrays(votes), rule)
    assert found.score[-1] == pytest.approx(fold(votes, rule).score, abs=1e-12)

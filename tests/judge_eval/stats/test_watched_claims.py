"""Equal judges are rarely told apart, looked at after every vote: a short bench."""

from itertools import islice

import numpy as np
import pytest

from bench.claims import (
    BETTER,
    ON_LARGE,
    ON_SMALL,
    at_the_end,
    beta,
    by_size,
    covered,
    false_beats,
    false_best,
    handed_out,
    log_largest,
    looked_at,
    one_each,
    per_vote,
    percent,
    seeded,
    shared_errors,
)
from judge_eval.stats.claims import always_valid


@pytest.mark.parametrize("run", [one_each, shared_errors, lambda rng: by_size(rng, handed_out)])
def test_equal_judges_are_told_apart_in_at_most_5_percent_of_runs(run):
    largest = np.stack([log_largest(run(rng)) for rng in islice(seeded(), 25)])
    for judges in (2, 3, 4):
        of_some = largest[:, :judges, :judges]
        for false in (false_beats, false_best):
            assert percent(false(of_some, np.full(judges, 0.75))) <= 5


def test_waves_that_lean_to_one_judge_each_leave_no_claim_behind():
    """Two imports, for one judge and then for the other: the largest evidence alone would."""
    ends = np.array([at_the_end(rng, (0.2, -0.2), 0.0) for rng in islice(seeded(), 50)])
    by_largest, by_now = 100 * ends.mean(axis=0)
    assert by_now <= 5 < 25 < by_largest


def test_who_agrees_with_fewer_votes_is_not_claimed_better_for_its_small_prompts():
    truth = np.array([per_vote(ON_SMALL), per_vote(BETTER)])
    assert truth[1] - truth[0] == pytest.approx(0.025)
    assert per_vote(ON_LARGE) == pytest.approx(truth[0])
    runs = [log_largest(by_size(rng, handed_out, BETTER)) for rng in islice(seeded(), 25)]
    largest = np.stack(runs)[:, :2, :2]
    assert percent(false_beats(largest, truth)) <= 5
    assert percent(false_best(largest, truth)) <= 5


def test_forecasts_hold_what_it_really_took():
    boards = [
        board
        for rng in islice(seeded(), 20)
        for board in looked_at(rng, np.array([0.85, 0.75, 0.75]))
    ]
    assert len(boards) > 80
    held, leads = np.array(boards).T
    assert percent(held) >= 65
    assert percent(held[leads]) >= 60


def test_every_pair_is_handed_out_as_often_as_it_is_wanted():
    given = handed_out(np.random.default_rng(1), [0, 0, 0, 1, 2, 2], wanted=3)
    assert np.bincount(given).tolist() == [3] * 6


@pytest.mark.parametrize("rate", [0.6, 0.85])
def test_the_truth_leaves_the_thin_interval_in_at_most_5_percent_of_runs(rate):
    rng, votes = np.random.default_rng(1), np.full((100, 300), 3)
    found = always_valid(rng.binomial(votes, beta(rng, rate, votes.shape)), votes, votes[:, 0])
    assert percent((found[:, 0] > rate) | (found[:, 1] < rate)) <= 5


@pytest.mark.parametrize("prompts, least", [(10, 91), (20, 92)])
def test_the_95_percent_interval_holds_the_truth(prompts, least):
    rng = np.random.default_rng(2)
    for rate in (0.6, 0.85):
        assert percent(covered(rng, 1000, prompts, 5, 3, rate)) >= least

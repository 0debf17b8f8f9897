"""Equal judges are rarely told apart, looked at after every vote: a short bench."""

from itertools import islice

import numpy as np
import pytest

from bench.claims import (
    beta,
    by_size,
    claimed,
    covered,
    handed_out,
    log_largest,
    one_each,
    percent,
    seeded,
    shared_errors,
)
from judge_eval.stats.confidence_sequence import always_valid


@pytest.mark.parametrize("run", [one_each, shared_errors, lambda rng: by_size(rng, handed_out)])
def test_equal_judges_are_told_apart_in_at_most_5_percent_of_runs(run):
    largest = np.stack([log_largest(run(rng)) for rng in islice(seeded(), 25)])
    for judges in (2, 3, 4):
        assert percent(claimed(largest, judges)) <= 5


def test_every_pair_is_handed_out_as_often_as_it_is_wanted():
    given = handed_out(np.random.default_rng(1), [0, 0, 0, 1, 2, 2], wanted=3)
    assert np.bincount(given).tolist() == [3] * 6


@pytest.mark.parametrize("rate", [0.6, 0.85])
def test_the_truth_leaves_the_thin_interval_in_at_most_5_percent_of_runs(rate):
    rng, votes = np.random.default_rng(1), np.full((100, 300), 3)
    found = always_valid(rng.binomial(votes, beta(rng, rate, votes.shape)), votes, votes[:, 0])
    assert percent((found[:, 0] > rate) | (found[:, 1] < rate)) <= 5


@pytest.mark.parametrize("prompts, least", [(10, 91), (20, 93)])
def test_the_95_percent_interval_holds_the_truth(prompts, least):
    rng = np.random.default_rng(2)
    for rate in (0.6, 0.85):
        assert percent(covered(rng, 1000, prompts, 5, 3, rate)) >= least

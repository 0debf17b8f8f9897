"""The interval of a judge's agreement for other prompts and other people."""

from itertools import product
from math import log, sqrt

import numpy as np
import pytest

from judge_eval.stats.judge_figures import prompt_interval, two_way_intervals
from judge_eval.stats.outcomes_table import FAILED, UNASSIGNED
from tests.helpers import oracles

PROMPTS, PEOPLE = 20, 6


def everybody_votes(right):
    """One vote of each person on each prompt; `right` says of both whether a judge is."""
    cells = list(product(range(PROMPTS), range(PEOPLE)))
    prompts, people = np.array(cells).T
    votes = np.array([0 if right(*cell) else 1 for cell in cells])
    return np.zeros((len(cells), 1), dtype=np.int16), votes, prompts, people


def by_definition(right, prompts, people):
    theta, n = np.mean(right), len(right)

    def spread(groups):
        sums = {}
        for group, yes in zip(groups, right, strict=True):
            sums[group] = sums.get(group, 0) + yes - theta
        return len(sums) / (len(sums) - 1) * sum(total**2 for total in sums.values())

    both = spread(zip(prompts.tolist(), people.tolist(), strict=True))
    alone = spread(prompts.tolist()), spread(people.tolist())
    se = sqrt(max(sum(alone) - both, *alone)) / n
    reach = (
        oracles.stats.t.ppf(0.975, min(len(set(prompts)), len(set(people))) - 1)
        * se
        / (theta * (1 - theta))
    )
    return [1 / (1 + np.exp(-(log(theta / (1 - theta)) + s * reach))) for s in (-1, 1)]


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_it_is_defined_to_be(seed):
    rng = np.random.default_rng(seed)
    prompts, people = rng.integers(0, PROMPTS, 300), rng.integers(0, PEOPLE, 300)
    votes, said = rng.integers(0, 3, 300), rng.integers(0, 3, (300, 2)).astype(np.int16)
    found = two_way_intervals(said, votes, prompts, people)
    for judge in range(2):
        right = (said[:, judge] == votes).tolist()
        assert found[:, judge] == pytest.approx(by_definition(right, prompts, people))


def test_people_who_differ_make_it_wider_than_prompts_alone_do():
    given = everybody_votes(lambda prompt, person: (prompt + person) % 5 > 0 and person > 1)
    low, high = two_way_intervals(*given)[:, 0]
    right = np.bincount(given[2], weights=given[1] == 0)
    one_low, one_high = prompt_interval(right, [PEOPLE] * PROMPTS)
    assert low < one_low < one_high < high


def test_no_verdict_is_not_right_and_what_was_not_asked_is_left_out():
    verdicts, votes, prompts, people = everybody_votes(lambda prompt, _: prompt % 3 > 0)
    failed, unasked = verdicts.copy(), verdicts.copy()
    failed[prompts % 3 == 0], unasked[prompts == 0] = FAILED, UNASSIGNED
    whole = two_way_intervals(verdicts, votes, prompts, people)
    assert two_way_intervals(failed, votes, prompts, people) == pytest.approx(whole)
    rest = prompts > 0
    assert two_way_intervals(unasked, votes, prompts, people) == pytest.approx(
        two_way_intervals(verdicts[rest], votes[rest], prompts[rest], people[rest])
    )


def test_few_people_few_prompts_and_one_answer_for_all_have_none():
    verdicts, votes, prompts, people = everybody_votes(lambda prompt, _: prompt % 3 > 0)
    for some in (people < 4, prompts < 9, votes == 0, votes == 1, people < 0):
        found = two_way_intervals(verdicts[some], votes[some], prompts[some], people[some])
        assert np.isnan(found).all()

"""How many items are needed: the model it supposes, and what must follow from it."""

import numpy as np
import pytest

from judge_eval.stats import AltTestSettings, Resampling, alt_test, cohen_kappa, items_needed
from judge_eval.stats.sample_size import _labels

GOOD = (0.9, 0.2)


def shares(found):
    return [figure.value for figure in found.passing.values()]


def test_more_items_make_a_good_judge_pass_more_often():
    found = items_needed(*GOOD, sizes=[20, 40, 80, 160])
    assert shares(found) == sorted(shares(found))
    assert shares(found)[-1] == pytest.approx(1, abs=0.01)
    assert found.items == 40
    assert "With 40 items a judge that is right on 90 %" in found.in_words


def test_a_better_judge_needs_fewer_items():
    sizes = [20, 30, 40, 60, 80, 120, 160, 240, 320]
    needed = [items_needed(accuracy, 0.2, sizes=sizes).items for accuracy in (0.95, 0.85, 0.75)]
    assert needed == sorted(needed)
    assert needed[0] < needed[-1]


def test_a_stricter_epsilon_needs_more_items():
    strict, lax = (items_needed(0.85, 0.2, epsilon=epsilon, sizes=[60]) for epsilon in (0.1, 0.3))
    assert shares(strict) < shares(lax)


def test_a_judge_that_never_passes_needs_no_number_of_items():
    found = items_needed(0.4, 0.05, sizes=[50, 200])
    assert found.items is None
    assert found.in_words == (
        "With up to 200 items a judge that is right on 40 % passes in 0 % of all tests, fewer than "
        "the 80 % asked for."
    )


def test_a_size_is_enough_only_when_all_larger_ones_are():
    """Without epsilon a judge as good as people passes by luck; no size of those is enough."""
    found = items_needed(0.8, 0.2, epsilon=0.0, sizes=[30, 60], power=0.001)
    assert found.items in (None, 30, 60)
    if found.items == 30:
        assert shares(found)[1] >= 0.001


def test_the_same_seed_gives_the_same_answer():
    one, same, other = (items_needed(*GOOD, sizes=[30], seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_shares_have_an_interval():
    [figure] = items_needed(*GOOD, sizes=[30], simulations=200).passing.values()
    assert figure.n == 200
    low, high = figure.interval
    assert low < figure.value < high


def test_people_agree_with_the_kappa_that_is_stated():
    people, judge = _labels(0.7, 0.3, 4, (1, 2, 40_000), np.random.default_rng(0))
    # The truth is always 0 there, which the Alt-Test does not mind and kappa does: turn it.
    truth = np.arange(40_000) % 4
    one, other = (dict(enumerate((said + truth) % 4)) for said in people[0])
    few = Resampling(10)
    assert cohen_kappa(one, {"other": other}, resampling=few).figure.value == pytest.approx(
        items_needed(0.7, 0.3, humans=2, categories=4, simulations=1).human_kappa, abs=0.01
    )
    assert np.mean(judge == 0) == pytest.approx(0.7, abs=0.01)


def test_simulated_tests_are_alt_tests():
    sizes, tests = [35, 70], 40
    needed = items_needed(0.75, 0.25, humans=4, sizes=sizes, simulations=tests, seed=8)
    people, judge = _labels(0.75, 0.25, 3, (tests, 4, sizes[-1]), np.random.default_rng(8))
    expected = [0, 0]
    for number in range(tests):
        for at, size in enumerate(sizes):
            said = {
                str(h): dict(enumerate(row[:size].tolist())) for h, row in enumerate(people[number])
            }
            judged = dict(enumerate(judge[number, :size].tolist()))
            found = alt_test({"j": judged}, said, AltTestSettings(scoring="accuracy"))["j"]
            expected[at] += bool(found.passes)
    assert [share * tests for share in shares(needed)] == expected


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"judge_accuracy": 1.1}, "shares between 0 and 1"),
        ({"human_noise": -0.1}, "shares between 0 and 1"),
        ({"humans": 1}, "at least two people"),
        ({"categories": 1}, "two categories"),
    ],
)
def test_what_cannot_be_supposed_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        items_needed(**{"judge_accuracy": 0.9, "human_noise": 0.2} | options)


@pytest.mark.parametrize("sizes", [[], [1, 30]])
def test_sizes_that_are_too_small_are_refused(sizes):
    with pytest.raises(ValueError, match="at least 2 items"):
        items_needed(*GOOD, sizes=sizes)

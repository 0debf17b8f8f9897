"""Self-agreement: worked values, and what the headline's points say of it."""

import numpy as np
import pytest

from judge_eval.stats.claims import claims
from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
from judge_eval.stats.self_agreement import item_agreement, self_agreement
from judge_eval.stats.wording import Words


@pytest.mark.parametrize(
    "orders, share",
    [
        (["AAA"], 1),
        (["AAB"], 1 / 3),
        (["AB"], 0),
        (["AAB", "BBB"], 4 / 6),
        (["A", "B"], None),
        ([], None),
    ],
)
def test_pairs_are_compared_within_each_order(orders, share):
    assert item_agreement(orders) == (share if share is None else pytest.approx(share))


def test_the_mean_is_over_items_and_those_with_one_answer_are_counted_apart():
    share = self_agreement([["AAA"], ["AAB"], ["AB"]] * 10 + [["A"]] * 5, range(35))
    assert share.value == pytest.approx(4 / 9)
    assert (share.n, share.comparisons) == (30, 35)
    assert share.low < share.value < share.high


def test_below_twenty_items_there_is_none_and_ten_prompts_give_no_interval():
    assert self_agreement([["AA"]] * 19, range(19)).value is None
    few = self_agreement([["AA"], ["AB"]] * 10, [n % 5 for n in range(20)])
    assert (few.value, few.low) == (0.5, None)


def test_the_points_name_judges_below_ninety_percent():
    opened = [ItemOpened(n, n, n, 1, [0, n % 5 > 0]) for n in range(40)]
    entered = enter([*opened, *(VoteCast(40 + n, n, 0) for n in range(40))], range(40))
    claimed = claims(entered, np.array([False, False]), np.array([1, 0.2]))
    names = ["north", "south"]
    words = Words(names, claimed, [0, 1], [1, 0.2], [1, 1], 40, itself={0: 0.89, 1: 0.9})
    assert ("Self-agreement", "Asked again, they answer alike: north on 89 %.") in [
        (lead, text.replace("\N{NO-BREAK SPACE}", " ")) for lead, text in words.points()
    ]

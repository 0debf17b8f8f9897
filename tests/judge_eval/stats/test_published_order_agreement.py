"""Ratings of forty prompts, worked out by an independent prototype."""

import json
from pathlib import Path

import numpy as np
import pytest

from judge_eval.stats.evidence import evidence, thresholds
from judge_eval.stats.evidence_order import ItemClosed, ItemOpened, VoteCast
from judge_eval.stats.judge_figures import ratio
from judge_eval.stats.order_agreement import (
    Ratings,
    enter_units,
    order_agreement,
    order_credits,
    people_credits,
)
from voting.items.order import couples

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not CASES.exists(), reason="not run: no ../shared/cases"),
]


@pytest.fixture(scope="module")
def case():
    return json.loads((CASES / "ratings.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def units(case):
    """The key of the unit of each prompt."""
    of_one = [prompt["id"] for prompt in case["prompts"] if len(prompt["items"]) == 1]
    return {prompt["id"]: prompt["id"] for prompt in case["prompts"]} | couples(of_one)


@pytest.fixture(scope="module")
def names(case):
    return [*case["judges"], *case["baselines"]]


@pytest.fixture(scope="module")
def items(case, units):
    return [(units[prompt["id"]], item) for prompt in case["prompts"] for item in prompt["items"]]


@pytest.fixture(scope="module")
def ratings(case, items):
    keys = case["expected"]["units"]
    rows = [
        (keys.index(unit), number, ord(vote["voter"][0]), vote["value"])
        for number, (unit, item) in enumerate(items)
        for vote in item["votes"]
    ]
    return Ratings(*np.array(rows).T, len(keys))


@pytest.fixture(scope="module")
def said(items, names):
    return np.array([[item["verdicts"][name] for name in names] for _, item in items], dtype=float)


@pytest.fixture(scope="module")
def found(said, ratings):
    return order_credits(ratings, said, np.ones_like(said, dtype=bool))


def test_units_are_prompts_and_couples_in_their_order(case, units):
    assert list(dict.fromkeys(units.values())) == case["expected"]["units"]


def test_credits_of_every_unit_and_the_figures_made_of_them_are_as_worked_out(case, names, found):
    expected = case["expected"]
    shares = order_agreement(ratio(*found))
    for place, name in enumerate(names):
        of = expected["order_agreement"][name]
        assert tuple(found[:, :, place].sum(axis=1)) == (
            of["credits"],
            of["pairs"],
        )
        share = shares[place]
        assert (share.value, share.n) == (pytest.approx(of["value"], rel=1e-9), of["units"])
        if name in case["judges"]:
            ends = pytest.approx((of["low"], of["high"]), rel=1e-9)
            assert (share.low, share.high) == ends
            per_unit = found[:, :, place].T
            assert per_unit.tolist() == expected["per_unit"][name]
        else:
            assert of["se"] == 0
            assert share.low is None
    assert names == list(expected["order_agreement"])


def test_people_among_themselves_are_as_worked_out(case, ratings):
    [share] = order_agreement(ratio(*people_credits(ratings)))
    assert share.value == pytest.approx(case["expected"]["people"], rel=1e-9)


def test_evidence_as_units_enter_is_as_worked_out(case, items, names, ratings, said):
    expected = case["expected"]
    keys = expected["units"]
    opened = [
        ItemOpened(number, number, keys.index(unit), case["wanted"], [0] * len(names))
        for number, (unit, _) in enumerate(items)
    ]
    voted = [VoteCast(1000 + row, item, row) for row, item in enumerate(ratings.items.tolist())]
    events = [*opened, *voted, ItemClosed(9999)]
    asked = np.ones_like(said, dtype=bool)
    entered = enter_units(events, range(len(keys)), ratings, said, asked)
    assert entered.prompts == tuple(range(len(keys)))
    is_baseline = np.array([name in case["baselines"] for name in names])
    weighed = evidence(entered, thresholds(is_baseline))
    for pair, of in expected["evidence"].items():
        cell = tuple(names.index(name) for name in pair.split(">"))
        evidences = np.exp((weighed.log_now[cell], weighed.log_largest[cell]))
        assert evidences == pytest.approx((of["last"], of["largest"]), rel=1e-9)


def test_the_share_of_equal_ratings_is_as_worked_out(case, names, ratings, said):
    equal = (said[ratings.items] == ratings.values[:, None]).mean(axis=0)
    expected = [case["expected"]["exact"][name] for name in names]
    assert equal.tolist() == pytest.approx(expected, rel=1e-9)

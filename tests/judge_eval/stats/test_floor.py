"""A judge that knows nothing of the votes is hardly ever said to beat the floor.

Whatever the orders in which it is asked, the ballot, and what people like.
"""

from functools import partial
from itertools import product
from operator import attrgetter
from random import Random

import numpy as np
import pytest

from judge_eval.judging.baselines import (
    BASELINES,
    names_asked,
    names_for,
    names_for_single,
    opinion_of_single,
)
from judge_eval.judging.prompts.orders import answer_in
from judge_eval.judging.prompts.parse import ParsedVerdict
from judge_eval.stats.evidence import beats, evidence, thresholds
from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
from judge_eval.stats.judge_figures import ratio
from judge_eval.stats.order_agreement import Ratings, enter_units, order_credits
from voting.items.choices import CHOICES, SWAPPED
from voting.items.kinds import joined

PROMPTS = 100
# Of so few runs as the suite has time for; 5 % of many.
MOST = 0.13
WAYS = ("both", "AB", "BA", "random")
BALLOTS = (("A", "B"), ("A", "B", "tie"), ("A", "B", "both_bad"), CHOICES)
# What people choose, by how often: the sides as stored, or the longer and the shorter text.
TASTES = {
    "as stored": lambda chance, pair: "A" if chance.random() < 0.35 else "B",
    "shorter": lambda chance, pair: longer(pair) if chance.random() < 0.25 else shorter(pair),
    "anything": lambda chance, pair: chance.choice("AB"),
}


def longer(pair):
    return "A" if len(pair[0]) > len(pair[1]) else "B"


def shorter(pair):
    return SWAPPED[longer(pair)]


# What a judge says of what it is shown: of the first and the second output, in a place.
def coin(chance, place, order):
    return chance.choice("AB")


def biased(chance, place, order):
    return "A" if chance.random() < 0.8 else "B"


def first(chance, place, order):
    return "A"


def second(chance, place, order):
    return "B"


def undecided(chance, place, order):
    return chance.choices(CHOICES, (3, 3, 2, 2))[0]


def tie(chance, place, order):
    return "tie"


def both_bad(chance, place, order):
    return "both_bad"


def steady_coin(chance, place, order):
    """One toss for each pair, kept in both orders."""
    side = Random(f"{id(chance)} {place}").choice("AB")
    return side if order == "AB" else SWAPPED[side]


JUDGES = (coin, biased, first, second, undecided, tie, both_bad, steady_coin)


def asked(say, orders):
    return answer_in({order: ParsedVerdict(say(order)) for order in orders}).winner


def claimed(verdicts, votes):
    """Whether the first of some judges is said to beat all others, its baselines."""
    codes = {choice: code for code, choice in enumerate(dict.fromkeys([*votes, *verdicts.ravel()]))}
    opened = [
        ItemOpened(n, n, n, 1, [codes[each] for each in row])
        for n, row in enumerate(verdicts.tolist())
    ]
    voted = [VoteCast(len(votes) + n, n, codes[vote]) for n, vote in enumerate(votes)]
    entered = enter([*opened, *voted], range(len(votes)))
    return beats_floor(entered, (verdicts == np.array(votes)[:, None]).mean(axis=0))


def beats_floor(entered, agreement):
    is_baseline = np.arange(entered.n_judges) > 0
    proof = evidence(entered, thresholds(is_baseline))
    return bool(beats(proof.reached, proof.log_now, agreement)[0, 1:].all())


def study_of_pairs(seed, way, judge, ballot, taste, kind):
    chance, names = Random(seed), names_asked(names_for(kind, ballot), way)
    left = [choice for choice in ballot if choice not in "AB"]
    rows, votes = [], []
    for place in range(PROMPTS):
        pair = ["x" * chance.randint(1, 99) for _ in "ab"]
        orders = {"both": ("AB", "BA"), "random": (chance.choice(("AB", "BA")),)}.get(way, (way,))

        def of_floor(name, order, pair=pair, place=place):
            shown = pair if order == "AB" else pair[::-1]
            return BASELINES[name](*shown, f"{seed}-{place} {order}").winner

        says = [partial(judge, chance, place), *(partial(of_floor, name) for name in names)]
        rows.append([asked(say, orders) for say in says])
        is_left = left and chance.random() < 0.2
        votes.append(chance.choice(left) if is_left else TASTES[taste](chance, pair))
    return claimed(np.array(rows), votes)


CASES = list(product(BALLOTS, TASTES, ("text", "image")))


def share_said(way, judge, runs):
    said = (study_of_pairs(seed, way, judge, *CASES[seed % len(CASES)]) for seed in range(runs))
    return sum(said) / runs


@pytest.mark.parametrize("judge", [coin, first, steady_coin], ids=attrgetter("__name__"))
@pytest.mark.parametrize("way", WAYS)
def test_of_pairs(way, judge):
    assert share_said(way, judge, len(CASES)) <= MOST


@pytest.mark.thorough
@pytest.mark.parametrize("judge", JUDGES, ids=attrgetter("__name__"))
@pytest.mark.parametrize("way", WAYS)
def test_of_pairs_with_many_judges(way, judge):
    assert share_said(way, judge, 10 * len(CASES)) <= 0.05


# --- single items -----------------------------------------------------------------------------

KINDS = {
    "pass_flag": ("pass", "flag"),
    "category": ("good", "fair", "poor"),
    "labels": ("rude", "long"),
}
SETS = [joined(some) for some in ([], ["rude"], ["long"], ["rude", "long"])]


def study_of_items(seed, kind, judge):
    """People and the judge draw from the answers, each by its own odds; or it has one answer."""
    chance, words, answers = Random(seed), KINDS[kind], SETS if kind == "labels" else KINDS[kind]
    names, odds = names_for_single(kind, words), [chance.random() ** 3 for _ in answers]
    own = [chance.random() ** 3 for _ in answers] if judge == "drawn" else None
    constant = chance.choice(answers)
    rows, votes = [], []
    for place in range(PROMPTS):
        said = chance.choices(answers, own)[0] if own else constant
        floor = [opinion_of_single(n, kind, words, f"{seed}-{place}").winner for n in names]
        rows.append([said, *floor])
        votes.append(chance.choices(answers, odds)[0])
    return claimed(np.array(rows), votes)


@pytest.mark.parametrize("judge", ["drawn", "constant"])
@pytest.mark.parametrize("kind", KINDS)
def test_of_single_items(kind, judge):
    assert sum(study_of_items(seed, kind, judge) for seed in range(40)) <= 40 * MOST


@pytest.mark.parametrize("judge", ["drawn", "constant"])
def test_of_ratings(judge):
    said = [study_of_ratings(seed, judge) for seed in range(40)]
    assert sum(said) <= 40 * MOST


def study_of_ratings(seed, judge):
    """Two outputs for each prompt; people go by anything, or by length."""
    chance, words = np.random.default_rng(seed), tuple("12345")
    texts = ["x" * int(n) for n in chance.integers(1, 4000, 2 * PROMPTS)]
    lengths = np.array([len(text) for text in texts])
    likes = seed % 3 - 1
    rated = np.argsort(np.argsort(likes * lengths + chance.normal(0, 2000, len(lengths)))) % 5 + 1
    names = names_for_single("rating", words)
    rows = [
        [chance.integers(1, 6) if judge == "drawn" else 4]
        + [
            float(said.winner) if said.score is None else said.score
            for name in names
            if (said := opinion_of_single(name, "rating", words, f"{seed}-{n}", text))
        ]
        for n, text in enumerate(texts)
    ]
    items = np.arange(2 * PROMPTS)
    grades = np.array(rows, dtype=float)
    ratings = Ratings(items // 2, items, np.zeros_like(items), rated.astype(float), PROMPTS)
    assigned = np.ones(grades.shape, dtype=bool)
    events = [ItemOpened(n, n, n // 2, 1, [0] * grades.shape[1]) for n in items.tolist()]
    events += [VoteCast(len(items) + n, n, n) for n in items.tolist()]
    entered = enter_units(events, range(PROMPTS), ratings, grades, assigned)
    shares = ratio(*order_credits(ratings, grades, assigned))
    return beats_floor(entered, np.nanmean(shares, axis=0))

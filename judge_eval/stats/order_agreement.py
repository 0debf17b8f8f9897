"""Do judges put outputs in the same order as people? The agreement by which ratings are ranked.

Equal ratings reward a judge that always gives the most frequent one. So of two outputs that one
person rated differently it counts whether the judge rates the same one higher: 1, or 1/2 where it
rates both alike, or 0. A judge that always says the same, or draws at random, has 1/2.

Units are prompts of two items or more, or two prompts of one item each. The share of a unit is the
mean over its pairs of items, and order agreement is the mean of the shares.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.estimate import Share
from judge_eval.stats.evidence_order import EnteredVotes, Event, Order, PromptQueue, carriers
from judge_eval.stats.judge_figures import ratio, share_of_prompts

# Twenty thousand items of one prompt make 200 million pairs.
MOST_NEIGHBOURS = 300
MOST_CARRIERS = 100
BY_CONSTRUCTION = "it rates alike whatever people rate differently, which is 1/2"


@dataclass(frozen=True, eq=False, slots=True)
class Ratings:
    """Ratings of items that belong to units, one row per rating; arrays of shape (n,).

    `units`, `items` and `people` are numbers from 0, `values` the ratings: more is better.
    """

    units: IntArray
    items: IntArray
    people: IntArray
    values: FloatArray
    n_units: int

    def select(self, rows: IntArray | BoolArray) -> Self:
        units, items, people = self.units[rows], self.items[rows], self.people[rows]
        return type(self)(units, items, people, self.values[rows], self.n_units)

    def pairs(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the rows of every two ratings of one person in one unit, and which is higher.

        That is 1 for the first, -1 for the other, 0 for neither. Where a person rated more than 300
        items of a unit, each with the next 300.
        """
        order = np.lexsort((self.items, self.people, self.units))
        group = np.stack([self.units[order], self.people[order]])
        sums = [np.stack([order[:0], order[:0]])]
        for step in range(1, min(len(order), MOST_NEIGHBOURS + 1)):
            [rows] = np.nonzero((group[:, step:] == group[:, :-step]).all(axis=0))
            if not len(rows):
                break
            sums.append(np.stack([order[rows], order[rows + step]]))
        first, second = np.hstack(sums)
        return first, second, np.sign(self.values[first] - self.values[second])


def order_credits(ratings: Ratings, verdicts: FloatArray, assigned: BoolArray) -> FloatArray:
    """Return credits and numbers of pairs of items, shape (2, n_units, n_judges).

    Of the pairs that one person rated differently. `verdicts` and `assigned`, of shape (n_items,
    n_judges), are the judges' ratings, NaN where one is missing, and what they were asked about:
    other pairs do not count for them.

    Examples
    --------
    One person rates three items of a prompt 5, 3 and 3; the judge says 4, 4 and 1.

    >>> ratings = Ratings(*np.array([[0, 0, 0], [0, 1, 2], [0, 0, 0], [5, 3, 3]]), n_units=1)
    >>> verdicts = np.array([[4.0], [4.0], [1.0]])
    >>> order_credits(ratings, verdicts, ~np.isnan(verdicts)).tolist()
    [[[1.5]], [[2.0]]]
    """
    first_rows, second_rows, sign = ratings.pairs()
    first_rows, second_rows, sign = first_rows[sign != 0], second_rows[sign != 0], sign[sign != 0]
    units, first = ratings.units[first_rows], ratings.items[first_rows]
    second = ratings.items[second_rows]
    sums = np.zeros((2, ratings.n_units, verdicts.shape[1]))
    for judge, (grades, was_assigned) in enumerate(zip(verdicts.T, assigned.T, strict=True)):
        both = was_assigned[first] & was_assigned[second]
        # No verdict is in no order.
        credit = np.nan_to_num((1 + sign * np.sign(grades[first] - grades[second])) / 2)
        for place, weights in enumerate((both * credit, both)):
            sums[place, :, judge] = np.bincount(units, weights, ratings.n_units)
    return sums


def people_credits(ratings: Ratings) -> FloatArray:
    """Return the same of people, shape (2, n_units, 1): each one's ratings as a judge of others'.

    Over all ordered pairs of people who rated the same two items.
    """
    first, second, sign = ratings.pairs()
    both = np.stack([ratings.units[first], ratings.items[first], ratings.items[second]])
    (units, *_), group = np.unique(both, axis=1, return_inverse=True)
    up, down, alike = (
        np.bincount(group, sign == direction, len(units)) for direction in (1, -1, 0)
    )
    credit = up * (up - 1) + down * (down - 1) + (up + down) * alike / 2
    pairs = (up + down) * (up + down + alike - 1)
    return np.stack(
        [np.bincount(units, weights, ratings.n_units)[:, None] for weights in (credit, pairs)]
    )


def order_agreement(shares: FloatArray) -> list[Share]:
    """Return order agreement of each judge with its 95 % interval, from the shares of units.

    `shares` has shape (n_units, n_judges), NaN where a unit brings nothing. The interval is that of
    `prompt_interval` with ``c_i`` the share of a unit and ``n_i = 1``; below 10 units there is
    none, and for a judge that has 1/2 in every unit there is nothing to be unsure about.

    Examples
    --------
    >>> units = np.array([[1, 0.5]] * 6 + [[0.5, 0.5]] * 3 + [[0, 0.5], [np.nan, np.nan]])
    >>> one, always_3 = order_agreement(units)
    >>> one.value, round(one.low, 3), round(one.high, 3), one.n
    (0.75, 0.438, 0.92, 10)
    >>> always_3.value, always_3.low, always_3.why == BY_CONSTRUCTION
    (0.5, None, True)
    """
    return [_share(column[~np.isnan(column)]) for column in shares.T]


def _share(shares: FloatArray) -> Share:
    once = np.ones(len(shares), np.int64)
    share = share_of_prompts(shares, once, once, of_ratings=True)
    if share.method and (shares == 0.5).all():
        return replace(share, low=None, high=None, method=None, why=BY_CONSTRUCTION)
    return share


def enter_units(
    events: Iterable[Event],
    unit_order: Order,
    ratings: Ratings,
    verdicts: FloatArray,
    assigned: BoolArray,
) -> EnteredVotes:
    """Let units enter as prompts do; each brings its share, whatever its size. See `enter`.

    Of `events` the prompts are units, by the numbers of `unit_order`, and the choice of a vote is
    its row in `ratings`. The other arguments are those of `order_credits`. What enters of an item
    are its first wanted ratings.
    """
    queue = PromptQueue(unit_order, are_units=True).follow(events)
    entries = list(queue.entries.values())
    rows = [[row for _, rated in entry.votes for row in rated] for entry in entries]
    entered_ratings = ratings.select(
        np.array([row for unit_rows in rows for row in unit_rows], np.int64)
    )
    place = np.repeat(np.arange(len(rows)), [len(unit_rows) for unit_rows in rows])
    entered_ratings = replace(entered_ratings, units=place, n_units=len(rows))
    shares = ratio(*order_credits(entered_ratings, verdicts, assigned))
    brings = ~np.isnan(shares)
    first_judges, second_judges = np.triu_indices(shares.shape[1], 1)

    def ahead(voted_ratings: Ratings) -> FloatArray:
        means = np.nan_to_num(ratio(*order_credits(voted_ratings, verdicts, assigned))).sum(axis=0)
        return np.asarray(means[:, None] - means)

    voters = np.array([voter for entry in entries for voter in entry.voters], np.int64)
    names, counts = np.unique(voters, return_counts=True)
    # Of very many people those with most ratings may carry a lead.
    names = names[np.argsort(-counts, kind="stable")[:MOST_CARRIERS]]
    without = ((name, ahead(entered_ratings.select(voters != name))) for name in names.tolist())
    rest = sum(unit not in queue.entries for unit in queue.sizes)
    return EnteredVotes(
        prompts=tuple(queue.entries),
        seqs=np.array([entry.seq for entry in entries], np.int64),
        right=np.nan_to_num(shares),
        votes=brings.astype(np.int64),
        most_votes=np.ones(len(entries), np.int64),
        shared=(brings[:, first_judges] & brings[:, second_judges]).astype(np.int64),
        differences=shares[:, first_judges] - shares[:, second_judges],
        all_votes=len(place),
        planned=np.ones(len(queue.sizes), np.int64),
        required=np.array([*queue.sizes.values()], np.int64),
        rest=np.ones(rest, np.int64),
        vote_numbers=np.array([entry.vote_number for entry in entries], np.int64),
        carriers=carriers(ahead(entered_ratings), without),
    )

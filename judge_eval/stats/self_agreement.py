"""Whether a judge answers the same when it is asked the same again.

It is no consistency between orders: answers are compared within each order alone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import comb
from typing import Final

import numpy as np

from judge_eval.stats.estimate import Share
from judge_eval.stats.judge_figures import NOTHING, share_of_prompts

FEWEST_ITEMS: Final = 20


def item_agreement(orders: Iterable[Sequence[str]]) -> float | None:
    """Return the share of equal pairs among the answers on one item, within each order.

    None with less than two answers in every order.

    Examples
    --------
    >>> [round(item_agreement([answers]), 6) for answers in ("AAA", "AAB", "AB")]
    [1.0, 0.333333, 0.0]
    >>> item_agreement(["AA", "BB"]), item_agreement(["A", "B"])
    (1.0, None)
    """
    equal = pairs = 0
    for answers in orders:
        pairs += comb(len(answers), 2)
        equal += sum(comb(number, 2) for number in Counter(answers).values())
    return equal / pairs if pairs else None


def self_agreement(items: Sequence[Iterable[Sequence[str]]], prompts: Sequence[int]) -> Share:
    """Return the mean over items, with its interval by prompts; none below 20 items.

    `items` hold, for each order, the answers that came; `comparisons` of the result is how many
    items there were, `n` how many of them had two answers.

    Examples
    --------
    >>> self_agreement([["AAA"], ["AAB"], ["AB"], ["A"]], range(4)).why
    'fewer than 20 items were answered twice'
    >>> share = self_agreement([["AAA"], ["AAB"], ["AB"]] * 10, range(30))
    >>> round(share.value, 6), share.n, share.method
    (0.444444, 30, 'prompts')
    """
    agreements = [item_agreement(orders) for orders in items]
    repeated = [n for n, value in enumerate(agreements) if value is not None]
    if not repeated:
        return NOTHING
    if len(repeated) < FEWEST_ITEMS:
        reason = f"fewer than {FEWEST_ITEMS} items were answered twice"
        return Share(None, n=len(repeated), comparisons=len(items), why=reason)
    number = np.unique([prompts[n] for n in repeated], return_inverse=True)[1]
    right = np.bincount(number, weights=[agreements[n] or 0 for n in repeated])
    votes = np.bincount(number)
    share = share_of_prompts(right, votes, votes, of_ratings=True)
    return replace(share, comparisons=len(items))

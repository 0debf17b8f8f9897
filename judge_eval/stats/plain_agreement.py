"""Plain agreement over all pairs of labels at once, as a board and a paper's table print it."""

from __future__ import annotations

import numpy as np

from judge_eval.stats.averages import NOBODY_IN_COMMON, NOTHING_IN_COMMON, WILSON
from judge_eval.stats.figures import Figure, no_figure
from judge_eval.stats.intervals import wilson
from judge_eval.stats.pairs import Paired
from judge_eval.stats.resampling import Resampling, bootstrap, interval_of, sparse


def agreement(pairs: Paired, *, resampling: Resampling | None = None) -> Figure:
    """Return the share of pairs of labels that are the same.

    Every pair counts once, whoever it is by; `classification` instead averages over people.

    Parameters
    ----------
    pairs : Paired
        Of a judge with people, or of people with each other.
    resampling : Resampling, optional
        Of items, where some item has several pairs: those are not independent. Else the interval
        is Wilson's.

    Examples
    --------
    >>> from judge_eval.stats import paired
    >>> said = {"q1": "A", "q2": "tie"}
    >>> agreement(paired(said, {"ann": said, "ben": {"q1": "B"}})).value
    0.6666666666666666
    """
    if not len(pairs):
        reason = NOBODY_IN_COMMON if pairs.between_people else NOTHING_IN_COMMON
        return no_figure(reason, left_out=pairs.left_out)
    pairs = pairs.merged
    same = pairs.left == pairs.right
    value = float(same.mean())
    if pairs.items == len(pairs):
        interval = wilson(int(same.sum()), len(same))
        return Figure(value, len(pairs), None, interval, WILSON, pairs.left_out)
    settings, patterns = resampling or Resampling(), pairs.patterns
    cells = sparse(
        np.concatenate([np.zeros_like(patterns.pattern), np.ones_like(patterns.pattern)]),
        np.tile(patterns.pattern, 2),
        np.concatenate([same[patterns.pair], np.ones(len(patterns.pair))]),
        (2, len(patterns.counts)),
    )
    resampled = bootstrap(cells, patterns.counts, lambda sums: sums[0] / sums[1], settings)
    found = interval_of(resampled, pairs.items, settings)
    return Figure(value, len(pairs), None, found.interval, found.method, pairs.left_out)

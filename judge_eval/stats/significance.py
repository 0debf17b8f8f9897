"""The tests of the Alt-Test, and their correction: is the judge worse by less than epsilon?

They work on three counts per person: items on which judge and person agree equally well with the
others, on which the person alone agrees better, and on which the judge alone does.
"""

from collections.abc import Sequence
from math import comb, fsum, sqrt

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.estimate import Estimate, require, wilson


def penalty(epsilons: Sequence[float], multiplicative: bool = False) -> FloatArray:
    """Return what a judge must not be worse than, since it costs less: shape (n_epsilons, 3).

    ``d = I_human - I_judge`` is tested against epsilon, ``d = I_human - I_judge / (1 - epsilon)``
    (multiplicative) against 0. These are d less what it is tested against where both are equally
    good, the person alone is better, and the judge alone is.
    """
    epsilon = np.array(epsilons, np.float64)
    require(((epsilon >= 0) & (epsilon < 1)).all(), "epsilon must be at least 0 and less than 1")
    if multiplicative:
        judge = 1 / (1 - epsilon)
        return np.stack([1 - judge, np.ones_like(judge), -judge], axis=-1)
    return np.array([0.0, 1.0, -1.0]) - epsilon[:, np.newaxis]


def t_test(counts: IntArray, values: FloatArray) -> FloatArray:
    """Return the p-values of one-sided one-sample t-tests, alternative: the mean of d is less.

    From counts of shape (…, 3) and values of `penalty` to shape (…, n_epsilons). Where d is the
    same on all items, p is 0 if d is less, else 1; NaN without items.

    Examples
    --------
    >>> t_test(np.array([[20, 3, 7], [30, 0, 0]]), penalty([0.0, 0.2])).round(4)
    array([[0.1057, 0.0017],
           [1.    , 0.    ]])
    """
    from scipy.special import stdtr  # type: ignore[import-untyped]  # slow to import

    n = counts.sum(axis=-1)[..., np.newaxis]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = counts @ values.T / n
        spread = (values - mean[..., np.newaxis]) ** 2
        variance = (counts[..., np.newaxis, :] * spread).sum(axis=-1) / (n - 1)
        p = np.asarray(stdtr(n - 1.0, mean / np.sqrt(variance / n)), np.float64)
    constant = ((counts > 0).sum(axis=-1) == 1)[..., np.newaxis]
    return np.where(constant, np.where(mean < 0, 0.0, 1.0), p)


def mean_of_means(values: FloatArray, group: IntArray, item: IntArray) -> Estimate:
    """Return the mean over groups of their means, with a 95 % interval by items, shapes (n,).

    Values are between -1 and 1; those of one item belong together. The error is that of the linear
    form, with Student's t of (items - 1). Where all values of each group are the same, so many of
    further items may be others as Wilson's interval allows.

    Examples
    --------
    >>> values, group = np.array([1.0, 0, 0, 0, 1, 0]), np.array([0, 1, 0, 1, 0, 1])
    >>> figure = mean_of_means(values, group, np.array([0, 0, 1, 1, 2, 2]))
    >>> round(figure.value, 3), round(figure.low, 3), round(figure.high, 3), figure.n
    (0.333, -0.384, 1.0, 3)
    >>> round(mean_of_means(np.ones(40), np.zeros(40, int), np.arange(40)).low, 3)
    0.825
    """
    from scipy.special import stdtrit  # slow to import

    group = np.unique(group, return_inverse=True)[1]
    size, items = np.bincount(group), len(np.unique(item))
    means = np.bincount(group, values) / size
    # Sums that are the same in whatever order people and items come.
    mean = fsum(means) / len(means)
    apart = (values - means[group]) / (size[group] * len(size))
    low, _ = wilson(items, items) or (0.0, 1.0)
    reach = 2 * (1 - low)
    if apart.any() and items > 1:
        squares = fsum(np.bincount(item, apart).round(12) ** 2)
        reach = float(stdtrit(items - 1, 0.975)) * sqrt(items / (items - 1) * squares)
    return Estimate(mean, max(-1.0, mean - reach), min(1.0, mean + reach), items, "items")


def wilcoxon(counts: IntArray, values: FloatArray) -> FloatArray:
    """Return the exact p-values of Wilcoxon's signed-rank test, for one person with few items.

    There are at most three different d, so the sum of ranks of those above 0 is a sum of at most
    three binomials. Differences of 0 are dropped, equal ones share their mean rank. From counts of
    shape (3,) to shape (n_epsilons,).

    Examples
    --------
    >>> wilcoxon(np.array([6, 1, 3]), penalty([0.0, 0.2])).round(4)
    array([0.3125, 0.0225])
    """
    is_present = counts > 0
    if is_present.sum() == 1:
        return np.where(values[:, is_present][:, 0] < 0, 0.0, 1.0)
    return np.array([_signed_rank(row[is_present], counts[is_present]) for row in values])


def _signed_rank(values: FloatArray, counts: IntArray) -> float:
    """Return P(sum of ranks above 0 <= the one observed), for values that occur so often."""
    sizes = np.abs(values).round(12)
    ranked, chance, observed = 0, np.ones(1), 0
    for size in np.unique(sizes[sizes > 0]):
        alike = sizes == size
        n = int(counts[alike].sum())
        doubled_rank = 2 * ranked + n + 1
        ranked += n
        step = np.zeros(n * doubled_rank + 1)
        step[::doubled_rank] = [comb(n, k) / 2**n for k in range(n + 1)]
        chance = np.convolve(chance, step)
        observed += doubled_rank * int(counts[alike & (values > 0)].sum())
    return float(chance[: observed + 1].sum())


def benjamini_yekutieli(p_values: FloatArray, q: float = 0.05) -> BoolArray:
    """Tell which hypotheses are rejected when the false discovery rate is held at q.

    The k-th smallest of m p-values, of shape (…, m), is compared with
    ``k q / (m (1 + 1/2 + … + 1/m))``; the largest that passes is rejected, with all smaller ones.
    NaN is no test, and m is then less by as many. Source: Y. Benjamini and D. Yekutieli, 2001.

    Examples
    --------
    >>> benjamini_yekutieli(np.array([0.0272, 0.0001, 0.018]))
    array([ True,  True,  True])
    """
    tests = (~np.isnan(p_values)).sum(axis=-1)
    rank = np.arange(1, p_values.shape[-1] + 1)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / rank)])[tests]
    with np.errstate(divide="ignore", invalid="ignore"):
        threshold = rank * (q / (tests * harmonic))[..., np.newaxis]
    ordered = np.sort(p_values, axis=-1)  # NaN comes last and passes nothing
    largest = np.where(ordered <= threshold, ordered, -1.0).max(axis=-1, initial=-1.0)
    return np.asarray(p_values <= largest[..., np.newaxis])

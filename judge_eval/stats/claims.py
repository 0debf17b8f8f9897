"""Which judge beats which: exact McNemar tests on the same comparisons, corrected for their number.

A comparison counts once, with the strict majority of its votes as its label, since votes on it are
not independent. Nothing on the board says that one judge is better than another without this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import bdtr  # type: ignore[import-untyped]

from judge_eval.stats.intervals import SIGNIFICANCE
from judge_eval.stats.outcomes_table import Codes, Counts, Flags, Floats, OutcomesTable

NO_MAJORITY: Final = -1


@dataclass(frozen=True, eq=False, slots=True)
class Claims:
    """What may be claimed of n judges, in the table's order of judges.

    Attributes
    ----------
    beats : bool array, shape (n, n)
        ``beats[i, j]``: judge i is better than judge j.
    p : float array, shape (n, n)
        Two-sided, after Holm's correction; symmetric, 1 on the diagonal.
    p_single : float array, shape (n, n)
        The same before the correction.
    ahead : int array, shape (n, n)
        ``ahead[i, j]``: comparisons that i was right about and j was wrong about.
    together : int array, shape (n, n)
        Labelled comparisons on which both have a verdict.
    right, judged : int array, shape (n,)
        Labelled comparisons that the judge was right about, and on which it has a verdict.
    labelled, unlabelled : int
        Comparisons with votes that have a strict majority, and those that have none.
    """

    beats: Flags
    p: Floats
    p_single: Floats
    ahead: Counts
    together: Counts
    right: Counts
    judged: Counts
    labelled: int
    unlabelled: int

    @property
    def distinct(self) -> Flags:
        """Which two judges are told apart, whichever is better."""
        return self.beats | self.beats.T


def strict_majority(votes: Counts) -> Codes:
    """Return the choice that more than half of the votes on a comparison made.

    Parameters
    ----------
    votes : int array, shape (n_comparisons, n_choices)

    Returns
    -------
    int8 array, shape (n_comparisons,)
        Position of the choice; `NO_MAJORITY` where there is none.

    Examples
    --------
    Two of three; two of four; no vote at all.

    >>> import numpy as np
    >>> strict_majority(np.array([[2, 1, 0, 0], [2, 1, 1, 0], [0, 0, 0, 0]])).tolist()
    [0, -1, -1]
    """
    has_one = 2 * votes.max(axis=1) > votes.sum(axis=1)
    return np.where(has_one, votes.argmax(axis=1), NO_MAJORITY).astype(np.int8)


def mcnemar(ahead: Counts, behind: Counts) -> Floats:
    """Return the exact two-sided p-values of McNemar's test.

    Parameters
    ----------
    ahead, behind : int array of one shape
        Comparisons on which only the one, or only the other, was right.

    Returns
    -------
    float array of that shape
        ``min(1, 2 P(X <= min(ahead, behind)))`` with X binomial of ``ahead + behind`` tosses of a
        fair coin; 1 where there were none.

    References
    ----------
    Q. McNemar, "Note on the sampling error of the difference between correlated proportions or
    percentages", 1947; the exact form is the sign test.

    Examples
    --------
    >>> import numpy as np
    >>> mcnemar(np.array([6, 5, 0]), np.array([0, 0, 0])).tolist()
    [0.03125, 0.0625, 1.0]
    """
    fewer = np.minimum(ahead, behind).astype(np.float64)
    tail = bdtr(fewer, (ahead + behind).astype(np.int64), 0.5)
    return np.asarray(np.minimum(1.0, 2 * tail), dtype=np.float64)


def holm(p: Floats) -> Floats:
    """Correct p-values for their number, in the way of Holm.

    Parameters
    ----------
    p : float array, shape (n_tests,)

    Returns
    -------
    float array, shape (n_tests,)
        Corrected, in [0, 1]: the k-th smallest of m is the largest of ``(m + 1 - i) p_i`` so far.

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", 1979.

    Examples
    --------
    >>> import numpy as np
    >>> holm(np.array([0.01, 0.04, 0.03])).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return corrected


def claims(table: OutcomesTable, significance: float = SIGNIFICANCE) -> Claims:
    """Test every pair of judges.

    Parameters
    ----------
    table : OutcomesTable
    significance : float
        The chance of any false claim at all among all pairs.

    Returns
    -------
    Claims

    Examples
    --------
    >>> table = OutcomesTable.of([{"A": 1}] * 6, [["A", "B"]] * 6)
    >>> found = claims(table)
    >>> found.beats.tolist(), found.p[0, 1].item()
    ([[False, True], [False, False]], 0.03125)
    """
    labels = strict_majority(table.votes)
    has_label = labels != NO_MAJORITY
    verdicts = table.verdicts[has_label]
    answered = (verdicts >= 0).astype(np.float64)
    right = (verdicts == labels[has_label, None]).astype(np.float64)
    ahead = _whole(right.T @ (answered - right))
    p_single = mcnemar(ahead, ahead.T)
    np.fill_diagonal(p_single, 1.0)
    p = np.ones_like(p_single)
    upper = np.triu_indices(table.n_judges, k=1)
    p[upper] = holm(p_single[upper])
    p.T[upper] = p[upper]
    return Claims(
        beats=(p <= significance) & (ahead > ahead.T),
        p=p,
        p_single=p_single,
        ahead=ahead,
        together=_whole(answered.T @ answered),
        right=_whole(right.sum(axis=0)),
        judged=_whole(answered.sum(axis=0)),
        labelled=int(has_label.sum()),
        unlabelled=int((table.votes.any(axis=1) & ~has_label).sum()),
    )


def _whole(values: Floats) -> Counts:
    return np.rint(values).astype(np.int64)

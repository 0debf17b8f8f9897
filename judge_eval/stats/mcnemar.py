"""Exact McNemar tests of judges on the same comparisons, corrected for their number.

They hold for a number of votes that was fixed beforehand and for comparisons that are independent;
looked at after every vote they claim too much, unlike `judge_eval.stats.evidence`.
"""

from collections.abc import Collection
from typing import Final

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.estimate import SIGNIFICANCE, McNemar
from judge_eval.stats.evidence import whole_floor
from judge_eval.stats.outcomes_table import Codes, OutcomesTable

NO_MAJORITY: Final = -1


def strict_majority(votes: IntArray) -> Codes:
    """Return the position of the choice that more than half of the votes on a comparison made.

    From votes of shape (n_comparisons, n_choices); `NO_MAJORITY` where there is none.

    Examples
    --------
    >>> strict_majority(np.array([[2, 1, 0, 0], [2, 1, 1, 0], [0, 0, 0, 0]])).tolist()
    [0, -1, -1]
    """
    has_one = 2 * votes.max(axis=1) > votes.sum(axis=1)
    return np.where(has_one, votes.argmax(axis=1), NO_MAJORITY).astype(np.int16)


def mcnemar_tests(
    table: OutcomesTable, baselines: Collection[int] = (), floor: BoolArray | None = None
) -> McNemar:
    """Test every two judges, and every judge with its baselines, by the strict majority of votes.

    `floor`, of shape (n_judges, n_judges), tells which `baselines`, in columns, a judge is held
    against; without it all. Holm's correction is made in each of two families, judges
    among themselves and judges with baselines: in each the chance of any false claim at all is 5 %.
    All others are not tested, and have p = 1.

    Examples
    --------
    >>> votes, verdicts = np.tile([1, 0, 0, 0], (6, 1)), np.tile(np.int16([0, 1]), (6, 1))
    >>> tests = mcnemar_tests(OutcomesTable(votes, verdicts))
    >>> tests.beats, tests.p[0][1]
    ([[False, True], [False, False]], 0.03125)
    """
    labels = strict_majority(table.votes)
    has_label = labels != NO_MAJORITY
    verdicts = table.verdicts[has_label]
    answered = (verdicts >= 0).astype(np.float64)
    right = (verdicts == labels[has_label, None]).astype(np.float64)
    ahead = _to_integers(right.T @ (answered - right))
    p_single = mcnemar(ahead, ahead.T)
    np.fill_diagonal(p_single, 1.0)
    p = np.ones_like(p_single)
    is_judge = ~np.isin(np.arange(table.n_judges), list(baselines))
    floor = whole_floor(~is_judge) if floor is None else floor
    for tested in (is_judge[:, None] & is_judge, floor | floor.T):
        family = np.triu(tested, k=1)
        p[family] = holm(p_single[family])
    p = np.minimum(p, p.T)
    return McNemar(
        beats=((p <= SIGNIFICANCE) & (ahead > ahead.T)).tolist(),
        p=p.tolist(),
        p_single=p_single.tolist(),
        ahead=ahead.tolist(),
        together=_to_integers(answered.T @ answered).tolist(),
        labelled=int(has_label.sum()),
        unlabelled=int((table.votes.any(axis=1) & ~has_label).sum()),
    )


def _to_integers(values: FloatArray) -> IntArray:
    return np.rint(values).astype(np.int64)


def mcnemar(ahead: IntArray, behind: IntArray) -> FloatArray:
    """Return the exact two-sided p-values of McNemar's test (the sign test).

    ``min(1, 2 P(X <= min(ahead, behind)))`` with X binomial of ``ahead + behind`` tosses of a fair
    coin; 1 where there were none. They count comparisons on which only the one, or only the other,
    was right.

    Examples
    --------
    >>> mcnemar(np.array([6, 5, 0]), np.array([0, 0, 0])).tolist()
    [0.03125, 0.0625, 1.0]
    """
    from scipy.special import bdtr  # type: ignore[import-untyped]  # slow to import

    fewer = np.minimum(ahead, behind).astype(np.float64)
    tail = bdtr(fewer, (ahead + behind).astype(np.int64), 0.5)
    return np.asarray(np.minimum(1.0, 2 * tail), dtype=np.float64)


def holm(p: FloatArray) -> FloatArray:
    """Return p-values, shape (n_tests,), corrected so that no claim at all is false but rarely.

    The k-th smallest of m is the largest of ``(m + 1 - i) p_i`` so far, and at most 1 (S. Holm,
    1979).

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return corrected

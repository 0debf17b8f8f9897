"""How sure a judge's agreement is for other prompts and other people, where enough have voted.

The interval by prompts holds for the people who voted. Votes of one person resemble each other too,
so this one takes both prompts and people as drawn (A. C. Cameron, J. B. Gelbach and D. L. Miller,
Robust inference with multiway clustering, 2011).
"""

from math import log, sqrt
from typing import Final

import numpy as np

from judge_eval.stats.bootstrap import FloatArray, IntArray
from judge_eval.stats.judge_figures import FEWEST_PROMPTS
from judge_eval.stats.outcomes_table import NOT_ASKED, Codes

FEWEST_PEOPLE: Final = 5


def two_way_intervals(
    verdicts: Codes, votes: IntArray, prompts: IntArray, people: IntArray
) -> FloatArray:
    """Return the ends of the 95 % interval of each judge's overall agreement, shape (2, n_judges).

    Of single votes: `verdicts`, of shape (n_votes, n_judges), are the codes of `OutcomesTable` on
    what each vote is on; `votes`, `prompts` and `people`, of shape (n_votes,), say what it chose,
    of which prompt and by whom. With ``e`` how much each vote is right above the judge's share
    ``theta``, and ``V`` the sum of squares of its sums by prompt, by person, and by both::

        se = sqrt(V_prompts + V_people - V_both) / n
        logit(theta) -+ t(.975, G - 1) se / (theta (1 - theta))

    each ``V`` times G / (G - 1) of its G groups, and G in the last line the smaller number. NaN
    with less than 5 people or 10 prompts, and where all votes are right or all are wrong.

    Examples
    --------
    >>> prompts, people = np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12)
    >>> verdicts = (prompts % 4 == 0)[:, None].astype(np.int16)
    >>> votes = np.zeros(60, dtype=np.int64)
    >>> two_way_intervals(verdicts, votes, prompts, people).round(3).ravel().tolist()
    [0.303, 0.954]
    """
    found = np.full((2, verdicts.shape[1]), np.nan)
    for judge, said in enumerate(verdicts.T):
        asked = said != NOT_ASKED
        right = (said == votes)[asked].astype(np.float64)
        if len(right) and 0 < right.sum() < len(right):
            found[:, judge] = _interval(right, prompts[asked], people[asked])
    return found


def _interval(right: FloatArray, prompts: IntArray, people: IntArray) -> tuple[float, float]:
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # slow to import

    theta = float(right.mean())
    groups = [np.unique(each, return_inverse=True)[1] for each in (prompts, people)]
    numbers = [int(each.max()) + 1 for each in groups]
    if numbers[0] < FEWEST_PROMPTS or numbers[1] < FEWEST_PEOPLE:
        return np.nan, np.nan
    both = np.unique(groups[0] * numbers[1] + groups[1], return_inverse=True)[1]
    by_prompts, by_people, by_both = (_spread(right - theta, each) for each in (*groups, both))
    # The difference may fall below either alone, and below nothing, by chance.
    variance = max(by_prompts + by_people - by_both, by_prompts, by_people)
    error = sqrt(variance) / len(right) / (theta * (1 - theta))
    reach, middle = stdtrit(min(numbers) - 1, 0.975) * error, log(theta / (1 - theta))
    low, high = 1 / (1 + np.exp(-(middle + np.array([-reach, reach]))))
    return float(low), float(high)


def _spread(apart: FloatArray, group: IntArray) -> float:
    sums = np.bincount(group, weights=apart)
    return float(len(sums) / (len(sums) - 1) * (sums**2).sum())

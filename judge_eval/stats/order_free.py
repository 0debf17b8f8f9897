"""Bradley-Terry ratings with their intervals and ranks, for judges and for models alike."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from judge_eval.stats import bradley_terry
from judge_eval.stats.bootstrap import ALL_ALIKE, MIN_COMPARISONS, TOO_FEW, bounds
from judge_eval.stats.outcomes_table import Counts, Flags, Floats
from judge_eval.stats.ranks import rank_ranges, ranks

NO_GAMES = "it never was right where another was wrong, nor the reverse"
# A rating that moves less than this from resample to resample does not move.
_STILL = 1e-6


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating, how sure it is, and the ranks it may take.

    Attributes
    ----------
    value : float or None
        On the ELO scale, the mean of all being 1000; None without any game.
    low, high : float or None
        95 % interval by bootstrap over comparisons; None where `why` says why.
    rank : int or None
        From 1; the same for equal ratings.
    best_rank, worst_rank : int or None
        The ranks in the central 95 % of the bootstrap; None where there is no interval either.
    comparisons : int
        Comparisons on which it had a game.
    why : str or None
        Why the rating or its interval is missing.
    """

    value: float | None
    low: float | None
    high: float | None
    rank: int | None
    best_rank: int | None
    worst_rank: int | None
    comparisons: int
    why: str | None = None


def rate(wins: Floats | Counts, resampled_wins: Floats, comparisons: Counts) -> list[Rating]:
    """Rate players from their wins and from resamples of them.

    Parameters
    ----------
    wins : array, shape (n, n)
        ``wins[i, j]``: how often i beat j.
    resampled_wins : float array, shape (resamples, n, n)
        The same for comparisons drawn with replacement; see `judge_eval.stats.bootstrap`.
    comparisons : int array, shape (n,)
        On how many comparisons each has a game; one with none is not rated.

    Returns
    -------
    list of Rating, length n

    Examples
    --------
    >>> import numpy as np
    >>> wins = np.array([[0.0, 9.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> first, _, third = rate(wins, np.stack([wins, wins.T]), np.array([12, 12, 0]))
    >>> round(first.value), round(first.low), round(first.high), first.rank, first.worst_rank
    (1091, 911, 1089, 1, 2)
    >>> third.value, third.why
    (None, 'it never was right where another was wrong, nor the reverse')
    """
    rated = np.flatnonzero(comparisons)
    found = [Rating(None, None, None, None, None, None, 0, NO_GAMES)] * len(comparisons)
    if not rated.size:
        return found
    values = bradley_terry.fit(wins[np.ix_(rated, rated)])
    resampled = bradley_terry.fit(resampled_wins[:, rated][:, :, rated])
    low, high = bounds(resampled, comparisons[rated])
    places = ranks(values)
    for n, (player, (best, worst)) in enumerate(zip(rated, rank_ranges(resampled), strict=True)):
        rating = Rating(
            value=float(values[n]),
            low=float(low[n]),
            high=float(high[n]),
            rank=int(places[n]),
            best_rank=best,
            worst_rank=worst,
            comparisons=int(comparisons[player]),
        )
        found[player] = _honest(rating)
    return found


def _honest(rating: Rating) -> Rating:
    """Take back an interval, and the ranks, that the resamples cannot support."""
    assert rating.low is not None
    assert rating.high is not None
    if rating.comparisons < MIN_COMPARISONS:
        why = TOO_FEW
    elif rating.high - rating.low < _STILL:
        why = ALL_ALIKE
    else:
        return rating
    return replace(rating, low=None, high=None, best_rank=None, worst_rank=None, why=why)


def apart(ratings: list[Rating]) -> Flags:
    """Tell which intervals do not overlap, shape (n, n); a missing one overlaps with all.

    Examples
    --------
    >>> a = Rating(1100.0, 1050.0, 1150.0, 1, 1, 1, 9)
    >>> b = Rating(900.0, 850.0, 950.0, 2, 2, 2, 9)
    >>> apart([a, b]).tolist(), apart([a, replace(b, low=None, high=None)]).any().item()
    ([[False, True], [True, False]], False)
    """
    low = np.array([-np.inf if r.low is None else r.low for r in ratings])
    high = np.array([np.inf if r.high is None else r.high for r in ratings])
    below = high[:, None] < low[None, :]
    return np.asarray(below | below.T)

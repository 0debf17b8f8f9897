"""How well people agree with each other: what stands beside a judge's agreement. It is no limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge_eval.stats.bootstrap import RESAMPLES
from judge_eval.stats.outcomes_table import Counts, Flags
from judge_eval.stats.shares import Share, shares


@dataclass(frozen=True, slots=True)
class AmongPeople:
    """Agreement among people.

    Attributes
    ----------
    pairs : Share
        Of all pairs of people who voted on the same comparison, those that chose the same. It
        stands beside a judge's agreement with votes, and is what papers print.
    votes : Share
        The mean over votes of the share of the other people there who chose the same. A comparison
        weighs as much as it has votes, as in a judge's agreement, so that it can be set beside
        `JudgeFigures.beside_people`; in `pairs` it weighs as much as it has pairs of people.
        Its successes are no whole numbers, and rounded.
    with_majority : Share
        Of all votes, those that equal the strict majority of the others' on the comparison. It
        stands beside a judge's agreement with majorities.
    no_majority : int
        Votes left out of it, because the others have no strict majority.
    alone : int
        Votes left out of both, because nobody else voted on the comparison.
    """

    pairs: Share
    votes: Share
    with_majority: Share
    no_majority: int
    alone: int


def among_people(
    votes: Counts, rng: np.random.Generator, resamples: int = RESAMPLES
) -> AmongPeople:
    """Measure how well people agree with each other.

    Parameters
    ----------
    votes : int array, shape (n_comparisons, n_choices)
        Each person at most once per comparison. Without the column of a choice, the votes for it
        are left out.
    rng : numpy.random.Generator
        Seeded.
    resamples : int

    Returns
    -------
    AmongPeople

    Examples
    --------
    Two of three agree: one pair of three. The third cannot be compared with a majority of two.

    >>> import numpy as np
    >>> found = among_people(np.array([[2, 1, 0, 0], [1, 0, 0, 0]]), np.random.default_rng(1))
    >>> found.pairs.successes, found.pairs.trials, found.with_majority.trials
    (1, 3, 1)
    >>> found.no_majority, found.alone
    (2, 1)
    """
    people = votes.sum(axis=1)
    agreeing = (votes * (votes - 1) // 2).sum(axis=1)
    follows, opposes = _beside_others(votes)
    following = (votes * follows).sum(axis=1)
    compared = (votes * (follows | opposes)).sum(axis=1)
    pairs, with_majority = shares(
        np.stack([agreeing, following], axis=1),
        np.stack([people * (people - 1) // 2, compared], axis=1),
        rng,
        resamples,
    )
    alone = int((people == 1).sum())
    return AmongPeople(
        pairs,
        _by_votes(votes, rng, resamples),
        with_majority,
        int(people.sum() - compared.sum()) - alone,
        alone,
    )


def _by_votes(votes: Counts, rng: np.random.Generator, resamples: int) -> Share:
    several = votes[votes.sum(axis=1) > 1]
    people = several.sum(axis=1)
    agreeing = (several * (several - 1)).sum(axis=1) / (people - 1)
    return shares(agreeing[:, None], people[:, None], rng, resamples)[0]


def _beside_others(votes: Counts) -> tuple[Flags, Flags]:
    """Tell where a vote equals the strict majority of the others, and where it differs from one."""
    others = votes.sum(axis=1, keepdims=True) - 1
    follows = 2 * (votes - 1) > others
    leads = (2 * votes > others) & (votes > 0)
    opposes = leads.sum(axis=1, keepdims=True) > leads
    return follows & (votes > 0), opposes & (votes > 0) & (others > 0)

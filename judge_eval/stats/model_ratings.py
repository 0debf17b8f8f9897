"""The same votes rank the models that wrote the outputs: by people, or as one judge would.

A vote for A is a win of the model that wrote A over the one that wrote B; a tie is half a win of
each. *Both bad* says nothing about which is better: it is left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from judge_eval.stats.bootstrap import RESAMPLES, resampled_sums
from judge_eval.stats.order import best_first
from judge_eval.stats.order_free import Rating, apart, rate
from judge_eval.stats.outcomes_table import Codes, Counts, Floats
from judge_eval.stats.ranks import tie_groups
from voting.choices import CHOICES, TABLE

# What a vote for each choice comes to for A and for B, in halves; none for both rates no model.
_HALVES: Final = np.array([[round(2 * grade) for grade in row.grades] for row in TABLE.values()])
_RATES_NONE: Final = ~_HALVES.any(axis=1)
UNKNOWN: Final = -1


@dataclass(frozen=True, eq=False, slots=True)
class ModelBoard:
    """Models ranked by one source of preferences.

    Attributes
    ----------
    ratings : list of Rating, length n_models
    ties : list of str, length n_models
        Letters: models share one when their intervals overlap; empty without a rating.
    wins : float array, shape (n_models, n_models)
        ``wins[i, j]``: votes for i against j, a tie being half a vote for each.
    both_bad, unpaired : int
        Votes left out: of both bad, and on comparisons without two different known models.
    """

    ratings: list[Rating]
    ties: list[str]
    wins: Floats
    both_bad: int
    unpaired: int

    @property
    def win_rates(self) -> list[list[float | None]]:
        """Share of each model's votes against each other one; None where there are none."""
        games = self.wins + self.wins.T
        return [
            [float(won / played) if played else None for won, played in zip(*rows, strict=True)]
            for rows in zip(self.wins, games, strict=True)
        ]


def as_votes(verdicts: Codes) -> Counts:
    """Return one judge's verdicts as if each was the only vote on its comparison.

    Parameters
    ----------
    verdicts : int8 array, shape (n_comparisons,)
        A column of `OutcomesTable.verdicts`.

    Returns
    -------
    int array, shape (n_comparisons, 4)
        No vote where the judge has no verdict.

    Examples
    --------
    >>> import numpy as np
    >>> as_votes(np.array([1, -1], dtype=np.int8)).tolist()
    [[0, 1, 0, 0], [0, 0, 0, 0]]
    """
    return np.asarray(verdicts[:, None] == np.arange(len(CHOICES)), dtype=np.int64)


def model_board(
    models: Counts,
    n_models: int,
    votes: Counts,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> ModelBoard:
    """Rank the models by Bradley-Terry, with intervals by bootstrap over comparisons.

    Parameters
    ----------
    models : int array, shape (n_comparisons, 2)
        Which model wrote A and which wrote B; `UNKNOWN` where none is named.
    n_models : int
    votes : int array, shape (n_comparisons, 4)
        By `CHOICES`: people's votes, or one judge's verdicts by `as_votes`.
    rng : numpy.random.Generator
        Seeded.
    resamples : int

    Returns
    -------
    ModelBoard

    Raises
    ------
    ValueError
        When a model's number is not below n_models.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = np.array([[0, 1]] * 8)
    >>> votes = np.array([[1, 0, 0, 0]] * 5 + [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    >>> board = model_board(pairs, 2, votes, np.random.default_rng(1))
    >>> board.wins.tolist(), board.both_bad, [round(r.value) for r in board.ratings]
    ([[0.0, 5.5], [1.5, 0.0]], 1, [1103, 897])
    """
    if ((models < UNKNOWN) | (models >= n_models)).any():
        raise ValueError("a model's number is unknown")
    is_pair = (models[:, 0] != models[:, 1]) & (models != UNKNOWN).all(axis=1)
    sided, scores = _by_lower_number(models[is_pair], votes[is_pair])
    kinds, multiplicity = np.unique(np.hstack([sided, scores]), axis=0, return_counts=True)
    wins, resampled = _wins(kinds, multiplicity, n_models, rng, resamples)
    ratings = rate(wins, resampled, _comparisons(kinds, multiplicity, n_models))
    return ModelBoard(
        ratings=ratings,
        ties=_letters(ratings),
        wins=wins,
        both_bad=int(votes[is_pair][:, _RATES_NONE].sum()),
        unpaired=int(votes[~is_pair].sum()),
    )


def _letters(ratings: list[Rating]) -> list[str]:
    """Return the tie groups of the models that have a rating; nothing for the others."""
    rated = [n for n in best_first([r.value for r in ratings]) if ratings[n].value is not None]
    letters = [""] * len(ratings)
    groups = tie_groups(apart([ratings[n] for n in rated]), np.arange(len(rated)))
    for model, group in zip(rated, groups, strict=True):
        letters[model] = group
    return letters


def _by_lower_number(models: Counts, votes: Counts) -> tuple[Counts, Counts]:
    """Return the decided comparisons: models in order of number, and half-votes for each."""
    scores = votes @ _HALVES
    is_swapped = models[:, 0] > models[:, 1]
    models = models.copy()
    models[is_swapped] = models[is_swapped, ::-1]
    scores[is_swapped] = scores[is_swapped, ::-1]
    is_decided = scores.any(axis=1)
    return models[is_decided], scores[is_decided]


def _wins(
    kinds: Counts, multiplicity: Counts, n_models: int, rng: np.random.Generator, resamples: int
) -> tuple[Floats, Floats]:
    """Return the wins, shape (n_models, n_models), and those of each resample."""
    wins, resampled = np.zeros((n_models, n_models)), np.zeros((resamples, n_models, n_models))
    if not len(kinds):
        return wins, resampled
    low, high = kinds[:, 0], kinds[:, 1]
    np.add.at(wins, (low, high), multiplicity * kinds[:, 2] / 2)
    np.add.at(wins, (high, low), multiplicity * kinds[:, 3] / 2)
    met, pair_of = np.unique(kinds[:, :2], axis=0, return_inverse=True)

    def rows(part: slice) -> Floats:
        pairs = pair_of[part]
        table = np.zeros((len(pairs), 2, len(met)))
        table[np.arange(len(pairs)), :, pairs] = kinds[part, 2:] / 2
        return table.reshape(len(pairs), -1)

    sums = resampled_sums(rows, multiplicity, rng, resamples).reshape(resamples, 2, len(met))
    resampled[:, met[:, 0], met[:, 1]] = sums[:, 0]
    resampled[:, met[:, 1], met[:, 0]] = sums[:, 1]
    return wins, resampled


def _comparisons(kinds: Counts, multiplicity: Counts, n_models: int) -> Counts:
    """Count the comparisons with a decided vote that each model is in."""
    weights = np.repeat(multiplicity, 2)
    return np.bincount(kinds[:, :2].ravel(), weights, minlength=n_models).astype(np.int64)

"""Labels that have an order: the number that each one stands for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judge_eval.stats.labels import Label, LabelsUnfit, kind_of
from judge_eval.stats.vocabulary import FloatArray, Vocabulary

# With two labels there is one difference, and it is the same however it is counted.
TWO_LABELS = 2


def grades(vocabulary: Vocabulary, order: Sequence[Label] = ()) -> FloatArray:
    """Return the number that each label stands for, by code.

    Parameters
    ----------
    vocabulary : Vocabulary
    order : sequence of Label, optional
        All labels from the lowest to the highest; they stand for 0, 1, 2 …. Without it the labels
        must be numbers, or texts that can be read as numbers, and stand for these.

    Raises
    ------
    LabelsUnfit
        When the labels have no order, or some of them do not stand in it.

    Examples
    --------
    >>> grades(Vocabulary([4, 2.5])).tolist(), grades(Vocabulary(["10", "9"])).tolist()
    ([2.5, 4.0], [10.0, 9.0])
    >>> grades(Vocabulary(["good", "bad"]), ["bad", "fair", "good"]).tolist()
    [0.0, 2.0]
    """
    if order:
        place = {label: float(number) for number, label in enumerate(order)}
        strange = [label for label in vocabulary.labels if label not in place]
        if strange:
            raise LabelsUnfit(f"the order of labels does not hold {str(strange[0])[:60]!r}")
        return np.array([place[label] for label in vocabulary.labels])
    return np.array([_number(label) for label in vocabulary.labels], np.float64)


def _number(label: Label) -> float:
    if kind_of(label) in ("number", "text"):
        try:
            number = float(label)  # type: ignore[arg-type]
        except ValueError:
            number = np.nan
        if np.isfinite(number):
            return number
    what = f"{str(label)[:60]!r} is no number"
    raise LabelsUnfit(f"{what}: give the labels' `order`, from the lowest to the highest")


def nominal_warning(labels: Sequence[object], fits: str) -> tuple[str, ...]:
    """Warn where numbers are counted as mere categories.

    Examples
    --------
    >>> print(*nominal_warning([1, 2, 5, 5], "rank_correlation"))
    these labels are numbers, and here 4 differs from 5 as much as from 1; rank_correlation fits
    >>> nominal_warning([0, 1, 1], "rank_correlation")
    ()
    """
    numbers = {label for label in labels if kind_of(label) == "number"}
    if len(numbers) <= TWO_LABELS:
        return ()
    why = "these labels are numbers, and here 4 differs from 5 as much as from 1"
    return (f"{why}; {fits} fits",)

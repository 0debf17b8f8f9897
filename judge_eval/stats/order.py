"""The order in which figures are listed. Pages need it, so nothing heavy is imported here."""

from collections.abc import Sequence


def best_first(values: Sequence[float | None]) -> list[int]:
    """Return positions from the highest value to the lowest; what has none stands last.

    Examples
    --------
    >>> best_first([0.5, None, 0.7])
    [2, 0, 1]
    """
    return sorted(range(len(values)), key=lambda n: _or_last(values[n]))


def _or_last(value: float | None) -> float:
    return float("inf") if value is None else -value

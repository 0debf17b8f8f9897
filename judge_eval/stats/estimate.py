"""What a metric answers: a figure that says how sure it is, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from heapq import nsmallest
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Interval: TypeAlias = tuple[float, float]
TaskStrategy: TypeAlias = Literal["single", "multitask", "multilabel"]
AnnotatorAggregation: TypeAlias = Literal["individual_average", "majority_vote"]

_NAMES_KEPT = 20


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was not counted, and why.

    Attributes
    ----------
    what : str
        ``items``, ``labels`` (of a person on an item), ``humans`` or ``tasks``.
    count : int
    why : str
        A sentence's end, to be read after "left out: ".
    names : tuple of str
        Which, each once; of many only the alphabetically first 20.
    """

    what: str
    count: int
    why: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, or the reason why there is none.

    Attributes
    ----------
    value : float or None
        None where it cannot be computed; then, and only then, `reason` says why.
    n : int
        Labels (pairs of a judge's and a person's) that it was computed from.
    reason : str or None
        A sentence for people.
    interval : (low, high) or None
        95 % interval.
    method : str or None
        How the interval was made.
    left_out : tuple of LeftOut

    Raises
    ------
    ValueError
        Where there are both a value and a reason, or neither, or the value is not finite.

    Examples
    --------
    >>> Figure(0.8, n=10, interval=(0.49, 0.94), method="Wilson").value
    0.8
    >>> Figure(float("nan"), n=0)
    Traceback (most recent call last):
    ...
    ValueError: nan is no figure: give None and a reason
    """

    value: float | None
    n: int
    reason: str | None = None
    interval: Interval | None = None
    method: str | None = None
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if self.value is not None and not isfinite(self.value):
            raise ValueError(f"{self.value} is no figure: give None and a reason")
        if (self.value is None) == (self.reason is None):
            raise ValueError("a figure has a value, or a reason why there is none")

    def as_dict(self) -> dict[str, object]:
        """Return what JSON can hold."""
        return asdict(self) | {
            "interval": list(self.interval) if self.interval else None,
            "left_out": [_left_out(gap) for gap in self.left_out],
        }


def no_figure(reason: str, n: int = 0, left_out: tuple[LeftOut, ...] = ()) -> Figure:
    """Return a figure that could not be computed."""
    return Figure(None, n=n, reason=reason, left_out=left_out)


@dataclass(frozen=True, kw_only=True)
class ScoreResult:
    """What one scorer found about one judge on one task, or on several taken together.

    Attributes
    ----------
    figures : mapping of str to Figure
        By name, for instance ``{"accuracy": …}``. These are the columns of a report.
    series : mapping of str to mapping of str to Figure
        Figures that form a curve: the Alt-Test's ``winning_rate`` by epsilon. In `scores` a series
        stands in the place of the figure of the same name.
    by_human, by_task : mapping
        The parts that `figures` are the means of, where they are.
    metadata : mapping
        How it was computed; only what JSON can hold.
    warnings : tuple of str
        Sentences for people.
    """

    scorer_name: str
    task_name: str
    judge_id: str
    figures: Mapping[str, Figure]
    task_strategy: TaskStrategy = "single"
    annotator_aggregation: AnnotatorAggregation = "individual_average"
    series: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    by_human: Mapping[str, Figure] = field(default_factory=dict)
    by_task: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    metadata: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, float | dict[str, float | None] | None]:
        """The bare values by name; None where a figure could not be computed."""
        values: dict[str, float | dict[str, float | None] | None] = {
            name: figure.value for name, figure in self.figures.items()
        }
        return values | {name: _values(curve) for name, curve in self.series.items()}

    def as_dict(self, timestamp: str | None = None) -> dict[str, object]:
        """Return what a result file holds; the caller knows the time, this package does not."""
        return {
            "scorer_name": self.scorer_name,
            "task_name": self.task_name,
            "task_strategy": self.task_strategy,
            "annotator_aggregation": self.annotator_aggregation,
            "judge_id": self.judge_id,
            "scores": self.scores,
            "metadata": dict(self.metadata),
            "counts": {name: figure.n for name, figure in self.figures.items()},
            "figures": _figures(self.figures),
            "series": {name: _figures(curve) for name, curve in self.series.items()},
            "by_human": _figures(self.by_human),
            "by_task": {task: _figures(figures) for task, figures in self.by_task.items()},
            "warnings": list(self.warnings),
            "timestamp": timestamp,
        }


def mean_of_tasks(figures: Mapping[str, Figure]) -> Figure:
    """Return the plain mean of the figures of several tasks.

    Its interval goes from the mean of the lower ends to the mean of the upper ones. The tasks share
    their items, so their errors may go together; this is the interval if they fully do, and too
    wide otherwise.

    Parameters
    ----------
    figures : mapping of task name to Figure
        A task without a value is left out of the mean and reported.

    Examples
    --------
    >>> mean_of_tasks({"a": Figure(0.5, n=10), "b": Figure(1.0, n=6)}).value
    0.75
    """
    known = {task: figure for task, figure in figures.items() if figure.value is not None}
    n = sum(figure.n for figure in known.values())
    gaps = [
        LeftOut("tasks", 1, figure.reason or "", (task,))
        for task, figure in figures.items()
        if figure.value is None
    ]
    gaps += [gap for figure in known.values() for gap in figure.left_out]
    if not known:
        return no_figure("no task has a figure: see why for each of them", left_out=tuple(gaps))
    intervals = [figure.interval for figure in known.values() if figure.interval]
    whole = len(intervals) == len(known)
    return Figure(
        _mean([figure.value for figure in known.values() if figure.value is not None]),
        n=n,
        interval=(_mean([i[0] for i in intervals]), _mean([i[1] for i in intervals]))
        if whole
        else None,
        method="mean of the tasks' intervals, which is wide enough" if whole else None,
        left_out=tuple(gaps),
    )


def left_out(what: str, names: Sequence[object], why: str) -> tuple[LeftOut, ...]:
    """Return what was left out as a tuple, empty where nothing was."""
    shown = tuple(nsmallest(_NAMES_KEPT, set(map(str, names))))
    return (LeftOut(what, len(names), why, shown),) if names else ()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _values(curve: Mapping[str, Figure]) -> dict[str, float | None]:
    return {key: figure.value for key, figure in curve.items()}


def _figures(figures: Mapping[str, Figure]) -> dict[str, object]:
    return {name: figure.as_dict() for name, figure in figures.items()}


def _left_out(gap: LeftOut) -> dict[str, object]:
    return asdict(gap) | {"names": list(gap.names)}


SIGNIFICANCE: Final = 0.05
Z95: Final = 1.959963984540054


def wilson(successes: float, trials: int, z: float = Z95) -> tuple[float, float] | None:
    """Return the Wilson score interval of a proportion.

    Parameters
    ----------
    successes : float
        ``0 <= successes <= trials``; a whole number but where a trial may succeed in part.
    trials : int
    z : float
        Quantile of the normal distribution; the default gives 95 %.

    Returns
    -------
    (low, high) : tuple of float, or None
        Fractions in [0, 1]; None when there were no trials.

    Raises
    ------
    ValueError
        When the counts cannot be.

    References
    ----------
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials cannot be")
    if trials == 0:
        return None
    share = successes / trials
    spread = z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == trials else min(1.0, middle + half)
    return low, high


def bootstrap_tail(
    sizes: Sequence[int] | NDArray[np.int64], share: float = 0.95
) -> NDArray[np.float64]:
    """Return which quantiles of a bootstrap bound an interval that holds what it says.

    The percentile interval of n resampled things is too narrow: resampling varies as if the
    variance were divided by n instead of n - 1, and knows nothing of the doubt about the variance
    itself. Reaching as far out as Student's interval does, in quantiles of the bootstrap, mends
    both (the expanded percentile interval); for large n nothing changes.

    Parameters
    ----------
    sizes : int array, shape (n,)
        How many things were drawn from; at least 2 each.
    share : float
        Between 0 and 1.

    Returns
    -------
    float array, shape (n,)
        ``Phi(-sqrt(n / (n - 1)) t)`` with the quantile t of n - 1 degrees of freedom; the upper
        bound is at 1 minus that.

    References
    ----------
    T. C. Hesterberg, "What teachers should know about the bootstrap", 2015, section 4.

    Examples
    --------
    >>> bootstrap_tail([2, 10, 30, 1_000_000]).round(4).tolist()
    [0.0, 0.0086, 0.0188, 0.025]
    """
    import numpy as np
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped]

    n = np.asarray(sizes, dtype=np.float64)
    return np.asarray(ndtr(np.sqrt(n / (n - 1)) * stdtrit(n - 1, (1 - share) / 2)))


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

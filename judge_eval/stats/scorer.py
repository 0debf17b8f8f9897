"""The base class of scorers, our own and yours, and what a scorer returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Literal, TypeAlias

from judge_eval.stats.estimate import Figure, LeftOut, no_figure
from judge_eval.stats.labels import HumanLabels, JudgeLabels, Label, LabelsUnfit

TaskStrategy: TypeAlias = Literal["single", "multitask", "multilabel"]
AnnotatorAggregation: TypeAlias = Literal["individual_average", "majority_vote"]
PEOPLE = "people among themselves"


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
    task_name: str = ""
    judge_id: str = ""
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
        for name, curve in self.series.items():
            values[name] = {key: figure.value for key, figure in curve.items()}
        return values

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

    def leaving_out(self, gaps: tuple[LeftOut, ...]) -> ScoreResult:
        """Return the result with these gaps added to every figure."""

        def added(figures: Mapping[str, Figure]) -> dict[str, Figure]:
            return {
                name: replace(figure, left_out=(*figure.left_out, *gaps))
                for name, figure in figures.items()
            }

        if not gaps:
            return self
        curves = {name: added(curve) for name, curve in self.series.items()}
        return replace(self, figures=added(self.figures), series=curves)


def _figures(figures: Mapping[str, Figure]) -> dict[str, object]:
    return {name: figure.as_dict() for name, figure in figures.items()}


def mean_of_tasks(figures: Mapping[str, Figure]) -> Figure:
    """Return the plain mean of the figures of several tasks, by name.

    Its interval goes from the mean of the lower ends to the mean of the upper ones. The tasks share
    their items, so their errors may go together; this is the interval if they fully do, and too
    wide otherwise. A task without a value is left out of the mean and reported.

    Examples
    --------
    >>> mean_of_tasks({"a": Figure(0.5, n=10), "b": Figure(1.0, n=6)}).value
    0.75
    """
    known = [figure for figure in figures.values() if figure.value is not None]
    gaps = [
        LeftOut("tasks", 1, figure.reason, (task,))
        for task, figure in figures.items()
        if figure.reason
    ]
    gaps += [gap for figure in known for gap in figure.left_out]
    if not known:
        return no_figure("no task has a figure: see why for each of them", left_out=tuple(gaps))
    mean = fmean([figure.value for figure in known if figure.value is not None])
    found = Figure(mean, sum(figure.n for figure in known), left_out=tuple(gaps))
    intervals = [figure.interval for figure in known if figure.interval]
    if len(intervals) < len(known):
        return found
    low, high = (fmean(ends) for ends in zip(*intervals, strict=True))
    method = "mean of the tasks' intervals, which is wide enough"
    return replace(found, interval=(low, high), method=method)


class Scorer:
    """Compares what one judge said with what people said.

    Your own scorer says which labels it can take (`can_score_task`) and defines `compute_score`, or
    `compute_score_async` where it has to wait for something.

    Parameters
    ----------
    scorer_name : str
        What results and files are called after.

    Attributes
    ----------
    min_humans : int
        With fewer people on a task there is no figure, and the result says so.
    free_text : bool
        Whether an empty text is a label; where it is not, it is a missing one.
    figure_names : tuple of str
        What `compute_score` computes, for the results that it is not asked for.
    supports_majority : bool
        Whether `compute_majority` is defined. Where it is not, ``majority_vote`` gives a warning
        and the figures of ``individual_average``.

    Examples
    --------
    How many more "A"s does the judge write than the people do?

    >>> class MoreAs(Scorer):
    ...     figure_names = ("more_as",)
    ...
    ...     def can_score_task(self, sample_label):
    ...         return isinstance(sample_label, str)
    ...
    ...     def compute_score(self, judge_data, human_data, task_name, judge_id, aggregation_mode):
    ...         about = judge_id, task_name, aggregation_mode
    ...         wrote = judge_data.by_item
    ...         both = [(wrote[row.item], row.label) for row in human_data if row.item in wrote]
    ...         if not both:
    ...             return self.no_result(*about, "judge and people have no item in common")
    ...         more = sum(judge.count("A") - human.count("A") for judge, human in both)
    ...         return self.result(*about, {"more_as": Figure(more / len(both), n=len(both))})
    >>> judge = JudgeLabels([("q1", "AHA"), ("q2", "NO")])
    >>> people = HumanLabels([("q1", "ann", "AH"), ("q2", "ann", "NAY")])
    >>> MoreAs("more_as").compute_score(judge, people, "remark", "gpt", "single").scores
    {'more_as': 0.0}
    """

    min_humans: int = 1
    free_text: ClassVar[bool] = False
    figure_names: tuple[str, ...] = ()
    supports_majority: ClassVar[bool] = False

    def __init__(self, scorer_name: str) -> None:
        self.scorer_name = scorer_name

    def can_score_task(self, sample_label: Label) -> bool:
        """Say whether this scorer can take labels like this one."""
        raise NotImplementedError(f"{type(self).__name__} must define can_score_task")

    def compute_score(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
    ) -> ScoreResult:
        """Compare a judge with people on one task.

        With `aggregation_mode` ``multilabel`` a label is a `Vector` of the labels of all tasks.
        Figures that cannot be computed are None with a reason; see `Figure`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define compute_score or compute_score_async"
        )

    async def compute_score_async(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
    ) -> ScoreResult:
        """Do the same where it has to wait; several judges are then waited for at once."""
        return self.compute_score(judge_data, human_data, task_name, judge_id, aggregation_mode)

    def compute_majority(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
    ) -> ScoreResult:
        """Compare a judge with people's consensus; only with `supports_majority`."""
        raise NotImplementedError(f"{type(self).__name__} knows no consensus")

    def compute_among_people(
        self, human_data: HumanLabels, task_name: str, aggregation_mode: TaskStrategy
    ) -> ScoreResult | None:
        """Compute the same figure between people, which a judge is measured against, if any."""
        return None

    def aggregate_results(
        self, results: Sequence[ScoreResult], scores_dir: Path, unique_name: str
    ) -> None:
        """Write what belongs to all judges together, for instance a chart; by default nothing.

        Files belong under ``scores_dir / scorer_name / unique_name``.
        """

    def result(
        self,
        judge_id: str,
        task_name: str,
        aggregation_mode: TaskStrategy,
        figures: Mapping[str, Figure],
        *,
        by_human: Mapping[str, Figure] | None = None,
        metadata: Mapping[str, object] | None = None,
        warnings: Sequence[str] = (),
    ) -> ScoreResult:
        """Return a result of this scorer."""
        return ScoreResult(
            scorer_name=self.scorer_name,
            task_name=task_name,
            judge_id=judge_id,
            figures=figures,
            task_strategy=aggregation_mode,
            by_human=by_human or {},
            metadata=metadata or {},
            warnings=tuple(warnings),
        )

    def no_result(
        self, judge_id: str, task_name: str, aggregation_mode: TaskStrategy, reason: str
    ) -> ScoreResult:
        """Return a result whose figures are all None for this reason."""
        names = self.figure_names or (self.scorer_name,)
        figures = {name: no_figure(reason) for name in names}
        return self.result(judge_id, task_name, aggregation_mode, figures)


class BuiltInScorer(Scorer):
    """A scorer that needs the labels only, whatever judge and task they are of."""

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> ScoreResult:
        raise NotImplementedError

    def majority(self, judge: JudgeLabels, humans: HumanLabels) -> ScoreResult:
        raise NotImplementedError

    def among(self, humans: HumanLabels) -> ScoreResult:
        raise NotImplementedError

    def compute_score(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
    ) -> ScoreResult:
        about = judge_id, task_name, aggregation_mode
        return self._filled_in(lambda: self.individual(judge_data, human_data), *about)

    def compute_majority(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
    ) -> ScoreResult:
        about = judge_id, task_name, aggregation_mode
        return self._filled_in(lambda: self.majority(judge_data, human_data), *about)

    def compute_among_people(
        self, human_data: HumanLabels, task_name: str, aggregation_mode: TaskStrategy
    ) -> ScoreResult | None:
        return self._filled_in(lambda: self.among(human_data), PEOPLE, task_name, aggregation_mode)

    def _filled_in(
        self, compute: Callable[[], ScoreResult], judge_id: str, task_name: str, mode: TaskStrategy
    ) -> ScoreResult:
        """Return what is computed with what it is about, or the reason why it cannot be."""
        try:
            found = compute()
        except LabelsUnfit as unfit:
            return self.no_result(judge_id, task_name, mode, str(unfit))
        return replace(found, judge_id=judge_id, task_name=task_name, task_strategy=mode)

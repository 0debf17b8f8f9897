"""The base class of scorers, our own and yours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from judge_eval.stats.estimate import Figure, ScoreResult, TaskStrategy, no_figure
from judge_eval.stats.labels import HumanLabels, JudgeLabels, Label


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

        Parameters
        ----------
        judge_data : JudgeLabels
            Rows of (item, label).
        human_data : HumanLabels
            Rows of (item, human, label).
        task_name, judge_id : str
            For the result.
        aggregation_mode : {'single', 'multitask', 'multilabel'}
            With ``multilabel`` a label is a `Vector` of the labels of all tasks.

        Returns
        -------
        ScoreResult
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

        Parameters
        ----------
        results : sequence of ScoreResult
            One for each judge.
        scores_dir : Path
        unique_name : str
            Of the metric; files belong under ``scores_dir / scorer_name / unique_name``.
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

"""The scorers of labels that come with this package; see also `text_scorers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from judge_eval.metrics.averages import Averaged
from judge_eval.metrics.class_sums import Average
from judge_eval.metrics.classification import Classification, Metric, classify
from judge_eval.metrics.consensus import TieRule, consensus
from judge_eval.metrics.figures import Figure, ScoreResult, TaskStrategy
from judge_eval.metrics.kappa import band, kappas
from judge_eval.metrics.krippendorff import krippendorff_alpha
from judge_eval.metrics.labels import HumanLabels, JudgeLabels, Label, LabelsUnfit
from judge_eval.metrics.paired import Paired, paired, paired_people
from judge_eval.metrics.resampling import Resampling
from judge_eval.metrics.scorer import Scorer

PEOPLE = "people among themselves"
INDIVIDUAL = {
    "ground_truth_method": "individual_human_comparison",
    "scoring_method": "average_across_humans",
}


@dataclass(frozen=True)
class Found:
    """What a built-in scorer computed, before it is known what about."""

    figures: Mapping[str, Figure]
    by_human: Mapping[str, Figure] = field(default_factory=dict)
    series: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    metadata: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class BuiltInScorer(Scorer):
    """A scorer that needs to know the labels only."""

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        raise NotImplementedError

    def majority(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        raise NotImplementedError

    def among(self, humans: HumanLabels) -> Found | None:
        return None

    def compute_score(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
    ) -> ScoreResult:
        about = judge_id, task_name, aggregation_mode
        try:
            return self._result(self.individual(judge_data, human_data), *about)
        except LabelsUnfit as unfit:
            return self.no_result(*about, str(unfit))

    def compute_majority(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
    ) -> ScoreResult:
        about = judge_id, task_name, aggregation_mode
        try:
            return self._result(self.majority(judge_data, human_data), *about)
        except LabelsUnfit as unfit:
            return self.no_result(*about, str(unfit))

    def compute_ceiling(
        self, human_data: HumanLabels, task_name: str, aggregation_mode: TaskStrategy
    ) -> ScoreResult | None:
        about = PEOPLE, task_name, aggregation_mode
        try:
            found = self.among(human_data)
        except LabelsUnfit as unfit:
            return self.no_result(*about, str(unfit))
        return self._result(found, *about) if found else None

    def _result(
        self, found: Found, judge_id: str, task_name: str, mode: TaskStrategy
    ) -> ScoreResult:
        return ScoreResult(
            scorer_name=self.scorer_name,
            task_name=task_name,
            judge_id=judge_id,
            task_strategy=mode,
            figures=found.figures,
            by_human=found.by_human,
            series=found.series,
            metadata=found.metadata,
            warnings=found.warnings,
        )


class ClassificationScorer(BuiltInScorer):
    """Accuracy, F1, precision or recall; see `classification` and `Classification`.

    Parameters
    ----------
    tie_rule : {'alphabetical', 'last'}
        Of the consensus, see `consensus`.
    """

    supports_majority = True

    def __init__(
        self,
        metric: Metric = "accuracy",
        pos_label: Label = 1,
        average: Average = "binary",
        tie_rule: TieRule = "alphabetical",
        resampling: Resampling | None = None,
    ) -> None:
        super().__init__(f"classification_{metric}")
        self.figure_names = (metric,)
        self.tie_rule = tie_rule
        self.asked = Classification(metric, pos_label, average, resampling or Resampling())

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(paired(judge, humans), INDIVIDUAL)

    def majority(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        method = {"scoring_method": "majority_vote", "tie_rule": self.tie_rule}
        return self._found(paired(judge, consensus(humans, self.tie_rule)), INDIVIDUAL | method)

    def among(self, humans: HumanLabels) -> Found:
        one_sided = self.asked.metric in ("precision", "recall") or self.asked.average == "weighted"
        return self._found(paired_people(humans, ordered=one_sided), INDIVIDUAL)

    def _found(self, pairs: Paired, method: Mapping[str, object]) -> Found:
        found, asked = classify(pairs, self.asked), {}
        if self.asked.metric != "accuracy":
            asked = {"pos_label": str(self.asked.pos_label), "average": self.asked.average}
        return Found(
            {self.asked.metric: found.figure}, found.by_human, metadata={**method, **asked}
        )


class CohenKappaScorer(BuiltInScorer):
    """Cohen's kappa; see `cohen_kappa`."""

    min_humans = 2
    figure_names = ("kappa",)

    def __init__(self, resampling: Resampling | None = None) -> None:
        super().__init__("cohens_kappa")
        self.resampling = resampling or Resampling()

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(kappas(paired(judge, humans), self.resampling))

    def among(self, humans: HumanLabels) -> Found:
        return self._found(kappas(paired_people(humans), self.resampling))

    def _found(self, found: Averaged) -> Found:
        value = found.figure.value
        metadata = INDIVIDUAL | ({} if value is None else {"interpretation": band(value)})
        return Found({"kappa": found.figure}, found.by_human, metadata=metadata)


class KrippendorffAlphaScorer(BuiltInScorer):
    """Krippendorff's alpha among people, whatever the judge said; see `krippendorff_alpha`."""

    min_humans = 2
    figure_names = ("krippendorff_alpha",)

    def __init__(self, resampling: Resampling | None = None) -> None:
        super().__init__("krippendorff_alpha")
        self.resampling = resampling or Resampling()

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self.among(humans)

    def among(self, humans: HumanLabels) -> Found:
        figure = krippendorff_alpha(humans, resampling=self.resampling)
        method = {"ground_truth_method": "people_among_themselves", "level": "nominal"}
        return Found({"krippendorff_alpha": figure}, metadata=method)

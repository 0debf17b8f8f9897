"""The scorers of labels that come with this package; see also `text_scorers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from judge_eval.stats.class_sums import Average
from judge_eval.stats.figures import Figure, ScoreResult, TaskStrategy
from judge_eval.stats.graded import nominal_warning
from judge_eval.stats.kappa import Weights, band, kappas
from judge_eval.stats.krippendorff import Level, krippendorff_alpha
from judge_eval.stats.labels import HumanLabels, JudgeLabels, Label, LabelsUnfit, kind_of
from judge_eval.stats.majority import TieRule, consensus
from judge_eval.stats.pairs import Missing, Paired, paired, paired_people
from judge_eval.stats.precision_recall import Classification, Metric, classify
from judge_eval.stats.rank_correlations import COEFFICIENTS, rank_correlations
from judge_eval.stats.resampling import Resampling
from judge_eval.stats.scorer import Scorer

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

    def compute_among_people(
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
        missing: Missing = "drop",
        resampling: Resampling | None = None,
    ) -> None:
        super().__init__(f"classification_{metric}")
        self.figure_names = (metric,)
        self.tie_rule = tie_rule
        drawn = resampling or Resampling()
        self.asked = Classification(metric, pos_label, average, missing, drawn)

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(paired(judge, humans, missing=self.asked.missing), INDIVIDUAL)

    def majority(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        method = {"scoring_method": "majority_vote", "tie_rule": self.tie_rule}
        pairs = paired(judge, consensus(humans, self.tie_rule), missing=self.asked.missing)
        return self._found(pairs, INDIVIDUAL | method)

    def among(self, humans: HumanLabels) -> Found:
        one_sided = self.asked.metric in ("precision", "recall") or self.asked.average == "weighted"
        return self._found(paired_people(humans, ordered=one_sided), INDIVIDUAL)

    def _found(self, pairs: Paired, method: Mapping[str, object]) -> Found:
        found, asked = classify(pairs, self.asked), {}
        if self.asked.metric != "accuracy":
            asked = {"pos_label": str(self.asked.pos_label), "average": self.asked.average}
        wrong = pairs.unlabelled
        items = f"{wrong:,} item{'' if wrong == 1 else 's'}"
        return Found(
            {self.asked.metric: found.figure},
            found.by_human,
            metadata={**method, **asked, "missing": self.asked.missing},
            warnings=(f"{items} without the judge's label counted as wrong",) * bool(wrong),
        )


class CohenKappaScorer(BuiltInScorer):
    """Cohen's kappa; see `cohen_kappa`.

    Parameters
    ----------
    weights : {'linear', 'quadratic'}, optional
    order : sequence of Label
        Of labels that are no numbers.
    """

    figure_names = ("kappa",)

    def __init__(
        self,
        resampling: Resampling | None = None,
        *,
        weights: Weights | None = None,
        order: Sequence[Label] = (),
    ) -> None:
        super().__init__("cohens_kappa" if weights is None else f"cohens_kappa_{weights}")
        if weights not in (None, *get_args(Weights)):
            raise ValueError(f"weights must be one of {', '.join(get_args(Weights))}")
        self.weights, self.order = weights, order
        self.resampling = resampling or Resampling()

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(paired(judge, humans))

    def among(self, humans: HumanLabels) -> Found:
        return self._found(paired_people(humans))

    def _found(self, pairs: Paired) -> Found:
        found = kappas(pairs, self.resampling, weights=self.weights, order=self.order)
        value = found.figure.value
        metadata: dict[str, object] = {**INDIVIDUAL, "weights": self.weights or "none"}
        if value is not None:
            metadata["interpretation"] = band(value)
            metadata["interpretation_by"] = "Landis and Koch, a convention"
        fits = "cohen_kappa with weights, or rank_correlation,"
        warnings = () if self.weights else nominal_warning(pairs.vocabulary.labels, fits)
        return Found({"kappa": found.figure}, found.by_human, metadata=metadata, warnings=warnings)


class RankCorrelationScorer(BuiltInScorer):
    """Spearman's and Kendall's rank correlations of grades; see `rank_correlation`.

    Parameters
    ----------
    order : sequence of Label
        Of labels that are no numbers.
    """

    figure_names = COEFFICIENTS

    def __init__(
        self, resampling: Resampling | None = None, *, order: Sequence[Label] = ()
    ) -> None:
        super().__init__("rank_correlation")
        self.order, self.resampling = order, resampling or Resampling()

    def can_score_task(self, sample_label: Label) -> bool:
        return kind_of(sample_label) in ("number", "text")

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(paired(judge, humans))

    def among(self, humans: HumanLabels) -> Found:
        return self._found(paired_people(humans))

    def _found(self, pairs: Paired) -> Found:
        spearman, kendall = (
            rank_correlations(pairs, each, self.order, self.resampling) for each in COEFFICIENTS
        )
        figures = {"spearman": spearman.figure, "kendall": kendall.figure}
        return Found(figures, spearman.by_human, metadata=INDIVIDUAL)


class KrippendorffAlphaScorer(BuiltInScorer):
    """Krippendorff's alpha among people, and with the judge as one more of them.

    Parameters
    ----------
    level : {'nominal', 'ordinal', 'interval'}
        See `krippendorff_alpha`.
    order : sequence of Label
        Of labels that are no numbers.
    """

    min_humans = 2
    figure_names = ("krippendorff_alpha", "with_judge")

    def __init__(
        self,
        resampling: Resampling | None = None,
        *,
        level: Level = "nominal",
        order: Sequence[Label] = (),
    ) -> None:
        plain = "krippendorff_alpha"
        super().__init__(plain if level == "nominal" else f"{plain}_{level}")
        if level not in get_args(Level):
            raise ValueError(f"level must be one of {', '.join(get_args(Level))}")
        self.level, self.order = level, order
        self.resampling = resampling or Resampling()

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        people = self.among(humans)
        everybody = HumanLabels(
            [*humans, *((item, "the judge", label) for item, label in judge)], free_text=True
        )
        return replace(people, figures={**people.figures, "with_judge": self._alpha(everybody)})

    def among(self, humans: HumanLabels) -> Found:
        method = {"ground_truth_method": "people_among_themselves", "level": self.level}
        labels = [row.label for row in humans] if self.level == "nominal" else []
        fits = "krippendorff_alpha with level ordinal or interval"
        return Found(
            {"krippendorff_alpha": self._alpha(humans)},
            metadata=method,
            warnings=nominal_warning(labels, fits),
        )

    def _alpha(self, humans: HumanLabels) -> Figure:
        return krippendorff_alpha(humans, self.level, order=self.order, resampling=self.resampling)

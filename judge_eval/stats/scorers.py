"""Scorers: what they all have in common, and those that come with this package."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import number_of
from judge_eval.stats.annotator_test import AltTestSettings, advice, alt_test, epsilon_key, in_words
from judge_eval.stats.bootstrap import DEFAULT, Resampling
from judge_eval.stats.estimate import Estimate, check_option, no_figure
from judge_eval.stats.kappa import Level, Weights, band, cohen_kappa, krippendorff_alpha
from judge_eval.stats.labels import (
    HumanLabels,
    JudgeLabels,
    Label,
    TieRule,
    consensus,
    kind_of,
    nominal_warning,
)
from judge_eval.stats.pairs import Missing, Paired, paired, paired_people
from judge_eval.stats.precision_recall import Average, Classification, Metric, classification
from judge_eval.stats.rank_correlations import COEFFICIENTS, rank_correlation
from judge_eval.stats.similarity import (
    BATCH_SIZE,
    Embedder,
    Similarity,
    semantic_similarity,
    text_similarity,
    texts_of,
)

TaskStrategy: TypeAlias = Literal["single", "multitask", "multilabel"]
AnnotatorAggregation: TypeAlias = Literal["individual_average", "majority_vote"]
Figures: TypeAlias = Mapping[str, Estimate]
Metadata: TypeAlias = Mapping[str, object]
PEOPLE: Final = "people among themselves"
INDIVIDUAL: Final = {
    "ground_truth_method": "individual_human_comparison",
    "scoring_method": "average_across_humans",
}


@dataclass(frozen=True, kw_only=True)
class ScoreResult:
    """What one scorer found about one judge on one task, or on several taken together.

    Figures by name are the columns of a report, and the means of `by_human` or `by_task`. `series`
    are curves, such as ``winning_rate`` by epsilon; in `scores` they stand in the place of the
    figure of the same name. Metadata hold only what JSON can.
    """

    scorer_name: str
    task_name: str = ""
    task_strategy: TaskStrategy = "single"
    annotator_aggregation: AnnotatorAggregation = "individual_average"
    judge_id: str = ""
    figures: Figures
    series: Mapping[str, Figures] = field(default_factory=dict)
    by_human: Figures = field(default_factory=dict)
    by_task: Mapping[str, Figures] = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, float | dict[str, float | None] | None]:
        bare = {name: figure.value for name, figure in self.figures.items()}
        curves = {
            name: {key: figure.value for key, figure in curve.items()}
            for name, curve in self.series.items()
        }
        return {**bare, **curves}

    def as_dict(self, timestamp: str | None = None) -> JsonObject:
        """Return what a result file holds; the caller knows the time, this package does not."""
        counts = {name: figure.n for name, figure in self.figures.items()}
        figures = {
            "figures": _as_dicts(self.figures),
            "series": {name: _as_dicts(curve) for name, curve in self.series.items()},
            "by_human": _as_dicts(self.by_human),
            "by_task": {task: _as_dicts(of_task) for task, of_task in self.by_task.items()},
        }
        about = {"scores": self.scores, "counts": counts, "timestamp": timestamp}
        return asdict(self) | figures | about


def _as_dicts(figures: Figures) -> dict[str, dict[str, object]]:
    return {
        name: {
            "value": figure.value,
            "n": figure.n,
            "reason": figure.why,
            "interval": figure.interval,
            "method": figure.method,
            "left_out": tuple(asdict(gap) for gap in figure.left_out),
        }
        for name, figure in figures.items()
    }


class Scorer:
    """Compares what one judge said with what people said; docs/metrics.md has one of your own.

    It says which labels it can take (`can_score_task`) and defines `compute_score`, or
    `compute_score_async` where it has to wait for something. Results and files are called after
    `scorer_name`.

    With fewer than `min_humans` on a task there is no figure; `figure_names` are computed. An empty
    text is a label only where it is `free_text`. Without `supports_majority`, ``majority_vote``
    gives a warning and the figures of ``individual_average``.
    """

    min_humans: int = 1
    free_text: ClassVar[bool] = False
    figure_names: tuple[str, ...] = ()
    supports_majority: ClassVar[bool] = False

    def __init__(self, scorer_name: str) -> None:
        self.scorer_name = scorer_name

    def can_score_task(self, sample_label: Label) -> bool:
        raise NotImplementedError(f"{type(self).__name__} must define can_score_task")

    def compute_score(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
        /,
    ) -> ScoreResult:
        """Compare a judge with people on one task.

        With `aggregation_mode` ``multilabel`` a label is a `Vector` of the labels of all tasks.
        Figures that cannot be computed are None with a reason; see `Estimate`.
        """
        must = "must define compute_score or compute_score_async"
        raise NotImplementedError(f"{type(self).__name__} {must}")

    async def compute_score_async(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
        /,
    ) -> ScoreResult:
        """Do the same where it has to wait; several judges are then waited for at once."""
        return self.compute_score(judge_data, human_data, task_name, judge_id, aggregation_mode)

    def compute_majority(self, judge_data: JudgeLabels, human_data: HumanLabels, /) -> ScoreResult:
        """Compare a judge with people's consensus; only with `supports_majority`."""
        raise NotImplementedError(f"{type(self).__name__} knows no consensus")

    def compute_among_people(self, human_data: HumanLabels, /) -> ScoreResult | None:
        """Compute the same figure between people, which a judge is measured against, if any."""
        return None

    def aggregate_results(
        self, results: Sequence[ScoreResult], scores_dir: Path, unique_name: str
    ) -> None:
        """Write what belongs to all judges, under ``scores_dir / scorer_name / unique_name``."""

    def result(
        self,
        judge_id: str,
        task_name: str,
        aggregation_mode: TaskStrategy,
        figures: Figures,
        *,
        by_human: Figures | None = None,
        metadata: Metadata | None = None,
        warnings: Sequence[str] = (),
    ) -> ScoreResult:
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
        figures = dict.fromkeys(self.figure_names or (self.scorer_name,), no_figure(reason))
        return self.result(judge_id, task_name, aggregation_mode, figures)


class BuiltInScorer(Scorer):
    """A scorer of this package; what its results are about is filled in by who asks for them."""

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def own_result(
        self,
        figures: Sequence[Estimate],
        by_human: Figures,
        warnings: Sequence[str] = (),
        metadata: Metadata = INDIVIDUAL,
    ) -> ScoreResult:
        named = dict(zip(self.figure_names, figures, strict=False))
        return self.result(
            "", "", "single", named, by_human=by_human, metadata=metadata, warnings=warnings
        )


class PairScorer(BuiltInScorer):
    """Compares labels two by two: a judge's with people's, or people's among themselves.

    A figure that is not the same from the other side (`is_one_sided`) compares two people twice.
    """

    missing: Missing = "drop"
    is_one_sided = False

    def compute_score(
        self, judge_data: JudgeLabels, human_data: HumanLabels, /, *about: str
    ) -> ScoreResult:
        pairs = paired(judge_data, human_data, missing=self.missing, free_text=self.free_text)
        return self.compared(pairs)

    def compute_among_people(self, human_data: HumanLabels, /) -> ScoreResult | None:
        pairs = paired_people(human_data, ordered=self.is_one_sided, free_text=self.free_text)
        return self.compared(pairs)

    def compared(self, pairs: Paired) -> ScoreResult:
        raise NotImplementedError


class ClassificationScorer(PairScorer):
    """Accuracy, F1, precision or recall; see `Classification`, and `consensus` for the tie rule."""

    supports_majority = True

    def __init__(
        self,
        metric: Metric = "accuracy",
        pos_label: Label = 1,
        average: Average = "binary",
        tie_rule: TieRule = "alphabetical",
        missing: Missing = "drop",
        resampling: Resampling = DEFAULT,
    ) -> None:
        super().__init__(f"classification_{metric}")
        self.figure_names, self.tie_rule = (metric,), tie_rule
        self.settings = Classification(metric, pos_label, average, missing, resampling)
        self.missing = missing
        self.is_one_sided = metric in ("precision", "recall") or average == "weighted"

    def compute_majority(self, judge_data: JudgeLabels, human_data: HumanLabels, /) -> ScoreResult:
        outcome = self.compute_score(judge_data, consensus(human_data, self.tie_rule))
        method = {"scoring_method": "majority_vote", "tie_rule": self.tie_rule}
        return replace(outcome, metadata={**outcome.metadata, **method})

    def compared(self, pairs: Paired) -> ScoreResult:
        settings, wrong = self.settings, pairs.unlabelled
        outcome = classification(pairs, **vars(settings))
        options = {"pos_label": str(settings.pos_label), "average": settings.average}
        warning = f"{number_of(wrong, 'item')} without the judge's label counted as wrong"
        metric_options = {} if settings.metric == "accuracy" else options
        metadata = {**INDIVIDUAL, **metric_options, "missing": settings.missing}
        return self.own_result(
            [outcome.figure], outcome.by_human, [warning] if wrong else (), metadata
        )


class CohenKappaScorer(PairScorer):
    figure_names = ("kappa",)

    def __init__(
        self,
        resampling: Resampling = DEFAULT,
        *,
        weights: Weights | None = None,
        order: Sequence[Label] = (),
    ) -> None:
        super().__init__("cohens_kappa" if weights is None else f"cohens_kappa_{weights}")
        check_option("weights", weights or "linear", Weights)
        self.weights = weights
        self.kappa = partial(cohen_kappa, weights=weights, order=order, resampling=resampling)

    def compared(self, pairs: Paired) -> ScoreResult:
        outcome = self.kappa(pairs)
        metadata = {**INDIVIDUAL, "weights": self.weights or "none"}
        if outcome.figure.value is not None:
            metadata["interpretation"] = band(outcome.figure.value)
            metadata["interpretation_by"] = "Landis and Koch, a convention"
        fits = "cohen_kappa with weights, or rank_correlation,"
        labels = () if self.weights else pairs.vocabulary.labels
        return self.own_result(
            [outcome.figure], outcome.by_human, nominal_warning(labels, fits), metadata
        )


class RankCorrelationScorer(PairScorer):
    """Spearman's and Kendall's rank correlations of grades; see `rank_correlation`."""

    figure_names = COEFFICIENTS

    def __init__(self, resampling: Resampling = DEFAULT, *, order: Sequence[Label] = ()) -> None:
        super().__init__("rank_correlation")
        self.correlation = partial(rank_correlation, order=order, resampling=resampling)

    def can_score_task(self, sample_label: Label) -> bool:
        return kind_of(sample_label) in ("number", "text")

    def compared(self, pairs: Paired) -> ScoreResult:
        spearman, kendall = (self.correlation(pairs, (), name) for name in COEFFICIENTS)
        return self.own_result([spearman.figure, kendall.figure], spearman.by_human)


class KrippendorffAlphaScorer(BuiltInScorer):
    """Krippendorff's alpha among people, and with the judge as one more of them.

    With one person there is none among people, and `with_judge` is the alpha of the two.
    """

    figure_names = ("krippendorff_alpha", "with_judge")

    def __init__(
        self,
        resampling: Resampling = DEFAULT,
        *,
        level: Level = "nominal",
        order: Sequence[Label] = (),
    ) -> None:
        super().__init__("krippendorff_alpha" + f"_{level}" * (level != "nominal"))
        check_option("level", level, Level)
        self.level = level
        self.alpha = partial(krippendorff_alpha, level=level, order=order, resampling=resampling)

    def compute_score(
        self, judge_data: JudgeLabels, human_data: HumanLabels, /, *about: str
    ) -> ScoreResult:
        people = self.compute_among_people(human_data)
        judged = ((item, "the judge", label) for item, label in judge_data.items())
        everybody = HumanLabels([*human_data, *judged], free_text=True)
        return replace(people, figures={**people.figures, "with_judge": self.alpha(everybody)})

    def compute_among_people(self, human_data: HumanLabels, /) -> ScoreResult:
        labels = [row.label for row in human_data] if self.level == "nominal" else []
        warnings = nominal_warning(labels, "krippendorff_alpha with level ordinal or interval")
        metadata = {"ground_truth_method": "people_among_themselves", "level": self.level}
        return self.own_result([self.alpha(human_data)], {}, warnings, metadata)


class TextSimilarityScorer(PairScorer):
    """How alike the letters of two texts are; see `text_similarity`.

    The consensus is the person whose text is most alike.
    """

    supports_majority = True
    free_text = True
    figure_names = ("similarity",)

    def __init__(self, resampling: Resampling = DEFAULT) -> None:
        super().__init__("text_similarity")
        self.metadata: Metadata = {}
        self.similarity: Callable[..., Similarity] = partial(text_similarity, resampling=resampling)

    def can_score_task(self, sample_label: Label) -> bool:
        return bool(texts_of(sample_label))

    def compute_majority(self, judge_data: JudgeLabels, human_data: HumanLabels, /) -> ScoreResult:
        outcome = self.compared(paired(judge_data, human_data, free_text=True), best_match=True)
        return replace(outcome, metadata={**outcome.metadata, "scoring_method": "best_match"})

    def compared(self, pairs: Paired, best_match: bool = False) -> ScoreResult:
        outcome = self.similarity(pairs, humans=(), best_match=best_match)
        metadata = {**INDIVIDUAL, **self.metadata, "similarities": asdict(outcome.spread)}
        return self.own_result([outcome.figure], outcome.by_human, (), metadata)


class SemanticSimilarityScorer(TextSimilarityScorer):
    """How alike the meaning of two texts is; see `semantic_similarity`."""

    figure_names = ("semantic_similarity",)

    def __init__(
        self, embed: Embedder, batch_size: int = BATCH_SIZE, resampling: Resampling = DEFAULT
    ) -> None:
        super().__init__(resampling)
        self.scorer_name, self.embed = "semantic_similarity", embed
        self.metadata = {"embedding_model": embed.model, "batch_size": batch_size}
        self.similarity = partial(
            semantic_similarity, embed=embed, batch_size=batch_size, resampling=resampling
        )


class AltTestScorer(BuiltInScorer):
    """May the judge take a person's place? See `alt_test`; people have none among themselves."""

    figure_names = ("winning_rate", "advantage_probability")

    def __init__(self, settings: AltTestSettings | None = None) -> None:
        super().__init__("alt_test")
        self.settings = settings or AltTestSettings()
        self.min_humans = self.settings.min_humans

    def compute_score(
        self, judge_data: JudgeLabels, human_data: HumanLabels, /, *about: str
    ) -> ScoreResult:
        settings = self.settings
        outcome = alt_test({"judge": judge_data}, human_data, settings)["judge"]
        people = outcome.by_human.items()
        metadata = {
            "human_advantage_probabilities": {
                name: [against.judge_advantage, against.human_advantage] for name, against in people
            },
            "p_values": {name: against.p_values for name, against in people},
            "won_against": {name: against.rejected for name, against in people},
            "items": {name: against.n for name, against in people},
            "tests": {name: against.test for name, against in people},
            "passes": outcome.passes,
            "outcome": outcome.outcome,
            "in_words": in_words(outcome),
            "scoring_function": outcome.scoring,
            "epsilon": settings.epsilon,
            "multiplicative_epsilon": settings.multiplicative,
            "q_fdr": settings.q,
            "min_human_annotators": settings.min_humans,
            "min_humans_per_item": settings.min_humans_per_item,
            "min_instances_per_human": settings.min_instances_per_human,
            "ground_truth_method": "alt_test_procedure",
            "scoring_method": "leave_one_out_cross_validation",
        }
        figures = outcome.winning_rate[outcome.epsilon], outcome.advantage_probability
        by_human = {name: against.figure for name, against in people}
        result = self.own_result(figures, by_human, advice(outcome, settings), metadata)
        return replace(result, series={"winning_rate": outcome.winning_rate})

    def no_result(
        self, judge_id: str, task_name: str, aggregation_mode: TaskStrategy, reason: str
    ) -> ScoreResult:
        outcome = super().no_result(judge_id, task_name, aggregation_mode, reason)
        rates = {epsilon_key(e): no_figure(reason) for e in self.settings.epsilons}
        return replace(outcome, series={"winning_rate": rates})


def alt_test_scorer(**settings: Any) -> AltTestScorer:
    return AltTestScorer(AltTestSettings(**settings))

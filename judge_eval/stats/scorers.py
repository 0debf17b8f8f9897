"""The scorers of labels that come with this package; see also `text_scorers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, get_args

from judge_eval.stats.alpha import Level, krippendorff_alpha
from judge_eval.stats.annotator_test import (
    AgainstHuman,
    AltTestResult,
    AltTestSettings,
    advice,
    alt_test,
    epsilon_key,
    in_words,
)
from judge_eval.stats.averages import WILSON
from judge_eval.stats.bootstrap import Resampling
from judge_eval.stats.class_sums import Average
from judge_eval.stats.estimate import Figure, ScoreResult, TaskStrategy, no_figure, wilson
from judge_eval.stats.kappa import Weights, band, kappas
from judge_eval.stats.labels import (
    HumanLabels,
    JudgeLabels,
    Label,
    LabelsUnfit,
    TieRule,
    consensus,
    kind_of,
    nominal_warning,
)
from judge_eval.stats.pairs import Missing, Paired, paired, paired_people
from judge_eval.stats.precision_recall import Classification, Metric, classify
from judge_eval.stats.rank_correlations import COEFFICIENTS, rank_correlations
from judge_eval.stats.scorer import Scorer
from judge_eval.stats.similarity import (
    BATCH_SIZE,
    Embedder,
    Similarity,
    is_text,
    semantics,
    similarities,
)

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


class TextScorer(BuiltInScorer):
    """Compares texts; the consensus is the person whose text is most alike."""

    supports_majority = True
    free_text = True

    def can_score_task(self, sample_label: Label) -> bool:
        return is_text(sample_label)

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(paired(judge, humans), best_match=False)

    def majority(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(paired(judge, humans), best_match=True)

    def among(self, humans: HumanLabels) -> Found:
        return self._found(paired_people(humans), best_match=False)

    def metadata(self) -> Mapping[str, object]:
        return {}

    def compare(self, pairs: Paired, *, best_match: bool) -> Similarity:
        raise NotImplementedError

    def _found(self, pairs: Paired, *, best_match: bool) -> Found:
        found = self.compare(pairs, best_match=best_match)
        method = {"scoring_method": "best_match"} if best_match else {}
        metadata = {**INDIVIDUAL, **method, **self.metadata()}
        metadata["similarities"] = asdict(found.spread)
        return Found({self.figure_names[0]: found.figure}, found.by_human, metadata=metadata)


class TextSimilarityScorer(TextScorer):
    """How alike the letters of two texts are; see `text_similarity`."""

    figure_names = ("similarity",)

    def __init__(self, resampling: Resampling | None = None) -> None:
        super().__init__("text_similarity")
        self.resampling = resampling or Resampling()

    def compare(self, pairs: Paired, *, best_match: bool) -> Similarity:
        return similarities(pairs, best_match=best_match, resampling=self.resampling)


class SemanticSimilarityScorer(TextScorer):
    """How alike the meaning of two texts is; see `semantic_similarity`.

    Parameters
    ----------
    embed : Embedder
    """

    figure_names = ("semantic_similarity",)

    def __init__(
        self, embed: Embedder, batch_size: int = BATCH_SIZE, resampling: Resampling | None = None
    ) -> None:
        super().__init__("semantic_similarity")
        self.embed, self.batch_size = embed, batch_size
        self.resampling = resampling or Resampling()

    def metadata(self) -> Mapping[str, object]:
        return {"embedding_model": self.embed.model, "batch_size": self.batch_size}

    def compare(self, pairs: Paired, *, best_match: bool) -> Similarity:
        return semantics(
            pairs,
            self.embed,
            best_match=best_match,
            resampling=self.resampling,
            batch_size=self.batch_size,
        )


_JUDGE = "judge"


class AltTestScorer(BuiltInScorer):
    """May the judge take a person's place? See `alt_test`.

    Parameters
    ----------
    settings : AltTestSettings, optional
    """

    figure_names = ("winning_rate", "advantage_probability")

    def __init__(self, settings: AltTestSettings | None = None) -> None:
        super().__init__("alt_test")
        self.settings = settings or AltTestSettings()
        self.min_humans = self.settings.min_humans

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        found = alt_test({_JUDGE: judge}, humans, self.settings)[_JUDGE]
        return Found(
            {
                "winning_rate": found.winning_rate[found.epsilon],
                "advantage_probability": found.advantage_probability,
            },
            by_human={name: _advantage(against) for name, against in found.by_human.items()},
            series={"winning_rate": found.winning_rate},
            metadata=self._metadata(found),
            warnings=advice(found, self.settings),
        )

    def no_result(
        self, judge_id: str, task_name: str, aggregation_mode: TaskStrategy, reason: str
    ) -> ScoreResult:
        figure = no_figure(reason)
        rates: dict[str, Figure] = {epsilon_key(e): figure for e in self.settings.epsilons}
        found = Found(dict.fromkeys(self.figure_names, figure), series={"winning_rate": rates})
        return self._result(found, judge_id, task_name, aggregation_mode)

    def _metadata(self, found: AltTestResult) -> dict[str, object]:
        settings, people = self.settings, found.by_human.items()
        return {
            "human_advantage_probabilities": {
                name: [against.judge_advantage, against.human_advantage] for name, against in people
            },
            "p_values": {name: dict(against.p_values) for name, against in people},
            "won_against": {name: dict(against.rejected) for name, against in people},
            "items": {name: against.n for name, against in people},
            "tests": {name: against.test for name, against in people},
            "passes": found.passes,
            "in_words": in_words(found),
            "scoring_function": found.scoring,
            "epsilon": settings.epsilon,
            "multiplicative_epsilon": settings.multiplicative,
            "q_fdr": settings.q,
            "min_human_annotators": settings.min_humans,
            "min_humans_per_item": settings.min_humans_per_item,
            "min_instances_per_human": settings.min_instances_per_human,
            "ground_truth_method": "alt_test_procedure",
            "scoring_method": "leave_one_out_cross_validation",
        }


def _advantage(against: AgainstHuman) -> Figure:
    holds = round(against.judge_advantage * against.n)
    interval = wilson(holds, against.n)
    return Figure(against.judge_advantage, against.n, interval=interval, method=WILSON)


def _alt_test(**settings: Any) -> AltTestScorer:
    return AltTestScorer(AltTestSettings(**settings))


SCORERS: Final[dict[str, Callable[..., Scorer]]] = {
    "classification": ClassificationScorer,
    "cohen_kappa": CohenKappaScorer,
    "alt_test": _alt_test,
    "text_similarity": TextSimilarityScorer,
    "semantic_similarity": SemanticSimilarityScorer,
    "krippendorff_alpha": KrippendorffAlphaScorer,
    "rank_correlation": RankCorrelationScorer,
}


class ScorerUnknown(ValueError):
    """A name that no scorer has, or options that the scorer cannot have."""


def register(name: str, factory: Callable[..., Scorer]) -> None:
    """Make a scorer known by a name.

    Raises
    ------
    ValueError
        When another scorer has it.
    """
    if SCORERS.get(name, factory) is not factory:
        raise ValueError(f"another scorer is called {name}")
    SCORERS[name] = factory


def make_scorer(name: str, **options: Any) -> Scorer:
    """Return a scorer by its name.

    Parameters
    ----------
    name : str
        One of `SCORERS`.
    **options
        What the scorer takes; for the Alt-Test those of `AltTestSettings`. `resamples` and `seed`
        are those of its intervals.

    Raises
    ------
    ScorerUnknown

    Examples
    --------
    >>> make_scorer("classification", metric="f1", average="macro", seed=7).scorer_name
    'classification_f1'
    >>> make_scorer("alt_test", epsilon=0.1).settings.epsilon
    0.1
    """
    if name not in SCORERS:
        raise ScorerUnknown(f"no scorer is called {name!r}; there are {', '.join(sorted(SCORERS))}")
    drawing = {key: options.pop(key) for key in ("resamples", "seed") if key in options}
    try:
        if drawing:
            options["resampling"] = Resampling(**drawing)
        return SCORERS[name](**options)
    except (TypeError, ValueError) as error:
        raise ScorerUnknown(f"{name}: {error}") from error

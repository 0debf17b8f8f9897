"""The scorers that come with this package, and all scorers by name: yours too (`register`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
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
from judge_eval.stats.estimate import Figure, no_figure, wilson
from judge_eval.stats.kappa import Weights, band, kappas
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
from judge_eval.stats.precision_recall import Average, Classification, Metric, classify
from judge_eval.stats.rank_correlations import COEFFICIENTS, rank_correlations
from judge_eval.stats.scorer import BuiltInScorer, Scorer, ScoreResult, TaskStrategy
from judge_eval.stats.similarity import (
    BATCH_SIZE,
    Embedder,
    Similarity,
    is_text,
    semantics,
    similarities,
)

INDIVIDUAL: Final = {
    "ground_truth_method": "individual_human_comparison",
    "scoring_method": "average_across_humans",
}


class PairScorer(BuiltInScorer):
    """Compares labels two by two: a judge's with people's, or people's among themselves."""

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> ScoreResult:
        return self.compared(paired(judge, humans, free_text=self.free_text))

    def among(self, humans: HumanLabels) -> ScoreResult:
        return self.compared(paired_people(humans, free_text=self.free_text))

    def compared(self, pairs: Paired) -> ScoreResult:
        raise NotImplementedError


class ClassificationScorer(BuiltInScorer):
    """Accuracy, F1, precision or recall; see `Classification`, and `consensus` for the tie rule."""

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
        self.settings = Classification(metric, pos_label, average, missing, drawn)

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> ScoreResult:
        return self._compared(paired(judge, humans, missing=self.settings.missing), INDIVIDUAL)

    def majority(self, judge: JudgeLabels, humans: HumanLabels) -> ScoreResult:
        method = {"scoring_method": "majority_vote", "tie_rule": self.tie_rule}
        pairs = paired(judge, consensus(humans, self.tie_rule), missing=self.settings.missing)
        return self._compared(pairs, INDIVIDUAL | method)

    def among(self, humans: HumanLabels) -> ScoreResult:
        settings = self.settings
        one_sided = settings.metric in ("precision", "recall") or settings.average == "weighted"
        return self._compared(paired_people(humans, ordered=one_sided), INDIVIDUAL)

    def _compared(self, pairs: Paired, method: Mapping[str, object]) -> ScoreResult:
        found, settings, options = classify(pairs, self.settings), self.settings, {}
        if settings.metric != "accuracy":
            options = {"pos_label": str(settings.pos_label), "average": settings.average}
        wrong = pairs.unlabelled
        items = f"{wrong:,} item{'' if wrong == 1 else 's'}"
        return ScoreResult(
            scorer_name=self.scorer_name,
            figures={settings.metric: found.figure},
            by_human=found.by_human,
            metadata={**method, **options, "missing": settings.missing},
            warnings=(f"{items} without the judge's label counted as wrong",) * bool(wrong),
        )


class CohenKappaScorer(PairScorer):
    """Cohen's kappa; see `cohen_kappa`."""

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

    def compared(self, pairs: Paired) -> ScoreResult:
        found = kappas(pairs, self.resampling, weights=self.weights, order=self.order)
        value = found.figure.value
        metadata: dict[str, object] = {**INDIVIDUAL, "weights": self.weights or "none"}
        if value is not None:
            metadata["interpretation"] = band(value)
            metadata["interpretation_by"] = "Landis and Koch, a convention"
        fits = "cohen_kappa with weights, or rank_correlation,"
        return ScoreResult(
            scorer_name=self.scorer_name,
            figures={"kappa": found.figure},
            by_human=found.by_human,
            metadata=metadata,
            warnings=() if self.weights else nominal_warning(pairs.vocabulary.labels, fits),
        )


class RankCorrelationScorer(PairScorer):
    """Spearman's and Kendall's rank correlations of grades; see `rank_correlation`."""

    figure_names = COEFFICIENTS

    def __init__(
        self, resampling: Resampling | None = None, *, order: Sequence[Label] = ()
    ) -> None:
        super().__init__("rank_correlation")
        self.order, self.resampling = order, resampling or Resampling()

    def can_score_task(self, sample_label: Label) -> bool:
        return kind_of(sample_label) in ("number", "text")

    def compared(self, pairs: Paired) -> ScoreResult:
        found = {
            name: rank_correlations(pairs, name, self.order, self.resampling)
            for name in COEFFICIENTS
        }
        return ScoreResult(
            scorer_name=self.scorer_name,
            figures={name: each.figure for name, each in found.items()},
            by_human=found["spearman"].by_human,
            metadata=INDIVIDUAL,
        )


class KrippendorffAlphaScorer(BuiltInScorer):
    """Krippendorff's alpha among people, and with the judge as one more of them."""

    min_humans = 2
    figure_names = ("krippendorff_alpha", "with_judge")

    def __init__(
        self,
        resampling: Resampling | None = None,
        *,
        level: Level = "nominal",
        order: Sequence[Label] = (),
    ) -> None:
        super().__init__("krippendorff_alpha" + f"_{level}" * (level != "nominal"))
        if level not in get_args(Level):
            raise ValueError(f"level must be one of {', '.join(get_args(Level))}")
        self.level, self.order = level, order
        self.resampling = resampling or Resampling()

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> ScoreResult:
        people = self.among(humans)
        everybody = HumanLabels(
            [*humans, *((item, "the judge", label) for item, label in judge)], free_text=True
        )
        return replace(people, figures={**people.figures, "with_judge": self._alpha(everybody)})

    def among(self, humans: HumanLabels) -> ScoreResult:
        labels = [row.label for row in humans] if self.level == "nominal" else []
        fits = "krippendorff_alpha with level ordinal or interval"
        return ScoreResult(
            scorer_name=self.scorer_name,
            figures={"krippendorff_alpha": self._alpha(humans)},
            metadata={"ground_truth_method": "people_among_themselves", "level": self.level},
            warnings=nominal_warning(labels, fits),
        )

    def _alpha(self, humans: HumanLabels) -> Figure:
        return krippendorff_alpha(humans, self.level, order=self.order, resampling=self.resampling)


class TextScorer(PairScorer):
    """Compares texts; the consensus is the person whose text is most alike."""

    supports_majority = True
    free_text = True

    def can_score_task(self, sample_label: Label) -> bool:
        return is_text(sample_label)

    def majority(self, judge: JudgeLabels, humans: HumanLabels) -> ScoreResult:
        return self.compared(paired(judge, humans, free_text=True), best_match=True)

    def metadata(self) -> Mapping[str, object]:
        return {}

    def similarity(self, pairs: Paired, *, best_match: bool) -> Similarity:
        raise NotImplementedError

    def compared(self, pairs: Paired, *, best_match: bool = False) -> ScoreResult:
        found = self.similarity(pairs, best_match=best_match)
        method = {"scoring_method": "best_match"} if best_match else {}
        spread = {"similarities": asdict(found.spread)}
        return ScoreResult(
            scorer_name=self.scorer_name,
            figures={self.figure_names[0]: found.figure},
            by_human=found.by_human,
            metadata={**INDIVIDUAL, **method, **self.metadata(), **spread},
        )


class TextSimilarityScorer(TextScorer):
    """How alike the letters of two texts are; see `text_similarity`."""

    figure_names = ("similarity",)

    def __init__(self, resampling: Resampling | None = None) -> None:
        super().__init__("text_similarity")
        self.resampling = resampling or Resampling()

    def similarity(self, pairs: Paired, *, best_match: bool) -> Similarity:
        return similarities(pairs, best_match=best_match, resampling=self.resampling)


class SemanticSimilarityScorer(TextScorer):
    """How alike the meaning of two texts is; see `semantic_similarity`."""

    figure_names = ("semantic_similarity",)

    def __init__(
        self, embed: Embedder, batch_size: int = BATCH_SIZE, resampling: Resampling | None = None
    ) -> None:
        super().__init__("semantic_similarity")
        self.embed, self.batch_size = embed, batch_size
        self.resampling = resampling or Resampling()

    def metadata(self) -> Mapping[str, object]:
        return {"embedding_model": self.embed.model, "batch_size": self.batch_size}

    def similarity(self, pairs: Paired, *, best_match: bool) -> Similarity:
        return semantics(
            pairs,
            self.embed,
            best_match=best_match,
            resampling=self.resampling,
            batch_size=self.batch_size,
        )


class AltTestScorer(BuiltInScorer):
    """May the judge take a person's place? See `alt_test`."""

    figure_names = ("winning_rate", "advantage_probability")

    def __init__(self, settings: AltTestSettings | None = None) -> None:
        super().__init__("alt_test")
        self.settings = settings or AltTestSettings()
        self.min_humans = self.settings.min_humans

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> ScoreResult:
        found = alt_test({"judge": judge}, humans, self.settings)["judge"]
        figures = found.winning_rate[found.epsilon], found.advantage_probability
        return ScoreResult(
            scorer_name=self.scorer_name,
            figures=dict(zip(self.figure_names, figures, strict=True)),
            by_human={name: _advantage(against) for name, against in found.by_human.items()},
            series={"winning_rate": found.winning_rate},
            metadata=self._metadata(found),
            warnings=advice(found, self.settings),
        )

    def compute_among_people(
        self, human_data: HumanLabels, task_name: str, aggregation_mode: TaskStrategy
    ) -> None:
        """People have no Alt-Test among themselves."""

    def no_result(
        self, judge_id: str, task_name: str, aggregation_mode: TaskStrategy, reason: str
    ) -> ScoreResult:
        found = super().no_result(judge_id, task_name, aggregation_mode, reason)
        rates = {epsilon_key(e): no_figure(reason) for e in self.settings.epsilons}
        return replace(found, series={"winning_rate": rates})

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
    interval = wilson(round(against.judge_advantage * against.n), against.n)
    return Figure(against.judge_advantage, against.n, interval=interval, method=WILSON)


SCORERS: Final[dict[str, Callable[..., Scorer]]] = {
    "classification": ClassificationScorer,
    "cohen_kappa": CohenKappaScorer,
    "alt_test": lambda **settings: AltTestScorer(AltTestSettings(**settings)),
    "text_similarity": TextSimilarityScorer,
    "semantic_similarity": SemanticSimilarityScorer,
    "krippendorff_alpha": KrippendorffAlphaScorer,
    "rank_correlation": RankCorrelationScorer,
}


class ScorerUnknown(ValueError):
    """A name that no scorer has, or options that the scorer cannot have."""


def register(name: str, factory: Callable[..., Scorer]) -> None:
    """Give a scorer a name that a configuration file can use.

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

"""How well do judges agree with people: metrics as pure functions, usable without Django.

Labels go in as plain mappings, ``{human: {item: label}}`` and ``{item: label}``, or as rows. Every
figure comes with its n, what was left out and why, and a 95 % interval where there is one; what
cannot be computed is None with a reason. docs/metrics.md has the formulas.

Examples
--------
>>> from judge_eval.metrics import classification
>>> judge = {"q1": "A", "q2": "B", "q3": "tie"}
>>> people = {"ann": {"q1": "A", "q2": "B", "q3": "A"}, "ben": {"q1": "A", "q3": None}}
>>> accuracy = classification(judge, people).figure
>>> round(accuracy.value, 4), accuracy.n, accuracy.left_out[0].why
(0.8333, 4, "the person's label is missing")
"""

from judge_eval.metrics.agreement import agreement
from judge_eval.metrics.alt_test import alt_test
from judge_eval.metrics.alt_test_parts import (
    GRID,
    PASSES,
    AgainstHuman,
    AltTestResult,
    AltTestSettings,
    epsilon_key,
)
from judge_eval.metrics.alt_test_scorer import AltTestScorer
from judge_eval.metrics.alt_test_words import EPSILON_GUIDE, advice, epsilon_advice, in_words
from judge_eval.metrics.averages import Averaged
from judge_eval.metrics.classification import classification
from judge_eval.metrics.config import MetricConfig, MetricInvalid, check_names
from judge_eval.metrics.consensus import consensus
from judge_eval.metrics.figures import Figure, LeftOut, ScoreResult, no_figure
from judge_eval.metrics.kappa import band, cohen_kappa
from judge_eval.metrics.krippendorff import krippendorff_alpha
from judge_eval.metrics.labels import HumanLabels, JudgeLabels, Vector, human_labels, judge_labels
from judge_eval.metrics.leave_one_out import jaccard_similarity
from judge_eval.metrics.paired import Paired, paired, paired_people
from judge_eval.metrics.rank_correlation import rank_correlation
from judge_eval.metrics.registry import SCORERS, ScorerUnknown, make_scorer, register
from judge_eval.metrics.resampling import Resampling
from judge_eval.metrics.running import Annotations, Results, among_people, score, score_async
from judge_eval.metrics.sample_size import ItemsNeeded, Supposed, items_needed
from judge_eval.metrics.scorer import Scorer
from judge_eval.metrics.scorers import (
    ClassificationScorer,
    CohenKappaScorer,
    KrippendorffAlphaScorer,
    RankCorrelationScorer,
)
from judge_eval.metrics.semantic import Embedder, EmbeddingFailed, Semantic, semantic_similarity
from judge_eval.metrics.significance import benjamini_yekutieli
from judge_eval.metrics.similarity import Similarity, Spread, text_similarity
from judge_eval.metrics.text_scorers import SemanticSimilarityScorer, TextSimilarityScorer

__all__ = [
    "EPSILON_GUIDE",
    "GRID",
    "PASSES",
    "SCORERS",
    "AgainstHuman",
    "AltTestResult",
    "AltTestScorer",
    "AltTestSettings",
    "Annotations",
    "Averaged",
    "ClassificationScorer",
    "CohenKappaScorer",
    "Embedder",
    "EmbeddingFailed",
    "Figure",
    "HumanLabels",
    "ItemsNeeded",
    "JudgeLabels",
    "KrippendorffAlphaScorer",
    "LeftOut",
    "MetricConfig",
    "MetricInvalid",
    "Paired",
    "RankCorrelationScorer",
    "Resampling",
    "Results",
    "ScoreResult",
    "Scorer",
    "ScorerUnknown",
    "Semantic",
    "SemanticSimilarityScorer",
    "Similarity",
    "Spread",
    "Supposed",
    "TextSimilarityScorer",
    "Vector",
    "advice",
    "agreement",
    "alt_test",
    "among_people",
    "band",
    "benjamini_yekutieli",
    "check_names",
    "classification",
    "cohen_kappa",
    "consensus",
    "epsilon_advice",
    "epsilon_key",
    "human_labels",
    "in_words",
    "items_needed",
    "jaccard_similarity",
    "judge_labels",
    "krippendorff_alpha",
    "make_scorer",
    "no_figure",
    "paired",
    "paired_people",
    "rank_correlation",
    "register",
    "score",
    "score_async",
    "semantic_similarity",
    "text_similarity",
]

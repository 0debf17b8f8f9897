# ruff: noqa: I001, TID252
from .annotator_test import (
    AgainstHuman as AgainstHuman,
    AltTestResult as AltTestResult,
    AltTestSettings as AltTestSettings,
    EPSILON_GUIDE as EPSILON_GUIDE,
    GRID as GRID,
    advice as advice,
    alt_test as alt_test,
    epsilon_advice as epsilon_advice,
    epsilon_key as epsilon_key,
    in_words as in_words,
    jaccard_similarity as jaccard_similarity,
    outcome_of as outcome_of,
)
from .bootstrap import Resampling as Resampling
from .estimate import (
    PASSES as PASSES,
    Estimate as Estimate,
    LeftOut as LeftOut,
    no_figure as no_figure,
)
from .kappa import (
    band as band,
    cohen_kappa as cohen_kappa,
    krippendorff_alpha as krippendorff_alpha,
)
from .labels import (
    HumanLabels as HumanLabels,
    JudgeLabels as JudgeLabels,
    Vector as Vector,
    consensus as consensus,
    human_labels as human_labels,
    judge_labels as judge_labels,
)
from .pairs import (
    Averaged as Averaged,
    Paired as Paired,
    agreement as agreement,
    paired as paired,
    paired_people as paired_people,
)
from .precision_recall import classification as classification
from .rank_correlations import rank_correlation as rank_correlation
from .registry import (
    SCORERS as SCORERS,
    ScorerUnknown as ScorerUnknown,
    make_scorer as make_scorer,
    register as register,
)
from .sample_size import ItemsNeeded as ItemsNeeded, items_needed as items_needed
from .scorers import (
    AnnotatorAggregation as AnnotatorAggregation,
    ScoreResult as ScoreResult,
    Scorer as Scorer,
    TaskStrategy as TaskStrategy,
    AltTestScorer as AltTestScorer,
    ClassificationScorer as ClassificationScorer,
    CohenKappaScorer as CohenKappaScorer,
    KrippendorffAlphaScorer as KrippendorffAlphaScorer,
    RankCorrelationScorer as RankCorrelationScorer,
    SemanticSimilarityScorer as SemanticSimilarityScorer,
    TextSimilarityScorer as TextSimilarityScorer,
)
from .scoring import (
    Annotations as Annotations,
    MetricConfig as MetricConfig,
    MetricInvalid as MetricInvalid,
    Results as Results,
    among_people as among_people,
    check_names as check_names,
    score as score,
    score_async as score_async,
)
from .significance import benjamini_yekutieli as benjamini_yekutieli
from .similarity import (
    Embedder as Embedder,
    EmbeddingFailed as EmbeddingFailed,
    Similarity as Similarity,
    Spread as Spread,
    semantic_similarity as semantic_similarity,
    text_similarity as text_similarity,
)

# ruff: noqa: I001, TID252
from .alt_test_parts import (
    AgainstHuman as AgainstHuman,
    AltTestResult as AltTestResult,
    AltTestSettings as AltTestSettings,
    GRID as GRID,
    PASSES as PASSES,
    epsilon_key as epsilon_key,
)
from .alt_test_scorer import AltTestScorer as AltTestScorer
from .alt_test_words import (
    EPSILON_GUIDE as EPSILON_GUIDE,
    advice as advice,
    epsilon_advice as epsilon_advice,
    in_words as in_words,
)
from .annotator_test import alt_test as alt_test
from .averages import Averaged as Averaged
from .config import (
    MetricConfig as MetricConfig,
    MetricInvalid as MetricInvalid,
    check_names as check_names,
)
from .figures import (
    Figure as Figure,
    LeftOut as LeftOut,
    ScoreResult as ScoreResult,
    no_figure as no_figure,
)
from .kappa import band as band, cohen_kappa as cohen_kappa
from .krippendorff import krippendorff_alpha as krippendorff_alpha
from .labels import (
    HumanLabels as HumanLabels,
    JudgeLabels as JudgeLabels,
    Vector as Vector,
    human_labels as human_labels,
    judge_labels as judge_labels,
)
from .leave_one_out import jaccard_similarity as jaccard_similarity
from .majority import consensus as consensus
from .pairs import Paired as Paired, paired as paired, paired_people as paired_people
from .plain_agreement import agreement as agreement
from .precision_recall import classification as classification
from .rank_correlations import rank_correlation as rank_correlation
from .registry import (
    SCORERS as SCORERS,
    ScorerUnknown as ScorerUnknown,
    make_scorer as make_scorer,
    register as register,
)
from .resampling import Resampling as Resampling
from .running import (
    Annotations as Annotations,
    Results as Results,
    among_people as among_people,
    score as score,
    score_async as score_async,
)
from .sample_size import (
    ItemsNeeded as ItemsNeeded,
    Supposed as Supposed,
    items_needed as items_needed,
)
from .scorer import Scorer as Scorer
from .scorers import (
    ClassificationScorer as ClassificationScorer,
    CohenKappaScorer as CohenKappaScorer,
    KrippendorffAlphaScorer as KrippendorffAlphaScorer,
    RankCorrelationScorer as RankCorrelationScorer,
)
from .semantic import (
    Embedder as Embedder,
    EmbeddingFailed as EmbeddingFailed,
    Semantic as Semantic,
    semantic_similarity as semantic_similarity,
)
from .significance import benjamini_yekutieli as benjamini_yekutieli
from .similarity import (
    Similarity as Similarity,
    Spread as Spread,
    text_similarity as text_similarity,
)
from .text_scorers import (
    SemanticSimilarityScorer as SemanticSimilarityScorer,
    TextSimilarityScorer as TextSimilarityScorer,
)

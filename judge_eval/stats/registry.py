"""Scorers by name, so that a configuration file can ask for them; yours too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from judge_eval.stats.alt_test_parts import AltTestSettings
from judge_eval.stats.alt_test_scorer import AltTestScorer
from judge_eval.stats.resampling import Resampling
from judge_eval.stats.scorer import Scorer
from judge_eval.stats.scorers import (
    ClassificationScorer,
    CohenKappaScorer,
    KrippendorffAlphaScorer,
    RankCorrelationScorer,
)
from judge_eval.stats.text_scorers import SemanticSimilarityScorer, TextSimilarityScorer


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

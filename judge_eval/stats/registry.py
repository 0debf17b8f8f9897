"""Scorers by name: those that come with this package, and yours.

What computes is imported when a scorer is made, so that a name costs no numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from humanjudge.core.extensions import Extension, Registry, imported
from judge_eval.stats.estimate import require

if TYPE_CHECKING:
    from judge_eval.stats import scorers


class Scorer(Extension):
    """The name of a scorer, and how one is made; `judge_eval.stats.Scorer` is what scores."""

    kind = "scorer"

    def __call__(self, **options: Any) -> scorers.Scorer:
        """Make one with the options of a configuration; import what is heavy here."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


class _BuiltInScorer(Scorer):
    version = "1"

    def __init__(self, name: str, title: str, description: str, factory: str) -> None:
        self.id, self.title, self.description, self._factory = name, title, description, factory

    def __call__(self, **options: Any) -> scorers.Scorer:
        factory = imported(f"judge_eval.stats.scorers:{self._factory}")
        return cast("Callable[..., scorers.Scorer]", factory)(**options)


class _Registered(Scorer):
    """One that a module has registered: see `register`."""

    version = "1"
    package = "SCORER_MODULES"
    description = "Registered by a module that the server's settings name."

    def __init__(self, name: str, factory: Callable[..., scorers.Scorer]) -> None:
        self.id = self.title = name
        self.factory = factory

    def __call__(self, **options: Any) -> scorers.Scorer:
        return self.factory(**options)


SCORERS: Final = Registry[Scorer](
    Scorer,
    _BuiltInScorer(
        "classification",
        "Classification",
        "Accuracy, precision, recall and F1 against each person.",
        "ClassificationScorer",
    ),
    _BuiltInScorer(
        "cohen_kappa",
        "Cohen’s kappa",  # noqa: RUF001
        "Agreement beyond chance, with each person.",
        "CohenKappaScorer",
    ),
    _BuiltInScorer(
        "alt_test",
        "Alternative Annotator Test",
        "Whether a judge may take the place of a person.",
        "alt_test_scorer",
    ),
    _BuiltInScorer(
        "text_similarity",
        "Text similarity",
        "How alike free texts are, letter by letter.",
        "TextSimilarityScorer",
    ),
    _BuiltInScorer(
        "semantic_similarity",
        "Semantic similarity",
        "How near free texts are in meaning, by an embedder.",
        "SemanticSimilarityScorer",
    ),
    _BuiltInScorer(
        "krippendorff_alpha",
        "Krippendorff’s alpha",  # noqa: RUF001
        "Agreement of all who labelled, a judge among them.",
        "KrippendorffAlphaScorer",
    ),
    _BuiltInScorer(
        "rank_correlation",
        "Rank correlation",
        "Whether a judge puts items in the order of each person.",
        "RankCorrelationScorer",
    ),
)


class ScorerUnknown(ValueError):
    """A name that no scorer has, or options that the scorer cannot have."""


def register(name: str, factory: Callable[..., scorers.Scorer]) -> None:
    """Give a scorer a name that a configuration file can use, unless another one has it."""
    existing = SCORERS.get(name)
    is_same = existing is None or getattr(existing, "factory", None) is factory
    require(is_same, f"another scorer is called {name}")
    SCORERS[name] = existing or _Registered(name, factory)


def make_scorer(name: str, **options: Any) -> scorers.Scorer:
    """Return a scorer by its name with its options; the Alt-Test's are those of `AltTestSettings`.

    `resamples` and `seed` are those of its intervals.

    Examples
    --------
    >>> make_scorer("classification", metric="f1", average="macro", seed=7).scorer_name
    'classification_f1'
    """
    from judge_eval.stats.bootstrap import Resampling  # loads numpy

    unknown = f"no scorer is called {name!r}; there are {', '.join(sorted(SCORERS))}"
    require(name in SCORERS, unknown, ScorerUnknown)
    drawing = {key: options.pop(key) for key in ("resamples", "seed") if key in options}
    try:
        if drawing:
            options["resampling"] = Resampling(**drawing)
        return SCORERS[name](**options)
    except (TypeError, ValueError) as error:
        raise ScorerUnknown(f"{name}: {error}") from error

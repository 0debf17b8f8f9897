"""What metrics are called for people; files and columns keep their unique names."""

from __future__ import annotations

from typing import Final

from humanjudge.lib.text import listed
from judge_eval.stats import (
    AltTestScorer,
    ClassificationScorer,
    KrippendorffAlphaScorer,
    MetricConfig,
    Scorer,
    epsilon_key,
)

_WORDS: Final = {
    "alt_test": "Alt-Test",
    "cohens_kappa": "Cohen's kappa",
    "cohens_kappa_linear": "Cohen's kappa (linear weights)",
    "cohens_kappa_quadratic": "Cohen's kappa (quadratic weights)",
    "f1": "F1",
    "kendall": "Kendall's tau",
    "krippendorff_alpha": "Krippendorff's alpha",
    "krippendorff_alpha_interval": "Krippendorff's alpha (interval)",
    "krippendorff_alpha_ordinal": "Krippendorff's alpha (ordinal)",
    "spearman": "Spearman's rho",
    "with_judge": "with the judge",
}
_MOST_NAMED: Final = 3


def metric_title(config: MetricConfig) -> str:
    """Return what a metric is called over a table.

    Examples
    --------
    >>> metric_title(MetricConfig(ClassificationScorer(), ["winner"]))
    'Accuracy, winner'
    >>> f1 = ClassificationScorer("f1", pos_label="A")
    >>> metric_title(MetricConfig(f1, ["safe", "short"], "multitask", "majority_vote"))
    'F1 of A, mean of safe and short, against the consensus'
    """
    return config.display_name or _of_tasks(config, _metric(config.scorer))


def figure_title(config: MetricConfig, figure: str) -> str:
    """Return what one of a metric's several figures is called.

    Examples
    --------
    >>> alt_test = MetricConfig(AltTestScorer(), ["winner"])
    >>> figure_title(alt_test, "winning_rate")
    'Alt-Test at 0.20, winner'
    >>> figure_title(alt_test, "advantage_probability")
    'Alt-Test, advantage probability, winner'
    """
    scorer = config.scorer
    if isinstance(scorer, AltTestScorer) and figure == "winning_rate":
        words = f" at {epsilon_key(scorer.settings.epsilon)}"
    else:
        words = f", {in_words(figure)}"
    if config.display_name is not None:
        return f"{config.display_name}{words}"
    return _of_tasks(config, f"{_metric(scorer)}{words}")


def in_words(name: str) -> str:
    """Return the name of a scorer or figure as it stands amid a sentence.

    Examples
    --------
    >>> in_words("cohens_kappa"), in_words("text_similarity")
    ("Cohen's kappa", 'text similarity')
    """
    return _WORDS.get(name, name.replace("_", " "))


def is_of_people(scorer: Scorer, figure: str = "krippendorff_alpha") -> bool:
    """Say whether a figure is one of people alone, the same beside every judge.

    Examples
    --------
    >>> alpha = KrippendorffAlphaScorer()
    >>> [is_of_people(alpha, figure) for figure in alpha.figure_names]
    [True, False]
    """
    return isinstance(scorer, KrippendorffAlphaScorer) and figure == "krippendorff_alpha"


def _metric(scorer: Scorer) -> str:
    if not isinstance(scorer, ClassificationScorer):
        return _capital(in_words(scorer.scorer_name))
    settings = scorer.settings
    name = _capital(in_words(settings.metric))
    if settings.metric == "accuracy":
        return name
    of = f" of {settings.pos_label}" if settings.average == "binary" else f" ({settings.average})"
    return f"{name}{of}"


def _of_tasks(config: MetricConfig, name: str) -> str:
    parts = [name, _tasks(config)]
    if config.annotator_aggregation == "majority_vote" and config.scorer.supports_majority:
        parts.append("against the consensus")
    return ", ".join(parts)


def _tasks(config: MetricConfig) -> str:
    tasks, count = config.task_names, len(config.task_names)
    named = listed(tasks) if count <= _MOST_NAMED else f"{count} tasks"
    ways = {"multitask": f"mean of {named}", "multilabel": f"{named} as one label"}
    return ways.get(config.task_strategy, named)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]

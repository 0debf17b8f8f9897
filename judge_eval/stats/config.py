"""Which figure is wanted of which tasks, and what it is called."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from judge_eval.stats.figures import AnnotatorAggregation, TaskStrategy
from judge_eval.stats.scorer import Scorer

# A name becomes a folder: no separators, nothing hidden, nothing that a file system may refuse.
_NAME: Final = re.compile(r"[^\W_][\w .+-]{0,118}[\w+-]|[^\W_]")


class MetricInvalid(ValueError):
    """A metric, or several of them together, that cannot be; the message says why."""


@dataclass(frozen=True)
class MetricConfig:
    """One scorer on one task, or on several taken together.

    Attributes
    ----------
    scorer : Scorer
    task_names : sequence of str
    task_strategy : {'single', 'multitask', 'multilabel'}
        Exactly one task; the mean over two or more; or two or more as one label per item.
    annotator_aggregation : {'individual_average', 'majority_vote'}
        Compare with each person and average, or with their consensus.
    display_name : str, optional
        What the metric is called instead of `unique_name`'s own.

    Raises
    ------
    MetricInvalid

    Examples
    --------
    >>> from judge_eval.stats import ClassificationScorer
    >>> MetricConfig(ClassificationScorer(), ["rejection"]).unique_name
    'classification_accuracy_1tasks_22e76eaf_single'
    >>> MetricConfig(ClassificationScorer(), ["rejection"], "multitask")
    Traceback (most recent call last):
    ...
    judge_eval.stats.config.MetricInvalid: task_strategy multitask takes two or more tasks, not 1
    """

    scorer: Scorer
    task_names: Sequence[str]
    task_strategy: TaskStrategy = "single"
    annotator_aggregation: AnnotatorAggregation = "individual_average"
    display_name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_names", tuple(self.task_names))
        _one_of("task_strategy", self.task_strategy, get_args(TaskStrategy))
        _one_of("annotator_aggregation", self.annotator_aggregation, get_args(AnnotatorAggregation))
        tasks = len(self.task_names)
        if self.task_strategy == "single" and tasks != 1:
            raise MetricInvalid(f"task_strategy single takes exactly one task, not {tasks}")
        if self.task_strategy != "single" and tasks < 2:
            raise MetricInvalid(
                f"task_strategy {self.task_strategy} takes two or more tasks, not {tasks}"
            )
        if len(set(self.task_names)) < tasks:
            raise MetricInvalid(f"a task is named twice: {', '.join(self.task_names)}")
        if not _NAME.fullmatch(self.unique_name):
            raise MetricInvalid(
                f"{self.unique_name!r} cannot be a name: letters, digits, spaces and . _ + - only, "
                "a letter or digit first, at most 120 characters"
            )

    @property
    def unique_name(self) -> str:
        """The display name, or one made of scorer, tasks and strategy.

        The tasks stand in it as the first 8 hexadecimal digits of the MD5 of their sorted names.
        """
        if self.display_name is not None:
            return self.display_name
        joined = "_".join(sorted(self.task_names)).encode()
        tasks = hashlib.md5(joined, usedforsecurity=False).hexdigest()[:8]
        count = len(self.task_names)
        return f"{self.scorer.scorer_name}_{count}tasks_{tasks}_{self.task_strategy}"


def check_names(configs: Sequence[MetricConfig]) -> None:
    """Refuse metrics that would overwrite each other.

    Raises
    ------
    MetricInvalid
        When two have the same name, or names that differ in case only: those are one folder on
        some systems.
    """
    names = Counter(config.unique_name.casefold() for config in configs)
    twice = sorted(
        {config.unique_name for config in configs if names[config.unique_name.casefold()] > 1}
    )
    if twice:
        raise MetricInvalid(
            f"two metrics are called {' and '.join(twice)}: give one of them a display_name"
        )


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise MetricInvalid(f"{name} must be one of {', '.join(known)}, not {value}")

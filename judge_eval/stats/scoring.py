"""Metrics as they are asked for, and scorers at work on judges and tasks."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar, get_args

from judge_eval.stats.estimate import LeftOut, left_out
from judge_eval.stats.labels import (
    HumanLabel,
    HumanLabels,
    Item,
    JudgeLabel,
    JudgeLabels,
    Vector,
    clean,
    human_labels,
    judge_labels,
)
from judge_eval.stats.scorer import (
    AnnotatorAggregation,
    Scorer,
    ScoreResult,
    TaskStrategy,
    mean_of_tasks,
)

Labels = TypeVar("Labels", HumanLabels, JudgeLabels)
# A name becomes a folder: no separators, nothing hidden, nothing that a file system may refuse.
_NAME: Final = re.compile(r"[^\W_][\w .+-]{0,118}[\w+-]|[^\W_]")


class MetricInvalid(ValueError):
    """A metric, or several of them together, that cannot be; the message says why."""


@dataclass(frozen=True)
class MetricConfig:
    """One scorer on one task, or on several taken together.

    Attributes
    ----------
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
    judge_eval.stats.scoring.MetricInvalid: task_strategy multitask takes two or more tasks, not 1
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
    names = [config.unique_name for config in configs]
    counts = Counter(map(str.casefold, names))
    twice = sorted({name for name in names if counts[name.casefold()] > 1})
    if twice:
        raise MetricInvalid(
            f"two metrics are called {' and '.join(twice)}: give one of them a display_name"
        )


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise MetricInvalid(f"{name} must be one of {', '.join(known)}, not {value}")


@dataclass(frozen=True)
class _Fitting(Generic[Labels]):
    """The labels that a scorer can take, what was left out, and why there can be no figure."""

    labels: Labels
    gaps: tuple[LeftOut, ...]
    reason: str | None


def _fitting_people(scorer: Scorer, people: HumanLabels) -> _Fitting[HumanLabels]:
    """Drop what the scorer cannot take: one odd label must not cost all others their figure."""
    labels, unfit = people.only(scorer.can_score_task)
    gaps = _unfit(scorer, [row.human for row in unfit], unfit)
    reason = None
    if not labels:
        reason = gaps[0].why if gaps else "no person labelled this task"
    elif len(labels.humans) < scorer.min_humans:
        reason = (
            f"{scorer.scorer_name} takes labels of at least {scorer.min_humans} people, and of "
            f"this task there are those of {len(labels.humans)}"
        )
    return _Fitting(labels, gaps, reason)


def _fitting_judge(scorer: Scorer, judge: JudgeLabels) -> _Fitting[JudgeLabels]:
    labels, unfit = judge.only(scorer.can_score_task)
    gaps = _unfit(scorer, [row.item for row in unfit], unfit)
    nothing = gaps[0].why if gaps else "the judge gave no label on this task"
    return _Fitting(labels, gaps, None if labels else nothing)


def _unfit(
    scorer: Scorer, names: Sequence[object], rows: Sequence[HumanLabel | JudgeLabel]
) -> tuple[LeftOut, ...]:
    if not rows:
        return ()
    why = f"{scorer.scorer_name} cannot take labels such as {repr(rows[0].label)[:60]}"
    return left_out("labels", names, why)


Annotations: TypeAlias = Mapping[str, Mapping[str, Mapping[Item, object]]]
Results: TypeAlias = dict[str, list[ScoreResult]]

_NO_MAJORITY = (
    "{} measures how far people agree, which their consensus hides: individual_average was used "
    "instead of majority_vote"
)


def score(
    configs: Sequence[MetricConfig],
    judges: Annotations,
    humans: Annotations,
    scores_dir: Path | None = None,
) -> Results:
    """Compute metrics of judges.

    Parameters
    ----------
    judges, humans : mapping of name to mapping of task to mapping of item to label
        What everybody said.
    scores_dir : Path, optional
        Where `Scorer.aggregate_results` of every scorer may write what belongs to all judges. Not
        called without it.

    Returns
    -------
    dict of unique name to list of ScoreResult
        One result for each judge, in their order.

    Raises
    ------
    MetricInvalid
        When two metrics have the same name.

    Notes
    -----
    Where an event loop runs already, await `score_async`.

    Examples
    --------
    >>> from judge_eval.stats import ClassificationScorer
    >>> found = score(
    ...     [MetricConfig(ClassificationScorer(), ["winner"], display_name="accuracy")],
    ...     judges={"gpt": {"winner": {"q1": "A", "q2": "B"}}},
    ...     humans={"ann": {"winner": {"q1": "A", "q2": "tie"}}},
    ... )
    >>> found["accuracy"][0].scores
    {'accuracy': 0.5}
    """
    return asyncio.run(score_async(configs, judges, humans, scores_dir))


async def score_async(
    configs: Sequence[MetricConfig],
    judges: Annotations,
    humans: Annotations,
    scores_dir: Path | None = None,
) -> Results:
    """Compute metrics of judges, waiting for all scorers that have to wait at the same time."""
    check_names(configs)
    results = await asyncio.gather(*(_of_all_judges(config, judges, humans) for config in configs))
    found = {config.unique_name: part for config, part in zip(configs, results, strict=True)}
    if scores_dir is not None:
        for config in configs:
            name = config.unique_name
            config.scorer.aggregate_results(found[name], scores_dir, name)
    return found


def among_people(config: MetricConfig, humans: Annotations) -> ScoreResult | None:
    """Compute the same metric between people, where the scorer has such a figure."""
    known = []
    for task, people in _people(config, humans).items():
        part = config.scorer.compute_among_people(people.labels, task, config.task_strategy)
        if part is not None:
            known.append(part.leaving_out(people.gaps))
    return _joined(known) if known else None


async def _of_all_judges(
    config: MetricConfig, judges: Annotations, humans: Annotations
) -> list[ScoreResult]:
    people = _people(config, humans)

    async def one(judge_id: str, said: Mapping[str, Mapping[Item, object]]) -> ScoreResult:
        tasks = _by_task(config, said).items()
        waiting = (_of_task(config, task, judge_id, data, people[task]) for task, data in tasks)
        return _joined(await asyncio.gather(*waiting))

    return list(await asyncio.gather(*(one(*judge) for judge in judges.items())))


async def _of_task(
    config: MetricConfig,
    task: str,
    judge_id: str,
    data: Mapping[Item, object],
    people: _Fitting[HumanLabels],
) -> ScoreResult:
    scorer = config.scorer
    judge = _fitting_judge(scorer, judge_labels(data, free_text=scorer.free_text))
    reason = judge.reason or people.reason
    found = (
        scorer.no_result(judge_id, task, config.task_strategy, reason)
        if reason
        else await _scored(config, task, judge_id, judge.labels, people.labels)
    )
    return found.leaving_out((*judge.gaps, *people.gaps))


async def _scored(
    config: MetricConfig, task: str, judge_id: str, judge: JudgeLabels, people: HumanLabels
) -> ScoreResult:
    scorer, mode = config.scorer, config.task_strategy
    by_majority = config.annotator_aggregation == "majority_vote"
    try:
        if by_majority and scorer.supports_majority:
            found = scorer.compute_majority(judge, people, task, judge_id, mode)
            return replace(found, annotator_aggregation="majority_vote")
        found = await scorer.compute_score_async(judge, people, task, judge_id, mode)
    except Exception as error:
        error.add_note(f"while {scorer.scorer_name} scored {judge_id} on {task}")
        raise
    if not by_majority:
        return found
    return replace(found, warnings=(*found.warnings, _NO_MAJORITY.format(scorer.scorer_name)))


def _people(config: MetricConfig, humans: Annotations) -> dict[str, _Fitting[HumanLabels]]:
    """Return people's labels of each task, or of all of them together, as the scorer takes them."""
    scorer = config.scorer
    said = {human: _by_task(config, given) for human, given in humans.items()}
    fitting = {}
    for task in _by_task(config, {}):
        labels = {human: given[task] for human, given in said.items()}
        people = human_labels(labels, free_text=scorer.free_text)
        fitting[task] = _fitting_people(scorer, people)
    return fitting


def _by_task(
    config: MetricConfig, said: Mapping[str, Mapping[Item, object]]
) -> dict[str, Mapping[Item, object]]:
    """Return one annotator's labels of each task, or as vectors of all of them.

    An item that was not labelled for every task has no vector, which counts as a missing label.
    """
    given = [said.get(task, {}) for task in config.task_names]
    if config.task_strategy != "multilabel":
        return dict(zip(config.task_names, given, strict=True))

    def vector(item: Item) -> Vector | None:
        free_text = config.scorer.free_text
        parts = [clean(labels.get(item), free_text=free_text) for labels in given]
        return None if None in parts else Vector(parts)

    items = dict.fromkeys(item for labels in given for item in labels)
    return {", ".join(config.task_names): {item: vector(item) for item in items}}


def _joined(parts: Sequence[ScoreResult]) -> ScoreResult:
    """Return the mean over tasks, or the only part."""
    first = parts[0]
    if len(parts) == 1:
        return first
    figures = {
        name: mean_of_tasks({part.task_name: part.figures[name] for part in parts})
        for name in first.figures
    }
    series = {
        name: {
            key: mean_of_tasks({part.task_name: part.series[name][key] for part in parts})
            for key in curve
        }
        for name, curve in first.series.items()
    }
    return replace(
        first,
        task_name=", ".join(part.task_name for part in parts),
        figures=figures,
        series=series,
        by_human={},
        by_task={part.task_name: part.figures for part in parts},
        metadata={"tasks": {part.task_name: dict(part.metadata) for part in parts}},
        warnings=tuple(f"{part.task_name}: {text}" for part in parts for text in part.warnings),
    )

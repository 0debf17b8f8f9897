"""Runs scorers over judges and tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from judge_eval.stats.config import MetricConfig, check_names
from judge_eval.stats.figures import ScoreResult, mean_of_tasks
from judge_eval.stats.fitting import FittingJudge, FittingPeople, with_gaps
from judge_eval.stats.labels import (
    HumanLabels,
    Item,
    JudgeLabels,
    Label,
    Vector,
    clean,
    human_labels,
    judge_labels,
)

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
    configs : sequence of MetricConfig
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
    waiting = [_of_all_judges(config, judges, humans) for config in configs]
    found = dict(
        zip((config.unique_name for config in configs), await asyncio.gather(*waiting), strict=True)
    )
    if scores_dir is not None:
        for config in configs:
            results = found[config.unique_name]
            config.scorer.aggregate_results(results, scores_dir, config.unique_name)
    return found


def among_people(config: MetricConfig, humans: Annotations) -> ScoreResult | None:
    """Compute the same metric between people: what a judge's figure is measured against.

    Returns
    -------
    ScoreResult or None
        None where the scorer has no such figure.
    """
    known = []
    for task, people in _people(config, humans).items():
        part = config.scorer.compute_among_people(people.labels, task, config.task_strategy)
        if part is not None:
            known.append(with_gaps(part, people.gaps))
    return _joined(config, known) if known else None


async def _of_all_judges(
    config: MetricConfig, judges: Annotations, humans: Annotations
) -> list[ScoreResult]:
    people = _people(config, humans)
    waiting = [_of_judge(config, judge, said, people) for judge, said in judges.items()]
    return list(await asyncio.gather(*waiting))


async def _of_judge(
    config: MetricConfig,
    judge_id: str,
    said: Mapping[str, Mapping[Item, object]],
    people: Mapping[str, FittingPeople],
) -> ScoreResult:
    waiting = [
        _of_task(config, task, judge_id, _judge(config, labels), people[task])
        for task, labels in _by_task(config, said).items()
    ]
    return _joined(config, await asyncio.gather(*waiting))


async def _of_task(
    config: MetricConfig, task: str, judge_id: str, judge: JudgeLabels, people: FittingPeople
) -> ScoreResult:
    scorer = config.scorer
    said = FittingJudge.of(scorer, judge)
    reason = said.why_not(scorer) or people.why_not(scorer)
    found = (
        scorer.no_result(judge_id, task, config.task_strategy, reason)
        if reason
        else await _scored(config, task, judge_id, said.labels, people.labels)
    )
    return with_gaps(found, (*said.gaps, *people.gaps))


async def _scored(
    config: MetricConfig, task: str, judge_id: str, judge: JudgeLabels, people: HumanLabels
) -> ScoreResult:
    scorer, mode = config.scorer, config.task_strategy
    try:
        if config.annotator_aggregation == "individual_average":
            return await scorer.compute_score_async(judge, people, task, judge_id, mode)
        if scorer.supports_majority:
            found = scorer.compute_majority(judge, people, task, judge_id, mode)
            return replace(found, annotator_aggregation="majority_vote")
        found = await scorer.compute_score_async(judge, people, task, judge_id, mode)
    except Exception as error:
        error.add_note(f"while {scorer.scorer_name} scored {judge_id} on {task}")
        raise
    return replace(found, warnings=(*found.warnings, _NO_MAJORITY.format(scorer.scorer_name)))


def _people(config: MetricConfig, humans: Annotations) -> dict[str, FittingPeople]:
    """Return people's labels of each task, or of all of them together, as the scorer takes them."""
    said = {human: _by_task(config, given) for human, given in humans.items()}
    return {
        task: FittingPeople.of(
            config.scorer,
            human_labels(
                {human: given[task] for human, given in said.items()},
                free_text=config.scorer.free_text,
            ),
        )
        for task in _by_task(config, {})
    }


def _judge(config: MetricConfig, labels: Mapping[Item, object]) -> JudgeLabels:
    return judge_labels(labels, free_text=config.scorer.free_text)


def _by_task(
    config: MetricConfig, said: Mapping[str, Mapping[Item, object]]
) -> dict[str, Mapping[Item, object]]:
    """Return one annotator's labels of each task, or as vectors of all of them.

    An item that was not labelled for every task has no vector, which counts as a missing label.
    """
    given = [said.get(task, {}) for task in config.task_names]
    if config.task_strategy != "multilabel":
        return dict(zip(config.task_names, given, strict=True))
    items = dict.fromkeys(item for labels in given for item in labels)
    return {
        ", ".join(config.task_names): {
            item: _vector(
                [clean(labels.get(item), free_text=config.scorer.free_text) for labels in given]
            )
            for item in items
        }
    }


def _vector(labels: Sequence[Label | None]) -> Vector | None:
    return None if None in labels else Vector(labels)


def _joined(config: MetricConfig, parts: Sequence[ScoreResult]) -> ScoreResult:
    """Return the mean over tasks, or the only part."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return replace(
        first,
        task_name=", ".join(part.task_name for part in parts),
        figures={
            name: mean_of_tasks({part.task_name: part.figures[name] for part in parts})
            for name in first.figures
        },
        series={
            name: {
                key: mean_of_tasks({part.task_name: part.series[name][key] for part in parts})
                for key in curve
            }
            for name, curve in first.series.items()
        },
        by_human={},
        by_task={part.task_name: part.figures for part in parts},
        metadata={"tasks": {part.task_name: dict(part.metadata) for part in parts}},
        warnings=tuple(f"{part.task_name}: {text}" for part in parts for text in part.warnings),
    )

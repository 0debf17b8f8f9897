"""Metrics as they are asked for, and scorers at work on judges and tasks."""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import not_
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias

from judge_eval.stats.estimate import Estimate, LeftOut, check_option, left_out, no_figure, require
from judge_eval.stats.labels import (
    HumanLabels,
    Item,
    JudgeLabels,
    Label,
    Labels,
    LabelsUnfit,
    Vector,
    clean,
    human_labels,
    judge_labels,
)
from judge_eval.stats.scorers import (
    PEOPLE,
    AnnotatorAggregation,
    Figures,
    Scorer,
    ScoreResult,
    TaskStrategy,
)

Tasks: TypeAlias = Mapping[str, Labels]
Annotations: TypeAlias = Mapping[str, Tasks]
Results: TypeAlias = dict[str, list[ScoreResult]]
Gaps: TypeAlias = tuple[LeftOut, ...]

# A name becomes a folder: no separators, nothing hidden, nothing that a file system may refuse.
_NAME: Final = re.compile(r"[^\W_][\w .+-]{0,118}[\w+-]|[^\W_]")
_NO_MAJORITY: Final = (
    "{} measures how far people agree, which their consensus hides: individual_average was used "
    "instead of majority_vote"
)


class MetricInvalid(ValueError):
    """A metric, or several of them together, that cannot be; the message says why."""


@dataclass(frozen=True)
class MetricConfig:
    """One scorer on one task (``single``), on the mean over several, or on them as one label.

    A judge is compared with each person and averaged, or with their consensus (``majority_vote``).

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
        tasks, strategy = len(self.task_names), self.task_strategy
        check_option("task_strategy", strategy, TaskStrategy, MetricInvalid)
        aggregation = self.annotator_aggregation
        check_option("annotator_aggregation", aggregation, AnnotatorAggregation, MetricInvalid)
        takes_one, names = strategy == "single", ", ".join(self.task_names)
        takes = "exactly one task" if takes_one else "two or more tasks"
        require(
            tasks and takes_one == (tasks == 1),
            f"task_strategy {strategy} takes {takes}, not {tasks}",
            MetricInvalid,
        )
        is_twice = len(set(self.task_names)) < tasks
        require(not is_twice, f"a task is named twice: {names}", MetricInvalid)
        require(
            _NAME.fullmatch(self.unique_name),
            f"{self.unique_name!r} cannot be a name: letters, digits, spaces and . _ + - only, a "
            "letter or digit first, at most 120 characters",
            MetricInvalid,
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
        number = f"{len(self.task_names)}tasks"
        return f"{self.scorer.scorer_name}_{number}_{tasks}_{self.task_strategy}"


def check_names(configs: Sequence[MetricConfig]) -> None:
    """Refuse metrics that would overwrite each other, where folders know no case."""
    names = [config.unique_name for config in configs]
    counts = Counter(map(str.casefold, names))
    twice = " and ".join(sorted({name for name in names if counts[name.casefold()] > 1}))
    called = f"two metrics are called {twice}: give one of them a display_name"
    require(not twice, called, MetricInvalid)


def score(
    configs: Sequence[MetricConfig],
    judges: Annotations,
    humans: Annotations,
    scores_dir: Path | None = None,
) -> Results:
    """Compute metrics of judges; where an event loop runs already, await `score_async`.

    Judges and people are by name, then by task, then by item; there is one result for each judge,
    in their order. `Scorer.aggregate_results` may write into `scores_dir`.

    Examples
    --------
    >>> from judge_eval.stats import ClassificationScorer
    >>> metric = MetricConfig(ClassificationScorer(), ["winner"], display_name="it")
    >>> judges = {"gpt": {"winner": {"q1": "A", "q2": "B"}}}
    >>> scored = score([metric], judges, {"ann": {"winner": {"q1": "A", "q2": "tie"}}})
    >>> scored["it"][0].scores
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

    async def score_judge(
        config: MetricConfig, people: Mapping[str, _People], judge: str, tasks: Tasks
    ) -> ScoreResult:
        answers = _by_task(config, tasks)
        waiting = (_of_task(config, task, judge, answers[task], people[task]) for task in people)
        return _mean_of_results(await asyncio.gather(*waiting))

    async def score_metric(config: MetricConfig) -> list[ScoreResult]:
        people = _people(config, humans)
        return await asyncio.gather(
            *(score_judge(config, people, *judge_tasks) for judge_tasks in judges.items())
        )

    results = await asyncio.gather(*map(score_metric, configs))
    scored = {config.unique_name: part for config, part in zip(configs, results, strict=True)}
    if scores_dir is not None:
        for config in configs:
            name = config.unique_name
            config.scorer.aggregate_results(scored[name], scores_dir, name)
    return scored


def among_people(config: MetricConfig, humans: Annotations) -> ScoreResult | None:
    """Compute the same metric between people, where the scorer has such a figure."""
    scorer, parts = config.scorer, []
    for task, people in _people(config, humans).items():
        about = PEOPLE, task, config.task_strategy
        try:
            scored = scorer.compute_among_people(people.labels)
        except LabelsUnfit as unfit:
            scored = scorer.no_result(*about, str(unfit))
        if scored is not None:
            parts.append(_filled_in(scored, *about, people.gaps))
    return _mean_of_results(parts) if parts else None


class _People(NamedTuple):
    """What people said that a scorer can take, what it cannot, and why there is no figure."""

    labels: HumanLabels
    gaps: Gaps
    reason: str | None


def _people(config: MetricConfig, humans: Annotations) -> dict[str, _People]:
    """Return people's labels of each task, or of all of them together, as the scorer takes them."""
    scorer = config.scorer
    answers = {human: _by_task(config, by_task) for human, by_task in humans.items()}
    scored = {}
    for task in _by_task(config, {}):
        by_human = {human: by_task[task] for human, by_task in answers.items()}
        task_labels = human_labels(by_human, free_text=scorer.free_text)
        fits = [scorer.can_score_task(row.label) for row in task_labels]
        labels, reason = HumanLabels(compress(task_labels, fits), free_text=True), None
        labels.missing = task_labels.missing
        unfit = compress(task_labels, map(not_, fits))
        gaps = _unfit(scorer, [(row.human, row.label) for row in unfit])
        if not labels:
            reason = gaps[0].why if gaps else "no person labelled this task"
        elif len(labels.humans) < scorer.min_humans:
            reason = (
                f"{scorer.scorer_name} takes labels of at least {scorer.min_humans} people, and of "
                f"this task there are those of {len(labels.humans)}"
            )
        scored[task] = _People(labels, gaps, reason)
    return scored


def _unfit(scorer: Scorer, rows: Sequence[tuple[object, Label]]) -> Gaps:
    """Return what a scorer cannot take: one odd label must not cost all others their figure."""
    example = repr(rows[0][1])[:60] if rows else ""
    reason = f"{scorer.scorer_name} cannot take labels such as {example}"
    return left_out("labels", [name for name, _ in rows], reason)


def _by_task(config: MetricConfig, answers: Tasks) -> Tasks:
    """Return one annotator's labels of each task, or as vectors of all of them.

    An item that was not labelled for every task has no vector, which counts as a missing label.
    """
    labels_by_task = [answers.get(task, {}) for task in config.task_names]
    if config.task_strategy != "multilabel":
        return dict(zip(config.task_names, labels_by_task, strict=True))
    vectors: dict[Item, Vector | None] = {}
    for item in dict.fromkeys(item for labels in labels_by_task for item in labels):
        parts = [clean(x.get(item), free_text=config.scorer.free_text) for x in labels_by_task]
        vectors[item] = None if None in parts else Vector(parts)
    return {", ".join(config.task_names): vectors}


async def _of_task(
    config: MetricConfig, task: str, judge_id: str, data: Labels, people: _People
) -> ScoreResult:
    scorer, about = config.scorer, (judge_id, task, config.task_strategy)
    answers = judge_labels(data, free_text=scorer.free_text)
    judge = JudgeLabels((x for x in answers.items() if scorer.can_score_task(x[1])), free_text=True)
    gaps = _unfit(scorer, [(item, label) for item, label in answers.items() if item not in judge])
    reason = people.reason
    if not judge:
        reason = gaps[0].why if gaps else "the judge gave no label on this task"
    gaps += people.gaps
    if reason is not None:
        return _filled_in(scorer.no_result(*about, reason), *about, gaps)
    wants_majority = config.annotator_aggregation == "majority_vote"
    by_majority = wants_majority and scorer.supports_majority
    try:
        if by_majority:
            scored = scorer.compute_majority(judge, people.labels)
        else:
            scored = await scorer.compute_score_async(
                judge, people.labels, task, judge_id, config.task_strategy
            )
    except LabelsUnfit as unfit:
        scored = scorer.no_result(*about, str(unfit))
    except Exception as error:
        error.add_note(f"while {scorer.scorer_name} scored {judge_id} on {task}")
        raise
    if by_majority:
        scored = replace(scored, annotator_aggregation="majority_vote")
    elif wants_majority:
        warning = _NO_MAJORITY.format(scorer.scorer_name)
        scored = replace(scored, warnings=(*scored.warnings, warning))
    return _filled_in(scored, *about, gaps)


def _filled_in(
    scored: ScoreResult, judge_id: str, task: str, strategy: TaskStrategy, gaps: Gaps
) -> ScoreResult:
    def added(figures: Figures) -> Figures:
        return {name: replace(f, left_out=(*f.left_out, *gaps)) for name, f in figures.items()}

    return replace(
        scored,
        judge_id=judge_id,
        task_name=task,
        task_strategy=strategy,
        figures=added(scored.figures),
        series={name: added(curve) for name, curve in scored.series.items()},
    )


def _mean_of_results(parts: Sequence[ScoreResult]) -> ScoreResult:
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        task_name=", ".join(part.task_name for part in parts),
        figures={
            name: mean_of_tasks({part.task_name: part.figures[name] for part in parts})
            for name in first.figures
            if all(name in part.figures for part in parts)
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


def mean_of_tasks(figures: Figures) -> Estimate:
    """Return the plain mean of the figures of several tasks, by name.

    Its interval goes from the mean of the lower ends to the mean of the upper ones, as if the
    errors of tasks went together. A task without a value is left out and reported.

    Examples
    --------
    >>> mean_of_tasks({"a": Estimate(0.5, n=10), "b": Estimate(1.0, n=6)}).value
    0.75
    """
    computed = [figure for figure in figures.values() if figure.value is not None]
    without = [(task, figure.why) for task, figure in figures.items() if figure.value is None]
    gaps = tuple(LeftOut("tasks", 1, reason or "", (task,)) for task, reason in without)
    gaps += tuple(gap for figure in computed for gap in figure.left_out)
    if not computed:
        return no_figure("no task has a figure: see why for each of them", left_out=gaps)
    n, mean = sum(x.n for x in computed), fmean(x.value for x in computed if x.value is not None)
    intervals = [figure.interval for figure in computed if figure.interval]
    if len(intervals) < len(computed):
        return Estimate(mean, n=n, left_out=gaps)
    low, high = map(fmean, zip(*intervals, strict=True))
    method = "mean of the tasks' intervals, which is wide enough"
    return Estimate(mean, low, high, n, method, left_out=gaps)

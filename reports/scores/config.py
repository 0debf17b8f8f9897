"""Which figures a report shall hold, read from a configuration and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from humanjudge.lib.validation import ConfigError, ConfigInvalid, Name, Part, alone, validated
from judge_eval.findings.slices import WHOLE, Slice, SliceInvalid
from judge_eval.stats import (
    SCORERS,
    Embedder,
    MetricConfig,
    MetricInvalid,
    Scorer,
    ScorerUnknown,
    check_names,
    make_scorer,
)
from judge_eval.stats.scorer import AnnotatorAggregation, TaskStrategy
from reports.scores.files import is_safe

MOST_METRICS: Final = 100
MOST_TASKS: Final = 100
MOST_RESAMPLES: Final = 100_000

Finder = Callable[[str], Callable[..., object]]
EmbedderMaker = Callable[[Mapping[str, object], str], Embedder]


@dataclass(frozen=True)
class Reach:
    """What a configuration may reach beyond the registered scorers.

    Attributes
    ----------
    find : function, optional
        From the dotted path of a scorer to the scorer, or ValueError. Without it code cannot be
        named.
    embed : function, optional
        From the options of an embedder, and where they stand, to the embedder, or ConfigInvalid.
    """

    find: Finder | None = None
    embed: EmbedderMaker | None = None


NOTHING: Final = Reach()


@dataclass(frozen=True)
class ScoreConfig:
    """What a report is made of.

    Attributes
    ----------
    metrics : tuple of MetricConfig
        Empty where the configuration leaves them to `default_metrics`.
    vega_config : mapping or None
        Restyles the charts.
    part : Slice
        Of the run; only labels of it are compared.
    """

    metrics: tuple[MetricConfig, ...]
    vega_config: Mapping[str, Any] | None = None
    part: Slice = WHOLE


class _Metric(Part):
    scorer: Name
    # Only the scorer understands them.
    options: dict[str, Any] | None = None
    task_names: Annotated[tuple[Name, ...], Field(strict=False, max_length=MOST_TASKS)] = ()
    task_strategy: TaskStrategy = "single"
    annotator_aggregation: AnnotatorAggregation = "individual_average"
    display_name: Name | None = None


_OneMetric = Annotated[_Metric, BeforeValidator(alone("scorer"))]
_AnyMetric: TypeAdapter[_Metric] = TypeAdapter(_OneMetric)


class _Config(Part):
    metrics: Annotated[list[_OneMetric], Field(min_length=1, max_length=MOST_METRICS)] = []
    modules: object = None
    part: object = ""
    vega_config: dict[str, Any] | None = None


@dataclass
class _Reading:
    tasks: Sequence[str] | None
    reach: Reach
    errors: list[ConfigError] = field(default_factory=list)

    def complain(self, path: str, message: str) -> None:
        self.errors.append(ConfigError(path, message))


def parse(data: object, tasks: Sequence[str] | None, reach: Reach = NOTHING) -> ScoreConfig:
    """Check a configuration and make its scorers.

    Parameters
    ----------
    data : object
        What was read from YAML or JSON: an object, or its list of ``metrics`` alone.
    tasks : sequence of str or None
        The tasks there are labels of; None where that is not known yet.
    reach : Reach

    Raises
    ------
    ConfigInvalid
        With every mistake and where it stands.

    Examples
    --------
    >>> asked = {"metrics": [{"scorer": "classification", "task_names": ["winner"]}]}
    >>> [metric.unique_name for metric in parse(asked, ["winner"]).metrics]
    ['classification_accuracy_1tasks_978f6f60_single']
    >>> parse([{"scorer": "kappa", "task_names": ["winner"]}], ["winner"])
    Traceback (most recent call last):
    ...
    humanjudge.lib.validation.ConfigInvalid: metrics[0].scorer: no scorer is called 'kappa'; \
did you mean 'cohen_kappa'?
    """
    reading = _Reading(tasks, reach)
    whole = {"metrics": data} if isinstance(data, list) else data
    if not isinstance(whole, dict):
        raise ConfigInvalid([ConfigError("", "must be an object with a list of metrics")])
    try:
        validated(_Config, whole)
    except ConfigInvalid as invalid:
        reading.errors += invalid.errors
    if "modules" in whole and reach.find is None:
        message = "code is named on the command line only; here the setting SCORER_MODULES names it"
        reading.complain("modules", message)
    part = _part(whole.get("part", ""), reading)
    metrics = tuple(_metrics(whole.get("metrics"), reading))
    if reading.errors:
        raise ConfigInvalid(reading.errors)
    try:
        check_names(metrics)
    except MetricInvalid as error:
        raise ConfigInvalid([ConfigError("metrics", str(error))]) from error
    return ScoreConfig(metrics, whole.get("vega_config"), part)


def default_metrics(humans: int) -> tuple[MetricConfig, ...]:
    """Return what a run is scored by where nobody said what is wanted.

    Examples
    --------
    >>> [metric.scorer.scorer_name for metric in default_metrics(2)]
    ['classification_accuracy', 'cohens_kappa', 'krippendorff_alpha']
    """
    names = ["classification", "cohen_kappa"]
    names += ["alt_test"] if humans >= 3 else []
    names += ["krippendorff_alpha"] if humans >= 2 else []
    return tuple(MetricConfig(make_scorer(name), ["winner"]) for name in names)


def _part(part: object, reading: _Reading) -> Slice:
    try:
        return Slice.parse(part if isinstance(part, str) else repr(part))
    except SliceInvalid as invalid:
        reading.complain("part", str(invalid).removeprefix("slice: "))
        return WHOLE


def _metrics(given: object, reading: _Reading) -> Iterator[MetricConfig]:
    """Make the metrics whose shape is right, so that all that is wrong is said at once."""
    for number, each in enumerate(given[:MOST_METRICS] if isinstance(given, list) else ()):
        try:
            metric = _AnyMetric.validate_python(each)
        except ValidationError:
            continue
        made = _metric(metric, f"metrics[{number}]", reading)
        if made is not None:
            yield made


def _metric(metric: _Metric, path: str, reading: _Reading) -> MetricConfig | None:
    before = len(reading.errors)
    _check_tasks(metric.task_names, path, reading)
    scorer = _scorer(metric.scorer, metric.options or {}, path, reading)
    if scorer is None or len(reading.errors) > before:
        return None
    try:
        return MetricConfig(
            scorer,
            metric.task_names or ["winner"],
            metric.task_strategy,
            metric.annotator_aggregation,
            metric.display_name,
        )
    except MetricInvalid as error:
        reading.complain(path, str(error))
        return None


def _check_tasks(tasks: Sequence[str], path: str, reading: _Reading) -> None:
    known = reading.tasks
    for number, task in enumerate(tasks):
        if task and known is not None and task not in known:
            there = ", ".join(known)
            message = f"this run has no labels of the task {task!r}; there are {there}"
            reading.complain(f"{path}.task_names[{number}]", message)


def _scorer(name: str, given: Mapping[str, Any], path: str, reading: _Reading) -> Scorer | None:
    resamples = given.get("resamples", 0)
    if isinstance(resamples, int) and resamples > MOST_RESAMPLES:
        reading.complain(f"{path}.options.resamples", f"must be at most {MOST_RESAMPLES:,}")
        return None
    try:
        factory = _factory(name, reading.reach.find)
    except ValueError as error:
        reading.complain(f"{path}.scorer", str(error))
        return None
    try:
        scorer = factory(**_with_embedder(given, f"{path}.options", reading.reach))
    except ConfigInvalid as invalid:
        reading.errors += invalid.errors
        return None
    except (ScorerUnknown, TypeError, ValueError) as error:
        reading.complain(f"{path}.options", str(error))
        return None
    if not isinstance(scorer, Scorer) or not is_safe(getattr(scorer, "scorer_name", None)):
        message = "makes no Scorer with a scorer_name of letters, digits and . _ + - alone"
        reading.complain(f"{path}.scorer", f"{name} {message}")
        return None
    return scorer


def _with_embedder(options: Mapping[str, Any], path: str, reach: Reach) -> Mapping[str, Any]:
    """Return the options with an embedder in the place of what it is made of."""
    if "embedder" not in options or reach.embed is None:
        return options
    asked = options["embedder"]
    if not isinstance(asked, dict):
        raise ConfigInvalid([ConfigError(f"{path}.embedder", "must be an object")])
    others = {key: value for key, value in options.items() if key != "embedder"}
    return others | {"embed": reach.embed(asked, f"{path}.embedder")}


def _factory(name: str, find: Finder | None) -> Callable[..., object]:
    if name in SCORERS:
        return lambda **options: make_scorer(name, **options)
    if find is not None and "." in name:
        return find(name)
    near = get_close_matches(name, SCORERS, n=1)
    meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(SCORERS))}"
    raise ValueError(f"no scorer is called {name!r}; {meant}")

"""Which figures a report shall hold, read from a configuration and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from judge_eval.config.fields import ConfigError, Fields
from judge_eval.config.run_config import ConfigInvalid
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
from judge_eval.stats.figures import AnnotatorAggregation, TaskStrategy
from reports.results.names import is_safe

MOST_METRICS: Final = 100
MOST_TASKS: Final = 100
MOST_RESAMPLES: Final = 100_000
_LONGEST: Final = 200
_STRATEGIES: Final[tuple[TaskStrategy, ...]] = ("single", "multitask", "multilabel")
_AGGREGATIONS: Final[tuple[AnnotatorAggregation, ...]] = ("individual_average", "majority_vote")
_KEYS: Final = ("metrics", "modules", "part", "vega_config")

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
    judge_eval.config.run_config.ConfigInvalid: metrics[0].scorer: no scorer is called 'kappa'; \
did you mean 'cohen_kappa'?
    """
    reading = _Reading(tasks, reach)
    whole = {"metrics": data} if isinstance(data, list) else data
    if not isinstance(whole, dict):
        raise ConfigInvalid([ConfigError("", "must be an object with a list of metrics")])
    _refuse_unknown(whole, reading)
    part = _part(whole.get("part", ""), reading)
    metrics = tuple(_metrics(whole, reading))
    vega = whole.get("vega_config")
    if vega is not None and not isinstance(vega, dict):
        reading.complain("vega_config", "must be an object, the config of a Vega chart")
    if reading.errors:
        raise ConfigInvalid(reading.errors)
    try:
        check_names(metrics)
    except MetricInvalid as error:
        raise ConfigInvalid([ConfigError("metrics", str(error))]) from error
    return ScoreConfig(metrics, vega, part)


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


def _refuse_unknown(whole: Mapping[object, object], reading: _Reading) -> None:
    fields = Fields({key: None for key in whole if key not in _KEYS}, "", reading.errors)
    fields.close()
    if "modules" in whole and reading.reach.find is None:
        message = "code is named on the command line only; here the setting SCORER_MODULES names it"
        reading.complain("modules", message)


def _part(part: object, reading: _Reading) -> Slice:
    try:
        return Slice.parse(part if isinstance(part, str) else repr(part))
    except SliceInvalid as invalid:
        reading.complain("part", str(invalid).removeprefix("slice: "))
        return WHOLE


def _metrics(whole: Mapping[object, object], reading: _Reading) -> list[MetricConfig]:
    if "metrics" not in whole:
        return []
    given = whole["metrics"]
    plain, options = given, list[object]()
    if isinstance(given, list):
        split = [_split(each) for each in given]
        plain, options = [metric for metric, _ in split], [asked for _, asked in split]
    fields = Fields({"metrics": plain}, "", reading.errors)
    items = fields.items("metrics", "scorer", least=1, most=MOST_METRICS)
    found = (
        _metric(item, options[number], f"metrics[{number}]", reading)
        for number, item in enumerate(items)
    )
    return [metric for metric in found if metric is not None]


def _split(metric: object) -> tuple[object, object]:
    """Part a metric from its options, which only its scorer understands."""
    if not isinstance(metric, dict):
        return metric, None
    plain = {key: value for key, value in metric.items() if key != "options"}
    return plain, metric.get("options")


def _metric(item: Fields, options: object, path: str, reading: _Reading) -> MetricConfig | None:
    before = len(reading.errors)
    name = item.text("scorer", most=_LONGEST)
    tasks = item.texts("task_names", most=MOST_TASKS, longest=_LONGEST)
    strategy = item.choice("task_strategy", _STRATEGIES, "single")
    aggregation = item.choice("annotator_aggregation", _AGGREGATIONS, "individual_average")
    display_name = item.text("display_name", "", most=_LONGEST) or None
    _check_tasks(tasks, path, reading)
    scorer = _scorer(name, options, path, reading) if name else None
    if scorer is None or len(reading.errors) > before:
        return None
    try:
        return MetricConfig(scorer, tasks or ["winner"], strategy, aggregation, display_name)
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


def _scorer(name: str, options: object, path: str, reading: _Reading) -> Scorer | None:
    given = {} if options is None else options
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        reading.complain(f"{path}.options", "must be an object")
        return None
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

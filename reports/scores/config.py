"""Which figures a report shall hold: read from a file or a request, checked, made into scorers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import yaml
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from humanjudge.lib import strict_json
from humanjudge.lib.validation import ConfigError, ConfigInvalid, Name, Part, alone, validated

# Of its names only what is used is imported: web servers check configurations and compute nothing.
from judge_eval import stats
from judge_eval.findings.slices import LONGEST, WHOLE, Slice, SliceInvalid
from reports.scores.files import is_safe

MOST_METRICS: Final = 100
MOST_TASKS: Final = 100
MOST_RESAMPLES: Final = 100_000
MOST_BYTES: Final = 1_000_000

# What only a scorer, an embedder or a chart understands.
Options: TypeAlias = dict[str, Any]
Finder: TypeAlias = Callable[[str], Callable[..., object]]


class Reach(NamedTuple):
    """What a configuration may reach beyond the registered scorers.

    `find` returns the scorer at a dotted path, or raises ValueError; without it no code can be
    named. `embed` makes an embedder of its options, which stand at a path, or raises ConfigInvalid.
    """

    find: Finder | None = None
    embed: Callable[[Options, str], stats.Embedder] | None = None


NOTHING: Final = Reach()


class ScoreConfig(NamedTuple):
    """What a report is made of; without metrics they are left to `default_metrics`."""

    metrics: tuple[stats.MetricConfig, ...]
    vega_config: Options | None = None
    part: Slice = WHOLE


class _Metric(Part):
    scorer: Name
    options: Options | None = None
    task_names: Annotated[tuple[Name, ...], Field(strict=False, max_length=MOST_TASKS)] = ()
    task_strategy: Literal["single", "multitask", "multilabel"] = "single"
    annotator_aggregation: Literal["individual_average", "majority_vote"] = "individual_average"
    display_name: Name | None = None


_OneMetric = Annotated[_Metric, BeforeValidator(alone("scorer"))]
_AnyMetric: TypeAdapter[_Metric] = TypeAdapter(_OneMetric)


class Config(Part):
    """A configuration as it is written, before its scorers are made."""

    metrics: Annotated[list[_OneMetric], Field(min_length=1, max_length=MOST_METRICS)] = []
    modules: object = None
    part: Annotated[object, Field(json_schema_extra={"type": "string", "maxLength": LONGEST})] = ""
    vega_config: Options | None = None


def parse(data: object, tasks: Sequence[str] | None, reach: Reach = NOTHING) -> ScoreConfig:
    """Check a configuration, an object or its list of metrics alone, and make its scorers.

    `tasks` are those there are labels of, None where that is not known yet. Raises ConfigInvalid
    with every mistake and where it stands.
    """
    whole = {"metrics": data} if isinstance(data, list) else data
    if not isinstance(whole, dict):
        raise _invalid("", "must be an object with a list of metrics")
    errors: list[ConfigError] = []
    try:
        validated(Config, whole)
    except ConfigInvalid as invalid:
        errors += invalid.errors
    if "modules" in whole and reach.find is None:
        message = "code is named on the command line only; here the setting SCORER_MODULES names it"
        errors.append(ConfigError("modules", message))
    part = whole.get("part", "")
    try:
        part = Slice.parse(part if isinstance(part, str) else repr(part))
    except SliceInvalid as invalid:
        errors.append(ConfigError("part", str(invalid)))
    metrics = tuple(_metrics(whole.get("metrics"), tasks, reach, errors))
    if errors:
        raise ConfigInvalid(errors)
    try:
        stats.check_names(metrics)
    except stats.MetricInvalid as error:
        raise _invalid("metrics", str(error)) from error
    return ScoreConfig(metrics, whole.get("vega_config"), part)


def _metrics(
    given: object, tasks: Sequence[str] | None, reach: Reach, errors: list[ConfigError]
) -> Iterator[stats.MetricConfig]:
    """Make the metrics whose shape is right, so that all that is wrong is said at once."""
    for number, each in enumerate(given[:MOST_METRICS] if isinstance(given, list) else ()):
        try:
            metric = _AnyMetric.validate_python(each)
            yield _made(metric, f"metrics[{number}]", tasks, reach)
        except ValidationError:
            continue
        except ConfigInvalid as invalid:
            errors += invalid.errors


def default_metrics(humans: int) -> tuple[stats.MetricConfig, ...]:
    """Return what a run is scored by where nobody said what is wanted."""
    names = ["classification", "cohen_kappa"]
    names += ["alt_test"] if humans >= 3 else []
    names += ["krippendorff_alpha"] if humans >= 2 else []
    return tuple(stats.MetricConfig(stats.make_scorer(name), ["winner"]) for name in names)


def _made(
    metric: _Metric, path: str, tasks: Sequence[str] | None, reach: Reach
) -> stats.MetricConfig:
    errors = [
        ConfigError(
            f"{path}.task_names[{number}]",
            f"this run has no labels of the task {task!r}; there are {', '.join(tasks)}",
        )
        for number, task in enumerate(metric.task_names)
        if tasks is not None and task not in tasks
    ]
    try:
        scorer = _scorer(metric.scorer, metric.options or {}, path, reach)
    except ConfigInvalid as invalid:
        raise ConfigInvalid([*errors, *invalid.errors]) from invalid
    if errors:
        raise ConfigInvalid(errors)
    try:
        return stats.MetricConfig(
            scorer,
            metric.task_names or ["winner"],
            metric.task_strategy,
            metric.annotator_aggregation,
            metric.display_name,
        )
    except stats.MetricInvalid as error:
        raise _invalid(path, str(error)) from error


def _scorer(name: str, options: Options, path: str, reach: Reach) -> stats.Scorer:
    resamples = options.get("resamples", 0)
    if isinstance(resamples, int) and resamples > MOST_RESAMPLES:
        raise _invalid(f"{path}.options.resamples", f"must be at most {MOST_RESAMPLES:,}")
    try:
        factory = _factory(name, reach.find)
    except ValueError as error:
        raise _invalid(f"{path}.scorer", str(error)) from error
    if "embedder" in options and reach.embed is not None:
        about, place = options["embedder"], f"{path}.options.embedder"
        if not isinstance(about, dict):
            raise _invalid(place, "must be an object")
        others = {key: value for key, value in options.items() if key != "embedder"}
        options = others | {"embed": reach.embed(about, place)}
    try:
        scorer = factory(**options)
    except (stats.ScorerUnknown, TypeError, ValueError) as error:
        raise _invalid(f"{path}.options", str(error)) from error
    if not isinstance(scorer, stats.Scorer) or not is_safe(getattr(scorer, "scorer_name", None)):
        message = "makes no Scorer with a scorer_name of letters, digits and . _ + - alone"
        raise _invalid(f"{path}.scorer", f"{name} {message}")
    return scorer


def _factory(name: str, find: Finder | None) -> Callable[..., object]:
    if name in stats.SCORERS:
        return lambda **options: stats.make_scorer(name, **options)
    if find is not None and "." in name:
        return find(name)
    near = get_close_matches(name, stats.SCORERS, n=1)
    meant = (
        f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(stats.SCORERS))}"
    )
    raise ValueError(f"no scorer is called {name!r}; {meant}")


# --- files, and the code that they name ---------------------------------------------------------


class _StrictLoader(yaml.SafeLoader):
    """Reads plain values only, and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for n, key in enumerate(keys) if key in keys[:n]), None)
        if twice is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the key {twice!r} stands twice", problem_mark=node.start_mark
            )
        return super().construct_mapping(node, deep)


def read_config(path: Path) -> object:
    """Read YAML or JSON; its charts' own configuration, if it names a file, is read too."""
    data = _read(path, "")
    if isinstance(data, dict) and isinstance(style := data.get("vega_config"), str):
        return data | {"vega_config": _read(path.parent / style, "vega_config")}
    return data


def _read(path: Path, where: str) -> object:
    try:
        text = path.read_bytes()[: MOST_BYTES + 1]
        if len(text) > MOST_BYTES:
            raise _invalid(where, f"{path} has more than {MOST_BYTES:,} bytes")
        if path.suffix.lower() == ".json":
            return strict_json.loads(text.decode("utf-8-sig"))
        return yaml.load(text, _StrictLoader)  # noqa: S506  it is a SafeLoader
    except OSError as error:
        raise _invalid(where, f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, strict_json.NotJson, yaml.YAMLError, RecursionError) as error:
        raise _invalid(where, f"{path} cannot be read: {error}") from error


def import_modules(data: object, folder: Path) -> None:
    """Import the modules that a configuration names: they register their scorers."""
    modules = data.get("modules", []) if isinstance(data, Mapping) else []
    if not isinstance(modules, list):
        raise _invalid("modules", "must be a list")
    for number, name in enumerate(modules):
        try:
            with _importable(folder):
                import_module(name)
        except Exception as error:
            raise _invalid(f"modules[{number}]", f"{name!r} cannot be imported: {error}") from error


def finder(folder: Path) -> Finder:
    """Return a function that finds a scorer by its dotted path, also in modules of a folder."""

    def find(path: str) -> Callable[..., object]:
        module, _, name = path.rpartition(".")
        try:
            with _importable(folder):
                scorer = getattr(import_module(module), name)
        except Exception as error:
            raise ValueError(f"{path!r} cannot be imported: {error}") from error
        if not callable(scorer):
            raise ValueError(f"{path!r} is no scorer")  # noqa: TRY004  as every other mistake
        return scorer  # type: ignore[no-any-return]

    return find


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    place = str(folder.resolve())
    sys.path.append(place)
    try:
        yield
    finally:
        sys.path.remove(place)


def _invalid(path: str, message: str) -> ConfigInvalid:
    return ConfigInvalid([ConfigError(path, message)])

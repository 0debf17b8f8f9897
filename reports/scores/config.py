"""Which figures a report shall hold: read from a file or a request, checked, made into scorers."""

from __future__ import annotations  # names of `stats` would load NumPy

import re
import sys
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from humanjudge.core import strict_json
from humanjudge.core.charts.style import MOST_LETTERS, GivenStyle, StyleRefused, settings_of
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import (
    ConfigError,
    ConfigInvalid,
    Name,
    Part,
    alone,
    meant,
    validated,
)

# Of its names only what is used is imported: web servers check configurations and compute nothing.
from judge_eval import stats
from judge_eval.board.filters import LONGEST, WHOLE_RUN, Slice
from judge_eval.judging.config.validate_run import absence_reason

MOST_METRICS: Final = 100
MOST_RESAMPLES: Final = 100_000
MOST_BYTES: Final = 1_000_000
_SAFE: Final = re.compile(r"[^\W_](?:[\w .+-]{0,118}[\w+-])?")
ALPHA: Final = "krippendorff_alpha"
ORDINAL: Final = {"level": "ordinal"}
_NO_LABELS: Final = "this run has no labels of the task {!r}; there are {}"

_SUCCESSOR: Final = "charts take a Matplotlib style sheet instead: give it as style"

# What only a scorer, an embedder or a chart understands.
Options: TypeAlias = JsonObject


class Reach(NamedTuple):
    """What a configuration may reach beyond the registered scorers.

    `folder` is beside which it may name code; without it, none. `embed` makes an embedder of its
    options, which stand at a path, or raises ConfigInvalid; where a configuration is only checked,
    something stands for it: a worker alone has the keys.
    """

    folder: Path | None = None
    embed: Callable[..., object] = lambda options, path: SimpleNamespace(model="")
    # Scorers that are turned off here.
    off: frozenset[str] = frozenset()


NOTHING: Final = Reach()


class ScoreConfig(NamedTuple):
    """What a report is made of; without metrics they are left to `default_metrics`."""

    metrics: tuple[stats.MetricConfig, ...]
    style: GivenStyle = ""
    part: Slice = WHOLE_RUN


class _Metric(Part):
    scorer: Name
    options: Options | None = None
    task_names: Annotated[tuple[Name, ...], Field(strict=False, max_length=100)] = ()
    task_strategy: Literal["single", "multitask", "multilabel"] = "single"
    annotator_aggregation: Literal["individual_average", "majority_vote"] = "individual_average"
    display_name: Name | None = None


_OneMetric = Annotated[_Metric, BeforeValidator(alone("scorer"))]
_AnyMetric: TypeAdapter[_Metric] = TypeAdapter(_OneMetric)


class Config(Part):
    metrics: Annotated[list[_OneMetric], Field(min_length=1, max_length=MOST_METRICS)] = []
    modules: list[Name] = []
    part: Annotated[
        str, AfterValidator(lambda text: str(Slice.parse(text))), Field(max_length=LONGEST)
    ] = ""
    style: Annotated[str, Field(max_length=MOST_LETTERS)] | Options = ""


def config_object(data: object) -> Options:
    """Return a configuration as the object that its metrics alone, or nothing, stand for."""
    if isinstance(data, list):
        return {"metrics": data}
    if not isinstance(data, dict | None):
        raise ConfigInvalid.at("", "must be an object with a list of metrics")
    return data or {}


def config_of_request(text: bytes) -> Options:
    """Read a configuration that came over the web, as JSON; no text is the default one."""
    with _refused("", UnicodeDecodeError, strict_json.NotJson):
        data = strict_json.loads(text.decode()) if text else None
    return config_object(data)


def parse(
    data: object,
    tasks: Sequence[str] | None,
    reach: Reach = NOTHING,
    ordered: Collection[str] = (),
) -> ScoreConfig:
    """Check a configuration and make its scorers.

    `tasks` are those there are labels of, None where a worker finds out later; those of `ordered`
    have labels in an order. Raises ConfigInvalid with every mistake and where it stands.
    """
    labelled = ", ".join(tasks or ())
    options, errors, metrics = config_object(data), list[ConfigError](), list[stats.MetricConfig]()
    if "vega_config" in options:
        errors.append(ConfigError("vega_config", _SUCCESSOR))
        options = {key: value for key, value in options.items() if key != "vega_config"}
    with _collect_errors(errors):
        validated(Config, options)
        with _refused("style", StyleRefused):
            settings_of(options.get("style", ""))
    with _collect_errors(errors):
        _import_modules(options.get("modules"), reach.folder)
    listed = options.get("metrics")
    for number, content in enumerate(listed[:MOST_METRICS] if isinstance(listed, list) else ()):
        # Where its shape is wrong, there is an error already.
        with _collect_errors(errors), suppress(ValidationError):
            metric, path = _AnyMetric.validate_python(content), f"metrics[{number}]"
            errors += [
                ConfigError(f"{path}.task_names[{place}]", _NO_LABELS.format(name, labelled))
                for place, name in enumerate(metric.task_names)
                if tasks is not None and name not in tasks
            ]
            if metric.scorer == ALPHA and set(metric.task_names or ["winner"]) <= set(ordered):
                metric = metric.model_copy(update={"options": ORDINAL | (metric.options or {})})
            metrics.append(_metric_config(metric, path, reach))
    if errors:
        raise ConfigInvalid(errors)
    with _refused("metrics", stats.MetricInvalid):
        stats.check_names(metrics)
    part = Slice.parse(options.get("part", ""))
    return ScoreConfig(tuple(metrics), options.get("style", ""), part)


def default_metrics(
    humans: int, off: frozenset[str] = frozenset(), ordered: Collection[str] = ()
) -> tuple[stats.MetricConfig, ...]:
    names = ["classification", "cohen_kappa"]
    names += ["alt_test"] if humans >= 3 else []
    names += [ALPHA] if humans >= 2 else []
    options = {ALPHA: ORDINAL} if "winner" in ordered else {}
    scorers = (
        stats.make_scorer(name, **options.get(name, {})) for name in names if name not in off
    )
    return tuple(stats.MetricConfig(scorer, ["winner"]) for scorer in scorers)


def _metric_config(metric: _Metric, path: str, reach: Reach) -> stats.MetricConfig:
    scorer = _scorer(metric.scorer, metric.options or {}, path, reach)
    with _refused(path, stats.MetricInvalid):
        return stats.MetricConfig(
            scorer,
            metric.task_names or ["winner"],
            metric.task_strategy,
            metric.annotator_aggregation,
            metric.display_name,
        )


def _scorer(name: str, options: Options, path: str, reach: Reach) -> stats.Scorer:
    resamples, embedder = options.get("resamples", 0), options.get("embedder")
    if isinstance(resamples, int) and resamples > MOST_RESAMPLES:
        raise ConfigInvalid.at(f"{path}.options.resamples", f"must be at most {MOST_RESAMPLES:,}")
    with _refused(f"{path}.scorer", ValueError):
        factory = _factory(name, reach)
    if "embedder" in options:
        place = f"{path}.options.embedder"
        if not isinstance(embedder, dict):
            raise ConfigInvalid.at(place, "must be an object")
        others = {key: value for key, value in options.items() if key != "embedder"}
        options = others | {"embed": reach.embed(embedder, path=place)}
    with _refused(f"{path}.options", TypeError, ValueError):
        scorer = factory(**options)
    if not isinstance(scorer, stats.Scorer) or not is_safe(getattr(scorer, "scorer_name", None)):
        message = "makes no Scorer with a scorer_name of letters, digits and . _ + - alone"
        raise ConfigInvalid.at(f"{path}.scorer", f"{name} {message}")
    return scorer


def is_safe(name: object) -> bool:
    return isinstance(name, str) and _SAFE.fullmatch(name) is not None


def _factory(name: str, reach: Reach) -> Callable[..., object]:
    if name in stats.SCORERS:
        if reason := absence_reason(name, stats.SCORERS, "scorer", reach.off):
            raise ValueError(reason)
        return lambda **options: stats.make_scorer(name, **options)
    folder = reach.folder
    if folder is None or "." not in name:
        usable = sorted(scorer for scorer in stats.SCORERS if scorer not in reach.off)
        hint = meant(name, usable) or f"; there are {', '.join(usable)}"
        raise ValueError(f"no scorer is called {name!r}{hint}")
    module, _, attribute = name.rpartition(".")
    with _importing(name, folder):
        factory: Callable[..., object] = getattr(import_module(module), attribute)
    if not callable(factory):
        raise ValueError(f"{name!r} is no scorer")  # noqa: TRY004  as every other mistake
    return factory


# --- files, and the code that they name ---------------------------------------------------------


class _StrictLoader(yaml.SafeLoader):
    """Reads plain values only, and refuses a key that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for n, key in enumerate(keys) if key in keys[:n]), None)
        if twice is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the key {twice!r} is given twice", problem_mark=node.start_mark
            )
        return super().construct_mapping(node, deep)


def read_config(path: Path) -> object:
    """Read YAML or JSON; the style sheet beside it, if it names one, is read too."""
    text = _read(path, "")
    try:
        if path.suffix.lower() == ".json":
            data = strict_json.loads(text)
        else:
            data = yaml.load(text, _StrictLoader)  # noqa: S506  it is a SafeLoader
    except (strict_json.NotJson, yaml.YAMLError, RecursionError) as error:
        raise ConfigInvalid.at("", f"{path} cannot be read: {error}") from error
    if isinstance(data, dict) and isinstance(name := data.get("style"), str):
        return data | {"style": read_style(path.parent / name)}
    return data


def read_style(path: Path) -> str:
    return _read(path, "style")


def _read(path: Path, field: str) -> str:
    try:
        content = path.read_bytes()[: MOST_BYTES + 1]
        if len(content) > MOST_BYTES:
            raise ConfigInvalid.at(field, f"{path} has more than {MOST_BYTES:,} bytes")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigInvalid.at(field, f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid.at(field, f"{path} cannot be read: {error}") from error


def _import_modules(modules: object, folder: Path | None) -> None:
    if modules is None:
        return
    if folder is None:
        message = "code is named on the command line only; here the setting SCORER_MODULES names it"
        raise ConfigInvalid.at("modules", message)
    for number, name in enumerate(modules if isinstance(modules, list) else ()):
        with _refused(f"modules[{number}]", ValueError), _importing(name, folder):
            import_module(name)


@contextmanager
def _importing(name: str, folder: Path) -> Iterator[None]:
    place = str(folder.resolve())
    sys.path.append(place)
    try:
        yield
    except Exception as error:
        raise ValueError(f"{name!r} cannot be imported: {error}") from error
    finally:
        sys.path.remove(place)


@contextmanager
def _collect_errors(errors: list[ConfigError]) -> Iterator[None]:
    """Keep what is wrong, so that one answer has all of it."""
    try:
        yield
    except ConfigInvalid as invalid:
        errors += invalid.errors


@contextmanager
def _refused(path: str, *kinds: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        raise ConfigInvalid.at(path, str(error)) from error

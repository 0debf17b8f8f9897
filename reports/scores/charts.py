"""Charts of results, as PNG and SVG, under the names that readers of reports know.

A chart is called after its metric: `accuracy_scores`, `cohens_kappa_scores`,
`text_similarity_scores`, or `<scorer>_scores`, with the figure's name in it where a scorer has
several; the Alt-Test has `aggregate_winning_rates`, `aggregate_advantage_probabilities` and
`aggregate_human_vs_llm_advantage`. Where several metrics would have one name, such as the accuracy
on two tasks, the unique name of each stands behind it, and none has the plain name:
`accuracy_scores_classification_accuracy_1tasks_22e76eaf_single`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from humanjudge.charts import (
    SCORE,
    Axis,
    Curve,
    Estimate,
    Reference,
    Spec,
    Versus,
    bars,
    grouped,
    lines,
    png,
    svg,
)
from judge_eval.stats import (
    PASSES,
    AltTestScorer,
    Figure,
    MetricConfig,
    Results,
    ScoreResult,
    no_figure,
)
from reports.scores.files import file_names
from reports.scores.table import PEOPLE, in_words, is_of_people

_CLASSIFICATION: Final = "classification_"
_MISSING: Final = no_figure("the scorer gave this judge no such figure")


@dataclass(frozen=True)
class _Chart:
    """A chart and what it is called if it is alone with that name."""

    stem: str
    metric: str
    spec: Spec


@dataclass(frozen=True)
class Charts:
    """What was written, and the same charts as a page may hold them, in its own colours."""

    paths: list[Path]
    drawings: list[str]


@dataclass(frozen=True)
class _Judges:
    """What is known of judges beside their results."""

    names: Mapping[str, str]
    baselines: Collection[str] = ()

    def name(self, result: ScoreResult) -> str:
        return self.names.get(result.judge_id, result.judge_id)

    def estimate(self, result: ScoreResult, figure: Figure) -> Estimate:
        low, high = figure.interval or (None, None)
        return Estimate(self.name(result), figure.value, low, high, self.is_baseline(result))

    def curve(self, result: ScoreResult, series: Mapping[str, Figure]) -> Curve:
        points = [(float(key), figure.value) for key, figure in series.items()]
        return Curve(self.name(result), points, self.is_baseline(result))

    def against_people(self, result: ScoreResult) -> list[Versus]:
        name, is_baseline = self.name(result), self.is_baseline(result)
        found = list(_advantages(result.metadata))
        return [Versus(name, *row, is_baseline) for row in found] or [
            Versus(name, "people", None, None, is_baseline)
        ]

    def is_baseline(self, result: ScoreResult) -> bool:
        return result.judge_id in self.baselines


def write_charts(
    results: Results,
    configs: Sequence[MetricConfig],
    names: Mapping[str, str],
    out: Path,
    vega_config: Mapping[str, Any] | None = None,
    *,
    among: Mapping[str, ScoreResult | None] | None = None,
    baselines: Collection[str] = (),
) -> Charts:
    """Write every chart of some results, twice: as PNG and as SVG.

    Parameters
    ----------
    results : dict of unique name to list of ScoreResult
    configs : sequence of MetricConfig
    names : mapping of judge_id to str
        What judges are called in charts.
    out : Path
        A folder; it is made where it is missing, and nothing is written outside it.
    vega_config : mapping, optional
        Restyles all charts; nobody knows what it looks like on a page that may be dark, so they
        bring their own colours then.
    among : mapping of unique name to ScoreResult or None, optional
        The same metrics between people; see `judge_eval.stats.among_people`.
    baselines : collection of judge_id

    Returns
    -------
    Charts
        A metric without judges has no chart.

    Raises
    ------
    humanjudge.charts.ChartRefused
        When nothing can be drawn with that Vega config.
    """
    judges, people = _Judges(names, baselines), among or {}
    charts = [
        chart
        for config in configs
        for chart in _charts(
            config, results[config.unique_name], judges, people.get(config.unique_name)
        )
    ]
    out.mkdir(parents=True, exist_ok=True)
    written, drawings = [], []
    for name, chart in zip(_file_names(charts), charts, strict=True):
        picture, drawing = out / f"{name}.png", out / f"{name}.svg"
        picture.write_bytes(png(chart.spec, vega_config=vega_config))
        lit = svg(chart.spec, "light", vega_config)
        drawing.write_text(lit, encoding="utf-8")
        written += [picture, drawing]
        drawings.append(lit if vega_config else svg(chart.spec))
    return Charts(written, drawings)


def _file_names(charts: Sequence[_Chart]) -> list[str]:
    """Return a file name for each chart that stays in its folder; no two are the same."""
    count = Counter(chart.stem.casefold() for chart in charts)
    wanted: list[str] = []
    for chart in charts:
        alone = count[chart.stem.casefold()] == 1
        name = chart.stem if alone else f"{chart.stem}_{chart.metric}"
        while name in wanted:
            name += "_"
        wanted.append(name)
    safe = file_names(wanted)
    return [safe[name] for name in wanted]


def _charts(
    config: MetricConfig,
    results: Sequence[ScoreResult],
    judges: _Judges,
    among: ScoreResult | None,
) -> Iterator[_Chart]:
    drawn = (
        _alt_test(config, results, judges)
        if isinstance(config.scorer, AltTestScorer)
        else _figures(config, results, judges, among)
    )
    for stem, spec in drawn:
        if spec is not None:
            yield _Chart(stem, config.unique_name, spec)


def _figures(
    config: MetricConfig,
    results: Sequence[ScoreResult],
    judges: _Judges,
    among: ScoreResult | None,
) -> Iterator[tuple[str, Spec | None]]:
    metric = config.scorer.scorer_name.removeprefix(_CLASSIFICATION)
    figures = list(dict.fromkeys(name for result in results for name in result.figures))
    for figure in figures:
        whole = metric if len(figures) == 1 or metric.startswith(figure) else f"{metric}_{figure}"
        drawn = results
        if is_of_people(config.scorer, figure):
            drawn = [replace(among or results[0], judge_id=PEOPLE)]
        rows = [judges.estimate(result, result.figures.get(figure, _MISSING)) for result in drawn]
        beside = None
        if among is not None and drawn is results:
            beside = _reference(among.figures.get(figure))
        words = f"{in_words(whole)}{_how(config, results)}"
        yield (
            f"{whole}_scores",
            bars(rows, title=_title(config, whole), axis=_axis(words, rows), people=beside),
        )


def _alt_test(
    config: MetricConfig, results: Sequence[ScoreResult], judges: _Judges
) -> Iterator[tuple[str, Spec | None]]:
    yield (
        "aggregate_winning_rates",
        lines(
            [judges.curve(result, result.series.get("winning_rate", {})) for result in results],
            title=_title(config, "winning rate"),
            x=Axis("epsilon"),
            y=replace(SCORE, words="winning rate"),
            threshold=Reference(PASSES, f"passes from {PASSES}"),
        ),
    )
    rows = [
        judges.estimate(result, result.figures.get("advantage_probability", _MISSING))
        for result in results
    ]
    advantage = replace(SCORE, words="advantage probability")
    title = _title(config, "advantage probability")
    yield "aggregate_advantage_probabilities", bars(rows, title=title, axis=advantage)
    pairs = [pair for result in results for pair in judges.against_people(result)]
    title = _title(config, "advantage probability of judges and of people")
    yield "aggregate_human_vs_llm_advantage", grouped(pairs, title=title, axis=advantage)


def _advantages(metadata: Mapping[str, object]) -> Iterator[tuple[str, float, float]]:
    """Yield each person, on each task where there are several, the judge's figure and theirs."""
    people, tasks = metadata.get("human_advantage_probabilities"), metadata.get("tasks")
    if isinstance(people, Mapping):
        for person, (of_judge, of_person) in people.items():
            yield str(person), of_judge, of_person
    if isinstance(tasks, Mapping):
        for task, own in tasks.items():
            for person, of_judge, of_person in _advantages(own):
                yield f"{person}, {task}", of_judge, of_person


def _reference(figure: Figure | None) -> Reference | None:
    if figure is None or figure.value is None:
        return None
    return Reference(figure.value, PEOPLE, *(figure.interval or (None, None)))


def _axis(words: str, rows: Sequence[Estimate]) -> Axis:
    """Return an axis up to 1 for what may be a share or a coefficient, else as far as it goes."""
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    furthest = max(map(abs, ends), default=0.0)
    if furthest <= 1:
        return Axis(words, ".2f", 0.0, 1.0)
    return Axis(words, ".2f" if furthest < 10 else ".1f" if furthest < 1000 else ",.0f")


def _title(config: MetricConfig, metric: str) -> str:
    name = in_words(metric)
    about = config.display_name or ", ".join(config.task_names)
    return f"{name[:1].upper()}{name[1:]}: {about}"


def _how(config: MetricConfig, results: Sequence[ScoreResult]) -> str:
    tasks = len(config.task_names)
    over_people = results[0].metadata.get("scoring_method") == "average_across_humans"
    parts = ["mean over people"] * over_people
    parts += [f"mean over {tasks} tasks"] * (config.task_strategy == "multitask")
    parts += ["against the consensus"] * (results[0].annotator_aggregation == "majority_vote")
    return "".join(f", {part}" for part in parts)

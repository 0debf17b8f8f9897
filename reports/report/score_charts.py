"""Charts of results, as PNG and SVG, under the names that readers of reports know.

A chart is called after its metric: `accuracy_scores`, or `<scorer>_<figure>_scores` where a scorer
has several. Where several metrics would have one name, such as the accuracy on two tasks, the
unique name of each stands behind it, and none has the plain name.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple, TypeAlias

from django.utils.text import capfirst

from humanjudge.charts.interval_graph import IntervalRow, Level, ends_of
from humanjudge.charts.labels import SCORE, Axis
from humanjudge.charts.line_graph import Curve
from humanjudge.charts.matplot import Chart, pictures
from humanjudge.charts.score_charts import Versus, bars, grouped, lines
from humanjudge.charts.style import GivenStyle, StyleRefused
from judge_eval.stats import PASSES, AltTestScorer, MetricConfig, ScoreResult
from reports.report.folders import file_name
from reports.report.model import PEOPLE
from reports.report.score_table import ScoreResults, in_words, is_of_people

# A chart takes about half a second.
MOST_SECONDS: Final = 300.0
Named: TypeAlias = Iterator[tuple[str, Chart | None]]


class Drawing(NamedTuple):
    """A chart as SVG on light paper and on dark; a style has one paper of its own."""

    words: str
    width: int
    light: bytes
    dark: bytes | None


def write_charts(report: ScoreResults, out: Path, style: GivenStyle = "") -> list[Drawing]:
    """Write every chart of a report as PNG and as SVG; return the same as a page may hold them.

    `out` is made where it is missing, and nothing is written outside it. A metric without judges
    has no chart. A style of Matplotlib's lies over ours. Raises StyleRefused.
    """
    charts: list[tuple[str, str, Chart]] = []
    for config in report.configs:
        is_alt_test = isinstance(config.scorer, AltTestScorer)
        named = (_alt_test if is_alt_test else _figures)(config, report)
        charts += [(stem, config.unique_name, chart) for stem, chart in named if chart is not None]
    out.mkdir(parents=True, exist_ok=True)
    count, taken, drawings = Counter(stem.casefold() for stem, _, _ in charts), set[str](), []
    started = monotonic()
    for stem, metric, chart in charts:
        if monotonic() - started > MOST_SECONDS:
            raise StyleRefused(f"its charts take more than {MOST_SECONDS:.0f} seconds to draw")
        name = file_name(stem if count[stem.casefold()] == 1 else f"{stem}_{metric}", taken)
        files = pictures(chart, ("png", "svg"), style)
        for form, content in files.items():
            (out / f"{name}.{form}").write_bytes(content)
        dark = None if style else pictures(chart, ("svg",), theme="dark")["svg"]
        drawings.append(Drawing(chart.words, chart.width, files["svg"], dark))
    return drawings


def _row(report: ScoreResults, result: ScoreResult, name: str) -> IntervalRow:
    figure, is_baseline = result.figures.get(name), result.judge_id in report.baselines
    if figure is None:
        return IntervalRow(result.judge_id, None, is_baseline=is_baseline)
    return IntervalRow(result.judge_id, figure.value, figure.interval, is_baseline=is_baseline)


def _figures(config: MetricConfig, report: ScoreResults) -> Named:
    results, among = report.results[config.unique_name], report.among.get(config.unique_name)
    metric = config.scorer.scorer_name.removeprefix("classification_")
    figures = list(dict.fromkeys(name for result in results for name in result.figures))
    for figure in figures:
        whole = metric if len(figures) == 1 or metric.startswith(figure) else f"{metric}_{figure}"
        measured, beside = results, None
        if is_of_people(config.scorer, figure):
            measured = [replace(among or results[0], judge_id=PEOPLE)]
        elif among and (own := among.figures.get(figure)) and own.value is not None:
            beside = Level(PEOPLE, own.value, own.interval)
        rows = [_row(report, result, figure) for result in measured]
        axis = _axis(f"{in_words(whole)}{_how(config, results)}", rows)
        yield (
            f"{whole}_scores",
            bars(rows, title=_title(config, whole), axis=axis, reference=beside),
        )


def _alt_test(config: MetricConfig, report: ScoreResults) -> Named:
    results = report.results[config.unique_name]
    title, rates = _title(config, "winning rate"), replace(SCORE, words="winning rate")
    curves = []
    for result in results:
        rates_at = result.series.get("winning_rate", {})
        points = [(float(epsilon), rate.value) for epsilon, rate in rates_at.items()]
        curves.append(Curve(result.judge_id, points, result.judge_id in report.baselines))
    passes = Level(f"passes from {PASSES}", PASSES)
    chart = lines(curves, title=title, x=Axis("epsilon"), y=rates, threshold=passes)
    yield "aggregate_winning_rates", chart
    rows = [_row(report, result, "advantage_probability") for result in results]
    title = _title(config, "advantage probability")
    axis = replace(SCORE, words="advantage probability")
    yield "aggregate_advantage_probabilities", bars(rows, title=title, axis=axis)
    pairs = [
        Versus(result.judge_id, *row, result.judge_id in report.baselines)
        for result in results
        for row in list(_advantages(result.metadata)) or [("people", None, None)]
    ]
    title = _title(config, "advantage probability of judges and of people")
    yield "aggregate_human_vs_llm_advantage", grouped(pairs, title=title, axis=axis)


def _advantages(metadata: Mapping[str, object]) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield each person, on each task where there are several, the judge's figure and theirs."""
    people, tasks = metadata.get("human_advantage_probabilities"), metadata.get("tasks")
    if isinstance(people, Mapping):
        for person, (of_judge, of_person) in people.items():
            yield str(person), of_judge, of_person
    if isinstance(tasks, Mapping):
        for task, own in tasks.items():
            for person, of_judge, of_person in _advantages(own):
                yield f"{person}, {task}", of_judge, of_person


def _axis(words: str, rows: Sequence[IntervalRow]) -> Axis:
    """Return an axis up to 1 for what may be a share or a coefficient, else as far as it goes."""
    ends = [end for end in ends_of(rows) if end is not None]
    furthest = max(map(abs, ends), default=0.0)
    if furthest <= 1:
        return Axis(words, ".2f", 0.0, 1.0)
    return Axis(words, ".2f" if furthest < 10 else ".1f" if furthest < 1000 else ",.0f")


def _title(config: MetricConfig, metric: str) -> str:
    return f"{capfirst(in_words(metric))}: {config.display_name or ', '.join(config.task_names)}"


def _how(config: MetricConfig, results: Sequence[ScoreResult]) -> str:
    tasks = len(config.task_names)
    over_people = results[0].metadata.get("scoring_method") == "average_across_humans"
    parts = ["mean over people"] * over_people
    parts += [f"mean over {tasks} tasks"] * (config.task_strategy == "multitask")
    parts += ["against the consensus"] * (results[0].annotator_aggregation == "majority_vote")
    return "".join(f", {part}" for part in parts)

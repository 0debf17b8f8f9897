"""The page of score files: it needs no server, no network and no other file."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from django.template.loader import render_to_string
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from humanjudge.core.http import Context
from humanjudge.core.tables import DASH, Cell, Head, Row, Table, name_cell, text_cell
from judge_eval.stats import AltTestScorer, Estimate, MetricConfig, ScoreResult, epsilon_advice
from reports.report.model import PEOPLE
from reports.scores.table import (
    HINTS,
    ScoreResults,
    best_of,
    figure_cell,
    in_words,
    is_of_people,
    metric_title,
    number,
    on_page,
    span_of,
)

# What has more rows is folded up.
_SHORT: Final = 12


class Drawing(NamedTuple):
    """A chart as SVG on light paper and on dark; a style has one paper of its own."""

    words: str
    width: int
    light: bytes
    dark: bytes | None


def as_html(scores: ScoreResults, drawings: Sequence[Drawing] = ()) -> str:
    """Return the page; everything in it that came from a run or a judge is escaped.

    `drawings` are part of it as pictures, which run nothing and load nothing.
    """
    columns = [scores.columns[place] for place in scores.table.places]
    context = on_page(scores.table) | {
        "source": scores.source,
        "heads": columns,
        "first": next((column for column in columns if column.best), None),
        "drawings": [
            (words, width, _address(light), dark and _address(dark))
            for words, width, light, dark in drawings
        ],
        "sections": [_section(scores, config) for config in scores.configs],
    }
    for name, ending in (("style", "css"), ("script", "js")):
        # They are ours, and their hashes stand in the page's own policy.
        text = render_to_string(f"reports/scores/score_report.{ending}")
        digest = b64encode(sha256(text.encode()).digest()).decode()
        context |= {name: SafeString(text), f"{name}_hash": f"sha256-{digest}"}
    return render_to_string("reports/scores/score_report.html", context)


def _address(drawing: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(drawing).decode()}"


def _section(scores: ScoreResults, config: MetricConfig) -> Context:
    name, scorer = config.unique_name, config.scorer
    by_judge = {result.judge_id: result for result in scores.results[name]}
    judged = [by_judge[row.judge_id] for row in scores.table.judges]
    people = scores.among.get(name)
    everybody = [*judged, *([people] if people else [])]
    title = metric_title(config)
    ways = {"individual_average": "the mean over people", "majority_vote": "against the consensus"}
    tasks = "task" if len(config.task_names) == 1 else "tasks"
    about = [
        f"{scorer.scorer_name} of the {tasks} {', '.join(config.task_names)}",
        config.task_strategy,
        f"{PEOPLE}, and with each judge as one more of them"
        if is_of_people(scorer)
        else ways[config.annotator_aggregation],
        HINTS.get(best_of(scorer) or "", "no value is the best one"),
    ]
    heads = [
        *(Head("Judge", css=""), Head("Figure", css=""), Head("Value")),
        *(Head("95\N{NO-BREAK SPACE}% interval", css="span"), Head("n")),
        Head("Left out", css="wide"),
    ]
    rows = [row for result in everybody for row in _rows(scores, config, result)]
    figures = [figure for result in everybody for figure in result.figures.values()]
    return {
        "title": title,
        "name": name,
        "about": "; ".join(about),
        "figures": Table(f"{title}: figures", heads, rows),
        "methods": list(dict.fromkeys(figure.method for figure in figures if figure.method)),
        "grids": [*_by_part(judged, people), *_alt_test(judged)],
        "notes": list(_notes(judged)),
        "short": _SHORT,
        "guide": epsilon_advice() if isinstance(scorer, AltTestScorer) else "",
    }


def _rows(scores: ScoreResults, config: MetricConfig, result: ScoreResult) -> Iterable[Row]:
    names = {column.figure for column in scores.columns if column.metric is config}
    for name, figure in result.figures.items():
        # What is people's alone would be the same of every judge.
        if is_of_people(config.scorer, name) and result.judge_id != PEOPLE:
            continue
        if name in names or figure.value is not None or len(result.figures) == 1:
            tag = "baseline" if result.judge_id in scores.baselines else ""
            gaps = ((f"{gap.count:,} {gap.what}: {gap.why}",) for gap in figure.left_out)
            left_out = format_html_join("", '<span class="small">{}</span>', gaps)
            value = DASH if figure.value is None else number(figure.value)
            cells = [
                name_cell(result.judge_id, tag=tag),
                text_cell(in_words(name)),
                Cell(value, figure.why or "", css="num why" if figure.why else "num"),
                text_cell(span_of(figure)),
                Cell(f"{figure.n:,}"),
                text_cell(left_out, "wide") if left_out else text_cell("nothing", "wide soft"),
            ]
            yield Row(result.judge_id, cells)


def _by_part(results: Sequence[ScoreResult], people: ScoreResult | None) -> Iterable[Table]:
    for name in dict.fromkeys(name for result in results for name in result.series):
        curves = {result.judge_id: result.series.get(name, {}) for result in results}
        yield _grid(f"{capfirst(name.replace('_', ' '))}, step by step", curves)
    if any(result.by_human for result in results):
        yield _grid("Person by person", {result.judge_id: result.by_human for result in results})
    if people and people.by_human:
        yield _grid("People two by two", {people.judge_id: people.by_human})
    for name in dict.fromkeys(name for result in results for name in result.figures):
        of_tasks = {
            result.judge_id: {task: part[name] for task, part in result.by_task.items()}
            for result in results
            if result.by_task
        }
        if of_tasks:
            yield _grid(f"{capfirst(name.replace('_', ' '))}, task by task", of_tasks)


def _grid(caption: str, parts: Mapping[str, Mapping[str, Estimate]]) -> Table:
    """Return judges by parts, or parts by judges: the longer list goes down the page."""
    lines: Mapping[str, Mapping[str, Estimate]] = parts
    heads = list(dict.fromkeys(name for figures in parts.values() for name in figures))
    if len(heads) > len(parts):
        lines = {
            name: {judge: figures[name] for judge, figures in parts.items() if name in figures}
            for name in heads
        }
        heads = list(parts)
    rows = []
    for name, figures in lines.items():
        cells = [figure_cell(figures[h]) if h in figures else Cell(DASH) for h in heads]
        rows.append(Row(name, [name_cell(name), *cells]))
    return Table(caption, [Head(), *map(Head, heads)], rows)


def _alt_test(results: Sequence[ScoreResult]) -> Iterable[Table]:
    tested = [
        (result.judge_id, by_human)
        for result in results
        if isinstance(by_human := result.metadata.get("p_values"), Mapping) and by_human
    ]
    heads = dict.fromkeys(
        epsilon for _, people in tested for values in people.values() for epsilon in values
    )
    rows = []
    for judge, people in tested:
        rows.append(Row(judge, [name_cell(judge)]))
        for human, values in people.items():
            words = {head: f"{p:.3f}" if p >= 0.001 else "< 0.001" for head, p in values.items()}
            cells = [Cell(words.get(head, DASH)) for head in heads]
            rows.append(Row(human, [name_cell(human, css="inner"), *cells]))
    if rows:
        caption = "p of “no worse than this person by epsilon”, judge by judge"
        yield Table(caption, [Head(), *map(Head, heads)], rows)


def _notes(results: Sequence[ScoreResult]) -> Iterable[tuple[str, str]]:
    """Yield each note with whom it is about; what is to be said of several is said once."""
    about: dict[str, list[str]] = {}
    for result in results:
        notes = []
        for key in ("in_words", "interpretation", "embedding_model"):
            if key in result.metadata:
                source = result.metadata.get(f"{key}_by")
                notes.append(f"{result.metadata[key]}{f' ({source})' if source else ''}")
        for note in dict.fromkeys([*notes, *result.warnings]):
            about.setdefault(note, []).append(result.judge_id)
    for note, judges in about.items():
        is_about_all = len(judges) == len(results) > 1
        yield "all judges" if is_about_all else ", ".join(judges), note

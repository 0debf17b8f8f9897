"""The scores of a run's judges as one table: in words, as CSV, as text, and on pages."""

from __future__ import annotations  # names of `stats` would load NumPy

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isclose
from typing import Final, NamedTuple

from django.utils.text import capfirst

from humanjudge.core.http import Context
from humanjudge.core.tables import DASH, Cell, Head, Row, Table, as_csv, name_cell
from humanjudge.core.text import fixed, listed

# Of its names only what is used is imported: pages show tables and compute nothing.
from judge_eval import stats
from reports.report.model import PEOPLE, JudgeScores, Score, ScoreSource, ScoreTable

_WORDS: Final = {
    "alt_test": "Alt-Test",
    "cohens_kappa": "Cohen's kappa",
    "cohens_kappa_linear": "Cohen's kappa (linear weights)",
    "cohens_kappa_quadratic": "Cohen's kappa (quadratic weights)",
    "f1": "F1",
    "kendall": "Kendall's tau",
    "krippendorff_alpha": "Krippendorff's alpha",
    "krippendorff_alpha_interval": "Krippendorff's alpha (interval)",
    "krippendorff_alpha_ordinal": "Krippendorff's alpha (ordinal)",
    "spearman": "Spearman's rho",
    "with_judge": "with the judge",
}
# By what values are put in order, the best one first.
_ORDERS: Final = {"highest": lambda value: -value, "lowest": float, "nearest_zero": abs}
# The same but for noise in the last digits.
_is_same: Final = partial(isclose, rel_tol=0, abs_tol=1e-12)
HINTS: Final = {
    "highest": "highest is best",
    "lowest": "lowest is best",
    "nearest_zero": "nearest to 0 is best",
}


class ScoreColumn(NamedTuple):
    """A figure of a metric: its name in files, its title, which value is best; is it people's?"""

    metric: stats.MetricConfig
    figure: str
    name: str
    title: str
    best: str | None
    is_of_people: bool

    @property
    def hint(self) -> str:
        return HINTS.get(self.best or "", "")


@dataclass(frozen=True)
class ScoreResults:
    """What scorers computed of all judges; `judges` are their ids by what each is called here.

    `results` are in the order of `judges`; `among` are the same figures between people by unique
    name, where there are any.
    """

    source: ScoreSource | None
    judges: Mapping[str, str]
    configs: Sequence[stats.MetricConfig]
    results: stats.Results
    among: Mapping[str, stats.ScoreResult]
    baselines: Collection[str]

    @cached_property
    def columns(self) -> list[ScoreColumn]:
        return [column for config in self.configs for column in _columns(self, config)]

    @cached_property
    def table(self) -> ScoreTable:
        columns = self.columns
        by_column = [
            [_score(column.figure, result) for result in self.results[column.metric.unique_name]]
            for column in columns
        ]
        ranks = [_ranked(column, scores) for column, scores in zip(columns, by_column, strict=True)]
        rows = [
            JudgeScores(judge_id=name, is_baseline=name in self.baselines, figures=list(figures))
            for name, figures in zip(self.judges, zip(*by_column, strict=True), strict=True)
        ]
        # In the order of the first column that has a best value.
        rank = next(filter(None, ranks), [0.0] * len(rows))
        people = [_score(c.figure, self.among.get(c.metric.unique_name)) for c in columns]
        return ScoreTable(
            columns=[column.name for column in columns],
            titles=[column.title for column in columns],
            of_people=[column.is_of_people for column in columns],
            judges=[rows[place] for place in sorted(range(len(rows)), key=rank.__getitem__)],
            people=people if self.among else None,
            as_of=self.source,
        )


def _columns(scores: ScoreResults, metric: stats.MetricConfig) -> Iterator[ScoreColumn]:
    name, scorer = metric.unique_name, metric.scorer
    results = scores.results[name]
    # A scorer may name its figures only where it computed some.
    computed = [r for r in results if any(f.value is not None for f in r.figures.values())]
    figures = dict.fromkeys(figure for result in computed or results for figure in result.figures)
    endings = {figure: f"_{figure}" if n else "" for n, figure in enumerate(figures)}
    endings = endings or {scorer.scorer_name: ""}
    if isinstance(scorer, stats.AltTestScorer):
        endings = {"winning_rate": "_winning_rate", "advantage_probability": "_advantage_prob"}
    for figure, ending in endings.items():
        words = f", {in_words(figure)}" if ending else ""
        if isinstance(scorer, stats.AltTestScorer) and figure == "winning_rate":
            words = f" at {stats.epsilon_key(scorer.settings.epsilon)}"
        title, best = metric_title(metric, words), best_of(scorer, figure)
        yield ScoreColumn(metric, figure, name + ending, title, best, is_of_people(scorer, figure))


def _ranked(column: ScoreColumn, scores: Sequence[Score]) -> list[float]:
    """Mark the best values, unless all are the same; return what puts all in order, if anything."""
    if column.best is None:
        return []
    order, values = _ORDERS[column.best], [s.value for s in scores if s.value is not None]
    if values and not _is_same(min(values), max(values)):
        best = min(values, key=order)
        for score in scores:
            score.is_best = score.value is not None and _is_same(score.value, best)
    return [float("inf") if score.value is None else order(score.value) for score in scores]


def best_of(scorer: stats.Scorer, figure: str = "") -> str | None:
    """Return which value of a figure is the best, if any; a scorer may say so by ``best``."""
    best = getattr(scorer, "best", "highest")
    return best if best in _ORDERS and not is_of_people(scorer, figure) else None


def _score(name: str, result: stats.ScoreResult | None) -> Score:
    figures = result.figures if result else {}
    reasons = (figure.why for figure in figures.values() if figure.value is None)
    is_peoples = result is None or result.judge_id == PEOPLE
    nobodys = "people have no such figure" if is_peoples else f"there is no {name}"
    figure = figures.get(name) or stats.no_figure(next(reasons, None) or nobodys)
    outcome = result.metadata.get("outcome") if result and name == "winning_rate" else None
    return Score(
        value=figure.value,
        interval=figure.interval,
        n=figure.n,
        reason=None if figure.value is not None else figure.why,
        is_best=False,
        said="" if outcome in (None, "not tested") else str(outcome),
    )


# --- what people call them ----------------------------------------------------------------------


def metric_title(config: stats.MetricConfig, figure: str = "") -> str:
    if config.display_name:
        return f"{config.display_name}{figure}"
    tasks, scorer = config.task_names, config.scorer
    named = listed(tasks) if len(tasks) <= 3 else f"{len(tasks)} tasks"
    ways = {"multitask": f"mean of {named}", "multilabel": f"{named} as one label"}
    parts = [f"{_metric(scorer)}{figure}", ways.get(config.task_strategy, named)]
    if config.annotator_aggregation == "majority_vote" and scorer.supports_majority:
        parts.append("against the consensus")
    return ", ".join(parts)


def in_words(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def is_of_people(scorer: stats.Scorer, figure: str = "krippendorff_alpha") -> bool:
    """Say whether a figure is one of people alone, the same beside every judge."""
    return isinstance(scorer, stats.KrippendorffAlphaScorer) and figure == "krippendorff_alpha"


def _metric(scorer: stats.Scorer) -> str:
    if not isinstance(scorer, stats.ClassificationScorer):
        return capfirst(in_words(scorer.scorer_name))
    settings, name = scorer.settings, capfirst(in_words(scorer.settings.metric))
    if settings.metric == "accuracy":
        return name
    binary = settings.average == "binary"
    return f"{name} of {settings.pos_label}" if binary else f"{name} ({settings.average})"


def table_csv(table: ScoreTable, judges: Collection[str]) -> str:
    """Return ``judge_id`` and a column for each figure, in this order of judges."""
    rows = {row.judge_id: [score.value for score in row.figures] for row in table.judges}
    return as_csv(["judge_id", *table.columns], ([judge, *rows[judge]] for judge in judges))


def table_text(table: ScoreTable) -> str:
    """Return lines for a terminal; the best value of a column has a star.

    The names of the columns stand below the table: they are long, and figures are short.
    """
    titles = [
        _printable(name if title == name else f"{title}: {name}")
        for title, name in zip(table.titles, table.columns, strict=True)
    ]
    heads = [f"({number})" for number, _ in enumerate(table.places, start=1)]
    lines = [["judge_id", *heads]]
    for name, tag, scores in table.rows:
        lines.append([_printable(f"{name} ({tag})" if tag else name), *map(_text, scores)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    alone = [
        f"{PEOPLE}: {_text(score)}  {_printable(f'{title}: {name}')}"
        for title, name, score in table.among_people
    ]
    named = [f"{head} {titles[place]}" for head, place in zip(heads, table.places, strict=True)]
    return "\n".join([*padded, *alone, *named])


def _text(score: Score) -> str:
    if score.value is None:
        return DASH
    ends = ", ".join(fixed(end, 2) for end in score.interval or ())
    interval, star = f"[{ends}]" if ends else "", "*" if score.is_best else ""
    parts = [number(score.value), score.said, interval, f"n={score.n}", star]
    return " ".join(filter(None, parts))


def _printable(text: str) -> str:
    """Return a text that cannot move the cursor, change colours or break the line."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def number(value: float) -> str:
    return fixed(value, 3) if abs(value) < 1e6 else f"{value:.6g}"


def span_of(figure: stats.Estimate | Score) -> str:
    return "{} to {}".format(*map(number, figure.interval)) if figure.interval else ""


def figure_cell(figure: stats.Estimate | Score, label: str = "") -> Cell:
    if figure.value is None:
        reason = figure.reason if isinstance(figure, Score) else figure.why
        return Cell(DASH, reason or "", css="num why", label=label, sort="")
    small = "; ".join(filter(None, [span_of(figure), f"n\N{NO-BREAK SPACE}{figure.n:,}"]))
    word, is_best = (figure.said, figure.is_best) if isinstance(figure, Score) else ("", False)
    return Cell(
        f"{number(figure.value)} {word}".strip(),
        small,
        css="num best" if is_best else "num",
        mark="strong" if is_best else "",
        label=label,
        sort=repr(figure.value),
    )


def on_page(table: ScoreTable) -> Context:
    """Return the table for a template, and people's figures: title, name, cell."""
    titles = [table.titles[place] for place in table.places]
    heads = [Head(table.titles[place], hint=table.columns[place]) for place in table.places]
    rows = [
        Row(name, [replace(name_cell(name, tag=tag), sort=name), *map(figure_cell, scores, titles)])
        for name, tag, scores in table.rows
    ]
    return {
        "figures": Table(
            label="Figures",
            css="list rates scores as-cards",
            heads=[Head("Judge", css=""), *heads],
            rows=rows[: len(table.judges)],
            foot=rows[len(table.judges) :],
        ),
        "among_people": [
            (title, name, figure_cell(score)) for title, name, score in table.among_people
        ],
    }

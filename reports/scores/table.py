"""The judges of a run against their figures: as one table, in words, CSV, text and JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Final

from pydantic import BaseModel

from humanjudge.lib.tables import DASH, Cell, Head, Row, Table, as_csv, name_cell
from humanjudge.lib.text import listed
from judge_eval.stats import (
    AltTestScorer,
    ClassificationScorer,
    Figure,
    KrippendorffAlphaScorer,
    MetricConfig,
    Results,
    Scorer,
    ScoreResult,
    epsilon_key,
    no_figure,
)

PEOPLE: Final = "people among themselves"
_ALT_TEST: Final = (
    ("winning_rate", "_winning_rate"),
    ("advantage_probability", "_advantage_prob"),
)
_SAME: Final = 1e-12
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
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Column:
    """One figure of one metric.

    Attributes
    ----------
    name : str
        As it stands in the CSV file.
    metric, figure : str
        The metric's unique name, and which of its figures.
    best : {'highest', 'lowest', 'nearest_zero', None}
        Which value is the best one; None where there is no such thing.
    title : str
        What people call it.
    is_of_people : bool
        The figure is the same beside every judge: it says how far people agree.
    """

    name: str
    metric: str
    figure: str
    best: str | None
    title: str
    is_of_people: bool = False


@dataclass(frozen=True)
class Score:
    """A figure in the table; `said` is what it comes to in a word, such as ``passes``."""

    figure: Figure
    is_best: bool = False
    said: str = ""


@dataclass(frozen=True)
class Judged:
    """The scores of one judge, or of people."""

    judge: str
    scores: tuple[Score, ...]
    is_baseline: bool = False


@dataclass(frozen=True)
class ScoreTable:
    """Figures by judge and column.

    Attributes
    ----------
    columns : tuple of Column
    rows : tuple of Judged
        In the order of the judges; `ranked` has the best first.
    people : Judged or None
        The same figures between people, which judges are measured against, where there are any.
    """

    columns: tuple[Column, ...]
    rows: tuple[Judged, ...]
    people: Judged | None = None

    @cached_property
    def of_judges(self) -> tuple[int, ...]:
        """The places of the columns in which judges differ."""
        return tuple(n for n, column in enumerate(self.columns) if not column.is_of_people)

    @cached_property
    def among_people(self) -> tuple[tuple[Column, Score], ...]:
        """The figures that are people's alone."""
        places = [n for n, column in enumerate(self.columns) if column.is_of_people]
        row = self.people or next(iter(self.rows), None)
        return tuple((self.columns[n], row.scores[n]) for n in places) if row else ()

    @cached_property
    def people_row(self) -> Judged | None:
        """People's row beneath the judges, where it holds a figure."""
        row = self.people
        known = row and any(row.scores[n].figure.value is not None for n in self.of_judges)
        return row if known else None

    @cached_property
    def ranked(self) -> tuple[Judged, ...]:
        """The rows by the first figure that has a best value, those without it last."""
        place = next((n for n in self.of_judges if self.columns[n].best), None)
        if place is None:
            return self.rows
        best = self.columns[place].best
        return tuple(sorted(self.rows, key=lambda row: _rank(best, row.scores[place].figure.value)))


def tabulate(
    configs: Sequence[MetricConfig],
    results: Results,
    judges: Sequence[str],
    among: Mapping[str, ScoreResult] | None = None,
    baselines: Collection[str] = (),
) -> ScoreTable:
    """Put the figures of all judges beside each other.

    Parameters
    ----------
    configs : sequence of MetricConfig
    results : Results
        Of each metric one result for each judge, in their order.
    judges : sequence of str
    among : mapping of str to ScoreResult, optional
        The same figures between people, by unique name, where there are any.
    baselines : collection of str
        Which of the judges are rules to be beaten.

    Examples
    --------
    >>> from judge_eval.stats import ClassificationScorer, score
    >>> metric = MetricConfig(ClassificationScorer(), ["winner"])
    >>> judges = {"=1+1": {"winner": {"q": "B"}}, "gpt": {"winner": {"q": "A"}}}
    >>> found = score([metric], judges, {"ann": {"winner": {"q": "A"}}})
    >>> table = tabulate([metric], found, list(judges), baselines=["=1+1"])
    >>> [cell.is_best for row in table.rows for cell in row.scores]
    [False, True]
    >>> [row.judge for row in table.ranked]
    ['gpt', '=1+1']
    """
    columns: list[Column] = []
    by_column: list[list[Score]] = []
    people: list[Score] = []
    for config in configs:
        found = results[config.unique_name]
        for column in _columns(config, found):
            columns.append(column)
            by_column.append(_cells(column, found))
            people.append(_of_people(column, (among or {}).get(config.unique_name)))
    rows = [
        Judged(judge, tuple(cells[number] for cells in by_column), judge in baselines)
        for number, judge in enumerate(judges)
    ]
    return ScoreTable(tuple(columns), tuple(rows), Judged(PEOPLE, tuple(people)) if among else None)


def best_of(scorer: Scorer) -> str | None:
    """Return which value of a scorer's figures is the best; it may say so by ``best``."""
    best = getattr(scorer, "best", "highest")
    return best if best in ("highest", "lowest", "nearest_zero") else None


def _columns(config: MetricConfig, results: Sequence[ScoreResult]) -> list[Column]:
    name, best = config.unique_name, best_of(config.scorer)
    if isinstance(config.scorer, AltTestScorer):
        return [
            Column(f"{name}{ending}", name, figure, best, figure_title(config, figure))
            for figure, ending in _ALT_TEST
        ]
    first, *more = _figure_names(results) or [config.scorer.scorer_name]
    named = [(name, first, metric_title(config))]
    named += [(f"{name}_{figure}", figure, figure_title(config, figure)) for figure in more]
    of_people = [is_of_people(config.scorer, figure) for _, figure, _ in named]
    return [
        Column(column, name, figure, None if alone else best, title, alone)
        for (column, figure, title), alone in zip(named, of_people, strict=True)
    ]


def _figure_names(results: Sequence[ScoreResult]) -> list[str]:
    """Return what was computed: a scorer may name its figures only where it found some."""
    computed = [
        result for result in results if any(f.value is not None for f in result.figures.values())
    ]
    return list(dict.fromkeys(name for result in computed or results for name in result.figures))


def _cells(column: Column, results: Sequence[ScoreResult]) -> list[Score]:
    figures = [_figure(column, result) for result in results]
    values = [figure.value for figure in figures if figure.value is not None]
    best = _best(column.best, values)
    return [
        Score(
            figure,
            best is not None and figure.value is not None and _is_same(figure.value, best),
            _said(column, result),
        )
        for figure, result in zip(figures, results, strict=True)
    ]


def _of_people(column: Column, people: ScoreResult | None) -> Score:
    return Score(_figure(column, people) if people else no_figure("people have no such figure"))


def _said(column: Column, result: ScoreResult) -> str:
    """Return whether a judge passes the Alt-Test, beside its winning rate."""
    passes = result.metadata.get("passes") if column.figure == "winning_rate" else None
    return "" if passes is None else "passes" if passes else "fails"


def _rank(best: str | None, value: float | None) -> float:
    if value is None:
        return inf
    return {"lowest": value, "nearest_zero": abs(value)}.get(best or "", -value)


def _figure(column: Column, result: ScoreResult) -> Figure:
    if column.figure in result.figures:
        return result.figures[column.figure]
    reasons = (figure.reason for figure in result.figures.values() if figure.reason)
    return no_figure(next(reasons, f"there is no {column.figure}"))


def _best(which: str | None, values: Sequence[float]) -> float | None:
    """Return the best value, None where one cannot tell judges apart by them."""
    if which is None or not values or _is_same(min(values), max(values)):
        return None
    if which == "nearest_zero":
        return min(values, key=abs)
    return max(values) if which == "highest" else min(values)


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME


# --- what people call them -----------------------------------------------------------------------


def metric_title(config: MetricConfig) -> str:
    """Return what a metric is called over a table.

    Examples
    --------
    >>> metric_title(MetricConfig(ClassificationScorer(), ["winner"]))
    'Accuracy, winner'
    >>> f1 = ClassificationScorer("f1", pos_label="A")
    >>> metric_title(MetricConfig(f1, ["safe", "short"], "multitask", "majority_vote"))
    'F1 of A, mean of safe and short, against the consensus'
    """
    return config.display_name or _of_tasks(config, _metric(config.scorer))


def figure_title(config: MetricConfig, figure: str) -> str:
    """Return what one of a metric's several figures is called.

    Examples
    --------
    >>> alt_test = MetricConfig(AltTestScorer(), ["winner"])
    >>> figure_title(alt_test, "winning_rate")
    'Alt-Test at 0.20, winner'
    >>> figure_title(alt_test, "advantage_probability")
    'Alt-Test, advantage probability, winner'
    """
    scorer = config.scorer
    if isinstance(scorer, AltTestScorer) and figure == "winning_rate":
        words = f" at {epsilon_key(scorer.settings.epsilon)}"
    else:
        words = f", {in_words(figure)}"
    if config.display_name is not None:
        return f"{config.display_name}{words}"
    return _of_tasks(config, f"{_metric(scorer)}{words}")


def in_words(name: str) -> str:
    """Return the name of a scorer or figure as it stands amid a sentence.

    Examples
    --------
    >>> in_words("cohens_kappa"), in_words("text_similarity")
    ("Cohen's kappa", 'text similarity')
    """
    return _WORDS.get(name, name.replace("_", " "))


def is_of_people(scorer: Scorer, figure: str = "krippendorff_alpha") -> bool:
    """Say whether a figure is one of people alone, the same beside every judge.

    Examples
    --------
    >>> alpha = KrippendorffAlphaScorer()
    >>> [is_of_people(alpha, figure) for figure in alpha.figure_names]
    [True, False]
    """
    return isinstance(scorer, KrippendorffAlphaScorer) and figure == "krippendorff_alpha"


def _metric(scorer: Scorer) -> str:
    if not isinstance(scorer, ClassificationScorer):
        return _capital(in_words(scorer.scorer_name))
    settings = scorer.settings
    name = _capital(in_words(settings.metric))
    if settings.metric == "accuracy":
        return name
    of = f" of {settings.pos_label}" if settings.average == "binary" else f" ({settings.average})"
    return f"{name}{of}"


def _of_tasks(config: MetricConfig, name: str) -> str:
    parts = [name, _tasks(config)]
    if config.annotator_aggregation == "majority_vote" and config.scorer.supports_majority:
        parts.append("against the consensus")
    return ", ".join(parts)


def _tasks(config: MetricConfig) -> str:
    tasks, count = config.task_names, len(config.task_names)
    named = listed(tasks) if count <= _MOST_NAMED else f"{count} tasks"
    ways = {"multitask": f"mean of {named}", "multilabel": f"{named} as one label"}
    return ways.get(config.task_strategy, named)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


# --- as files, text and JSON --------------------------------------------------------------------


class StoredScore(BaseModel):
    value: float | None
    interval: tuple[float, float] | None
    n: int
    reason: str | None
    is_best: bool
    said: str = ""


class StoredJudge(BaseModel):
    judge_id: str
    is_baseline: bool = False
    figures: list[StoredScore]


class Source(BaseModel):
    """What a table was computed from."""

    ledger_seq: int
    votes: int
    people: int
    pairs: int
    part: str


class Summary(BaseModel):
    """The table as JSON holds it: columns, and a figure of each judge in each."""

    columns: list[str]
    titles: list[str] | None = None
    of_people: list[bool] | None = None
    judges: list[StoredJudge]
    people: list[StoredScore] | None = None
    as_of: Source | None = None


def summary(table: ScoreTable, source: Source | None = None) -> Summary:
    """Return the table as JSON can hold it, the best judge first."""
    return Summary(
        columns=[column.name for column in table.columns],
        titles=[column.title for column in table.columns],
        of_people=[column.is_of_people for column in table.columns],
        judges=[
            StoredJudge(
                judge_id=row.judge,
                is_baseline=row.is_baseline,
                figures=[_stored(score) for score in row.scores],
            )
            for row in table.ranked
        ],
        people=[_stored(score) for score in table.people.scores] if table.people else None,
        as_of=source,
    )


def _stored(score: Score) -> StoredScore:
    figure = score.figure
    return StoredScore(
        value=figure.value,
        interval=figure.interval or None,
        n=figure.n,
        reason=figure.reason,
        is_best=score.is_best,
        said=score.said,
    )


def table_csv(table: ScoreTable) -> str:
    """Return ``judge_id`` and a column for each figure; a figure that is not there is empty.

    Examples
    --------
    >>> from judge_eval.stats import score
    >>> metric = MetricConfig(ClassificationScorer(), ["winner"], display_name="accuracy")
    >>> judges = {"=1+1": {"winner": {"q": "B"}}, "gpt": {"winner": {"q": "A"}}}
    >>> found = score([metric], judges, {"ann": {"winner": {"q": "A"}}})
    >>> table = tabulate([metric], found, list(judges), baselines=["=1+1"])
    >>> print(table_csv(table).replace("\\r", ""))
    judge_id,accuracy
    '=1+1,0.0
    gpt,1.0
    <BLANKLINE>
    >>> print(table_text(table))
    judge_id         (1)
    gpt              1.000 [0.21, 1.00] n=1 *
    =1+1 (baseline)  0.000 [0.00, 0.79] n=1
    (1) accuracy
    """
    names = ["judge_id", *(column.name for column in table.columns)]
    return as_csv(
        names, ([row.judge, *(score.figure.value for score in row.scores)] for row in table.rows)
    )


def table_text(table: ScoreTable) -> str:
    """Return lines for a terminal, the best judge first; the best value of a column has a star.

    The names of the columns stand below the table: they are long, and figures are short.
    """
    places, columns = table.of_judges, [table.columns[n] for n in table.of_judges]
    heads = [f"({number})" for number, _ in enumerate(columns, start=1)]
    lines = [["judge_id", *heads]]
    for row in [*table.ranked, *([table.people_row] if table.people_row else [])]:
        name = f"{_printable(row.judge)}{' (baseline)' * row.is_baseline}"
        lines.append([name, *(_text(row.scores[place]) for place in places)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    names = [f"{head} {_names(column)}" for head, column in zip(heads, columns, strict=True)]
    alone = [f"{PEOPLE}: {_text(score)}  {_names(column)}" for column, score in table.among_people]
    return "\n".join([*padded, *alone, *names])


def _names(column: Column) -> str:
    is_same = column.title == column.name
    return _printable(column.name if is_same else f"{column.title}: {column.name}")


def _text(score: Score) -> str:
    """Return a figure with its interval and n."""
    figure = score.figure
    if figure.value is None:
        return DASH
    said, star = f" {score.said}" if score.said else "", " *" if score.is_best else ""
    interval = " [{:.2f}, {:.2f}]".format(*figure.interval) if figure.interval else ""
    return f"{number(figure.value)}{said}{interval} n={figure.n}{star}"


def _printable(text: str) -> str:
    """Return a text that cannot move the cursor, change colours or break the line."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


# --- on pages -----------------------------------------------------------------------------------


def number(value: float) -> str:
    """Return a figure as people read it."""
    return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.6g}"


def span_of(figure: Figure) -> str:
    """Return a figure's interval in words, or nothing."""
    return "{} to {}".format(*map(number, figure.interval)) if figure.interval else ""


def figure_cell(figure: Figure, *, said: str = "", is_best: bool = False) -> Cell:
    """Show a figure with its interval and n, or why there is none; it sorts by its value."""
    if figure.value is None:
        return Cell(DASH, figure.reason or "", css="num why", sort="")
    small = "; ".join(filter(None, [span_of(figure), f"n\N{NO-BREAK SPACE}{figure.n:,}"]))
    return Cell(
        f"{number(figure.value)} {said}".strip(),
        figure.reason or small,
        css="num best" if is_best else "num",
        mark="strong" if is_best else "",
        sort=repr(figure.value),
    )


@dataclass(frozen=True)
class ShownSummary:
    """A summary on a page: the table, and what is people's alone as (title, name, cell)."""

    table: Table
    among_people: Sequence[tuple[str, str, Cell]]


def summary_page(stored: Summary) -> ShownSummary:
    """Show a stored summary; those of earlier versions say less."""
    names = stored.columns
    titles = stored.titles or names
    alone = stored.of_people or [False] * len(names)
    places = [place for place, is_alone in enumerate(alone) if not is_alone]
    people = stored.people or []
    has_people = people and any(people[place].value is not None for place in places)
    rows = [
        _row(judge.judge_id, judge.figures, places, "baseline" if judge.is_baseline else "")
        for judge in stored.judges
    ]
    of_people = people or (stored.judges[0].figures if stored.judges else [])
    heads = [Head(titles[place], hint=names[place]) for place in places]
    return ShownSummary(
        Table(
            label="Figures",
            css="list rates scores",
            heads=[Head("Judge", css=""), *heads],
            rows=rows,
            foot=[_row(PEOPLE, people, places)] if has_people else [],
        ),
        [
            (titles[place], names[place], _cell(score))
            for place, score in enumerate(of_people)
            if alone[place]
        ],
    )


def _row(name: str, scores: Sequence[StoredScore], places: Sequence[int], tag: str = "") -> Row:
    head = replace(name_cell(name, tag=tag), sort=name)
    return Row(name, [head, *(_cell(scores[place]) for place in places)])


def _cell(score: StoredScore) -> Cell:
    figure = Figure(score.value, score.n, score.reason, score.interval)
    return figure_cell(figure, said=score.said, is_best=score.is_best)

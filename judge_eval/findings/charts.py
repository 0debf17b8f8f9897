"""The charts of findings, drawn where they are computed: a page shows them as they are."""

from __future__ import annotations

from collections.abc import Sequence

from humanjudge.charts.draw import svg
from humanjudge.charts.plots import Curve, Estimate, heat_map, intervals, lines
from humanjudge.charts.spec import RATING, SHARE, Axis, Reference, Spec
from judge_eval.findings.model import AltTest, Models, Rating, RunFindings, Share
from judge_eval.stats import PASSES

START = Reference(1000, "start")


def charts_of(findings: RunFindings) -> dict[str, str]:
    """Draw what there are figures for, by name, as SVG that may stand inside a page."""
    judges = [_estimate(judge.name, judge.rating, judge.is_baseline) for judge in findings.judges]
    specs = {
        "agreement": _agreement(findings),
        "ratings": _ratings(judges, "Bradley-Terry rating of the judges"),
        "same_verdict": _same_verdict(findings),
        "winning_rates": _winning_rates(findings.alt_test),
        "model_ratings": _model_ratings(findings.models),
    }
    return {name: svg(spec) for name, spec in specs.items() if spec is not None}


def _agreement(findings: RunFindings) -> Spec | None:
    rows = [_estimate(judge.name, judge.overall, judge.is_baseline) for judge in findings.judges]
    people = findings.among_people.pairs
    if all(row.value is None for row in rows):
        return None
    beside = None
    if people.value is not None:
        words = "people among themselves"
        beside = Reference(people.value, words, people.low, people.high)
    return intervals(rows, title="Overall agreement with people", axis=SHARE, reference=beside)


def _ratings(rows: Sequence[Estimate], title: str) -> Spec | None:
    if all(row.value is None for row in rows):
        return None
    return intervals(rows, title=title, axis=RATING, reference=START)


def _estimate(name: str, figure: Share | Rating, is_baseline: bool = False) -> Estimate:
    return Estimate(name, figure.value, figure.low, figure.high, is_baseline)


def _same_verdict(findings: RunFindings) -> Spec | None:
    names, shares = [judge.name for judge in findings.judges], findings.same_verdict
    if len(names) < 2 or all(cell is None for row in shares for cell in row):
        return None
    words = "share of pairs on which both said the same"
    return heat_map(names, shares, title="Judges with each other", text=words)


def _winning_rates(alt_test: AltTest | None) -> Spec | None:
    curves = [
        Curve(
            judge.name,
            [(float(key), rate) for key, rate in judge.winning_rates.items()],
            judge.is_baseline,
        )
        for judge in (alt_test.judges if alt_test else ())
        if judge.winning_rates
    ]
    return lines(
        curves,
        title="Share of people a judge wins against",
        x=Axis("epsilon"),
        y=SHARE,
        threshold=Reference(PASSES, "passes"),
    )


def _model_ratings(models: Models | None) -> Spec | None:
    if models is None:
        return None
    ratings = zip(models.names, models.boards[0].ratings, strict=True)
    rows = [_estimate(name, rating) for name, rating in ratings]
    return _ratings(rows, "Rating of the models by people")

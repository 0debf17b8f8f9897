"""The charts of findings, drawn where they are computed: a page shows them as they are."""

from __future__ import annotations

from collections.abc import Iterable

from humanjudge.charts.draw import svg
from humanjudge.charts.plots import Curve, Estimate, heat_map, intervals, lines
from humanjudge.charts.spec import RATING, SHARE, Axis, Reference, Spec
from judge_eval.findings.model import AltTest, RunFindings
from judge_eval.stats import PASSES
from judge_eval.stats.estimate import Rating, Share

START = Reference(1000, "start")


def charts_of(findings: RunFindings) -> dict[str, str]:
    """Draw what there are figures for, by name, as SVG that may stand inside a page."""
    judges, people, beside = findings.judges, findings.among_people.pairs, None
    overall = [(judge.name, judge.overall, judge.is_baseline) for judge in judges]
    ratings = [(judge.name, judge.rating, judge.is_baseline) for judge in judges]
    if people.value is not None:
        beside = Reference(people.value, "people among themselves", people.low, people.high)
    specs = {
        "agreement": _intervals(overall, "Overall agreement with people", SHARE, beside),
        "ratings": _intervals(ratings, "Bradley-Terry rating of the judges", RATING, START),
        "same_verdict": _same_verdict(findings),
        "winning_rates": _winning_rates(findings.alt_test),
    }
    if models := findings.models:
        named = zip(models.names, models.boards[0].ratings, strict=True)
        rows = [(name, rating, False) for name, rating in named]
        specs["model_ratings"] = _intervals(rows, "Rating of the models by people", RATING, START)
    return {name: svg(spec) for name, spec in specs.items() if spec is not None}


def _intervals(
    figures: Iterable[tuple[str, Share | Rating, bool]],
    title: str,
    axis: Axis,
    reference: Reference | None,
) -> Spec | None:
    rows = [Estimate(name, of.value, of.low, of.high, floor) for name, of, floor in figures]
    if all(row.value is None for row in rows):
        return None
    return intervals(rows, title=title, axis=axis, reference=reference)


def _same_verdict(findings: RunFindings) -> Spec | None:
    names, shares = [judge.name for judge in findings.judges], findings.same_verdict
    if len(names) < 2 or all(cell is None for row in shares for cell in row):
        return None
    words = "share of pairs on which both said the same"
    return heat_map(names, shares, title="Judges with each other", text=words)


def _winning_rates(test: AltTest | None) -> Spec | None:
    curves = [
        Curve(judge.name, [(float(key), rate) for key, rate in rates.items()], judge.is_baseline)
        for judge in (test.judges if test else ())
        if (rates := judge.winning_rates)
    ]
    passes, title = Reference(PASSES, "passes"), "Share of people a judge wins against"
    return lines(curves, title=title, x=Axis("epsilon"), y=SHARE, threshold=passes)

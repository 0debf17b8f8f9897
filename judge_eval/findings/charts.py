"""The charts of findings, drawn where they are computed: a page shows them as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from humanjudge.charts import (
    RATING,
    SHARE,
    Axis,
    Curve,
    Estimate,
    Reference,
    Spec,
    heat_map,
    intervals,
    lines,
    svg,
)
from judge_eval.stats import PASSES

START = Reference(1000, "start")
Data = Mapping[str, Any]


def charts_of(data: Data) -> dict[str, str]:
    """Draw what there are figures for, by name, as SVG that may stand inside a page."""
    drawn = {
        "agreement": _agreement(data),
        "ratings": _ratings(data["judges"], "Bradley-Terry rating of the judges"),
        "same_verdict": _same_verdict(data),
        "winning_rates": _winning_rates(data["alt_test"]),
        "model_ratings": _model_ratings(data["models"]),
    }
    return {name: svg(spec) for name, spec in drawn.items() if spec is not None}


def _agreement(data: Data) -> Spec | None:
    rows = [_estimate(judge, judge["overall"]) for judge in data["judges"]]
    people = data["among_people"]["pairs"]
    if all(row.value is None for row in rows):
        return None
    beside = None
    if people["value"] is not None:
        words = "people among themselves"
        beside = Reference(people["value"], words, people["low"], people["high"])
    return intervals(rows, title="Overall agreement with people", axis=SHARE, reference=beside)


def _ratings(judges: Sequence[Data], title: str) -> Spec | None:
    rows = [_estimate(judge, judge["rating"]) for judge in judges]
    if all(row.value is None for row in rows):
        return None
    return intervals(rows, title=title, axis=RATING, reference=START)


def _estimate(judge: Data, figure: Data) -> Estimate:
    return Estimate(
        judge["name"], figure["value"], figure["low"], figure["high"], judge["is_baseline"]
    )


def _same_verdict(data: Data) -> Spec | None:
    names = [judge["name"] for judge in data["judges"]]
    if len(names) < 2 or all(cell is None for row in data["same_verdict"] for cell in row):
        return None
    said = "share of pairs on which both said the same"
    return heat_map(names, data["same_verdict"], title="Judges with each other", text=said)


def _winning_rates(alt_test: Data | None) -> Spec | None:
    tested = [judge for judge in (alt_test or {"judges": []})["judges"] if judge["winning_rates"]]
    curves = [
        Curve(
            judge["name"],
            [(float(key), rate) for key, rate in judge["winning_rates"].items()],
            judge["is_baseline"],
        )
        for judge in tested
    ]
    return lines(
        curves,
        title="Share of people a judge wins against",
        x=Axis("epsilon"),
        y=SHARE,
        threshold=Reference(PASSES, "passes"),
    )


def _model_ratings(models: Data | None) -> Spec | None:
    if models is None:
        return None
    people = models["boards"][0]
    named = [
        {"name": name, "rating": rating, "is_baseline": False}
        for name, rating in zip(models["names"], people["ratings"], strict=True)
    ]
    return _ratings(named, "Rating of the models by people")

"""Charts as Vega-Lite specifications, and as SVG and PNG, with no browser and no network.

A chart is made in two steps: a function of plain data returns a specification, or None where there
is nothing to draw; `svg` and `png` draw it. Rendering starts threads: never render before a fork.

Examples
--------
>>> from humanjudge.charts import SCORE, Estimate, bars, png, svg
>>> spec = bars([Estimate("gpt", 0.8, 0.7, 0.9)], title="Accuracy", axis=SCORE)
>>> svg(spec)[:26], png(spec)[1:4]
('<svg xmlns="http://www.w3.', b'PNG')
"""

from humanjudge.charts.draw import ChartRefused, Theme, VegaConfig, png, svg
from humanjudge.charts.plots import (
    Curve,
    Estimate,
    Versus,
    bars,
    grouped,
    heat_map,
    intervals,
    lines,
)
from humanjudge.charts.spec import RATING, SCORE, SHARE, Axis, Reference, Spec

__all__ = [
    "RATING",
    "SCORE",
    "SHARE",
    "Axis",
    "ChartRefused",
    "Curve",
    "Estimate",
    "Reference",
    "Spec",
    "Theme",
    "VegaConfig",
    "Versus",
    "bars",
    "grouped",
    "heat_map",
    "intervals",
    "lines",
    "png",
    "svg",
]

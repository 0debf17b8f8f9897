"""Charts as Vega-Lite specifications, and as SVG and PNG, with no browser and no network.

A chart is made in two steps: a function of plain data returns a specification, or None where there
is nothing to draw; `svg` and `png` draw it. Rendering starts threads: never render before a fork.

Altair takes more than half a second to load, for which neither a web process nor a command that
draws nothing should wait: the modules here load it inside the functions that need it.

Examples
--------
>>> from humanjudge.charts import SCORE, Estimate, bars, png, svg
>>> spec = bars([Estimate("gpt", 0.8, 0.7, 0.9)], title="Accuracy", axis=SCORE)
>>> svg(spec)[:26], png(spec)[1:4]
('<svg xmlns="http://www.w3.', b'PNG')
>>> bars([], title="Accuracy", axis=SCORE) is None
True
"""

from humanjudge.charts.cells import Cells
from humanjudge.charts.curves import lines
from humanjudge.charts.drawing import png, svg
from humanjudge.charts.judged import bars, intervals
from humanjudge.charts.look import Theme
from humanjudge.charts.matrix import P_VALUES, SHARES, heat_map
from humanjudge.charts.parts import RATING, SCORE, SHARE, Axis, Estimate, Reference, Spec
from humanjudge.charts.rates import Curve
from humanjudge.charts.restyling import ChartRefused
from humanjudge.charts.versus import Versus, grouped

__all__ = [
    "P_VALUES",
    "RATING",
    "SCORE",
    "SHARE",
    "SHARES",
    "Axis",
    "Cells",
    "ChartRefused",
    "Curve",
    "Estimate",
    "Reference",
    "Spec",
    "Theme",
    "Versus",
    "bars",
    "grouped",
    "heat_map",
    "intervals",
    "lines",
    "png",
    "svg",
]

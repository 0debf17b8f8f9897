"""Score charts: the first, which imports Matplotlib, and later ones, of six judges and twenty.

Prints one figure a line: ``name: figure unit``.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

ROUNDS = 7


def milliseconds(draw: Callable[[], object]) -> float:
    started = time.perf_counter()
    draw()
    return 1000 * (time.perf_counter() - started)


def draw(judges: int, kind: str, form: str) -> None:
    from humanjudge.core.charts.graphs import Curve, IntervalRow, Level
    from humanjudge.core.charts.labels import SHARE, Axis
    from humanjudge.core.charts.matplot import pictures
    from humanjudge.core.charts.score_charts import bars, lines

    names = [f"judge-{n}" for n in range(judges)]
    values = [0.3 + 0.6 * n / judges for n in range(judges)]
    rows = [
        IntervalRow(name, v, (v - 0.05, v + 0.05)) for name, v in zip(names, values, strict=True)
    ]
    curves = [Curve(name, [(e / 20, min(1.0, e / 6)) for e in range(7)]) for name in names]
    about = {"x": Axis("epsilon"), "y": SHARE, "threshold": Level("passes", 0.5)}
    chart = (
        bars(rows, title="t", axis=SHARE) if kind == "bars" else lines(curves, title="t", **about)
    )
    pictures(chart, [form])


def main() -> None:
    first = milliseconds(partial(draw, 6, "bars", "svg"))
    print(f"first chart, Matplotlib imported: {first:.0f} ms")
    for judges in (6, 20):
        for kind in ("bars", "lines"):
            for form in ("svg", "png"):
                times = [milliseconds(partial(draw, judges, kind, form)) for _ in range(ROUNDS)]
                middle = statistics.median(times)
                print(f"{kind} of {judges} judges as {form.upper()}: {middle:.0f} ms")


if __name__ == "__main__":
    main()

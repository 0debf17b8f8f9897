"""Charts: the first, which loads the renderer, and later ones, with six judges and with twenty.

Prints one figure a line: ``name: figure unit``.
"""

import statistics
import time
from collections.abc import Callable

from humanjudge.charts.draw import png, svg
from humanjudge.charts.plots import Curve, Estimate, bars, lines
from humanjudge.charts.spec import SHARE, Axis, Reference, Spec

ROUNDS = 7


def estimates(judges: int) -> list[Estimate]:
    values = [0.3 + 0.6 * n / judges for n in range(judges)]
    return [Estimate(f"judge-{n}", v, v - 0.05, v + 0.05) for n, v in enumerate(values)]


def charts(judges: int) -> dict[str, Callable[[], Spec | None]]:
    names = [f"judge-{n}" for n in range(judges)]
    curves = [Curve(name, [(e / 20, min(1.0, e / 6)) for e in range(7)]) for name in names]
    half = Reference(0.5, "passes")
    axes = {"x": Axis("epsilon"), "y": SHARE}
    return {
        "bars": lambda: bars(estimates(judges), title="Accuracy", axis=SHARE),
        "lines": lambda: lines(curves, title="Winning rate", threshold=half, **axes),
    }


def milliseconds(draw: Callable[[], object]) -> float:
    started = time.perf_counter()
    draw()
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    print(f"first chart, the renderer loaded: {milliseconds(a_first):.0f} ms")
    for judges in (6, 20):
        for name, make in charts(judges).items():
            for form in (svg, png):
                middle = median_of(make, form)
                print(f"{name} of {judges} judges as {form.__name__.upper()}: {middle:.0f} ms")


def median_of(make: Callable[[], Spec | None], form: Callable[[Spec], object]) -> float:
    return statistics.median(milliseconds(lambda: form(make())) for _ in range(ROUNDS))


def a_first() -> None:
    svg(charts(6)["bars"]())


if __name__ == "__main__":
    main()

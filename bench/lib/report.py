"""How every bench says what it measured: one line per figure, `name: figure unit (aim …)`."""

from __future__ import annotations

from collections.abc import Sequence


def figure(name: str, value: float, unit: str, aim: str = "") -> None:
    print(f"{name}: {_short(value)} {unit}" + (f" (aim {aim})" if aim else ""), flush=True)


def _short(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def note(text: str) -> None:
    print(f"  {text}", flush=True)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def latencies(name: str, milliseconds: Sequence[float], aim_p95: str = "") -> None:
    for share in (0.5, 0.95, 0.99):
        aim = aim_p95 if share == 0.95 else ""
        figure(f"{name} p{share * 100:.0f}", quantile(milliseconds, share), "ms", aim)

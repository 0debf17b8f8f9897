"""What came of all parts of a torture, as tables in Markdown. Plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

# Megabytes that a process may grow by in an hour of 72,000 votes, when it is warm.
MOST_GROWTH = 1.0
# What is allocated once, for caches and pools, is there after this share of the time.
WARM = 0.25
COUNTS = ("acknowledged", "failures", "refused", "lost", "doubled", "runs", "imports")


@dataclass
class Part:
    """One installation: what was done to it, and what came of it."""

    name: str
    database: str
    # Of each fault, how long each time until all was well again.
    seconds: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    hours: int = 0
    growth: dict[str, float] = field(default_factory=dict)
    votes_per_second: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def stored(self) -> dict[str, Any]:
        return asdict(self)


def growth(megabytes: Sequence[float]) -> float:
    """Return the slope of a line through values, in megabytes a step, without the first quarter.

    Examples
    --------
    >>> growth([50, 70, 80, 80, 81, 82, 83, 84])
    0.8...
    >>> growth([50])
    0.0
    """
    values = megabytes[int(len(megabytes) * WARM) :]
    if len(values) < 2:
        return 0.0
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    rise = sum((n - middle) * (value - mean) for n, value in enumerate(values))
    return rise / sum((n - middle) ** 2 for n in range(len(values)))


def markdown(parts: Sequence[Part]) -> str:
    """Return three tables: faults, votes and work, the long day."""
    blocks = (_faults(parts), _votes(parts), _days(parts))
    return "\n\n".join("\n".join(block) for block in blocks if len(block) > 2)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def _faults(parts: Sequence[Part]) -> list[str]:
    """Return a row for each fault, with all databases beside each other."""
    databases = list(dict.fromkeys(part.database for part in parts if part.seconds))
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for part in parts:
        for fault, seconds in part.seconds.items():
            found[fault][part.database] += seconds
    columns = [
        name
        for database in databases
        for name in (f"times on {database}", "s until well again: median, longest")
    ]
    rows = (
        (fault, *(cell for database in databases for cell in _seconds(by_database[database])))
        for fault, by_database in found.items()
    )
    return _table(("fault", *columns), rows)


def _seconds(all_times: Sequence[float]) -> tuple[object, str]:
    if not all_times:
        return "-", "-"
    return len(all_times), f"{median(all_times):.1f}, {max(all_times):.1f}"


def _votes(parts: Sequence[Part]) -> list[str]:
    columns = ("database", "faults", "votes acknowledged", "tries that failed", "refused")
    columns += ("lost", "doubled", "runs", "imports", "calls made again")
    return _table(columns, _votes_rows([part for part in parts if part.seconds]))


def _votes_rows(parts: Sequence[Part]) -> Iterator[Sequence[object]]:
    for database in dict.fromkeys(part.database for part in parts):
        own = [part for part in parts if part.database == database]
        faults = sum(len(seconds) for part in own for seconds in part.seconds.values())
        counts = [
            f"{sum(part.counts.get(name, 0) for part in own):,}"
            for name in (*COUNTS, "asked_again")
        ]
        yield database, f"{faults:,}", *counts


def _days(parts: Sequence[Part]) -> list[str]:
    columns = ("database", "hours at 20 votes/s", "votes acknowledged", "lost", "doubled")
    columns += ("votes/s taken", "largest growth of a process, MB an hour")
    return _table(
        columns,
        (
            (
                part.database,
                part.hours,
                f"{part.counts['acknowledged']:,}",
                part.counts["lost"],
                part.counts["doubled"],
                f"{part.votes_per_second:,.0f}",
                _largest(part.growth),
            )
            for part in parts
            if part.hours
        ),
    )


def _largest(growths: dict[str, float]) -> str:
    if not growths:
        return "-"
    name = max(growths, key=growths.__getitem__)
    return f"{growths[name]:.2f} ({name.rpartition(' ')[0]})"

"""Figures of findings as cells a page shows: the value, how sure it is, and why it is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from humanjudge.lib.text import usd

DASH = "\N{EN DASH}"
PER_CENT = "\N{NO-BREAK SPACE}%"
METHODS = {
    "wilson": "Wilson",
    "bootstrap": "bootstrap over comparisons",
    "prompts": "prompts, which are taken as independent",
}
Share = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """Where a value and its interval stand on a line from 0 to 100."""

    value: str
    low: str
    high: str


@dataclass(frozen=True)
class Cell:
    """A figure in a few characters; what is behind it in the title, and in a note below."""

    main: str = ""
    small: str = ""
    title: str = ""
    note: int | None = None
    bar: Bar | None = None


class Notes:
    """Why figures are missing, each reason once and numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def missing(self, why: str) -> Cell:
        return Cell(DASH, title=why, note=self.number(why))

    def number(self, why: str) -> int:
        return self._numbers.setdefault(why, len(self._numbers) + 1)


def percent(value: float, decimals: int = 0) -> str:
    return f"{100 * value:.{decimals}f}{PER_CENT}"


def span(low: float, high: float) -> str:
    return f"{low:.0f}{DASH}{high:.0f}"


def share_cell(share: Share, notes: Notes, what: str, nothing: str, *, decimals: int = 0) -> Cell:
    """Show a share; `what` was counted, `nothing` says in a sentence that there was none."""
    if share["value"] is None:
        return notes.missing(nothing)
    main = percent(share["value"], decimals)
    counted = f"{share['successes']:,} of {share['trials']:,} {what}"
    if share["low"] is None:
        why = f"No interval: {share['why']}."
        return Cell(main, title=f"{counted}. {why}", note=notes.number(why))
    title = f"{counted}; 95 % interval by {METHODS[share['method']]}"
    return Cell(main, span(100 * share["low"], 100 * share["high"]), title)


def agreement_cell(share: Share, notes: Notes, what: str, nothing: str) -> Cell:
    """Show a share with its number and its interval drawn."""
    cell = share_cell(share, notes, what, nothing, decimals=1)
    if share["value"] is None:
        return cell
    small = ", ".join(filter(None, [cell.small, f"n {share['trials']:,}"]))
    if share["low"] is None:
        return replace(cell, small=small)
    bar = Bar(*(f"{100 * share[part]:.1f}" for part in ("value", "low", "high")))
    return replace(cell, small=small, bar=bar)


def rating_cell(rating: Mapping[str, Any], notes: Notes) -> Cell:
    if rating["value"] is None:
        return notes.missing(_sentence(rating["why"]))
    main = f"{rating['value']:.0f}"
    if rating["low"] is None:
        why = f"No interval: {rating['why']}."
        return Cell(main, title=why, note=notes.number(why))
    title = f"95 % interval by bootstrap; games on {rating['comparisons']:,} comparisons"
    return Cell(main, span(rating["low"], rating["high"]), title)


def rank_cell(rating: Mapping[str, Any], notes: Notes) -> Cell:
    """Show the ranks that are possible."""
    best, worst = rating["best_rank"], rating["worst_rank"]
    if best is not None:
        return Cell(f"{best}" if best == worst else f"{best}{DASH}{worst}")
    why = rating["why"] or "its rank is not known"
    return notes.missing(_sentence(why) if rating["value"] is None else f"No interval: {why}.")


def price_cells(judge: Mapping[str, Any], notes: Notes) -> tuple[Cell, Cell, Cell]:
    """Return what a verdict cost, what a correct one cost, and how long one took."""
    why = judge["cost_why"] or ""
    correct_why = why
    if judge["cost_per_verdict_usd"] is not None and judge["agreement"]["value"] is None:
        correct_why = "Nobody has voted on what it judged."
    total = judge["cost_usd"]
    title = "" if total is None else f"{_dollars(total)} US$ for all its calls"
    return (
        _price(judge["cost_per_verdict_usd"], title, why, notes),
        _price(judge["cost_per_correct_usd"], title, correct_why, notes),
        _seconds(judge["seconds_per_verdict"], notes),
    )


def _price(value: float | None, title: str, why: str, notes: Notes) -> Cell:
    return notes.missing(why) if value is None else Cell(_dollars(value), title=title)


def _dollars(value: float) -> str:
    return usd(Decimal(str(value))).removeprefix("$")


def _seconds(value: float | None, notes: Notes) -> Cell:
    if value is None:
        return notes.missing("How long its verdicts took is not known.")
    return Cell(f"{value:,.1f}" if value >= 1 else f"{value:.2f}")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."

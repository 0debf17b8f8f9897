"""Judges against judges: who beats whom and how surely, and how often two said the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge_eval.pages.findings_shown import DASH, percent
from judge_eval.stats.estimate import SIGNIFICANCE


@dataclass(frozen=True)
class MatrixCell:
    """One judge against another; `beats` where the row's claim holds."""

    text: str = ""
    title: str = ""
    beats: bool = False


@dataclass(frozen=True)
class Matrix:
    """Judges by judges; the columns are called by the numbers of the rows."""

    names: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell]]]


def claims_matrix(claims: Mapping[str, Any], names: Sequence[str], order: Sequence[int]) -> Matrix:
    """Lay out who beats whom, with the corrected p of each test; `order` is from top to bottom."""

    def cell(row: int, column: int) -> MatrixCell:
        if row == column:
            return MatrixCell()
        ahead, behind = claims["ahead"][row][column], claims["ahead"][column][row]
        # Short, and without the names in the heads: there are hundreds of these.
        both = claims["together"][row][column]
        title = f"alone right: {ahead:,} to {behind:,}, of {both:,} that both answered"
        return MatrixCell(p_text(claims["p"][row][column]), title, claims["beats"][row][column])

    return _matrix(names, order, cell)


def same_verdict_matrix(
    shares: Sequence[Sequence[float | None]], names: Sequence[str], order: Sequence[int]
) -> Matrix:
    def cell(row: int, column: int) -> MatrixCell:
        share = shares[row][column]
        if row == column:
            return MatrixCell()
        return (
            MatrixCell(DASH, "They never answered together.")
            if share is None
            else MatrixCell(percent(share))
        )

    return _matrix(names, order, cell)


def _matrix(
    names: Sequence[str], order: Sequence[int], cell: Callable[[int, int], MatrixCell]
) -> Matrix:
    rows = [(names[row], [cell(row, column) for column in order]) for row in order]
    return Matrix([names[place] for place in order], rows)


def p_text(p: float) -> str:
    """Write a p-value, never as nothing, and never so that it seems to pass where it does not.

    Examples
    --------
    >>> p_text(0.0000042), p_text(0.0312), p_text(0.0501), p_text(1.0)
    ('<0.001', '0.031', '0.0501', '1')
    """
    if p < 0.001:
        return "<0.001"
    if p == 1:
        return "1"
    short = f"{p:.3f}"
    return f"{p:.4f}" if (float(short) <= SIGNIFICANCE) != (p <= SIGNIFICANCE) else short

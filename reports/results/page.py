"""The report as one page that needs nothing else: no server, no network, no other file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from reports.results.report import Report
from reports.results.sections import HINTS, section, shown_cell
from reports.results.table import Row


def as_html(report: Report, drawings: Sequence[str] = ()) -> str:
    """Return the page; everything in it that came from a run or a judge is escaped.

    Parameters
    ----------
    report : Report
    drawings : sequence of str
        Charts as `humanjudge.charts.svg` makes them: shapes and texts with attributes, nothing
        that runs or loads. They take their colours from the page.
    """
    style = render_to_string("reports/score_report.css")
    script = render_to_string("reports/score_report.js")
    table = report.table
    columns = [table.columns[place] for place in table.of_judges]
    sorted_by = next((column for column in columns if column.best), None)
    context: dict[str, Any] = {
        "source": report.source,
        "heads": [
            (column, HINTS.get(column.best or ""), column is sorted_by) for column in columns
        ],
        "rows": [_cells(row, table.of_judges) for row in table.ranked],
        "people": _cells(table.people_row, table.of_judges) if table.people_row else None,
        "among_people": [(column, shown_cell(cell)) for column, cell in table.among_people],
        "drawings": [SafeString(drawing) for drawing in drawings],
        "sections": [section(report, config) for config in report.configs],
        # They are ours, and their hashes stand in the page's own policy.
        "style": SafeString(style),
        "script": SafeString(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    return render_to_string("reports/score_report.html", context)


def _cells(row: Row, places: Sequence[int]) -> dict[str, Any]:
    cells = [shown_cell(row.cells[place]) for place in places]
    return {"judge": row.judge, "is_baseline": row.is_baseline, "cells": cells}


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"

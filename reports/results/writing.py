"""A report as files, in a folder that is there already."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from judge_eval.stats import MetricConfig
from reports.results.folder import MADE_BY, MANIFEST
from reports.results.formats import as_csv
from reports.results.names import file_names
from reports.results.page import as_html
from reports.results.report import Report

SCORES: Final = "scores"


class NotWritable(ValueError):
    """A scorer's result holds something that a file cannot."""


def folder_of(config: MetricConfig, scores: Path) -> Path:
    """Return where a metric's files are."""
    return scores / config.scorer.scorer_name / config.unique_name


def write_report(report: Report, folder: Path, drawings: Sequence[str] = ()) -> None:
    """Write the results, the table and the page with its charts, and what they are."""
    _write_results(report, folder / SCORES)
    (folder / "score_report.csv").write_text(as_csv(report.table), "utf-8", newline="")
    (folder / "score_report.html").write_text(as_html(report, drawings), "utf-8")
    _write_manifest(report, folder)


def _write_manifest(report: Report, folder: Path) -> None:
    """Say of a folder that it is a report, of what, and which files belong to it."""
    files = sorted({*(path.name for path in folder.iterdir()), MANIFEST})
    about = {"made_by": MADE_BY, **report.manifest(), "files": files}
    (folder / MANIFEST).write_text(_json(about, "the report"), "utf-8")


def _write_results(report: Report, scores: Path) -> None:
    files = file_names(report.judges)
    for config in report.configs:
        folder = folder_of(config, scores)
        folder.mkdir(parents=True, exist_ok=True)
        for result in report.results[config.unique_name]:
            text = _json(report.result_file(result), f"{config.unique_name} of {result.judge_id}")
            (folder / f"{files[result.judge_id]}_result.json").write_text(text, "utf-8")


def _json(value: Mapping[str, Any], what: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise NotWritable(f"{what} cannot be written as JSON: {error}") from error

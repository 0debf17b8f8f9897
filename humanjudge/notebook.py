"""The data of a run as pandas frames in a notebook: by a key, or beside the server.

Neither Django nor pandas is imported before `load` needs it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from humanjudge.cli.client import Client, connect, run_path

if TYPE_CHECKING:
    from pandas import DataFrame

    Figures = list[dict[str, Any]]


@dataclass(frozen=True)
class RunFrames:
    """A run: its items, the votes of people that count, the verdicts, and figures of each judge."""

    items: DataFrame
    votes: DataFrame
    verdicts: DataFrame
    figures: DataFrame


def load(run: str, url: str = "", key: str = "") -> RunFrames:
    """Return the data of a run, which is named by its identifier or its first characters.

    It is asked of the server at `url`, or of the one that HUMANJUDGE_URL and HUMANJUDGE_API_KEY
    name or that was started on this machine. Where Django is set up and no `url` is given, the
    database is read. Raises ImportError where pandas is missing.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("humanjudge.load needs pandas: pip install pandas") from error
    rows, figures = _read_database(run) if not url and _is_server() else _read_server(run, url, key)
    parts: dict[str, list[Any]] = {"judge": [], "voter": [], "": []}
    for line in rows:
        row = json.loads(line)
        parts[next((column for column in ("judge", "voter") if column in row), "")].append(row)
    votes, verdicts = pd.DataFrame(parts["voter"]), pd.DataFrame(parts["judge"])
    if not votes.empty:
        votes["voted_at"] = pd.to_datetime(votes["voted_at"])
    return RunFrames(pd.DataFrame(parts[""]), votes, verdicts, pd.DataFrame(figures))


def _read_server(run: str, url: str, key: str) -> tuple[Iterable[str | bytes], Figures]:
    key = key or os.environ.get("HUMANJUDGE_API_KEY", "")
    with closing(Client(url.rstrip("/"), key) if url else connect()) as client:
        data = b"".join(client.download(run_path(run, "export"), format="rows"))
        results = client.get(run_path(run, "judge-eval", "results"))
    return data.split(b"\n")[:-1], results["leaderboard"]


def _is_server() -> bool:
    try:
        from django.apps import apps
    except ImportError:
        return False
    return apps.ready


def _read_database(run: str) -> tuple[Iterable[str | bytes], Figures]:
    # What the API answers is made by the server's own code, which no other client has.
    from judge_eval.board.api import Results, results_of
    from judge_eval.exports.rows import run_rows
    from judge_eval.models import Run
    from judge_eval.runs.queries import by_prefix

    row = by_prefix(Run.objects.select_related("queue"), run)
    if row is None:
        raise LookupError(f"there is no run {run!r}")
    results = Results.model_validate(results_of(row) | {"sealed": True})
    return run_rows(row), results.model_dump(mode="json")["leaderboard"]

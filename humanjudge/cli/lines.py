"""What the command line prints: one short line for each thing, fields between bars."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import click

# What a server answers, as JSON: the server checks what it says, and this side only shows it.
Reply: TypeAlias = Mapping[str, Any]

PREFIX = 8
LONGEST_PROMPT = 80
MOST_ROWS = 5


def clean(text: str) -> str:
    """Return a text as one field of one line: no bar, no tab, nothing that does not print.

    Examples
    --------
    >>> clean("a | b\\tc\\n\\x1b[31md")
    'a b c [31md'
    """
    kept = (sign if sign.isprintable() and sign != "|" else " " for sign in text)
    return " ".join("".join(kept).split())


def line(*fields: object) -> str:
    """Join fields to a line.

    Examples
    --------
    >>> line("total", 2, "done", 0)
    'total|2|done|0'
    """
    return "|".join(clean(str(field)) for field in fields)


def short(identifier: str) -> str:
    """Return the beginning of an identifier; it is enough wherever one is asked for.

    Examples
    --------
    >>> short("51b04665-6f2a-4c56-8d35-0f8f6f3b5c11")
    '51b04665'
    """
    return identifier[:PREFIX]


def run_line(run: Reply) -> str:
    return line(
        *("run", short(run["id"]), run["state"], "total", run["total"], "done", run["done"]),
        *("simulated", int(run["simulated"]), f"name:{run['name']}"),
    )


def status_lines(run: Reply, pending: Reply) -> Iterator[str]:
    """Say where a run stands, what to vote on next, and what the judges say of that."""
    yield line("run", short(run["id"]))
    yield line("state", run["state"])
    if run["note"]:
        yield line("note", run["note"])
    if run["simulated"]:
        yield line("simulated", 1)
    calls = _calls(run["progress"])
    if calls["failed"] or calls["waiting"]:
        yield line("calls", calls["total"], *_named(calls, "done", "failed", "waiting"))
    yield line("total", pending["total"], *_named(pending, "done", "pending"))
    for task in pending["tasks"][:1]:
        prompt = clean(task["prompt_text"])[:LONGEST_PROMPT].rstrip()
        yield line("next-task", short(task["id"]), f"prompt:{prompt}")
        yield from map(verdict_line, json.loads(task.get("verdicts") or "[]"))


def _calls(progress: Reply) -> dict[str, int]:
    parts = (progress["outputs"], progress["calls"])
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def _named(values: Mapping[str, object], *names: str) -> list[object]:
    return [field for name in names for field in (name, values[name])]


def verdict_line(verdict: Reply) -> str:
    """Say what a judge said.

    Examples
    --------
    >>> verdict_line({"judge_model": "m/x", "winner": "A", "score_a": 8.0, "score_b": 6.5})
    'm/x|winner:A|scores:8v6.5'
    >>> verdict_line({"judge_model": "m/y", "winner": None, "error": "no answer"})
    'm/y|winner:err|scores:-'
    """
    scores = (verdict.get("score_a"), verdict.get("score_b"))
    given = "-" if None in scores else "v".join(f"{score:g}" for score in scores)
    return line(verdict["judge_model"], f"winner:{verdict['winner'] or 'err'}", f"scores:{given}")


def voted_line(voted: int, skipped: int, *, unblinded: bool = False) -> str:
    return line("voted", voted, "skipped", skipped, *(("unblinded", 1) if unblinded else ()))


def result_lines(results: Reply) -> Iterator[str]:
    """Write a row for each judge, by overall agreement; the command says what stands in it."""
    for row in results["leaderboard"]:
        overall = (row[f"overall_{name}"] for name in ("agreement", "low", "high"))
        fields = (
            *(row["rank"], row["judge"], row["elo"]),
            *(_number(row["agree_rate"], 1), row["agree"], row["total"]),
            *(_number(value, 1) for value in overall),
            _number(row["order_luck"], 0),
        )
        yield "\t".join(clean(str(field)) for field in fields)
    as_of = results["overall_as_of"]
    yield as_of_line(as_of["votes"], as_of["newer"])


def as_of_line(votes: int, newer: int) -> str:
    """Say which votes figures are of, where there are newer ones.

    Examples
    --------
    >>> as_of_line(40, 3)
    'as-of-vote|40|newer|3'
    """
    return line("as-of-vote", votes, "newer", newer)


def findings_lines(findings: Mapping[str, Any]) -> Iterator[str]:
    """Say what the votes show, and of which; then a row for each judge as the server wrote it."""
    yield line("words", findings["words"])
    yield as_of_line(findings["as_of"]["votes"], findings["newer"])
    yield from ("\t".join(map(clean, row)) for row in findings["rows"])


def _number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def progress(job: Reply) -> str:
    """Say how far an import has come.

    Examples
    --------
    >>> progress({"state": "writing", "rows_read": 9, "written": 4, "to_write": 8})
    'writing 50 %'
    >>> progress({"state": "reading", "rows_read": 9000, "written": 0, "to_write": 0})
    'reading, 9,000 rows'
    """
    if job["state"] == "writing":
        return f"writing {100 * job['written'] // max(job['to_write'], 1)} %"
    return f"{job['state']}, {job['rows_read']:,} rows" if job["rows_read"] else str(job["state"])


def report_lines(report: Reply) -> Iterator[str]:
    """Say what an import brought, and what it left out and why."""
    counts = [field for name, count in report["new"].items() for field in (name, count)]
    first, *others = [short(run) for run in report["runs"]] or [""]
    yield line("imported", first, *counts)
    yield from (line("imported", run) for run in others)
    for error in report["errors"]:
        yield line("error", error["file"], error["row"], error["field"] or "-", error["why"])
    for item in report["left_out"]:
        yield line("left-out", item["file"], item["row"], "-", item["why"])
    for name in ("more_errors", "more_left_out"):
        if report[name]:
            yield line(name.replace("_", "-"), report[name])
    yield from (line("note", note) for note in report["notes"])


def refusal(reply: Reply) -> str:
    """Write what a server refused as one line, the first wrong rows of a file with it.

    Examples
    --------
    >>> row = {"file": "v.csv", "row": 3, "field": "winner", "why": "is empty"}
    >>> refusal({"detail": "1 error; nothing was imported", "errors": [row]})
    '1 error; nothing was imported: v.csv:3: winner: is empty'
    """
    rows = [_row(error) for error in reply.get("errors", [])[:MOST_ROWS]]
    more = [*rows, *map(clean, reply.get("notes", []))]
    return ": ".join([one_line(reply["detail"]), *(["; ".join(more)] if more else [])])


def _row(error: Reply) -> str:
    where = f"{error['file']}:{error['row']}" if error["row"] else error["file"]
    return clean(": ".join(part for part in (where, error["field"], error["why"]) if part))


def one_line(detail: object) -> str:
    """Write what a server says is wrong, which may be many things, as one line.

    Examples
    --------
    >>> one_line([{"path": "models[1].id", "message": "is empty"}])
    'models[1].id: is empty'
    >>> one_line([{"loc": ["query", "limit"], "msg": "Input should be a valid integer"}])
    'query.limit: Input should be a valid integer'
    """
    if isinstance(detail, list):
        return "; ".join(map(one_line, detail))
    if not isinstance(detail, dict):
        return clean(str(detail))
    where = detail.get("path") or ".".join(map(str, detail.get("loc", ())))
    what = detail.get("message") or detail.get("msg") or json.dumps(detail)
    return clean(": ".join(part for part in (where, what) if part))


def show(value: object, texts: Iterable[str], *, as_json: bool) -> None:
    """Print a reply: all of it as JSON, or these lines."""
    document = json.dumps(value, ensure_ascii=False, indent=1) if as_json else "\n".join(texts)
    click.echo(document)

"""What the command line prints: one short line for each thing, fields between bars."""

import json
from collections.abc import Iterator
from typing import TypeAlias

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import fixed
from voting.items.conversations import latest

# What a server answers, as JSON: the server checks what it says, and this side only shows it.
Reply: TypeAlias = JsonObject

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
    signs = (sign if sign.isprintable() and sign != "|" else " " for sign in text)
    return " ".join("".join(signs).split())


def line(*fields: object, between: str = "|") -> str:
    return between.join(clean(str(field)) for field in fields)


def short(identifier: str) -> str:
    """Return the beginning of an identifier; it is enough wherever one is asked for."""
    return identifier[:PREFIX]


def _fields(values: Reply, *names: str) -> list[object]:
    return [field for name in names for field in (name, values[name])]


def run_line(run: Reply) -> str:
    counts = _fields({**run, "simulated": int(run["simulated"])}, "total", "done", "simulated")
    return line("run", short(run["id"]), run["state"], *counts, f"name:{run['name']}")


def status_lines(run: Reply, pending: Reply) -> Iterator[str]:
    yield line("run", short(run["id"]))
    yield line("state", run["state"])
    if run["note"]:
        yield line("note", run["note"])
    if run["simulated"]:
        yield line("simulated", 1)
    parts = (run["progress"]["outputs"], run["progress"]["calls"])
    calls = {name: sum(part[name] for part in parts) for name in parts[0]}
    if calls["failed"] or calls["waiting"]:
        yield line("calls", calls["total"], *_fields(calls, "done", "failed", "waiting"))
    yield line(*_fields(pending, "total", "done", "pending"))
    for task in pending["tasks"][:1]:
        prompt = clean(latest(task["prompt_text"]))[:LONGEST_PROMPT].rstrip()
        yield line("next-task", short(task["id"]), f"prompt:{prompt}")
        yield from map(verdict_line, json.loads(task.get("verdicts") or "[]"))


def verdict_line(verdict: Reply) -> str:
    scores = (verdict.get("score_a"), verdict.get("score_b"))
    words = "-" if None in scores else "v".join(f"{score:g}" for score in scores)
    return line(verdict["judge_model"], f"winner:{verdict['winner'] or 'err'}", f"scores:{words}")


def voted_line(voted: int, skipped: int, *, unblinded: bool = False) -> str:
    return line("voted", voted, "skipped", skipped, *(("unblinded", 1) if unblinded else ()))


def result_lines(results: Reply) -> Iterator[str]:
    """Write a row for each judge, by overall agreement; the command says what stands in it."""

    def figure(name: str, decimals: int = 1) -> str:
        return "-" if row[name] is None else fixed(row[name], decimals)

    for row in results["leaderboard"]:
        yield line(
            row["rank"] or "-",
            row["judge"],
            figure("elo", 0),
            figure("agree_rate"),
            row["agree"],
            row["total"],
            *(figure(f"overall_{name}") for name in ("agreement", "low", "high")),
            *(figure(f"elo_other_orders_{end}", 0) for end in ("low", "high")),
            row["elo_note"] or "-",
            between="\t",
        )
    vote_counts = results["overall_as_of"]
    yield line("as-of-vote", vote_counts["votes"], "newer", vote_counts["newer"])


def findings_lines(findings: Reply) -> Iterator[str]:
    yield line("words", findings["words"])
    yield from (line("more", point) for point in findings["more"])
    yield from (line("note", note) for note in findings.get("notes", ()))
    yield from (line("silent", words) for words in findings.get("silent", ()))
    yield line("as-of-vote", findings["as_of"]["votes"], "newer", findings["newer"])
    yield from (line(*row, between="\t") for row in findings["rows"])


def share_line(share: Reply) -> str:
    """Write a link that was made before: what it shows, and whether it lets anybody in.

    Examples
    --------
    >>> share = {"id": 3, "frozen_seq": 160, "views": 2, "revoked_at": None, "expires_at": None}
    >>> share_line({**share, "token_begins": "x7Kp2a", "label": "press"})
    'share|3|frozen|160|views|2|token:x7Kp2a|label:press'
    """
    is_frozen, ends = share["frozen_seq"] is not None, list[object]()
    if share["revoked_at"] or share["expires_at"]:
        name = "revoked" if share["revoked_at"] else "expires"
        ends = [name, share["revoked_at"] or share["expires_at"]]
    state = ["frozen", share["frozen_seq"]] if is_frozen else ["live"]
    words = [f"token:{share['token_begins']}", f"label:{share['label']}"]
    return line("share", share["id"], *state, "views", share["views"], *ends, *words)


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
    first, *others = [short(run) for run in report["runs"]] or [""]
    yield line("imported", first, *_fields(report["new"], *report["new"]))
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
    """Write what a server refused as one line, the first wrong rows of a file with it."""
    details = reply["detail"] if isinstance(reply["detail"], list) else [reply["detail"]]
    more = [
        _joined(_place(error), error["field"], error["why"]) for error in reply.get("errors", [])
    ]
    more = [*more[:MOST_ROWS], *map(clean, reply.get("notes", []))]
    return _joined("; ".join(map(_detail, details)), "; ".join(more))


def _joined(*parts: str | None) -> str:
    return ": ".join(clean(part) for part in parts if part)


def _place(error: Reply) -> str:
    return f"{error['file']}:{error['row']}" if error["row"] else error["file"]


def _detail(detail: object) -> str:
    if not isinstance(detail, dict):
        return clean(str(detail))
    return _joined(detail.get("path"), detail.get("message")) or clean(json.dumps(detail))


def variant_lines(workshop: Reply) -> Iterator[str]:
    state = "open" if workshop["is_tuning"] else "ended" if workshop["is_split"] else "none"
    judge_in_use = ["in-use", workshop["in_use"]] if workshop["in_use"] else []
    yield line("tuning", state, "held-out-looks", workshop["held_out_looks"], *judge_in_use)
    for variant in workshop["variants"]:
        following, figure = variant["next"], variant["tuning"]
        usd = following and following["usd"]
        step = following and [following["step"], following["items"], following["calls"]]
        yield "\t".join(
            [
                *(clean(variant["name"]), clean(variant["model"]) or "-"),
                *(_percent(figure[name]) for name in ("value", "low", "high")),
                str(figure["n"]),
                _percent(variant["self_agreement"]["value"]),
                *(map(str, step) if step else ["-"] * 3),
                "-" if usd is None else f"{usd:.4f}",
            ]
        )


def disagreement_lines(reply: Reply) -> Iterator[str]:
    for row in reply["disagreements"]:
        about = [row["item"], row["verdict"], row["people"], row["tag"] or "-", row["reason"]]
        yield "\t".join(map(clean, about))


def held_out_lines(looked: Reply) -> Iterator[str]:
    figure, gap = looked["held_out"], looked["gap"]
    shares = [_percent(figure[name]) for name in ("value", "low", "high")]
    points = "-" if gap is None else fixed(gap, 1)
    yield "\t".join([clean(looked["name"]), *shares, str(figure["n"]), points])
    if check := looked["check"]:
        differences = [_percent(check[name]) for name in ("difference", "low", "high")]
        odds = [fixed(check[name], 1) for name in ("evidence", "evidence_against")]
        about = [*differences, str(check["items"]), *odds, str(check["needed"]), check["verb"]]
        yield "\t".join([clean(looked["in_use"]), *about])
    yield line("held-out-looks", looked["held_out_looks"])


def _percent(share: float | None) -> str:
    return "-" if share is None else fixed(100 * share, 1)


def plan_lines(plans: Reply) -> Iterator[str]:
    for method in ("evidence", "interval"):
        plan = plans[method]
        if plan["items"] is None:
            yield line(method, "more than 20000 items")
        else:
            yield line(
                method, *_fields(plan, "items", "votes", "people"), f"hours:{plan['hours']:.1f}"
            )
    yield line("saving", f"at most {_percent(plans['saving'])} % of the votes")

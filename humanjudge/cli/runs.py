"""Commands about runs: create, watch, list, stop, resume, try again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import click

from humanjudge.cli import lines
from humanjudge.cli.client import Client, run_path
from humanjudge.cli.failed import Code, Failed
from humanjudge.cli.place import connect

REACHED = ("voting", "complete")
ENDED = ("stopped", "failed")
LOOK_SECONDS = 0.5
# A server that is being restarted is waited for.
PATIENCE_SECONDS = 30.0
MOST_A_PAGE = 200

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
timeout = click.option(
    "--timeout", type=click.FloatRange(min=0), default=3600, show_default=True, help="Seconds."
)


@click.command("judge-eval-create")
@click.option("--config", metavar="FILE", help="A config as JSON; - reads it from stdin.")
@click.option("--name", help="Call the run this.")
@click.option("--project", help="Name or identifier of the project it belongs to.")
@click.option("--kind", type=click.Choice(["svg", "text"]), help="Without a config: which outputs.")
@click.option("--draft", is_flag=True, help="Do not start it.")
@click.option("--wait", is_flag=True, help="Wait until people can vote, or it has failed.")
@timeout
@as_json
def create(config: str | None, wait: bool, timeout: float, as_json: bool, **given: Any) -> None:
    """Make a run of a config; without one, of the demo's outputs and the baseline judges."""
    client = connect()
    if config is None:
        if given["draft"]:
            raise Failed(Code.USAGE, "--draft: a run of the demo has nothing to start")
        asked = {name: given[name] for name in ("name", "project", "kind") if given[name]}
        made = client.post("/runs/demo", asked)
    else:
        if given["kind"]:
            raise Failed(Code.USAGE, "--kind: the kind of a run with a config stands there")
        made = client.post("/runs", _config(config, given))
    if not as_json:
        click.echo(lines.line("created", lines.short(made["id"])))
    reached = _wait(client, made["id"], timeout) if wait else None
    if as_json or reached:
        state = [lines.line("state", reached["state"])] if reached else []
        lines.show(reached or made, state, as_json=as_json)
    if reached and reached["state"] in ENDED:
        raise Failed(Code.REFUSED, f"{reached['state']}: {reached['note']}")


def _config(source: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        config = json.loads(raw, object_pairs_hook=_once)
    except OSError as error:
        raise Failed(Code.USAGE, f"cannot read {source}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Failed(Code.INVALID, f"{source} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise Failed(Code.INVALID, f"{source}: must be an object")
    config |= {name: given[name] for name in ("name", "project") if given[name]}
    if given["draft"]:
        config["start"] = False
    return {"start": True, **config}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return found


def _wait(client: Client, run: str, seconds: float) -> dict[str, Any]:
    """Return the run once it has got as far as it gets without people."""
    started = answered = monotonic()
    while True:
        try:
            found: dict[str, Any] = client.get(run_path(run))
            answered = monotonic()
            if found["state"] in (*REACHED, *ENDED, "draft"):
                return found
        except Failed as failed:
            if failed.code != Code.UNREACHABLE or monotonic() - answered > PATIENCE_SECONDS:
                raise
        if monotonic() - started >= seconds:
            raise Failed(Code.TIMED_OUT, f"{lines.short(run)} is still at work; it goes on")
        sleep(LOOK_SECONDS)


@click.command("judge-eval-status")
@click.argument("run")
@click.option("--blind", is_flag=True, help="Do not ask what the judges said.")
@as_json
def status(run: str, blind: bool, as_json: bool) -> None:
    """Where a run stands, which pair is next, and what the judges say of it.

    Whoever was shown what the judges say of a pair does not vote blindly on it any more: such a
    vote is kept apart. --blind does not ask for it.
    """
    client = connect()
    found = client.get(run_path(run))
    verdicts = "false" if blind else None
    pending = client.get(run_path(found["id"], "judge-eval", "pending"), limit=1, verdicts=verdicts)
    both = {"run": found, "pending": pending}
    lines.show(both, lines.status_lines(found, pending), as_json=as_json)


@click.command("list-runs")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@as_json
def list_runs(limit: int, as_json: bool) -> None:
    """The runs that this key knows, the newest first."""
    client = connect()
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(found) < limit:
        wanted = min(limit - len(found), MOST_A_PAGE)
        page = client.get("/runs", limit=wanted, cursor=cursor)
        found += page["runs"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    if found or as_json:
        lines.show(found, map(lines.run_line, found), as_json=as_json)


@click.command("stop")
@click.argument("run")
@as_json
def stop(run: str, as_json: bool) -> None:
    """Make no more calls and take no more votes."""
    _done("stopped", connect().post(run_path(run, "stop")), as_json)


@click.command("resume")
@click.argument("run")
@click.option("--budget", metavar="USD", type=float, help="The run may cost this much in all.")
@as_json
def resume(run: str, budget: float | None, as_json: bool) -> None:
    """Go on where a run was stopped."""
    body = {} if budget is None else {"budget_usd": budget}
    _done("resumed", connect().post(run_path(run, "resume"), body), as_json)


@click.command("start")
@click.argument("run")
@as_json
def start(run: str, as_json: bool) -> None:
    """Start a draft."""
    _done("started", connect().post(run_path(run, "start")), as_json)


@click.command("retry")
@click.argument("run")
@as_json
def retry(run: str, as_json: bool) -> None:
    """Ask again for everything that failed."""
    reply = connect().post(run_path(run, "retry"))
    _done("retried", reply, as_json, "calls", reply["calls"])


def _done(what: str, reply: dict[str, Any], as_json: bool, *more: object) -> None:
    line = lines.line(what, lines.short(reply["id"]), *more)
    lines.show(reply, [line], as_json=as_json)


COMMANDS = (create, status, list_runs, start, stop, resume, retry)

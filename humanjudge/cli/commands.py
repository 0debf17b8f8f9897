"""Every command. It talks to the server's API and returns the reply, with the lines made of it."""

import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeAlias
from urllib.parse import quote

import click

from humanjudge.cli import lines
from humanjudge.cli.client import (
    CODES,
    Client,
    Code,
    Failed,
    connect,
    filled_fields,
    run_path,
    trying,
)
from humanjudge.core import strict_json
from voting.items.choices import FIXED
from voting.ledger import chain

Printed: TypeAlias = tuple[object, Iterable[str]]

AUTO = "auto"
ENDED = ("stopped", "failed")
LOOK_SECONDS = 0.3
# Figures follow votes and verdicts within seconds where workers run.
COUNTING_SECONDS = 60
# A server that is being restarted is waited for.
PATIENCE_SECONDS = 30.0
MOST_A_PAGE = 200
FILE = click.Path(path_type=Path)
# As the server names them.
FORMATS = (
    "jsonl csv rows labels labels-parquet dpo kto judge-training label-studio argilla votes ledger"
).split()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="humanjudge", message="%(package)s %(version)s")
def humanjudge() -> None:
    """Make runs, vote on them, read who judges like people.

    RUN is the identifier of a run; its first characters are enough. The server and the key
    are those of HUMANJUDGE_URL and HUMANJUDGE_API_KEY, or what a start left on this machine.

    `humanjudge up` starts a server here, `humanjudge manage` is Django's command line for it.

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no answer, 4 not allowed, 5 not found,
    6 conflict, 7 invalid, 8 timed out.
    """


def command(name: str) -> Callable[[Callable[..., Printed | None]], click.Command]:
    """Declare a command that prints what it returns: the reply as JSON, or its lines."""

    def declared(function: Callable[..., Printed | None]) -> click.Command:
        @humanjudge.command(name)
        @click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
        @functools.wraps(function)
        def run(as_json: bool, **given: Any) -> None:
            if printed := function(**given):
                _print(*printed)

        return run

    return declared


def _print(reply: object, texts: Iterable[str]) -> None:
    if click.get_current_context().params["as_json"]:
        texts = [json.dumps(reply, ensure_ascii=False, indent=1)]
    for text in texts:
        click.echo(text)


def seconds(default: int, words: str) -> Callable[..., Any]:
    bounds = click.FloatRange(min=0)
    return click.option("--timeout", type=bounds, default=default, show_default=True, help=words)


def _object(path: Path | str) -> strict_json.JsonObject:
    try:
        with trying("read", path):
            raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        value = strict_json.loads(raw.decode("utf-8-sig"))
    except ValueError as error:
        raise Failed(Code.INVALID, f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Failed(Code.INVALID, f"{path}: must be an object")
    return value


@command("judge-eval-create")
@click.option("--config", metavar="FILE", help="A config as JSON; - reads it from stdin.")
@click.option("--name", help="Call the run this.")
@click.option("--project", help="Name or identifier of the project it belongs to.")
@click.option("--kind", type=click.Choice(["svg", "text"]), help="Without a config: which outputs.")
@click.option("--draft", is_flag=True, help="Do not start it.")
@click.option("--wait", is_flag=True, help="Wait until people can vote, or it has failed.")
@seconds(3600, "Seconds.")
def create(
    config: str | None, draft: bool, wait: bool, timeout: float, **named: str | None
) -> Printed | None:
    """Make a run of a config; without one, of the demo's outputs and the baseline judges."""
    if config is None and draft:
        raise Failed(Code.USAGE, "--draft: a run of the demo has nothing to start")
    if config is not None and named["kind"]:
        raise Failed(Code.USAGE, "--kind: the kind of a run with a config stands there")
    client = connect()
    if config is None:
        run = client.post("/runs/demo", filled_fields(**named))
    else:
        start = {"start": False} if draft else {}
        run = client.post(
            "/runs", {"start": True, **_object(config), **filled_fields(**named), **start}
        )
    created = lines.line("created", lines.short(run["id"]))
    if not wait:
        return run, [created]
    if not click.get_current_context().params["as_json"]:
        click.echo(created)
    reached = reached_by(client, run["id"], timeout)
    _print(reached, [lines.line("state", reached["state"])])
    require_going_on(reached)
    return None


def require_going_on(run: lines.Reply) -> None:
    if run["state"] in ENDED:
        raise Failed(Code.REFUSED, f"{run['state']}: {run['note']}")


def reached_by(client: Client, run: str, timeout: float) -> lines.Reply:
    """Return the run once it has got as far as it gets without people."""
    started = answered = monotonic()
    while True:
        try:
            reached: lines.Reply = client.get(run_path(run))
            answered = monotonic()
            if reached["state"] in ("draft", "voting", "complete", *ENDED):
                return reached
        except Failed as failed:
            if failed.code != Code.UNREACHABLE or monotonic() - answered > PATIENCE_SECONDS:
                raise
        if monotonic() - started >= timeout:
            raise Failed(Code.TIMED_OUT, f"{lines.short(run)} is still at work; it goes on")
        sleep(LOOK_SECONDS)


@command("judge-eval-status")
@click.argument("run")
@click.option("--blind", is_flag=True, help="Do not ask what the judges said.")
def status(run: str, blind: bool) -> Printed:
    """Where a run stands, which pair is next, and what the judges say of it.

    Whoever was shown what the judges say of a pair does not vote blindly on it any more: such a
    vote is kept apart. --blind does not ask for it.
    """
    client = connect()
    reply = client.get(run_path(run))
    verdicts = "false" if blind else None
    pending = client.get(run_path(reply["id"], "judge-eval", "pending"), limit=1, verdicts=verdicts)
    return {"run": reply, "pending": pending}, lines.status_lines(reply, pending)


@command("list-runs")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
def list_runs(limit: int) -> Printed:
    """The runs that this key knows, the newest first."""
    runs = connect().first(limit, "/runs")
    return runs, map(lines.run_line, runs)


BUDGET = click.option(
    "--budget", "budget_usd", metavar="USD", type=float, help="The run may cost this much in all."
)
CHANGES = [
    ("start", "started", "Start a draft.", []),
    ("stop", "stopped", "Make no more calls and take no more votes.", []),
    ("resume", "resumed", "Go on where a run was stopped.", [BUDGET]),
    ("retry", "retried", "Ask again for everything that failed.", []),
]


def _change(name: str, done: str, words: str, options: Iterable[Callable[..., Any]]) -> None:

    def change(run: str, **body: object) -> Printed:
        reply = connect().post(run_path(run, name), body or None)
        calls = ("calls", reply["calls"]) if "calls" in reply else ()
        return reply, [lines.line(done, lines.short(reply["id"]), *calls)]

    change.__doc__ = words
    for option in (*options, click.argument("run")):
        change = option(change)
    command(name)(change)


for change in CHANGES:
    _change(*change)


@command("leave-out")
@click.argument("run")
@click.argument("judge", required=False)
@click.option("--why", "reason", help="The reason, which the board shows.")
@click.option("--take-back", is_flag=True, help="Let the judge count again.")
def leave_out(run: str, judge: str | None, reason: str | None, take_back: bool) -> Printed:
    """Leave a judge out of all figures of a run, or print those that are left out.

    JUDGE is its name or identifier. Of each that is left out: judge, by whom, why, held calls.
    """
    client, path = connect(), run_path(run, "left-out")
    if judge is None:
        reply = client.get(path)
    elif take_back:
        reply = client.post(run_path(run, "left-out", "take-back"), {"judge": judge})
    elif reason:
        reply = client.post(path, {"judge": judge, "why": reason})
    else:
        raise Failed(Code.USAGE, "--why: say why the judge is left out")
    left_out = reply["judges"]
    return reply, [
        lines.line("left-out", row["name"], row["by"], row["why"], row["held"]) for row in left_out
    ]


@command("judge-eval-vote")
@click.argument("run")
@click.argument("choice", default=AUTO, metavar=f"[{'|'.join([*FIXED, 'LABEL', AUTO])}]")
@click.option("--limit", type=click.IntRange(min=1), help="Vote on so many pairs at most.")
@click.option("--seed", default=0, show_default=True, help="The same seed makes the same votes.")
@click.option("--task", help="Cast one real vote, on this pair, as the key's own voter.")
def vote(run: str, choice: str, limit: int | None, seed: int, task: str | None) -> Printed:
    """Vote on every pair that is pending: the same everywhere, or `auto`, drawn by the seed.

    Such votes are pretended, marked so, and kept out of every run in which people vote.
    With --task it is one real vote.
    """
    if task is None:
        return _simulate_votes(run, choice, limit, seed)
    if choice == AUTO or limit is not None:
        raise Failed(Code.USAGE, "--task: a real vote has a CHOICE of yours, and no --limit")
    body = {"task_id": task, "winner": choice}
    reply = connect().post(run_path(run, "judge-eval", "vote"), body)
    voted, skipped = int(not reply["repeated"]), int(reply["repeated"])
    done = {"voted": voted, "skipped": skipped, "simulated": False, **reply}
    return done, [lines.voted_line(voted, skipped, unblinded=done["unblinded"])]


def _simulate_votes(run: str, choice: str, limit: int | None, seed: int) -> Printed:
    """Vote until nothing is left: the server takes so many at once."""
    client, voted, skipped = connect(), 0, 0
    while True:
        left_to_cast = None if limit is None else limit - voted - skipped
        body = {"choice": choice, "limit": left_to_cast, "seed": seed}
        reply = client.post(run_path(run, "judge-eval", "simulate"), body)
        voted, skipped = voted + reply["voted"], skipped + reply["skipped"]
        is_stuck = not reply["voted"] + reply["skipped"]
        if is_stuck or not reply["left"] or (limit is not None and voted + skipped >= limit):
            done = {"voted": voted, "skipped": skipped, "simulated": True}
            return done, [lines.voted_line(voted, skipped)]


@command("judge-eval-results")
@click.argument("run")
@seconds(60, "Wait so many seconds for this key's own votes to be counted.")
def results(run: str, timeout: float) -> Printed:
    """The judges by overall agreement, baselines last, with the ELO beside it.

    Of each, between tabs: place, judge, ELO, agreement when it answers in percent, votes it agreed
    with, votes; then overall agreement, low, high in percent; from where to where the ELO is in
    other orders of the votes, and whether this one is unusual or why there is no ELO. The last line
    says as of which vote these are, and how many are newer.
    """
    client = connect()
    until = monotonic() + timeout
    while not (reply := client.get(run_path(run, "judge-eval", "results")))["sealed"]:
        if monotonic() >= until:
            raise Failed(Code.TIMED_OUT, "not all votes are counted yet: are the workers running?")
        sleep(LOOK_SECONDS)
    return reply, lines.result_lines(reply)


@command("judge-eval-findings")
@click.argument("run")
@click.option(
    "--part",
    help="tag:…, generator:…, group:… or ballot:decided; the whole run if not given.",
)
@seconds(60, "Wait so many seconds for figures of all votes so far.")
def findings(run: str, part: str | None, timeout: float) -> Printed:
    """How sure the board is: agreement and Bradley-Terry ratings, with 95 % intervals.

    A sentence, and of which vote it is and how many are newer. Then for every judge between tabs:
    judge, overall agreement, low, high, agreement when it answers, low, high, coverage, all in
    percent, Bradley-Terry rating, low, high, its range of ranks, ties.
    """
    client, until = connect(), monotonic() + timeout
    # Figures of all votes that were cast before this was asked, or older ones at the end; not of
    # all votes at all: where people go on voting, those would never come.
    seq: int | None = None
    while True:
        reply = client.get(run_path(run, "findings"), part=part)
        is_ready, is_late = reply["state"] == "ready", monotonic() >= until
        if is_ready and reply["sealed"] and seq is None:
            seq = reply["ledger_seq"]
        is_new = seq is not None and is_ready and reply["as_of"]["seq"] >= seq
        if is_new or (is_ready and is_late):
            return reply, lines.findings_lines(reply)
        if is_late:
            raise Failed(Code.TIMED_OUT, "nothing is computed yet: are the workers running?")
        sleep(LOOK_SECONDS)


@command("plan")
@click.option("--judges", type=int, help="How many are compared.")
@click.option("--agreement", type=float, help="Percent of items two people choose the same on.")
@click.option("--difference", type=float, help="Points of agreement that matter.")
@click.option("--votes", type=int, help="Votes per item.")
@click.option("--ties", type=float, help="Percent of items that are ties or both bad.")
def planned(
    judges: int | None,
    agreement: float | None,
    difference: float | None,
    votes: int | None,
    ties: float | None,
) -> Printed:
    """How many items, votes, hours and people tell two judges apart, before collecting.

    By evidence, and by a 95 % interval that is looked at once. The last line says how many of the
    votes on models a judge saves at most that is as good as a person.
    """
    shares = {"people_agreement": agreement, "difference": difference, "ties": ties}
    params = {name: f"{share / 100:g}" for name, share in shares.items() if share is not None}
    plans = connect().get(
        "/planner", **params, **filled_fields(judges=judges, votes_per_item=votes)
    )
    return plans, lines.plan_lines(plans)


@command("variants")
@click.argument("run")
@click.option("--open", "tuning", flag_value="open", help="Open the run for tuning, once.")
@click.option("--end", "tuning", flag_value="end", help="End it: the half held out is shown.")
@click.option("--held-out", metavar="LABEL", help="Check it on that half; each look is counted.")
@click.option("--use", metavar="LABEL", help="Keep it as the judge in use.")
@click.option("--drop", metavar="LABEL", help="Try it no further.")
def variants(
    run: str, tuning: str | None, held_out: str | None, use: str | None, drop: str | None
) -> Printed:
    """Variants of a judge, by their agreement with people on the tuning half, the best first.

    Of each, between tabs: label, model, agreement, low, high in percent, votes, self-agreement in
    percent, and what it is asked next, of how many items and calls, for how many dollars at most.
    """
    client = connect()
    if held_out:
        looked = client.post(run_path(run, "variants", "look"), {"variant": held_out})
        return looked, lines.held_out_lines(looked)
    if tuning:
        client.post(run_path(run, "variants", "tuning"), {"open": tuning == "open"})
    if label := use or drop:
        client.post(run_path(run, "variants", "decide"), {"variant": label, "use": bool(use)})
    workshop = _counted(client, run)
    return workshop, lines.variant_lines(workshop)


def _counted(client: Client, run: str) -> lines.Reply:
    """Return the workshop of a run; wait a while for figures of all votes and verdicts."""
    until = monotonic() + COUNTING_SECONDS
    while True:
        workshop: lines.Reply = client.get(run_path(run, "variants"))
        if not workshop["behind"] or monotonic() >= until:
            return workshop
        sleep(LOOK_SECONDS)


@command("variant-add")
@click.argument("run")
@click.argument("label")
@click.option("--model", help="Whom it asks; the label if not given.")
@click.option("--provider", help="Where.")
@click.option("--instructions", type=FILE, help="A file with what it is told first.")
@click.option("--example", "examples", multiple=True, metavar="ITEM", help="It is shown this one.")
@click.option("--examples", "draw_examples", type=int, help="So many are drawn and shown to it.")
@click.option("--temperature", help="A number, or none to send none.")
@click.option("--reasoning-effort", help="What its provider calls the level.")
@click.option("--max-tokens", type=int, help="How long its answer may be.")
@click.option("--orders", type=click.Choice(["both", "random", "AB", "BA"]), help="Of a pair.")
@click.option("--samples", type=int, help="Answers of which the majority counts.")
@click.option("--repeats", type=int, help="How often the same is asked, for self-agreement.")
def add_variant(
    run: str,
    label: str,
    instructions: Path | None,
    examples: tuple[str, ...],
    draw_examples: int | None,
    temperature: str | None,
    provider: str | None,
    **options: str | int | None,
) -> Printed:
    """Let a variant join a run whose tuning is open; it is asked nothing yet."""
    spec: dict[str, object] = {"id": label, "examples": examples, **filled_fields(**options)}
    if temperature is not None:
        spec["temperature"] = None if temperature == "none" else float(temperature)
    if instructions is not None:
        with trying("read", instructions):
            spec["instructions"] = instructions.read_text(encoding="utf-8")
    body = {"judges": [spec], **filled_fields(provider=provider, draw_examples=draw_examples)}
    workshop = connect().post(run_path(run, "variants"), body)
    return workshop, lines.variant_lines(workshop)


@command("variant-ask")
@click.argument("run")
@click.argument("label")
@click.option("--wait", is_flag=True, help="Wait until it has answered.")
@seconds(3600, "Seconds.")
def ask_variant(run: str, label: str, wait: bool, timeout: float) -> Printed:
    """Ask a variant its next step: 20 items of the tuning half, that half, then all items."""
    client = connect()
    requested = client.post(run_path(run, "variants", "ask"), {"variant": label})
    if wait:
        reached_by(client, run, timeout)
    return requested, [lines.line("asked", label, "verdicts", requested["verdicts"])]


@command("variant-disagreements")
@click.argument("run")
@click.argument("label")
@click.option("--tag", nargs=2, metavar="ITEM TAG", help="Say what one makes of one of them first.")
def disagreements(run: str, label: str, tag: tuple[str, str] | None) -> Printed:
    """Where a variant and most people disagree on the tuning half.

    Of each, between tabs: item, verdict, what most people say, its tag (judge_wrong, vote_slip,
    rubric_unclear or both_fine), and the judge's reason.
    """
    client = connect()
    if tag:
        body = {"variant": label, "item": tag[0], "tag": tag[1]}
        reply = client.post(run_path(run, "variants", "tag"), body)
    else:
        reply = client.get(run_path(run, "variants", "disagreements"), variant=label)
    return reply, lines.disagreement_lines(reply)


@command("variant-suggest")
@click.argument("run")
@click.argument("label")
@click.option("--model", required=True, help="Who words it anew.")
@click.option("--provider", help="Where.")
@seconds(300, "Seconds to wait for its answer.")
def suggest_wording(
    run: str, label: str, model: str, provider: str | None, timeout: float
) -> Printed:
    """Print another wording of a variant's instructions, by its tagged disagreements: a draft."""
    client, path, until = connect(), run_path(run, "variants", "suggestion"), monotonic() + timeout
    body = {"variant": label, "model": model, **filled_fields(provider=provider)}
    suggestion = client.post(path, body)
    while not (suggestion["instructions"] or suggestion["error"]):
        if monotonic() >= until:
            raise Failed(Code.TIMED_OUT, f"{model} is still being asked")
        sleep(LOOK_SECONDS)
        suggestion = client.get(path)
    if suggestion["error"]:
        raise Failed(Code.REFUSED, f"{model}: {suggestion['error']}")
    return suggestion, [suggestion["instructions"]]


@command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILE)
@click.option("--run", help="Add to this run instead of making one.")
@click.option("--name", help="Name of the new run; that of the first file if not given.")
@click.option("--project", help="Name or identifier of the project of a new run.")
@click.option("--map", "--mapping", "mapping", metavar="FILE", type=FILE, help="Columns, as JSON.")
@click.option("--options", metavar="FILE", type=FILE, help="More, as JSON.")
@click.option("--format", type=click.Choice(["csv", "json", "jsonl", "parquet", "xlsx", "eval"]))
@click.option("--skip-errors", is_flag=True, help="Import the rows that are right.")
def import_files(
    files: tuple[Path, ...],
    run: str | None,
    mapping: Path | None,
    options: Path | None,
    skip_errors: bool,
    **named: str | None,
) -> Printed:
    """Import pairs or single items with verdicts and votes, or one exported bundle.

    Files are CSV, JSON, JSONL or Parquet; what OPTIONS may hold, docs/importing.md says.

    Nothing is imported where one row is wrong, and nothing twice.
    """
    more = (_object(options) if options else {}) | filled_fields(skip_errors=skip_errors)
    fields = filled_fields(
        **named | {"name": "" if run else named["name"] or files[0].stem},
        mapping=json.dumps(_object(mapping)) if mapping else "",
        options=json.dumps(more) if more else "",
    )
    path = run_path(run, "import") if run else "/runs/import"
    report = _import_report(connect(), path, files, fields)
    return report, lines.report_lines(report)


def _import_report(
    client: Client, path: str, files: Sequence[Path], fields: Mapping[str, str]
) -> lines.Reply:
    """Send files, tell how far the import has come, and return its report."""
    job = client.upload(path, files, fields)
    address = f"/imports/{job['id']}"
    try:
        while job["state"] in ("waiting", "reading", "writing"):
            if sys.stderr.isatty():
                click.echo(f"\r{lines.progress(job)}\x1b[K", nl=False, err=True)
            sleep(LOOK_SECONDS)
            job = client.get(address)
    except KeyboardInterrupt:
        # Nobody waits for it any more; what is being written is written to its end.
        client.post(f"{address}/stop")
        raise
    if sys.stderr.isatty():
        click.echo("", err=True)
    if job["state"] != "done":
        reason = lines.refusal((job["report"] or {}) | {"detail": job["detail"]})
        raise Failed(CODES.get(job["status"], Code.REFUSED), reason)
    report: lines.Reply = job["report"]
    return report


@command("export")
@click.argument("run")
@click.option(
    "--format",
    "shape",
    type=click.Choice(FORMATS),
    default="jsonl",
    show_default=True,
    help="A bundle if not given; docs/exporting.md says what each is for.",
)
@click.option("--out", metavar="FILE", type=FILE, help="Not stdout but this.")
def export(run: str, shape: str, out: Path | None) -> Printed | None:
    """Take everything of a run out. It shows what the judges said of every pair."""
    pieces = connect().download(run_path(run, "export"), format=shape)
    if out is None:
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
        return None
    size = _saved(pieces, out)
    return {"file": str(out), "bytes": size}, [lines.line("exported", out, "bytes", size)]


def _saved(pieces: Iterator[bytes], out: Path) -> int:
    """Write a file that is whole or not there; return its size."""
    part = out.with_name(f"{out.name}.part")
    try:
        with trying("write", out):
            with part.open("wb") as file:
                file.writelines(pieces)
                size = file.tell()
            part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return size


@command("share")
@click.argument("run", required=False)
@click.option("--project", help="Identifier of a project, for its report instead of a run's.")
@click.option("--label", help="For whom it is.")
@click.option("--days", type=click.IntRange(1, 3650), help="It expires after so many days.")
@click.option("--frozen", is_flag=True, help="It keeps saying what holds now.")
@click.option("--outputs", is_flag=True, help="It shows the outputs that divide people and judges.")
@click.option("--public", is_flag=True, help="Search engines may list it.")
def share(run: str | None, project: str | None, **options: object) -> Printed:
    """Make a link to a report. Whoever has it reads the report; it is told this once."""
    link = connect().post(_shares_path(run, project), filled_fields(**options))
    return link, [lines.line("shared", link["id"], link["link"])]


@command("list-shares")
@click.argument("run", required=False)
@click.option("--project", help="Identifier of a project, for the links to its own report.")
def list_shares(run: str | None, project: str | None) -> Printed:
    """The links to a report, the newest first."""
    shares = connect().get(_shares_path(run, project))["shares"]
    return shares, map(lines.share_line, shares)


@command("revoke-share")
@click.argument("share", type=click.IntRange(min=1))
@click.argument("run", required=False)
@click.option("--project", help="Identifier of a project, for a link to its own report.")
def revoke_share(share: int, run: str | None, project: str | None) -> Printed:
    """Let nobody in by a link any more; SHARE is its number."""
    reply = connect().post(f"{_shares_path(run, project)}/{share}/revoke")
    return reply, [lines.share_line(reply)]


def _shares_path(run: str | None, project: str | None) -> str:
    if (run is None) == (project is None):
        raise Failed(Code.USAGE, "name a RUN or a --project, and not both")
    return run_path(run, "shares") if run else f"/projects/{quote(project or '', safe='')}/shares"


@command("verify")
@click.argument("file", type=FILE)
@click.option("--head", help="The head that a report prints: with it a cut tail is found too.")
def verify(file: Path, head: str | None) -> Printed:
    """Verify a ledger that was exported, or the bundle of a report, without any server."""
    try:
        with trying("read", file), file.open(encoding="utf-8") as text:
            verified = chain.verify(text, head)
    except UnicodeDecodeError as error:
        raise Failed(Code.REFUSED, f"{file}: not UTF-8") from error
    except chain.ChainBroken as error:
        raise Failed(Code.REFUSED, f"{file}: {error}") from error
    has_head = head is not None
    done = {**asdict(verified), "project": str(verified.project), "head_known": has_head}
    fields = ("verified", verified.entries, "head", verified.head, "known", int(has_head))
    return done, [lines.line(*fields)]

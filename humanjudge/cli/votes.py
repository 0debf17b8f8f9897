"""Commands about votes: cast one, cast pretend ones, and read what all of them say."""

from __future__ import annotations

from time import monotonic, sleep

import click

from humanjudge.cli import lines
from humanjudge.cli.client import Client, run_path
from humanjudge.cli.failed import Code, Failed
from humanjudge.cli.place import connect
from humanjudge.cli.runs import as_json
from voting.choices import CHOICES

AUTO = "auto"


@click.command("judge-eval-vote")
@click.argument("run")
@click.argument("choice", default=AUTO, type=click.Choice([*CHOICES, AUTO]))
@click.option("--limit", type=click.IntRange(min=1), help="Vote on so many pairs at most.")
@click.option("--seed", default=0, show_default=True, help="The same seed makes the same votes.")
@click.option("--task", help="Cast one real vote, on this pair, as the key's own voter.")
@as_json
def vote(
    run: str, choice: str, limit: int | None, seed: int, task: str | None, as_json: bool
) -> None:
    """Vote on every pair that is pending: the same everywhere, or `auto`, drawn by the seed.

    Such votes are pretended, marked so, and kept out of every run in which people vote.
    With --task it is one real vote.
    """
    client = connect()
    if task is None:
        done = _pretend(client, run, choice, limit, seed)
    elif choice == AUTO or limit is not None:
        raise Failed(Code.USAGE, "--task: a real vote has a CHOICE of yours, and no --limit")
    else:
        done = _really(client, run, choice, task)
    line = lines.voted_line(done["voted"], done["skipped"], unblinded=done.get("unblinded", False))
    lines.show(done, [line], as_json=as_json)


def _pretend(client: Client, run: str, choice: str, limit: int | None, seed: int) -> lines.Reply:
    """Vote until nothing is left: the server takes so many at once."""
    voted = skipped = 0
    while True:
        left_to_cast = None if limit is None else limit - voted - skipped
        body = {"choice": choice, "limit": left_to_cast, "seed": seed}
        reply = client.post(run_path(run, "judge-eval", "simulate"), body)
        voted, skipped = voted + reply["voted"], skipped + reply["skipped"]
        is_stuck = not reply["voted"] + reply["skipped"]
        if is_stuck or not reply["left"] or (limit is not None and voted + skipped >= limit):
            return {"voted": voted, "skipped": skipped, "simulated": True}


def _really(client: Client, run: str, choice: str, task: str) -> lines.Reply:
    body = {"task_id": task, "winner": choice}
    reply = client.post(run_path(run, "judge-eval", "vote"), body)
    is_new = not reply["repeated"]
    return {"voted": int(is_new), "skipped": int(not is_new), "simulated": False, **reply}


@click.command("judge-eval-results")
@click.argument("run")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=60,
    show_default=True,
    help="Wait so many seconds for this key's own votes to be counted.",
)
@as_json
def results(run: str, timeout: float, as_json: bool) -> None:
    """The judges by overall agreement, with the ELO beside it.

    Of each, between tabs: place, judge, ELO, agreement when it answers in percent, votes it agreed
    with, votes; then overall agreement, low, high in percent, and the ELO's order luck. The last
    line says as of which vote these are, and how many are newer.
    """
    client = connect()
    until = monotonic() + timeout
    while not (found := client.get(run_path(run, "judge-eval", "results")))["sealed"]:
        if monotonic() >= until:
            raise Failed(Code.TIMED_OUT, "not all votes are counted yet: are the workers running?")
        sleep(0.1)
    lines.show(found, lines.result_lines(found), as_json=as_json)


@click.command("judge-eval-findings")
@click.argument("run")
@click.option("--part", help="tag:…, generator:… or ballot:decided; the whole run if not given.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=60,
    show_default=True,
    help="Wait so many seconds for figures of all votes so far.",
)
@as_json
def findings(run: str, part: str | None, timeout: float, as_json: bool) -> None:
    """How sure the board is: agreement and Bradley-Terry ratings, with 95 % intervals.

    A sentence, and of which vote it is and how many are newer. Then for every judge between tabs:
    judge, overall agreement, low, high, agreement when it answers, low, high, coverage, all in
    percent, Bradley-Terry rating, low, high, its range of ranks, ties.
    """
    found = _computed(connect(), run_path(run, "findings"), part, monotonic() + timeout)
    lines.show(found, lines.findings_lines(found), as_json=as_json)


def _computed(client: Client, path: str, part: str | None, until: float) -> lines.Reply:
    """Return figures of all votes that were cast before this was asked, or older ones at the end.

    Not of all votes at all: where people go on voting, those would never come.
    """
    wanted: int | None = None
    while True:
        found: lines.Reply = client.get(path, part=part)
        is_ready = found["state"] == "ready"
        if is_ready and found["sealed"] and wanted is None:
            wanted = found["ledger_seq"]
        if is_ready and wanted is not None and found["as_of"]["seq"] >= wanted:
            return found
        if monotonic() >= until:
            if is_ready:
                return found
            raise Failed(Code.TIMED_OUT, "nothing is computed yet: are the workers running?")
        sleep(0.2)


COMMANDS = (vote, results, findings)

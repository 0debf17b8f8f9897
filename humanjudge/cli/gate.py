"""`humanjudge gate`: a build waits for it, so it ends with 0, 1 or 3, and with 2 for all else."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import click

from humanjudge.cli import lines
from humanjudge.cli.client import Client, Code, Failed, connect, filled_fields, run_path, trying
from humanjudge.cli.commands import FILE, LOOK_SECONDS, humanjudge, reached_by, require_going_on
from humanjudge.core.text import number_of

SHARE = click.FloatRange(0, 1)
Condition: TypeAlias = str | float | None
# What changes while the votes and verdicts stay.
_OF_THE_MOMENT = ("state", "seq")
_MARKS = re.compile(r"[^\w\s.,%()+-]|_|\.(?=[^\W\d])")


def decide(
    run: str,
    judge: str,
    *,
    ask: bool = False,
    provider: str = "",
    timeout: float = 600,
    at: int | None = None,
    **conditions: Condition,
) -> lines.Reply:
    """Return what a server decides; with `ask`, once the judge has answered what it had not."""
    with closing(connect()) as client:
        if ask:
            missing = {"judge": judge, "at": at, **filled_fields(provider=provider)}
            client.post(run_path(run, "gate", "ask"), missing)
            require_going_on(reached_by(client, run, timeout))
        reply = decided(client, run, timeout, {"judge": judge, "at": at, **conditions})
    if ask and reply["unanswered"]:
        reason = f"it has no verdict on {number_of(reply['unanswered'], 'item')}"
        raise Failed(Code.REFUSED, f"{reason}: see the page of the run, or leave --ask out")
    return reply


def decided(
    client: Client, run: str, timeout: float, query: Mapping[str, Condition]
) -> lines.Reply:
    """Return what a server decides by figures of all votes and verdicts that there are by now."""
    until = monotonic() + timeout
    # 0 is a condition too.
    sent = {name: str(value) for name, value in query.items() if value is not None}
    while True:
        reply: lines.Reply = client.get(run_path(run, "gate"), **sent)
        if reply["state"] == "ready":
            return {name: reply[name] for name in reply if name not in _OF_THE_MOMENT}
        # Votes that are sealed while it waits must not have it wait for ever.
        sent.setdefault("known", str(reply["ledger_seq"]))
        if monotonic() >= until:
            raise Failed(Code.TIMED_OUT, "no figures of all votes yet: are the workers running?")
        sleep(LOOK_SECONDS)


@humanjudge.command("gate")
@click.argument("run")
@click.option("--judge", required=True, metavar="VARIANT", help="Name or identifier of a judge.")
@click.option("--min-agreement", type=SHARE, help="Overall agreement is above this share.")
@click.option("--beats-floor", is_flag=True, help="It beats every baseline.")
@click.option("--not-worse-than", metavar="VARIANT", help="Another judge of the run.")
@click.option("--margin", type=SHARE, help="By less than this share, with --not-worse-than.")
@click.option("--like-people", is_flag=True, help="It passes the Alt-Test.")
@click.option("--epsilon", type=click.FloatRange(0, 1, max_open=True), help="Of the Alt-Test.")
@click.option("--at", type=click.IntRange(min=0), help="Votes up to this entry of the ledger only.")
@click.option("--ask", is_flag=True, help="First ask the judge where it has given no verdict.")
@click.option("--provider", default="", help="With --ask: of a judge that is new in the run.")
@click.option("--timeout", type=click.FloatRange(min=0), default=600, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
@click.option("--junit", type=FILE, metavar="FILE", help="Write JUnit XML too.")
@click.option("--markdown", type=FILE, metavar="FILE", help="Write a summary for a build too.")
def gate(
    run: str, as_json: bool, junit: Path | None, markdown: Path | None, **options: Any
) -> None:
    """May a judge go on? Ends with 0 passed, 1 failed, 3 too few votes to say.

    With 2 it could not be said: wrong usage, no server or provider, or votes that are no people's.
    Where several conditions are given, one that failed decides, else one that is not settled.
    """
    try:
        reply = decide(run, **options)
        for path, write in ((junit, junit_xml), (markdown, summary)):
            if path is not None:
                with trying("write", path):
                    path.write_text(write(reply), encoding="utf-8")
    except Failed as failed:
        raise Failed(Code.USAGE, str(failed)) from failed
    except Exception as error:
        # A fault of ours must not read as a judge that failed.
        raise Failed(Code.USAGE, f"{type(error).__name__}: {error}") from error
    text = json.dumps(reply, ensure_ascii=False, indent=1) if as_json else "\n".join(words(reply))
    click.echo(text)
    raise click.exceptions.Exit(reply["code"])


def words(reply: lines.Reply) -> Iterator[str]:
    yield lines.line("gate", reply["result"], f"judge:{reply['judge_name']}")
    counts = [field for name in ("votes", "people", "items") for field in (name, reply[name])]
    yield lines.line("anchors", lines.short(reply["run"]), "at", reply["at"], *counts)
    for check in reply["checks"]:
        yield lines.line(check["name"], check["result"], check["words"])
    yield from (lines.line("note", note) for note in reply["notes"])


def junit_xml(reply: lines.Reply) -> str:
    """Write a test suite; what is not settled is an error, so that no build takes it for passed.

    Examples
    --------
    >>> check = {"name": "beats-floor", "code": 1, "result": "failed", "words": "worse than <b>"}
    >>> reply = {"judge_name": 'a"b', "run": "7", "at": 9, "notes": ["Best of 2 wordings."]}
    >>> print(junit_xml({**reply, "checks": [check]}))
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites>
    <testsuite name="humanjudge gate" tests="1" failures="1" errors="0" time="0">
    <testcase classname='run 7 at entry 9: a"b' name="beats-floor" time="0">
    <failure message="worse than &lt;b&gt;" type="failed"/>
    </testcase>
    <system-out>Best of 2 wordings.</system-out>
    </testsuite>
    </testsuites>
    <BLANKLINE>
    """
    codes = [check["code"] for check in reply["checks"]]
    about = f"run {reply['run']} at entry {reply['at']}: {reply['judge_name']}"
    cases = "".join(_case(_attribute(about), check) for check in reply["checks"])
    counts = f'tests="{len(codes)}" failures="{codes.count(1)}" errors="{codes.count(3)}"'
    notes = escape("\n".join(map(lines.clean, reply["notes"])))
    cases += f"<system-out>{notes}</system-out>\n"
    suite = f'<testsuite name="humanjudge gate" {counts} time="0">\n{cases}</testsuite>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{suite}\n</testsuites>\n'


def _case(about: str, check: lines.Reply) -> str:
    start = f'<testcase classname={about} name={_attribute(check["name"])} time="0"'
    if not check["code"]:
        return f"{start}/>\n"
    kind = "failure" if check["code"] == 1 else "error"
    message, result = _attribute(check["words"]), _attribute(check["result"])
    return f"{start}>\n<{kind} message={message} type={result}/>\n</testcase>\n"


def _attribute(text: str) -> str:
    # What XML has no way to write does not print either.
    return quoteattr(lines.clean(text))


def summary(reply: lines.Reply) -> str:
    """Write a summary in Markdown, in which names are only text.

    Examples
    --------
    >>> check = {"name": "beats-floor", "result": "passed", "words": "it beats every baseline"}
    >>> counts = {"votes": 60, "people": 3, "items": 20, "notes": []}
    >>> reply = {"judge_name": "a*b", "run_name": "R", "result": "passed", "at": 9}
    >>> print(summary({**reply, **counts, "checks": [check]}))
    ### Gate: passed
    <BLANKLINE>
    Judge a&#42;b on 60 votes of 3 people on 20 items of R, up to entry 9 of its ledger.
    <BLANKLINE>
    | condition | result | why |
    |---|---|---|
    | beats-floor | passed | it beats every baseline |
    <BLANKLINE>
    """
    votes = f"{reply['votes']} votes of {reply['people']} people on {reply['items']} items"
    place = f"{_plain(reply['run_name'])}, up to entry {reply['at']} of its ledger"
    rows = [
        f"| {check['name']} | {check['result']} | {_plain(check['words'])} |"
        for check in reply["checks"]
    ]
    return "\n".join(
        [
            *(f"### Gate: {reply['result']}", ""),
            *(f"Judge {_plain(reply['judge_name'])} on {votes} of {place}.", ""),
            *("| condition | result | why |", "|---|---|---|", *rows, ""),
            *(f"{_plain(note)}\n" for note in reply["notes"]),
        ]
    )


def _plain(text: str) -> str:
    """Write a text so that Markdown reads nothing in it: no mark, no link, no name of somebody."""
    return _MARKS.sub(lambda sign: f"&#{ord(sign[0])};", lines.clean(text))

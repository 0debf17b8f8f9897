"""PathScore: the tasks of a judge evaluation run, as exported or as its API gives them.

A task is one pair: ``id, prompt_text, svg_a, svg_b, verdicts, human_winner, status`` and more.
``verdicts`` is a list, or a JSON text that holds one. The tasks are a JSON array, a JSON Lines file
or the list ``tasks`` of an object, whose ``judges`` (or those of ``config`` or ``run.config``) give
the run's order of judges.

Source: the PathScore judge evaluation; the exact rules stand in docs/scoring.md.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import BinaryIO

from humanjudge.lib.strict_json import Cursor, NotJson, loads
from judge_eval.exchange.containers import format_of
from judge_eval.exchange.mapping import own_rows, rows_of
from judge_eval.exchange.row_models import Item, JudgeOrder, LeftOut, Misfit, Values, plain
from judge_eval.exchange.sources import Record

VOTER = "pathscore"


def fits(record: Values) -> bool:
    return "verdicts" in record and ("human_winner" in record or "gen_a_id" in record)


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    """Read the tasks of a run: a row per verdict, and one more for the vote.

    Verdicts stand in the run's order of judges, or where the file states none, of each task. A JSON
    file is passed over once before, since `judges` may stand behind the tasks.
    """
    order: tuple[str, ...] = ()
    if (file_format or format_of(name)) == "json":
        order = _config_order(stream)
        stream.seek(0)
    if order:
        yield JudgeOrder(name, order)
    yield from rows_of(stream, name, file_format, partial(_task, name, order))


def _config_order(stream: BinaryIO) -> tuple[str, ...]:
    cursor = Cursor(stream)
    try:
        if cursor.peek() != "{":
            return ()
        for key in cursor.members():
            if key not in ("judges", "config", "run"):
                cursor.skip()
                continue
            value = cursor.value()
            if order := _judges(value if key == "run" else {key: value}):
                return order
    except NotJson:
        pass  # what is wrong with the file is told when its records are read
    return ()


def _judges(value: object) -> tuple[str, ...]:
    """Find the judges in a run, in its config, or in a config written as a JSON text."""
    if isinstance(value, str):
        value = loads(value)
    if not isinstance(value, dict):
        return ()
    judges = value.get("judges")
    if judges and isinstance(judges, list) and all(isinstance(judge, str) for judge in judges):
        return tuple(judges)
    return _judges(value.get("config"))


def _task(name: str, order: Sequence[str], record: Record) -> Iterator[Item]:
    pair = _pair(record)
    statements = list(_verdicts(record.values.get("verdicts"), order))
    seen: set[object] = set()
    for verdict in statements:
        judge = verdict["judge"]
        if judge in seen:
            yield LeftOut(name, record.line, f"{judge} was stated before on {pair['pair']}")
        else:
            seen.add(judge)
            yield from own_rows(name, record.line, pair | verdict)
    if record.values.get("human_winner") is not None:
        yield from _vote(name, record, pair)
    elif not statements:
        yield from own_rows(name, record.line, pair)


def _pair(record: Record) -> Values:
    task = record.values
    kind = next((kind for kind in ("svg", "text") if f"{kind}_a" in task), None)
    return {
        # An excerpt of a run may leave the ids out; the place in the file stands for them.
        "pair": plain("id", task.get("id", record.line)),
        "prompt": task.get("prompt_text"),
        "prompt_id": task.get("prompt_id"),
        "kind": kind,
        "generator_a": task.get("model_a"),
        "generator_b": task.get("model_b"),
        "output_a": task.get(f"{kind}_a"),
        "output_b": task.get(f"{kind}_b"),
    }


def _vote(name: str, record: Record, pair: Values) -> Iterator[Item]:
    task = record.values
    status = task.get("status", "complete")
    if status != "complete":
        yield LeftOut(name, record.line, f"the task is {status}: its vote was not counted there")
        return
    vote = {
        "voter": VOTER,
        "vote": task["human_winner"],
        "voted_at": _moment(task.get("completed_at")),
    }
    yield from own_rows(name, record.line, pair | vote)


def _verdicts(raw: object, order: Sequence[str]) -> Sequence[Values]:
    if isinstance(raw, str):
        try:
            raw = loads(raw)
        except NotJson as error:
            raise Misfit("verdicts", str(error)) from error
    if raw is None:
        return []
    if not isinstance(raw, list) or not all(isinstance(verdict, dict) for verdict in raw):
        raise Misfit("verdicts", "must be a list of verdicts, or a JSON text that holds one")
    places = {judge: place for place, judge in enumerate(order)}
    raw.sort(key=lambda verdict: places.get(str(verdict.get("judge_model")), len(places)))
    return [_verdict(verdict) for verdict in raw]


def _verdict(value: Values) -> Values:
    judge = plain("verdicts.judge_model", value.get("judge_model"))
    if value.get("winner") is None:
        # PathScore keeps the scores of a reply whose winner it could not read; they score nothing.
        error = value.get("error") or "no winner could be read"
        return {"judge": judge, "error": error, "feedback": value.get("feedback")}
    scores = {name: value.get(name) for name in ("score_a", "score_b", "feedback")}
    return {"judge": judge, "verdict": value["winner"], **scores}


def _moment(raw: object) -> object:
    """Return the time that milliseconds since 1970 stand for; anything else as it is."""
    if not isinstance(raw, int) or isinstance(raw, bool):
        return raw
    try:
        return datetime.fromtimestamp(raw / 1000, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise Misfit("completed_at", f"{raw} is no time in milliseconds") from error

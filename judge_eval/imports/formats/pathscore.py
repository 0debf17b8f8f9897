"""PathScore: the tasks of a judge evaluation run, as exported or as its API gives them.

A task is one pair: ``id, prompt_text, svg_a, svg_b, verdicts, human_winner, status`` and more.
``verdicts`` is a list, or a JSON text that holds one. The tasks are a JSON array, a JSON Lines file
or the list ``tasks`` of an object, whose ``judges`` (or those of ``config`` or ``run.config``) give
the run's order of judges.

``results`` and ``export/json`` of a run without such tasks hold ``comparisons`` by one judge, whose
drawings stand in ``generations``; of several runs of a judge on one pair the first is taken.

Source: github.com/adamholter/pathscore, JUDGE_EVALUATOR.md and src/server/api/register-routes.cjs;
the exact rules stand in docs/scoring.md.
"""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from humanjudge.core.strict_json import Cursor, NotJson, loads
from judge_eval.imports.containers import format_of
from judge_eval.imports.formats import shapes
from judge_eval.imports.mapping import rows_of
from judge_eval.imports.row_models import (
    InvalidField,
    Item,
    JudgeOrder,
    MadeUp,
    Values,
    checked,
    plain,
)
from judge_eval.imports.sources import Record

VOTER = MadeUp("pathscore")
FITS = (
    ("generation_a_id", "generation_b_id", "judge_model"),
    *(("verdicts", "human_winner"), ("verdicts", "gen_a_id")),
)


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    """Read the tasks of a run: a row per verdict, and one more for the vote.

    Verdicts stand in the run's order of judges, or where the file states none, of each task. A JSON
    file is passed over once before, since `judges` may stand behind the tasks.
    """
    order: tuple[str, ...] = ()
    drawings: dict[object, object] = {}
    if (file_format or format_of(name)) == "json":
        order = _read_judge_order(stream, drawings)
        stream.seek(0)
    if order:
        yield JudgeOrder(name, order)

    def make(record: Record) -> Iterator[Values | str]:
        is_task = "verdicts" in record.values
        with shapes.nested_as("PathScore"):
            yield from _task(order, record) if is_task else _comparison(drawings, record.values)

    yield from rows_of(stream, name, file_format, make)


def _read_judge_order(stream: BinaryIO, drawings: dict[object, object]) -> tuple[str, ...]:
    """Return the run's order of judges, and add the drawings of an exported run by their ids."""
    cursor, order = Cursor(stream), tuple[str, ...]()
    try:
        for key in cursor.members() if cursor.peek() == "{" else ():
            if key == "generations" and cursor.peek() == "[":
                for _ in cursor.elements():
                    drawing = cursor.value()
                    if isinstance(drawing, dict):
                        drawings[drawing.get("id")] = drawing.get("svg_content")
            elif key in ("judges", "config", "run") and not order:
                value = cursor.value()
                order = _judges(value if key == "run" else {key: value})
            else:
                cursor.skip()
    except NotJson:
        pass  # what is wrong with the file is told when its records are read
    return order


def _comparison(drawings: dict[object, object], values: Values) -> Iterator[Values | str]:
    ids = [values["generation_a_id"], values["generation_b_id"]]
    if values.get("judge_run") not in (None, 0, 1):
        yield f"run {values['judge_run']} of {values['judge_model']} on one pair"
        return
    models = {f"generator_{side}": values.get(f"model_{side}_id") for side in "ab"}
    names = {"pair": "__".join(map(str, ids)), "prompt_id": values.get("prompt_id"), "kind": "svg"}
    a, b = (drawings.get(drawing_id) for drawing_id in ids)
    pair = shapes.pair(values.get("prompt_text"), a, b) | models | names
    if values.get("status", "complete") not in ("complete", "error"):
        yield pair
        return
    of_sides = {f"score_{side}": values.get(f"model_{side}_score") for side in "ab"}
    yield pair | _verdict(values | of_sides)
    if values.get("human_winner") is not None:
        yield pair | {"voter": VOTER, "vote": values["human_winner"]}


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


def _task(order: Sequence[str], record: Record) -> Iterator[Values | str]:
    pair, task = _pair(record), record.values
    statements = list(_verdicts(task.get("verdicts"), order))
    judges: set[object] = set()
    for verdict in statements:
        judge = verdict["judge"]
        yield (
            f"{judge} was stated before on {pair['pair']}" if judge in judges else pair | verdict
        )
        judges.add(judge)
    status = task.get("status", "complete")
    if task.get("human_winner") is None:
        yield from () if statements else [pair]
    elif status != "complete":
        yield f"the task is {status}: its vote was not counted there"
    else:
        voted_at = shapes.moment("completed_at", task.get("completed_at"), per_second=1000)
        yield pair | {"voter": VOTER, "vote": task["human_winner"], "voted_at": voted_at}


def _pair(record: Record) -> Values:
    task = record.values
    kind = next((kind for kind in ("svg", "text") if f"{kind}_a" in task), None)
    # An excerpt of a run may leave the ids out; the place in the file stands for them.
    names = {"pair": plain("id", task.get("id", record.line)), "prompt_id": task.get("prompt_id")}
    models = {f"generator_{side}": task.get(f"model_{side}") for side in "ab"}
    a, b = (task.get(f"{kind}_{side}") for side in "ab")
    return shapes.pair(task.get("prompt_text"), a, b) | models | names | {"kind": kind}


def _verdicts(raw: object, order: Sequence[str]) -> Sequence[Values]:
    if isinstance(raw, str):
        raw = checked("verdicts", raw, loads)
    if raw is None:
        return []
    if not isinstance(raw, list) or not all(isinstance(verdict, dict) for verdict in raw):
        raise InvalidField("verdicts", "must be a list of verdicts, or a JSON text that holds one")
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

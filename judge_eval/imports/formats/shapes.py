"""What the readers of several formats share: nested values, and which of them says what.

Answers go by the names of their questions. Of those on a pair the first that is a choice is the
vote, and all others are further answers.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, Final

from humanjudge.core.strict_json import NotJson, loads
from judge_eval.imports import fields
from judge_eval.imports.row_models import InvalidField, Values, checked
from voting.items.choices import SWAPPED
from voting.items.conversations import conversation

PROMPTS: Final = ("prompt", "question", "instruction", "query", "input")
OUTPUTS: Final = ("output", "answer", "response", "completion", "generation", "text")
_SIDES: Final = (
    *(("left", "right"), ("a", "b")),
    *(
        (f"{noun}{sign}{first}", f"{noun}{sign}{second}")
        for noun in OUTPUTS[:4]
        for sign, first, second in (("_", "a", "b"), *((sign, "1", "2") for sign in ("", "_", "-")))
    ),
)
_COMMENTS: Final = ("comment", "reason", "feedback", "explanation", "rationale", "notes")


def pair(prompt: Any, output_a: Any, output_b: Any, **fields: Any) -> Values:
    sides = {"output_a": output_a, "output_b": output_b}
    return filled({"prompt": prompt, "kind": "text", **sides, **fields})


def single(prompt: Any, output: Any, **fields: Any) -> Values:
    return filled({"prompt": prompt, "kind": "text", "output": output, **fields})


def tags(record: Values, *columns: str) -> list[str]:
    """Return what those of some columns say that a record has."""
    return [str(tag) for column in columns if (tag := record.get(column))]


def moment(field: str, raw: object, per_second: int = 1) -> object:
    """Return a number since 1970, or a time without a zone, in UTC; anything else as it is."""
    if isinstance(raw, datetime):
        return raw if raw.tzinfo else raw.replace(tzinfo=UTC)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return raw
    try:
        return datetime.fromtimestamp(raw / per_second, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidField(field, f"{raw} is no time since 1970") from error


def filled(values: Mapping[str, Any]) -> Values:
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def nested_as(title: str) -> Iterator[None]:
    """Tell of a record whose inner values are not what its tool writes, wherever that shows."""
    try:
        yield
    except InvalidField:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InvalidField(None, f"a value in it is not as {title} writes it: {error}") from error


def objects(record: Values, name: str) -> list[Values]:
    parts = parsed(record.get(name)) or []
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise InvalidField(name, "must be a list of objects")
    return parts


def games(record: Values, name: str) -> list[Values]:
    """Return the games of a judge that was asked in one order or two; none may be there."""
    played = parsed(record.get(name))
    if not isinstance(played, list) or len(played) not in (1, 2):
        raise InvalidField(name, "must be a list of one or two games")
    return [game if isinstance(game, dict) else {} for game in played]


def parsed(raw: Any) -> Any:
    """Return what a cell of a table means that is a list or an object written as JSON."""
    if isinstance(raw, str) and raw.lstrip()[:1] in ("[", "{"):
        try:
            return loads(raw.strip())
        except NotJson:
            return raw
    return raw


def content_of(raw: Any) -> Any:
    """Return the text or the messages that an input or output stands for, else its JSON."""
    value = parsed(raw)
    if isinstance(value, dict):
        keys = [name for name in ("messages", "content", *OUTPUTS, *PROMPTS) if name in value]
        names = keys or ([*value] if len(value) == 1 else [])
        if names:
            return content_of(value[names[0]])
    elif isinstance(value, list) and value:
        # Messages, or the parts of one.
        if any(conversation(turns) for turns in (value, [{"role": "user", "content": value}])):
            return value
    elif value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def signed(field: str, raw: object) -> str | None:
    """Return the winner of a number that is below 0 where A is better, and above where B is."""
    return fields.winner_of(0, number(field, raw))


def number(field: str, raw: object) -> float | None:
    return None if raw is None else checked(field, raw, fields.number)


def decision(raw: object) -> str | None:
    """Return the winner that ``A>B``, ``B>>A`` or ``A=B`` names; None of anything else.

    Examples
    --------
    >>> decision("A>>B"), decision("[[A<B]]"), decision("B=A"), decision("A"), decision(None)
    ('A', 'B', 'tie', None, None)
    """
    signs = str(raw).strip(" []\n")
    left, sign, right = signs[:1], signs[1:-1], signs[-1:]
    if {left, right} != {"A", "B"} or sign not in ("=", ">", ">>", "<", "<<"):
        return None
    return "tie" if sign == "=" else left if ">" in sign else right


def verdict_of(verdict: object, field: str = "winner") -> Values:
    """Return a verdict; it has failed where there is none."""
    return {"error": f"no {field} could be read"} if verdict is None else {"verdict": verdict}


def both_orders(winners: Sequence[str | None]) -> Values:
    """Return the verdict of one game, or of two of which the second names the sides exchanged."""
    if None in winners or len(winners) == 1:
        return verdict_of(None if None in winners else winners[0])
    first, second = map(str, winners)
    return {"pick_ab": first, "pick_ba": SWAPPED[second]}


def in_both_orders(texts: Sequence[object]) -> str | None:
    """Return what a judge said in each order as one text."""
    return "\n\n---\n\n".join(text for text in texts if isinstance(text, str) and text) or None


def sides_in(data: Values, named: Sequence[str] = ()) -> Sequence[str]:
    """Return the two fields of a record that are the sides of a pair, if it has some."""
    either = [named, *_SIDES] if len(named) == 2 else _SIDES
    return next((two for two in either if all(data.get(side) is not None for side in two)), ())


def item_of(number: object, data: Values, sides: Sequence[str]) -> Values:
    """Return the pair of these sides, or else the single item, that a record is about."""
    prompt = content_of(next((data[name] for name in PROMPTS if data.get(name)), None))
    if sides:
        generators = {
            f"generator_{letter}": next(filter(None, map(data.get, names)), None)
            for letter, side in zip("ab", sides, strict=True)
            for names in [(f"{side}_model", f"model_{side}", f"model_{letter}")]
        }
        return pair(prompt, *(content_of(data[side]) for side in sides), pair=number, **generators)
    output = content_of(next((data[name] for name in OUTPUTS if data.get(name) is not None), None))
    return single(prompt, output, item=number, generator=data.get("model"))


def statements(
    number: object,
    data: Values,
    sides: Sequence[str],
    author: Values,
    answers: Values,
    **columns: Any,
) -> Iterator[Values | str]:
    """Yield what a person or judge said, who gave answers by question, or why it is nothing.

    The first that ranks fields is a vote on each two of them. An answer called as comments are is
    one; `columns` are further columns of a vote or a verdict.
    """
    is_judge, labels, [name] = "judge" in author, filled(answers), author.values()
    comments = [task for task in labels if task.lower() in _COMMENTS and len(labels) > 1]
    text = "\n".join(str(labels.pop(task)) for task in comments) or None
    vote, comment = ("verdict", "feedback") if is_judge else ("vote", "comment")
    columns = filled({comment: text} | columns)
    for ranks in filter(None, (_ranks(answer, data) for answer in labels.values())):
        names = sorted(ranks, key=lambda side: (side not in sides, side))
        for ranked_pair in combinations(names, 2):
            winner = fields.winner_of(ranks[ranked_pair[1]], ranks[ranked_pair[0]])
            is_all = number is None or {*ranked_pair} == {*sides}
            of_two = number if is_all else "__".join([str(number), *ranked_pair])
            yield item_of(of_two, data, ranked_pair) | author | {vote: winner} | columns
        return
    if not labels:
        yield f"{name} gave no answer"
        return
    item = item_of(number, data, sides)
    if sides:
        places = {"left": "A", "right": "B"} | dict(zip(sides, "AB", strict=True))
        choices = {
            task: choice_of(places.get(str(answer), answer)) for task, answer in labels.items()
        }
        if not (question := next(iter(filled(choices)), None)):
            yield f"{name} does not say which output is better"
            return
        columns[vote] = choices[question]
        del labels[question]
    yield item | author | columns | ({"labels": labels} if labels else {})


def choice_of(answer: object) -> str | None:
    try:
        choice = fields.choice(answer)
    except ValueError:
        return None
    return choice if isinstance(choice, str) else None


def _ranks(answer: Any, data: Values) -> dict[str, float]:
    """Return the ranks of fields, 1 being the best: stated, or by their order in a list."""
    if not isinstance(answer, list) or len(answer) < 2:
        return {}
    is_ranked = all(isinstance(part, dict) and part.keys() >= {"value", "rank"} for part in answer)
    ranks = {
        str(part["value"] if is_ranked else part): float(part["rank"] or 0) if is_ranked else place
        for place, part in enumerate(answer, start=1)
    }
    return ranks if ranks.keys() <= data.keys() else {}

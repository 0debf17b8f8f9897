"""Read a verdict out of a judge's reply, strictly: what cannot be read is never guessed.

The verdict is the last JSON object of the reply, after the judge's thinking, in a fence or not.
A reply whose last object is broken or cut has no verdict, whatever stands before it: a draft is
not an answer. Time is linear in the length of the reply.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from humanjudge.lib.text import excerpt
from judge_eval.prompts.reply_text import without_thinking
from voting.choices import TABLE, Choice

_Object: TypeAlias = dict[str, Any]

LONGEST_REASON: Final = 500
# "both bad" is how people say it; nothing else is stretched.
_WINNERS: Final = {
    name.lower(): choice for choice, row in TABLE.items() for name in (choice, row.short)
}
# A brace that begins a JSON object, not one of prose or of a formula.
_BRACE: Final = re.compile(r'\{(?=[ \t\r\n]*+(?:["}]|\Z))')
# Each fault costs a look at all the text, to name its line: a reply with more of them is no reply.
_MOST_FAULTS: Final = 100


class VerdictUnreadable(ValueError):
    """There is no verdict in a reply; the text is one line that a judge can be told."""


class ParsedVerdict(NamedTuple):
    """What a judge said, of the outputs as it was shown them; scores are from 0 to 10."""

    winner: Choice
    score_a: float | None = None
    score_b: float | None = None
    reason: str = ""


def parse_verdict(reply: str, ballot: Sequence[str]) -> ParsedVerdict:
    """Return the verdict of a reply.

    Parameters
    ----------
    ballot : sequence of str
        The choices it had. ``winner`` may be in any case, with white space around it, and
        ``both bad`` is ``both_bad``.

    Raises
    ------
    VerdictUnreadable
        For anything that is not exactly one of those choices with scores that can be. Scores and
        reason may be left out or null; a number in quotes is no number. Keys that nobody asked
        for are ignored; a key that stands twice is not.

    Examples
    --------
    >>> parse_verdict('Well. {"winner": "a", "score_a": 8, "reason": "Fuller."}', "AB")
    ParsedVerdict(winner='A', score_a=8.0, score_b=None, reason='Fuller.')
    """
    if not reply.strip():
        raise VerdictUnreadable("the reply is empty")
    answer = without_thinking(reply)
    if not answer.strip():
        raise VerdictUnreadable("the reply is nothing but thinking")
    verdict = _last_object(answer)
    scores = _score(verdict, "score_a"), _score(verdict, "score_b")
    return ParsedVerdict(_winner(verdict, ballot), *scores, _reason(verdict))


class _Repeated(_Object):
    """An object in which a key stands twice."""


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else _Repeated(fields)


def _integer(digits: str) -> float:
    # Python refuses to read integers of thousands of digits; none of those is a score.
    return int(digits) if len(digits) < 20 else float(digits)


_decoder: Final = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def _last_object(text: str) -> _Object:
    last: _Object | None = None
    problem = ""
    at = faults = 0
    while (brace := _BRACE.search(text, at)) and faults < _MOST_FAULTS:
        try:
            last, at = _decoder.raw_decode(text, brace.start())
            problem = ""
        except json.JSONDecodeError as error:
            # On behind the fault, not behind the brace: what is inside a broken object is no
            # answer, and hardly a character is read twice.
            at = max(error.pos, brace.end())
            problem = f"{error.msg} (line {error.lineno}, column {error.colno})"
            faults += 1
        except RecursionError:
            raise VerdictUnreadable("its JSON is nested too deeply") from None
    if problem:
        raise VerdictUnreadable(f"its last JSON object is broken: {problem}")
    if last is None:
        raise VerdictUnreadable(f"it has no JSON object: {excerpt(text)}")
    if isinstance(last, _Repeated):
        raise VerdictUnreadable("a key stands twice in its JSON object")
    return last


def _winner(verdict: _Object, ballot: Sequence[str]) -> Choice:
    if "winner" not in verdict:
        raise VerdictUnreadable("its JSON object has no winner")
    stated = verdict["winner"]
    winner = _WINNERS.get(stated.strip().lower()) if isinstance(stated, str) else None
    quoted = excerpt(stated, 40) if isinstance(stated, str) else "it gives"
    offered = ", ".join(ballot)
    if winner is None:
        raise VerdictUnreadable(f"the winner {quoted} is none of {offered}")
    if winner not in ballot:
        raise VerdictUnreadable(f"the winner {quoted} is not on the ballot ({offered})")
    return winner


def _score(verdict: _Object, key: str) -> float | None:
    score = verdict.get(key)
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or math.isnan(score):
        raise VerdictUnreadable(f"its {key} is not a number")
    if not 0 <= score <= 10:
        raise VerdictUnreadable(f"its {key} is not between 0 and 10")
    return float(score)


def _reason(verdict: _Object) -> str:
    reason = verdict.get("reason")
    if reason is None:
        return ""
    if not isinstance(reason, str):
        raise VerdictUnreadable("its reason is not text")
    lines = reason.strip().splitlines()
    words = " ".join(lines[0].split()) if lines else ""
    return "".join(each for each in words if each.isprintable())[:LONGEST_REASON].rstrip()

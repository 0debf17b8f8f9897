"""Read what models really send: the output they were asked for, or a judge's verdict.

Models wrap both in prose, fences, escapes and thinking. An output is exactly what the model wrote,
or every change is listed: nothing is repaired silently, and a drawing that is cut off is a failure.
A verdict is the last JSON object of the reply; where that is broken or cut there is none, whatever
stands before it: a draft is not an answer. A reply without JSON has a verdict where it ends with
one and says no other. What cannot be read is never guessed.

A reply is hostile text: every scan goes forward only and no expression here backtracks, so that
time is linear in its length.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from html import unescape
from typing import Any, Final, NamedTuple

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import excerpt
from judge_eval.judging.prompts.judge import JudgeQuestion
from voting.items.choices import CHOICES, PASSES_FROM, SIDES, TABLE
from voting.items.kinds import Noun, joined, kind_of

SVG_NAMESPACE: Final = "http://www.w3.org/2000/svg"
XLINK_NAMESPACE: Final = "http://www.w3.org/1999/xlink"

# A tag holds no "<", not even inside quotes, so each is read no further than to the next one.
_TOKEN: Final = re.compile(
    r"""(?P<skipped><!--|<!\[CDATA\[)
    |(?P<fence>^[ \t]*+(?:`{3}|~{3}))
    |(?P<open><svg(?=[\s/>]|\Z)(?P<attributes>(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+)(?P<end>>)?)
    |(?P<close></svg\s*+>)""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_SKIPPED_TO: Final = {"<!--": "-->", "<![CDATA[": "]]>"}
_MARKUP: Final = re.compile(r"\s*+<")
_FENCE: Final = re.compile(r"`{3,}+[ \t]*+[\w+-]*+|^[ \t]*+~{3,}+[ \t]*+[\w+-]*+", re.MULTILINE)
_PROLOG: Final = re.compile(r"<\?xml[^<>]*+>|<!doctype[^<>]*+>", re.IGNORECASE)
_QUOTED: Final = re.compile(r""""[^"]*+"|'[^']*+'""")
_XMLNS: Final = re.compile(r"\sxmlns\s*+=")
_XLINK: Final = re.compile(r"\sxlink:\w")
LONGEST_LANGUAGE: Final = 30
_ESCAPED: Final = re.compile(r"&(lt|gt|quot|apos|amp|#34|#39|#x22|#x27);", re.IGNORECASE)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_THINK: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FENCE_LINE: Final = re.compile(r"[ \t]*+(`{3,}+(?=[^`]*$)|~{3,}+)(.*+)")
LONGEST_REASON: Final = 500
# Under which names a reply may state its choice: the first of them is asked for.
_NAMES: Final[Mapping[Noun, tuple[str, ...]]] = {
    "pair": ("winner", "verdict", "choice", "decision"),
    "item": ("answer", "verdict", "label", "rating"),
}
# Objects within objects are looked into so deeply.
_DEPTH: Final = 3
_NOUNS: Final = ("output", "response", "answer", "assistant", "model", "candidate", "option")
# "both bad" is how people say it, the others are how judges do; nothing else is stretched.
_WINNERS: Final = (
    {name.lower(): choice for choice in CHOICES for name in (choice, TABLE[choice].short)}
    | dict.fromkeys(("draw", "equal", "a=b", "b=a"), "tie")
    | {
        name.lower(): side
        for side, opponent, number, ordinal in zip(
            SIDES, "BA", "12", ("first", "second"), strict=True
        )
        for name in (
            *(number, ordinal, f"the {ordinal}"),
            *(f"{noun} {called}" for noun in _NOUNS for called in (side, number)),
            *(f"{the}{ordinal} {noun}" for noun in _NOUNS for the in ("", "the ")),
            *(f"{side}>{opponent}", f"{side}>>{opponent}"),
            *(f"{opponent}<{side}", f"{opponent}<<{side}"),
        )
    }
)
# As prompts of the field ask for it: [[A]] or [[A>B]].
_MARKED: Final = re.compile(r"\[\[([^\[\]\n]{1,30})\]\]")
_LONGEST_LINE: Final = 300
_LABEL: Final = r"(?:(?:my|the) )?(?:final |overall )?(?:verdict|winner|answer|decision|rating)"
_STATED_LABEL: Final = re.compile(rf"{_LABEL}(?: ?[:=]| is:?) ?(.{{1,30}})", re.IGNORECASE)
# What may lead to a verdict: a sentence, or words that call it the judge's own.
_CONCLUSION: Final = r"(?:.*[.,;!?] ?)?(?:(?:so|thus|hence|therefore),? )?"
_LEADS_TO_IT: Final = re.compile(
    rf".*[.!?]|{_CONCLUSION}{_LABEL}(?: is)?(?: \w+)?:?", re.IGNORECASE
)
# A text within a text: JSON that was written as a string.
_ENCODED: Final = re.compile(r'"(?=[ \t\r\n]*+\{)')
_OUT_OF_TEN: Final = re.compile(r"\s*+(\d++(?:\.\d++)?+)\s*+(?:/\s*+10(?:\.0*+)?+\s*+)?+")
# A string, whatever it holds, or a comma behind the last value of an object or a list.
_TRAILING: Final = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*+[}\]])', re.DOTALL)
# A brace that begins a JSON object, not one of prose or of a formula.
_BRACE: Final = re.compile(r'\{(?=[ \t\r\n]*+(?:["}]|\Z))')
# Each fault costs a look at all the text, to name its line: a reply with more of them is no reply.
_MOST_FAULTS: Final = 100


class ReplyUnreadable(ValueError):
    """There is no whole output, or no verdict, in a reply; the text says why in one line."""


def without_thinking(text: str, *, anywhere: bool = False) -> str:
    """Return a reply without its ``<think>`` blocks.

    A block that never ends goes on to the end; a closing tag at the end of a line, with no opening
    tag before it, ends a block that began with the reply. Later blocks are left out only with
    `anywhere`, since an answer may well speak of such tags.

    >>> without_thinking("<think>2 + 2</think>4, not <think>5</think>")
    '4, not <think>5</think>'
    """
    parts: list[str] = []
    position, inside, opened, answering = 0, False, False, False
    for tag in _THINK.finditer(text):
        if tag[1]:
            ends_line = text[tag.end() : tag.end() + 1] in "\r\n"
            if inside or (not opened and (anywhere or ends_line)):
                position, inside = tag.end(), False
        elif not inside:
            # Not looked at again once an answer has begun: no character is looked at twice.
            answering = answering or bool(text[position : tag.start()].strip())
            opened = True
            if anywhere or not answering:
                parts.append(text[position : tag.start()])
                inside = True
    if not inside:
        parts.append(text[position:])
    return "".join(parts)


def without_dirt(text: str) -> tuple[str, list[str]]:
    """Return a reply as a text that can be stored, and what was changed for that.

    >>> without_dirt("\\ufeffdone\\0")
    ('done', ['left out a byte order mark', 'left out 1 NUL characters'])
    """
    changes = []
    clean = text.removeprefix("\ufeff")
    if clean != text:
        changes.append("left out a byte order mark")
    if nuls := clean.count("\0"):
        clean = clean.replace("\0", "")
        changes.append(f"left out {nuls:,} NUL characters")
    clean, halves = _SURROGATE.subn("\ufffd", clean)
    if halves:
        changes.append(f"replaced {halves:,} halves of surrogate pairs")
    return clean, changes


def fenced_blocks(lines: list[str]) -> list[tuple[int, int]]:
    """Return the numbers of the opening and the closing line of each fenced block.

    A block that has no end is closed by the line behind the last one.

    >>> fenced_blocks(["```py", "1", "```", "and", "~~~", "2"])
    [(0, 2), (4, 6)]
    """
    blocks: list[tuple[int, int]] = []
    start, opening = -1, ""
    for number, line in enumerate(lines):
        fence = _FENCE_LINE.match(line)
        if fence is None:
            continue
        if start < 0:
            start, opening = number, fence[1]
        elif fence[1].startswith(opening) and not fence[2].strip():
            blocks.append((start, number))
            start = -1
    return blocks if start < 0 else [*blocks, (start, len(lines))]


def _answer_text(text: str, *, anywhere: bool = False) -> str:
    if not text.strip():
        raise ReplyUnreadable("the reply is empty")
    answer = without_thinking(text, anywhere=anywhere)
    if not answer.strip():
        raise ReplyUnreadable("the reply is nothing but thinking")
    return answer


class ExtractedOutput(NamedTuple):
    """An output, and in words every change between it and the reply."""

    output: str
    changes: tuple[str, ...]
    # Of code, what its fence calls the language.
    language: str = ""


def extract(reply: str, kind: str) -> ExtractedOutput:
    """Return the output that a reply holds, or raise ReplyUnreadable.

    Of ``svg`` it is the last complete drawing, but no draft where the final one is cut off; of
    ``text`` all, of ``code`` the one fenced block, or all where there is not exactly one; each
    without thinking and without white space around it.

    >>> extract("<think>Hm.</think>Four.", "text").changes
    ('left out 18 characters of thinking',)
    """
    read = {"svg": _svg, "text": _text, "code": _code}[kind]
    text, changes = without_dirt(reply)
    answer = _answer_text(text, anywhere=kind == "svg")
    if thinking := len(text) - len(answer):
        changes.append(f"left out {thinking:,} characters of thinking")
    output, more = read(answer)
    return ExtractedOutput(output, (*changes, *more), _language(answer) if kind == "code" else "")


def _language(text: str) -> str:
    lines = text.split("\n")
    fences = [_FENCE_LINE.match(lines[start]) for start, _ in fenced_blocks(lines)]
    words = fences[0][2].split() if len(fences) == 1 and fences[0] else []
    return words[0][:LONGEST_LANGUAGE].lower() if words else ""


def _text(text: str) -> tuple[str, list[str]]:
    output = text.strip()
    return output, ["trimmed white space"] if output != text else []


def _code(text: str) -> tuple[str, list[str]]:
    lines = text.split("\n")
    blocks = fenced_blocks(lines)
    if len(blocks) != 1:
        # The first line's indentation belongs to the code.
        output = text.lstrip("\r\n").rstrip()
        return output, ["trimmed white space"] if output != text else []
    ((start, end),) = blocks
    output = "\n".join(lines[start + 1 : end]).removesuffix("\r")
    if not output.strip():
        raise ReplyUnreadable("the fenced block is empty")
    changes = ["took it out of a fenced block"]
    if end == len(lines):
        changes.append("the fenced block had no end")
    return output, changes + _left_out("\n".join(lines[:start]), "\n".join(lines[end + 1 :]))


def _svg(text: str) -> tuple[str, list[str]]:
    changes = []
    lowered = text.lower()
    if "<svg" not in lowered and "&lt;svg" in lowered:
        text = _ESCAPED.sub(lambda escape: unescape(escape[0].lower()), text)
        changes.append("undid HTML escapes")
    start, end = _last_drawing(text)
    changes += _surroundings(text[:start], text[end:])
    drawing = with_namespaces(text[start:end])
    return drawing.output, [*changes, *drawing.changes]


def _surroundings(before: str, after: str) -> list[str]:
    fenced = len(_FENCE.findall(before)) % 2 == 1
    changes = ["took it out of a fenced block"] if fenced else []
    lowered = before.lower()
    named = [("<?xml", "the XML declaration"), ("<!doctype", "the document type")]
    changes += [f"left out {name}" for mark, name in named if mark in lowered]
    changes += _left_out(*(_FENCE.sub("", _PROLOG.sub("", part)) for part in (before, after)))
    return changes or (["trimmed white space"] if before or after else [])


def _left_out(before: str, after: str) -> list[str]:
    ahead, behind = len(before.strip()), len(after.strip())
    if not ahead + behind:
        return []
    return [f"left out {ahead:,} characters before and {behind:,} after"]


def with_namespaces(svg: str) -> ExtractedOutput:
    """Return a drawing with the namespaces that it needs and does not declare.

    >>> with_namespaces('<svg viewBox="0 0 9 9"/>').changes
    ('added xmlns',)
    >>> with_namespaces("no drawing")
    ExtractedOutput(output='no drawing', changes=(), language='')
    """
    tag = next((tag for tag in _TOKEN.finditer(svg) if tag["open"]), None)
    if tag is None:
        return ExtractedOutput(svg, ())
    attributes = _QUOTED.sub('""', tag["attributes"])
    names = []
    if not _XMLNS.search(attributes):
        names.append(("xmlns", SVG_NAMESPACE))
    if _XLINK.search(svg) and "xmlns:xlink" not in svg:
        names.append(("xmlns:xlink", XLINK_NAMESPACE))
    added = "".join(f' {name}="{namespace}"' for name, namespace in names)
    place = tag.start() + len("<svg")
    mended = svg[:place] + added + svg[place:]
    return ExtractedOutput(mended, tuple(f"added {name}" for name, _ in names))


class _Drawing(NamedTuple):
    start: int
    end: int
    is_drawn: bool = False


def _last_drawing(text: str) -> tuple[int, int]:
    complete, cut = _drawings(text)
    # A last one with nothing in it is a mention: "I put it into <svg></svg> tags".
    last = ([drawing for drawing in complete if drawing.is_drawn] or complete)[-1:]
    if cut > (last[0].start if last else -1):
        raise ReplyUnreadable("the reply ends before </svg>: truncated")
    if not last:
        raise ReplyUnreadable(f"there is no drawing in the reply: {excerpt(text)}")
    return last[0].start, last[0].end


def _drawings(text: str) -> tuple[list[_Drawing], int]:
    """Return the complete drawings in order, and where the last that is cut off begins, or -1."""
    complete: list[_Drawing] = []
    tags: list[re.Match[str]] = []  # open as yet
    cut = -1

    def drop_inner(start: int) -> None:
        while complete and complete[-1].start > start:
            complete.pop()

    for token in _tokens(text):
        if token is None or token.lastgroup == "fence":
            open_starts = [tag.start() for tag in tags if not _is_mention(text, tag)]
            if open_starts:
                cut = open_starts[0]
                drop_inner(cut)
            tags.clear()
        elif token.lastgroup == "open" and not token[0].endswith("/>"):
            tags.append(token)
        elif token.lastgroup == "open" or tags:
            tag = token if token.lastgroup == "open" else tags.pop()
            drop_inner(tag.start())
            is_drawn = text.find("<", tag.end()) < token.start()
            complete.append(_Drawing(tag.start(), token.end(), tag is not token and is_drawn))
    return complete, cut


def _tokens(text: str) -> Iterator[re.Match[str] | None]:
    """Yield tags and fences, but not those in comments, CDATA or quotes; None for the end."""
    position = 0
    endless: set[str] = set()
    while token := _TOKEN.search(text, position):
        position = token.end()
        if token.lastgroup == "skipped":
            mark = _SKIPPED_TO[token[0].upper()]
            end = -1 if mark in endless else text.find(mark, position)
            if end < 0:
                # It hides nothing. Not searched for again: a whole pass for every comment.
                endless.add(mark)
            else:
                position = end + len(mark)
        else:
            before, after = text[token.start() - 1 : token.start()], text[position : position + 1]
            is_quoted = before in {"`", '"', "'"} and before == after
            if token.lastgroup == "fence" or not is_quoted:
                yield token
    yield None


def _is_mention(text: str, tag: re.Match[str]) -> bool:
    """Tell prose that speaks of an svg tag, should it stay open, from a drawing cut off."""
    if tag["end"]:
        return not tag["attributes"].strip() and not _MARKUP.match(text, tag.end())
    return text.find("<", tag.end()) >= 0


class ParsedVerdict(NamedTuple):
    """What a judge said, of the outputs as it was shown them.

    Scores are from 0 to 10. Of a single item `winner` is its answer, several labels sorted and
    joined, and `score_a` its score, from 0 to 1.
    """

    winner: str
    score_a: float | None = None
    score_b: float | None = None
    reason: str = ""


def parse_verdict(reply: str, question: JudgeQuestion) -> ParsedVerdict:
    """Return the verdict of a reply: one choice of the ballot; anything else is ReplyUnreadable.

    ``winner`` may be in any case, ``both bad`` is ``both_bad``, ``Output A`` and ``first`` are
    ``A``; it may stand in an object within the last one, or be called ``verdict``. Scores (0 to 10)
    and reason may be left out or null; ``"8"`` and ``"8/10"`` are scores too, and any other score
    is none. Line breaks inside strings and commas behind the last value do no harm; other keys are
    ignored. Of a single item a rating may be a number; a score that was asked for must be there and
    go with the answer. Without JSON, a reply that is nothing but a choice is one, and so is one
    that ends with ``[[A]]`` or ``Winner: A`` and states no other.

    >>> parse_verdict(
    ...     'Well. {"winner": "a", "score_a": 8, "reason": "Fuller."}', JudgeQuestion("AB")
    ... )
    ParsedVerdict(winner='A', score_a=8.0, score_b=None, reason='Fuller.')
    >>> parse_verdict(
    ...     '{"answer": ["rude", "long"]}', JudgeQuestion(["long", "rude"], "labels")
    ... ).winner
    'long;rude'
    """
    text = _answer_text(reply)
    last, rest = _last_object(text)
    if last is None and (encoded := _ENCODED.search(text)):
        with suppress(ValueError, RecursionError):
            inner, end = _decoder.raw_decode(text, encoded.start())
            last, rest = _last_object(inner)[0], text[end:]
    verdict, choice = (
        ({}, _plain_choice(text, question)) if last is None else _stated_choice(last, question)
    )
    if choice is None:
        raise ReplyUnreadable(f"it has no JSON object: {excerpt(text)}")
    if last is not None and _plain_choice(rest, question) not in (None, choice):
        raise ReplyUnreadable(f"it says {choice}, and something else at its end: {excerpt(rest)}")
    if kind_of(question).noun == "item":
        return ParsedVerdict(choice, _grade(verdict, choice, question), None, _reason(verdict))
    scores = _score_of_ten(verdict, "score_a"), _score_of_ten(verdict, "score_b")
    return ParsedVerdict(choice, *scores, _reason(verdict))


def _stated_choice(last: JsonObject, question: JudgeQuestion) -> tuple[JsonObject, str]:
    """Return the object that states the choice, and the choice: all that is stated must agree."""
    names = _NAMES[kind_of(question).noun]
    statements = _statements(last, names, _DEPTH)
    if not statements:
        raise ReplyUnreadable(f"its JSON object has no {names[0]}: {excerpt(json.dumps(last))}")
    read, faults = dict[str, JsonObject](), list[ReplyUnreadable]()
    for verdict, name, value in statements:
        if isinstance(verdict, _Repeated):
            raise ReplyUnreadable("a key is given twice in its JSON object")
        try:
            read.setdefault(_choice_of(value, question), verdict)
        except ReplyUnreadable as fault:
            if name == names[0]:
                raise
            faults.append(fault)
    if not read:
        raise faults[0]
    if len(read) > 1:
        raise ReplyUnreadable(f"its JSON object says {' and '.join(read)}")
    [(choice, verdict)] = read.items()
    return verdict, choice


def _statements(
    value: object, names: Collection[str], depth: int
) -> list[tuple[JsonObject, str, object]]:
    """Return what an object states under these names; else what those within it do."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            value = _decoder.decode(value)
    if not isinstance(value, dict) or not depth:
        return []
    direct, within = [], []
    for key, inner_value in value.items():
        name = key.strip().lower()
        if inner := _statements(inner_value, names, depth - 1):
            within += inner
        elif name in names:
            direct.append((value, name, inner_value))
    return direct + within


def _plain_choice(text: str, question: JudgeQuestion) -> str | None:
    """Return the choice that a text without JSON is, or ends with; None where it states none.

    A judge may quote what an output says. So a choice counts only in the last line, and only where
    no other one is stated anywhere.
    """
    lines = [line.strip()[-_LONGEST_LINE:] for line in text.replace("*", "").splitlines()]
    lines = list(filter(None, lines))
    if len(lines) == 3 and _FENCE.fullmatch(lines[0]) and _FENCE.fullmatch(lines[2]):
        lines = lines[1:2]
    if not lines:
        return None
    last = lines[-1].rstrip(".")
    if len(lines) == 1 and not last.isdecimal() and (bare := _read(last.strip('"'), question)):
        return bare
    labelled = filter(None, (_STATED_LABEL.fullmatch(line.rstrip(".")) for line in lines))
    words = [*_MARKED.findall(text), *(label_match[1] for label_match in labelled)]
    choices = {choice for word in words if (choice := _read(word, question))}
    is_clear = len(choices) == 1 and _is_final(last, lines[-2] if len(lines) > 1 else "")
    return choices.pop() if is_clear else None


def _is_final(last: str, above: str) -> bool:
    """Say whether a last line states a verdict that is not led to as a quotation is."""
    before, marked, _ = last.rpartition("[[")
    if marked and not last.endswith("]]"):
        return False
    if before.strip():
        return bool(_LEADS_TO_IT.fullmatch(before.strip()))
    if not marked and not _STATED_LABEL.fullmatch(last):
        return False
    return not above.endswith(":") or bool(_LEADS_TO_IT.fullmatch(above))


def _read(word: str, question: JudgeQuestion) -> str | None:
    try:
        return _choice_of(word.strip(), question)
    except ReplyUnreadable:
        return None


def _choice_of(value: object, question: JudgeQuestion) -> str:
    if kind_of(question).noun == "pair":
        return _winner(value, question)
    if question.kind != "labels":
        return _choice(value, question)
    if not isinstance(value, list):
        raise ReplyUnreadable(f"its answer is not a list of labels: {excerpt(str(value), 40)}")
    return joined({_choice(label, question) for label in value})


class _Repeated(JsonObject):
    """An object in which a key is given twice."""


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else _Repeated(fields)


# Python refuses to read integers of thousands of digits; none of those is a score.
_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits),
    strict=False,
)


class _ScannedJson(NamedTuple):
    """The last JSON object of a text and where it ends, and what is wrong behind it, from where."""

    last: JsonObject | None
    problem: str
    broken_from: int
    end: int = 0


def _last_object(text: str) -> tuple[JsonObject | None, str]:
    """Return the last JSON object of a text, if there is one, and what stands behind it."""
    scanned = _scan_json(text)
    if scanned.problem:
        # Commas behind last values are taken out only where the text cannot be read with them.
        broken = text[scanned.broken_from :]
        text = _TRAILING.sub(r"\1", broken)
        again = _scan_json(text)
        if again.last is None or again.problem:
            problem = f"its last JSON object is broken: {scanned.problem}: {excerpt(broken, 60)}"
            raise ReplyUnreadable(problem)
        scanned = again
    if isinstance(scanned.last, _Repeated):
        raise ReplyUnreadable("a key is given twice in its JSON object")
    return scanned.last, text[scanned.end :]


def _scan_json(text: str) -> _ScannedJson:
    scanned = _ScannedJson(None, "", 0)
    position = faults = 0
    while (brace := _BRACE.search(text, position)) and faults < _MOST_FAULTS:
        try:
            last, position = _decoder.raw_decode(text, brace.start())
            scanned = _ScannedJson(last, "", 0, position)
        except json.JSONDecodeError as error:
            # On behind the fault, not behind the brace: what is inside a broken object is no
            # answer, and hardly a character is read twice.
            position = max(error.pos, brace.end())
            problem = f"{error.msg} (line {error.lineno}, column {error.colno})"
            broken_from = scanned.broken_from if scanned.problem else brace.start()
            scanned = _ScannedJson(None, problem, broken_from)
            faults += 1
        except RecursionError:
            raise ReplyUnreadable("its JSON is nested too deeply") from None
    return scanned


def _winner(answer: object, question: JudgeQuestion) -> str:
    is_number = isinstance(answer, int) and not isinstance(answer, bool)
    written_name = str(answer) if is_number or isinstance(answer, str) else ""
    name = written_name.strip().lower()
    if marked := _MARKED.fullmatch(name):
        name = marked[1].strip()
    if {*name} & {*"<=>"}:
        name = name.replace(" ", "")
    winner = _WINNERS.get(name)
    if name == "neither":
        # Neither is good; where that cannot be said, neither is better.
        winner = "both_bad" if "both_bad" in question.ballot else "tie"
    quoted = excerpt(written_name or json.dumps(answer), 40)
    offered = ", ".join(question.ballot)
    if winner is None:
        raise ReplyUnreadable(f"the winner {quoted} must be one of {offered}")
    if winner not in question.ballot:
        raise ReplyUnreadable(f"the winner {quoted} is not on the ballot ({offered})")
    return winner


def _choice(answer: object, question: JudgeQuestion) -> str:
    """Return the choice of the ballot that was stated, in any case where that is unmistakable."""
    text = str(answer) if isinstance(answer, int) and not isinstance(answer, bool) else answer
    if not isinstance(text, str):
        raise ReplyUnreadable(f"the answer it gives is not text: {excerpt(json.dumps(answer), 40)}")
    word = text.strip()
    same = [choice for choice in question.ballot if choice.casefold() == word.casefold()]
    if word not in question.ballot and len(same) != 1:
        offered = ", ".join(question.ballot)
        raise ReplyUnreadable(f"the answer {excerpt(text, 40)} must be one of {offered}")
    return word if word in question.ballot else same[0]


def _grade(verdict: JsonObject, answer: str, question: JudgeQuestion) -> float | None:
    if not question.is_graded:
        return None
    score = _score(verdict, "score", most=1)
    if score is None:
        raise ReplyUnreadable("its JSON object has no score")
    if (score >= PASSES_FROM) != (answer == "pass"):
        raise ReplyUnreadable(f"its score {score:g} does not go with {answer}")
    return score


def _score(verdict: JsonObject, key: str, most: int) -> float | None:
    score = verdict.get(key)
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or math.isnan(score):
        raise ReplyUnreadable(f"its {key} is not a number: {excerpt(json.dumps(score), 40)}")
    if not 0 <= score <= most:
        raise ReplyUnreadable(f"its {key} {score:g} is not between 0 and {most}")
    return float(score)


def _score_of_ten(verdict: JsonObject, key: str) -> float | None:
    """Return a score of an output; one that cannot be read says nothing against the winner."""
    score = verdict.get(key)
    fraction = _OUT_OF_TEN.fullmatch(score) if isinstance(score, str) else None
    with suppress(ReplyUnreadable):
        return _score({key: float(fraction[1]) if fraction else score}, key, most=10)
    return None


def _reason(verdict: JsonObject) -> str:
    reason = verdict.get("reason")
    if reason is None:
        return ""
    if not isinstance(reason, str):
        raise ReplyUnreadable("its reason is not text")
    lines = reason.strip().splitlines()
    words = " ".join(lines[0].split()) if lines else ""
    printable = "".join(character for character in words if character.isprintable())
    return printable[:LONGEST_REASON].rstrip()

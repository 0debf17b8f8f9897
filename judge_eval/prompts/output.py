"""Take the output out of what a model really sends, and say all that was altered or left out.

Models wrap a drawing in prose, fences, escapes and thinking. What is taken out is either exactly
what the model wrote, or listed change by change: nothing is repaired silently, and a drawing that
is cut off is a failure. Time is linear in the length of the reply, however hostile it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, NamedTuple

from humanjudge.lib.text import excerpt
from judge_eval.prompts.reply_text import fenced_blocks, without_dirt, without_thinking

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
_ESCAPED: Final = re.compile(r"&(lt|gt|quot|apos|amp|#34|#39|#x22|#x27);", re.IGNORECASE)


class NotExtractable(ValueError):
    """There is no whole output in a reply; the text is one line that a person can read."""


class Extracted(NamedTuple):
    """An output, and in words every change between it and the reply."""

    output: str
    changes: tuple[str, ...]


def extract(reply: str, kind: str) -> Extracted:
    """Return the output that a reply holds.

    Parameters
    ----------
    kind : {"svg", "text", "code"}
        For ``svg`` the last complete drawing: a model that drafts sends the final one last. For
        ``text`` all of it, for ``code`` the one fenced block, or all of it where there is not
        exactly one; each without thinking and without white space around it.

    Raises
    ------
    NotExtractable
        When the reply is empty, refuses, or ends before its output does. A complete draft does
        not stand in for a final drawing that is cut off.

    Examples
    --------
    >>> extract("<think>Hm.</think>Four.", "text")
    Extracted(output='Four.', changes=('left out 18 characters of thinking',))
    """
    read = {"svg": _svg, "text": _text, "code": _code}[kind]
    text, changes = without_dirt(reply)
    if not text.strip():
        raise NotExtractable("the reply is empty")
    answer = without_thinking(text, anywhere=kind == "svg")
    if thinking := len(text) - len(answer):
        changes.append(f"left out {thinking:,} characters of thinking")
    if not answer.strip():
        raise NotExtractable("the reply is nothing but thinking")
    output, more = read(answer)
    return Extracted(output, (*changes, *more))


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
    ((begin, end),) = blocks
    output = "\n".join(lines[begin + 1 : end]).removesuffix("\r")
    if not output.strip():
        raise NotExtractable("the fenced block is empty")
    changes = ["took it out of a fenced block"]
    if end == len(lines):
        changes.append("the fenced block had no end")
    return output, changes + _left_out("\n".join(lines[:begin]), "\n".join(lines[end + 1 :]))


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


def with_namespaces(svg: str) -> Extracted:
    """Return a drawing with the namespaces that it needs and does not declare.

    >>> with_namespaces('<svg viewBox="0 0 9 9"/>').changes
    ('added xmlns',)
    >>> with_namespaces("no drawing")
    Extracted(output='no drawing', changes=())
    """
    tag = next((tag for tag in _TOKEN.finditer(svg) if tag["open"]), None)
    if tag is None:
        return Extracted(svg, ())
    attributes = _QUOTED.sub('""', tag["attributes"])
    names = []
    if not _XMLNS.search(attributes):
        names.append(("xmlns", SVG_NAMESPACE))
    if _XLINK.search(svg) and "xmlns:xlink" not in svg:
        names.append(("xmlns:xlink", XLINK_NAMESPACE))
    added = "".join(f' {name}="{namespace}"' for name, namespace in names)
    place = tag.start() + len("<svg")
    mended = svg[:place] + added + svg[place:]
    return Extracted(mended, tuple(f"added {name}" for name, _ in names))


class _Drawing(NamedTuple):
    start: int
    end: int
    is_drawn: bool = False


def _last_drawing(text: str) -> tuple[int, int]:
    """Return where the last complete top-level drawing begins and ends."""
    whole, cut = _drawings(text)
    # A last one with nothing in it is a mention: "I put it into <svg></svg> tags".
    last = ([each for each in whole if each.is_drawn] or whole)[-1:]
    if cut > (last[0].start if last else -1):
        raise NotExtractable("the reply ends before </svg>: truncated")
    if not last:
        raise NotExtractable(f"there is no drawing in the reply: {excerpt(text)}")
    return last[0].start, last[0].end


def _drawings(text: str) -> tuple[list[_Drawing], int]:
    """Return the complete drawings in order, and where the last that is cut off begins, or -1."""
    whole: list[_Drawing] = []
    tags: list[re.Match[str]] = []  # open as yet
    cut = -1

    def outermost(start: int) -> None:
        while whole and whole[-1].start > start:
            whole.pop()

    for token in _tokens(text):
        if token is None or token.lastgroup == "fence":
            begun = [tag.start() for tag in tags if not _is_mention(text, tag)]
            if begun:
                cut = begun[0]
                outermost(cut)
            tags.clear()
        elif token.lastgroup == "open" and not _is_closed(token):
            tags.append(token)
        elif token.lastgroup == "open" or tags:
            tag = token if token.lastgroup == "open" else tags.pop()
            outermost(tag.start())
            is_drawn = text.find("<", tag.end()) < token.start()
            whole.append(_Drawing(tag.start(), token.end(), tag is not token and is_drawn))
    return whole, cut


def _tokens(text: str) -> Iterator[re.Match[str] | None]:
    """Yield tags and fences, but not those in comments, CDATA or quotes; None for the end."""
    at = 0
    endless: set[str] = set()
    while token := _TOKEN.search(text, at):
        at = token.end()
        if token.lastgroup == "skipped":
            mark = _SKIPPED_TO[token[0].upper()]
            end = -1 if mark in endless else text.find(mark, at)
            if end < 0:
                # It hides nothing. Not searched for again: a whole pass for every comment.
                endless.add(mark)
            else:
                at = end + len(mark)
        elif token.lastgroup == "fence" or not _is_quoted(text, token):
            yield token
    yield None


def _is_quoted(text: str, token: re.Match[str]) -> bool:
    start, end = token.span()
    return text[start - 1 : start] in {"`", '"', "'"} and text[start - 1] == text[end : end + 1]


def _is_closed(tag: re.Match[str]) -> bool:
    return bool(tag["end"]) and tag["attributes"].endswith("/")


def _is_mention(text: str, tag: re.Match[str]) -> bool:
    """Tell prose that speaks of an svg tag, should it stay open, from a drawing cut off."""
    if tag["end"]:
        return not tag["attributes"].strip() and not _MARKUP.match(text, tag.end())
    return text.find("<", tag.end()) >= 0

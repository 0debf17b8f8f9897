"""What every model's reply may carry around its answer: thinking, fences, dirt.

A reply is hostile text: every scan goes forward only and no expression here backtracks, so that
time is linear in its length.
"""

from __future__ import annotations

import re
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_THINK: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FENCE_LINE: Final = re.compile(r"[ \t]*+(`{3,}+(?=[^`]*$)|~{3,}+)(.*+)")


def without_thinking(text: str, *, anywhere: bool = False) -> str:
    """Return a reply without its ``<think>`` blocks.

    A block that never ends goes on to the end; a closing tag at the end of a line, with no opening
    tag before it, ends a block that began with the reply. Later blocks are left out only with
    `anywhere`, since an answer may well speak of such tags.

    >>> without_thinking("<think>2 + 2</think>4, not <think>5</think>")
    '4, not <think>5</think>'
    """
    kept: list[str] = []
    at, inside, opened, answering = 0, False, False, False
    for tag in _THINK.finditer(text):
        if tag[1]:
            ends_line = text[tag.end() : tag.end() + 1] in "\r\n"
            if inside or (not opened and (anywhere or ends_line)):
                at, inside = tag.end(), False
        elif not inside:
            # Not looked at again once an answer has begun: no character is looked at twice.
            answering = answering or bool(text[at : tag.start()].strip())
            opened = True
            if anywhere or not answering:
                kept.append(text[at : tag.start()])
                inside = True
    if not inside:
        kept.append(text[at:])
    return "".join(kept)


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
    begin, opening = -1, ""
    for number, line in enumerate(lines):
        fence = _FENCE_LINE.match(line)
        if fence is None:
            continue
        if begin < 0:
            begin, opening = number, fence[1]
        elif fence[1].startswith(opening) and not fence[2].strip():
            blocks.append((begin, number))
            begin = -1
    return blocks if begin < 0 else [*blocks, (begin, len(lines))]

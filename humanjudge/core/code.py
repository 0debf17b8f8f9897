"""Code as safe HTML with its parts marked by classes, which the stylesheet colours.

Code by models is hostile: a line or a text that is too long, and what is left when the time is up,
are shown as they are. Whatever the marks, the text is the same to the letter.
"""

import time
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from pygments.lexer import Lexer

# Beyond these nothing is marked: matching takes time that grows with them.
LONGEST: Final = 20_000
LONGEST_LINE: Final = 1_000
SECONDS: Final = 0.05
# How much of a text is looked at to guess its language.
_LOOKED_AT: Final = 2_000
# Of the languages that pygments knows, what models are asked for. The first are guessed at.
_GUESSED: Final = "python html xml php bash sql java c cpp perl diff".split()
_NAMED: Final = (
    "javascript typescript jsx tsx css scss json yaml toml kotlin csharp go rust swift ruby "
    "powershell lua r scala haskell dart docker make tex matlab ini"
).split()

# What the stylesheet has a colour for: keywords, strings, comments, numbers, changes, and some
# names.
_MARKED: Final = frozenset("kscmg")
_NAMES: Final = frozenset(("nf", "fm", "nc", "nb", "bp", "nt", "na", "nd"))

register = template.Library()


@cache
def _lexers() -> dict[str, "Lexer"]:
    # A web server imports it with the first piece of code that it shows.
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    by_name: dict[str, Lexer] = {}
    for name in (*_GUESSED, *_NAMED):
        try:
            lexer = get_lexer_by_name(name)
        except ClassNotFound:
            continue
        by_name |= dict.fromkeys([name, *lexer.aliases], lexer)
    return by_name


def _lexer_of(text: str, language: str) -> "Lexer | None":
    lexers = _lexers()
    if language:
        return lexers.get(language.strip().lower())
    start = text[:_LOOKED_AT]
    best = max((lexers[name] for name in _GUESSED), key=lambda lexer: lexer.analyse_text(start))
    return best if best.analyse_text(start) > 0 else None


@register.filter("highlighted")
@lru_cache(maxsize=64)
def highlighted(text: str, language: str = "") -> SafeString:
    """Return code as HTML: escaped, with spans that have a class and nothing else.

    Examples
    --------
    >>> highlighted("if a < b: pass", "python")
    '<span class="hl-k">if</span> a &lt; b: <span class="hl-k">pass</span>'
    """
    is_long = len(text) > LONGEST or any(len(line) > LONGEST_LINE for line in text.splitlines())
    lexer = None if is_long else _lexer_of(text, language)
    html = "".join(_highlighted(lexer, text)) if lexer else escape(text)
    return mark_safe(html)  # noqa: S308  every piece of text in it is escaped


def _highlighted(lexer: "Lexer", text: str) -> Iterator[str]:
    """Yield the pieces of a text in their order, and the rest of it as it is."""
    from pygments.token import STANDARD_TYPES

    until, done = time.monotonic() + SECONDS, 0
    for start, kind, piece in lexer.get_tokens_unprocessed(text):
        if start != done or not text.startswith(piece, start) or time.monotonic() > until:
            break  # not every language's pieces are without gaps
        name = STANDARD_TYPES.get(kind, "")[:2]
        is_marked = name[:1] in _MARKED or name in _NAMES
        escaped = escape(piece)
        yield (
            f'<span class="hl-{name}">{escaped}</span>' if is_marked and piece.strip() else escaped
        )
        done += len(piece)
    yield escape(text[done:])

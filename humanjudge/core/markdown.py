"""Model output as safe HTML: Markdown without raw HTML, then an allow-list on top of it.

What people see is what the model wrote: only the marks that make a heading, a list or bold
letters go. No backslash is eaten, no entity is replaced, and what Markdown would leave out
(definitions of links, cells beyond a table's head, what is nested too deep) is shown as written.
"""

import re
from html import unescape
from typing import Final
from unicodedata import bidirectional

import nh3
from django import template
from django.utils.html import escape, strip_tags
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.image import image
from markdown_it.token import Token

from humanjudge.core import formulas

_TAGS: Final = formulas.TAGS | set(
    "a p br hr em strong s code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 "
    "table thead tbody tr th td".split()
)
# What holds blocks takes the direction of the first letter in it: `auto` skips inner blocks.
_HOLDERS: Final = frozenset(("ul", "ol", "li", "blockquote", "table"))
_INSIDE_TABLES: Final = frozenset(("thead", "tbody", "tr"))
_DEEPEST: Final = 20  # deeper down the parser would leave out what is written
_BOXES: Final = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


def _escape(state: StateInline, silent: bool) -> bool:
    """Keep the backslash before what it keeps from being a mark."""
    pair = state.src[state.pos : state.pos + 2]
    if pair[0] != "\\" or len(pair) < 2 or pair[1].isspace():
        return False
    if not silent:
        state.push("text", "", 0).content = pair
    state.pos += 2
    return True


def _image(state: StateInline, silent: bool) -> bool:
    """Show an image as its source: a request would leave the page."""
    start = state.pos
    if not image(state, True):
        return False
    if not silent:
        state.pending += state.src[start : state.pos]
    return True


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Show a table of which cells or backslashes would be lost as its source."""
    before = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    if not silent:
        source = state.getLines(start, state.line, state.blkIndent, False)
        [head, _, body] = f"{source}\n".split("\n", 2)
        cells = "".join(token.content for token in state.tokens[before:])
        if _without_bars(head + body) != _without_bars(cells):
            del state.tokens[before:]
            state.push("code_block", "code", 0).content = source
    return True


def _without_bars(text: str) -> str:
    return "".join(text.replace("|", " ").split())


def _finish(state: StateCore) -> None:
    """Give every block its direction, items of a list their numbers and tasks their boxes."""
    opened: list[Token] = []
    for token in state.tokens:
        _mark(token)
        if token.nesting == 1:
            opened.append(token)
        elif token.nesting == -1:
            opened.pop()
        elif token.children:
            if [parent.tag for parent in opened[-2:]] == ["li", "p"]:
                _tick(token.children[0])
            _direct(opened, _direction(token.children))


def _mark(token: Token) -> None:
    if token.nesting == 1 and token.tag not in _INSIDE_TABLES:
        token.attrSet("dir", "auto")
    if token.type == "list_item_open" and token.info:
        token.attrSet("value", token.info)
    if token.type == "fence" and len(token.info.split()) > 1:
        # More than the name of a language: it is there to be read.
        token.content = f"{token.markup}{token.info}\n{token.content}"


def _tick(first: Token) -> None:
    if first.type == "text" and (box := _BOXES.get(first.content[:4])):
        first.content = box + first.content[4:]


def _direct(opened: list[Token], direction: str) -> None:
    for block in opened:
        if direction and block.tag in _HOLDERS and not block.meta:
            block.meta["direction"] = direction
            if direction == "rtl":
                block.attrSet("dir", direction)


def _direction(children: list[Token]) -> str:
    for letter in "".join(child.content for child in children if child.type == "text"):
        if (kind := bidirectional(letter)) in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return ""


def _parser(*without: str) -> MarkdownIt:
    """Return a parser that takes no raw HTML, no entities and no links by definitions."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.disable(["entity", "reference", "autolink", *without])
    parser.use(formulas.add_formulas)
    parser.inline.ruler.at("escape", _escape)
    parser.inline.ruler.at("image", _image)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.push("finish", _finish)
    return parser


_markdown = _parser()
_line = _parser("link")

register = template.Library()
# A space before the sign of a percentage, or within odds.
_UNIT: Final = re.compile(r" (?=%|: 1)|(?<= :) (?=1)")


@register.filter("markdown")
def render(text: str) -> SafeString:
    """Return a model's text as HTML that holds no script, no style and no request."""
    tokens = _markdown.parse(text)
    if any(token.level + token.nesting >= _DEEPEST for token in tokens):
        return mark_safe(f"<pre><code>{source(text)}</code></pre>")  # noqa: S308  escaped
    html = _clean(_markdown.renderer.render(tokens, _markdown.options, {}))
    return mark_safe(html)  # noqa: S308  escaped by the renderer and cleaned by nh3


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=formulas.ATTRIBUTES
        | {"*": {"dir"}, "a": {"href", "title"}, "ol": {"start"}, "li": {"value"}},
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
        # Code and formulas run from left to right, and say nothing of the text around them.
        set_tag_attribute_values={tag: {"dir": "ltr"} for tag in ("code", "pre", "math")},
    )


@register.filter("markdown_line")
def render_line(text: str) -> SafeString:
    """Return a line with its code, bold letters and formulas set: it may stand within a link."""
    return mark_safe(_clean(_line.renderInline(text)))  # noqa: S308  escaped and cleaned


@register.filter
def with_source(text: str) -> SafeString:
    """Return a text as `render` sets it, with its source beside it where it reads otherwise."""
    html = render(text)
    if unescape(strip_tags(html)).split() == text.split():
        return html
    beside = f'<pre class="source" dir="auto"><code>{source(text)}</code></pre>'
    return html + mark_safe(beside)  # noqa: S308  escaped


@register.filter
def unbroken(text: str) -> str:
    """Return words whose numbers keep their units: no line ends within "84 %" or "20 : 1".

    >>> unbroken("84 %, evidence 20 : 1").split(" ")
    ['84\\xa0%,', 'evidence', '20\\xa0:\\xa01']
    """
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


@register.filter("source")
def source(text: str) -> SafeString:
    """Return a text for an element whose text shall be the same to the byte."""
    # A browser would read a bare carriage return as a new line.
    return mark_safe(escape(text).replace("\r", "&#13;"))  # noqa: S308  escaped

"""Formulas in Markdown: LaTeX between its delimiters, set as MathML, which a browser draws itself.

Models write what they like: what is too long, defines macros, or would lose a letter when it is
set, is shown as its source, delimiters included. What looks like money stays money.

The rules are ours: those of mdit-py-plugins (0.7.0) take `$x$ is 5` for money, since they look at
the last character for the one before the first, and search to the end of the text for each `$`.
"""

import re
from collections import Counter
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, cast
from unicodedata import normalize
from xml.etree.ElementTree import Element, tostring

from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

# The characters of one formula and of all in one text, how deep groups go, and how often a text
# may open one. What is beyond them is shown as its source.
LONGEST: Final = 2_000
LONGEST_IN_ALL: Final = 20_000
DEEPEST: Final = 30
MOST: Final = 1_000

_ANY: Final = f"{{1,{LONGEST}}}?"
_FORMULA: Final = re.compile(
    rf"""\$\$ (?: [^$\\] | \\. | \$(?!\$) ){_ANY} \$\$ (?!\$)
    | \\\[ (?: [^\\] | \\[^\]] ){_ANY} \\\]
    | \\\( (?: [^\\] | \\[^)] ){_ANY} \\\)
    | \\begin\{{(?P<name>[a-zA-Z]+\*?)\}} .{_ANY} \\end\{{(?P=name)\}}
    # As pandoc does: no space inside, no digit before or after. No name of a variable either.
    | (?<![\w$])\$ (?=[^\s$]) (?: [^$\\] | \\. ){_ANY} (?<!\s)\$
      (?! [\dA-Z$] | (?<=[-=<>+*/:(&|;]\$)\w )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENINGS: Final = ("$", "\\(", "\\[", "\\begin{")
# Between dollars, two words in a row and no command: "$5/month or 10$" is money.
_PROSE: Final = re.compile(r"\$[^\\]*[a-zA-Z]{2,}\s+[a-zA-Z]{2,}[^\\]*\$", re.DOTALL)
_COMMENT: Final = re.compile(r"(?<!\\)(?:\\\\)*%")
_COMMANDS: Final = re.compile(
    r"\\(?:begin|end)\s*\{[a-zA-Z]+\*?\}(?:\{[lcr|\s]*\})?|\\hspace\{[^{}]*\}|\\[a-zA-Z]+|\\."
)
_CHARACTER: Final = re.compile(r"&#x([0-9a-fA-F]{1,6});")
_SPACE: Final = re.compile(r"-?0?\.\d+em|[0-2](?:\.\d+)?em")
# What latex2mathml does not know, or numbers although the model wrote no number.
_REPLACED_COMMANDS: Final = re.compile(
    r"(?P<start>\\(?:begin|end)\s*\{)(?:(?P<align>aligned|align)|gathered|gather\*?)\}"
    r"|\\arg(?![a-zA-Z])"
)

# What a formula may be made of: nothing that is hidden, leads away, runs or covers what is beside.
TAGS: Final = frozenset(
    "math mrow mi mn mo mtext mspace msub msup msubsup munder mover munderover mfrac msqrt mroot "
    "mtable mtr mtd mstyle mpadded menclose".split()
)
ATTRIBUTES: Final = {
    "math": {"display"},
    "mi": {"mathvariant"},
    "mn": {"mathvariant"},
    "mo": {"stretchy", "fence", "form", "accent", "largeop", "movablelimits", "minsize", "maxsize"},
    "mspace": {"width", "linebreak"},
    "mover": {"accent"},
    "mfrac": {"linethickness"},
    "mtable": {"displaystyle", "columnlines", "rowlines"},
    "mtd": {"columnalign"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "menclose": {"notation"},
}


@lru_cache(maxsize=512)
def mathml(latex: str, *, is_display: bool) -> str | None:
    """Return a formula as MathML, or None where it cannot be set as it was written.

    Examples
    --------
    >>> mathml("x", is_display=False)
    '<math display="inline"><mrow><mi>x</mi></mrow></math>'
    >>> mathml("\\\\unknown{x}", is_display=False)
    """
    # A web server imports it, and its table of symbols, with the first formula.
    from latex2mathml.converter import Converter

    open_braces = accumulate({"{": 1, "}": -1}.get(sign, 0) for sign in latex)
    if len(latex) > LONGEST or max(open_braces, default=0) > DEEPEST or _COMMENT.search(latex):
        return None
    converter = Converter(xmlns="", display="block" if is_display else "inline")
    # Macros grow without bound: the place that takes none makes an error of their definition.
    converter.macros = cast("dict[str, Any]", MappingProxyType({}))
    try:
        root = converter.convert_to_element(_REPLACED_COMMANDS.sub(_supported, latex))
        del root.attrib["xmlns"]
        if not all(_is_set(element) for element in root.iter()):
            return None
        text = "".join(root.itertext())
        if not text.strip() or not _letters(_COMMANDS.sub(" ", latex)) <= _letters(text):
            return None
        return tostring(root, encoding="unicode")
    except Exception:  # noqa: BLE001  what the library makes of a hostile formula can be anything
        return None


def _supported(command: re.Match[str]) -> str:
    if not command["start"]:
        return r"\operatorname{arg}"
    return command["start"] + ("align*}" if command["align"] else "matrix}")


def _is_set(element: Element) -> bool:
    """Tell whether an element is one that we show; make characters of its references."""
    text = element.text or ""
    if element.tag not in TAGS or "\\" in text or text == "&":
        return False
    element.text = _CHARACTER.sub(lambda match: chr(int(match[1], 16)), text) or None
    # Most browsers draw no line through what is cancelled.
    if element.tag == "menclose":
        return element.get("notation") == "box"
    return element.tag != "mspace" or bool(_SPACE.fullmatch(element.get("width", "0em")))


def _letters(text: str) -> Counter[str]:
    return Counter(letter for letter in normalize("NFKC", text) if letter.isalnum())


def add_formulas(markdown: MarkdownIt) -> None:
    markdown.inline.ruler.before("escape", "formula", _inline)
    ends = ["paragraph", "blockquote", "list"]
    markdown.block.ruler.before("fence", "formula_block", _block, {"alt": ends})
    markdown.add_render_rule("formula", _render)
    markdown.add_render_rule("formula_block", _render_block)


def _find(text: str, start: int, end: int, env: MutableMapping[str, Any]) -> re.Match[str] | None:
    opened, length = env.get("formulas", (0, 0))
    if opened >= MOST or length >= LONGEST_IN_ALL or not text.startswith(_OPENINGS, start, end):
        return None
    match = _FORMULA.match(text, start, end)
    if match and _PROSE.fullmatch(match.group()):
        match = None
    env["formulas"] = opened + 1, length + len(match.group() if match else "")
    return match


def _inline(state: StateInline, silent: bool) -> bool:
    match = _find(state.src, state.pos, state.posMax, state.env)
    if not match:
        return False
    if not silent:
        state.push("formula", "math", 0).content = match.group()
    state.pos = match.end()
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Take a formula that has its lines for itself, so that no line of it becomes a list."""
    first = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith(("$$", "\\[", "\\begin{"), first):
        return False
    if state.env.get("formulas", (0, 0))[0] >= MOST:
        return False
    stop = start
    while stop < end and not state.isEmpty(stop) and state.sCount[stop] >= state.blkIndent:
        stop += 1
        if state.eMarks[stop - 1] - first > LONGEST:
            break
    text = state.getLines(start, stop, state.sCount[start], False)
    match = _find(text, 0, len(text), state.env)
    rest = text[match.end() :].partition("\n")[0].strip() if match else "-"
    if not match or len(rest) > 1 or rest.isalnum():
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.content, token.info = match.group(), rest
    state.line = start + text.count("\n", 0, match.end()) + 1
    return True


def _set(source: str) -> str | None:
    if source.startswith("\\begin"):
        return mathml(source, is_display=True)
    if source.startswith(("$$", "\\")):
        return mathml(source[2:-2].strip(), is_display=source[1] != "(")
    return mathml(source[1:-1], is_display=False)


def _render(_: object, tokens: Sequence[Token], index: int, *_rest: object) -> str:
    return _set(tokens[index].content) or escape(tokens[index].content)


def _render_block(_: object, tokens: Sequence[Token], index: int, *_rest: object) -> str:
    token = tokens[index]
    html = _set(token.content)
    if html is None:
        return f"<pre><code>{escape(token.content + token.info)}</code></pre>\n"
    return f'<p dir="auto">{html}{escape(token.info)}</p>\n'

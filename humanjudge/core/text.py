"""Figures, money, time, lists and cells of tables as they are written for people."""

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

MOST_ODDS: Final = 1_000_000
# No database keeps a NUL, and UTF-8 cannot write half a surrogate pair; JSON may hold both.
UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
# What some spreadsheet takes for the beginning of a formula, also in its full width.
_FORMULA: Final = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def fixed(value: float, decimals: int) -> str:
    """Return a figure with so many decimals; one that rounds to 0 has no sign.

    Examples
    --------
    >>> fixed(-0.0004, 3), fixed(-0.0006, 3), fixed(1034.25, 1)
    ('0.000', '-0.001', '1034.2')
    """
    return f"{value:z.{decimals}f}"


def usd(amount: Decimal) -> str:
    """Return an amount of US dollars, to the cent or to three significant digits.

    Examples
    --------
    >>> usd(Decimal("1234.5")), usd(Decimal("0.0012345")), usd(Decimal(0))
    ('$1,234.50', '$0.00123', '$0')
    """
    if not amount:
        return "$0"
    decimals = 2 if abs(amount) >= 1 else 2 - amount.adjusted()
    return f"${amount:,.{decimals}f}"


def duration(seconds: float) -> str:
    """Return a length of time as one says it, no more exact than it is known.

    Examples
    --------
    >>> duration(8.2), duration(90), duration(7_500), duration(250_000)
    ('9 s', '2 min', '2 h 5 min', '3 days')
    """
    if seconds <= 60:
        return f"{max(1, math.ceil(seconds))} s"
    minutes = math.ceil(seconds / 60)
    hours, rest = divmod(minutes, 60)
    if hours >= 48:
        return f"{round(hours / 24)} days"
    return f"{hours} h {rest} min" if hours else f"{minutes} min"


def latency(milliseconds: float | None) -> str:
    """Return how long a call took, "12 ms" or "1.3 s", a dash where it is not known."""
    if milliseconds is None:
        return "\N{EN DASH}"
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.0f} ms"


def listed(names: Iterable[str], word: str = "and") -> str:
    """Join names in a sentence: A, B and C; of no names, nothing."""
    *before, last = [*names] or [""]
    return f"{', '.join(before)} {word} {last}" if before else last


def number_of(number: int, thing: str) -> str:
    """Return "1 pair", "12,000 pairs"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def in_words(number: int) -> str:
    """Return a small number as a word, a larger one in digits.

    Examples
    --------
    >>> in_words(6), in_words(12)
    ('six', '12')
    """
    words = "no one two three four five six seven eight nine ten".split()
    return words[number] if number < len(words) else f"{number:,}"


def ordinal(number: int) -> str:
    """Return "first", "second" …, and "number 11" where no short word is left.

    Examples
    --------
    >>> ordinal(2), ordinal(11)
    ('second', 'number 11')
    """
    words = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
    return words[number - 1] if number <= len(words) else f"number {number:,}"


def odds(evidence: float) -> str:
    """Write evidence as odds, rounded down, so that it never looks like enough before it is.

    Examples
    --------
    >>> odds(6.25), odds(180.29), odds(12_345), odds(1e15), odds(1.0)
    ('6.2 : 1', '180 : 1', '12,300 : 1', 'over 1,000,000 : 1', '1 : 1')
    """
    if evidence > MOST_ODDS:
        return f"over {MOST_ODDS:,} : 1"
    unit = 0.1 if evidence < 10 else 10.0 ** max(0, math.floor(math.log10(evidence)) - 2)
    # What is 120 but for the rounding of floats is to be no 119.
    rounded = math.floor(evidence / unit * (1 + 1e-9)) * unit
    return f"{rounded:,.1f}".removesuffix(".0") + " : 1"


def harmless(text: str) -> str:
    """Return the text of a cell as no spreadsheet calculates it.

    Examples
    --------
    >>> harmless("=1+1"), harmless("  =1+1"), harmless("judge")
    ("'=1+1", "'  =1+1", 'judge')
    """
    # Some spreadsheets leave blanks out before they look, and marks that nobody sees.
    visible = text.lstrip().lstrip("\u200b\ufeff").lstrip()
    return f"'{text}" if text.startswith(_FORMULA) or visible.startswith(_FORMULA) else text


def excerpt(text: str, most: int = 120) -> str:
    """Return the beginning of a text in quotes, as one line of printable characters.

    Examples
    --------
    >>> excerpt("I cannot\\ndo that, sorry.", 8)
    "'I cannot…'"
    """
    words = " ".join(text.strip()[: 8 * most].split())
    line = "".join(letter for letter in words if letter.isprintable())
    return f"'{line[:most].rstrip()}…'" if len(line) > most else f"'{line}'"

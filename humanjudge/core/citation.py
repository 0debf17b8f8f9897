"""How to cite a result: as text and as BibTeX, with the head of the ledger that it follows from."""

import importlib.metadata
import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final
from urllib.parse import quote

PRODUCT: Final = "humanjudge"
# So many digits of a hash tell it from any other that one meets.
SHORT_HASH: Final = 12
# What an address may hold as it is; braces and backslashes would end the field.
_OF_ADDRESSES: Final = ":/?#[]@!$&'()*+,;=%-._~"
_ESCAPED: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}


@cache
def version() -> str:
    """Return the version of HumanJudge; a checkout that was not installed has none."""
    try:
        return importlib.metadata.version(PRODUCT)
    except importlib.metadata.PackageNotFoundError:
        return ""


def escaped(text: str) -> str:
    r"""Return a text as BibTeX and LaTeX print it, on one line.

    Examples
    --------
    >>> print(escaped("50% of {A} & B_1"))
    50\% of \{A\} \& B\_1
    """
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return "".join(_ESCAPED.get(letter, letter) for letter in line)


@dataclass(frozen=True)
class Citation:
    """A result as of an entry of its ledger; `head` is the hash of that entry, in hexadecimal.

    Examples
    --------
    >>> date, head = datetime(2026, 11, 23), "3f9ac0de5b7d" + 52 * "0"
    >>> cited = Citation("Judges of drawings", "https://x.example/r/1/", date, 412, head, "0.1.0")
    >>> cited.text[:50]
    'Judges of drawings. HumanJudge 0.1.0, 23 November '
    >>> print(cited.bibtex)
    @misc{humanjudge-3f9ac0de5b7d,
      title = {{Judges of drawings}},
      year = {2026},
      month = nov,
      howpublished = {HumanJudge 0.1.0},
      note = {As of 23 November 2026, ledger entry 412, head 3f9ac0de5b7d},
      url = {https://x.example/r/1/}
    }
    """

    title: str
    address: str
    sealed_at: datetime
    seq: int
    head: str
    version: str

    @property
    def text(self) -> str:
        title = " ".join(self.title.split())
        return (
            f"{title}. {self._product}, {self._date}. Ledger entry {self.seq}, head "
            f"{self._short}. {self.address}"
        )

    @property
    def bibtex(self) -> str:
        note = f"As of {self._date}, ledger entry {self.seq}, head {self._short}"
        fields = {
            # Twice: a style must not write it in small letters.
            "title": f"{{{{{escaped(self.title)}}}}}",
            "year": f"{{{self.sealed_at.year}}}",
            "month": f"{self.sealed_at:%b}".lower(),
            "howpublished": f"{{{escaped(self._product)}}}",
            "note": f"{{{note}}}",
            "url": f"{{{quote(self.address, safe=_OF_ADDRESSES)}}}",
        }
        lines = ",\n".join(f"  {name} = {value}" for name, value in fields.items())
        return f"@misc{{{PRODUCT}-{self._short},\n{lines}\n}}"

    @property
    def _product(self) -> str:
        return f"HumanJudge {self.version}".strip()

    @property
    def _date(self) -> str:
        return f"{self.sealed_at.day} {self.sealed_at:%B %Y}"

    @property
    def _short(self) -> str:
        return re.sub("[^0-9a-f]", "", self.head)[:SHORT_HASH]

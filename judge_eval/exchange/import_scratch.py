"""What an import has read, put together: tables in a file of its own, beside the database.

What is written comes from here in an order that never changes, so the number of rows that are
written says where to go on.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import md5
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

from pydantic import TypeAdapter

from judge_eval.exchange.rows import OF_A_PAIR, OUTPUTS, Item, Misfit, Row, column_of
from judge_eval.prompts.parse import with_namespaces

# A chunk is held and written at once: so many rows, or fewer where their texts are long.
MOST_ROWS: Final = 500
MOST_TEXT: Final = 4_000_000
_QUOTED: Final = 60
_MD5_LENGTH: Final = 32
# Rows are numbered from 1 by SQLite's `rowid`, without gaps, in the order they came.
_TABLES: Final = (
    "judge (name TEXT PRIMARY KEY)",
    "voter (name TEXT PRIMARY KEY)",
    "pair (name TEXT PRIMARY KEY, facts TEXT, output_a TEXT, output_b TEXT)",
    "verdict (name TEXT, pair TEXT, statement TEXT, PRIMARY KEY (name, pair))",
    "vote (name TEXT, pair TEXT, statement TEXT, PRIMARY KEY (name, pair))",
    "judged (name TEXT PRIMARY KEY)",
)
# What is written to the database row by row, in this order.
VOTES: Final = "vote"
WRITTEN: Final = ("pair", "verdict", "judged", VOTES)
AnyItem = TypeVar("AnyItem")


def mark(text: str) -> str:
    """Return what stands for a long text: its MD5, as databases compute it, and its beginning."""
    return md5(text.encode(), usedforsecurity=False).hexdigest() + text[: _QUOTED + 1]


def quote(value: object) -> str:
    """Return a value as an error quotes it.

    Examples
    --------
    >>> quote("A"), quote(["x", "y"]), len(quote("A" * 1000))
    ("'A'", "'x; y'", 62)
    """
    text = repr("; ".join(value) if isinstance(value, list) else value)
    return text if len(text) <= _QUOTED + 2 else f"{text[:_QUOTED]}…{text[-1]}"


@dataclass(slots=True)
class PairDraft:
    """What is known of one pair or single item: what is stored, and what rows have added.

    `known` goes by the names of `OF_A_PAIR`, with the `mark` of an output, and `metadata`; what
    nobody has stated is not there. What is not stored yet has no `position`. What was not imported
    `is_fixed`: rows may name it, and add nothing to it. `changes` are those of drawings, in words.
    """

    name: str
    known: dict[str, Any]
    pk: UUID = field(default_factory=uuid4)
    a: UUID = field(default_factory=uuid4)
    b: UUID = field(default_factory=uuid4)
    position: int | None = None
    is_fixed: bool = False
    is_open: bool = False
    is_changed: bool = False
    is_single: bool = False
    made_at: datetime | None = None
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, row: Row) -> dict[str, str]:
        """Add what a row states and return the texts of the outputs that are new.

        Raises Misfit where it contradicts; then nothing of it is added.
        """
        names = (*OF_A_PAIR, "metadata")
        stated = {name: value for name in names if (value := getattr(row, name))}
        stated |= {name: list(value) for name, value in stated.items() if isinstance(value, tuple)}
        texts: dict[str, str] = {}
        changes: dict[str, tuple[str, ...]] = {}
        for name in OUTPUTS:
            text = getattr(row, name)
            if text is None:
                continue
            if stated.get("kind", self.known.get("kind")) == "svg":
                # Drawings get what drawings that are generated here are given, too.
                drawing = with_namespaces(text)
                text = drawing.output
                changes |= {name: drawing.changes} if drawing.changes else {}
            texts[name], stated[name] = text, mark(text)
        for name, value in stated.items():
            is_guess = name == "kind" and not self.known.keys() & {*OUTPUTS}
            if not is_guess and self.known.get(name, value) != value:
                here, before = texts.get(name, value), self.known[name]
                before = before[_MD5_LENGTH:] if name in texts else before
                why = f"{quote(here)}, but {self.noun} {self.name!r} has {quote(before)}"
                raise Misfit(column_of(row, name), why)
        if self.is_fixed:
            return {}
        new = {name: text for name, text in texts.items() if name not in self.known}
        self.is_changed |= any(self.known.get(name) != value for name, value in stated.items())
        self.known |= stated
        self.changes |= changes
        self.made_at = self.made_at or row.made_at
        return new

    @property
    def noun(self) -> str:
        return "item" if self.is_single else "pair"

    @property
    def outputs(self) -> dict[str, UUID]:
        """The numbers of its outputs by their sides."""
        return {"a": self.a} if self.is_single else {"a": self.a, "b": self.b}

    @property
    def lacks_output(self) -> bool:
        return any(f"output_{side}" not in self.known for side in self.outputs)


DRAFT: Final = TypeAdapter(PairDraft)


class Scratch:
    """Pairs put together, verdicts and votes each once, as they are to be written.

    With `is_new` it begins anew: of a source that was not read to its end, nothing is used.
    """

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self._path = path
        if is_new:
            path.unlink(missing_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if is_new:
            # One transaction that is never rolled back: without its commit, nothing is there.
            for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "BEGIN"):
                self._db.execute(statement)
            for table in _TABLES:
                self._db.execute(f"CREATE TABLE {table}")

    def close(self) -> None:
        self._db.close()

    def finish(self) -> None:
        """Keep what was read: on the disk, before anything is written by it."""
        self._db.execute("COMMIT")
        with self._path.open("rb") as file:
            os.fsync(file.fileno())

    def count(self, table: str) -> int:
        number: int = self._one(f"SELECT count(*) FROM {table}")  # noqa: S608
        return number

    def insert(self, table: str, *values: str) -> bool:
        """Keep a row; say whether it is the first of its key."""
        places = ", ".join("?" * len(values))
        insert = f"INSERT INTO {table} VALUES ({places}) ON CONFLICT DO NOTHING"  # noqa: S608
        return self._db.execute(insert, values).rowcount > 0

    def statement(self, table: str, name: str, pair: str) -> str:
        select = f"SELECT statement FROM {table} WHERE name = ? AND pair = ?"  # noqa: S608
        statement: str = self._one(select, name, pair)
        return statement

    def votes_beyond(self, number: int) -> dict[str, int]:
        """Return how many votes there are on each pair that has more than so many."""
        select = "SELECT pair, count(*) FROM vote GROUP BY pair HAVING count(*) > ?"
        return dict(self._db.execute(select, [number]))

    def judges(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT name FROM judge ORDER BY rowid")]

    def drafts(self, names: Collection[str]) -> list[PairDraft]:
        marks = ", ".join("?" * len(names))
        select = f"SELECT facts FROM pair WHERE name IN ({marks})"  # noqa: S608
        return [DRAFT.validate_json(facts) for (facts,) in self._db.execute(select, list(names))]

    def keep(self, draft: PairDraft, texts: dict[str, str]) -> None:
        facts = DRAFT.dump_json(draft, exclude_defaults=True)
        self._db.execute(
            "INSERT INTO pair VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
            "facts = excluded.facts, output_a = coalesce(excluded.output_a, output_a), "
            "output_b = coalesce(excluded.output_b, output_b)",
            [draft.name, facts, *map(texts.get, OUTPUTS)],
        )

    def after(self, table: str, row: int) -> list[tuple[Any, ...]]:
        """Return the rows of a table that follow one; not too many, nor too much text at once."""
        select = f"SELECT * FROM {table} WHERE rowid > ? ORDER BY rowid"  # noqa: S608
        rows = self._db.execute(select, [row])
        return next(pieces(rows, lambda values: sum(len(text or "") for text in values)), [])

    def _one(self, select: str, *values: str) -> Any:
        return self._db.execute(select, values).fetchone()[0]


def text_of(item: Item) -> int:
    if not isinstance(item, Row):
        return 0
    texts = (item.prompt, item.output_a, item.output_b, item.feedback, item.error, item.comment)
    beside = (str(value) for value in (*item.metadata.values(), *item.labels.values()))
    return sum(len(text) for text in chain(texts, beside) if text)


def pieces(items: Iterable[AnyItem], text_of: Callable[[AnyItem], int]) -> Iterator[list[AnyItem]]:
    """Group items; a group ends with the one that makes it too many, or their text too long."""
    piece: list[AnyItem] = []
    size = 0
    for item in items:
        piece.append(item)
        size += text_of(item)
        if len(piece) == MOST_ROWS or size > MOST_TEXT:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece

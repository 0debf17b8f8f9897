"""What an import has read, put together: tables in a file of its own, beside the database.

What is written comes from here in an order that never changes, so the number of rows that are
written says where to go on.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from judge_eval.imports.drafts import PairDraft
from judge_eval.imports.row_models import OUTPUTS, ImportRow, Item

# A chunk is held and written at once: so many rows, or fewer where their texts are long.
MOST_ROWS: Final = 500
MOST_TEXT: Final = 4_000_000
# Rows are numbered from 1 by SQLite's `rowid`, without gaps, in the order they came.
_TABLES: Final = (
    "judge (name TEXT PRIMARY KEY)",
    "voter (name TEXT PRIMARY KEY, voter_group TEXT)",
    "pair (name TEXT PRIMARY KEY, facts TEXT, output_a TEXT, output_b TEXT)",
    "verdict (name TEXT, pair TEXT, statement TEXT, PRIMARY KEY (name, pair))",
    "vote (name TEXT, pair TEXT, statement TEXT, PRIMARY KEY (name, pair))",
    # Empty cells of judges.
    "blank (name TEXT, pair TEXT, PRIMARY KEY (name, pair))",
    "entered (pair TEXT PRIMARY KEY)",
    # Other names of an item, and whether its A and B are exchanged there.
    "alias (name TEXT PRIMARY KEY, item TEXT, is_turned INTEGER)",
    # By what tells an item whatever its name: who has it first, and which way round or with texts.
    "same (mark TEXT PRIMARY KEY, name TEXT, side TEXT)",
)
# What is written to the database row by row, in this order.
VOTES: Final = "vote"
TABLES_TO_WRITE: Final = ("pair", "verdict", "entered", VOTES)
# Beside the scratch file.
PICTURES: Final = "pictures"
DRAFT: Final = TypeAdapter(PairDraft)
AnyItem = TypeVar("AnyItem")


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

    @property
    def pictures(self) -> Path:
        """The folder of the pictures that came with the rows, each under its hash."""
        return self._path.with_name(PICTURES)

    def close(self) -> None:
        self._db.close()

    def finish(self) -> None:
        """Keep what was read: on the disk, before anything is written by it."""
        self._db.execute("COMMIT")
        with self._path.open("rb") as file:
            os.fsync(file.fileno())

    def count(self, table: str) -> int:
        return int(self._value(f"SELECT count(*) FROM {table}"))  # noqa: S608

    def insert(self, table: str, *values: str) -> bool:
        """Keep a row; say whether it is the first of its key."""
        places = ", ".join("?" * len(values))
        insert = f"INSERT INTO {table} VALUES ({places}) ON CONFLICT DO NOTHING"  # noqa: S608
        return self._db.execute(insert, values).rowcount > 0

    def put_into_group(self, voter: str, group: str) -> str:
        """Keep the first group that is stated of a voter, and return it."""
        update = "UPDATE voter SET voter_group = ? WHERE name = ? AND voter_group = ''"
        self._db.execute(update, [group, voter])
        return str(self._value("SELECT voter_group FROM voter WHERE name = ?", voter))

    def groups(self, voters: Collection[str]) -> dict[str, str]:
        return {name: group for name, group in self._among("voter", voters) if group}

    def aliases(self, names: Collection[str]) -> dict[str, tuple[str, bool]]:
        """Return the items that some names stand for, and whether A and B are exchanged there."""
        return {name: (item, bool(flag)) for name, item, flag in self._among("alias", names)}

    def first(self, mark: str, name: str, side: str) -> tuple[str, str]:
        """Return which name had such a mark first, and with which side."""
        self.insert("same", mark, name, side)
        select = "SELECT name, side FROM same WHERE mark = ?"
        first: tuple[str, str] = self._db.execute(select, [mark]).fetchone()
        return first

    def statement(self, table: str, name: str, pair: str) -> Any:
        select = f"SELECT statement FROM {table} WHERE name = ? AND pair = ?"  # noqa: S608
        return json.loads(self._value(select, name, pair))

    def votes_beyond(self, number: int) -> dict[str, int]:
        """Return how many votes there are on each pair that has more than so many."""
        select = "SELECT pair, count(*) FROM vote GROUP BY pair HAVING count(*) > ?"
        return dict(self._db.execute(select, [number]))

    def pairs_with_outputs_and_votes(self) -> tuple[int, int, int]:
        """Return how many pairs come with an output, how many have votes, and how many have both.

        Votes on a pair of the run are where they belong, whatever the run has of its outputs.
        """
        from_pairs = "FROM pair WHERE output_a IS NOT NULL"
        is_stored = "facts ->> 'position' IS NOT NULL"
        has_output = (
            f"pair IN (SELECT replace(facts ->> 'pk', '-', '') {from_pairs} OR {is_stored})"
        )
        voted = "count(DISTINCT pair)"
        select = f"SELECT {voted}, {voted} FILTER (WHERE {has_output}) FROM vote"  # noqa: S608
        return (self._value(f"SELECT count(*) {from_pairs}"), *self._db.execute(select).fetchone())

    def blanks(self) -> list[tuple[str, int, int]]:
        """Return each judge that has empty cells, with their number and that of its verdicts."""
        answers = "SELECT 1 FROM verdict v WHERE v.name = b.name AND v.pair = b.pair"
        self._db.execute(f"DELETE FROM blank AS b WHERE EXISTS ({answers})")  # noqa: S608
        verdicts = "SELECT count(*) FROM verdict v WHERE v.name = b.name"
        select = f"SELECT name, count(*), ({verdicts}) FROM blank b GROUP BY name"  # noqa: S608
        return list(self._db.execute(select))

    def fill_blanks(self, judge: str, statement: str, excluded_pairs: Iterable[str]) -> int:
        """Take a judge's empty cells for a statement, but for those of some pairs; count them."""
        self._db.executemany(
            "DELETE FROM blank WHERE pair = ? AND name = ?",
            ((pair, judge) for pair in excluded_pairs),
        )
        insert = "INSERT INTO verdict SELECT name, pair, ? FROM blank WHERE name = ? ORDER BY rowid"
        return self._db.execute(insert, [statement, judge]).rowcount

    def judges(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT name FROM judge ORDER BY rowid")]

    def drafts(self, names: Collection[str]) -> list[PairDraft]:
        rows = self._among("pair", names, "facts")
        return [DRAFT.validate_json(facts) for (facts,) in rows]

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

    def _among(self, table: str, names: Collection[str], columns: str = "*") -> Iterable[Any]:
        marks = ", ".join("?" * len(names))
        select = f"SELECT {columns} FROM {table} WHERE name IN ({marks})"  # noqa: S608
        return self._db.execute(select, [*names])

    def _value(self, select: str, *values: str) -> Any:
        return self._db.execute(select, values).fetchone()[0]


def text_of(item: Item) -> int:
    if not isinstance(item, ImportRow):
        return 0
    texts = (item.prompt, item.output_a, item.output_b, item.feedback, item.error, item.comment)
    cells = (str(value) for value in (*item.metadata.values(), *item.labels.values()))
    return sum(len(text) for text in chain(texts, cells) if text)


def pieces(
    items: Iterable[AnyItem],
    text_of: Callable[[AnyItem], int],
    most: Callable[[], int] = lambda: MOST_ROWS,
) -> Iterator[list[AnyItem]]:
    """Group items; a group ends with the one that makes it too many, or their text too long."""
    piece: list[AnyItem] = []
    size = 0
    for item in items:
        piece.append(item)
        size += text_of(item)
        if len(piece) >= min(most(), MOST_ROWS) or size > MOST_TEXT:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece

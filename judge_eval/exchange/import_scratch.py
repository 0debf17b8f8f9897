"""What an import has read, put together: tables in a file of its own, beside the database.

A source is read and checked once, without a lock on anything. What is written afterwards comes
from here, in an order that never changes: how many rows of it are written says where to go on.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from judge_eval.exchange.import_rows import UNREAD, PairDraft
from judge_eval.exchange.rows import OUTPUTS

# The hidden `rowid` numbers the rows of a table from 1, without gaps, in the order they came.
_TABLES: Final = (
    "judge (name TEXT PRIMARY KEY)",
    "voter (name TEXT PRIMARY KEY)",
    "pair (name TEXT PRIMARY KEY, facts TEXT, output_a TEXT, output_b TEXT)",
    "verdict (judge TEXT, pair TEXT, statement TEXT, PRIMARY KEY (judge, pair))",
    "vote (voter TEXT, pair TEXT, statement TEXT, PRIMARY KEY (voter, pair))",
    "judged (name TEXT PRIMARY KEY)",
    "outcome (facts TEXT)",
)
_NOTED: Final = {
    table: f"INSERT INTO {table} VALUES (?) ON CONFLICT DO NOTHING"  # noqa: S608
    for table in ("judge", "voter", "judged")
}
_STATED: Final = {
    "verdict": "INSERT INTO verdict VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    "vote": "INSERT INTO vote VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
}
_BEFORE: Final = {
    "verdict": "SELECT statement FROM verdict WHERE judge = ? AND pair = ?",
    "vote": "SELECT statement FROM vote WHERE voter = ? AND pair = ?",
}
_BEHIND: Final = {
    "pair": "SELECT name, facts, output_a, output_b FROM pair WHERE rowid > ? ORDER BY rowid",
    "verdict": "SELECT statement FROM verdict WHERE rowid > ? ORDER BY rowid",
    "judged": "SELECT name FROM judged WHERE rowid > ? ORDER BY rowid",
    "vote": "SELECT statement FROM vote WHERE rowid > ? ORDER BY rowid",
}


class Scratch:
    """Pairs put together, verdicts and votes each once, as they are to be written.

    Parameters
    ----------
    path : Path
    is_new : bool
        Begin anew: of a source that was not read to its end, nothing is used.
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

    def finish(self, outcome: dict[str, Any]) -> None:
        """Keep what reading came to: on the disk, before anything is written by it."""
        self._db.execute("INSERT INTO outcome VALUES (?)", [json.dumps(outcome)])
        self._db.execute("COMMIT")
        with self._path.open("rb") as file:
            os.fsync(file.fileno())

    def outcome(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self._one("SELECT facts FROM outcome"))
        return facts

    def count(self, table: str) -> int:
        number: int = self._one(f"SELECT count(*) FROM {table}")  # noqa: S608
        return number

    # --- names and statements ---------------------------------------------------------------------

    def note(self, table: str, name: str) -> bool:
        """Note a name; say whether it is the first time."""
        return self._db.execute(_NOTED[table], [name]).rowcount > 0

    def judges(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT name FROM judge ORDER BY rowid")]

    def state(self, table: str, who: str, pair: str, statement: str) -> str | None:
        """Keep what somebody says of a pair, or return what was kept of that before."""
        if self._db.execute(_STATED[table], [who, pair, statement]).rowcount > 0:
            return None
        before: str = self._one(_BEFORE[table], who, pair)
        return before

    def behind(self, table: str, row: int, most: int, most_text: int) -> list[str]:
        """Return the rows of a table that follow one of them; not too much text at once."""
        return [value for (value,) in self._behind(table, row, most, most_text)]

    # --- pairs ------------------------------------------------------------------------------------

    def drafts(self, names: Collection[str]) -> list[PairDraft]:
        """Return those pairs of these names that are here, without their outputs."""
        marks = ", ".join("?" * len(names))
        select = f"SELECT name, facts FROM pair WHERE name IN ({marks})"  # noqa: S608
        return [_draft(name, facts) for name, facts in self._db.execute(select, list(names))]

    def read_outputs(self, draft: PairDraft) -> None:
        """Read what is here of a pair's outputs; those that the database has stay unread."""
        stored = "SELECT output_a, output_b FROM pair WHERE name = ?"
        _put_outputs(draft, self._db.execute(stored, [draft.name]).fetchone() or ())

    def keep(self, draft: PairDraft) -> None:
        outputs = (draft.known.get(field) if field in draft.added else None for field in OUTPUTS)
        self._db.execute(
            "INSERT INTO pair VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
            "facts = excluded.facts, output_a = coalesce(excluded.output_a, output_a), "
            "output_b = coalesce(excluded.output_b, output_b)",
            [draft.name, _facts(draft), *(None if text is UNREAD else text for text in outputs)],
        )

    def pairs_behind(self, row: int, most: int, most_text: int) -> list[PairDraft]:
        """Return the pairs that follow one, with the outputs that came; not much text at once."""
        drafts = []
        for name, facts, *outputs in self._behind("pair", row, most, most_text):
            drafts.append(_draft(name, facts))
            _put_outputs(drafts[-1], outputs)
        return drafts

    def _behind(self, table: str, row: int, most: int, most_text: int) -> Iterator[tuple[Any, ...]]:
        size = 0
        for number, values in enumerate(self._db.execute(_BEHIND[table], [row]), start=1):
            yield values
            size += sum(len(text or "") for text in values)
            if number == most or size > most_text:
                return

    def _one(self, select: str, *values: str) -> Any:
        return self._db.execute(select, values).fetchone()[0]


def _facts(draft: PairDraft) -> str:
    known = {field: None if field in OUTPUTS else value for field, value in draft.known.items()}
    keys = [draft.pk.hex, draft.a.hex, draft.b.hex]
    place = [draft.position, draft.is_complete, draft.is_open]
    return json.dumps([keys, known, sorted(draft.added), *place, draft.changes])


def _draft(name: str, facts: str) -> PairDraft:
    keys, known, added, position, is_complete, is_open, changes = json.loads(facts)
    known |= {field: UNREAD for field in OUTPUTS if field in known}
    if "tags" in known:
        known["tags"] = tuple(known["tags"])
    pk, a, b = (UUID(hex=key) for key in keys)
    place = (position, is_complete, is_open)
    return PairDraft(name, pk, a, b, known, set(added), *place, changes)


def _put_outputs(draft: PairDraft, outputs: Collection[str | None]) -> None:
    for field, text in zip(OUTPUTS, outputs, strict=False):
        if text is not None:
            draft.known[field] = text

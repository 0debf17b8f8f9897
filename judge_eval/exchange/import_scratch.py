"""What an import has read, put together: tables in a file of its own, beside the database.

A source is read and checked once, without a lock on anything. What is written afterwards comes
from here, in an order that never changes: how many rows of it are written says where to go on.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import astuple, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel, TypeAdapter

from judge_eval.exchange.import_report import ImportReport
from judge_eval.exchange.rows import OF_A_PAIR, OUTPUTS, JudgeOrder, Kind, PairPart, Row, RowError
from judge_eval.prompts.output import with_namespaces
from voting.choices import Choice

# A chunk is held and written at once: so many rows, or fewer where their texts are long.
MOST_ROWS: Final = 500
MOST_TEXT: Final = 4_000_000
# Stands for an output that is stored and was not needed yet.
UNREAD: Final = object()
_QUOTED: Final = 60
_ROW: Final = TypeAdapter(Row)
# The hidden `rowid` numbers the rows of a table from 1, without gaps, in the order they came.
_TABLES: Final = (
    "judge (name TEXT PRIMARY KEY)",
    "voter (name TEXT PRIMARY KEY)",
    "pair (name TEXT PRIMARY KEY, facts TEXT, output_a TEXT, output_b TEXT)",
    "verdict (who TEXT, pair TEXT, statement TEXT, PRIMARY KEY (who, pair))",
    "vote (who TEXT, pair TEXT, statement TEXT, PRIMARY KEY (who, pair))",
    "judged (name TEXT PRIMARY KEY)",
    "outcome (facts TEXT)",
)
Names: TypeAlias = Literal["judge", "voter", "judged"]
Statements: TypeAlias = Literal["verdict", "vote"]
# What is written to the database row by row, in this order.
WRITTEN: Final = ("pair", "verdict", "judged", "vote")
AnyItem = TypeVar("AnyItem")


@dataclass(slots=True)
class PairDraft:
    """What is known of one pair: what is stored, and what rows have added.

    Attributes
    ----------
    known : dict
        By the names of `OF_A_PAIR`; what nobody has stated is not there.
    added : set of str
        Fields that are not stored yet.
    position : int, optional
        Its place in the run; None for a pair that is not stored yet.
    is_complete : bool
        A pair that was not imported: rows may name it, and add nothing to it.
    is_open : bool
        It was opened for voting.
    changes : dict
        What was changed in an output so that it can be drawn, in words, by the output's field.
    """

    name: str
    pk: UUID
    a: UUID
    b: UUID
    known: dict[str, Any] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    position: int | None = None
    is_complete: bool = False
    is_open: bool = False
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, row: Row) -> RowError | None:
        """Add what a row states of the pair, all of it or, where it contradicts, nothing.

        Examples
        --------
        >>> draft = PairDraft("7", *[UUID(int=0)] * 3, known={"output_a": "cat"})
        >>> str(draft.take(Row("f", 2, PairPart("7", output_a="dog", output_b="owl"))))
        "f:2: output_a: 'dog', but pair '7' has 'cat'"
        >>> draft.take(Row("f", 3, PairPart("7", output_b="owl"))), draft.added
        (None, {'output_b'})
        """
        stated = {name: getattr(row.pair, name) for name in OF_A_PAIR}
        stated = {name: value for name, value in stated.items() if value not in (None, ())}
        changes = _mend(stated) if stated.get("kind", self.known.get("kind")) == "svg" else {}
        for name, value in stated.items():
            if self._contradicts(name, value):
                why = f"{quote(value)}, but pair {self.name!r} has {quote(self.known[name])}"
                return RowError(row.file, row.line, name, why)
        if not self.is_complete:
            self.added |= {name for name in stated if self.known.get(name) != stated[name]}
            self.known |= stated
            self.changes |= changes
        return None

    @property
    def lacks_output(self) -> bool:
        return any(name not in self.known for name in OUTPUTS)

    def _contradicts(self, name: str, value: object) -> bool:
        if name == "kind" and not self.known.keys() & {*OUTPUTS}:
            return False  # a guess until there is an output of some kind
        return name in self.known and self.known[name] != value


def _mend(stated: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Let drawings have what drawings that were generated here are given, too."""
    changes = {}
    for name in stated.keys() & {*OUTPUTS}:
        stated[name], changed = astuple(with_namespaces(stated[name]))
        if changed:
            changes[name] = changed
    return changes


def quote(value: object) -> str:
    """Return a value as an error quotes it.

    Examples
    --------
    >>> quote("A"), len(quote("A" * 1000))
    ("'A'", 62)
    """
    text = repr("; ".join(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _QUOTED + 2 else f"{text[:_QUOTED]}…{text[-1]}"


def write_statement(row: Row, pair: UUID) -> str:
    """Return a row's statement on a pair that is known, as text: the pair is named and no more."""
    bare = replace(row, pair=PairPart(row.pair.id))
    return pair.hex + _ROW.dump_json(bare, exclude_defaults=True).decode()


def read_statement(text: str) -> tuple[Row, UUID]:
    return _ROW.validate_json(text[32:]), UUID(hex=text[:32])


class Outcome(BaseModel):
    """What reading came to, beside the rows."""

    kind: Kind | None
    ballot: list[Choice]
    wants_baselines: bool
    report: ImportReport


class Scratch:
    """Pairs put together, verdicts and votes each once, as they are to be written.

    Parameters
    ----------
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

    def finish(self, outcome: Outcome) -> None:
        """Keep what reading came to: on the disk, before anything is written by it."""
        self._db.execute("INSERT INTO outcome VALUES (?)", [outcome.model_dump_json()])
        self._db.execute("COMMIT")
        with self._path.open("rb") as file:
            os.fsync(file.fileno())

    def outcome(self) -> Outcome:
        return Outcome.model_validate_json(self._one("SELECT facts FROM outcome"))

    def count(self, table: str) -> int:
        number: int = self._one(f"SELECT count(*) FROM {table}")  # noqa: S608
        return number

    def note(self, table: Names, name: str) -> bool:
        """Note a name; say whether it is the first time."""
        insert = f"INSERT INTO {table} VALUES (?) ON CONFLICT DO NOTHING"  # noqa: S608
        return self._db.execute(insert, [name]).rowcount > 0

    def judges(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT name FROM judge ORDER BY rowid")]

    def state(self, table: Statements, who: str, pair: str, statement: str) -> str | None:
        """Keep what somebody states of a pair, or return what was kept of that before."""
        insert = f"INSERT INTO {table} VALUES (?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608
        if self._db.execute(insert, [who, pair, statement]).rowcount > 0:
            return None
        before: str = self._one(
            f"SELECT statement FROM {table} WHERE who = ? AND pair = ?",  # noqa: S608
            who,
            pair,
        )
        return before

    def texts_after(self, table: str, row: int) -> list[str]:
        """Return the statements or names that follow a row; not too much text at once."""
        return [values[-1] for values in self._after(table, row)]

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
        outputs = (draft.known.get(name) if name in draft.added else None for name in OUTPUTS)
        self._db.execute(
            "INSERT INTO pair VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
            "facts = excluded.facts, output_a = coalesce(excluded.output_a, output_a), "
            "output_b = coalesce(excluded.output_b, output_b)",
            [draft.name, _facts(draft), *(None if text is UNREAD else text for text in outputs)],
        )

    def pairs_after(self, row: int) -> list[PairDraft]:
        """Return the pairs that follow one, with the outputs that came; not much text at once."""
        drafts = []
        for name, facts, *outputs in self._after("pair", row):
            drafts.append(_draft(name, facts))
            _put_outputs(drafts[-1], outputs)
        return drafts

    def _after(self, table: str, row: int) -> list[tuple[Any, ...]]:
        select = f"SELECT * FROM {table} WHERE rowid > ? ORDER BY rowid"  # noqa: S608
        rows = self._db.execute(select, [row])
        texts = pieces(rows, lambda values: sum(len(text or "") for text in values))
        return next(texts, [])

    def _one(self, select: str, *values: str) -> Any:
        return self._db.execute(select, values).fetchone()[0]


def _facts(draft: PairDraft) -> str:
    known = {name: None if name in OUTPUTS else value for name, value in draft.known.items()}
    keys = [draft.pk.hex, draft.a.hex, draft.b.hex]
    place = [draft.position, draft.is_complete, draft.is_open]
    return json.dumps([keys, known, sorted(draft.added), *place, draft.changes])


def _draft(name: str, facts: str) -> PairDraft:
    keys, known, added, *place = json.loads(facts)
    known |= {output: UNREAD for output in OUTPUTS if output in known}
    if "tags" in known:
        known["tags"] = tuple(known["tags"])
    pk, a, b = (UUID(hex=key) for key in keys)
    return PairDraft(name, pk, a, b, known, set(added), *place)


def _put_outputs(draft: PairDraft, outputs: Collection[str | None]) -> None:
    for name, text in zip(OUTPUTS, outputs, strict=False):
        if text is not None:
            draft.known[name] = text


# --- chunks -----------------------------------------------------------------------------------


def text_of(row: Row) -> int:
    """Return how many characters of free text a row holds.

    Examples
    --------
    >>> text_of(Row("f", 1, PairPart("7", output_a="cat", prompt="Why?")))
    7
    """
    pair, verdict, vote = row.pair, row.verdict, row.vote
    texts = [pair.prompt, pair.output_a, pair.output_b]
    texts += [verdict.feedback, verdict.error] if verdict else []
    texts += [vote.comment] if vote else []
    return sum(len(text) for text in texts if text)


def chunks(items: Iterable[Row | JudgeOrder]) -> Iterator[list[Row] | JudgeOrder]:
    """Group rows so that a group and what is made of it stay small; an order of judges parts them.

    Examples
    --------
    >>> [row, order] = Row("f", 1, PairPart("7")), JudgeOrder("f", ())
    >>> [type(chunk).__name__ for chunk in chunks([row, row, order, row])]
    ['list', 'JudgeOrder', 'list']
    """
    for is_order, alike in groupby(items, key=lambda item: isinstance(item, JudgeOrder)):
        if is_order:
            yield from cast(Iterator[JudgeOrder], alike)
        else:
            yield from pieces(cast(Iterator[Row], alike), text_of)


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

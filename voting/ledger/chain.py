"""The hash chain of a ledger: canonical JSON, hashes, and verification of an export.

Pure and made of the standard library alone, so that anyone can verify an export with this one
file: ``python chain.py ledger.jsonl --head 3f9a…``.

Entry ``n`` has the hash ``h[n] = SHA-256(h[n-1] || canonical(entry n))`` where ``h[n-1]`` is taken
as 32 bytes and ``h[0]`` is the SHA-256 of the project's UUID as lower-case text. Changing, adding,
removing or reordering entries changes every hash behind them; cutting the tail changes the head.
"""

import argparse
import json
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

SCHEMA = 1
# What an entry holds: no floats, see `canonical`.
Value: TypeAlias = "str | int | bool | Sequence[Value] | Mapping[str, Value] | None"
Content: TypeAlias = dict[str, Value]

# Made once: sealing writes and verifying reads a great many entries.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
_TEXT = frozenset({str})
_PLAIN = frozenset({str, int, bool, type(None)})


class ChainBroken(ValueError):
    """An export does not verify: in which line, 0 when it is about none, and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)


@dataclass(frozen=True)
class VerifiedLedger:
    """What a verified export proves: which project, how many entries, which head (hex)."""

    project: uuid.UUID
    entries: int
    head: str


def timestamp(moment: datetime) -> str:
    """Write an aware time as the ledger does: UTC, microseconds, ``Z``.

    >>> timestamp(datetime(2026, 11, 21, 9, tzinfo=UTC))
    '2026-11-21T09:00:00.000000Z'
    """
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def salted_hash(salt: str, text: str) -> str:
    """Return SHA-256(salt || text) in hex: how free text stands in the chain."""
    return sha256((salt + text).encode()).hexdigest()


def canonical(content: Mapping[str, Value]) -> bytes:
    """Return the one byte string that stands for an entry.

    Raises TypeError for a value of another type, since a float has no canonical text that every
    language agrees on, and UnicodeEncodeError for half a surrogate pair, which UTF-8 cannot hold.

    >>> canonical({"b": 1, "a": ["é", None, True]})
    b'{"a":["\\xc3\\xa9",null,true],"b":1}'
    """
    # A vote is flat: to see its types in one go counts where a great many entries are sealed.
    if not (
        _TEXT.issuperset(map(type, content)) and _PLAIN.issuperset(map(type, content.values()))
    ):
        _refuse_other_types(content)
    return _encode(content).encode()


def _refuse_other_types(value: object) -> None:
    if value is None or isinstance(value, str | int):
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a ledger entry has only text keys: {key!r}")
            _refuse_other_types(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_other_types(inner)
    else:
        raise TypeError(f"a ledger entry holds no {type(value).__name__}: {value!r}")


def genesis(project: uuid.UUID) -> bytes:
    """Return ``h[0]``, the hash that stands before a project's first entry."""
    return sha256(str(project).lower().encode()).digest()


def extend(previous: bytes, content: Content) -> bytes:
    """Return ``h[n]`` from ``h[n-1]`` (32 bytes) and the content of entry ``n``."""
    return sha256(previous + canonical(content)).digest()


def header(project: uuid.UUID) -> Content:
    return {"ledger": str(project), "schema": SCHEMA}


def verify(
    lines: Iterable[str], head: str | None = None, receipts: Mapping[int, str] | None = None
) -> VerifiedLedger:
    """Verify an export of a ledger; raise ChainBroken at the first line that is not as it must be.

    `lines` are JSON Lines: a header ``{"ledger": UUID, "schema": 1}``, then one
    ``{"entry": {...}, "hash": HEX}`` per entry in the order of ``seq``. `head` is the hash of the
    last entry in hex, known from elsewhere: only with it can a cut tail be found out. `receipts`
    are hashes of entries by their numbers, as voters have kept them of their own votes.

    >>> verify(['{"ledger":"00000000-0000-0000-0000-000000000000","schema":1}']).entries
    0
    """
    numbered = enumerate(lines, start=1)
    project = _read_header(numbered)
    previous = genesis(project)
    open_receipts = dict(receipts or {})
    votes: set[str] = set()
    seq = 0
    for number, line in numbered:
        if not line.strip():
            continue
        record = _parse(number, line)
        entry, stated_hash = record.get("entry"), record.get("hash")
        if not isinstance(entry, dict) or not isinstance(stated_hash, str):
            raise ChainBroken(number, "not an entry with its hash")
        seq += 1
        _check_entry(number, entry, seq, votes)
        previous = _extended(number, previous, entry)
        if previous.hex() != stated_hash.lower():
            raise ChainBroken(number, f"entry {seq} is not the one its hash was made of")
        if open_receipts.pop(seq, stated_hash).strip().lower() != previous.hex():
            raise ChainBroken(number, f"entry {seq} is not the one that the receipt is of")
    if head is not None and previous.hex() != head.strip().lower():
        raise ChainBroken(
            0, f"the export ends at {previous.hex()}, not at the head {head}: its tail was cut"
        )
    if open_receipts:
        number = min(open_receipts)
        raise ChainBroken(0, f"the export has no entry {number}, of which there is a receipt")
    return VerifiedLedger(project, seq, previous.hex())


def _read_header(numbered: Iterable[tuple[int, str]]) -> uuid.UUID:
    for number, line in numbered:
        record = _parse(number, line)
        if record.get("schema") != SCHEMA:
            raise ChainBroken(number, f"schema {record.get('schema')!r}, this reads {SCHEMA}")
        try:
            return uuid.UUID(str(record.get("ledger")))
        except ValueError as error:
            raise ChainBroken(number, "the header names no ledger") from error
    raise ChainBroken(0, "the file is empty")


def _extended(number: int, previous: bytes, entry: Content) -> bytes:
    try:
        return extend(previous, entry)
    except (TypeError, UnicodeEncodeError, RecursionError) as error:
        raise ChainBroken(number, str(error)) from error


def _check_entry(number: int, entry: Content, seq: int, votes: set[str]) -> None:
    if entry.get("seq") != seq:
        raise ChainBroken(number, f"entry {entry.get('seq')!r} stands where {seq} must")
    if entry.get("schema") != SCHEMA:
        raise ChainBroken(number, f"entry {seq} has schema {entry.get('schema')!r}")
    if entry.get("kind") == "vote":
        votes.add(str(entry.get("id")))
    if entry.get("kind") == "retraction":
        target = str(entry.get("target"))
        if target not in votes:
            raise ChainBroken(number, f"entry {seq} retracts a vote that does not stand")
        votes.remove(target)


def _parse(number: int, line: str) -> Content:
    try:
        record = json.loads(line, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise ChainBroken(number, f"not JSON ({error})") from error
    if not isinstance(record, dict):
        raise ChainBroken(number, "not a JSON object")
    return record


def _without_duplicates(pairs: list[tuple[str, Value]]) -> Content:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key is given twice")
    return record


RECEIPT: Final = "NUMBER:HASH of an entry, as a voter has kept it; may be given several times"


def _receipt(text: str) -> tuple[int, str]:
    number, _, entry_hash = text.partition(":")
    return int(number), entry_hash


def main(arguments: list[str] | None = None) -> int:
    """Verify a file from the command line; the exit code is 0 only for an unbroken chain."""
    parser = argparse.ArgumentParser(description="Verify an exported ledger, offline.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--head", help="the head printed on a report: also finds a cut tail")
    parser.add_argument("--receipt", action="append", type=_receipt, default=[], help=RECEIPT)
    options = parser.parse_args(arguments)
    try:
        with options.file.open(encoding="utf-8") as lines:
            verified = verify(lines, options.head, dict(options.receipt))
    except (OSError, UnicodeDecodeError, ChainBroken) as error:
        sys.stderr.write(f"{options.file}: {error}\n")
        return 1
    end = "the head is as given" if options.head else "no head was given: a cut tail would pass"
    sys.stdout.write(
        f"verified: {verified.entries} entries of project {verified.project}, "
        f"head {verified.head} ({end})\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The GrandJury vote file: ``inference_id,vote,voter_id,vote_time,voter_prompt_id`` as CSV.

Written as the public ``grandjury`` client reads it: ``True`` and ``False`` for pass and flag, a
number in [0, 1] for a graded vote, nothing for no vote; times in UTC.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from typing import Any, BinaryIO, Final, NamedTuple

from judge_eval.exchange import fields
from judge_eval.exchange.fields import Converter
from judge_eval.exchange.rows import RowError
from judge_eval.exchange.sources import Record, records

COLUMNS: Final = ("inference_id", "vote", "voter_id", "vote_time", "voter_prompt_id")
_NEEDED = ("inference_id", "voter_id", "vote_time")


class VoteLine(NamedTuple):
    """One line: who said what of which inference, when, and under which rubric.

    Attributes
    ----------
    vote : bool or float or None
        Pass or flag, or a grade in [0, 1]; None where the voter gave none.
    vote_time : datetime
        Aware.
    """

    inference_id: str
    vote: bool | float | None
    voter_id: str
    vote_time: datetime
    voter_prompt_id: str | None = None


def lines(votes: Iterable[VoteLine]) -> Iterator[str]:
    """Write a vote file line by line, the header first.

    Raises
    ------
    ValueError
        For a time without a zone or a grade outside [0, 1].

    Examples
    --------
    >>> at = datetime(2026, 11, 21, 9, tzinfo=UTC)
    >>> list(lines([VoteLine("7", True, "v1", at)]))[1]
    '7,True,v1,2026-11-21T09:00:00.000000Z,\\r\\n'
    """
    yield _line(COLUMNS)
    for inference_id, vote, voter_id, at, prompt_id in votes:
        if at.utcoffset() is None:
            raise ValueError(f"{at.isoformat()} names no time zone")
        time = at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        yield _line((inference_id, _checked(vote), voter_id, time, prompt_id))


def read(stream: BinaryIO, name: str) -> Iterator[VoteLine | RowError]:
    """Read a vote file.

    Times that name no zone are UTC: the client's own examples write none.

    Yields
    ------
    VoteLine or RowError

    Examples
    --------
    >>> from io import BytesIO
    >>> file = b"inference_id,vote,voter_id,vote_time\\n1,True,101,2024-07-07 19:22:30\\n"
    >>> next(read(BytesIO(file), "votes.csv")).vote_time.isoformat()
    '2024-07-07T19:22:30+00:00'
    """
    for record in records(stream, name, "csv"):
        yield record if isinstance(record, RowError) else _vote_line(name, record)


def _vote_line(name: str, record: Record) -> VoteLine | RowError:
    read_as: dict[str, Converter] = {
        "inference_id": fields.name,
        "vote": _graded,
        "voter_id": fields.name,
        "vote_time": partial(fields.moment, zone=UTC),
        "voter_prompt_id": fields.name,
    }
    values: dict[str, Any] = {}
    for column, convert in read_as.items():
        raw = record.values.get(column)
        try:
            values[column] = None if raw is None else convert(raw)
        except ValueError as error:
            return RowError(name, record.line, column, str(error))
        if values[column] is None and column in _NEEDED:
            return RowError(name, record.line, column, "missing")
    return VoteLine(**values)


def _graded(raw: object) -> bool | float | None:
    """Return pass, flag, a grade in [0, 1], or None for no vote."""
    word = raw.strip().lower() if isinstance(raw, str) else raw
    if word in ("", "none"):
        return None
    if isinstance(word, bool) or word in ("true", "false"):
        return fields.flag(word)
    return _checked(fields.number(raw))


def _checked(vote: float | None) -> bool | float | None:
    if vote is None or isinstance(vote, bool):
        return vote
    if not 0 <= vote <= 1:
        raise ValueError(f"{vote} is not within 0..1")
    return float(vote)


def _line(cells: Iterable[object]) -> str:
    buffer = StringIO()
    # Lines end as RFC 4180 says: with another ending the csv module leaves "\r" unquoted.
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()

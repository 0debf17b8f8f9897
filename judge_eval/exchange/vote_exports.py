"""Votes for other tools: a table for spreadsheets, and the vote file of the GrandJury protocol.

That file is CSV, ``inference_id,vote,voter_id,vote_time,voter_prompt_id``, as the public
``grandjury`` client reads it: ``True`` and ``False`` for pass and flag, a number in [0, 1] for a
graded vote, nothing for no vote; times in UTC.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from typing import Any, BinaryIO, Final, NamedTuple

from django.db.models import Q

from humanjudge.lib.text import harmless
from judge_eval.exchange import fields
from judge_eval.exchange.export import in_chunks
from judge_eval.exchange.fields import Converter
from judge_eval.exchange.rows import RowError
from judge_eval.exchange.sources import Record, records
from judge_eval.models import Run
from voting.choices import row_of
from voting.ledger.chain import timestamp
from voting.ledger.counts import COUNTED
from voting.models import Entry

COLUMNS: Final = (
    "seq",
    "voted_at",
    "pair",
    "pair_name",
    "generator_a",
    "generator_b",
    "choice",
    "value",
    "category",
    "left_side",
    "voter",
    "comment",
    "labels",
    "rubric",
    "elapsed_ms",
    "reputation",
    "unblinded",
    "simulated",
    "retracted",
    "hash",
)


def votes_csv(run: Run) -> Iterator[str]:
    """Yield all sealed votes of a run as CSV, line by line, those that were taken back too.

    A text that a spreadsheet would calculate stands behind an apostrophe.
    """
    yield _line(COLUMNS)
    votes = Entry.objects.filter(queue=run.queue_id, kind=Entry.Kind.VOTE, seq__isnull=False)
    related = votes.select_related("voter", "rubric", "item__a", "item__b")
    outputs = ("item__a__output", "item__b__output")
    for vote in in_chunks(related.defer(*outputs), "seq"):
        yield _line(harmless(cell) if isinstance(cell, str) else cell for cell in _cells(vote))


def grandjury_votes(run: Run) -> Iterator[str]:
    """Yield the votes that count, of people, as a GrandJury vote file.

    A vote on a pair is a grade of either output: 1 for the better one and 0 for the other, 0.5 for
    both of a tie, 0 for both that are bad.
    """
    counted = Entry.objects.filter(COUNTED & Q(simulated=False), queue=run.queue_id)
    votes = counted.select_related("voter", "rubric", "item")
    return vote_lines(line for vote in in_chunks(votes, "seq") for line in _graded(vote))


def _graded(vote: Entry) -> Iterator[VoteLine]:
    assert vote.voter is not None and vote.rubric is not None  # noqa: PT018  it is a vote
    common = (vote.voter.pseudonym, vote.at, str(vote.rubric))
    if vote.item is None:
        yield VoteLine(str(vote.inference_id), (vote.value or 0) / 1_000_000, *common)
        return
    sides = (vote.item.a_id, vote.item.b_id)
    grades = row_of(vote.choice).grades
    for output, grade in zip(sides, grades, strict=True):
        yield VoteLine(str(output), grade, *common)


def _cells(vote: Entry) -> Iterable[Any]:
    pair = vote.item
    assert vote.voter is not None and vote.hash is not None  # noqa: PT018  it is a sealed vote
    labels = json.dumps(vote.labels, ensure_ascii=False) if vote.labels else ""
    return (
        vote.seq,
        timestamp(vote.at),
        vote.item_id or vote.inference_id,
        pair.external_id if pair else "",
        *([output.generator for output in pair.pair] if pair else ["", ""]),
        vote.choice,
        vote.value,
        vote.category,
        vote.left_side,
        vote.voter.pseudonym,
        vote.comment,
        labels,
        str(vote.rubric),
        vote.elapsed_ms,
        vote.reputation,
        vote.unblinded,
        vote.simulated,
        vote.retracted_seq is not None,
        bytes(vote.hash).hex(),
    )


# --- the vote file of the GrandJury protocol --------------------------------------------------

VOTE_COLUMNS: Final = ("inference_id", "vote", "voter_id", "vote_time", "voter_prompt_id")
_NEEDED = ("inference_id", "voter_id", "vote_time")


class VoteLine(NamedTuple):
    """Who said what of which inference, when (aware), and under which rubric.

    `vote` is pass or flag, or a grade in [0, 1]; None where the voter gave none.
    """

    inference_id: str
    vote: bool | float | None
    voter_id: str
    vote_time: datetime
    voter_prompt_id: str | None = None


def vote_lines(votes: Iterable[VoteLine]) -> Iterator[str]:
    """Write a vote file line by line; raises ValueError for a time without a zone or a grade
    outside [0, 1].

    Examples
    --------
    >>> at = datetime(2026, 11, 21, 9, tzinfo=UTC)
    >>> list(vote_lines([VoteLine("7", True, "v1", at)]))[1]
    '7,True,v1,2026-11-21T09:00:00.000000Z,\\r\\n'
    """
    yield _line(VOTE_COLUMNS)
    for inference_id, vote, voter_id, at, prompt_id in votes:
        if at.utcoffset() is None:
            raise ValueError(f"{at.isoformat()} names no time zone")
        time = at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        yield _line((inference_id, _checked(vote), voter_id, time, prompt_id))


def read_votes(stream: BinaryIO, name: str) -> Iterator[VoteLine | RowError]:
    """Read a vote file. Times that name no zone are UTC: the client's own examples write none.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = b"inference_id,vote,voter_id,vote_time\\n1,True,101,2024-07-07 19:22:30\\n"
    >>> next(read_votes(BytesIO(file), "votes.csv")).vote_time.isoformat()
    '2024-07-07T19:22:30+00:00'
    """
    for record in records(stream, name, "csv"):
        yield record if isinstance(record, RowError) else _vote_line(name, record)


def _vote_line(name: str, record: Record) -> VoteLine | RowError:
    read_as: dict[str, Converter] = {
        "inference_id": fields.name,
        "vote": _grade,
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


def _grade(raw: object) -> bool | float | None:
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

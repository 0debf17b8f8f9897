"""Votes for other tools: a table for spreadsheets, and the vote file of the GrandJury protocol."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import Any, Final

from django.db.models import Q

from humanjudge.lib.text import harmless
from judge_eval.exchange import vote_file
from judge_eval.exchange.export import in_chunks
from judge_eval.exchange.vote_file import VoteLine
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
    yield _csv_line(COLUMNS)
    votes = Entry.objects.filter(queue=run.queue_id, kind=Entry.Kind.VOTE, seq__isnull=False)
    related = votes.select_related("voter", "rubric", "comparison__a", "comparison__b")
    outputs = ("comparison__a__output", "comparison__b__output")
    for vote in in_chunks(related.defer(*outputs), "seq"):
        yield _csv_line(_cells(vote))


def grandjury_votes(run: Run) -> Iterator[str]:
    """Yield the votes that count, of people, as a GrandJury vote file.

    A vote on a pair is a grade of either output: 1 for the better one and 0 for the other, 0.5 for
    both of a tie, 0 for both that are bad.
    """
    counted = Entry.objects.filter(COUNTED & Q(simulated=False), queue=run.queue_id)
    votes = counted.select_related("voter", "rubric", "comparison")
    return vote_file.lines(line for vote in in_chunks(votes, "seq") for line in _graded(vote))


def _graded(vote: Entry) -> Iterator[VoteLine]:
    assert vote.voter is not None and vote.rubric is not None  # noqa: PT018  it is a vote
    common = (vote.voter.pseudonym, vote.at, str(vote.rubric))
    if vote.comparison is None:
        yield VoteLine(str(vote.inference_id), (vote.value or 0) / 1_000_000, *common)
        return
    sides = (vote.comparison.a_id, vote.comparison.b_id)
    grades = row_of(vote.choice).grades
    for output, grade in zip(sides, grades, strict=True):
        yield VoteLine(str(output), grade, *common)


def _cells(vote: Entry) -> Iterable[Any]:
    pair = vote.comparison
    assert vote.voter is not None and vote.hash is not None  # noqa: PT018  it is a sealed vote
    labels = json.dumps(vote.labels, ensure_ascii=False) if vote.labels else ""
    return (
        vote.seq,
        timestamp(vote.at),
        vote.comparison_id or vote.inference_id,
        pair.external_id if pair else "",
        pair.a.generator if pair else "",
        pair.b.generator if pair else "",
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


def _csv_line(cells: Iterable[Any]) -> str:
    buffer = StringIO()
    csv.writer(buffer).writerow(map(_harmless, cells))
    return buffer.getvalue()


def _harmless(cell: Any) -> Any:
    return harmless(cell) if isinstance(cell, str) else cell

"""Votes of people who were asked elsewhere, appended to the ledger.

They come last, in the order of the source, behind all verdicts: so every vote meets the verdicts on
its pair whatever stood first in the files.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from judge_eval.exchange.import_report import ImportReport
from judge_eval.exchange.import_rows import (
    first_difference,
    json_labels,
    read_statement,
    shown,
    write_statement,
)
from judge_eval.exchange.import_scratch import Scratch
from judge_eval.exchange.rows import Row, RowError, VotePart
from judge_eval.models import Run
from voting.ledger import chain, ledger
from voting.models import Entry, Voter


class VotesRead:
    """Takes the votes as they are read, each once, and writes nothing."""

    def __init__(
        self, project: UUID, run: Run | None, scratch: Scratch, report: ImportReport
    ) -> None:
        self._project, self._run = project, run
        self._scratch, self._report = scratch, report

    def take(self, rows: Sequence[tuple[Row, UUID]]) -> None:
        votes = [(row, row.vote, pair) for row, pair in rows if row.vote]
        voters = _voters(self._project, {vote.voter for _, vote, _ in votes})
        for _, vote, _ in votes:
            if self._scratch.note("voter", vote.voter) and vote.voter not in voters:
                self._report.new["voters"] += 1
        known = self._stored(voters.values(), {pair for *_, pair in votes})
        for row, vote, pair in votes:
            voter = voters.get(vote.voter)
            stored = voter and known.get((voter.pk, pair))
            before = _stored_facts(stored) if stored else self._keep(row, vote, pair)
            if before is None:
                self._report.new["votes"] += 1
            elif error := _contradiction(row, vote, before):
                self._report.fail(error)
            else:
                self._report.already["votes"] += 1

    def _keep(self, row: Row, vote: VotePart, pair: UUID) -> dict[str, Any] | None:
        """Keep a vote to be written, or return what the source said in its place before."""
        statement = write_statement(row, pair)
        before = self._scratch.state("vote", vote.voter, pair.hex, statement)
        if before is None:
            return None
        earlier, _ = read_statement(before)
        assert earlier.vote is not None  # only votes are kept
        return _facts(earlier, earlier.vote)

    def _stored(
        self, voters: Iterable[Voter], pairs: Collection[UUID]
    ) -> dict[tuple[UUID | None, UUID | None], Entry]:
        if self._run is None:
            return {}
        standing = Entry.objects.filter(
            kind=Entry.Kind.VOTE, retracted=False, voter__in=voters, comparison__in=pairs
        )
        return {(entry.voter_id, entry.comparison_id): entry for entry in standing}


def append_votes(run: Run, statements: Sequence[str], now: datetime) -> None:
    """Append votes to the ledger, in this order; `now` is when those without a time were cast."""
    project = run.queue.project_id
    said = [(row, row.vote, pair) for row, pair in map(read_statement, statements) if row.vote]
    names = {vote.voter for _, vote, _ in said}
    voters = _voters(project, names)
    fresh = [Voter(project_id=project, external_id=n) for n in sorted(names - voters.keys())]
    voters |= {voter.external_id: voter for voter in Voter.objects.bulk_create(fresh)}
    ledger.append(
        project,
        [_entry(run, row, vote, pair, voters[vote.voter], now) for row, vote, pair in said],
    )


def _voters(project: UUID, names: Collection[str]) -> dict[str, Voter]:
    # The first condition is that of the index on the names.
    found = Voter.objects.filter(~Q(external_id=""), project=project, external_id__in=names)
    return {voter.external_id: voter for voter in found}


def _entry(run: Run, row: Row, vote: VotePart, pair: UUID, voter: Voter, now: datetime) -> Entry:
    queue = run.queue
    return Entry(
        project_id=queue.project_id,
        kind=Entry.Kind.VOTE,
        at=vote.at or now,
        queue=queue,
        comparison_id=pair,
        voter=voter,
        choice=vote.choice,
        left_side=vote.left or "",
        rubric=queue.rubric,
        reputation=voter.reputation,
        **_private(vote.comment, json_labels(row.labels)),
    )


def _private(comment: str | None, labels: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what erasing a person empties, and the salted hashes of it, which the chain holds."""
    fields: dict[str, Any] = {}
    salt = secrets.token_hex(16)
    if comment or labels:
        fields["salt"] = salt
    if comment:
        fields |= {"comment": comment, "comment_sha256": chain.salted_hash(salt, comment)}
    if labels:
        fields["labels"] = labels
        fields["payload"] = {"labels_sha256": ledger.labels_sha256(salt, labels)}
    return fields


def _facts(row: Row, vote: VotePart) -> dict[str, Any]:
    """Return what a vote says by the names of a row's fields; None for what it does not."""
    return {
        "vote": vote.choice,
        "voted_at": vote.at,
        "comment": vote.comment,
        "left_side": vote.left,
        "labels": json_labels(row.labels),
    }


def _stored_facts(stored: Entry) -> dict[str, Any]:
    return {
        "vote": stored.choice,
        "voted_at": stored.at,
        "comment": stored.comment,
        "left_side": stored.left_side,
        "labels": stored.labels,
    }


def _contradiction(row: Row, vote: VotePart, before: Mapping[str, Any]) -> RowError | None:
    different = first_difference(_facts(row, vote), before)
    if different is None:
        return None
    field, value, known = different
    why = f"{shown(value)}, but {vote.voter} said {shown(known)} on pair {row.pair.id!r} before"
    return RowError(row.file, row.line, field, why)

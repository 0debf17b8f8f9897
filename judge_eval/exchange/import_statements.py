"""What judges and people state of pairs: taken once each as it is read, written in its order.

Votes come last, behind all verdicts: so every vote meets the verdicts on its pair, whatever stood
first in the files.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from judge_eval.baselines import BLIND, names_for
from judge_eval.exchange import fields
from judge_eval.exchange.import_pairs import lacking_outputs
from judge_eval.exchange.import_report import ImportOptions, ImportReport
from judge_eval.exchange.import_scratch import (
    Scratch,
    Statements,
    quote,
    read_statement,
    write_statement,
)
from judge_eval.exchange.rows import JudgeOrder, Label, Row, RowError, VerdictPart, VotePart
from judge_eval.models import Judge, Run, Verdict
from judge_eval.prompts.orders import combine, swap
from judge_eval.prompts.parse import ParsedVerdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from judge_eval.runs.verdicts import answer_of_baseline, verdicts_entry
from judge_eval.services import add_judges, baseline
from voting.choices import WRONG
from voting.ledger import chain, ledger
from voting.models import Entry, Item, Voter

# What stands for a provider where verdicts were given elsewhere.
IMPORTED: Final = "imported"
# Many more are a wrong column: every vote keeps the standing of every judge.
MOST_JUDGES: Final = 200
UNSEEN: Final = "an output was not imported"

# What a statement says, by the names of a row's fields; None for what it does not say.
Facts = Mapping[str, object]


class _Statements:
    """Takes statements as they are read, each once, and writes nothing."""

    table: Statements

    def __init__(self, scratch: Scratch, report: ImportReport) -> None:
        self._scratch, self._report = scratch, report

    def _facts(self, row: Row) -> Facts:
        raise NotImplementedError

    def _settle(self, row: Row, who: str, pair: UUID, stored: Facts | None) -> bool:
        """Keep a statement to be written, unless it was made before; then it must be the same."""
        before = stored or self._keep(row, who, pair)
        if before is None:
            self._report.new[f"{self.table}s"] += 1
            return True
        difference = _first_difference(self._facts(row), before)
        if difference is None:
            self._report.already[f"{self.table}s"] += 1
            return False
        field, value, previous = difference
        why = f"{quote(value)}, but {who} said {quote(previous)} on pair {row.pair.id!r} before"
        self._report.fail(RowError(row.file, row.line, field, why))
        return False

    def _keep(self, row: Row, who: str, pair: UUID) -> Facts | None:
        """Keep a statement, or return what the source said in its place before."""
        statement = write_statement(row, pair)
        before = self._scratch.state(self.table, who, pair.hex, statement)
        return self._facts(read_statement(before)[0]) if before else None


def _first_difference(stated: Facts, before: Facts) -> tuple[str, object, object] | None:
    """Return the first field that is stated otherwise than before, and both values.

    What is not stated (None) contradicts nothing.

    Examples
    --------
    >>> _first_difference({"vote": "A", "comment": None}, {"vote": "B", "comment": "good"})
    ('vote', 'A', 'B')
    """
    for name, value in stated.items():
        if value is not None and value != before[name]:
            return name, value, before[name]
    return None


def _json_labels(labels: Mapping[str, Label]) -> dict[str, Any] | None:
    lists = {task: list(x) if isinstance(x, tuple) else x for task, x in labels.items()}
    return lists or None


# --- verdicts ---------------------------------------------------------------------------------


def imported_fingerprint(name: str, source: str) -> str:
    competitor = {"provider": IMPORTED, "model": name, "source": source}
    return sha256(chain.canonical(competitor)).hexdigest()


class VerdictsRead(_Statements):
    """Takes the verdicts of judges, who get their places as they are met."""

    table = "verdict"

    def __init__(
        self, run: Run | None, options: ImportOptions, scratch: Scratch, report: ImportReport
    ) -> None:
        super().__init__(scratch, report)
        self._source, self._rule = options.source, options.inconsistent
        stored = run.judges.all() if run else ()
        self._stored_judges = {judge.fingerprint: judge for judge in stored}
        # With those that the run is to get, in their places.
        self._judges = dict(self._stored_judges)

    def order(self, stated: JudgeOrder) -> None:
        """Give the judges their places as a source states them, where they have none yet."""
        names = [name for name in stated.judges[:MOST_JUDGES] if self._is_name(stated.file, name)]
        places = [judge.position for judge in map(self._judge, names) if judge]
        if places != sorted(places):
            self._report.notes.append(
                f"{stated.file}: the judges stand in another order here, and keep it."
            )

    def take(self, rows: Sequence[tuple[Row, UUID]]) -> None:
        """Take the verdicts among the rows; each row comes with its pair."""
        taken = []
        for row, pair in rows:
            if row.verdict:
                judge = self._judge(row.verdict.judge)
                if error := self._error(row, row.verdict, judge):
                    self._report.fail(error)
                elif judge:
                    taken.append((row, judge, pair))
        stored = self._stored({pair for *_, pair in taken})
        for row, judge, pair in taken:
            if self._settle(row, judge.name, pair, stored.get((judge.pk, pair))):
                self._scratch.note("judged", pair.hex)

    def _facts(self, row: Row) -> Facts:
        return _facts_of(_verdict(row, self._rule))

    def _error(self, row: Row, stated: VerdictPart, judge: Judge | None) -> RowError | None:
        if judge is None:
            why = f"more than {MOST_JUDGES} judges in one run: is it the right column?"
            return RowError(row.file, row.line, "judge", why)
        unruly = _unruly(stated, _verdict(row, self._rule), self._rule)
        return RowError(row.file, row.line, "verdict", unruly) if unruly else None

    def _is_name(self, file: str, name: str) -> bool:
        try:
            why = None if fields.name(name) else "a judge has no name"
        except fields.Unfit as error:
            why = f"the name of a judge {error}"
        if why:
            self._report.fail(RowError(file, 0, "judges", why))
        return why is None

    def _judge(self, name: str) -> Judge | None:
        fingerprint = imported_fingerprint(name, self._source)
        if fingerprint not in self._judges and len(self._judges) < MOST_JUDGES:
            place = len(self._judges)
            self._judges[fingerprint] = _imported_judge(name, self._source, position=place)
            self._scratch.note("judge", name)
            self._report.new["judges"] += 1
        return self._judges.get(fingerprint)

    def _stored(self, pairs: Collection[UUID]) -> dict[tuple[UUID, UUID], Facts]:
        if not self._stored_judges:
            return {}
        judges = self._stored_judges.values()
        stored = Verdict.objects.filter(item__in=pairs, judge__in=judges)
        return {(one.judge_id, one.item_id): _facts_of(one) for one in stored}


def _imported_judge(name: str, source: str, **places: Any) -> Judge:
    fingerprint = imported_fingerprint(name, source)
    return Judge(name=name, provider=IMPORTED, model=name, fingerprint=fingerprint, **places)


def add_imported_judges(run: Run, names: Sequence[str], source: str) -> None:
    """Give a run the judges of these names that it has not got."""
    known = set(run.judges.values_list("fingerprint", flat=True))
    judges = [_imported_judge(name, source, run=run) for name in names]
    add_judges(run, [judge for judge in judges if judge.fingerprint not in known])


def write_verdicts(run: Run, options: ImportOptions, statements: Sequence[str]) -> None:
    judges = {judge.fingerprint: judge for judge in run.judges.all()}
    verdicts = []
    for row, pair in map(read_statement, statements):
        assert row.verdict is not None  # only verdicts are kept
        verdict = _verdict(row, options.inconsistent)
        verdict.judge = judges[imported_fingerprint(row.verdict.judge, options.source)]
        verdict.item_id = pair
        verdicts.append(verdict)
    Verdict.objects.bulk_create(verdicts)


def append_verdicts(run: Run, pairs: Sequence[UUID], baselines: Baselines) -> None:
    """Put all final verdicts on pairs that got one into the ledger."""
    judged = Item.objects.filter(pk__in=pairs).select_related("a", "b")
    comparisons = list(judged.order_by("position"))
    for item in comparisons:
        item.queue = run.queue
    baselines.answer(comparisons)
    verdicts = Verdict.objects.filter(item__in=pairs).select_related("judge")
    by_pair: dict[UUID, list[Verdict]] = {pair: [] for pair in pairs}
    for verdict in verdicts.order_by("judge__position"):
        by_pair[verdict.item_id].append(verdict)
    final = [
        verdicts_entry(item, by_pair[item.pk])
        for item in comparisons
        # Where a judge of the run is still being asked, the pair's opening writes them.
        if all(verdict.state != Verdict.State.WAITING for verdict in by_pair[item.pk])
    ]
    ledger.append(run.queue.project_id, final)


def _verdict(row: Row, rule: str) -> Verdict:
    """Make the verdict of a row, without its judge and its pair."""
    stated = row.verdict
    assert stated is not None
    winner: str | None = stated.winner
    consistent, picks, first_picks = stated.consistent, [], None
    if stated.picks:
        as_stored, unswapped = map(ParsedVerdict, stated.picks)
        both = combine(as_stored, swap(unswapped), is_decided_by_one=rule == "decided")
        winner, consistent, first_picks = both.winner, both.consistent, both.first_picks
        picks = list(both.picks)
    verdict = Verdict(
        state=Verdict.State.DONE if winner else Verdict.State.FAILED,
        # Only who was asked in both orders can be consistent or not.
        order=Verdict.Order.STORED if consistent is None else Verdict.Order.BOTH,
        winner=winner or "",
        consistent=consistent,
        picks=picks,
        first_picks=first_picks,
        score_a=stated.score_a,
        score_b=stated.score_b,
        feedback=stated.feedback or "",
        error=stated.error or "",
        # A row may hold a vote beside the verdict; then its labels are refused by the reader.
        labels=_json_labels(row.labels),
    )
    _by_rule(verdict, rule)
    return verdict


def _by_rule(verdict: Verdict, rule: str) -> None:
    """Make a tie of two orders that disagree wrong, where that is the rule of an import."""
    if rule == "wrong" and verdict.consistent is False and verdict.winner == "tie":
        verdict.winner = WRONG


def _unruly(stated: VerdictPart, made: Verdict, rule: str) -> str | None:
    """Return why a stated verdict is not what the rule makes of two orders that disagree."""
    # Whatever they count as, a source calls two orders that disagree a tie.
    winner = "tie" if made.winner == WRONG else made.winner
    if stated.picks and stated.winner not in (None, winner):
        return f"{stated.winner}, but its picks in both orders make it {winner}"
    if made.consistent is False and winner != "tie" and rule != "decided":
        return f"two orders that disagree are a tie, not {winner}"
    return None


def _facts_of(verdict: Verdict) -> Facts:
    return {
        "verdict": verdict.winner or "failed",
        "error": verdict.error or None,
        "score_a": verdict.score_a,
        "score_b": verdict.score_b,
        "consistent": verdict.consistent,
        "picks": verdict.picks or None,
        "feedback": verdict.feedback or None,
        "labels": verdict.labels,
    }


class Baselines:
    """Lets a run's baselines answer for pairs that other judges answered for elsewhere.

    Parameters
    ----------
    is_wanted : bool
        Whether baselines join a run that has none.
    """

    def __init__(
        self, run: Run, options: ImportOptions, report: ImportReport, *, is_wanted: bool
    ) -> None:
        self._run, self._report, self._is_wanted = run, report, is_wanted
        self._kind, self._rule = options.kind or "text", options.inconsistent

    @cached_property
    def _judges(self) -> list[Judge]:
        known = list(self._run.judges.filter(provider=Judge.BASELINE).order_by("position"))
        if known or not self._is_wanted:
            return known
        pairs = self._run.queue.items.count()
        is_unseen = lacking_outputs(self._run.queue).count() == pairs
        names = [name for name in names_for(self._kind) if name in BLIND or not is_unseen]
        self._report.notes.append(f"Baselines are on the board, as its floor: {', '.join(names)}.")
        return add_judges(self._run, [baseline(self._run, name) for name in names])

    def answer(self, pairs: Sequence[Item]) -> None:
        """Write the verdicts of the baselines on pairs that they have not judged."""
        if not self._judges:
            return
        stored = Verdict.objects.filter(judge__in=self._judges, item__in=pairs)
        known = set(stored.values_list("judge", "item"))
        orders = (self._run.config or {}).get("verdict_orders")
        Verdict.objects.bulk_create(
            self._verdict(judge, pair, orders)
            for pair in pairs
            for judge in self._judges
            if (judge.pk, pair.pk) not in known
        )

    def _verdict(self, judge: Judge, pair: Item, orders: str | None) -> Verdict:
        verdict = Verdict(judge=judge, item=pair, decided_at=timezone.now())
        is_unseen = any(output.metadata.get(OUTPUT_ABSENT) for output in pair.pair)
        if is_unseen and judge.name not in BLIND:
            verdict.state, verdict.error = Verdict.State.FAILED, UNSEEN
            return verdict
        for name, value in answer_of_baseline(verdict, orders).items():
            setattr(verdict, name, value)
        _by_rule(verdict, self._rule)
        return verdict


# --- votes ------------------------------------------------------------------------------------


class VotesRead(_Statements):
    """Takes the votes of people."""

    table = "vote"

    def __init__(
        self, project: UUID, run: Run | None, scratch: Scratch, report: ImportReport
    ) -> None:
        super().__init__(scratch, report)
        self._project, self._run = project, run

    def take(self, rows: Sequence[tuple[Row, UUID]]) -> None:
        votes = [(row, row.vote.voter, pair) for row, pair in rows if row.vote]
        voters = _voters(self._project, {name for _, name, _ in votes})
        for _, name, _ in votes:
            if self._scratch.note("voter", name) and name not in voters:
                self._report.new["voters"] += 1
        stored = self._stored(voters.values(), {pair for *_, pair in votes})
        for row, name, pair in votes:
            voter = voters.get(name)
            self._settle(row, name, pair, stored.get((voter.pk, pair)) if voter else None)

    def _facts(self, row: Row) -> Facts:
        vote = row.vote
        assert vote is not None
        return {
            "vote": vote.choice,
            "voted_at": vote.at,
            "comment": vote.comment,
            "left_side": vote.left,
            "labels": _json_labels(row.labels),
        }

    def _stored(
        self, voters: Collection[Voter], pairs: Collection[UUID]
    ) -> dict[tuple[UUID | None, UUID | None], Facts]:
        if self._run is None:
            return {}
        standing = Entry.objects.filter(
            kind=Entry.Kind.VOTE, retracted=False, voter__in=voters, item__in=pairs
        )
        return {
            (entry.voter_id, entry.item_id): {
                "vote": entry.choice,
                "voted_at": entry.at,
                "comment": entry.comment,
                "left_side": entry.left_side,
                "labels": entry.labels,
            }
            for entry in standing
        }


def append_votes(run: Run, statements: Sequence[str], now: datetime) -> None:
    """Append votes to the ledger, in this order; `now` is when those without a time were cast."""
    project = run.queue.project_id
    votes = [(row, row.vote, pair) for row, pair in map(read_statement, statements) if row.vote]
    names = {vote.voter for _, vote, _ in votes}
    voters = _voters(project, names)
    new = [Voter(project_id=project, external_id=n) for n in sorted(names - voters.keys())]
    voters |= {voter.external_id: voter for voter in Voter.objects.bulk_create(new)}
    entries = [_entry(run, row, vote, pair, voters[vote.voter], now) for row, vote, pair in votes]
    ledger.append(project, entries)


def _voters(project: UUID, names: Collection[str]) -> dict[str, Voter]:
    # The first condition is that of the index on the names.
    stored = Voter.objects.filter(~Q(external_id=""), project=project, external_id__in=names)
    return {voter.external_id: voter for voter in stored}


def _entry(run: Run, row: Row, vote: VotePart, pair: UUID, voter: Voter, now: datetime) -> Entry:
    queue = run.queue
    entry = Entry(
        project_id=queue.project_id,
        kind=Entry.Kind.VOTE,
        at=vote.at or now,
        queue=queue,
        item_id=pair,
        voter=voter,
        choice=vote.choice,
        left_side=vote.left or "",
        rubric=queue.rubric,
        reputation=voter.reputation,
    )
    _add_private(entry, vote.comment, _json_labels(row.labels))
    return entry


def _add_private(entry: Entry, comment: str | None, labels: Mapping[str, Any] | None) -> None:
    """Add what erasing a person empties, and the salted hashes of it, which the chain holds."""
    salt = secrets.token_hex(16)
    if comment or labels:
        entry.salt = salt
    if comment:
        entry.comment, entry.comment_sha256 = comment, chain.salted_hash(salt, comment)
    if labels:
        entry.labels = labels
        entry.payload = {"labels_sha256": ledger.labels_sha256(salt, labels)}

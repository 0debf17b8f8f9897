"""What an import has read becomes a run, or joins one, in short transactions with room for votes.

A new run shows only when all of it is there. Votes come behind all verdicts: so every vote meets
the verdicts on its pair, whatever stood first in the files.
"""

import json
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.core.text import number_of
from humanjudge.core.validation import validated
from judge_eval.imports.drafts import PairDraft, by_rule
from judge_eval.imports.import_report import (
    GONE,
    SIMULATED,
    ImportOptions,
    ImportRefused,
    ImportReport,
)
from judge_eval.imports.import_scratch import DRAFT, TABLES_TO_WRITE, VOTES, Scratch
from judge_eval.imports.import_steps import (
    ImportPace,
    close_undrawn,
    finish,
    give_pictures,
    note,
    step,
)
from judge_eval.imports.question import NONE_OF, Columns, question_of
from judge_eval.judging.baselines import BLIND, LONGER_HIGHER, names_for, names_for_single
from judge_eval.judging.config.run_config import RUBRICS, SINGLE_RUBRICS
from judge_eval.judging.verdicts import answer_of_baseline, changed_entries, open_those_final
from judge_eval.ledger.objects import record_objects, verdicts_by_item
from judge_eval.models import Board, Import, Judge, Run, Verdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT, lacking_outputs, mark_lacking
from judge_eval.runs.queries import switched_off
from judge_eval.runs.services import (
    AS_JUDGE,
    add_captions,
    add_judges,
    create_queue,
    floor_of,
    imported_fingerprint,
    imported_judge,
    missing_baselines,
    ways_of_judges,
)
from voting.items.kinds import is_ordered, kind_of
from voting.items.order import fresh_turn
from voting.ledger import ledger
from voting.ledger.decisions import IMPORT_BEGINS, IMPORT_ENDS
from voting.ledger.groups import groups_entry
from voting.models import Entry, Inference, Item, Picture, Project, Queue, Voter, prompt_key
from voting.pictures.images import png_in
from voting.pictures.store import store

UNSEEN: Final = "an output was not imported"
NOTHING_TO_SHOW: Final = {
    noun: f"Its {noun}s came without their outputs, so nobody can vote on them here."
    for noun in ("pair", "item")
}
# Labels of a ballot that each have a baseline.
MOST_FLOORS: Final = 9
# In an output's metadata: what its pair was called in the source.
NOTED: Final = ("prompt_id", "cluster")
# What was changed in it before it was stored, in words, as a call keeps it of what it brought.
CHANGES: Final = "changes"
_PSEUDONYM: Final = re.compile("[0-9a-f]{16}")
# All that is kept there beside what sources say of an output.
RESERVED_METADATA: Final = (OUTPUT_ABSENT, CHANGES, *NOTED)

# Of a queue that asks for a free text.
OPEN_QUESTION: Final = "What is right and what is wrong with this? Say it in a sentence or two."

# Rows of a table of the scratch file.
Rows: TypeAlias = Sequence[tuple[Any, ...]]


class Writing:
    def __init__(self, job: Import, scratch: Scratch) -> None:
        self._job, self._scratch = job, scratch
        self._options = validated(ImportOptions, job.form["options"])
        self._report = ImportReport.model_validate(job.form["report"])
        self._kind = self._options.kind or "text"
        # Where a pair comes with more votes than are asked for: how many, by its number.
        self._votes_on = scratch.votes_beyond(self._options.votes_per_pair)
        self._baselines: list[Judge] | None = None
        # When votes without a time were cast.
        self._now = timezone.now()

    def write(self) -> None:
        job = self._job
        with self._step() as run:
            existing = set(run.judges.values_list("fingerprint", flat=True))
            names, source = self._scratch.judges(), self._options.source
            judges = [imported_judge(run, name, source) for name in names]
            add_judges(run, [judge for judge in judges if judge.fingerprint not in existing])
            add_captions(run, self._options.question, self._options.descriptions)
            if not job.name:
                # One that is made enters the ledger later, with its first rows.
                record_objects(run, append=True)
            note(job, run=run)
        writers = (self._pairs, self._verdicts, self._enter_pairs, self._votes)
        before = 0
        for table, write in zip(TABLES_TO_WRITE, writers, strict=True):
            number, pace = self._scratch.count(table), ImportPace()
            if write in (self._enter_pairs, self._votes) and number and job.written == before:
                self._prepare_ledger()
            while job.written < before + number:
                with self._step() as run:
                    began = time.monotonic()
                    if table == VOTES and job.written == before:
                        self._note_in_ledger(run, IMPORT_BEGINS)
                    rows = self._scratch.after(table, job.written - before)[: pace.rows]
                    write(run, rows)
                    note(job, written=job.written + len(rows), attempts=0)
                    pace.note(len(rows), time.monotonic() - began)
            before += number
        with self._step() as run:
            if self._scratch.count(VOTES):
                self._note_in_ledger(run, IMPORT_ENDS)
            is_decided = self._options.open_for_voting is not None
            if job.name or self._report.changed or is_decided:
                self._open(run)
            self._report.runs.append(run.pk)
            finish(job, self._report)

    def _prepare_ledger(self) -> None:
        """Add baselines, and put the run and its judges into the ledger, each in a step of its own.

        Not before: a run that is not in the ledger can still be removed.
        """
        with self._step() as run:
            if Verdict.objects.filter(judge__run=run).exists():
                self._baselines = self._baselines_of(run)
        with self._step() as run:
            record_objects(run, append=True)

    @contextmanager
    def _step(self) -> Iterator[Run]:
        job = self._job
        assert job.project_id is not None  # only a bundle brings its own
        with step(job.project_id) as project:
            if job.run_id is None and job.name:
                yield self._create(project)
                return
            runs = Run.every.select_for_update(of=("self",), no_key=True)
            run = runs.select_related("queue__rubric", "queue__project").filter(imports=job)
            if (locked_run := run.first()) is None:
                raise ImportRefused(GONE)
            yield locked_run

    def _create(self, project: Project) -> Run:
        options, name, rules = self._options, self._job.name, self._job.form["rules"]
        usual = RUBRICS[self._kind]
        if "kind" in rules:
            usual = SINGLE_RUBRICS.get(rules["kind"], OPEN_QUESTION)
        queue = create_queue(
            project,
            name,
            options.rubric or usual,
            votes_per_item=options.votes_per_pair,
            reveal=options.reveal,
            is_open=False,
            **rules,
        )
        state = Run.State.IMPORTING
        facts = {"pk": self._job.pk, "state": state, "epsilon": options.epsilon}
        run = Run.every.create(queue=queue, name=name, **facts)
        Board.objects.create(run=run)
        return run

    def _pairs(self, run: Run, rows: Rows) -> None:
        queue, drafts = run.queue, []
        texts: dict[UUID, str | None] = {}
        for _, facts, output_a, output_b in rows:
            draft = DRAFT.validate_json(facts)
            texts |= dict(zip((draft.a, draft.b), (output_a, output_b), strict=True))
            drafts.append(draft)
        new = [draft for draft in drafts if draft.position is None]
        changed = [draft for draft in drafts if draft.position is not None and draft.is_changed]
        outputs = Inference.objects.in_bulk([pk for d in changed for pk in d.outputs.values()])
        for draft in new:
            stated_time = {"created_at": draft.generated_at} if draft.generated_at else {}
            for pk in draft.outputs.values():
                outputs[pk] = Inference(pk=pk, project_id=queue.project_id, **stated_time)
        for draft in (*new, *changed):
            for side, pk in draft.outputs.items():
                _fill(outputs[pk], draft, side, texts[pk])
        self._store_images(outputs.values())
        give_pictures(outputs)
        Inference.objects.bulk_create(
            outputs.values(),
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=["prompt", "output", "kind", "generator", "metadata", "tags", "picture"],
        )
        last = queue.items.order_by("-position").values_list("position", flat=True).first()
        items = [_item(queue, draft) for draft in new]
        for item, draft in zip(items, new, strict=True):
            # All votes that come with a pair were there at once: none is an extra one.
            usual = max(queue.votes_per_item, self._votes_on.get(item.pk.hex, 0))
            item.votes_wanted = usual if draft.votes_wanted is None else draft.votes_wanted
        for position, item in enumerate(items, start=0 if last is None else last + 1):
            item.position = position
        Item.objects.bulk_create(items)
        # What is open already, or in a couple, goes by the key that the ledger tells.
        free = queue.items.filter(opened_at=None, is_coupled=False)
        keyed = set(free.filter(pk__in=[d.pk for d in changed]).values_list("pk", flat=True))
        keys = [_item(queue, draft) for draft in changed if draft.pk in keyed]
        Item.objects.bulk_update(keys, ["prompt_key", "turn"])
        existing = Entry.objects.filter(
            kind=Entry.Kind.VERDICTS, item__in=[draft.pk for draft in changed]
        )
        self._put_into_ledger(run, set(existing.values_list("item", flat=True)))

    def _store_images(self, outputs: Iterable[Inference]) -> None:
        for output in outputs:
            picture_file = self._scratch.pictures / (png_in(output.output) or "none")
            if output.kind == Inference.Kind.IMAGE and picture_file.exists():
                store(picture_file.read_bytes())

    def _verdicts(self, run: Run, rows: Rows) -> None:
        judges = dict(run.judges.values_list("fingerprint", "pk"))
        Verdict.objects.bulk_create(
            Verdict(
                judge_id=judges[imported_fingerprint(name, self._options.source)],
                item_id=UUID(hex=pair),
                **self._settled_columns(run, statement, "winner"),
            )
            for name, pair, statement in rows
        )

    def _enter_pairs(self, run: Run, rows: Rows) -> None:
        """Put pairs into the ledger with their verdicts, also where no judge was asked yet."""
        pairs = [UUID(hex=pair) for (pair,) in rows]
        has_verdict = Exists(Verdict.objects.filter(item=OuterRef("pk")))
        if judged := _items(run, pairs, has_verdict):
            self._answer_by_baselines(run, judged)
        self._put_into_ledger(run, pairs)

    def _put_into_ledger(self, run: Run, pairs: Collection[UUID]) -> None:
        items = _items(run, pairs)
        verdicts = verdicts_by_item(items, have_calls=run.calls.exists())
        final = [
            item
            for item in items
            # Where a judge of the run is still being asked, the pair's opening writes them.
            if all(verdict.state != Verdict.State.WAITING for verdict in verdicts[item.pk])
        ]
        ledger.append(run.queue.project_id, changed_entries(final, verdicts))

    def _answer_by_baselines(self, run: Run, items: Sequence[Item]) -> None:
        """Let the run's baselines answer for pairs that other judges answered for elsewhere."""
        if self._baselines is None:
            self._baselines = self._baselines_of(run)
        stored = Verdict.objects.filter(judge__in=self._baselines, item__in=items)
        existing = set(stored.values_list("judge", "item"))
        usual = (run.config or {}).get("verdict_orders", "both")
        orders_asked: dict[tuple[str, UUID], str] = {}
        if any(judge.own_orders.startswith(AS_JUDGE) for judge in self._baselines):
            answered = Verdict.objects.filter(judge__run=run, item__in=items).exclude(winner="")
            rows = answered.values_list("judge__position", "item", "order")
            orders_asked = {
                (f"{AS_JUDGE}{position}", item): order for position, item, order in rows
            }
        verdicts = []
        for item in items:
            is_unseen = any(output.metadata.get(OUTPUT_ABSENT) for output in item.outputs)
            for judge in self._baselines:
                if (judge.pk, item.pk) in existing:
                    continue
                verdict = Verdict(judge=judge, item=item, decided_at=timezone.now())
                name = judge.model or judge.name
                looks = name not in BLIND if item.b else name == LONGER_HIGHER
                if is_unseen and looks:
                    verdict.state, verdict.error = Verdict.State.FAILED, UNSEEN
                else:
                    way = judge.own_orders or usual
                    orders = orders_asked.get((way, item.pk), way)
                    for field, value in answer_of_baseline(verdict, orders).items():
                        setattr(verdict, field, value)
                rule = self._options.inconsistent
                verdict.winner = by_rule(verdict.winner, verdict.consistent, rule)
                verdicts.append(verdict)
        Verdict.objects.bulk_create(verdicts)

    def _baselines_of(self, run: Run) -> list[Judge]:
        existing = list(run.judges.filter(provider=Judge.BASELINE).order_by("position"))
        if not existing and not self._options.baselines:
            return []
        # Where all verdicts have failed, nobody knows in which orders they were asked for.
        usual = [] if existing else ["both"]
        are_pairs = run.queue.kind == Queue.Kind.COMPARISON
        ways = ways_of_judges(run) if are_pairs else []
        names = floor_of(run) or self._names_of_baselines(run.queue)
        added = add_judges(run, missing_baselines(run, names, ways or usual))
        if added:
            floor = ", ".join(judge.name for judge in added)
            self._report.notes.append(f"Baselines are on the board, as its floor: {floor}.")
            record_objects(run, append=True)
        return [*existing, *added]

    def _names_of_baselines(self, queue: Queue) -> list[str]:
        is_unseen = lacking_outputs(queue).count() == queue.items.count()
        if queue.kind != Queue.Kind.COMPARISON:
            # A baseline for each of very many words would be no floor but a crowd.
            is_short = len(queue.ballot) <= MOST_FLOORS or queue.kind == Queue.Kind.RATING
            if not queue.ballot or not is_short:
                return []
            names = names_for_single(queue.kind, queue.ballot)
            return [name for name in names if not is_unseen or name != LONGER_HIGHER]
        off, names = switched_off(), names_for(self._kind, queue.ballot)
        return [n for n in names if n not in off and (n in BLIND or not is_unseen)]

    def _votes(self, run: Run, rows: Rows) -> None:
        project = run.queue.project_id
        names = {name for name, *_ in rows}
        voters = voters_of(project, names)
        new = [Voter(project_id=project, external_id=n) for n in sorted(names - voters.keys())]
        voters |= {voter.external_id: voter for voter in Voter.objects.bulk_create(new)}
        groups_by_voter = self._scratch.groups(names).items()
        groups = {voters[n].pseudonym: group for n, group in groups_by_voter if not voters[n].group}
        if groups:
            # Before the votes, so that no board has to move for it.
            ledger.append(project, [groups_entry(project, groups)])
        entries = []
        for name, pair, statement in rows:
            entry = _vote(self._settled_columns(run, statement, "choice"), self._now)
            entry.project_id, entry.queue, entry.rubric = project, run.queue, run.queue.rubric
            entry.item_id = UUID(hex=pair)
            entry.voter, entry.reputation = voters[name], voters[name].reputation
            entries.append(entry)
        ledger.append(project, entries)

    def _note_in_ledger(self, run: Run, payload: dict[str, str]) -> None:
        boundary = Entry(kind=Entry.Kind.PARAMETERS, at=timezone.now(), queue=run.queue)
        boundary.project_id, boundary.payload = run.queue.project_id, payload
        ledger.append(run.queue.project_id, [boundary])

    def _settled_columns(self, run: Run, statement: str, choice: str) -> Columns:
        question = question_of(kind_of(run.queue).noun, self._options, run.queue)
        return question.settled(json.loads(statement), choice)

    def _open(self, run: Run) -> None:
        """Open pairs for voting, and the queue if it is to be, and set what the run does next."""
        queue, is_new = run.queue, bool(self._job.name)
        noun = kind_of(queue).noun
        if not is_new and Queue.objects.filter(pk=queue.pk, is_simulated=True).exists():
            raise ImportRefused(SIMULATED)  # meanwhile; from now on no more: it has real votes
        is_waiting = _open_pairs(queue)
        lacking_count = mark_lacking(queue)
        are_all = lacking_count == queue.items.count()
        queue.is_open = self._is_to_be_open(queue, lacking_count if are_all else 0)
        queue.save(update_fields=["ballot", "is_open"])
        if run.state != Run.State.STOPPED:
            if is_waiting or (run.state == Run.State.JUDGING and not is_new):
                run.state = Run.State.JUDGING
            elif are_all:
                run.state = Run.State.COMPLETE
            else:
                run.state = Run.State.VOTING
            run.note = NOTHING_TO_SHOW[noun] if run.state == Run.State.COMPLETE else ""
        run.save(update_fields=["state", "note"])
        record_objects(run, append=True)
        if lacking_count:
            says = "Voting is closed" if are_all else "Nobody is asked about some"
            note = f"{says}: {_no_outputs_text(lacking_count, noun)} that could be shown."
            self._report.notes.append(note)
        self._note_verdicts_off_ballot(run)
        new = (
            number_of(self._report.new[f"{table}s"], table) for table in (noun, "verdict", "vote")
        )
        run.record("imported", f"Imported: {', '.join(new)}.")
        if run.state == Run.State.JUDGING:
            enqueue("judge_eval.tasks.advance", str(run.pk))

    def _note_verdicts_off_ballot(self, run: Run) -> None:
        verdicts = Verdict.objects.filter(judge__run=run, judge__provider=Judge.IMPORTED)
        if number := verdicts.filter(error__contains=f" is {NONE_OF}").count():
            self._report.notes.append(
                f"{number:,} of {number_of(verdicts.count(), 'verdict')} are {NONE_OF}"
                f"{', '.join(run.queue.ballot)}. They count as failed."
            )

    def _is_to_be_open(self, queue: Queue, lacking_count: int) -> bool:
        is_open = self._options.open_for_voting
        if is_open is None:
            is_open = not lacking_count if self._job.name else queue.is_open
        if is_open and lacking_count:
            raise ImportRefused(lacking_text(lacking_count, kind_of(queue).noun))
        return is_open


def _items(run: Run, pairs: Collection[UUID], *conditions: Exists) -> list[Item]:
    items = run.queue.items.filter(*conditions, pk__in=pairs)
    return list(items.select_related("a", "b").order_by("position"))


def _fill(output: Inference, draft: PairDraft, side: str, text: str | None) -> None:
    facts = draft.facts
    output.prompt = facts.get("prompt", "")
    output.tags = facts.get("tags", [])
    output.generator = facts.get(f"generator_{side}", "")
    output.kind = facts["kind"]
    output.metadata = {k: v for k, v in output.metadata.items() if k != OUTPUT_ABSENT}
    output.metadata |= facts.get("metadata", {})
    output.metadata |= {name: facts[name] for name in NOTED if name in facts}
    if f"output_{side}" not in facts:
        output.metadata[OUTPUT_ABSENT] = True
    elif text is not None:
        output.output = text
    if changes := draft.changes.get(f"output_{side}"):
        output.metadata[CHANGES] = list(changes)


def _item(queue: Queue, draft: PairDraft) -> Item:
    facts = draft.facts
    # Nothing is known to share a prompt that nobody told; a single item is its own, unless items
    # of a prompt are compared by their order.
    key = str(draft.pk)
    if draft.noun == "pair" or is_ordered(queue):
        unnamed = prompt_key(facts["prompt"]) if "prompt" in facts else key
        key = facts.get("prompt_id") or unnamed
    key = facts.get("cluster") or key
    return Item(
        pk=draft.pk,
        queue=queue,
        external_id=draft.name,
        prompt_key=key,
        turn=fresh_turn(queue.pk, key),
        a_id=draft.a,
        b_id=draft.outputs.get("b"),
    )


def _vote(columns: Columns, now: datetime) -> Entry:
    """Make a vote, cast now if it states no time, without its voter and its pair."""
    voted_at = columns.pop("at")
    hidden = ledger.hidden(columns["comment"], columns["labels"])
    voted_at = datetime.fromisoformat(voted_at) if voted_at else now
    return Entry(kind=Entry.Kind.VOTE, at=voted_at, **columns, **hidden)


def voters_of(project: UUID | None, names: Collection[str]) -> dict[str, Voter]:
    """Return the voters of a project by what they are called: elsewhere, or as it was exported."""
    # The first condition is that of the index on the names.
    stored = Voter.objects.filter(~Q(external_id=""), project=project, external_id__in=names)
    voters = {voter.external_id: voter for voter in stored}
    pseudonyms = {name for name in names if _PSEUDONYM.fullmatch(name)} - voters.keys()
    if pseudonyms:
        pseudonymous = Voter.objects.filter(project=project, pseudonym__in=pseudonyms)
        voters |= {voter.pseudonym: voter for voter in pseudonymous}
    return voters


def lacking_text(number: int, noun: str) -> str:
    return (
        f"{_no_outputs_text(number, noun)}, so nobody can vote on them: "
        "give the outputs, or close the run for voting."
    )


def _no_outputs_text(number: int, noun: str) -> str:
    has, output = ("has", "output") if number == 1 else ("have", "outputs")
    outputs_text = "outputs" if noun == "pair" else output
    return f"{number_of(number, noun)} {has} no {outputs_text}"


def _open_pairs(queue: Queue) -> bool:
    close_undrawn(queue)
    closed = queue.items.filter(opened_at__isnull=True, unusable="")
    unjudged = Verdict.objects.filter(item=OuterRef("pk"), state=Verdict.State.WAITING)
    ready = closed.filter(
        ~Q(a__picture__state=Picture.State.WAITING),
        ~Q(b__picture__state=Picture.State.WAITING),
        ~Exists(unjudged),
    )
    entered = Entry.objects.filter(kind=Entry.Kind.VERDICTS, item=OuterRef("pk"))
    ready.filter(Exists(entered)).update(opened_at=timezone.now())
    # Pairs of the run that this import has not named.
    open_those_final(list(ready.values_list("pk", flat=True)))
    return closed.exists()

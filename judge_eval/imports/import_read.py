"""A source is read and checked as a whole before anything is written.

What it says is put together in a scratch file and compared with the database, which is only looked
at: a source that is large, slow or wrong holds up nobody and leaves nothing behind.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import PurePath
from typing import Final, TypeAlias
from uuid import UUID, uuid4

from django.conf import settings
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import MD5, Concat, Left

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import number_of
from humanjudge.core.validation import validated
from judge_eval.imports import fields
from judge_eval.imports.drafts import (
    COMPARED,
    PairDraft,
    check_consistent,
    mark,
    of_another_shape,
    quote,
    verdict_of,
    vote_of,
)
from judge_eval.imports.import_report import (
    GONE,
    MOST_ERRORS,
    SIMULATED,
    ImportOptions,
    ImportRefused,
    ImportReport,
    ImportTooLarge,
    RowsWrong,
)
from judge_eval.imports.import_scratch import TABLES_TO_WRITE, Scratch, pieces, text_of
from judge_eval.imports.import_steps import counted
from judge_eval.imports.import_write import NOTED, RESERVED_METADATA, lacking_text, voters_of
from judge_eval.imports.question import Columns, ImportQuestion, PairQuestion, question_of
from judge_eval.imports.row_models import (
    OUTPUTS,
    ImportRow,
    InvalidField,
    Item,
    JudgeOrder,
    LeftOut,
    MadeUp,
    RowError,
    ShapeName,
)
from judge_eval.models import Import, Run, Verdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT, lacking_outputs
from judge_eval.runs.services import imported_fingerprint
from voting.items.kinds import KINDS
from voting.models import Entry, Queue
from voting.models import Item as Pair

LOOKED_AT: Final = 20
# The error of a verdict whose cell is empty, and what an empty cell may count as.
EMPTY: Final = "its cell is empty"
RULES_OF_EMPTY: Final = {"failed": "not answered", "not_asked": "not asked"}
# A whole number, as people, spreadsheets and data frames write it.
_NUMBER: Final = re.compile(r"0*(\d+)(?:\.0+)?", re.ASCII)
# Statements that the run holds, by the item and who makes them.
Existing: TypeAlias = dict[tuple[UUID, UUID | int | None], Columns]
# Many more are a wrong column: every vote keeps the standing of every judge.
MOST_JUDGES: Final = 200


def open_to_imports(runs: QuerySet[Run]) -> Run:
    """Return the run, if it may be added to; raises ImportRefused for any other."""
    run = runs.select_related("queue__rubric", "queue__project").first()
    if run is None:
        raise ImportRefused(GONE)
    if run.state in (Run.State.DRAFT, Run.State.GENERATING):
        raise ImportRefused(f"This run is {run.state}: its own pairs come first.")
    if run.queue.is_simulated:
        raise ImportRefused(SIMULATED)
    return run


def last_kind(queue: Queue) -> str:
    """Return the kind of the outputs that a run got last; nothing where it has none."""
    last = queue.items.order_by("-position").values_list("a__kind", flat=True)
    return last.first() or ""


def read(job: Import, items: Iterable[Item], scratch: Scratch) -> JsonObject:
    """Read and check everything; return what an import is to note of it.

    If any row is wrong, nothing is to be written; with `skip_errors` the valid rows are imported.
    Nobody else may import into the same run meanwhile. Raises ImportRefused.
    """
    options = validated(ImportOptions, job.form["options"])
    run = None if job.name else open_to_imports(Run.objects.filter(imports=job))
    items = iter(items)
    if run is None:
        # The kind of a new run's outputs is found near the beginning.
        first = list(islice(items, LOOKED_AT))
        kinds = (item.kind for item in first if isinstance(item, ImportRow))
        kind = options.kind or next(filter(None, kinds), "text")
        items, options = chain(first, items), options.model_copy(update={"kind": kind})
    reading = _RowsReader(job, run, options, scratch)
    for chunk in pieces(reading.fitting(_counted(job, items)), text_of):
        reading.take(chunk)
    return reading.finish()


def _counted(job: Import, items: Iterable[Item]) -> Iterator[Item]:
    most_rows, most_text = settings.IMPORT_MAX_ROWS, settings.IMPORT_MAX_UNPACKED_MB << 20
    text = 0
    for rows, item in enumerate(counted(job, items), start=1):
        text += text_of(item)
        if rows > most_rows and not job.is_local:
            reason = f"There are more than {most_rows:,} rows; import them in parts."
            raise ImportTooLarge(reason)
        if text > most_text and not job.is_local:
            reason = f"There are more than {most_text:,} characters; import less at once."
            raise ImportTooLarge(reason)
        yield item


class _RowsReader:
    def __init__(
        self, job: Import, run: Run | None, options: ImportOptions, scratch: Scratch
    ) -> None:
        self._project, self._form, self._run, self._options = job.project_id, job.form, run, options
        self._queue = run.queue if run else None
        self._scope = run.pk if run else job.pk
        self._scratch, self._report = scratch, ImportReport()
        # The record that was read last, and those of which a row was wrong.
        self._record, self._has_row = ("", 0), False
        self._unfit = set[tuple[str, int]]()
        # What rows say in one line of the run, under "", and of its judges, by their names.
        self._captions: dict[str, str] = {}
        self._has_outputs = False
        self._kind = options.kind or (last_kind(self._queue) if self._queue else "") or "text"
        # What is asked of people; of a new run, as is stated or as its first row says.
        self._question: ImportQuestion | PairQuestion | None = None
        if kind := run.queue.kind if run else options.vote_kind:
            self._make_question(KINDS[kind].noun)
        # How many pairs the run will have, and how many of them no outputs.
        self._items = self._queue.items.count() if self._queue else 0
        self._lacking = lacking_outputs(self._queue).count() if self._queue else 0
        # By their fingerprints, in their places; those that the run is to get have no key yet.
        stored = run.judges.order_by("position").values_list("fingerprint", "pk") if run else ()
        self._judges: dict[str, UUID | None] = dict(stored)
        self._stored_judges = [pk for pk in self._judges.values() if pk]
        usual = not self._judges
        self._wants_baselines = usual if options.baselines is None else options.baselines

    def _make_question(self, shape: ShapeName) -> ImportQuestion | PairQuestion:
        self._question = question_of(shape, self._options, self._queue)
        return self._question

    @property
    def _noun(self) -> ShapeName:
        return "item" if isinstance(self._question, ImportQuestion) else "pair"

    def fitting(self, items: Iterable[Item]) -> Iterator[ImportRow]:
        """Yield the rows that may be taken, and give judges their places; report all else."""
        for item in items:
            self._count(item)
            if isinstance(item, JudgeOrder):
                self._order(item)
            elif not isinstance(item, ImportRow):
                self._report.add(item)
            elif self._check_row(item):
                yield self._with_voter(item)
            if self._report.failures >= MOST_ERRORS and not self._options.skip_errors:
                raise RowsWrong(self._report, is_cut=True)

    def _with_voter(self, row: ImportRow) -> ImportRow:
        if not (voter := row.voter):
            return row
        if self._options.separate_voters:
            voter = f"{PurePath(row.file).stem}: {voter}"[: fields.MAX_NAME]
        if isinstance(row.voter, MadeUp):
            # The run that is made is numbered as its import.
            voter = f"{voter[: fields.MAX_NAME - 11]} ({self._scope.hex[:8]})"
        return row if voter == row.voter else replace(row, voter=voter)

    def _count(self, item: Item) -> None:
        if not isinstance(item, ImportRow | LeftOut | RowError):
            return
        line = item.line if isinstance(item, ImportRow) else item.row
        if line and (item.file, line) != self._record:
            self._record, self._has_row = (item.file, line), False
            self._report.records += 1
        if isinstance(item, ImportRow) and not self._has_row:
            self._has_row = True
            self._report.used += 1

    @contextmanager
    def _reported(self, row: ImportRow) -> Iterator[None]:
        try:
            yield
        except InvalidField as error:
            self._report.fail(RowError(row.file, row.line, error.field, error.reason))
            self._unfit.add((row.file, row.line))

    def _check_row(self, row: ImportRow) -> bool:
        question = self._question or self._make_question(row.shape)
        if row.shape != self._noun:
            reason = of_another_shape(row)
            self._report.fail(RowError(row.file, row.line, None, reason, is_fatal=True))
            raise RowsWrong(self._report)
        failures = self._report.failures
        with self._reported(row):
            if reserved_names := row.metadata.keys() & {*RESERVED_METADATA}:
                reason = "is a reserved name: choose another one"
                raise InvalidField(f"metadata.{min(reserved_names)}", reason)
            for task in row.labels:
                try:
                    fields.output(task)
                except fields.Unfit as error:
                    raise InvalidField("labels", f"the name of a task {error}") from error
            self._take_captions(row)
            question.take(row)
            if row.judge and not row.is_blank:
                verdict_of(row, self._options.inconsistent, None)
                if self._judge(row.judge) is None:
                    reason = f"more than {MOST_JUDGES} judges in one run: is this the right column?"
                    raise InvalidField("judge", reason)
        return self._report.failures == failures

    def _take_captions(self, row: ImportRow) -> None:
        captions = {
            "run_question": ("", row.run_question),
            "judge_description": (row.judge or "", row.judge_description),
        }
        for column, (subject, caption) in captions.items():
            earlier_caption = self._captions.setdefault(subject, caption) if caption else caption
            if earlier_caption != caption:
                raise InvalidField(
                    column, f"{quote(caption)}, but {quote(earlier_caption)} on another row"
                )

    def take(self, rows: Sequence[ImportRow]) -> None:
        self._has_outputs |= any(row.output_a or row.output_b for row in rows)
        placed_rows = self._pairs(rows)
        for _, pair in placed_rows:
            self._scratch.insert("entered", pair.hex)
        judged = [(row, pair, row.judge) for row, pair in placed_rows if row.judge]
        for _, pair, judge in (statement for statement in judged if statement[0].is_blank):
            self._scratch.insert("blank", judge, pair.hex)
        self._verdicts([statement for statement in judged if not statement[0].is_blank])
        self._votes([(row, pair, row.voter) for row, pair in placed_rows if row.voter])

    def finish(self) -> JsonObject:
        report, open_option = self._report, self._options.open_for_voting
        report.used -= len(self._unfit)
        self._fill_blanks()
        report.with_outputs = self._scratch.pairs_with_outputs_and_votes()[0]
        has_stored = bool(self._queue and self._queue.items.exists())
        has_pairs = has_stored or self._scratch.count("pair") > 0
        if not report.failures and not has_pairs:
            noun = "an item" if self._noun == "item" else "a pair"
            report.fail(RowError("", 0, None, f"no row names {noun}"))
        is_skipping = self._options.skip_errors and not report.is_fatal
        if report.failures and not (is_skipping and has_pairs):
            raise RowsWrong(report)
        is_open = bool(self._queue and self._queue.is_open) if open_option is None else open_option
        if is_open and self._lacking == self._items:
            raise ImportRefused(lacking_text(self._lacking, self._noun))
        self._refuse_empty()
        rules = self._rules()
        if self._noun == "item":
            for counts in (report.new, report.already):
                counts.pop("pairs", None)
        self._scratch.finish()
        settled = self._options.model_copy(
            update={
                "baselines": self._wants_baselines,
                "question": self._options.question or self._captions.pop("", ""),
                "descriptions": self._captions | self._options.descriptions,
            }
        )
        read = {
            "options": settled.model_dump(mode="json"),
            "rules": rules,
            "report": report.model_dump(mode="json"),
        }
        to_write = sum(map(self._scratch.count, TABLES_TO_WRITE))
        return {"form": self._form | read, "to_write": to_write}

    def _refuse_empty(self) -> None:
        """Refuse what brings nothing to show or to count, or votes that are all on other items."""
        report, votes = self._report, self._scratch.count("vote")
        is_said = votes or self._scratch.count("verdict")
        is_said = is_said or report.already["votes"] or report.already["verdicts"]
        number = self._scratch.count("pair")
        with_outputs, voted, voted_with_outputs = self._scratch.pairs_with_outputs_and_votes()
        reason = ""
        if number and not (self._has_outputs or report.filled or self._captions or is_said):
            items = number_of(number, self._noun)
            reason = (
                f"{items} without an output, a vote or a verdict: at least one of them is needed"
            )
        elif with_outputs and voted and not voted_with_outputs:
            reason = (
                f"{number_of(votes, 'vote')} on {number_of(voted, self._noun)}, but the outputs "
                f"are those of {with_outputs:,} others: "
                f"votes and outputs must name the same {self._noun}s"
            )
        if reason:
            raise self._rows_wrong(reason)

    def _rows_wrong(self, reason: str) -> RowsWrong:
        self._report.fail(RowError("", 0, None, reason))
        return RowsWrong(self._report)

    def _rules(self) -> Columns:
        if self._question is None:
            return {}
        try:
            rules = self._question.rules()
        except fields.Unfit as error:
            raise self._rows_wrong(str(error)) from error
        self._report.notes += self._question.notes
        return {} if self._queue else rules

    # --- pairs ------------------------------------------------------------------------------------

    def _pairs(self, rows: Sequence[ImportRow]) -> list[tuple[ImportRow, UUID]]:
        """Take in what rows say of their pairs; return those without a fault, with their pairs."""
        rows = _with_item_names(rows, self._scratch.aliases({row.item for row in rows}))
        drafts, stored = self._drafts_of({row.item for row in rows})
        new = {row.item for row in rows} - drafts.keys() - stored.keys()
        if aliases := self._aliases(row for row in rows if row.item in new):
            rows, new = _with_item_names(rows, aliases), new - aliases.keys()
            alias_drafts = self._drafts_of(
                {item for item, _ in aliases.values()} - drafts.keys() - stored.keys()
            )
            drafts, stored = drafts | alias_drafts[0], stored | alias_drafts[1]
        unmet = new | stored.keys()
        # New pairs are kept, and then stand in the run, in the order of the rows.
        names = list(dict.fromkeys(row.item for row in rows))
        self._report.already[f"{self._noun}s"] += len(stored)
        self._report.new[f"{self._noun}s"] += len(new)
        self._items += len(new)
        drafts |= stored
        self._lacking -= sum(draft.lacks_output for draft in drafts.values())
        for name in new:
            drafts[name] = PairDraft(name, {"kind": self._kind}, noun=self._noun)
        earlier_facts = {name: dict(draft.facts) for name, draft in drafts.items()}
        texts: dict[str, dict[str, str]] = {name: {} for name in names}
        placed_rows = []
        for row in rows:
            with self._reported(row):
                stored_row, new_texts = drafts[row.item].take(row)
                self._report.turned += stored_row is not row
                texts[row.item] |= new_texts
                placed_rows.append((stored_row, drafts[row.item].pk))
        for name in names:
            draft = drafts[name]
            is_changed = draft.facts != earlier_facts[name]
            self._report.filled += is_changed and draft.position is not None
            self._lacking += draft.lacks_output
            if is_changed or name in unmet:
                self._scratch.keep(draft, texts[name])
        return placed_rows

    def _drafts_of(
        self, names: Collection[str]
    ) -> tuple[dict[str, PairDraft], dict[str, PairDraft]]:
        drafts = {draft.name: draft for draft in self._scratch.drafts(names)}
        return drafts, {
            draft.name: draft for draft in self._stored_drafts({*names} - drafts.keys())
        }

    def _aliases(self, rows: Iterable[ImportRow]) -> dict[str, tuple[str, bool]]:
        aliases: dict[str, tuple[str, bool]] = {}
        for row in rows:
            if row.item not in aliases and (same := self._same_item(row)):
                aliases[row.item] = same
                self._scratch.insert("alias", row.item, same[0], str(int(same[1])))
                self._report.merged += 1
        return aliases

    def _same_item(self, row: ImportRow) -> tuple[str, bool] | None:
        """Return the item that a new name stands for, and whether its A and B are exchanged.

        The same prompt and outputs exchanged are the same pair; and a number that a data frame has
        made a fraction, or that has lost its zeros, is the same number, unless both are described.
        """
        has_texts = bool(row.prompt or row.output_a or row.output_b)
        if row.shape == "pair" and row.prompt and row.output_a and row.output_b:
            sides = [f"{row.generator_a}\0{row.output_a}", f"{row.generator_b}\0{row.output_b}"]
            content = mark("\0\0".join([row.prompt, *sorted(sides)]))
            side = mark(sides[0])
            name, first_side = self._scratch.first(content, row.item, side)
            if name != row.item and first_side != side:
                return name, True
        if number := _NUMBER.fullmatch(row.item):
            stored = self._stored_numbers.get(number[1])
            texts = "texts" if has_texts else ""
            name, first_texts = (
                (stored, "texts") if stored else self._scratch.first(number[1], row.item, texts)
            )
            if name != row.item and not (texts and first_texts):
                return name, False
        return None

    @cached_property
    def _stored_numbers(self) -> dict[str, str]:
        names = self._queue.items.values_list("external_id", flat=True) if self._queue else ()
        return {number[1]: name for name in names if (number := _NUMBER.fullmatch(name))}

    def _stored_drafts(self, names: Collection[str]) -> Iterator[PairDraft]:
        if not self._queue:
            return
        # The first condition is that of the index on the names.
        named = Q(~Q(external_id=""), external_id__in=names)
        # A pair that was made here goes by its own number.
        numbered = Q(external_id="", pk__in=[pk for name in names if (pk := _uuid(name))])
        for condition in (named, numbered):
            pairs = Pair.objects.filter(condition, queue=self._queue).select_related("a", "b")
            # Outputs are long: only what stands for them is read.
            marks = [
                Concat(MD5(output), Left(output, 61), output_field=TextField())
                for output in ("a__output", "b__output")
            ]
            pairs = pairs.defer("a__output", "b__output", "b__prompt")
            for pair in pairs.annotate(mark_a=marks[0], mark_b=marks[1]):
                yield _stored_draft(pair, (pair.mark_a, pair.mark_b))

    # --- verdicts ---------------------------------------------------------------------------------

    def _order(self, order: JudgeOrder) -> None:
        self._wants_baselines = bool(self._options.baselines)
        fingerprints = []
        for name in order.judges[:MOST_JUDGES]:
            try:
                reason = None if fields.name(name) else "a judge has no name"
            except fields.Unfit as error:
                reason = f"the name of a judge {error}"
            if reason:
                self._report.fail(RowError(order.file, 0, "judges", reason))
            elif fingerprint := self._judge(name):
                fingerprints.append(fingerprint)
        if list(dict.fromkeys(fingerprints)) != [
            fingerprint for fingerprint in self._judges if fingerprint in fingerprints
        ]:
            self._report.notes.append(
                f"{order.file}: the judges are in another order here; the first order is kept."
            )

    def _judge(self, name: str) -> str | None:
        fingerprint = imported_fingerprint(name, self._options.source)
        if fingerprint not in self._judges:
            if len(self._judges) == MOST_JUDGES:
                return None
            self._judges[fingerprint] = None
            self._scratch.insert("judge", name)
            self._report.new["judges"] += 1
        return fingerprint

    def _verdicts(self, rows: Sequence[tuple[ImportRow, UUID, str]]) -> None:
        existing: Existing = {}
        if self._stored_judges:
            pairs = {pair for _, pair, _ in rows}
            stored = Verdict.objects.filter(item__in=pairs, judge__in=self._stored_judges)
            columns = stored.values("item_id", "judge_id", *COMPARED["verdict"])
            existing = {(verdict["item_id"], verdict["judge_id"]): verdict for verdict in columns}
        for row, pair, name in rows:
            judge = self._judges[imported_fingerprint(name, self._options.source)]
            with self._reported(row):
                self._settle("verdict", row, name, pair, existing.get((pair, judge)))

    def _fill_blanks(self) -> None:
        """Take empty cells of judges that answer most of their others for failed verdicts."""
        for name, blank, answered in self._scratch.blanks():
            if (judge := imported_fingerprint(name, self._options.source)) not in self._judges:
                continue
            stored = dict(
                Verdict.objects.filter(judge=self._judges[judge]).values_list("item_id", "state")
            )
            all_answered = answered + [*stored.values()].count(Verdict.State.DONE)
            usual = "failed" if all_answered > blank else "not_asked"
            rule = self._options.empty_cells or usual
            if rule == "failed":
                row = ImportRow("", 0, "", judge=name, error=EMPTY)
                failed = json.dumps(verdict_of(row, "tie", None))
                filled = self._scratch.fill_blanks(name, failed, (pk.hex for pk in stored))
                self._report.new["verdicts"] += filled
            other_rule = "not_asked" if rule == "failed" else "failed"
            self._report.notes.append(
                f"{blank:,} of {name}'s {blank + all_answered:,} cells are empty: counted as "
                f"{RULES_OF_EMPTY[rule]}. The option empty_cells={other_rule} changes that."
            )

    # --- votes ------------------------------------------------------------------------------------

    def _votes(self, rows: Sequence[tuple[ImportRow, UUID, str]]) -> None:
        voters = voters_of(self._project, {name for *_, name in rows})
        existing: Existing = {}
        if self._run:
            pairs = {pair for _, pair, _ in rows}
            standing_votes = Entry.objects.filter(
                kind=Entry.Kind.VOTE, retracted=False, voter__in=voters.values(), item__in=pairs
            )
            columns = standing_votes.values("item_id", "voter_id", *COMPARED["vote"])
            existing = {
                (vote["item_id"], vote["voter_id"]): vote | {"at": vote["at"].isoformat()}
                for vote in columns
            }
        for row, pair, name in rows:
            voter = voters.get(name)
            self._report.new["voters"] += self._scratch.insert("voter", name, "") and not voter
            with self._reported(row):
                self._check_group(row, name, voter.group if voter else "")
                earlier_vote = existing.get((pair, voter.pk)) if voter else None
                self._settle("vote", row, name, pair, earlier_vote)

    def _check_group(self, row: ImportRow, voter: str, stored: str) -> None:
        if not row.voter_group:
            return
        first = stored or self._scratch.put_into_group(voter, row.voter_group)
        if first != row.voter_group:
            place = "here" if stored else "on another row"
            reason = f"{quote(row.voter_group)}, but {voter} is in the group {quote(first)} {place}"
            raise InvalidField("voter_group", reason)

    def _settle(
        self, table: str, row: ImportRow, name: str, pair: UUID, earlier: Columns | None
    ) -> None:
        """Keep a statement to be written, unless it was made before; then it must be the same."""
        assert self._question is not None  # rows were there
        labels, rule = self._question.statement(row), self._options.inconsistent
        columns = vote_of(row, labels) if table == "vote" else verdict_of(row, rule, labels)
        columns = self._question.settled(columns, COMPARED[table][0])
        if earlier is None:
            statement = json.dumps(columns, ensure_ascii=False)
            if self._scratch.insert(table, name, pair.hex, statement):
                self._report.new[f"{table}s"] += 1
                return
            earlier = self._scratch.statement(table, name, pair.hex)
        check_consistent(table, row, columns, earlier)
        self._report.already[f"{table}s"] += 1


def _with_item_names(
    rows: Sequence[ImportRow], aliases: Mapping[str, tuple[str, bool]]
) -> Sequence[ImportRow]:
    if not aliases:
        return rows
    renamed = []
    for row in rows:
        item, is_turned = aliases.get(row.item, (row.item, False))
        named_row = row if item == row.item else replace(row, item=item)
        renamed.append(named_row.turned() if is_turned else named_row)
    return renamed


def _uuid(text: str) -> UUID | None:
    try:
        number = UUID(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def _stored_draft(pair: Pair, marks: tuple[str, str]) -> PairDraft:
    a, b = pair.a, pair.b
    facts = {
        "kind": a.kind,
        "prompt": a.prompt,
        "tags": a.tags,
        "generator_a": a.generator,
        "generator_b": b.generator if b else "",
        **{name: a.metadata.get(name) for name in NOTED},
    }
    if b is None:
        facts["metadata"] = {k: v for k, v in a.metadata.items() if k not in RESERVED_METADATA}
    facts = {field: value for field, value in facts.items() if value}
    for field, output, stored_mark in zip(OUTPUTS, (a, b), marks, strict=True):
        if output and not output.metadata.get(OUTPUT_ABSENT):
            facts[field] = stored_mark
    return PairDraft(
        pair.external_id or str(pair.pk),
        facts,
        pair.pk,
        a.pk,
        b.pk if b else uuid4(),
        pair.position,
        is_fixed=pair.external_id == "",
        noun="pair" if b else "item",
    )

"""A run as tables: a row for each vote and verdict, a matrix of labels, and grades of outputs.

Items come a few at a time, each with all that judges and people say of it. The number of queries is
the same for every few.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from io import StringIO
from itertools import chain
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from humanjudge.core.text import harmless
from judge_eval.imports.import_write import RESERVED_METADATA
from judge_eval.imports.row_models import PICKS, SHAPES, Values
from judge_eval.models import Run, Verdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from judge_eval.runs.queries import with_costs
from voting.ballot import tuning
from voting.ballot.queries import chunks
from voting.items.choices import MILLION, WRONG, quality_of, row_of
from voting.items.kinds import SEPARATOR, Options, is_ordered, kind_of, options_of
from voting.items.kinds import grade_of as quality_in
from voting.ledger.chain import timestamp
from voting.models import Entry, Inference, Item

# Items that are held at once, with their outputs, verdicts and votes.
AT_ONCE: Final = 100
Label = str | float | list[str] | None


class JudgedItem(NamedTuple):
    """An item, its verdicts in the order of the run's judges, its votes in that of the ledger."""

    item: Item
    verdicts: list[Verdict]
    votes: list[Entry]

    @property
    def name(self) -> str:
        return self.item.external_id or str(self.item.pk)

    @property
    def done(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.state == Verdict.State.DONE]


def judged_items(run: Run) -> Iterator[JudgedItem]:
    """Yield the usable items of a run with their verdicts and those votes of people that count."""
    verdicts = with_costs(_verdicts(run)).select_related("judge").order_by("judge__position")
    votes = _votes(run).select_related("voter", "rubric").order_by("seq")
    items = Item.objects.filter(queue=run.queue_id, unusable="").select_related("a", "b")
    for chunk in chunks(items, "position", AT_ONCE):
        judged = {item.pk: JudgedItem(item, [], []) for item in chunk}
        for verdict in verdicts.filter(item__in=chunk):
            judged[verdict.item_id].verdicts.append(verdict)
        for vote in votes.filter(item__in=chunk):
            assert vote.item_id is not None  # filtered
            judged[vote.item_id].votes.append(vote)
        yield from judged.values()


def _verdicts(run: Run) -> QuerySet[Verdict]:
    verdicts = Verdict.objects.filter(judge__run=run).exclude(state=Verdict.State.WAITING)
    return verdicts.exclude(tuning.HIDDEN)


def _votes(run: Run) -> QuerySet[Entry]:
    # Pretend votes would be taken for those of people.
    return Entry.objects.filter(
        tuning.visible_votes(run.queue), queue=run.queue_id, simulated=False
    )


def judge_names(run: Run) -> dict[UUID, str]:
    """Name the judges of a run, in their order, so that no two have the same name."""
    names: dict[UUID, str] = {}
    before: list[str] = []
    for pk, name in run.judges.order_by("position").values_list("pk", "name"):
        same = before.count(name)
        before.append(name)
        names[pk] = f"{name} ({same + 1})" if same else name
    return names


# --- a row for each vote and verdict --------------------------------------------------------------

# Columns of an import that say the same as others do here.
_LEFT_OUT: Final = ("prompt_id", "votes_wanted", *PICKS)
_CAPTIONS: Final = ("run_question", "judge_description")


def run_csv(run: Run) -> Iterator[str]:
    """Yield a table for spreadsheets: each vote and verdict on a row, with its item."""
    fields, labels = SHAPES[run.queue.noun].fields, _label_names(run)
    has_captions = run.question or run.judges.exclude(description="").exists()
    absent = _LEFT_OUT if has_captions else (*_LEFT_OUT, *_CAPTIONS)
    columns = [name for name in fields if name not in absent]
    # The mark in front makes Excel read the file as UTF-8.
    yield "\ufeff" + _line([*columns, *(harmless(f"labels.{name}") for name in labels)])
    for item_cells, statements in _statements(run):
        for cells in statements or [{}]:
            answers = cells.get("labels") or {}
            row = [*map((item_cells | cells).get, columns), *map(answers.get, labels)]
            yield _line(map(_cell, row))


def run_rows(run: Run) -> Iterator[str]:
    """Yield the same as JSON Lines: an item first, with its texts, then what is said of it."""
    for item_cells, statements in _statements(run):
        name, value = next(iter(item_cells.items()))
        for row in (item_cells, *({name: value} | cells for cells in statements)):
            filled_cells = {key: cell for key, cell in row.items() if cell not in (None, {})}
            yield json.dumps(filled_cells, ensure_ascii=False, default=timestamp) + "\n"


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        # A set of no labels is an answer.
        value = SEPARATOR.join(map(str, value)) or SEPARATOR
    if isinstance(value, datetime):
        return timestamp(value)
    return harmless(value) if isinstance(value, str) else value


def _line(cells: Iterable[object]) -> str:
    buffer = StringIO()
    # Lines end as RFC 4180 says: with another ending the csv module leaves "\r" unquoted.
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()


def _label_names(run: Run) -> list[str]:
    """Return the further tasks that votes and verdicts answer: each is a column."""
    rows: Iterable[QuerySet[Any]] = (_votes(run), _verdicts(run))
    stored = (
        statements.filter(labels__isnull=False).values_list("labels", flat=True)
        for statements in rows
    )
    answers = chain.from_iterable(label_lists.iterator() for label_lists in stored)
    return sorted({name for labels in answers for name in labels or ()} - {_task(run)})


def _task(run: Run) -> str:
    return kind_of(run.queue).task(options_of(run.queue))


def _statements(run: Run) -> Iterator[tuple[Values, list[Values]]]:
    """Yield what describes each item, its name first, and what judges and people say of it."""
    noun, names, asks, task = run.queue.noun, judge_names(run), options_of(run.queue), _task(run)
    # Each is said once: on the first item, and with the first verdict of a judge.
    question = run.question or None
    descriptions: dict[UUID, str | None] = dict(
        run.judges.exclude(description="").values_list("pk", "description")
    )
    for judged in judged_items(run):
        item_cells = {noun: judged.name} | _item_cells(judged.item) | {"run_question": question}
        question = None
        rows = [
            _verdict(verdict, judged.item, task)
            | {
                "judge": names[verdict.judge_id],
                "judge_description": descriptions.pop(verdict.judge_id, None),
            }
            for verdict in judged.verdicts
        ]
        yield item_cells, rows + [_vote(vote, asks, task) for vote in judged.votes]


def _item_cells(item: Item) -> Values:
    cells = {
        "prompt": item.a.prompt or None,
        "kind": item.a.kind,
        "tags": item.a.tags or None,
        "cluster": item.prompt_key,
    }
    if item.b is None:
        metadata = {
            name: fact for name, fact in item.a.metadata.items() if name not in RESERVED_METADATA
        }
        return cells | _output(item.a) | {"time": item.a.created_at, "metadata": metadata}
    return cells | _output(item.a, "_a") | _output(item.b, "_b")


def _output(output: Inference, side: str = "") -> Values:
    text = None if output.metadata.get(OUTPUT_ABSENT) else output.output
    return {f"generator{side}": output.generator or None, f"output{side}": text}


def _verdict(verdict: Any, item: Item, task: str) -> Values:
    """Return a verdict, to which `with_costs` added what it cost."""
    names = ("score_a", "score_b", "consistent")
    scores: Values = {"score": verdict.score_a}
    if item.b_id:
        scores = {name: getattr(verdict, name) for name in names}
    nano: int | None = verdict.all_nano
    return {
        "verdict": label_of(verdict, verdict.winner, task),
        # Beside an error there is none.
        **({} if verdict.error else scores),
        "feedback": verdict.feedback or None,
        "error": verdict.error or None,
        "cost_usd": None if nano is None else nano / 10**9,
        "unpriced": verdict.all_unpriced,
        "latency_ms": verdict.latency_ms,
        "labels": _other_labels(verdict.labels, task),
    }


def _vote(vote: Entry, asks: Options, task: str) -> Values:
    assert vote.voter is not None  # it is a vote
    return {
        "voter": vote.voter.pseudonym,
        "vote": grade_of(vote, asks, task),
        "category": vote.category or None,
        "left_side": vote.left_side or None,
        "voted_at": vote.at,
        "comment": vote.comment or None,
        "voter_group": vote.voter.group or None,
        "labels": _other_labels(vote.labels, task),
    }


def _other_labels(labels: Values | None, task: str) -> Values:
    return {name: label for name, label in (labels or {}).items() if name != task}


def label_of(row: Verdict | Entry, choice: str, task: str) -> Label:
    answer: Label = (row.labels or {}).get(task, choice)
    # Two orders that disagree are a tie, whatever they count as.
    return "tie" if answer == WRONG else None if answer == "" else answer


def grade_of(vote: Entry, asks: Options, task: str) -> Label:
    """Return what a person said: where grades are asked for, a number from 0 to 1."""
    if asks.takes_grades and vote.value is not None:
        return vote.value / MILLION
    return label_of(vote, vote.choice, task)


# --- labels and grades ----------------------------------------------------------------------------


def labels_csv(run: Run) -> Iterator[str]:
    """Yield the matrix of labels as CSV. Its columns have names that are imported again."""
    names, rows = _matrix(run)
    yield _line(map(_cell, names))
    yield from (_line(map(_cell, row)) for row in rows)


def labels_parquet(run: Run) -> Iterator[bytes]:
    """Yield the same as Parquet, with one type for all labels: numbers of ratings and of what is
    graded, lists of sets, texts of all else.
    """
    # Imported here: it takes long, and nothing else that goes out needs it.
    from judge_eval.imports.parquet import parquet_file

    kind, is_number = kind_of(run.queue), is_ordered(run.queue)
    cells = float if is_number else list if kind.name == "labels" else str

    def typed(label: Label) -> object:
        if label is None or isinstance(label, cells):
            return label
        return quality_in(str(label), None) if is_number else kind.typed(label)

    names, rows = _matrix(run)
    return parquet_file(names, cells, ([name, *map(typed, labels)] for name, *labels in rows))


def _matrix(run: Run) -> tuple[list[str], Iterator[list[Label]]]:
    """Return the names of columns, and a row for each item: its name, then the label of each
    person and each judge.

    That is how tools for Krippendorff's alpha, kappa and latent truth models take labels.
    """
    asks, task, judges = options_of(run.queue), _task(run), judge_names(run)
    voted = _votes(run).order_by("voter__pseudonym").values_list("voter", "voter__pseudonym")
    people = dict(voted.distinct())
    names = [run.queue.noun, *(f"vote.{name}" for name in people.values())]
    names += [f"verdict.{name}" for name in judges.values()]

    def rows() -> Iterator[list[Label]]:
        for judged in judged_items(run):
            cells: dict[Any, Label] = {v.voter_id: grade_of(v, asks, task) for v in judged.votes}
            for verdict in judged.verdicts:
                grade = verdict.score_a if asks.takes_grades else None
                cells[verdict.judge_id] = (
                    label_of(verdict, verdict.winner, task) if grade is None else grade
                )
            yield [judged.name, *map(cells.get, (*people, *judges))]

    return names, rows()


VOTE_COLUMNS: Final = ("inference_id", "vote", "voter_id", "vote_time", "voter_prompt_id")


def grandjury_votes(run: Run) -> Iterator[str]:
    """Yield the votes that count, of people, as the public GrandJury client reads them.

    A vote on a pair is a grade of either output: 1 for the better one and 0 for the other, 0.5 for
    both of a tie, 0 for both that are bad.
    """
    yield _line(VOTE_COLUMNS)
    for judged in judged_items(run):
        for vote in judged.votes:
            assert vote.voter is not None  # it is a vote
            vote_cells = (vote.voter.pseudonym, timestamp(vote.at), vote.rubric)
            for output, grade in zip(judged.item.outputs, _grades(judged.item, vote), strict=False):
                yield _line((output.pk, float(grade), *vote_cells))


def _grades(item: Item, vote: Entry) -> tuple[float, ...]:
    if item.b_id:
        return row_of(vote.choice).grades
    quality = quality_of(vote.choice, vote.value)
    return () if quality is None else (quality,)

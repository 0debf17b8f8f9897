"""Everything of a run or of a project as a bundle, and a run's votes as files for other tools.

All is read a chunk at a time, votes up to the head that the project's ledger has at the start: what
is voted meanwhile is in the next export. The number of queries is the same for every chunk.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from io import StringIO
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Count, Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from pydantic import BaseModel

from judge_eval.exchange import bundle
from judge_eval.exchange.formats import table
from judge_eval.exchange.import_write import CHANGES, NOTED
from judge_eval.models import Call, Judge, Run, Verdict
from judge_eval.prompts.orders import combine
from judge_eval.prompts.parse import ParsedVerdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from judge_eval.selectors import UNPRICED
from voting.choices import ONE, SWAPPED, WRONG, quality_of, row_of
from voting.kinds import SEPARATOR, options_of
from voting.ledger.chain import timestamp
from voting.ledger.counts import COUNTED, counted_in
from voting.models import Entry, Flag, Inference, Item, Project, Queue, Voter, VoterPrompt

# Outputs are long.
AT_ONCE: Final = 200
_OF_QUEUE: Final = set(
    "kind options ballot votes_per_item overlap_share overlap_votes reveal is_open "
    "is_simulated".split()
)

Part = TypeVar("Part", bound=BaseModel)
Row = TypeVar("Row")


def export_run(run: Run) -> Iterator[str]:
    """Yield the lines of a bundle of one run, without their ends."""
    project = Project.objects.get(queues__run=run)
    return _lines(project, [run], Q(queue=run.queue_id))


def export_project(project: Project) -> Iterator[str]:
    """Yield the lines of a bundle of a project: its runs, and what its ledger says of them.

    A run that is still being imported, and what the ledger holds of it by now, are left out.
    """
    fresh = Project.objects.get(pk=project.pk)
    runs = list(Run.objects.filter(queue__project=fresh).order_by("created_at", "pk"))
    return _lines(fresh, runs, Q(queue__isnull=True) | Q(queue__run__in=runs))


def _lines(project: Project, runs: Sequence[Run], of_runs: Q) -> Iterator[str]:
    lines = 0
    for record in _records(project, runs, of_runs):
        yield record.model_dump_json()
        lines += 1
    yield bundle.End(lines=lines).model_dump_json()


def _records(project: Project, runs: Sequence[Run], of_runs: Q) -> Iterator[bundle.Record]:
    sealed = Entry.objects.filter(of_runs, project=project, seq__lte=project.head_seq)
    part = bundle.ProjectPart(
        id=project.pk,
        name=project.name,
        created_at=project.created_at,
        head_seq=project.head_seq,
        head=project.head,
    )
    yield bundle.Header(project=part, runs=[run.pk for run in runs])
    # The rubrics that these runs ask now, and those that their votes answered.
    answered = sealed.filter(kind=Entry.Kind.VOTE).order_by().values("rubric").distinct()
    used = Q(queues__run__in=runs) | Q(pk__in=answered)
    rubrics = VoterPrompt.objects.filter(used).distinct().order_by("name", "version")
    names = bundle.Rubric.model_fields.keys() - {"type"}
    yield from (bundle.Rubric(**row) for row in rubrics.values(*names))
    for run in runs:
        yield from _run(run)
    queues = {run.queue_id: run.pk for run in runs}
    flags = Flag.objects.filter(item__queue__in=queues)
    voters = Voter.objects.filter(
        Q(Exists(sealed.filter(voter=OuterRef("pk"))))
        | Q(Exists(flags.filter(voter=OuterRef("pk")))),
        project=project,
    )
    yield from _read(bundle.VoterPart, voters, "pseudonym")
    yield from _read(bundle.FlagPart, flags, comparison="item", voter="voter__pseudonym")
    yield from _ledger(sealed, queues)


def _run(run: Run) -> Iterator[bundle.Record]:
    run = Run.objects.select_related("queue__rubric").get(pk=run.pk)
    names = bundle.RunPart.model_fields.keys() - {"type", "queue", "rubric"}
    yield bundle.RunPart(
        queue=run.queue_id,
        rubric=_reference(run.queue.rubric),
        **{name: getattr(run.queue if name in _OF_QUEUE else run, name) for name in names},
    )
    yield from _read(bundle.JudgePart, run.judges.all(), "position")
    pairs = Item.objects.filter(queue=run.queue_id)
    used = Q(Exists(pairs.filter(a=OuterRef("pk")))) | Q(Exists(pairs.filter(b=OuterRef("pk"))))
    yield from _read(bundle.Output, Inference.objects.filter(used))
    yield from _read(bundle.Pair, pairs, "position", run="queue__run")
    # What a verdict's calls cost: they stay here, and what they cost is on the board.
    calls = Call.objects.filter(verdict=OuterRef("pk")).exclude(state=Call.State.WAITING)
    of_one = calls.order_by().values("verdict")
    nano = of_one.annotate(nano=Sum("cost_nano")).values("nano")
    unpriced = of_one.annotate(unpriced=Count("pk", filter=UNPRICED)).values("unpriced")
    verdicts = Verdict.objects.filter(judge__run=run).annotate(
        all_nano=Coalesce(Subquery(nano), "cost_nano"),
        all_unpriced=Coalesce(Subquery(unpriced), "unpriced", output_field=IntegerField()),
    )
    yield from _read(
        bundle.VerdictPart,
        verdicts,
        comparison="item",
        cost_nano="all_nano",
        unpriced="all_unpriced",
    )


def _read(
    record: type[Part], rows: QuerySet[Any], order: str = "pk", **paths: str
) -> Iterator[Part]:
    paths = {name: name for name in record.model_fields if name != "type"} | paths
    for row in in_chunks(rows.values(order, *paths.values()), order):
        yield record(**{name: row[path] for name, path in paths.items()})


def in_chunks(rows: QuerySet[Any, Row], order: str) -> Iterator[Row]:
    """Yield rows in the order of a field that no two of them share, so many at a time."""
    rows = rows.order_by(order)
    chunk = list(rows[:AT_ONCE])
    while chunk:
        yield from chunk
        last: Any = chunk[-1]
        last = last[order] if isinstance(last, dict) else getattr(last, order)
        chunk = list(rows.filter(**{f"{order}__gt": last})[:AT_ONCE])


def _reference(rubric: VoterPrompt) -> bundle.RubricRef:
    return bundle.RubricRef(name=rubric.name, version=rubric.version)


def _ledger(sealed: QuerySet[Entry], runs: dict[UUID, UUID]) -> Iterator[bundle.Record]:
    # When votes were taken back, as far as the export knows.
    retractions = sealed.filter(seq=OuterRef("retracted_seq")).values("at")
    entries = sealed.annotate(retracted_at=Subquery(retractions))
    for entry in in_chunks(entries.select_related("voter", "rubric", "target"), "seq"):
        assert entry.seq is not None and entry.hash is not None  # noqa: PT018  it is sealed
        common: dict[str, Any] = {
            "seq": entry.seq,
            "hash": bytes(entry.hash).hex(),
            "id": entry.uid,
            "at": entry.at,
            "run": runs[entry.queue_id] if entry.queue_id else None,
            "comparison": entry.item_id,
            "voter": entry.voter.pseudonym if entry.voter else None,
        }
        if entry.kind == Entry.Kind.VOTE:
            yield _vote(entry, entry.retracted_at, common)
        else:
            target = entry.target.uid if entry.target else None
            names = ("kind", "payload", "comment", "salt")
            common |= {name: getattr(entry, name) for name in names}
            yield bundle.EntryPart(**common, target=target)


def _vote(entry: Entry, retracted_at: datetime | None, common: dict[str, Any]) -> bundle.Vote:
    assert entry.rubric is not None  # it is a vote
    back = {"seq": entry.retracted_seq, "at": retracted_at}
    common |= {
        "rubric": _reference(entry.rubric),
        "labels_sha256": (entry.payload or {"labels_sha256": ""})["labels_sha256"],
        "retracted": bundle.Retracted.model_validate(back) if retracted_at else None,
    }
    names = bundle.Vote.model_fields.keys() - common.keys() - {"type"}
    return bundle.Vote(**common, **{name: getattr(entry, name) for name in names})


# --- a table of everything -----------------------------------------------------------------------

_OF_PAIRS: Final = (
    "pair prompt tags kind cluster generator_a output_a generator_b output_b judge verdict pick_ab "
    "pick_ba consistent score_a score_b feedback error voter vote left_side voted_at comment labels"
).split()
_OF_ITEMS: Final = (
    "item prompt tags kind cluster generator output time metadata judge verdict score feedback "
    "error voter vote category voted_at comment labels"
).split()
Cells = dict[str, object]


def run_csv(run: Run) -> Iterator[str]:
    """Yield what a run's board is made of as CSV, line by line, as `formats.table` reads it.

    First stands the run, then its items, the verdicts of each judge, and the votes that count.
    """
    run = Run.objects.select_related("queue__rubric").get(pk=run.pk)
    is_pair = run.queue.kind == Queue.Kind.COMPARISON
    columns = [table.MARK, *(_OF_PAIRS if is_pair else _OF_ITEMS)]
    yield _line(columns)
    for cells in _statements(run, is_pair=is_pair):
        yield _line([_cell(name, cells.get(name)) for name in columns])


def _cell(name: str, value: object) -> object:
    if name in table.AS_JSON or name == table.MARK:
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, bool):
        return str(value).lower()
    return table.quoted(value) if isinstance(value, str) else value


def _statements(run: Run, *, is_pair: bool) -> Iterator[Cells]:
    judges = list(run.judges.order_by("position"))
    names = _names_of(judges)
    verdicts = Verdict.objects.filter(judge__run=run, item__unusable="")
    verdicts = verdicts.exclude(state=Verdict.State.WAITING)
    yield {table.MARK: _about(run, judges, names, has_wrong=verdicts.filter(winner=WRONG).exists())}
    items = run.queue.items.filter(unusable="")
    for item in in_chunks(items.select_related("a", "b"), "position"):
        yield _of_pair(item) if is_pair else _of_item(item)
    task = options_of(run.queue).task
    for judge in judges:
        of_one = verdicts.filter(judge=judge).annotate(place=F("item__position"))
        for verdict in in_chunks(of_one.select_related("item"), "place"):
            said = _verdict_on_pair(verdict) if is_pair else _verdict_on_item(verdict, task)
            yield _name_of(verdict.item) | {"judge": names[judge.pk]} | said
    votes = Entry.objects.filter(counted_in(run.queue), queue=run.queue_id, item__unusable="")
    # Pretend votes would come back as those of people.
    votes = votes.filter(simulated=False).select_related("voter", "item")
    for vote in in_chunks(votes, "seq"):
        assert vote.item is not None  # it is a vote
        yield _name_of(vote.item) | _vote_on(vote, "" if is_pair else task)


def _names_of(judges: Sequence[Judge]) -> dict[UUID, str]:
    """Name judges so that no two are called the same."""
    names: dict[UUID, str] = {}
    for judge in judges:
        same = sum(other.name == judge.name for other in judges if other.position < judge.position)
        names[judge.pk] = f"{judge.name} ({same + 1})" if same else judge.name
    return names


def _about(
    run: Run, judges: Sequence[Judge], names: dict[UUID, str], *, has_wrong: bool
) -> dict[str, Any]:
    queue, asks = run.queue, options_of(run.queue)
    options: dict[str, Any] = {
        "rubric": queue.rubric.text,
        "vote_kind": queue.kind,
        "epsilon": run.epsilon,
        "votes_per_pair": queue.votes_per_item,
        "reveal": queue.reveal,
        "inconsistent": "wrong" if has_wrong else "tie",
    }
    if queue.kind != Queue.Kind.COMPARISON:
        options |= {"task": asks.task, "flag_categories": [*asks.flag_categories]}
        options |= {"graded": True} if asks.takes_grades else {}
    options |= {"ballot": queue.ballot} if len(queue.ballot) > 1 else {}
    options |= {} if queue.is_open else {"open_for_voting": False}
    return {
        "run": str(run.pk),
        "queue": str(queue.pk),
        "judges": list(names.values()),
        "baselines": [judge.name for judge in judges if judge.is_baseline],
        "options": options,
    }


def _name_of(item: Item) -> Cells:
    return {"pair" if item.b_id else "item": item.external_id or str(item.pk)}


def _output(output: Inference) -> str | None:
    return None if output.metadata.get(OUTPUT_ABSENT) else output.output


def _of_pair(item: Item) -> Cells:
    a, b = item.pair
    of_a = {"generator_a": a.generator or None, "output_a": _output(a)}
    of_b = {"generator_b": b.generator or None, "output_b": _output(b)}
    return _name_of(item) | _asked(item) | of_a | of_b


def _of_item(item: Item) -> Cells:
    kept = (OUTPUT_ABSENT, CHANGES, *NOTED)
    return {
        **_name_of(item),
        **_asked(item),
        "generator": item.a.generator or None,
        "output": _output(item.a),
        "time": timestamp(item.a.created_at),
        "metadata": {name: it for name, it in item.a.metadata.items() if name not in kept},
    }


def _asked(item: Item) -> Cells:
    of_prompt = {"prompt": item.a.prompt or None, "tags": item.a.tags, "kind": item.a.kind}
    return of_prompt | {"cluster": item.prompt_key}


def _verdict_on_pair(verdict: Verdict) -> Cells:
    failed: Cells = {"feedback": verdict.feedback or None, "error": verdict.error or None}
    if verdict.state == Verdict.State.FAILED:
        return failed | {"labels": verdict.labels}
    winner = "tie" if verdict.winner == WRONG else verdict.winner
    return {
        **failed,
        **_picks(verdict, winner),
        "verdict": winner,
        "consistent": verdict.consistent,
        "score_a": verdict.score_a,
        "score_b": verdict.score_b,
        "labels": verdict.labels,
    }


def _picks(verdict: Verdict, winner: str) -> Cells:
    """What was picked in both orders, where the winner follows from that alone."""
    if verdict.order != Verdict.Order.BOTH or len(verdict.picks) != 2:
        return {}
    as_stored, swapped = verdict.picks
    both = combine(ParsedVerdict(as_stored), ParsedVerdict(swapped))
    if (both.winner, both.consistent) != (winner, verdict.consistent):
        return {}
    return {"pick_ab": as_stored, "pick_ba": SWAPPED[swapped]}


def _verdict_on_item(verdict: Verdict, task: str) -> Cells:
    said: Cells = {"feedback": verdict.feedback or None, "error": verdict.error or None}
    if verdict.state == Verdict.State.FAILED:
        return said
    main, labels = _answer(task, verdict.winner, verdict.labels)
    return said | {"verdict": main, "score": verdict.score_a, "labels": labels}


def _vote_on(vote: Entry, task: str) -> Cells:
    assert vote.voter is not None  # it is a vote
    main, labels = _answer(task, vote.choice, vote.labels) if task else (vote.choice, vote.labels)
    return {
        "voter": vote.voter.pseudonym,
        "vote": main if vote.value is None else vote.value / ONE,
        "category": vote.category or None,
        "left_side": vote.left_side or None,
        "voted_at": timestamp(vote.at),
        "comment": vote.comment or None,
        "labels": labels,
    }


def _answer(task: str, choice: str, stored: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Return the answer to what is asked, as a cell, and those to further tasks."""
    labels = dict(stored or {})
    main = labels.pop(task, choice)
    if isinstance(main, list):
        main = SEPARATOR.join(main) or SEPARATOR
    return main, labels


# --- votes for other tools --------------------------------------------------------------------

VOTE_COLUMNS: Final = ("inference_id", "vote", "voter_id", "vote_time", "voter_prompt_id")


def grandjury_votes(run: Run) -> Iterator[str]:
    """Yield the votes that count, of people, as the public GrandJury client reads them.

    A vote on a pair is a grade of either output: 1 for the better one and 0 for the other, 0.5 for
    both of a tie, 0 for both that are bad.
    """
    yield _line(VOTE_COLUMNS)
    counted = Entry.objects.filter(COUNTED & Q(simulated=False), queue=run.queue_id)
    for vote in in_chunks(counted.select_related("voter", "rubric", "item"), "seq"):
        assert vote.voter is not None and vote.item is not None  # noqa: PT018  it is a vote
        if vote.item.b_id:
            sides = (vote.item.a_id, vote.item.b_id)
            grades = list(zip(sides, row_of(vote.choice).grades, strict=True))
        elif (quality := quality_of(vote.choice, vote.value)) is not None:
            grades = [(vote.item.a_id, quality)]
        else:
            continue
        for output, grade in grades:
            yield _line(
                (output, float(grade), vote.voter.pseudonym, timestamp(vote.at), vote.rubric)
            )


def _line(cells: Iterable[object]) -> str:
    buffer = StringIO()
    # Lines end as RFC 4180 says: with another ending the csv module leaves "\r" unquoted.
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()

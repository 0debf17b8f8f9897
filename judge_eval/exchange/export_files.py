"""The files that a run is exported as, and its two tables: of everything, and of its votes.

All is read a chunk at a time. The number of queries is the same for every chunk.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from io import StringIO
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from django.db.models import Q
from django.http import StreamingHttpResponse
from django.utils.text import slugify

from humanjudge.lib.text import harmless
from judge_eval.access import Reader, note_runs_seen
from judge_eval.exchange import mapping
from judge_eval.exchange.export import AT_ONCE, export_run, in_chunks
from judge_eval.exchange.formats import table
from judge_eval.exchange.import_write import CHANGES, NOTED
from judge_eval.exchange.label_matrix import label_rows
from judge_eval.exchange.row_models import PAIRS, SHAPES, Shape
from judge_eval.models import Judge, Run, Verdict
from judge_eval.prompts.orders import combine
from judge_eval.prompts.parse import ParsedVerdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from judge_eval.selectors import with_costs
from voting import tuning
from voting.choices import ONE, SWAPPED, WRONG, quality_of, row_of
from voting.kinds import SEPARATOR, kind_of, options_of
from voting.ledger import ledger
from voting.ledger.chain import timestamp
from voting.ledger.counts import COUNTED
from voting.models import Entry, Inference, Item, Queue
from voting.selectors import chunks

_BLOCK: Final = 64 * 1024

# --- a table of everything -----------------------------------------------------------------------

Cells = dict[str, object]


def run_csv(run: Run) -> Iterator[str]:
    """Yield what a run's board is made of as CSV, line by line, as `formats.table` reads it.

    First stands the run, then its items, the verdicts of each judge, and the votes that count.
    """
    run = Run.objects.select_related("queue__rubric").get(pk=run.pk)
    shape = SHAPES[run.queue.noun]
    # The cluster of an item says what its prompt is called.
    first_columns = [name for name in shape.fields if name != "prompt_id"]
    columns = [table.MARK, *first_columns, *mapping.nested_in(shape)]
    yield _line(columns)
    for cells in _statements(run, shape):
        yield _line([_cell(name, cells.get(name)) for name in columns])


def _cell(name: str, value: object) -> object:
    if name in table.AS_JSON or name == table.MARK:
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, bool):
        return str(value).lower()
    return table.quoted(value) if isinstance(value, str) else value


def _statements(run: Run, shape: Shape) -> Iterator[Cells]:
    judges = list(run.judges.order_by("position"))
    names = _names_of(judges)
    verdicts = Verdict.objects.filter(judge__run=run, item__unusable="")
    verdicts = verdicts.exclude(tuning.HIDDEN).exclude(state=Verdict.State.WAITING)
    yield {table.MARK: _about(run, judges, names, has_wrong=verdicts.filter(winner=WRONG).exists())}
    items = run.queue.items.filter(unusable="")
    for item in in_chunks(items.select_related("a", "b"), "position"):
        yield _of_pair(item) if shape is PAIRS else _of_item(item)
    task = kind_of(run.queue).task(options_of(run.queue))
    for judge in judges:
        of_one = with_costs(verdicts.filter(judge=judge)).order_by("item__position")
        for chunk in chunks(items.only("queue", "position"), "position", AT_ONCE):
            for verdict in of_one.filter(item__in=chunk).select_related("item"):
                answer = (
                    _verdict_on_pair(verdict) if shape is PAIRS else _verdict_on_item(verdict, task)
                )
                yield _name_of(verdict.item) | {"judge": names[judge.pk]} | answer | _costs(verdict)
    votes = Entry.objects.filter(tuning.shown_in(run.queue), queue=run.queue_id, item__unusable="")
    # Pretend votes would come back as those of people.
    votes = votes.filter(simulated=False).select_related("voter", "item")
    for vote in in_chunks(votes, "seq"):
        assert vote.item is not None  # it is a vote
        yield _name_of(vote.item) | _vote_on(vote, task)


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
    queue = run.queue
    options: dict[str, Any] = {
        "rubric": queue.rubric.text,
        "vote_kind": queue.kind,
        "epsilon": run.epsilon,
        "votes_per_pair": queue.votes_per_item,
        "reveal": queue.reveal,
        "inconsistent": "wrong" if has_wrong else "tie",
    }
    if queue.kind != Queue.Kind.COMPARISON:
        options |= options_of(queue).model_dump(mode="json")
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
    return _name_of(item) | _question_cells(item) | of_a | of_b


def _of_item(item: Item) -> Cells:
    kept = (OUTPUT_ABSENT, CHANGES, *NOTED)
    return {
        **_name_of(item),
        **_question_cells(item),
        "generator": item.a.generator or None,
        "output": _output(item.a),
        "time": timestamp(item.a.created_at),
        "metadata": {name: it for name, it in item.a.metadata.items() if name not in kept},
    }


def _question_cells(item: Item) -> Cells:
    return {
        "prompt": item.a.prompt or None,
        "tags": item.a.tags,
        "kind": item.a.kind,
        "cluster": item.prompt_key,
        # Votes that a dispute added follow from the votes again.
        "votes_wanted": item.votes_wanted - item.extra_votes,
    }


def _costs(verdict: Any) -> Cells:
    """What a verdict took, as `with_costs` found it, to the last billionth of a dollar."""
    nano: int | None = verdict.all_nano
    return {
        "cost_usd": None if nano is None else f"{Decimal(nano).scaleb(-9).normalize():f}",
        "unpriced": verdict.all_unpriced,
        "latency_ms": verdict.latency_ms,
    }


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
    answer: Cells = {"feedback": verdict.feedback or None, "error": verdict.error or None}
    if verdict.state == Verdict.State.FAILED:
        return answer
    main, labels = _answer(task, verdict.winner, verdict.labels)
    return answer | {"verdict": main, "score": verdict.score_a, "labels": labels}


def _vote_on(vote: Entry, task: str) -> Cells:
    assert vote.voter is not None  # it is a vote
    main, labels = _answer(task, vote.choice, vote.labels)
    return {
        "voter": vote.voter.pseudonym,
        "vote": main if vote.value is None else vote.value / ONE,
        "category": vote.category or None,
        "left_side": vote.left_side or None,
        "voted_at": timestamp(vote.at),
        "comment": vote.comment or None,
        "voter_group": vote.voter.group or None,
        "labels": labels,
    }


def _answer(task: str, choice: str, stored: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Return the answer to what is asked, as a cell, and those to further tasks."""
    labels = dict(stored or {})
    main = labels.pop(task, choice)
    if isinstance(main, list):
        main = SEPARATOR.join(main) or SEPARATOR
    return main, labels


def labels_csv(run: Run) -> Iterator[str]:
    """Yield every label of a run as CSV, a row for each item: see `label_matrix`."""
    run = Run.objects.select_related("queue").get(pk=run.pk)
    names = _names_of(list(run.judges.order_by("position")))
    for row in label_rows(run, names):
        yield _line([harmless(cell) if isinstance(cell, str) else cell for cell in row])


# --- votes for other tools --------------------------------------------------------------------

VOTE_COLUMNS: Final = ("inference_id", "vote", "voter_id", "vote_time", "voter_prompt_id")


def grandjury_votes(run: Run) -> Iterator[str]:
    """Yield the votes that count, of people, as the public GrandJury client reads them.

    A vote on a pair is a grade of either output: 1 for the better one and 0 for the other, 0.5 for
    both of a tie, 0 for both that are bad.
    """
    yield _line(VOTE_COLUMNS)
    counted = Entry.objects.filter(COUNTED & Q(simulated=False), queue=run.queue_id)
    counted = counted.exclude(tuning.HIDDEN)
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


# --- every format -------------------------------------------------------------------------------


class Format(NamedTuple):
    title: str
    purpose: str
    ending: str
    content_type: str
    lines: Callable[[Run], Iterator[str]]


JSON_LINES: Final = "application/jsonl"
CSV: Final = "text/csv; charset=utf-8"
FormatName = Literal["csv", "jsonl", "labels", "votes", "ledger"]
FORMATS: Final[Mapping[FormatName, Format]] = {
    "csv": Format(
        "Table (CSV)",
        "For a spreadsheet or a data frame: items, verdicts with what they cost, and votes, a row "
        "each. Imported again, it makes the same board. Excluded items, and votes that do not "
        "count, are not in it.",
        ".csv",
        CSV,
        run_csv,
    ),
    "jsonl": Format(
        "Bundle (JSON Lines)",
        "To move the run to another server or to keep it: everything, with costs and the ledger's "
        "entries. Imported again, every number is the same.",
        ".jsonl",
        JSON_LINES,
        lambda run: with_ends(export_run(run)),
    ),
    "labels": Format(
        "Label matrix (CSV)",
        "For a package of statistics, as it is taken for Krippendorff's alpha: a row for each "
        "item, a column for each person and each judge, in the cells their labels. Imported "
        "again, it brings the same labels, without outputs, times and costs.",
        "-labels.csv",
        CSV,
        labels_csv,
    ),
    "votes": Format(
        "Votes for GrandJury (CSV)",
        "For the public GrandJury client: the votes that count, as grades of single outputs.",
        "-votes.csv",
        CSV,
        grandjury_votes,
    ),
    "ledger": Format(
        "Ledger (JSON Lines)",
        "To verify offline that no vote was changed: the chained entries of the whole project.",
        "-ledger.jsonl",
        JSON_LINES,
        lambda run: with_ends(ledger.export(run.queue.project)),
    ),
}


def with_ends(lines: Iterable[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


def export(run: Run, name: FormatName, who: Reader) -> StreamingHttpResponse:
    """Return a run as a file; who gets it knows from then on what judges and others say."""
    chosen = FORMATS[name]
    is_whole = name == "ledger"
    if name in ("jsonl", "ledger"):
        tuning.refuse_whole_ledgers(run.queue.project_id)
    seen = Run.objects.filter(queue__project=run.queue.project) if is_whole else [run]
    note_runs_seen(who, seen)
    file = f"{slugify(run.name) or 'run'}-{str(run.pk)[:8]}{chosen.ending}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    lines = _blocks(chosen.lines(run))
    return StreamingHttpResponse(lines, content_type=chosen.content_type, headers=headers)


def _blocks(lines: Iterator[str]) -> Iterator[bytes]:
    """Put lines together: each piece of an answer costs the server some work."""
    block: list[bytes] = []
    size = 0
    for line in lines:
        block.append(line.encode())
        size += len(block[-1])
        if size > _BLOCK:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)

"""The demo, and votes that a script makes up to try a run with nobody there.

The demo's runs are to be voted on, made beforehand and without a vote; one is finished. That holds
published labels, so that the first board somebody opens has figures. Simulated votes are never in a
run of people.
"""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from django.contrib.auth import get_user_model
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from judge_eval.demo import content
from judge_eval.demo.content import Kind, Labelled, Live, Study
from judge_eval.judging.baselines import names_for, names_for_single
from judge_eval.judging.results import Fields
from judge_eval.judging.verdicts import OUTPUT_LENGTH, answer_of_baseline, verdicts_entry
from judge_eval.ledger.objects import record_objects
from judge_eval.models import Board, Judge, Run, Verdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from judge_eval.runs.services import add_judges, baseline, create_queue, create_run, imported_judge
from voting.access.keys import create_key
from voting.ballot.assignment import ballot_for
from voting.ballot.queries import open_to
from voting.ballot.services import (
    cast_simulated_votes,
    insist_on_open,
    make_simulated,
    refuse_after_people,
)
from voting.ballot.signed_form import Ballot
from voting.items.choices import CHOICES, DEFAULT_BALLOT, PASS_FLAG
from voting.items.kinds import Label, VoteAnswer, kind_of, options_of
from voting.items.order import fresh_turn
from voting.ledger import ledger
from voting.ledger.bulk_sql import insert_copies, insert_many
from voting.ledger.decisions import IMPORT_BEGINS, IMPORT_ENDS
from voting.models import ApiKey, Entry, Inference, Invite, Item, Project, Queue, Voter
from voting.people.voters import invite_token

# What a word of a ballot is as labels of the task.
Labels: TypeAlias = dict[str, dict[str, Label] | None]

PROJECT = "Demo"
SCOPES = [ApiKey.Scope.READ, ApiKey.Scope.VOTE]
RUNS: dict[Kind, str] = {"svg": "Drawings", "text": "Answers"}
QUESTIONS: dict[Kind, str] = {
    "svg": "Which drawing better shows what was asked?",
    "text": "Which answer would you rather have received?",
}
# A project of its own and its run: a quality score is a project's.
JOKES = "Jokes"
# Of the published labels, a project of its own too: its ledger holds votes from the beginning.
PUBLISHED = "Published labels"
PROJECTS = (PROJECT, JOKES, PUBLISHED)
STUDIES = (content.PANDALM, content.XSTEST)
# The finished run that the first page leads to, while it is there.
FIRST_STUDY = content.XSTEST.number
UNREADABLE = "The published reply has no label that can be read: no verdict."
FLAG_CATEGORIES = ("not funny", "not for work", "heard before", "makes no sense", "other")
# The names of what is made along with the demo.
FIRST_START = "made on first start"


def load(access_file: Path) -> bool:
    """Load the demo once, and write down how to get in. Return whether anything was loaded."""
    with transaction.atomic():
        # Projects may be renamed or cleared away; a key is only ever revoked.
        if ApiKey.objects.filter(name=FIRST_START).exists():
            return False
        project = Project.objects.create(name=PROJECT)
        runs = [
            make_run(project, kind, name, examples=examples(kind)) for kind, name in RUNS.items()
        ]
        runs.append(make_jokes(Project.objects.create(name=JOKES)))
        published = Project.objects.create(name=PUBLISHED)
        finished = [make_published(published, study) for study in STUDIES]
        access = {
            "board": [
                {"name": run.name, "path": reverse("run", args=[run.pk])}
                for run in (*reversed(finished), *runs)
            ],
            "invites": [
                {"name": run.name, "path": reverse("join", args=[invite_token(invite)])}
                for run in runs
                for invite in [Invite.objects.create(queue=run.queue, label=FIRST_START)]
            ],
            "admin": {**_admin(), "path": reverse("admin:index")},
            "api_key": create_key(FIRST_START, SCOPES)[1],
            "api_key_scopes": SCOPES,
            "cli_key": create_key("the command line on this machine", list(ApiKey.Scope))[1],
        }
        # Inside the transaction: no demo without its keys, no keys without the demo.
        access_file.touch(mode=0o600)
        access_file.write_text(json.dumps(access, indent=1), encoding="utf-8")
    return True


def make_run(project: Project, kind: Any, name: str, **examples: Any) -> Run:
    ballot = CHOICES if kind == "text" else DEFAULT_BALLOT
    return create_run(
        project,
        name,
        content.load(kind),
        question=QUESTIONS[kind],
        rubric=content.rubric(kind),
        baselines=names_for(kind, ballot),
        ballot=ballot,
        **examples,
    )


def make_jokes(project: Project) -> Run:
    return create_run(
        project,
        JOKES,
        content.jokes(),
        question="Is this joke good enough to tell?",
        rubric=content.rubric("jokes"),
        baselines=names_for_single(Queue.Kind.PASS_FLAG, PASS_FLAG),
        examples=examples("jokes"),
        kind=Queue.Kind.PASS_FLAG,
        ballot=PASS_FLAG,
        options={"flag_categories": FLAG_CATEGORIES},
    )


def examples(kind: Live) -> dict[str, Callable[[Item], Fields]]:
    """Return the example judges of the demo: by name, what each says of an item."""
    examples = content.examples(kind)
    return {name: partial(_verdict_of, verdicts) for name, verdicts in examples.items()}


def _verdict_of(verdicts: content.Verdicts, item: Item) -> Fields:
    sides = {output.generator: side for side, output in zip("AB", item.outputs, strict=False)}
    answer, reason = verdicts[item.a.prompt, frozenset(sides)]
    return {
        "state": Verdict.State.DONE,
        "winner": sides.get(answer, answer),
        "feedback": reason,
        "decided_at": timezone.now(),
    }


# --- published labels ---------------------------------------------------------------------------


def make_published(project: Project, study: Study) -> Run:
    """Write a finished run: items without their texts, verdicts and votes, sealed in order."""
    rows = study.rows()
    # It seeds what is drawn, and orders the prompts: figures are the same on every machine.
    number = study.number
    queue = create_queue(
        project,
        study.name,
        study.text("rubric.txt"),
        id=number,
        kind=study.kind,
        ballot=list(study.ballot),
        votes_per_item=len(rows[0].people),
        is_open=False,
    )
    run = Run.objects.create(
        id=number,
        queue=queue,
        name=study.name,
        state=Run.State.COMPLETE,
        note=study.text("source.txt"),
        question=study.question,
        is_shared=True,
    )
    Board.objects.create(run=run)
    judges = [imported_judge(run, name) for name in study.judges]
    # The published verdicts say one thing of what was shown in one order.
    orders = Verdict.Order.STORED if len(kind_of(queue).sides) > 1 else ""
    judges = add_judges(run, judges + [baseline(run, name, orders) for name in study.baselines])
    for judge in judges:
        judge.description = study.descriptions.get(judge.name, "")
    Judge.objects.bulk_update(judges, ["description"])
    record_objects(run, append=True)
    items = _items_without_texts(queue, rows)
    verdicts = _verdicts(judges, items, rows)
    insert_copies(
        "item_id",
        [
            (verdict, item.pk)
            for item, item_verdicts in zip(items, verdicts, strict=True)
            for verdict in item_verdicts
        ],
    )
    entries = [
        verdicts_entry(item, item_verdicts)
        for item, item_verdicts in zip(items, verdicts, strict=True)
    ]
    about = {"project_id": project.pk, "queue": queue, "at": timezone.now()}
    begins, ends = (
        Entry(kind=Entry.Kind.PARAMETERS, payload=payload, **about)
        for payload in (IMPORT_BEGINS, IMPORT_ENDS)
    )
    entries += [begins, *_votes(queue, items, rows), ends]
    ledger.append(project.pk, entries, insert=insert_many)
    return run


def _items_without_texts(queue: Queue, rows: Sequence[Labelled]) -> list[Item]:
    outputs = [
        [
            Inference(
                project_id=queue.project_id,
                kind=Inference.Kind.TEXT,
                generator=model,
                metadata={OUTPUT_ABSENT: True, OUTPUT_LENGTH: length},
                tags=list(row.tags),
            )
            for model, length in zip(row.models, row.lengths, strict=True)
        ]
        for row in rows
    ]
    insert_many([output for of_item in outputs for output in of_item])
    now = timezone.now()
    items = [
        Item(
            queue=queue,
            position=position,
            external_id=row.id,
            prompt_key=row.prompt,
            turn=fresh_turn(queue.pk, row.prompt),
            votes_wanted=queue.votes_per_item,
            opened_at=now,
            lacks_output=True,
            **dict(zip("ab", of_item, strict=False)),
        )
        for position, (row, of_item) in enumerate(zip(rows, outputs, strict=True))
    ]
    insert_many(items)
    return items


def _verdicts(
    judges: Sequence[Judge], items: Sequence[Item], rows: Sequence[Labelled]
) -> list[list[Verdict]]:
    """Return the published verdicts on each item and, by the lengths of its outputs, the floor's.

    Those that are alike are one object, of no item: there are thousands.
    """
    labels = _labels(items[0].queue)
    distinct_verdicts: dict[tuple[int, str], Verdict] = {}
    verdicts = []
    for item, row in zip(items, rows, strict=True):
        of_item = []
        for judge in judges:
            if judge.is_baseline:
                fields = answer_of_baseline(Verdict(judge=judge, item=item), judge.own_orders)
                del fields["latency_ms"]
            else:
                fields = _published(row.judges[judge.name], labels)
            key = judge.position, repr(fields)
            if key not in distinct_verdicts:
                distinct_verdicts[key] = Verdict(judge=judge, decided_at=item.opened_at, **fields)
            of_item.append(distinct_verdicts[key])
        verdicts.append(of_item)
    return verdicts


def _labels(queue: Queue) -> Labels:
    kind, options = kind_of(queue), options_of(queue)
    return {word: kind.labelled(word, options) or None for word in queue.ballot}


def _published(label: str, labels: Labels) -> Fields:
    if label not in labels:
        error = f"The published reply is {label!r}: no verdict." if label else UNREADABLE
        return {"state": Verdict.State.FAILED, "error": error}
    return {"state": Verdict.State.DONE, "winner": label, "labels": labels[label]}


def _votes(queue: Queue, items: Sequence[Item], rows: Sequence[Labelled]) -> list[Entry]:
    voters = {
        name: Voter(project_id=queue.project_id, name=name, external_id=name)
        for name in rows[0].people
    }
    Voter.objects.bulk_create(voters.values())
    labels, now = _labels(queue), timezone.now()
    return [
        Entry(
            kind=Entry.Kind.VOTE,
            project_id=queue.project_id,
            queue=queue,
            rubric=queue.rubric,
            item=item,
            voter=voters[name],
            reputation=voters[name].reputation,
            at=now,
            choice=label,
            labels=labels[label],
            **ledger.hidden("", labels[label]),
        )
        for item, row in zip(items, rows, strict=True)
        for name, label in row.people.items()
    ]


def _admin() -> dict[str, str | None]:
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return {"username": None, "password": None}
    password = secrets.token_urlsafe(12)
    users.create_superuser("admin", password=password)
    return {"username": "admin", "password": password}


AUTO = "auto"
# So many at most for one request: a web thread is busy with them.
MOST_VOTES = 5000
BATCH = 250


@dataclass(frozen=True)
class Simulated:
    """What came of it: votes cast, pairs that took none after all, pairs that still want one."""

    voted: int
    skipped: int
    left: int
    simulated: bool = True


def simulate(run: Run, voter: Voter, choice: str, *, limit: int | None, seed: int) -> Simulated:
    """Vote on the pairs that are pending for a voter, as pretend votes.

    Raises VotingClosed where people have voted, or nobody may vote any more.
    """
    insist_on_open(run.queue_id, voter.pk, simulated=True)
    refuse_after_people(run.queue)
    pending = open_to(voter, run.queue)
    most = MOST_VOTES if limit is None else min(limit, MOST_VOTES)
    votes = [
        _vote(
            ballot_for(voter, run.queue, item),
            drawn_choice(choice, run.queue.ballot, seed, item.position),
        )
        for item in pending.only("position", "b").order_by("position")[:most]
    ]
    if votes:
        make_simulated(run.queue)
    batches = (votes[start : start + BATCH] for start in range(0, len(votes), BATCH))
    voted = sum(cast_simulated_votes(run.queue, batch) for batch in batches)
    return Simulated(voted, len(votes) - voted, pending.count())


def _vote(ballot: Ballot, choice: str) -> tuple[Ballot, VoteAnswer]:
    """Return what a choice comes to with a ballot: of a single item its value and labels too."""
    criteria = options_of(ballot).criteria
    grade = str(float(choice == "pass"))
    posted = {
        f"criterion.{criterion.name}": grade if criterion.graded else choice
        for criterion in criteria
    }
    return ballot, ballot.answer({"choice": choice, "value": grade} | posted, left="")


def drawn_choice(choice: str, ballot: Sequence[str], seed: int, position: int) -> str:
    """Return the choice itself or, for `auto`, one drawn evenly for this pair and this seed."""
    if choice != AUTO:
        return choice
    return Random(f"{seed}:{position}").choice(ballot)  # noqa: S311  a draw that can be repeated

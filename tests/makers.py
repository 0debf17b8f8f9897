"""Rows for tests, made by plain functions: a run that is ready for votes, voters, votes, keys."""

from datetime import timedelta
from hashlib import sha256
from io import BytesIO

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from PIL import Image

from judge_eval.judging.verdicts import record_changed, verdicts_entry
from judge_eval.ledger.objects import record_objects
from judge_eval.models import Board, Judge, JudgeRating, Run, Verdict
from voting.access.keys import create_key
from voting.ballot.assignment import ballot_for
from voting.ballot.services import cast_vote, skip
from voting.items.order import fresh_turn
from voting.ledger import chain, ledger
from voting.ledger.bulk_sql import insert_many
from voting.models import (
    Entry,
    Exposure,
    Inference,
    Invite,
    Item,
    Member,
    Picture,
    Project,
    Queue,
    Voter,
    VoterPrompt,
    prompt_key,
)
from voting.people.voters import remember
from voting.pictures.store import store

ALL_CHOICES = ("A", "B", "tie", "both_bad")


def make_project(name="Project"):
    return Project.objects.create(name=name)


def make_queue(project=None, **fields):
    project = project or make_project()
    fields.setdefault("name", "Queue")
    fields.setdefault("ballot", list(ALL_CHOICES))
    rubric = fields.pop("rubric", None) or make_rubric(project)
    return Queue.objects.create(project=project, rubric=rubric, **fields)


def make_rubric(project, text="Which answer helps more?"):
    version = VoterPrompt.objects.filter(project=project, name="rubric").count() + 1
    return VoterPrompt.objects.create(project=project, text=text, version=version)


def make_inference(project, output="An answer", generator="generator", **fields):
    fields.setdefault("kind", "text")
    fields.setdefault("prompt", "A question")
    return Inference.objects.create(project=project, output=output, generator=generator, **fields)


def make_passes(run, said, *, at=None, **fields):
    """Seal votes that pass or flag outputs, in a queue of their own: (output, value in [0, 1])."""
    queue = make_queue(run.queue.project, kind="pass_flag", ballot=["pass", "flag"])
    items = {output: make_item(queue, output) for output, _ in said}
    rows = [
        {
            "queue": queue,
            "voter": make_voter(run),
            "item": items[output],
            "choice": "pass" if value >= 0.5 else "flag",
            "value": round(value * 1_000_000),
            "rubric": queue.rubric,
            "at": at or timezone.now(),
            **fields,
        }
        for output, value in said
    ]
    make_many_entries(run, "vote", rows)
    seal_all(run.queue.project)


def make_item(queue, output="An answer", *, prompt="A question", is_open=True, **fields):
    """Return an item of one output, open for voting."""
    if isinstance(output, str):
        output = make_inference(queue.project, output, prompt=prompt)
    key = prompt_key(prompt)
    return Item.objects.create(
        queue=queue,
        position=queue.items.count(),
        prompt_key=key,
        turn=fresh_turn(queue.pk, key),
        a=output,
        votes_wanted=queue.votes_per_item,
        opened_at=timezone.now() if is_open else None,
        **fields,
    )


def make_run(
    project=None,
    *,
    pairs=1,
    judges=2,
    says=None,
    names=None,
    votes_wanted=1,
    shared=False,
    baselines=None,
    **queue_fields,
):
    """Return a run whose pairs are open and whose verdicts are in the ledger, sealed.

    `says` is, for each pair, what each judge says; None is a failed verdict. Not given, the
    judges say A and B in turn. `baselines` names those that are; not given, all are.
    """
    queue = make_queue(project, **queue_fields)
    run = Run.objects.create(
        queue=queue, name="A run of pairs", state=Run.State.VOTING, is_shared=shared
    )
    Board.objects.bulk_create([Board(run=run)])
    says = says or [[("A", "B")[n % 2] for n in range(judges)] for _ in range(pairs)]
    make_judges(run, names or [f"judge-{n}" for n in range(len(says[0]))], baselines=baselines)
    comparisons = make_items(queue, len(says), votes_wanted=votes_wanted)
    _make_verdicts(run, dict(zip(comparisons, says, strict=True)))
    seal_all(queue.project)
    return run


def make_single_run(
    says=None,
    *,
    outputs=None,
    names=None,
    kind="pass_flag",
    ballot=("pass", "flag"),
    shared=False,
    **queue_fields,
):
    """Return a run of single items that are open: `says` is, for each, what each judge says.

    `outputs` are theirs; with them alone no judge is asked.
    """
    if outputs is None:
        outputs = [f"Answer {n}" for n in range(len(says))]
    queue = make_queue(kind=kind, ballot=list(ballot), **queue_fields)
    run = Run.objects.create(queue=queue, name="A run of items", state="voting", is_shared=shared)
    Board.objects.bulk_create([Board(run=run)])
    items = [make_item(queue, out, prompt=f"Question {n}") for n, out in enumerate(outputs)]
    if says:
        make_judges(run, names or [f"judge-{n}" for n in range(len(says[0]))], baselines=())
        _make_verdicts(run, dict(zip(items, says, strict=True)))
    seal_all(queue.project)
    return run


def make_judges(run, names, *, first=0, baselines=None):
    judges = Judge.objects.bulk_create(
        Judge(
            run=run,
            position=position,
            name=name,
            provider=Judge.BASELINE if baselines is None or name in baselines else "default",
            fingerprint=sha256(name.encode()).hexdigest(),
        )
        for position, name in enumerate(names, start=first)
    )
    JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in judges)
    return judges


def make_items(queue, number, *, votes_wanted=1, opened=True):
    outputs = [
        Inference(
            project=queue.project,
            prompt=f"Question {n // 2}",
            output=f"Answer {n}",
            kind="text",
            generator=f"generator-{n % 2}",
        )
        for n in range(2 * number)
    ]
    _insert(outputs)
    return _insert(
        Item(
            queue=queue,
            position=n,
            external_id="",
            prompt_key=outputs[2 * n].prompt,
            turn=fresh_turn(queue.pk, outputs[2 * n].prompt),
            a=outputs[2 * n],
            b=outputs[2 * n + 1],
            votes_wanted=votes_wanted,
            opened_at=timezone.now() if opened else None,
        )
        for n in range(number)
    )


def _insert(rows):
    """Insert rows that have their keys, and return them as those that were read: it is cheap."""
    rows = list(rows)
    insert_many(rows)
    for row in rows:
        row._state.adding, row._state.db = False, "default"
    return rows


def _make_verdicts(run, said):
    judges = judges_of(run)
    rows = {
        item: [
            make_verdict(judge, item, winner) for judge, winner in zip(judges, winners, strict=True)
        ]
        for item, winners in said.items()
    }
    insert_many([verdict for verdicts in rows.values() for verdict in verdicts])
    Entry.objects.bulk_create(verdicts_entry(pair, verdicts) for pair, verdicts in rows.items())


def make_verdict(judge, item, winner):
    """Return a verdict that is not saved yet; no winner is a failure."""
    if winner is None:
        return Verdict(judge=judge, item=item, state="failed", error="no answer came")
    return Verdict(
        judge=judge,
        item=item,
        state="done",
        winner=winner,
        feedback=f"{judge.name} has its reasons.",
    )


def change_verdicts(item, winners):
    """Let the judges say something else now, as a new entry of the ledger."""
    verdicts = list(item.verdicts.select_related("judge").order_by("judge__position"))
    for verdict, winner in zip(verdicts, winners, strict=True):
        verdict.winner = winner or ""
        verdict.state = "done" if winner else "failed"
        verdict.error = "" if winner else "no answer came"
        verdict.save()
    ledger.record(verdicts_entry(item, verdicts))


def judges_of(run):
    return list(Judge.objects.filter(run=run).order_by("position"))


def restate(run):
    """Write what a test has changed in rows into the ledger, as services do that change them."""
    record_objects(run)
    record_changed(run.queue.items.values_list("pk", flat=True))
    seal_all(run.queue.project)


def forget_hashes(project):
    """Make a sealed ledger one of before it covered rows, with a chain of its own."""
    Entry.objects.filter(project=project, kind="object").delete()
    head, entries = chain.genesis(project.pk), Entry.objects.filter(project=project).order_by("seq")
    for seq, entry in enumerate(entries, start=1):
        entry.seq = seq
        if entry.kind == "verdicts":
            said = [
                {k: v for k, v in it.items() if k != "sha256"} for it in entry.payload["verdicts"]
            ]
            without = {k: v for k, v in entry.payload.items() if k not in ("item", "texts")}
            entry.payload = without | {"verdicts": said}
        entry.hash = head = chain.extend(head, ledger.content(entry))
        entry.save()
    Project.objects.filter(pk=project.pk).update(head_hash=head, head_seq=entries.count())
    project.refresh_from_db()
    ledger.replay(project, write=True)


def pairs_of(run):
    pairs = Item.objects.filter(queue=run.queue_id).order_by("position")
    return list(pairs.select_related("queue"))


def elos_of(run):
    ratings = JudgeRating.objects.filter(judge__run=run).order_by("judge__position")
    return list(ratings.values_list("elo", flat=True))


def counts_of(run):
    """Return (agree, disagree, answered, asked) of each judge."""
    ratings = JudgeRating.objects.filter(judge__run=run).order_by("judge__position")
    return list(ratings.values_list("agree", "disagree", "answered", "requested"))


def make_voter(run, **fields):
    return Voter.objects.create(project=run.queue.project, **fields)


def make_invite(run, **fields):
    return Invite.objects.create(queue=run.queue, **fields)


def make_vote(voter, item, choice="A", *, at=None, further=None):
    """Cast a vote with a ballot of its own; `at` moves it to another time before it is sealed."""
    vote = cast_vote(ballot_for(voter, item.queue, item), choice, details=further)
    if at is not None:
        Entry.objects.filter(uid=vote.uid, seq__isnull=True).update(at=at)
    return vote


def make_skip(voter, item):
    """Skip a pair with a ballot of its own, as each showing of it has one."""
    pair = Item.objects.select_related("queue").get(pk=getattr(item, "pk", item))
    ballot = ballot_for(voter, pair.queue, pair)
    skip(ballot)
    return ballot


def make_many_votes(run, votes):
    """Write votes, given as (voter, comparison, choice), in one go."""
    return make_many_entries(
        run,
        "vote",
        [
            {
                "voter": voter,
                "item": item,
                "choice": choice,
                "left_side": "A",
                "rubric": run.queue.rubric,
            }
            for voter, item, choice in votes
        ],
    )


def make_many_entries(run, kind, rows):
    # What the database fills in by itself has to be said where rows are made in bulk.
    words = ("choice", "left_side", "category", "comment", "salt", "comment_sha256")
    blank = dict.fromkeys(words, "")
    blank |= dict.fromkeys(("unblinded", "simulated", "retracted"), False)
    common = {"project": run.queue.project, "queue": run.queue, "kind": kind, "at": timezone.now()}
    return Entry.objects.bulk_create(Entry(**(blank | common | row)) for row in rows)


def make_exposure(voter, item, *, ago=timedelta(seconds=1)):
    return Exposure.objects.create(voter=voter, item=item, seen_at=timezone.now() - ago)


def make_picture(colour="white", *, inferences=()):
    """Return a rendered picture whose bytes are stored; the inferences become drawings of it."""
    buffer = BytesIO()
    Image.new("RGB", (8, 8), colour).save(buffer, "PNG")
    address = store(buffer.getvalue())
    picture, _ = Picture.objects.get_or_create(
        source_sha256=sha256(colour.encode()).hexdigest(),
        defaults={"state": "done", "png_sha256": address, "width": 8, "height": 8},
    )
    pks = [inference.pk for inference in inferences]
    Inference.objects.filter(pk__in=pks).update(
        kind="svg",
        picture=picture,
        output=f'<svg xmlns="http://www.w3.org/2000/svg"><!--{colour}--></svg>',
    )
    return picture


def make_key(*scopes, project=None, **fields):
    """Return a new key and its text."""
    return create_key("a script", scopes, project, **fields)


def entry_of(vote):
    """Return the ledger's row of a recorded vote."""
    return Entry.objects.get(uid=vote.uid)


def seal_all(project, *, later=timedelta(seconds=1)):
    """Seal whatever there is, however young; return how many."""
    total = sealed = ledger.seal(project.pk, now=timezone.now() + later)
    while sealed == settings.SEAL_BATCH:
        total += (sealed := ledger.seal(project.pk, now=timezone.now() + later))
    project.refresh_from_db()
    return total


def voter_client(voter, **options):
    """A browser that this voter votes in."""
    client = Client(**options)
    client.cookies.update(remember(HttpResponse(), voter).cookies)
    return client


def user_client(name="owner", **options):
    """A browser in which somebody is logged in who may do everything, in every project."""
    user, _ = User.objects.update_or_create(username=name, defaults={"is_superuser": True})
    return _logged_in(user, options)


def member_client(project, role, *, name="", **options):
    """A browser in which a member of a project is logged in; without a role, a stranger is."""
    user, _ = User.objects.get_or_create(username=name or role or "stranger")
    if role:
        Member.objects.update_or_create(project=project, user=user, defaults={"role": role})
    return _logged_in(user, options)


def _logged_in(user, options):
    client = Client(**options)
    client.force_login(user)
    return client


def key_client(token, **options):
    return Client(headers={"Authorization": f"Bearer {token}"}, **options)

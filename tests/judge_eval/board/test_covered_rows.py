"""Every stored value that a page shows is covered by the ledger, or is named as not covered."""

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import models, transaction

from judge_eval.board.model import RunFindings
from judge_eval.ledger.objects import COVERED, PRIVATE, record_objects
from judge_eval.models import Judge, JudgeRating, Run, Verdict
from reports.report.not_covered import NOT_COVERED
from tests.helpers.imports import assert_whole
from tests.helpers.run_findings import compute
from tests.makers import (
    forget_hashes,
    judges_of,
    make_inference,
    make_item,
    make_queue,
    make_run,
    make_verdict,
    make_vote,
    make_voter,
    pairs_of,
    restate,
    seal_all,
)
from voting.curating.services import decide
from voting.ledger import ledger
from voting.models import Entry, Inference, Item, Project, Queue, VoterPrompt
from voting.people.voters import erase

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
DOCS = Path(__file__).parents[3] / "docs/sharing.md"
MODELS = {model.__name__: model for model in (Run, Queue, VoterPrompt, Judge, Item, Inference)}
MODELS["Verdict"] = Verdict
# Projections make these of the entries, and compare them.
COUNTED = {
    *("votes", "votes_a", "votes_b", "votes_tie", "votes_both_bad", "votes_sided", "votes_left"),
    *("votes_pass", "votes_flag", "value_sum", "value_squares", "extra_votes", "differing"),
    *("answers_a", "answers_b", "answers_tie", "answers_both_bad", "answers_wrong"),
    *("answers_pass", "answers_flag", "disagreement"),
}
COUNTED = {f"Item.{name}" for name in COUNTED} | {"Queue.done"}
COUNTED |= {"Item.is_held_out", "Queue.is_tuning", "Queue.held_out_from"}
# As the metadata of its outputs has it, which is covered.
COUNTED |= {"Item.lacks_output"}


COVERED_OTHERWISE = {
    *("Judge.is_tuned", "Judge.description", "Run.question"),
    *("Run.config", "Item.unusable", "Verdict.cost_nano", "Verdict.unpriced"),
    # What an entry is about.
    *("Run.queue", "Queue.project", "Queue.rubric", "VoterPrompt.project", "Judge.run"),
    *("Item.queue", "Item.a", "Item.b", "Inference.project", "Verdict.judge", "Verdict.item"),
    # With what the others are hashed.
    *("Run.salt", "Run.private_salt"),
}
# By the sentences that name them.
FIELDS_NOT_COVERED = {
    "the state of a run, its note, its budget and what it has spent": (
        *("Run.state", "Run.note", "Run.budget_nano", "Run.spent_nano", "Run.reserved_nano"),
        "Run.anchors_a_day",
    ),
    "whether a run is shared, archived or open for votes, and so which runs a report leaves out "
    "and how many votes are awaited": (
        *("Run.is_shared", "Run.archived_at", "Queue.is_open", "Queue.more_may_come"),
        "Queue.deleted_at",
    ),
    "the name of a run on its voting page": ("Queue.name",),
    "the version number of a rubric and when it was written": (
        *("VoterPrompt.version", "VoterPrompt.created_at"),
    ),
    "when an item opened, and the order in which items are handed out": (
        *("Item.opened_at", "Item.turn", "Queue.created_at"),
    ),
    "when a verdict was given": ("Verdict.decided_at",),
    "how many votes an item wants now": ("Item.votes_wanted",),
    "pictures that were rendered from outputs": ("Inference.picture",),
}


def named(fields):
    return [f"{model}.{name}" for model, names in fields.items() for name in names]


def test_every_field_is_covered_or_named_as_not_covered():
    listed = [*named(COVERED), *named(PRIVATE), *COVERED_OTHERWISE, *COUNTED]
    listed += [field for fields in FIELDS_NOT_COVERED.values() for field in fields]
    assert FIELDS_NOT_COVERED.keys() <= {each.subject for each in NOT_COVERED}
    fields = {
        f"{name}.{field.name}"
        for name, model in MODELS.items()
        for field in model._meta.concrete_fields
        if not field.primary_key
    }
    assert sorted(listed) == sorted(fields)


def test_the_documentation_has_the_list_of_what_is_not_covered():
    text = DOCS.read_text(encoding="utf-8").partition("Not covered, as `verify` says each time:")[2]
    listed = text.strip().partition("\n\n")[0]
    assert listed == "\n".join(f"- {each.subject}" for each in NOT_COVERED)


@pytest.fixture(scope="module")
def made_once(module_db):
    """A run with everything that may stand in a row, and all of it in the ledger."""
    run = make_run(pairs=3, judges=2)
    about = {"latency_ms": 12.5, "score_a": 3.25, "score_b": 1.0, "picks": ["A", "A"]}
    Verdict.objects.filter(judge__run=run).update(first_picks=2, labels={"tone": 0.5}, **about)
    Inference.objects.update(tags=["easy"], metadata={"grade": 3, "x": 1e-7, "y": 1e22})
    Judge.objects.update(recipe={"type": "jury", "options": {"temperature": 0.3}})
    Run.objects.update(config={"name": "R", "judging": {"temperature": 0.0}})
    run.refresh_from_db()
    restate(run)
    make_vote(make_voter(run), pairs_of(run)[0], "A")
    seal_all(run.queue.project)
    assert ledger.replay(run.queue.project, write=False) == []
    return run


@pytest.fixture
def run(made_once):
    return deepcopy(made_once)


# What Django or the product refuses to read otherwise.
VALID = {"Judge.fingerprint": "0" * 64, "Queue.kind": "rating", "Queue.options": {"graded": True}}


def another(field, value):
    if isinstance(field, models.JSONField):
        return [value, "changed"] if isinstance(value, list) else {"changed": value}
    if isinstance(field, models.BooleanField):
        return not value
    if isinstance(field, models.DateTimeField):
        return (value or Project.objects.get().created_at) + timedelta(microseconds=1)
    if isinstance(field, models.FloatField):
        return (value or 0) + 0.001
    if isinstance(field, models.IntegerField):
        return (value or 0) + 1_000
    return "x" if field.choices or field.max_length == 4 else f"{value}x"


CHANGED = [*named(COVERED), *named(PRIVATE), "Run.config", "Item.unusable"]
CHANGED += ["Verdict.cost_nano", "Verdict.unpriced", "Run.question", "Judge.description"]


@pytest.mark.parametrize("path", CHANGED)
def test_any_value_that_is_changed_in_the_database_is_found(run, path):
    name, field = path.split(".")
    model = MODELS[name]
    row = model._base_manager.order_by("-pk").first()
    new = VALID.get(path) or another(model._meta.get_field(field), getattr(row, field))
    changes = {field: new}
    if path == "Verdict.state":
        changes |= {"state": "failed", "winner": "", "error": "no", "score_a": None}
        changes |= {"score_b": None}
    if path == "Verdict.error":
        changes |= {"state": "failed", "winner": "", "score_a": None, "score_b": None}
    model._base_manager.filter(pk=row.pk).update(**changes)
    found = ledger.replay(run.queue.project, write=False)
    assert [each for each in found if not each.is_correctable]


EXCHANGED = {
    "verdicts turned round": lambda run: [
        Verdict.objects.filter(pk=verdict.pk).update(winner="AB"[verdict.winner == "A"])
        for verdict in Verdict.objects.filter(judge__run=run)
    ],
    "a verdict removed": lambda run: Verdict.objects.filter(judge__run=run).last().delete(),
    "a verdict that is still to come": lambda run: Verdict.objects.filter(
        pk=Verdict.objects.last().pk
    ).update(state="waiting", winner="", score_a=None, score_b=None),
    "outputs exchanged": lambda run: Item.objects.filter(pk=pairs_of(run)[0].pk).update(
        a=pairs_of(run)[1].a
    ),
    "another rubric": lambda run: Queue.objects.filter(pk=run.queue_id).update(
        rubric=VoterPrompt.objects.create(
            project=run.queue.project, name="other", text="Which is longer?"
        )
    ),
    "the name of the project": lambda run: Project.objects.update(name="Another"),
    "an open item that is in no entry": lambda run: make_item(run.queue),
    "an item closed": lambda run: Item.objects.filter(pk=pairs_of(run)[0].pk).update(
        opened_at=None
    ),
    "a judge removed": lambda run: (
        Verdict.objects.filter(judge__position=1).delete(),
        JudgeRating.objects.filter(judge__position=1).delete(),
        Judge.objects.filter(run=run, position=1).delete(),
    ),
    "a run added": lambda run: Run.objects.create(
        queue=make_queue(run.queue.project), name="Another", state="voting"
    ),
    "a judge added": lambda run: Judge.objects.create(
        run=run, position=2, name="new", provider="default", fingerprint="5f" * 32
    ),
}


@pytest.mark.parametrize("how", EXCHANGED)
def test_rows_that_are_exchanged_added_or_removed_are_found(run, how, capsys):
    EXCHANGED[how](run)
    assert ledger.replay(run.queue.project, write=False)
    with pytest.raises(CommandError, match="not what the ledger says"):
        call_command("replay", "--check")
    said = capsys.readouterr().out
    assert "not as the last ledger entry about it has it" in said or "no ledger entry" in said
    with pytest.raises(CommandError):
        call_command("replay")
    assert "cannot be corrected" in capsys.readouterr().out


OF_VOTES = {
    "a choice": {"choice": "B"},
    "a comment": {"comment": "It is longer."},
    "answers": {"labels": {"why": "It is longer."}},
    "when it was cast": {"at": datetime(2026, 1, 1, tzinfo=UTC)},
}


@pytest.mark.parametrize("what", OF_VOTES)
def test_a_vote_that_is_changed_in_the_database_is_found(run, what):
    call_command("replay", "--check", "--chain")
    text, labels = ledger.hidden("It is right.", {"why": "It is right."}), {"why": "It is right."}
    vote = make_vote(make_voter(run), pairs_of(run)[1], "A")
    Entry.objects.filter(uid=vote.uid).update(comment="It is right.", labels=labels, **text)
    seal_all(run.queue.project)
    call_command("replay", "--check", "--chain")
    Entry.objects.filter(uid=vote.uid).update(**OF_VOTES[what])
    with pytest.raises(CommandError, match="not what the ledger says"):
        call_command("replay", "--check", "--chain")


@pytest.mark.parametrize("emptied", [{"comment": ""}, {"labels": None}, {"labels": {}}])
def test_what_a_vote_said_is_gone_only_with_an_erasure(run, emptied):
    said = {"comment": "It is right.", "labels": {"why": "It is right."}}
    one, other = (make_vote(make_voter(run), item, "A") for item in pairs_of(run)[1:])
    for vote in (one, other):
        hidden = ledger.hidden(said["comment"], said["labels"])
        Entry.objects.filter(uid=vote.uid).update(**said, **hidden)
    seal_all(run.queue.project)
    voter = Entry.objects.get(uid=one.uid).voter
    erase(voter)
    seal_all(run.queue.project)
    assert_whole(run.queue.project)
    Entry.objects.filter(uid=other.uid).update(**emptied)
    [found] = ledger.replay(run.queue.project, write=False)
    assert str(found).startswith("the comment" if "comment" in emptied else "the answers")


def test_why_a_curator_decided_is_gone_only_with_an_erasure(run):
    curator = make_voter(run)
    decide(pairs_of(run)[0].pk, "note", curator, "It is broken.", after=None)
    seal_all(run.queue.project)
    with transaction.atomic():
        Entry.objects.filter(kind="decision").update(comment="")
        assert ledger.replay(run.queue.project, write=False)
        transaction.set_rollback(True)
    erase(curator)
    seal_all(run.queue.project)
    assert_whole(run.queue.project)


def test_what_the_ledger_does_not_cover_yet_is_said(capsys):
    run = make_run(pairs=3, judges=2)
    forget_hashes(run.queue.project)
    call_command("replay", "--check")
    said = capsys.readouterr().out
    assert "settings and names of judges of 1 run, made before the ledger covered them" in said
    assert "outputs of 3 items and details of verdicts on them, made before" in said
    # The winner stood in entries from the first.
    Verdict.objects.filter(judge__run=run, winner="A").update(winner="B")
    with pytest.raises(CommandError, match="3 values"):
        call_command("replay", "--check")


def test_what_is_not_open_is_named_and_costs_nothing(run, capsys):
    item = make_item(run.queue, make_inference(run.queue.project), is_open=False)
    free = [make_verdict(judge, item, "A") for judge in judges_of(run)]
    Verdict.objects.bulk_create(free)
    Verdict.objects.filter(judge__run=run).exclude(item=item).update(cost_nano=9_000)
    restate(run)
    call_command("replay", "--check")
    said = capsys.readouterr().out
    assert "not compared: 1 item without any entry, not open and in no figure" in said
    assert "not compared: 2 verdicts on them, in no figure either" in said
    Verdict.objects.filter(judge__run=run, item=item).update(cost_nano=1_000, latency_ms=1.0)
    judge = RunFindings.read(compute(run).data).judges[0]
    assert judge.cost_usd == pytest.approx(3 * 9e-6)
    assert judge.cost_per_verdict_usd == pytest.approx(9e-6)
    assert judge.seconds_per_verdict == pytest.approx(0.0125)


def test_nothing_is_written_twice(run):
    before = Entry.objects.count()
    record_objects(run)
    restate(run)
    assert Entry.objects.count() == before


def test_another_run_of_the_project_is_compared_with_its_own_entries(run):
    with transaction.atomic():
        other = make_run(run.queue.project, pairs=2)
        record_objects(other)
        seal_all(run.queue.project)
    assert ledger.replay(run.queue.project, write=False) == []

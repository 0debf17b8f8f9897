"""What the hash of an entry covers, and what it must never hold."""

import json

import pytest

from tests.makers import (
    change_verdicts,
    entry_of,
    judges_of,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.ballot.services import flag, undo_last_vote
from voting.ledger import chain, ledger
from voting.models import Entry, Voter
from voting.people.voters import erase

pytestmark = pytest.mark.django_db


def exported(run):
    return [json.loads(line) for line in ledger.export(run.queue.project)]


def entries_of(run):
    return [record["entry"] for record in exported(run)[1:]]


def test_a_vote_says_all_that_was_voted():
    run = make_run()
    voter, pair = make_voter(run, reputation=1_500_000), pairs_of(run)[0]
    vote = entry_of(make_vote(voter, pair, "both_bad"))
    seal_all(run.queue.project)
    vote.refresh_from_db()
    assert entries_of(run)[1] == {
        "schema": 1,
        "seq": 2,
        "kind": "vote",
        "id": str(vote.uid),
        "at": chain.timestamp(vote.at),
        "queue": str(run.queue_id),
        "comparison": str(pair.pk),
        "voter": voter.pseudonym,
        "rubric": "rubric v1",
        "elapsed_ms": None,
        "reputation": 1_500_000,
        "unblinded": False,
        "simulated": False,
        "comment": None,
        "choice": "both_bad",
        "left": vote.left_side,
    }


def test_verdicts_say_who_said_what_in_the_order_of_the_judges():
    run = make_run(says=[["A", None]])
    [entry] = entries_of(run)
    first, second = judges_of(run)
    assert entry["kind"] == "verdicts"
    assert entry["payload"]["run"] == str(run.pk)
    assert [
        (said["judge"], said["position"], said["fingerprint"], said["winner"])
        for said in entry["payload"]["verdicts"]
    ] == [(str(first.pk), 0, first.fingerprint, "A"), (str(second.pk), 1, second.fingerprint, None)]


def test_a_retraction_names_its_vote():
    run = make_run()
    voter = make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0])
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    retraction = entries_of(run)[-1]
    assert (retraction["kind"], retraction["target"]) == ("retraction", str(vote.uid))
    assert retraction["voter"] == voter.pseudonym


def test_the_reputation_is_that_of_the_moment_of_sealing():
    run = make_run(pairs=2)
    voter = make_voter(run)
    votes = []
    for pair, reputation in zip(pairs_of(run), (1_000_000, 2_000_000), strict=True):
        votes.append(make_vote(voter, pair))
        Voter.objects.filter(pk=voter.pk).update(reputation=reputation)
        seal_all(run.queue.project)
    assert [entry_of(vote).reputation for vote in votes] == [1_000_000, 2_000_000]
    assert chain.verify(ledger.export(run.queue.project), run.queue.project.ledger_head)


def make_full_ledger():
    """A ledger of everything a person could leave in it."""
    run = make_run(pairs=3, names=["judge-x", "judge-y"])
    voter = make_voter(run, name="Ada Lovelace")
    pairs = pairs_of(run)
    for pair in pairs:
        make_vote(voter, pair)
    flag(voter, pairs[0].pk, "other", "I know who wrote this")
    undo_last_vote(voter, run.queue)
    change_verdicts(pairs[0], ["B", None])
    seal_all(run.queue.project)
    return run, voter


def test_no_name_no_free_text_and_no_row_of_the_voter_is_in_the_ledger():
    run, voter = make_full_ledger()
    text = "\n".join(ledger.export(run.queue.project))
    for secret in ("Ada", "Lovelace", "I know who", str(voter.pk), voter.pk.hex, "has its reasons"):
        assert secret not in text
    assert voter.pseudonym in text


def test_pseudonyms_are_random_and_differ_between_projects():
    client = user_client()
    runs = [make_run(), make_run()]
    for run in runs:
        client.post(f"/runs/{run.pk}/vote/me")
    one, other = Voter.objects.order_by("created_at")
    assert one.user == other.user
    assert one.pseudonym != other.pseudonym


def test_an_erased_person_leaves_a_chain_that_verifies():
    run, voter = make_full_ledger()
    project = run.queue.project
    before = list(ledger.export(project))
    erase(voter)
    seal_all(project)
    voter.refresh_from_db()
    assert (voter.name, voter.user, voter.invite, voter.api_key) == ("", None, None, None)
    assert list(ledger.export(project))[: len(before)] == before
    assert entries_of(run)[-1]["kind"] == "erasure"
    assert chain.verify(ledger.export(project), project.ledger_head)
    assert ledger.replay(project, write=False) == []


def test_a_comment_stands_as_a_salted_hash_that_outlives_its_text():
    run = make_run()
    voter = make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0])
    Entry.objects.filter(uid=vote.uid).update(
        comment="Ada was here",
        salt="5a17",
        comment_sha256=chain.salted_hash("5a17", "Ada was here"),
    )
    project = run.queue.project
    seal_all(project)
    assert entries_of(run)[1]["comment"] == chain.salted_hash("5a17", "Ada was here")
    erase(voter)
    assert (entry_of(vote).comment, entry_of(vote).salt) == ("", "")
    assert chain.verify(ledger.export(project), project.ledger_head).entries == 2


def test_a_change_of_any_column_that_the_hash_covers_is_found():
    run, _ = make_full_ledger()
    project = run.queue.project
    changes = {
        "vote": {"choice": "tie", "left_side": "", "elapsed_ms": 1, "unblinded": True},
        "retraction": {"target": Entry.objects.filter(kind="vote").first()},
        "verdicts": {"payload": {"verdicts": []}},
    }
    for kind, columns in changes.items():
        row = Entry.objects.filter(project=project, kind=kind).order_by("-seq").first()
        for column, value in columns.items():
            kept = getattr(row, column)
            Entry.objects.filter(pk=row.pk).update(**{column: value})
            with pytest.raises(chain.ChainBroken):
                chain.verify(ledger.export(project), project.ledger_head)
            Entry.objects.filter(pk=row.pk).update(**{column: kept})
    assert chain.verify(ledger.export(project), project.ledger_head)

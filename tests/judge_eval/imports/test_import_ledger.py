"""Entries that are appended: in the order given, sealed as they come, with what was known then."""

from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.utils import timezone

from tests.helpers.imports import assert_whole
from tests.helpers.reference import assert_as_expected
from tests.makers import elos_of, make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ledger import chain, ledger
from voting.ledger.bulk_sql import LedgerConflict
from voting.models import Entry, Item, Voter
from voting.people.voters import erase

pytestmark = pytest.mark.django_db

NOON = timezone.now().replace(microsecond=0) - timedelta(days=1)


def new_vote(run, voter, pair, choice="A", *, minutes=0, **fields):
    return Entry(
        project=run.queue.project,
        kind="vote",
        at=NOON + timedelta(minutes=minutes),
        queue=run.queue,
        item=pair,
        voter=voter,
        choice=choice,
        rubric=run.queue.rubric,
        reputation=1_000_000,
        **fields,
    )


def votes_counted():
    return list(Item.objects.order_by("position").values_list("votes", flat=True))


def retraction_of(vote):
    return Entry(
        project=vote.project,
        kind="retraction",
        at=vote.at + timedelta(seconds=5),
        queue=vote.queue,
        item=vote.item,
        voter=vote.voter,
        target=vote,
    )


def test_the_order_is_the_one_given_whatever_the_times():
    run = make_run(pairs=3)
    voter, pairs = make_voter(run), pairs_of(run)
    votes = [new_vote(run, voter, pair, minutes=-n) for n, pair in enumerate(pairs)]
    ledger.append(run.queue.project_id, votes)
    stored = Entry.objects.filter(kind="vote").order_by("seq")
    assert [(v.seq, v.item_id, v.at) for v in stored] == [
        (4 + n, pair.pk, NOON - timedelta(minutes=n)) for n, pair in enumerate(pairs)
    ]
    assert_whole(run.queue.project)
    assert_as_expected(run)


def test_nothing_is_appended_of_nothing():
    run = make_run()
    before = run.queue.project.ledger_head
    ledger.append(run.queue.project_id, [])
    run.queue.project.refresh_from_db()
    assert run.queue.project.ledger_head == before


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_it_goes_by_batches(settings, batch):
    settings.SEAL_BATCH = batch
    run = make_run(pairs=7)
    voter = make_voter(run)
    votes = [new_vote(run, voter, pair, "AB"[n % 2]) for n, pair in enumerate(pairs_of(run))]
    ledger.append(run.queue.project_id, votes)
    assert [vote.seq for vote in votes] == list(range(8, 15))
    assert_whole(run.queue.project)
    assert_as_expected(run)


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_a_vote_and_what_takes_it_back_may_come_together(settings, batch):
    settings.SEAL_BATCH = batch
    run = make_run(pairs=2)
    voter, pairs = make_voter(run), pairs_of(run)
    first, kept = new_vote(run, voter, pairs[0]), new_vote(run, voter, pairs[1], "B")
    second = new_vote(run, voter, pairs[0], "B", minutes=1)
    ledger.append(run.queue.project_id, [first, kept, retraction_of(first), second])
    first.refresh_from_db()
    assert (first.retracted, first.retracted_seq) == (True, 5)
    assert votes_counted() == [1, 1]
    assert_whole(run.queue.project)
    assert_as_expected(run)


def test_a_vote_that_was_stored_before_may_be_taken_back():
    run = make_run(pairs=2)
    voter, [pair, other] = make_voter(run), pairs_of(run)
    make_vote(voter, pair)
    make_vote(voter, other, "B")
    seal_all(run.queue.project)
    before = elos_of(run)
    stored = Entry.objects.filter(kind="vote").select_related("voter", "queue").order_by("seq")[0]
    ledger.append(run.queue.project_id, [retraction_of(stored), new_vote(run, voter, pair, "B")])
    stored.refresh_from_db()
    assert (stored.retracted, stored.retracted_seq) == (True, 5)
    assert elos_of(run) != before
    assert_whole(run.queue.project)
    assert_as_expected(run)


def test_what_was_known_of_a_vote_is_kept():
    run = make_run(pairs=3)
    voter, pairs = make_voter(run, reputation=3_000_000), pairs_of(run)
    votes = [
        new_vote(run, voter, pairs[0], unblinded=True),
        new_vote(run, voter, pairs[1], simulated=True),
        new_vote(run, voter, pairs[2]),
    ]
    ledger.append(run.queue.project_id, votes)
    stored = Entry.objects.filter(kind="vote").order_by("seq")
    assert list(stored.values_list("reputation", "unblinded", "simulated")) == [
        (1_000_000, True, False),
        (1_000_000, False, True),
        (1_000_000, False, False),
    ]
    assert votes_counted() == [
        0,
        0,
        1,
    ]
    assert_whole(run.queue.project)


def test_votes_that_are_not_sealed_yet_come_behind():
    run = make_run(pairs=2)
    project, pairs = run.queue.project, pairs_of(run)
    live = make_vote(make_voter(run), pairs[0], at=NOON - timedelta(days=1))
    ledger.append(project.pk, [new_vote(run, make_voter(run), pairs[1])])
    assert Entry.objects.get(uid=live.uid).seq is None
    seal_all(project)
    assert Entry.objects.get(uid=live.uid).seq == 4
    assert_whole(project)
    assert_as_expected(run)


def test_a_second_vote_of_one_voter_is_refused_and_nothing_stays():
    run = make_run(pairs=2)
    project, voter, pairs = run.queue.project, make_voter(run), pairs_of(run)
    make_vote(voter, pairs[0])
    seal_all(project)
    both = [new_vote(run, voter, pairs[1]), new_vote(run, voter, pairs[0])]
    with pytest.raises(IntegrityError):
        ledger.append(project.pk, both)
    assert votes_counted() == [1, 0]
    assert_whole(project)


def test_a_vote_cannot_be_taken_back_twice():
    run = make_run()
    voter, [pair] = make_voter(run), pairs_of(run)
    vote = new_vote(run, voter, pair)
    ledger.append(run.queue.project_id, [vote, retraction_of(vote)])
    stale = Entry.objects.select_related("voter", "queue", "item").get(pk=vote.pk)
    with pytest.raises(LedgerConflict):
        ledger.append(run.queue.project_id, [retraction_of(stale)])


# --- further answers ----------------------------------------------------------------------------

LABELS = {"clear": 4, "toxic": False, "share": 0.25, "why": "it rhymes", "tags": ["a", "b"]}


def labelled(run, voter, pair, labels=LABELS):
    payload = {"labels_sha256": ledger.labels_sha256("5a17", labels)}
    return new_vote(run, voter, pair, salt="5a17", labels=labels, payload=payload)


def test_further_answers_stand_in_the_chain_as_a_salted_hash():
    run = make_run(pairs=2)
    voter, pairs = make_voter(run), pairs_of(run)
    ledger.append(
        run.queue.project_id, [labelled(run, voter, pairs[0]), new_vote(run, voter, pairs[1])]
    )
    with_answers, without = map(ledger.content, Entry.objects.filter(kind="vote").order_by("seq"))
    canonical = '{"clear":4,"share":"0.25","tags":["a","b"],"toxic":false,"why":"it rhymes"}'
    assert with_answers["labels"] == chain.salted_hash("5a17", canonical)
    # A vote without any hashes as it did before there were such answers.
    assert "labels" not in without
    assert with_answers.keys() - without.keys() == {"labels"}
    assert_whole(run.queue.project)


def test_a_changed_hash_of_answers_breaks_the_chain():
    run = make_run()
    vote = labelled(run, make_voter(run), pairs_of(run)[0])
    project = run.queue.project
    ledger.append(project.pk, [vote])
    Entry.objects.filter(pk=vote.pk).update(payload={"labels_sha256": "0" * 64})
    project.refresh_from_db()
    with pytest.raises(chain.ChainBroken):
        chain.verify(ledger.export(project), project.ledger_head)


def test_erasing_a_person_empties_the_answers_and_the_name_of_the_import():
    run = make_run()
    voter = make_voter(run, external_id="ada@example.com")
    vote = labelled(run, voter, pairs_of(run)[0])
    project = run.queue.project
    ledger.append(project.pk, [vote])
    erase(voter)
    seal_all(project)
    vote.refresh_from_db()
    assert (vote.labels, vote.salt) == (None, "")
    assert vote.payload == {"labels_sha256": ledger.labels_sha256("5a17", LABELS)}
    assert Voter.objects.get(pk=voter.pk).external_id == ""
    assert_whole(project)

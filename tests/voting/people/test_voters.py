"""Invite links and the identities behind them."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.utils import timezone

from tests.makers import make_invite, make_key, make_run, make_vote, make_voter, pairs_of
from voting.ballot.services import flag
from voting.models import Entry, Flag, Voter
from voting.people.voters import (
    InviteRefused,
    erase,
    find_invite,
    invite_token,
    join,
    refusal,
    voter_of_key,
    voter_of_user,
)

pytestmark = pytest.mark.django_db


def test_a_link_leads_to_its_invite():
    invite = make_invite(make_run())
    assert find_invite(invite_token(invite)) == invite


def test_the_link_is_no_secret_that_is_kept():
    invite = make_invite(make_run())
    kept = [str(getattr(invite, field.attname)) for field in invite._meta.concrete_fields]
    assert invite_token(invite) not in kept


@pytest.mark.parametrize("token", ["", "nonsense", "x:y", "0" * 32, f"{'0' * 32}:abc"])
def test_other_links_lead_nowhere(token):
    assert find_invite(token) is None


def test_a_signature_of_something_else_leads_nowhere():
    invite = make_invite(make_run())
    assert find_invite(signing.Signer(salt="voting.voter").sign(invite.pk.hex)) is None
    assert find_invite(signing.Signer(salt="voting.invite").sign("not a uuid")) is None


def test_a_link_of_a_deleted_invite_leads_nowhere():
    invite = make_invite(make_run())
    token = invite_token(invite)
    invite.delete()
    assert find_invite(token) is None


def test_whoever_joins_becomes_a_voter_of_the_project():
    run = make_run()
    invite = make_invite(run)
    voter = join(invite, "Ada", timezone.now())
    assert (voter.name, voter.invite, voter.project) == ("Ada", invite, run.queue.project)
    assert join(invite, "", timezone.now()).pseudonym != voter.pseudonym


def withdrawn(invite, now):
    invite.revoked_at = now


def expired(invite, now):
    invite.expires_at = now


def closed(invite, now):
    invite.queue.is_open = False
    invite.queue.save()


@pytest.mark.parametrize(
    "change, words", [(withdrawn, "withdrawn"), (expired, "expired"), (closed, "closed")]
)
def test_an_invite_that_lets_nobody_in_says_why(change, words):
    invite, now = make_invite(make_run()), timezone.now()
    assert refusal(invite, now) == ""
    change(invite, now)
    invite.save()
    assert words in refusal(invite, now)
    with pytest.raises(InviteRefused, match=words):
        join(invite, "late", now)
    assert not Voter.objects.exists()


def test_an_invite_that_expires_later_still_lets_in():
    now = timezone.now()
    invite = make_invite(make_run(), expires_at=now + timedelta(seconds=1))
    assert join(invite, "", now)


def test_a_cap_counts_voters():
    invite = make_invite(make_run(), max_voters=2)
    for _ in range(2):
        join(invite, "", timezone.now())
    with pytest.raises(InviteRefused, match="as many voters as it may"):
        join(invite, "", timezone.now())
    assert Voter.objects.count() == 2


def test_a_user_is_one_voter_per_project():
    run, other = make_run(), make_run()
    user = User.objects.create(username="ada")
    voter = voter_of_user(run.queue.project, user)
    assert voter_of_user(run.queue.project, user) == voter
    assert voter.name == "ada"
    assert voter_of_user(other.queue.project, user) != voter


def test_a_key_is_a_voter_of_its_own():
    run = make_run()
    (one, _), (other, _) = make_key("vote"), make_key("vote")
    voter = voter_of_key(run.queue.project_id, one)
    assert voter_of_key(run.queue.project_id, one) == voter
    assert voter_of_key(run.queue.project_id, other) != voter


def test_an_erased_person_cannot_be_found_again():
    run = make_run()
    voter = join(make_invite(run), "Ada", timezone.now())
    pair = pairs_of(run)[0]
    vote = make_vote(voter, pair)
    flag(voter, pair.pk, "other", "I am Ada")
    erase(voter)
    voter.refresh_from_db()
    assert (voter.name, voter.invite_id, voter.user_id, voter.api_key_id) == ("", None, None, None)
    assert voter.blocked_at is not None
    assert Flag.objects.get().comment == ""
    assert Entry.objects.get(uid=vote.uid).voter == voter


def test_erasing_one_person_leaves_the_others():
    run = make_run()
    voter, other = make_voter(run, name="Ada"), make_voter(run, name="Bob")
    flag(other, pairs_of(run)[0].pk, "other", "mine")
    erase(voter)
    other.refresh_from_db()
    assert (other.name, Flag.objects.get().comment) == ("Bob", "mine")


def test_a_personal_link_lets_in_one_voter_who_has_that_name():
    run = make_run()
    invite = make_invite(run, label="Ada", max_voters=1)
    assert join(invite, "somebody else", timezone.now()).name == "Ada"
    with pytest.raises(InviteRefused):
        join(invite, "Bob", timezone.now())


@pytest.mark.parametrize("had, has", [("", "Ada"), ("A. L.", "A. L.")])
def test_a_voter_without_a_name_gets_that_of_the_personal_link(had, has):
    run = make_run()
    known = make_voter(run, name=had)
    join(make_invite(run, label="Ada", max_voters=1), "", timezone.now(), known)
    known.refresh_from_db()
    assert known.name == has


@pytest.mark.parametrize("is_guest", [False, True])
def test_who_is_erased_is_on_no_personal_link_and_nobody_comes_in_by_it(is_guest):
    run = make_run()
    invite = make_invite(run, label="Ada", max_voters=1)
    group = make_invite(run, label="Students")
    known = make_voter(run, invite=group) if is_guest else None
    erase(join(invite, "", timezone.now(), known))
    invite.refresh_from_db()
    group.refresh_from_db()
    assert (invite.label, group.label, group.revoked_at) == ("", "Students", None)
    assert "withdrawn" in refusal(invite, timezone.now())

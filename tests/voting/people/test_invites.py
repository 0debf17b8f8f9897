"""Invites are made and withdrawn on the run's own tab, by whoever is logged in."""

import re
from datetime import timedelta
from io import BytesIO
from uuid import uuid4

import pytest
import segno
from django.test import Client
from django.utils import timezone

from tests.helpers.pages import text_of
from tests.makers import (
    make_invite,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.ballot.services import undo_last_vote
from voting.models import Invite
from voting.people.voters import invite_token, invited

pytestmark = pytest.mark.django_db


def tab(run):
    return f"/runs/{run.pk}/people/"


def making(run):
    return f"/runs/{run.pk}/vote/"


def moved_on(run):
    return (f"{tab(run)}#invites", 302)


def withdrawal(run, invite):
    return f"{making(run)}invites/{invite.pk}/withdraw"


def test_an_evaluator_without_other_rights_makes_an_invite_that_works():
    run = make_run()
    client = user_client("an evaluator")
    data = {"label": "Students", "days": "7", "max_voters": "2"}
    page = client.post(making(run), data, follow=True)
    assert page.redirect_chain == [moved_on(run)]
    invite = Invite.objects.get()
    assert (invite.queue, invite.label, invite.max_voters) == (run.queue, "Students", 2)
    week = timezone.now() + timedelta(days=7)
    assert abs(invite.expires_at - week) < timedelta(minutes=1)
    [link] = set(re.findall(r"http://testserver(/join/[^\"<]+)", page.content.decode()))
    assert Client().post(link, {"name": "Ada"}).status_code == 302
    assert "1 of at most 2 joined · 0 votes" in text_of(client.get(tab(run)))
    assert run.events.get().text == "An invite was made by an evaluator: Students."


def test_invites_name_the_group_of_those_who_join_by_them():
    run, client = make_run(), user_client()
    client.post(
        making(run), {"label": "", "group": " night  nurses ", "days": "", "max_voters": ""}
    )
    client.post(f"{making(run)}personal", {"names": "Ada\nBen", "group": "doctors", "days": "7"})
    groups = [("", "night nurses"), ("Ada", "doctors"), ("Ben", "doctors")]
    assert sorted(Invite.objects.values_list("label", "group")) == groups
    page = client.get(tab(run)).content.decode()
    assert page.count('<option value="doctors">') == 1
    assert page.count('<span class="tag">doctors</span>') == 2
    for group in ("x" * 61, "a\u202eb"):
        refused = client.post(making(run), {"label": "", "group": group, "days": ""})
        assert "Please look at this again" in text_of(refused)
    assert Invite.objects.count() == 3


def test_an_invite_without_end_and_cap():
    run = make_run()
    user_client().post(making(run), {"label": "", "days": "", "max_voters": ""})
    invite = Invite.objects.get()
    assert (invite.label, invite.expires_at, invite.max_voters) == ("", None, None)


@pytest.mark.parametrize(
    "change", [{"max_voters": "0"}, {"max_voters": "x"}, {"days": "9999"}, {"label": "x" * 101}]
)
def test_an_invite_that_cannot_be_is_refused_in_words(change):
    run = make_run()
    data = {"label": "Students", "days": "7", "max_voters": "2"} | change
    page = user_client().post(making(run), data)
    assert page.status_code == 422
    assert "Please look at this again" in text_of(page)
    assert not Invite.objects.exists()


def test_an_invite_is_withdrawn_there_once():
    run = make_run()
    # A person may be erased; what happened to a run is kept.
    invite, client = make_invite(run, label="Ada", max_voters=1), user_client("an evaluator")
    assert withdrawal(run, invite) in client.get(tab(run)).content.decode()
    for _ in range(2):
        assert client.post(withdrawal(run, invite)).url == f"{tab(run)}#invites"
    assert Client().get(f"/join/{invite_token(invite)}/").status_code == 403
    page = client.get(tab(run))
    assert "This invite was withdrawn" in text_of(page)
    assert withdrawal(run, invite) not in page.content.decode()
    assert run.events.get().text == "An invite was withdrawn by an evaluator."


def test_an_invite_of_another_run_is_not_found():
    run, invite = make_run(), make_invite(make_run())
    assert user_client().post(withdrawal(run, invite)).status_code == 404
    assert user_client().post(f"{making(run)}invites/{uuid4()}/withdraw").status_code == 404
    invite.refresh_from_db()
    assert invite.revoked_at is None


def test_places_that_voters_of_other_runs_took_are_counted():
    run = make_run()
    invite = make_invite(run, max_voters=5)
    invite.guests.add(make_voter(run), make_voter(run))
    for _ in range(2):
        make_voter(run, invite=invite)
    assert "4 of at most 5 joined" in text_of(user_client().get(tab(run)))


def test_votes_are_counted_by_the_invite_that_brought_them():
    run, other = make_run(pairs=2, votes_wanted=9), make_run()
    invite, without = make_invite(run, label="Students"), make_invite(run, label="Friends")
    ada, guest, stranger = make_voter(run, invite=invite), make_voter(run), make_voter(run)
    invite.guests.add(guest)
    first, second = pairs_of(run)
    for voter, pair in ((ada, first), (ada, second), (guest, first), (stranger, first)):
        make_vote(voter, pair)
    make_vote(make_voter(other, invite=make_invite(other)), pairs_of(other)[0])
    undo_last_vote(ada, run.queue)
    seal_all(run.queue.project)
    counts = {found.invite: (found.joined, found.votes) for found in invited(run.queue)}
    assert counts == {invite: (2, 2), without: (0, 0)}
    assert "Students 2 joined · 2 votes" in text_of(user_client().get(tab(run)))


def test_personal_links_are_made_of_a_list_of_names():
    run, client = make_run(), user_client("an evaluator")
    data = {"names": " Ada Lovelace \n\nBob\n", "days": "7"}
    page = client.post(f"{making(run)}personal", data, follow=True)
    assert page.redirect_chain == [moved_on(run)]
    made = Invite.objects.order_by("created_at")
    assert [(each.person, each.max_voters) for each in made] == [("Ada Lovelace", 1), ("Bob", 1)]
    assert all(each.expires_at for each in made)
    assert "Ada Lovelace personal has not joined yet · 0 votes" in text_of(page)
    # What happened to a run outlives a person who is erased.
    assert run.events.get().text == "2 personal links made by an evaluator."


@pytest.mark.parametrize(
    "names, words",
    [
        ("", "required"),
        ("Ada\n" + "x" * 101, "Name 2 is longer than 100"),
        ("Ada\nBob\nAda", "The name Ada is listed twice."),
        ("\n".join(map(str, range(201))), "At most 200 names at once"),
    ],
)
def test_names_that_cannot_be_are_refused_and_kept(names, words):
    run = make_run()
    page = user_client().post(f"{making(run)}personal", {"names": names, "days": "7"})
    assert page.status_code == 422
    assert words in text_of(page)
    assert names[:3] in page.content.decode()
    assert not Invite.objects.exists()


def test_the_qr_code_is_a_drawing_without_style_that_only_leads_may_see():
    run = make_run()
    invite = make_invite(run)
    address = f"{making(run)}invites/{invite.pk}/qr.svg"
    page, code = user_client().get(tab(run)), user_client().get(address)
    assert f'src="{address}"' in page.content.decode()
    assert code.headers["Content-Type"] == "image/svg+xml"
    drawing = code.content.decode()
    link = f"http://testserver/join/{invite_token(invite)}/"
    assert drawing == svg_of(link)
    assert not re.search("style|script|href", drawing)
    # Black on white in the dark, too: a phone reads no inverted code.
    assert '<path fill="#fff"' in drawing
    assert Client().get(address).status_code == 302
    assert user_client().get(address.replace(str(run.pk), str(make_run().pk))).status_code == 404


def svg_of(link):
    code = BytesIO()
    drawn = segno.make_qr(link, error="m")
    drawn.save(code, "svg", light="#fff", scale=4, svgclass=None, lineclass=None, xmldecl=False)
    return code.getvalue().decode()

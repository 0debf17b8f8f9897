"""The back office: what an admin may do, and that the ledger can only be read there."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.makers import (
    make_invite,
    make_key,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from tests.web.pages import text_of
from voting import chain, ledger
from voting.keys import find_key
from voting.models import ApiKey, Entry, Flag, VoterPrompt
from voting.voters import invite_token

pytestmark = pytest.mark.django_db

READ_ONLY = ["entry", "comparison", "inference", "picture", "flag"]


def admin_client():
    User.objects.get_or_create(username="root", is_staff=True, is_superuser=True)
    return user_client("root")


def a_voted_run():
    run = make_run()
    voter = make_voter(run, name="Ada Lovelace")
    make_vote(voter, pairs_of(run)[0])
    Flag.objects.create(voter=voter, comparison=pairs_of(run)[0], category="other")
    seal_all(run.queue.project)
    return run, voter


def test_the_back_office_is_for_staff():
    assert Client().get("/admin/").status_code == 302
    assert user_client("a reader").get("/admin/").status_code == 302
    assert admin_client().get("/admin/").status_code == 200


@pytest.mark.parametrize("model", READ_ONLY)
def test_what_the_product_writes_can_only_be_read(model):
    a_voted_run()
    client = admin_client()
    lists = f"/admin/voting/{model}/"
    body = client.get(lists).content.decode()
    assert client.get(f"{lists}add/").status_code == 403
    assert "Add" not in re.findall(r'class="addlink">([^<]*)', body)
    [first, *_] = re.findall(rf'href="({lists}[^"/?]+/change/)', body) or [None]
    if first is not None:
        assert client.get(first).status_code == 200
        assert client.post(first, {"choice": "B"}).status_code == 403
        assert client.post(first.replace("change", "delete"), {"post": "yes"}).status_code == 403


def test_a_sealed_entry_stays_as_it_is():
    run, _ = a_voted_run()
    client = admin_client()
    entry = Entry.objects.get(kind="vote")
    for action in ("change", "delete"):
        client.post(f"/admin/voting/entry/{entry.pk}/{action}/", {"choice": "B", "post": "yes"})
    delete = {"action": "delete_selected", "_selected_action": [entry.pk], "post": "yes"}
    client.post("/admin/voting/entry/", delete)
    project = run.queue.project
    assert chain.verify(ledger.export(project), project.head).entries == 2


@pytest.mark.parametrize("model", ["project", "voterprompt", "queue", "voter", "apikey"])
def test_what_the_ledger_refers_to_is_never_deleted(model):
    run, voter = a_voted_run()
    make_key("read")
    pk = {
        "project": run.queue.project_id,
        "voterprompt": run.queue.rubric_id,
        "queue": run.queue_id,
        "voter": voter.pk,
        "apikey": ApiKey.objects.get().pk,
    }[model]
    assert admin_client().get(f"/admin/voting/{model}/{pk}/delete/").status_code == 403


def test_a_new_key_is_shown_once_and_works():
    client = admin_client()
    data = {"name": "a script", "scopes": ["read", "vote"], "project": ""}
    data |= {"expires_at_0": "", "expires_at_1": "", "revoked_at_0": "", "revoked_at_1": ""}
    page = client.post("/admin/voting/apikey/add/", data, follow=True)
    [token] = re.findall(r"hj_[0-9a-f]{8}_[\w-]+", page.content.decode())
    assert find_key(token).scopes == ["read", "vote"]
    assert token not in client.get("/admin/voting/apikey/").content.decode()
    assert ApiKey.objects.count() == 1


def test_a_new_key_needs_scopes_that_exist():
    response = admin_client().post(
        "/admin/voting/apikey/add/", {"name": "a script", "scopes": ["everything"]}
    )
    assert response.status_code == 200
    assert not ApiKey.objects.exists()


def test_a_rubric_that_was_shown_never_changes():
    run, _ = a_voted_run()
    client = admin_client()
    url = f"/admin/voting/voterprompt/{run.queue.rubric_id}/change/"
    client.post(url, {"text": "something else", "name": "x", "version": 9})
    rubric = VoterPrompt.objects.get()
    assert (rubric.text, rubric.version) == (run.queue.rubric.text, 1)


def test_invites_show_their_link_and_can_be_withdrawn():
    run = make_run()
    invite = make_invite(run)
    client = admin_client()
    link = f"/join/{invite_token(invite)}/"
    assert link in client.get("/admin/voting/invite/").content.decode()
    data = {"action": "revoke", "_selected_action": [str(invite.pk)]}
    client.post("/admin/voting/invite/", data)
    invite.refresh_from_db()
    assert invite.revoked_at is not None
    assert Client().get(link).status_code == 403


def test_a_person_is_erased_and_their_votes_stay():
    run, voter = a_voted_run()
    data = {"action": "erase", "_selected_action": [str(voter.pk)]}
    admin_client().post("/admin/voting/voter/", data)
    voter.refresh_from_db()
    assert (voter.name, voter.blocked_at is not None) == ("", True)
    seal_all(run.queue.project)
    assert pairs_of(run)[0].votes == 1
    assert Entry.objects.filter(kind="erasure").exists()


def test_a_run_is_shared_here():
    run = make_run()
    data = {"name": "Renamed", "is_shared": "on"}
    admin_client().post(f"/admin/judge_eval/run/{run.pk}/change/", data)
    run.refresh_from_db()
    assert (run.name, run.is_shared) == ("Renamed", True)
    assert Client().get(f"/runs/{run.pk}/").status_code == 200


def test_the_head_of_a_ledger_can_be_read_and_not_changed():
    project = make_project()
    url = f"/admin/voting/project/{project.pk}/change/"
    client = admin_client()
    assert project.head in text_of(client.get(url))
    client.post(url, {"name": "Renamed", "head_seq": 99})
    project.refresh_from_db()
    assert (project.name, project.head_seq) == ("Renamed", 0)


def test_names_in_lists_are_text():
    run = make_run()
    make_voter(run, name="<script>alert(1)</script>")
    assert b"<script>alert" not in admin_client().get("/admin/voting/voter/").content

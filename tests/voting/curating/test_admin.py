"""The admin: what an admin may do, and that the ledger can only be read there."""

import json
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.test import Client

from judge_eval.models import Provider, RunEvent
from tests.helpers.pages import text_of
from tests.helpers.run_rows import make_asked_run, make_outputs, make_provider
from tests.makers import (
    make_invite,
    make_key,
    make_project,
    make_queue,
    make_run,
    make_vote,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.access.changes import changes_of, rename
from voting.access.keys import find_key
from voting.ledger import chain, ledger
from voting.models import ApiKey, Entry, Flag, Queue, VoterPrompt
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db

READ_ONLY = ["entry", "item", "inference", "picture", "flag"]


def admin_client():
    User.objects.get_or_create(username="root", is_staff=True, is_superuser=True)
    return user_client("root")


def a_voted_run():
    run = make_run()
    voter = make_voter(run, name="Ada Lovelace")
    make_vote(voter, pairs_of(run)[0])
    Flag.objects.create(voter=voter, item=pairs_of(run)[0], category="other")
    seal_all(run.queue.project)
    return run, voter


def test_the_admin_is_for_staff():
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
    assert chain.verify(ledger.export(project), project.ledger_head).entries == 2


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


def test_who_changed_something_is_set_inactive_and_never_deleted():
    project, client = make_project(), admin_client()
    ada, bob = (User.objects.create(username=name, is_superuser=True) for name in ("ada", "bob"))
    rename(project, "Owls", ada)
    assert client.get(f"/admin/auth/user/{ada.pk}/delete/").status_code == 403
    both = {"action": "delete_selected", "_selected_action": [ada.pk, bob.pk], "post": "yes"}
    client.post("/admin/auth/user/", both)
    assert User.objects.filter(pk__in=[ada.pk, bob.pk]).count() == 2
    client.post(f"/admin/auth/user/{bob.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(pk=bob.pk).exists()
    assert [change.user for change in changes_of(project)] == [ada]


def test_a_new_key_is_shown_once_and_works():
    client = admin_client()
    data = {"name": "a script", "scopes": ["read", "vote"], "project": ""}
    data |= {"expires_at_0": "", "expires_at_1": "", "revoked_at_0": "", "revoked_at_1": ""}
    page = client.post("/admin/voting/apikey/add/", data)
    [token] = re.findall(r"hj_[0-9a-f]{8}_[\w-]+", page.content.decode())
    assert find_key(token, "hj").scopes == ["read", "vote"]
    assert token not in client.get("/admin/voting/apikey/").content.decode()
    assert ApiKey.objects.count() == 1
    # No cookie carries it, readable or packed, and no store of sessions.
    assert "messages" not in client.cookies
    assert "no-store" in page["Cache-Control"]
    sessions = [session.get_decoded() for session in Session.objects.all()]
    assert token not in json.dumps([sessions, {c.key: c.value for c in client.cookies.values()}])


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


def test_invites_show_their_link():
    invite = make_invite(make_run())
    link = f"/join/{invite_token(invite)}/"
    assert link in admin_client().get("/admin/voting/invite/").content.decode()


def act(client, model, action, row, confirmed="yes"):
    data = {"action": action, "_selected_action": [str(row.pk)], "confirmed": confirmed}
    return client.post(f"/admin/voting/{model}/", data, follow=True)


def history_of(row):
    entries = LogEntry.objects.filter(object_id=str(row.pk)).order_by("pk")
    return [(entry.user.get_username(), entry.get_change_message()) for entry in entries]


def test_what_cannot_be_undone_is_asked_about_first():
    voter = make_voter(make_run(), name="Ada")
    client = admin_client()
    page = act(client, "voter", "erase", voter, "")
    assert "cannot be undone" in text_of(page)
    assert "Ada" in text_of(page)
    voter.refresh_from_db()
    assert voter.blocked_at is None
    assert history_of(voter) == []
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.content.decode()))
    client.post("/admin/voting/voter/", fields)
    assert len(history_of(voter)) == 1


def test_who_may_only_look_may_not_erase():
    run = make_run()
    voter = make_voter(run, name="Ada")
    looker = User.objects.create(username="looker", is_staff=True)
    looker.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    act(member_client(run.queue.project, "", name="looker"), "voter", "erase", voter)
    voter.refresh_from_db()
    assert voter.name == "Ada"


def test_a_person_is_erased_and_their_votes_stay():
    run, voter = a_voted_run()
    client = admin_client()
    change = {"name": "Ada L.", "reputation": 1000000, "blocked_at_0": "", "blocked_at_1": ""}
    client.post(f"/admin/voting/voter/{voter.pk}/change/", change)
    assert LogEntry.objects.get().object_repr == "Ada L."
    page = act(client, "voter", "erase", voter)
    voter.refresh_from_db()
    assert (voter.name, voter.blocked_at is not None) == ("", True)
    assert "Erased: 1." in text_of(page)
    assert history_of(voter)[-1] == ("root", "Erased.")
    assert set(LogEntry.objects.values_list("object_repr", flat=True)) == {voter.pseudonym}
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


def ballot_form(**changes):
    fields = {
        "name": "Queue",
        "ballot": ["B", "A"],
        "votes_per_item": 7,
        "overlap_share": 0.5,
        "overlap_votes": 9,
        "reveal": "never",
        "is_open": "on",
    }
    return fields | changes


@pytest.mark.parametrize("ballot", [[], ["A"], ["B", "tie"], ["A", "B", "X"], ["5"]])
def test_a_ballot_without_a_and_b_or_with_anything_else_is_refused(ballot):
    run = make_run()
    data = ballot_form(ballot=ballot, rubric=run.queue.rubric_id)
    response = admin_client().post(f"/admin/voting/queue/{run.queue_id}/change/", data)
    assert response.status_code == 200
    assert "correct the error" in text_of(response)
    assert Queue.objects.get().ballot == list(run.queue.ballot)


def test_a_ballot_is_kept_in_its_order_and_what_pairs_were_made_with_stays():
    run = make_run()
    data = ballot_form(ballot=["both_bad", "B", "A"], rubric=run.queue.rubric_id)
    client = admin_client()
    assert client.post(f"/admin/voting/queue/{run.queue_id}/change/", data).status_code == 302
    queue = Queue.objects.get()
    assert (queue.ballot, queue.reveal) == (["A", "B", "both_bad"], "never")
    assert (queue.votes_per_item, queue.overlap_share, queue.overlap_votes) == (1, 0.0, 3)
    assert voter_client(make_voter(run)).get(f"/vote/{queue.pk}/").status_code == 200


def test_before_there_are_pairs_how_many_votes_each_wants_can_be_changed():
    queue = make_queue()
    data = ballot_form(rubric=queue.rubric_id)
    admin_client().post(f"/admin/voting/queue/{queue.pk}/change/", data)
    queue.refresh_from_db()
    assert (queue.votes_per_item, queue.overlap_share, queue.overlap_votes) == (7, 0.5, 9)


def test_a_queue_takes_no_rubric_of_another_project():
    queue, other = make_queue(), make_queue()
    data = ballot_form(rubric=other.rubric_id)
    response = admin_client().post(f"/admin/voting/queue/{queue.pk}/change/", data)
    assert response.status_code == 200
    queue.refresh_from_db()
    assert queue.rubric.project == queue.project


def test_queues_of_one_name_are_told_apart_by_their_projects():
    queues = [make_queue(make_project(name), name="Study") for name in ("North", "South")]
    query = {"app_label": "voting", "model_name": "invite", "field_name": "queue", "term": "study"}
    found = admin_client().get("/admin/autocomplete/", query).json()["results"]
    names = {f"Study ({queue.project.name})" for queue in queues}
    assert {each["text"] for each in found} == names


def test_reputation_says_what_its_number_means():
    voter = make_voter(make_run())
    page = text_of(admin_client().get(f"/admin/voting/voter/{voter.pk}/change/"))
    assert "in millionths: 1000000 is the weight 1" in page


def test_the_head_of_a_ledger_can_be_read_and_not_changed():
    project = make_project()
    url = f"/admin/voting/project/{project.pk}/change/"
    client = admin_client()
    assert project.ledger_head in text_of(client.get(url))
    no_members = {"members-TOTAL_FORMS": 0, "members-INITIAL_FORMS": 0}
    client.post(url, {"name": "Renamed", "head_seq": 99} | no_members)
    project.refresh_from_db()
    assert (project.name, project.head_seq) == ("Renamed", 0)


def test_names_in_lists_are_text():
    run = make_run()
    make_voter(run, name="<script>alert(1)</script>")
    assert b"<script>alert" not in admin_client().get("/admin/voting/voter/").content


LIST = "/admin/judge_eval/provider/"


def test_providers_are_listed_and_deleted_here_and_changed_on_their_page():
    provider = make_provider(name="x")
    client, one = admin_client(), f"{LIST}{provider.pk}/change/"
    assert f'href="/providers/{provider.pk}/"' in client.get(one).content.decode()
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(one, {"name": "y", "base_url": "http://127.0.0.1:1/v1"}).status_code == 403
    assert client.post(f"{LIST}{provider.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Provider.objects.exists()


def test_whether_the_key_is_set_here_and_never_the_key(monkeypatch):
    provider = make_provider(name="x", key_variable="OF_THIS_TEST_API_KEY")
    make_provider(name="y")
    client = admin_client()
    monkeypatch.delenv("OF_THIS_TEST_API_KEY", raising=False)
    page = f"{LIST}{provider.pk}/change/"
    assert "Key is set here: no" in text_of(client.get(page))
    monkeypatch.setenv("OF_THIS_TEST_API_KEY", "sk-secret-value")
    for url in (page, LIST):
        response = client.get(url)
        assert b"sk-secret-value" not in response.content
        assert "yes" in text_of(response)
    assert "none is named" in text_of(client.get(LIST))


def test_what_the_workers_share_is_not_shown():
    provider = make_provider(name="x")
    body = admin_client().get(f"{LIST}{provider.pk}/change/").content.decode()
    assert "next_start_at" not in body
    assert "pauses" not in body


@pytest.mark.parametrize("model", ["call", "runevent"])
def test_calls_and_events_can_only_be_read(model):
    run = make_asked_run()
    [call] = make_outputs(run, 1, reply="<script>alert(1)</script>")
    run.record("started", "It began.")
    pk = call.pk if model == "call" else RunEvent.objects.get().pk
    client = admin_client()
    lists = f"/admin/judge_eval/{model}/"
    one = f"{lists}{pk}/change/"
    assert client.get(lists).status_code == 200
    shown = client.get(one)
    assert shown.status_code == 200
    assert b"<script>alert" not in shown.content
    assert client.get(f"{lists}add/").status_code == 403
    assert client.post(one, {"text": "x", "reply": "x"}).status_code == 403
    assert client.post(f"{lists}{pk}/delete/", {"post": "yes"}).status_code == 403

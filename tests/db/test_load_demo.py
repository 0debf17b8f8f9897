"""The demo: two runs of thirty pairs, the ways in, and not one vote."""

import json

import pytest
from django.contrib.auth import authenticate
from django.test import Client

from judge_eval.models import Judge, Run
from judge_eval.runs import demo
from tests.makers import key_client
from voting.models import ApiKey, Entry, Inference, Item

pytestmark = pytest.mark.django_db


@pytest.fixture
def access_file(tmp_path):
    return tmp_path / "access.json"


def test_two_runs_of_thirty_pairs_and_no_votes(access_file):
    assert demo.load(access_file)
    runs = {run.name: run for run in Run.objects.all()}
    assert set(runs) == {"Drawings", "Answers"}
    for run in runs.values():
        pairs = Item.objects.filter(queue=run.queue).select_related("a", "b")
        assert pairs.count() == 30
        assert all(pair.a.prompt == pair.b.prompt for pair in pairs)
    assert Inference.objects.values("generator").distinct().count() >= 3
    assert not Entry.objects.exists()


def test_baselines_judge_both_and_elements_are_counted_only_in_drawings(access_file):
    demo.load(access_file)
    judges = Judge.objects.order_by("run__name", "position").values_list("run__name", "name")
    assert list(judges) == [
        ("Answers", "always-first"),
        ("Answers", "random"),
        ("Answers", "longer-wins"),
        ("Drawings", "always-first"),
        ("Drawings", "random"),
        ("Drawings", "longer-wins"),
        ("Drawings", "more-elements-wins"),
    ]


def test_it_is_loaded_once(access_file):
    demo.load(access_file)
    before = access_file.read_text()
    assert not demo.load(access_file)
    assert Run.objects.count() == 2
    assert access_file.read_text() == before


def test_the_ways_in_work_and_are_for_the_owners_eyes_only(access_file):
    demo.load(access_file)
    assert access_file.stat().st_mode & 0o777 == 0o600
    access = json.loads(access_file.read_text())
    for invite in access["invites"]:
        assert Client().get(invite["path"]).status_code == 200
    admin = access["admin"]
    user = authenticate(username=admin["username"], password=admin["password"])
    assert user.is_superuser
    client = Client()
    client.force_login(user)
    for board in access["board"]:
        assert client.get(board["path"]).status_code == 200
    run = Run.objects.first()
    script = key_client(access["api_key"])
    assert script.get(f"/api/runs/{run.pk}/judge-eval/results").status_code == 200


def test_the_key_of_the_command_line_may_do_everything(access_file):
    demo.load(access_file)
    script = key_client(json.loads(access_file.read_text())["cli_key"])
    made = script.post("/api/runs/demo", {}, content_type="application/json")
    assert made.status_code == 201
    url = f"/api/runs/{made.json()['id']}/judge-eval"
    assert script.get(f"{url}/pending").status_code == 200
    body = {"choice": "A"}
    assert script.post(f"{url}/simulate", body, content_type="application/json").status_code == 200
    assert set(ApiKey.objects.latest("pk").scopes) == {"read", "vote", "verdicts", "manage"}


def test_another_machine_on_the_same_database_is_let_in_by_nobody(access_file, tmp_path):
    demo.load(access_file)
    assert not demo.load(tmp_path / "elsewhere.json")
    assert not (tmp_path / "elsewhere.json").exists()
    assert ApiKey.objects.count() == 2


def test_an_admin_who_is_there_keeps_their_password(access_file, django_user_model):
    django_user_model.objects.create(username="boss", is_superuser=True)
    demo.load(access_file)
    assert json.loads(access_file.read_text())["admin"]["password"] is None
    assert django_user_model.objects.count() == 1


def test_without_its_keys_there_is_no_demo(tmp_path):
    with pytest.raises(OSError, match="no folder"):
        demo.load(tmp_path / "no folder" / "access.json")
    assert not Run.objects.exists()

"""The demo: runs to vote on, one that is finished, and the ways in."""

import json

import pytest
from django.contrib.auth import authenticate
from django.core.files.storage import default_storage
from django.test import Client

from judge_eval.demo import content, load
from judge_eval.judging.baselines import names_asked, names_for
from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs.queries import board
from judge_eval.runs.state import advance
from tests.helpers.pages import ballots_in, text_of
from tests.makers import key_client, make_vote, make_voter, seal_all, user_client
from voting.items.choices import CHOICES
from voting.items.kinds import Options
from voting.models import ApiKey, Entry, Inference, Item, Picture, Project
from voting.pictures.store import stored_path

pytestmark = pytest.mark.django_db


@pytest.fixture
def access_file(tmp_path):
    return tmp_path / "access.json"


@pytest.fixture(autouse=True)
def few_labels(monkeypatch):
    """tests/judge_eval/board/test_published_labels.py has them all."""
    rows = content.Study.rows
    monkeypatch.setattr(content.Study, "rows", lambda study: rows(study)[:5])


def runs_of(project):
    return {run.name: run for run in Run.objects.filter(queue__project__name=project)}


def test_two_runs_of_thirty_pairs_and_no_votes(access_file):
    assert load.load(access_file)
    runs = runs_of("Demo")
    assert set(runs) == {"Drawings", "Answers"}
    for run in runs.values():
        pairs = Item.objects.filter(queue=run.queue).select_related("a", "b")
        assert pairs.count() == 30
        assert all(pair.a.prompt == pair.b.prompt for pair in pairs)
    assert Inference.objects.values("generator").distinct().count() >= 3
    votes = Entry.objects.filter(kind="vote")
    assert set(votes.values_list("queue__name", flat=True)) == {"XSTest", "PandaLM test set"}


def test_every_drawing_has_its_picture_before_a_worker_looks(access_file):
    load.load(access_file)
    pictures = Picture.objects.all()
    assert {picture.state for picture in pictures} == {"done"}
    assert len(pictures) == 30
    assert all(default_storage.exists(stored_path(picture.png_sha256)) for picture in pictures)


def test_thirty_jokes_to_pass_or_flag_one_by_one_in_a_project_of_their_own(access_file):
    load.load(access_file)
    [run] = runs_of("Jokes").values()
    queue = run.queue
    assert queue.rubric.text == "Is it funny, and would you tell it at work?"
    assert (queue.kind, queue.ballot, queue.votes_per_item) == ("pass_flag", ["pass", "flag"], 1)
    asked = Options.model_validate(queue.options)
    assert asked.flag_categories == (
        *("not funny", "not for work", "heard before", "makes no sense", "other"),
    )
    jokes = Item.objects.filter(queue=queue, b=None)
    assert jokes.values("prompt_key").distinct().count() == jokes.count() == 30
    assert jokes.values("a__generator").distinct().count() == 5


def test_the_jokes_open_as_soon_as_a_worker_looks_at_the_run_and_a_voter_passes_one(access_file):
    load.load(access_file)
    [run] = runs_of("Jokes").values()
    advance(run.pk)
    run.refresh_from_db()
    assert run.state == Run.State.VOTING
    invites = json.loads(access_file.read_text())["invites"]
    [invite] = [invite for invite in invites if invite["name"] == "Jokes"]
    voter = Client()
    page = voter.post(invite["path"], {"name": "Ann"}, follow=True)
    address = f"/vote/{run.queue_id}/ballot"
    vote = {"ballot": ballots_in(page)[0], "choice": "pass", "elapsed_ms": "900"}
    assert voter.post(address, vote, follow=True).status_code == 200
    seal_all(run.queue.project)
    assert Item.objects.filter(queue=run.queue, votes=1, votes_pass=1).count() == 1


def home():
    return Client().get("/").content.decode()


def test_the_ways_in_are_told_at_the_start_and_the_first_of_them_on_home(access_file):
    load.load(access_file)
    invites = json.loads(access_file.read_text())["invites"]
    assert [invite["name"] for invite in invites] == ["Drawings", "Answers", "Jokes"]
    page = home()
    assert page.count("/join/") == 1
    assert invites[0]["path"] in page


def test_baselines_judge_all_and_elements_are_counted_only_in_drawings(access_file):
    load.load(access_file)
    judges = Judge.objects.order_by("run__name", "position").values_list("run__name", "name")
    assert list(judges) == [
        ("Answers", "careful-example"),
        ("Answers", "hasty-example"),
        ("Answers", "likes-length-example"),
        *(("Answers", name) for name in names_asked(names_for("text", CHOICES), "AB")),
        ("Drawings", "careful-example"),
        ("Drawings", "hasty-example"),
        ("Drawings", "likes-length-example"),
        *(("Drawings", name) for name in names_asked(names_for("svg"), "AB")),
        ("Jokes", "careful-example"),
        ("Jokes", "hasty-example"),
        ("Jokes", "likes-length-example"),
        ("Jokes", "always-pass"),
        ("Jokes", "always-flag"),
        ("Jokes", "random"),
        ("PandaLM test set", "gpt-3.5-turbo"),
        ("PandaLM test set", "pandalm-7b"),
        *(("PandaLM test set", name) for name in content.PANDALM.baselines),
        ("XSTest", "gpt-4"),
        ("XSTest", "keywords"),
        ("XSTest", "always-full-compliance"),
    ]


def test_example_judges_have_answered_and_the_first_vote_moves_a_board_with_judges(access_file):
    load.load(access_file)
    examples = Verdict.objects.filter(judge__name__endswith="-example")
    assert examples.count() == 3 * 90
    assert set(examples.values_list("state", "judge__provider")) == {("done", "imported")}
    assert not examples.filter(feedback="").exists()
    assert all(len(why) < 90 for why in examples.values_list("feedback", flat=True))
    fox = examples.get(
        judge__name="careful-example",
        item__a__prompt__startswith="A red fox",
        item__a__generator__in=("atelier-1", "doodle-nano"),
        item__b__generator__in=("atelier-1", "doodle-nano"),
    )
    picked = fox.item.a if fox.winner == "A" else fox.item.b
    assert picked.generator == "atelier-1"
    [jokes] = runs_of("Jokes").values()
    advance(jokes.pk)
    joke = examples.filter(item__queue=jokes.queue, winner="pass", judge__position=0).first().item
    make_vote(make_voter(jokes), joke, "pass")
    seal_all(jokes.queue.project)
    rated = {line.judge.name: line.judge.rating.agree for line in board(jokes).rows}
    assert rated["careful-example"] == 1
    client, pages = user_client(), (f"pairs/{joke.pk}/", "", "progress/")
    item, board_, progress = (text_of(client.get(f"/runs/{jokes.pk}/{page}")) for page in pages)
    assert "The verdicts of the example judges were written for the demo." in progress
    for page in (item, board_):
        assert "careful-example example" in page
        assert "always-pass baseline" in page
        assert "3 example judges and 3 baselines" in page


def test_it_is_loaded_once(access_file):
    load.load(access_file)
    before = access_file.read_text()
    assert not load.load(access_file)
    assert Run.objects.count() == 5
    assert access_file.read_text() == before


def test_what_was_cleared_away_or_renamed_does_not_come_back(access_file):
    load.load(access_file)
    [jokes] = runs_of("Jokes").values()
    Verdict.objects.filter(judge__run=jokes).delete()
    jokes.judges.all().delete()
    jokes.delete()
    Project.objects.filter(name="Demo").update(name="Tried out")
    assert not load.load(access_file)
    assert Run.objects.count() == 4


def test_the_ways_in_work_and_are_for_the_owners_eyes_only(access_file):
    load.load(access_file)
    assert access_file.stat().st_mode & 0o777 == 0o600
    access = json.loads(access_file.read_text())
    for invite in access["invites"]:
        assert Client().get(invite["path"]).status_code == 200
    admin = access["admin"]
    user = authenticate(username=admin["username"], password=admin["password"])
    assert user.is_superuser
    client = Client()
    client.force_login(user)
    for shown in access["board"]:
        assert client.get(shown["path"]).status_code == 200
    run = Run.objects.first()
    script = key_client(access["api_key"])
    assert script.get(f"/api/runs/{run.pk}/judge-eval/results").status_code == 200


def test_the_key_of_the_command_line_may_do_everything(access_file):
    load.load(access_file)
    script = key_client(json.loads(access_file.read_text())["cli_key"])
    made = script.post("/api/runs/demo", {}, content_type="application/json")
    assert made.status_code == 201
    assert Run.objects.get(pk=made.json()["id"]).queue.project.name == "Demo"
    url = f"/api/runs/{made.json()['id']}/judge-eval"
    assert script.get(f"{url}/pending").status_code == 200
    body = {"choice": "A"}
    assert script.post(f"{url}/simulate", body, content_type="application/json").status_code == 200
    assert set(ApiKey.objects.latest("pk").scopes) == set(ApiKey.Scope)


def test_another_machine_on_the_same_database_is_let_in_by_nobody(access_file, tmp_path):
    load.load(access_file)
    assert not load.load(tmp_path / "elsewhere.json")
    assert not (tmp_path / "elsewhere.json").exists()
    assert ApiKey.objects.count() == 2


def test_an_admin_who_is_there_keeps_their_password(access_file, django_user_model):
    django_user_model.objects.create(username="boss", is_superuser=True)
    load.load(access_file)
    assert json.loads(access_file.read_text())["admin"]["password"] is None
    assert django_user_model.objects.count() == 1


def test_without_its_keys_there_is_no_demo(tmp_path):
    with pytest.raises(OSError, match="no folder"):
        load.load(tmp_path / "no folder" / "access.json")
    assert not Run.objects.exists()
    assert load.load(tmp_path / "access.json")

"""PathScore's own command line: every request of its four judge-eval commands, with a key."""

import json
from pathlib import Path

import pytest

from judge_eval.models import Run
from tests.helpers.run_maker import go_on, make_provider
from tests.makers import key_client, make_key, seal_all
from tests.provider import provider
from voting.models import Project

WIRE = json.loads(
    (Path(__file__).resolve().parents[4] / "shared/cases/pathscore_wire.json").read_text()
)
[CREATE] = [
    each["body"] for each in WIRE["requests"] if each.get("path") == "/api/runs" and "body" in each
]

pytestmark = pytest.mark.django_db


@pytest.fixture
def script():
    return key_client(make_key("read", "vote", "manage")[1])


@pytest.mark.parametrize("body", [CREATE, WIRE["config_as_published"]], ids=["wrapped", "plain"])
@pytest.mark.parametrize("projects", [0, 1, 2])
def test_a_config_as_published_makes_a_run(script, body, projects):
    for number in range(projects):
        Project.objects.create(name=f"Project {number}")
    made = script.post("/api/runs", body, content_type="application/json")
    assert made.status_code == 201, made.content
    run = Run.objects.get(pk=made.json()["id"])
    assert run.name == body["name"]
    assert run.queue.project.name == ("Project 0" if projects == 1 else "Default")


def test_the_four_commands(script):
    with provider() as at:
        make_provider(at)
        listed = script.get("/api/extensions").json()
        assert {"id": "builtin-judge-eval", "enabled": True}.items() <= next(
            each for each in listed if each["id"] == "builtin-judge-eval"
        ).items()
        run_id = script.post("/api/runs", CREATE, content_type="application/json").json()["id"]
        assert script.post(f"/api/runs/{run_id}/start").status_code == 200
        go_on(Run.objects.get(pk=run_id))
        assert script.get(f"/api/runs/{run_id}").json()["status"] == "complete"
        assert [
            (each["id"], each["name"], each["status"]) for each in script.get("/api/runs").json()
        ] == [(run_id, "CLI Judge Eval Test", "complete")]
        address = f"/api/runs/{run_id}/judge-eval"
        left = script.get(f"{address}/pending").json()
        assert (left["total"], left["done"], left["pending"]) == (2, 0, 2)
        while left["pending"]:
            task = left["tasks"][0]
            assert task["prompt_text"] in [each["text"] for each in CREATE["config"]["prompts"]]
            assert not task.get("verdicts"), "whoever reads them does not vote blindly"
            vote = {"task_id": task["id"], "winner": "both_bad"}
            assert script.post(f"{address}/vote", vote, content_type="application/json").json()[
                "ok"
            ]
            left = script.get(f"{address}/pending").json()
        seal_all(Project.objects.get())
        results = script.get(f"{address}/results").json()
        assert results["run"] == {"id": run_id, "name": "CLI Judge Eval Test"}
        assert (results["total"], results["done"], results["pending"]) == (2, 2, 0)
        assert {"judge", "elo", "agree_rate", "agree", "total"} <= results["leaderboard"][0].keys()


def test_its_status_finds_what_it_asks_for(script):
    """`status` asks for prompts to begin with, then for all runs, and prints how many there are."""
    prompts = script.get("/api/default-prompts").json()
    assert len(prompts) == 10
    assert all({"id", "text", "category"} <= each.keys() and each["text"] for each in prompts)
    config = CREATE["config"] | {"prompts": prompts}
    made = script.post("/api/runs", CREATE | {"config": config}, content_type="application/json")
    assert made.status_code == 201, made.content
    assert len(script.get("/api/runs").json()) == 1


def test_who_may_do_everything_switches_extensions(script):
    address = "/api/extensions/builtin-judge-eval/toggle"
    assert script.post(address).json()["enabled"] is False
    assert script.post(address).json()["enabled"] is True
    one = key_client(make_key("read", "manage", project=Project.objects.create(name="One"))[1])
    assert one.get("/api/extensions").status_code == 200
    assert one.post(address).status_code == 403
    assert script.post("/api/extensions/nothing/toggle").status_code == 404

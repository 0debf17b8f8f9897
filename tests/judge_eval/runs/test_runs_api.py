"""A run's life by REST: what is made, what is refused and why, who may, and what is answered."""

import json
import re

import pytest

from judge_eval.judging.baselines import names_for
from judge_eval.models import Call, Judge, Provider, Run, Verdict
from judge_eval.runs import lifecycle
from tests.helpers.pages import queries_of
from tests.helpers.run_maker import make_config
from tests.makers import (
    key_client,
    make_key,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.models import Item, Project

pytestmark = pytest.mark.django_db

CONFIG = {
    "name": "Cats",
    "mode": "judge_eval",
    "kind": "text",
    "models": [{"id": "model-a"}, {"id": "model-b"}],
    "judges": ["judge-x", "longer-wins"],
    "prompts": [{"id": "cat", "text": "A cat"}, {"id": "dog", "text": "A dog"}],
    "generation": {"temperature": 0.7},
}
PRICES = {name: {"input": "1", "output": "10"} for name in ("model-a", "model-b", "judge-x")}


def client(*scopes, **options):
    return key_client(make_key(*(scopes or ("read", "manage", "vote")), **options)[1])


def post(browser, path, body=None):
    data = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    return browser.post(f"/api/runs{path}", data, content_type="application/json")


def make_provider(**fields):
    fields = {"name": "default", "base_url": "http://127.0.0.1:9/v1", "prices": PRICES} | fields
    return Provider.objects.create(**fields)


def make_draft(project=None, **changes):
    return lifecycle.create(project or make_project(), make_config(**changes))


# --- making -------------------------------------------------------------------------------------


def test_a_config_becomes_a_draft_with_its_plan_and_its_estimate():
    project = make_project()
    make_provider()
    response = post(client(), "", CONFIG)
    assert response.status_code == 201, response.content
    run = Run.objects.get()
    answer = response.json()
    usd, lines = answer["estimate"]["usd"], answer["estimate"]["lines"]
    assert usd > 0
    assert answer == {
        "id": str(run.pk),
        "name": "Cats",
        "state": "draft",
        "status": "draft",
        "note": "",
        "plan": {"generations": 4, "pairs": 2, "verdict_calls": 4},
        "estimate": {"usd": usd, "known_usd": usd, "unpriced": [], "lines": lines},
    }
    assert [line["model"] for line in lines] == ["model-a", "model-b", "judge-x"]
    assert run.queue.project == project
    assert list(Judge.objects.values_list("name", flat=True))[:2] == ["judge-x", "longer-wins"]
    assert not Call.objects.exists()


def test_with_start_it_begins_at_once():
    make_project()
    make_provider()
    response = post(client(), "", CONFIG | {"start": True})
    assert response.json()["state"] == "generating"
    assert Call.objects.filter(purpose="generate").count() == 4


def test_a_run_that_cannot_be_started_is_not_made():
    make_project()
    response = post(client(), "", CONFIG | {"start": True})
    assert response.status_code == 409
    assert "There is no provider named default" in response.json()["detail"]
    assert not Run.objects.exists()


def test_unknown_prices_are_named_and_no_cost_is_made_up():
    make_project()
    make_provider(prices={"model-a": PRICES["model-a"]})
    estimate = post(client(), "", CONFIG).json()["estimate"]
    assert estimate["usd"] is None
    assert estimate["known_usd"] > 0
    assert estimate["unpriced"] == ["model-b", "judge-x"]


def test_every_error_of_a_config_is_named_by_its_path():
    make_project()
    body = CONFIG | {"models": [{"id": "a"}, {"id": " "}], "judges": [], "votes": 3}
    response = post(client(), "", body)
    assert response.status_code == 422
    assert [error["path"] for error in response.json()["detail"]] == [
        "models[1].id",
        "judges",
        "votes",
    ]
    assert all(error["message"] for error in response.json()["detail"])
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "body, path, words",
    [
        ("", "", "not JSON"),
        ("{", "", "not JSON"),
        ('{"name": NaN}', "", "NaN is not a JSON value"),
        ('{"name": "a", "name": "b"}', "", "is given twice"),
        ("[]", "", "must be an object"),
        ("\x00", "", "not JSON"),
        ("[" * 100_000, "", "nested too deeply"),
        (CONFIG | {"start": "yes"}, "start", "true or false"),
        (CONFIG | {"project": 5}, "project", "must be text"),
        (CONFIG | {"project": "\x00"}, "project", "control characters"),
        (CONFIG | {"name": "a\x00"}, "name", "control characters"),
    ],
)
def test_what_cannot_be_read_is_said(body, path, words):
    make_project()
    response = post(client(), "", body)
    assert response.status_code == 422
    [error] = response.json()["detail"]
    assert error["path"] == path
    assert words in error["message"]


def test_the_project_of_a_demo_must_be_named_where_there_are_several():
    one, other = make_project("One"), make_project("Other")
    response = post(client(), "/demo", {})
    assert response.status_code == 422
    [error] = response.json()["detail"]
    assert error["path"] == "project"
    for project in (one, other):
        assert f"{str(project.pk)[:8]} ({project.name})" in error["message"]
    for wanted in ("Other", str(other.pk), str(other.pk)[:8]):
        assert post(client(), "/demo", {"project": wanted}).status_code == 201
    assert set(Run.objects.values_list("queue__project", flat=True)) == {other.pk}


def test_two_projects_of_one_name_are_told_apart_by_their_identifiers():
    twins = [make_project("Twin"), make_project("Twin")]
    response = post(client(), "", CONFIG | {"project": "Twin"})
    assert response.status_code == 422
    assert all(str(twin.pk)[:8] in response.json()["detail"][0]["message"] for twin in twins)


def test_a_project_that_is_named_is_made_by_keys_that_may():
    named = CONFIG | {"project": "New"}
    elsewhere = client("manage", project=make_project("Other"))
    assert post(elsewhere, "", named).status_code == 422
    assert post(client(), "", named).status_code == 201
    assert Run.objects.get().queue.project.name == "New"


def test_a_key_of_a_project_makes_runs_there_and_sees_no_other():
    mine, other = make_project("Mine"), make_project("Other")
    bound = client("manage", project=mine)
    assert post(bound, "", CONFIG).status_code == 201
    for wanted in ("Other", str(other.pk)):
        response = post(bound, "", CONFIG | {"project": wanted})
        assert response.status_code == 422
        assert "Other (" not in response.content.decode()
    assert Run.objects.get().queue.project == mine


def test_an_estimate_writes_nothing():
    make_provider()
    response = post(client("read"), "/estimate", CONFIG | {"start": True})
    assert response.status_code == 200
    answer = response.json()
    assert answer["plan"] == {"generations": 4, "pairs": 2, "verdict_calls": 4}
    lines = answer["estimate"]["lines"]
    assert [(line["role"], line["model"], line["calls"]) for line in lines] == [
        ("generate", "model-a", 2),
        ("generate", "model-b", 2),
        ("judge", "judge-x", 4),
    ]
    assert answer["estimate"]["usd"] == pytest.approx(sum(line["usd"] for line in lines))
    assert not Run.objects.exists()
    assert not Project.objects.exists()
    assert Provider.objects.count() == 1


def test_an_estimate_names_errors_as_making_does():
    response = post(client("read"), "/estimate", {"name": "x"})
    assert response.status_code == 422
    assert {error["path"] for error in response.json()["detail"]} >= {"models", "judges"}


# --- the demo -----------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [None, {}, {"kind": "svg"}])
def test_a_run_of_the_demo_is_made_of_stored_outputs_and_baselines(body):
    make_project()
    response = post(client(), "/demo", body)
    assert response.status_code == 201
    assert response.json()["plan"] == {"generations": 0, "pairs": 30, "verdict_calls": 0}
    assert response.json()["estimate"] == {"usd": 0, "known_usd": 0, "unpriced": [], "lines": []}
    run = Run.objects.get()
    assert (run.name, run.state, run.config) == ("Drawings", "judging", None)
    assert Verdict.objects.filter(judge__run=run).count() == len(names_for("svg")) * 30


def test_of_several_projects_a_run_of_the_demo_joins_that_of_the_demo():
    make_project(), make_project("Demo"), make_project("Demo of something else")
    browser = client()
    assert post(browser, "/demo").status_code == 201
    assert post(browser, "/demo", {"project": "Project"}).status_code == 201
    names = Run.objects.order_by("created_at").values_list("queue__project__name", flat=True)
    assert list(names) == ["Demo", "Project"]


def test_each_demo_is_a_run_of_its_own_with_its_name():
    make_project()
    browser = client()
    made = [post(browser, "/demo", {"kind": "text", "name": name}).json() for name in "ab"]
    assert [run["name"] for run in made] == ["a", "b"]
    assert made[0]["id"] != made[1]["id"]
    assert Item.objects.count() == 60


@pytest.mark.parametrize(
    "body, path",
    [({"kind": "code"}, "kind"), ({"name": ""}, "name"), ({"nome": "x"}, "nome"), ([], "")],
)
def test_a_demo_that_is_none_is_refused(body, path):
    make_project()
    response = post(client(), "/demo", body)
    assert response.status_code == 422
    assert [error["path"] for error in response.json()["detail"]] == [path]


# --- reading ------------------------------------------------------------------------------------


def test_a_run_says_where_it_stands():
    make_provider()
    run = make_draft(judges=["judge-long", "longer-wins"], budget_usd=2.5)
    Run.objects.filter(pk=run.pk).update(state="stopped", note="Why.", spent_nano=1_500_000_000)
    answer = client("read").get(f"/api/runs/{str(run.pk)[:8]}").json()
    assert (answer["state"], answer["note"], answer["simulated"]) == ("stopped", "Why.", False)
    assert answer["config"]["models"] == [{"id": "model-a"}, {"id": "model-b"}]
    assert answer["project"] == run.queue.project.name
    assert (answer["total"], answer["done"], answer["pending"], answer["votes"]) == (0, 0, 0, 0)
    assert (answer["cost"]["spent_usd"], answer["cost"]["budget_usd"]) == (1.5, 2.5)
    assert answer["progress"]["outputs"] == {"done": 0, "failed": 0, "waiting": 0, "total": 0}
    assert [
        (judge["name"], judge["baseline"], judge["provider"]) for judge in answer["judges"][:2]
    ] == [("judge-long", False, "default"), ("longer-wins", True, "baseline")]


def test_a_run_counts_its_pairs_and_votes():
    run = make_run(pairs=4)
    make_vote(make_voter(run), pairs_of(run)[0])
    Item.objects.filter(pk=pairs_of(run)[3].pk).update(opened_at=None, unusable="no")
    seal_all(run.queue.project)
    answer = client("read").get(f"/api/runs/{run.pk}").json()
    assert (answer["total"], answer["done"], answer["pending"], answer["votes"]) == (3, 1, 2, 1)
    assert answer["config"] is None


def listed_by_twos():
    """The identifiers of all runs, each page by the `Link` of the one before it."""
    browser, address = client("read"), "/api/runs?limit=2"
    while address:
        page = browser.get(address)
        assert len(page.json()) <= 2
        yield from (run["id"] for run in page.json())
        [address] = re.findall('<(.*)>; rel="next"', page.get("Link", "")) or [""]


def test_runs_are_listed_newest_first_page_by_page():
    runs = [make_run() for _ in range(5)]
    assert list(listed_by_twos()) == [str(run.pk) for run in reversed(runs)]


def test_runs_of_the_same_moment_are_all_listed():
    runs = [make_run() for _ in range(5)]
    Run.objects.update(created_at=runs[0].created_at)
    assert sorted(listed_by_twos()) == sorted(str(run.pk) for run in runs)


def test_a_key_of_a_project_lists_only_its_runs():
    run, _ = make_run(), make_run()
    answer = client("read", project=run.queue.project).get("/api/runs").json()
    assert [listed["id"] for listed in answer] == [str(run.pk)]


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "cursor=x", "cursor=1-z", "cursor=-1"])
def test_a_strange_page_is_refused(query):
    response = client("read").get(f"/api/runs?{query}")
    assert response.status_code == 422
    assert query.partition("=")[0] in str(response.json()["detail"])


def test_a_cursor_beyond_all_times_is_refused():
    response = client("read").get(f"/api/runs?cursor={'9' * 30}-{'0' * 32}")
    assert response.status_code == 422


@pytest.mark.slow
def test_lists_and_runs_cost_the_same_however_much_is_there():
    browser = client("read")
    run = make_run()
    browser.get("/api/runs")  # notes that the key was used, once a minute
    few = [queries_of(browser, url) for url in ("/api/runs", f"/api/runs/{run.pk}")]
    large = [make_run(pairs=40, judges=8) for _ in range(12)]
    many = [queries_of(browser, url) for url in ("/api/runs", f"/api/runs/{large[0].pk}")]
    assert many == few


# --- life ---------------------------------------------------------------------------------------


def test_a_draft_is_started_stopped_resumed_and_tried_again():
    make_provider()
    run = make_draft()
    browser = client()
    states = [
        post(browser, f"/{run.pk}/{what}").json()["state"] for what in ("start", "stop", "resume")
    ]
    assert states == ["generating", "stopped", "generating"]
    Call.objects.filter(pk=Call.objects.first().pk).update(state="failed", error="no")
    answer = post(browser, f"/{run.pk}/retry").json()
    assert (answer["calls"], answer["state"]) == (1, "generating")


def test_a_stopped_run_goes_on_with_another_budget():
    make_provider()
    run = make_draft(judges=["longer-wins"], models=["model-a", "model-b"], budget_usd=1)
    Run.objects.filter(pk=run.pk).update(state="stopped", spent_nano=1_000_000_000)
    browser = client()
    refused = post(browser, f"/{run.pk}/resume")
    assert refused.status_code == 409
    assert "larger budget" in refused.json()["detail"]
    assert post(browser, f"/{run.pk}/resume", {"budget_usd": 2.5}).status_code == 200
    assert Run.objects.get(pk=run.pk).budget_nano == 2_500_000_000


@pytest.mark.parametrize("budget", ["0", "-1", "NaN", '"much"', "1e9", "[]"])
def test_a_budget_that_is_none_is_refused(budget):
    run = make_run()
    response = post(client(), f"/{run.pk}/resume", f'{{"budget_usd": {budget}}}')
    assert response.status_code == 422
    assert "budget_usd" in response.content.decode()


def test_a_duplicate_is_a_draft_of_the_same():
    run = make_draft()
    response = post(client(), f"/{run.pk}/duplicate")
    assert response.status_code == 201
    copy = Run.objects.get(pk=response.json()["id"])
    assert (copy.name, copy.state) == (f"{run.name} (copy)", "draft")
    assert copy.config | {"name": run.name} == run.config


@pytest.mark.parametrize(
    "what, words",
    [
        ("start", "only a draft can be started"),
        ("resume", "only a stopped one can be resumed"),
        ("duplicate", "it has no config"),
    ],
)
def test_what_a_run_cannot_do_now_is_a_conflict_in_words(what, words):
    run = make_run()
    response = post(client(), f"/{run.pk}/{what}")
    assert response.status_code == 409
    assert words in response.json()["detail"]

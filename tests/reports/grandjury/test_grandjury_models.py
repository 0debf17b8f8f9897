"""Models and their keys, benchmarks and enrolment, over `/api/v1` and on the page."""

import json
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from reports.grandjury import services
from reports.models import Benchmark, Enrollment, TracedModel
from tests.helpers.grandjury import Model, Person, get, make_voter, post, rows, vote
from tests.helpers.pages import text_of
from tests.makers import key_client, make_project, member_client, seal_all, user_client
from voting.access.keys import USE_NOTED_EVERY, find_key
from voting.models import ApiKey, Item, Member, Queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return Person("ada")


# --- making models ------------------------------------------------------------------------------


def test_a_model_is_made_with_a_key_that_is_told_once(ada):
    response = post(ada.client, "models", {"name": "My Bot", "type": "sdk"})
    assert response.status_code == 200  # at 201 the client prints the secret
    assert response.headers["Cache-Control"] == "no-store"
    made = response.json()
    assert set(made) == {"id", "name", "type", "secret_key", "publishable_key"}
    assert re.match(r"gj_sk_[0-9a-f]{8}_.{43}$", made["secret_key"])
    assert made["publishable_key"].startswith("gj_pub_")
    mine = rows(ada.client, "models/me")
    assert mine == [{"id": made["id"], "name": "My Bot", "slug": "my-bot"}]
    secret = made["secret_key"].rpartition("_")[2]
    assert secret not in json.dumps(list(ApiKey.objects.values()), default=str)
    assert rows(key_client(made["secret_key"]), "models/me") == mine


def test_the_publishable_key_opens_nothing(ada):
    model = ada.model()
    assert get(key_client(model.row.publishable_key), "models/me").status_code == 401


def test_what_was_told_of_a_model_is_in_its_detail(ada):
    told = {"name": "Bot", "description": "A bot.", "metadata": {"team": ["a", 1]}}
    made = post(ada.client, "models", told).json()
    detail = rows(ada.client, f"models/{made['id']}")
    assert detail["description"] == "A bot."
    assert detail["metadata"] == {"team": ["a", 1]}
    assert "secret_key" not in detail
    [enrolled] = detail["enrollments"]
    assert enrolled["title"] == "Models of ada"
    assert enrolled["status"] == "active"
    assert rows(ada.client, "models/bot") == detail


def test_models_of_one_name_have_slugs_of_their_own(ada):
    slugs = [ada.model("Bot").row.slug for _ in range(3)]
    assert slugs[0] == "bot"
    assert len(set(slugs)) == 3
    assert ada.model("你好").row.slug == "model"


def test_models_of_a_person_are_in_one_project_unless_their_key_is_for_another(ada):
    first, second = ada.model("One"), ada.model("Two")
    assert first.benchmark == second.benchmark
    project = make_project("Support")
    made = post(Person("ada", project=project).client, "models", {"name": "Three"}).json()
    assert TracedModel.objects.get(pk=made["id"]).project == project
    assert [row["name"] for row in rows(ada.client, "models/me")] == ["One", "Two", "Three"]
    for_one = Person("ada", project=project).client
    assert [row["name"] for row in rows(for_one, "models/me")] == ["Three"]
    namesake = Person("bob").model("One")
    assert namesake.benchmark != first.benchmark


def test_the_queue_is_one_of_pass_and_flag(ada):
    queue = ada.model().benchmark.queue
    assert (queue.kind, queue.ballot, queue.is_open) == ("pass_flag", ["pass", "flag"], True)
    assert user_client("ada").get(f"/runs/{queue.run.pk}/people/").status_code == 200
    assert user_client("ada").get(f"/runs/{queue.run.pk}/").status_code == 200


@pytest.mark.parametrize(
    "body, path",
    [
        ({}, "name"),
        ({"name": " "}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "Bot", "type": 5}, "type"),
        ({"name": "Bot", "description": "\ud800"}, "description"),
        ({"name": "Bot", "metadata": {"a": [{"b": "\x00"}]}}, "metadata"),
        ({"name": "Bot", "metadata": ["a"]}, "metadata"),
    ],
)
def test_what_is_wrong_with_a_model_is_named(ada, body, path):
    response = post(ada.client, "models", json.dumps(body))
    assert response.status_code == 422
    assert [each["path"] for each in response.json()["detail"]] == [path]
    assert not TracedModel.objects.exists()


# --- keys ---------------------------------------------------------------------------------------


def test_no_key_a_wrong_key_and_a_key_for_other_addresses(ada):
    model = ada.model()
    for wrong in ("", "gj_pat_0_x", f"{ada.token}x", model.secret.replace("gj_sk", "gj_pat")):
        response = get(key_client(wrong), "models/me")
        assert (response.status_code, response.json()) == (401, {"detail": "Unauthorized"})
    assert Client().get("/api/v1/models/me").status_code == 401
    for token in (ada.token, model.secret):
        assert key_client(token).get("/api/runs").status_code == 401


def test_a_revoked_key_and_that_of_a_person_who_may_not_log_in(ada):
    model = ada.model()
    services.revoke_key(model.row)
    assert model.log().status_code == 401
    ada.user.is_active = False
    ada.user.save()
    assert get(ada.client, "models/me").status_code == 401


def test_a_new_key_ends_the_old_one(ada):
    model = ada.model()
    token = services.renew_key(model.row)
    assert model.log().status_code == 401
    assert rows(key_client(token), "models/me")[0]["name"] == "Bot"


def test_the_last_use_is_written_once_a_minute(ada, django_assert_num_queries):
    key = ApiKey.objects.get(user=ada.user)
    assert key.last_used_at is None
    with django_assert_num_queries(2):
        assert find_key(ada.token, "gj_pat") == key
    key.refresh_from_db()
    used = key.last_used_at
    assert timezone.now() - used < timedelta(seconds=10)
    with django_assert_num_queries(1):
        find_key(ada.token, "gj_pat")
    ApiKey.objects.update(last_used_at=used - USE_NOTED_EVERY - timedelta(seconds=1))
    find_key(ada.token, "gj_pat")
    key.refresh_from_db()
    assert key.last_used_at >= used


# --- benchmarks ---------------------------------------------------------------------------------


@pytest.fixture
def arena(ada):
    """A benchmark of Ada's that is open to enrolment."""
    benchmark = services.benchmark_of(make_project("Jokes at work"), ada.user)
    services.open_to_enrolment(benchmark, True)
    return benchmark


def test_benchmarks_that_are_open_are_challenges(ada, arena):
    ada.model()
    wanted = {"id": str(arena.project_id), "title": "Jokes at work", "slug": "jokes-at-work"}
    assert rows(ada.client, "challenges") == [wanted]
    assert rows(ada.model("Two").client, "challenges") == [wanted]


@pytest.mark.parametrize("name", ["slug", "project_id", "queue_id"])
def test_a_model_is_enrolled_once(arena, name):
    bob = Person("bob")
    model = bob.model()
    path = f"models/{model.row.slug}/enroll/{getattr(arena, name)}"
    response = post(bob.client, path, {"endpoint_config": None})
    assert response.status_code == 200
    enrollment = Enrollment.objects.get(benchmark=arena)
    assert response.json() == {
        "enrollment_id": str(enrollment.pk),
        "model_id": str(model.row.pk),
        "evaluation_id": str(arena.queue_id),
        "status": "active",
    }
    assert post(bob.client, path).json() == response.json()
    assert len(rows(bob.client, "models/bot")["enrollments"]) == 2


def test_an_endpoint_is_refused_and_kept_nowhere(arena, caplog):
    bob = Person("bob")
    model = bob.model()
    endpoint = {"endpoint": "https://example.org", "api_key": "sk-secret"}
    path = f"models/{model.row.pk}/enroll/{arena.slug}"
    response = post(bob.client, path, {"endpoint_config": endpoint})
    assert response.status_code == 422
    [error] = response.json()["detail"]
    assert error["path"] == "endpoint_config"
    assert "calls no models" in error["message"]
    assert "sk-secret" not in response.content.decode() + caplog.text
    assert not Enrollment.objects.filter(benchmark=arena).exists()


def test_what_is_closed_or_not_there_takes_nobody(ada):
    bob, closed = Person("bob"), ada.model().benchmark
    model = bob.model()
    response = post(bob.client, f"models/{model.row.pk}/enroll/{closed.slug}")
    assert (response.status_code, response.json()["detail"]) == (
        409,
        "models-of-ada is not open to enrolment",
    )
    assert post(bob.client, f"models/{model.row.pk}/enroll/nothing").status_code == 404
    assert get(Client(), f"benchmarks/{closed.slug}/leaderboard").status_code == 404


def test_traces_go_to_every_benchmark_of_a_model(arena):
    model = Person("bob").model()
    services.enroll(model.row, arena)
    assert model.log("t-1").status_code == 201
    assert model.log("t-1").status_code == 200
    queues = Item.objects.values_list("queue", "a__project")
    assert set(queues) == {
        (arena.queue_id, arena.project_id),
        (model.benchmark.queue_id, model.row.project_id),
    }


# --- the page -----------------------------------------------------------------------------------


def told(response):
    assert response.status_code == 200

    [secret] = set(re.findall(r"gj_(?:sk|pat)_\w{8}_[\w-]{43}", response.content.decode()))
    assert secret not in str(response.cookies)
    return secret


def test_a_model_and_its_keys_on_the_page():
    browser = user_client("ada")
    assert b"None yet" in browser.get("/models/").content
    secret = told(browser.post("/models/new", {"model-name": "Bot", "model-project": ""}))
    page = browser.get("/models/").content.decode()
    assert "last used: never" in page
    assert secret not in page
    rows(key_client(secret), "models/me")
    assert f"last used: {timezone.now():%Y-%m-%d}" in browser.get("/models/").content.decode()
    model = TracedModel.objects.get()
    renewed = told(browser.post(f"/models/{model.pk}/key"))
    assert get(key_client(secret), "models/me").status_code == 401
    browser.post(f"/models/{model.pk}/revoke")
    assert get(key_client(renewed), "models/me").status_code == 401
    assert "revoked on" in browser.get("/models/").content.decode()


def test_a_persons_key_on_the_page():
    browser = user_client("ada")
    fields = {"key-name": "laptop", "key-scopes": ["read"], "key-project": ""}
    secret = told(browser.post("/models/keys/new", fields))
    assert rows(key_client(secret), "models/me") == []
    page = browser.get("/models/").content.decode()
    assert "May read results, for every project" in page
    key = ApiKey.objects.get()
    assert user_client("bob").post(f"/models/keys/{key.pk}/revoke").status_code == 404
    assert browser.post(f"/models/keys/{key.pk}/revoke").status_code == 302
    assert get(key_client(secret), "models/me").status_code == 401


def test_a_page_of_keys_shows_one_without_a_scope_and_one_with_another(ada):
    for scopes in ([], ["vote"]):
        services.create_person_key(ada.user, "odd", scopes, None)
    page = text_of(user_client("ada").get("/models/"))
    assert "May do nothing, for every project" in page
    assert "May vote, for every project" in page


def test_the_key_of_a_model_whose_owner_has_left_logs_and_reads_nothing():
    project = make_project("Here")
    client = member_client(project, "owner")
    ben = User.objects.create_user("ben")
    member = Member.objects.create(project=project, user=ben, role="evaluator")
    model = Model(*services.create_model(ben, project, "Bot"))
    services.create_person_key(ben, "laptop", ["read"], project)
    vote(make_voter(project), *model.logged("t-1"))
    seal_all(project)
    arena = f"benchmarks/{model.benchmark.slug}/votes"
    reads = ("models/me", model.path, f"models/{model.row.slug}", arena)
    assert all(rows(model.client, path) for path in reads)
    answer = client.post(f"/projects/{project.pk}/members/{member.pk}", {"remove": "yes"})
    assert answer.status_code == 302
    shown = text_of(client.get(answer["Location"]))
    assert "ben is no longer a member. Their keys remain: " in shown
    assert f"“{model.row.api_key}” only logs traces and “laptop" in shown
    assert "does nothing. Revoke them on the page Keys." in shown
    assert rows(model.client, "models/me") == rows(model.client, arena) == []
    for path in (model.path, f"models/{model.row.slug}"):
        assert get(model.client, path).status_code == 404
    assert model.log("t-2").status_code == 201


def test_a_form_that_is_wrong_says_so():
    browser = user_client("ada")
    for path in ("/models/new", "/models/keys/new"):
        response = browser.post(path, {})
        assert response.status_code == 422
        assert b"Please look at this again" in response.content
    assert not TracedModel.objects.exists()


def test_a_benchmark_is_opened_and_closed_by_who_runs_it():
    browser = user_client("ada")
    browser.post("/models/new", {"model-name": "Bot"})
    benchmark = Benchmark.objects.get()
    path = f"/models/benchmarks/{benchmark.pk}"
    assert user_client("bob").post(path, {"open": "yes"}).status_code == 404
    browser.post(path, {"open": "yes"})
    assert Benchmark.objects.get().is_open
    browser.post(path, {"open": "no"})
    assert not Benchmark.objects.get().is_open


def test_the_page_costs_the_same_however_many_models(ada, django_assert_max_num_queries):
    for number in range(8):
        ada.model(f"Bot {number}")
        Person("ada")
    browser = user_client("ada")
    with django_assert_max_num_queries(11):
        browser.get("/models/")
    assert Queue.objects.count() == 1

"""Whose money a provider spends: the installation's is for all, a project's for its runs alone."""

import pytest

from humanjudge.core.validation import ConfigInvalid
from judge_eval.judging import trial
from judge_eval.judging.config.run_config import JoiningJudges
from judge_eval.judging.provider_access import make_embedder
from judge_eval.models import Call, Judge, Provider, Run, Verdict
from judge_eval.runs import lifecycle
from judge_eval.runs.lifecycle import LifecycleRefused
from tests.helpers.pages import text_of
from tests.helpers.run_maker import go_on, make_judging
from tests.helpers.run_rows import CONFIG, PRICES, make_config, make_provider
from tests.makers import key_client, make_key, make_project, make_run, member_client
from tests.provider import provider

pytestmark = pytest.mark.django_db


@pytest.fixture
def here():
    return make_project("Here")


@pytest.fixture
def there():
    project = make_project("There")
    models = ("model-a", "model-b", "judge-long", "judge-hash")
    make_provider(project=project, name="theirs", prices=dict.fromkeys(models, PRICES))
    return project


def draft_in(project, name):
    return lifecycle.create(project, make_config(provider=name))


@pytest.mark.parametrize("name", ["theirs", "nobodys"])
def test_elsewhere_it_is_as_if_there_were_none(here, there, name):
    run, client = draft_in(here, name), member_client(here, "evaluator")
    unknown = f"There is no provider named {name}."
    assert unknown in text_of(client.get(f"/runs/{run.pk}/draft/"))
    answer = client.post(f"/runs/{run.pk}/start")
    assert (answer.status_code, unknown in text_of(answer)) == (409, True)
    assert not Call.objects.exists()
    scripts = key_client(make_key("manage", project=here)[1])
    config = CONFIG | {"provider": name, "start": True}
    answer = scripts.post("/api/runs", config, content_type="application/json")
    assert (answer.status_code, answer.json()["detail"]) == (409, unknown)
    assert Run.objects.count() == 1
    with pytest.raises(LifecycleRefused, match=unknown):
        trial._judge_to_try(run, Judge.objects.filter(run=run, model="judge-long").get().pk)
    joining = JoiningJudges(judges=[{"id": "judge-new"}], provider=name)
    with pytest.raises(LifecycleRefused, match=unknown):
        lifecycle.add_judges_to(make_run(here).pk, joining)
    with pytest.raises(ConfigInvalid, match=f"no provider is called '{name}'"):
        make_embedder({"provider": name, "model": "m"}, project=here.pk)


def test_at_home_it_is_asked(there):
    run = draft_in(there, "theirs")
    assert lifecycle.start(run.pk).state == "generating"
    assert make_embedder({"provider": "theirs", "model": "m"}, project=there.pk)


@pytest.mark.parametrize("place, known", [("here", False), ("there", True)])
def test_its_prices_are_told_to_its_project_alone(here, there, place, known):
    scripts = key_client(make_key("read", project={"here": here, "there": there}[place])[1])
    config = CONFIG | {"provider": "theirs"}
    answer = scripts.post("/api/runs/estimate", config, content_type="application/json").json()
    assert (answer["estimate"]["unpriced"] == []) == known


def test_forms_offer_what_runs_may_use(here, there):
    make_provider()
    client = member_client(here, "evaluator")
    assert b"theirs" not in client.get("/runs/new/").content
    member_client(there, "viewer", name="evaluator")
    assert b"theirs" not in client.get("/runs/new/").content
    member_client(there, "owner", name="evaluator")
    page = client.get("/runs/new/")
    assert b"theirs" in page.content
    form = page.context["form"].initial | {"models": "a\nb", "prompts": "p", "name": "Run"}
    form = {name: value for name, value in form.items() if value is not None}
    answer = client.post("/runs/new/", form | {"project": here.pk, "provider": "theirs"})
    assert answer.status_code == 422
    assert "This provider belongs to another project" in text_of(answer)
    assert not Run.objects.exists()


def test_only_who_may_use_it_sees_and_tries_it(here, there):
    elsewhere = member_client(here, "owner")
    assert "theirs" not in text_of(elsewhere.get("/providers/"))
    assert elsewhere.get("/providers/?trial=theirs").status_code == 404
    assert elsewhere.post("/providers/theirs/try", {"model": "m"}).status_code == 404
    assert Provider.objects.get(name="theirs").trial is None
    its_own = member_client(there, "evaluator")
    assert "theirs" in text_of(its_own.get("/providers/"))
    assert its_own.post("/providers/theirs/try", {"model": "m"}).status_code == 302
    assert Provider.objects.get(name="theirs").trial.model == "m"


def test_a_run_whose_project_lost_it_says_so_and_spends_nothing(there):
    with provider() as at:
        run = make_judging(at)
        asked = len(at.requests)
        Provider.objects.update(project=there)
        run = go_on(run)
        assert len(at.requests) == asked
    refused = "runs of this project may not use the provider default"
    assert Verdict.objects.get().error == f"as stored: {refused}"
    assert {*Call.objects.filter(purpose="judge").values_list("state")} == {("failed",)}


def test_nor_is_it_resumed(there):
    with provider() as at:
        run = make_judging(at)
        lifecycle.stop(run.pk)
        Provider.objects.update(project=there)
        with pytest.raises(LifecycleRefused, match="may not use default"):
            lifecycle.resume(run.pk)
        Provider.objects.update(project=run.queue.project)
        assert lifecycle.resume(run.pk).state == "judging"

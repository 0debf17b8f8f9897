"""A package that is installed beside the product, in real web servers and workers."""

import json

import httpx
import pytest

from judge_eval.models import Call, Judge, Provider, Verdict
from tests.helpers.extension_package import install
from tests.helpers.waiting import eventually
from tests.makers import make_key, make_project, user_client
from tests.process.processes import HOST, Site, test_database_url
from tests.provider import provider_process
from tests.voting.ballot.test_under_fire import forget_all_tasks
from voting.models import ApiKey

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.postgresql_only,
]
CONFIG = {
    "name": "A study",
    "kind": "text",
    "models": ["model-a", "model-b"],
    "judges": [
        {"id": "three", "type": "consensus", "parts": ["judge-one", "judge-long", "judge-two"]},
        "judge-long",
        "fewer-words-win",
    ],
    "prompts": ["Say hello.", "Say goodbye.", "Say thanks."],
    "budget_usd": 1,
    "start": True,
}
PRICE = {"input": "1", "output": "1"}
MODELS = ("model-a", "model-b", "judge-one", "judge-two", "judge-long")


def test_a_run_is_judged_by_the_package_until_it_is_turned_off(
    tmp_path, settings, static, transactional_db
):
    (packages := tmp_path / "packages").mkdir()
    environment = {"SECRET_KEY": settings.SECRET_KEY, "PYTHONPATH": str(install(packages))}
    url, broker = test_database_url(), settings.CELERY_BROKER_URL
    forget_all_tasks()
    _, token = make_key(ApiKey.Scope.MANAGE, ApiKey.Scope.READ, project=make_project())
    session = user_client("owner").cookies["sessionid"].value
    with provider_process() as model, Site(tmp_path, url, broker, afresh=True, **environment) as s:
        prices = dict.fromkeys(MODELS, PRICE)
        Provider.objects.create(name="default", base_url=model.base_url, prices=prices)
        s.serve_static(static)
        s.web(), s.worker(), s.beat()
        at = f"http://{HOST}:{s.port}"
        key = {"Authorization": f"Bearer {token}"}
        made = httpx.post(f"{at}/api/runs", content=json.dumps(CONFIG), headers=key, timeout=60)
        assert made.status_code == 201, made.text
        run = made.json()["id"]
        verdicts = Verdict.objects.filter(judge__run=run)
        judges = Judge.objects.filter(run=run).count()
        eventually(lambda: verdicts.exclude(state="waiting").count() == 3 * judges)
        assert set(verdicts.values_list("state", flat=True)) <= {"done", "failed"}
        judge = Judge.objects.get(run=run, name="three")
        assert judge.verdicts.filter(state="done").exists()
        asked = Call.objects.filter(verdict__judge=judge)
        assert (
            asked.filter(state="done", cost_nano__gt=0, lease=None).count() == asked.count() == 18
        )
        with httpx.Client(base_url=at, cookies={"sessionid": session}, timeout=60) as browser:
            board = browser.get(f"/runs/{run}/")
            assert "three" in board.text
            page = browser.get("/extensions/")
            assert "humanjudge-consensus 1.0" in page.text
            form = {"state": "off", "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
            assert browser.post("/extensions/consensus", data=form).status_code == 302
        refused = httpx.post(f"{at}/api/runs", content=json.dumps(CONFIG), headers=key, timeout=60)
        assert refused.status_code == 422
        [error] = refused.json()["detail"]
        assert error["path"] == "judges[0].type"
        assert "consensus is turned off" in error["message"]

"""The local model provider itself: what other tests and the benches take for granted."""

import contextlib
import http.client
import json
import sys
from itertools import pairwise

import pytest

from judge_eval.judging.prompts.judge import JudgeQuestion, messages, schema
from tests.helpers.waiting import eventually
from tests.process.processes import ROOT
from tests.provider import HOST, provider
from tests.provider_behaviour import Conduct, fate

TEXTS = [f"output {number} " * (number + 1) for number in range(12)]


@pytest.fixture(scope="module")
def server():
    with provider() as running:
        yield running


@pytest.fixture
def model(server):
    server.control(reset=True, mode="ok", rates={}, models=[], latency_ms=0, retry_after=None)
    return server


def post(model, path, body, **headers):
    connection = http.client.HTTPConnection(HOST, model.port, timeout=20)
    try:
        connection.request("POST", f"/v1{path}", json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def asked(first, second, judge="judge-hash", kind="text"):
    content = messages(
        "1", JudgeQuestion("AB"), kind=kind, prompt="A", rubric="B", outputs=[first, second]
    )
    return {"model": judge, "messages": content}


def verdict(model, *args, **more):
    status, reply = post(model, "/chat/completions", asked(*args, **more))
    assert status == 200
    return json.loads(reply["choices"][0]["message"]["content"])


def generated(model, painter, prompt):
    body = {"model": painter, "messages": [{"role": "user", "content": prompt}]}
    return post(model, "/chat/completions", body)[1]["choices"][0]["message"]["content"]


class TestVerdicts:
    @pytest.mark.parametrize(
        "judge,winner",
        [
            ("judge-first", "A"),
            ("acme/judge-second-v2", "B"),
            ("judge-tie", "tie"),
            ("judge-bad", "both_bad"),
            ("judge-long", "B"),
        ],
    )
    def test_judges_with_a_rule(self, model, judge, winner):
        said = verdict(model, "short", "the longer one", judge=judge)
        assert said["winner"] == winner
        assert said.keys() == schema(JudgeQuestion("AB"))["properties"].keys()

    @pytest.mark.parametrize("judge", ["judge-hash", "judge-long", "any-other"])
    @pytest.mark.parametrize("kind", ["text", "svg"])
    def test_a_judge_of_contents_does_not_mind_the_order(self, model, judge, kind):
        outputs = [text.encode() if kind == "svg" else text for text in TEXTS]
        for first, second in pairwise(outputs):
            here = verdict(model, first, second, judge=judge, kind=kind)
            there = verdict(model, second, first, judge=judge, kind=kind)
            assert {here["winner"], there["winner"]} == {"A", "B"}
            assert here["score_a"] == there["score_b"]


class TestConduct:
    def test_rates_are_shares_and_the_same_for_a_seed(self):
        conduct = Conduct(rates={"429": 0.2, "500": 0.1}, seed=3)
        fates = [fate(conduct, "m", str(number), 1) for number in range(2000)]
        assert fates == [fate(conduct, "m", str(number), 1) for number in range(2000)]
        assert fates.count("429") == pytest.approx(400, abs=80)
        assert fates.count("500") == pytest.approx(200, abs=60)
        assert fates.count("ok") == pytest.approx(1400, abs=100)

    def test_what_is_unknown_is_refused(self, model):
        for wrong in ({"mood": 1}, {"mode": "sleepy"}, {"rates": {"sleepy": 1}}):
            with pytest.raises(ValueError, match="unknown"):
                model.control(**wrong)


class TestLog:
    def test_requests_without_keys_and_counts_by_body(self, model):
        for text in ("a", "a", "b"):
            post(model, "/chat/completions", asked(text, "c"), Authorization="Bearer sk-1")
        log = model.log()
        assert sorted(log["counts"].values()) == [1, 2]
        assert log["answered"] == log["counts"]
        assert [sent["authorized"] for sent in log["requests"]] == [True] * 3
        assert "sk-1" not in json.dumps(log)

    def test_gauges_of_what_is_under_way(self):
        with provider(mode="slow") as slow, contextlib.ExitStack() as under_way:
            for number in range(6):
                connection = http.client.HTTPConnection(HOST, slow.port, timeout=20)
                under_way.callback(connection.close)
                body = asked("a", "b", judge=f"judge-{number % 2}")
                connection.request("POST", "/v1/chat/completions", json.dumps(body))
            eventually(lambda: slow.log()["now"] == 6)
            log = slow.log()
        assert (log["peak"], log["peaks"]) == (6, {"judge-0": 3, "judge-1": 3})


class TestSource:
    def test_standard_library_only(self):
        for name in ("provider", "provider_server", "provider_behaviour", "provider_models"):
            source = ROOT.joinpath("tests", f"{name}.py").read_text()
            imported = [
                line.split()[1].partition(".")[0]
                for line in source.splitlines()
                if line.startswith(("import ", "from "))
            ]
            assert set(imported) <= {"tests", *sys.stdlib_module_names}

"""The local model provider itself: what other tests and the benches take for granted."""

import base64
import contextlib
import http.client
import json
import math
import struct
import sys
from itertools import pairwise

import pytest

from judge_eval.prompts.judge import JudgeQuestion, messages, repair, schema
from tests.helpers.waiting import eventually
from tests.process.processes import ROOT
from tests.provider import HOST, provider, provider_process
from tests.provider_behaviour import MODES, Conduct, fate
from tests.provider_models import outputs_shown
from voting.pictures.screening import screen

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

    def test_judges_differ(self, model):
        pairs = list(pairwise(TEXTS))
        one, other = (
            [verdict(model, *pair, judge=judge)["winner"] for pair in pairs]
            for judge in ("judge-hash-1", "judge-hash-2")
        )
        assert one != other
        assert set(one) == {"A", "B"}

    def test_an_attempt_at_repair_is_about_the_same_outputs(self):
        first = asked("one", "two")["messages"]
        assert outputs_shown(repair(first, "Hm.", "no JSON")) == (b"one", b"two")
        assert outputs_shown(first) == (b"one", b"two")

    def test_a_schema_without_outputs_is_an_error(self, model):
        body = {"model": "m", "messages": [], "response_format": {"type": "json_schema"}}
        assert post(model, "/chat/completions", body)[0] == 400


class TestGeneration:
    def test_an_svg_in_a_fence_that_a_screening_lets_through(self, model):
        reply = generated(model, "painter-1", "Draw an SVG of a fox.")
        before, fence, after = reply.split("```")
        assert before.strip()
        assert after.strip()
        assert screen(fence.removeprefix("svg\n"))

    @pytest.mark.parametrize("prompt", ["Draw an SVG of a fox.", "Write about a fox."])
    def test_models_differ_and_repeat_themselves(self, model, prompt):
        replies = [generated(model, f"painter-{n}", prompt) for n in (1, 2, 1)]
        assert replies[0] == replies[2] != replies[1]


class TestEmbeddings:
    def vectors(self, model, *texts, **more):
        _, reply = post(model, "/embeddings", {"model": "e", "input": list(texts), **more})
        return [item["embedding"] for item in reply["data"]]

    def test_texts_that_share_words_are_near(self, model):
        fox, also, tax = self.vectors(model, "a red fox", "The red FOX", "tax return form")
        assert math.hypot(*fox) == pytest.approx(1)
        assert sum(map(float.__mul__, fox, also)) > sum(map(float.__mul__, fox, tax))

    def test_packed_as_the_sdk_asks(self, model):
        (plain,) = self.vectors(model, "fox", dimensions=8)
        (packed,) = self.vectors(model, "fox", dimensions=8, encoding_format="base64")
        assert struct.unpack("<8f", base64.b64decode(packed)) == pytest.approx(plain)


class TestConduct:
    def test_a_fault_for_so_many_requests(self, model):
        model.control(mode="500", times=2)
        statuses = [post(model, "/chat/completions", asked("a", "b"))[0] for _ in range(4)]
        assert statuses == [500, 500, 200, 200]
        assert model.log()["modes"] == {"500": 2, "ok": 2}

    def test_a_fault_for_one_model(self, model):
        model.control(mode="500", models=["judge-a"])
        statuses = [
            post(model, "/chat/completions", asked("a", "b", judge=judge))[0]
            for judge in ("judge-a", "judge-b")
        ]
        assert statuses == [500, 200]

    def test_rates_are_shares_and_the_same_for_a_seed(self):
        conduct = Conduct(rates={"429": 0.2, "500": 0.1}, seed=3)
        fates = [fate(conduct, "m", str(number), 1) for number in range(2000)]
        assert fates == [fate(conduct, "m", str(number), 1) for number in range(2000)]
        assert fates.count("429") == pytest.approx(400, abs=80)
        assert fates.count("500") == pytest.approx(200, abs=60)
        assert fates.count("ok") == pytest.approx(1400, abs=100)

    def test_who_asks_again_may_fare_better(self):
        conduct = Conduct(rates={"429": 0.5})
        assert {fate(conduct, "m", "same", turn) for turn in range(50)} == {"429", "ok"}

    def test_what_is_unknown_is_refused(self, model):
        for wrong in ({"mood": 1}, {"mode": "sleepy"}, {"rates": {"sleepy": 1}}):
            with pytest.raises(ValueError, match="unknown"):
                model.control(**wrong)

    @pytest.mark.parametrize("mode", sorted(MODES.keys() - {"slow", "drip", "drip_head", "huge"}))
    def test_every_mode_is_sent(self, model, mode):
        model.control(mode=mode)
        try:
            post(model, "/chat/completions", asked("a", "b"))
        except (http.client.IncompleteRead, json.JSONDecodeError):
            assert mode in {"disconnect", "malformed"}
        assert model.log()["modes"] == {mode: 1}


class TestLog:
    def test_requests_without_keys_and_counts_by_body(self, model):
        for text in ("a", "a", "b"):
            post(model, "/chat/completions", asked(text, "c"), Authorization="Bearer sk-1")
        log = model.log()
        assert sorted(log["counts"].values()) == [1, 2]
        assert log["answered"] == log["counts"]
        assert [sent["authorized"] for sent in log["requests"]] == [True] * 3
        assert "sk-1" not in json.dumps(log)

    def test_a_failed_request_is_not_answered(self, model):
        model.control(mode="disconnect")
        with pytest.raises(http.client.IncompleteRead):
            post(model, "/chat/completions", asked("a", "b"))
        log = model.log()
        assert list(log["counts"].values()) == [1]
        assert log["answered"] == {}

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

    def test_gauges_of_what_is_over(self, model):
        for _ in range(2):
            post(model, "/chat/completions", asked("a", "b"))
        log = model.log()
        assert (log["now"], log["peak"], log["peaks"]) == (0, 1, {"judge-hash": 1})

    def test_a_key_of_its_own(self):
        with provider(key="sk-right") as strict:
            body = asked("a", "b")
            for key, status in (("sk-right", 200), ("sk-wrong", 401)):
                reply = post(strict, "/chat/completions", body, Authorization=f"Bearer {key}")
                assert reply[0] == status
            assert post(strict, "/chat/completions", body)[0] == 401


class TestProcess:
    def test_taken_away_and_brought_back_on_its_port(self):
        with provider_process(mode="500") as model:
            body = asked("a", "b")
            assert post(model, "/chat/completions", body)[0] == 500
            model.kill()
            with pytest.raises(ConnectionRefusedError):
                post(model, "/chat/completions", body)
            model.start()
            assert post(model, "/chat/completions", body)[0] == 500
            assert len(model.requests) == 1

    def test_standard_library_only(self):
        for name in ("provider", "provider_server", "provider_behaviour", "provider_models"):
            source = ROOT.joinpath("tests", f"{name}.py").read_text()
            imported = [
                line.split()[1].partition(".")[0]
                for line in source.splitlines()
                if line.startswith(("import ", "from "))
            ]
            assert set(imported) <= {"tests", *sys.stdlib_module_names}

"""The same question is not paid for twice, and another question is never taken for the same."""

import pytest

from judge_eval.judging.requests import question_of
from judge_eval.models import Call, Provider, Verdict
from judge_eval.runs import lifecycle
from judge_eval.runs.progress import progress_of
from tests.helpers.run_maker import PRICES, go_on, make_judging, make_started, says
from tests.makers import pairs_of
from tests.provider import provider
from voting.models import Inference

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

PROMPTS = [f"Say {n}." for n in range(3)]
NAMES = ("model-a", "model-b", "judge-long", "judge-hash")


def copy_of(run):
    return lifecycle.start(lifecycle.duplicate(run.pk).pk)


def figures_of(run):
    """All that a run has to show, to be compared."""
    calls = Call.objects.filter(run=run).order_by("pk")
    verdicts = Verdict.objects.filter(judge__run=run).order_by("pk")
    run.refresh_from_db()
    return list(calls.values()), list(verdicts.values()), run.spent_nano, progress_of(run).cost_usd


def opinions_of(run):
    """What each judge said of each pair, whichever output is A there."""
    said = {}
    for verdict in Verdict.objects.filter(judge__run=run).select_related("judge", "item"):
        a, b = verdict.item.a, verdict.item.b
        best = {"A": a.generator, "B": b.generator}.get(verdict.winner, verdict.winner)
        scores = {a.generator: verdict.score_a, b.generator: verdict.score_b}
        said[verdict.judge.name, a.prompt] = best, scores, verdict.consistent
    return said


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"verdict_orders": "random"},
        {"judging": {"samples": 2}},
        {"kind": "svg", "prompts": ["a cat", "a dog"]},
    ],
    ids=["both orders", "one order", "samples", "drawings"],
)
def test_a_copy_of_a_run_asks_nothing_and_costs_nothing(at, changes):
    made = {"judges": ["judge-long", "judge-hash"], "prompts": PROMPTS[:2]} | changes
    run = go_on(make_started(at, {"prices": dict.fromkeys(NAMES, PRICES)}, **made))
    assert (run.state, run.spent_nano > 0) == ("voting", True)
    before = figures_of(run)
    at.control(reset=True)
    copy = go_on(copy_of(run))
    assert copy.state == "voting"
    assert at.requests == []
    assert figures_of(run) == before
    assert (copy.spent_nano, progress_of(copy).cost_usd) == (0, 0)
    assert progress_of(copy).reused == progress_of(run).attempts
    originals = {call.request_hash: call.pk for call in Call.objects.filter(run=run)}
    for call in Call.objects.filter(run=copy):
        assert (call.state, call.cost_nano, call.prompt_tokens) == ("done", 0, None)
        assert call.reused_id == originals[call.request_hash]
    assert opinions_of(copy) == opinions_of(run)


def test_a_copy_of_a_copy_names_the_call_that_was_answered(at):
    run = go_on(make_judging(at))
    go_on(copy_of(run))
    last = go_on(copy_of(run))
    reused = Call.objects.filter(run=last).values_list("reused__run", flat=True)
    assert set(reused) == {run.pk}


def test_a_run_that_shares_a_part_asks_only_for_the_rest(at):
    go_on(make_started(at, judges=["judge-long"], prompts=PROMPTS[:2]))
    at.control(reset=True)
    again = go_on(make_started(at, judges=["judge-long"], prompts=PROMPTS[1:3]))
    assert Call.objects.filter(run=again, reused__isnull=False).count() == 2 + 2
    assert len(at.requests) == 2 + 2


# One that a provider refuses, and one whose reply cannot be used; the others are of these kinds.
@pytest.mark.parametrize(
    "mode",
    [
        "insufficient_quota",
        pytest.param("refuse", marks=pytest.mark.thorough),
        pytest.param("prose", marks=pytest.mark.thorough),
        "winner as both",
    ],
)
def test_a_failure_is_never_reused(at, mode):
    run = make_judging(at)
    at.control(mode=mode)
    go_on(run)
    assert set(Verdict.objects.values_list("state", flat=True)) == {"failed"}
    at.control(mode="ok", reset=True)
    copy = go_on(copy_of(run))
    assert Verdict.objects.get(judge__run=copy).state == "done"
    assert len(at.requests) == 2
    assert Call.objects.filter(run=copy, purpose="judge", reused__isnull=False).count() == 0


def test_what_was_changed_or_repaired_is_said_of_a_reused_reply_too(at):
    says(at, "", choices=[cut_short("A long story that")], models=["model-a"])
    run = make_judging(at, verdict_orders="random")
    says(at, "I like both.", times=1, models=["judge-long"])
    copy = go_on(copy_of(go_on(run)))
    output, verdict = (
        Call.objects.get(run=copy, model=model) for model in ("model-a", "judge-long")
    )
    assert output.changes == ["it reached max_tokens"]
    assert verdict.changes[0].startswith("asked once more, since it has no JSON object")
    assert verdict.winner in ("A", "B")


def cut_short(text):
    return {"message": {"role": "assistant", "content": text}, "finish_reason": "length"}


def test_another_address_of_the_provider_is_another_question(at):
    run = go_on(make_judging(at))
    with provider() as elsewhere:
        Provider.objects.update(base_url=elsewhere.base_url)
        go_on(copy_of(run))
        assert len(elsewhere.requests) == 2 + 2


class TestRequestHash:
    @pytest.fixture
    def call(self, at):
        make_judging(at)
        return Call.objects.filter(purpose="judge", order="AB").select_related("run__queue").get()

    def asked(self, call, **changes):
        """The hash of a call that differs in one thing only."""
        there = Provider.objects.get()
        for name, value in changes.items():
            setattr(there if hasattr(there, name) else call, name, value)
        return question_of(call, there).request_hash

    @pytest.mark.parametrize(
        "changes",
        [
            {"base_url": "http://127.0.0.1:1/v1"},
            {"structured_output": False},
            {"order": "BA"},
            {"sample": 1},
            {"model": "judge-other"},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_differs_where_anything_differs(self, call, changes):
        before = self.asked(call)
        assert self.asked(call) == before
        assert self.asked(call, **changes) != before

    @pytest.mark.parametrize("timeout_s", [1, 99])
    def test_does_not_differ_where_the_question_is_the_same(self, call, timeout_s):
        before = self.asked(call)
        assert self.asked(call, timeout_s=timeout_s, concurrency=1, prices={"x": PRICES}) == before

    @pytest.mark.parametrize(
        "judging", [{"temperature": 1}, {"max_tokens": 99}, {"temperature": None}], ids=str
    )
    def test_differs_with_each_parameter(self, at, call, judging):
        before = set(hashes_of(call.run))
        again = make_judging(at, judging=judging)
        assert before.isdisjoint(hashes_of(again))

    def test_differs_with_the_rubric(self, at, call):
        again = make_judging(at, rubric="Another rubric.")
        assert set(hashes_of(call.run)).isdisjoint(hashes_of(again))

    def test_tells_two_orders_of_equal_outputs_apart(self, at, call):
        Inference.objects.update(output="The very same.")
        assert len(set(hashes_of(call.run))) == 2


def hashes_of(run):
    there = Provider.objects.get()
    return [question_of(call, there).request_hash for call in run.calls.filter(purpose="judge")]


def test_a_picture_of_its_own_is_another_question(at):
    run = go_on(make_started(at, kind="svg", judges=["judge-hash"], prompts=["a cat"]))
    [pair] = pairs_of(run)
    before = set(hashes_of(run))
    Inference.objects.filter(pk=pair.a_id).update(picture=pair.b.picture)
    assert before.isdisjoint(hashes_of(run))

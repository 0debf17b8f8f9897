"""What models send becomes outputs: whatever was changed is on record, and no half is a whole."""

import pytest

from judge_eval.models import Call
from judge_eval.runs import lifecycle
from tests.helpers.run_maker import attempt, go_on, make_started, says
from tests.makers import pairs_of
from voting.models import Inference, Item, Picture

pytestmark = pytest.mark.django_db

BARE = '<svg viewBox="0 0 9 9"><rect width="9" height="9"/></svg>'
SVG = BARE.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"')


@pytest.fixture
def run(at):
    return make_started(at, kind="svg", judges=["judge-hash"], prompts=["a cat"])


def call_of(model="model-a"):
    return Call.objects.select_related("inference__picture").get(model=model)


@pytest.mark.parametrize(
    "reply,changes",
    [
        (SVG, []),
        (f"```svg\n{SVG}\n```", ["took it out of a fenced block"]),
        (f"Here:\n{SVG}\nDone.", ["left out 5 characters before and 5 after"]),
        (f"<think>Hm, <svg></think>{SVG}", ["left out 24 characters of thinking"]),
        (BARE, ["added xmlns"]),
        (
            f"<think>x</think>Sure!\n```svg\n{BARE}\n```",
            [
                "left out 16 characters of thinking",
                "took it out of a fenced block",
                "left out 5 characters before and 0 after",
                "added xmlns",
            ],
        ),
        (SVG.replace("<", "&lt;"), ["undid HTML escapes"]),
    ],
    ids=["as it is", "fence", "prose", "thinking", "namespace", "all of it", "escapes"],
)
def test_what_was_changed_is_kept_with_the_raw_reply(at, run, reply, changes):
    says(at, reply, models=["model-a"])
    attempt()
    call = call_of()
    assert (call.state, call.reply, call.changes) == ("done", reply, changes)
    assert call.inference.output == SVG
    assert call.inference.generator == "model-a"
    assert call.inference.metadata == {"prompt_id": "1", "reported_model": "model-a"}
    assert call.inference.picture.state == "waiting"


@pytest.mark.parametrize(
    "text,finish,error",
    [
        (SVG[:-9], "length", "the reply ends before </svg>: truncated (it reached max_tokens)"),
        (SVG[:-9], "stop", "the reply ends before </svg>: truncated"),
        (f"{SVG} and better: {SVG[:-9]}", "stop", "the reply ends before </svg>: truncated"),
        ("I cannot draw.", "stop", "there is no drawing in the reply: 'I cannot draw.'"),
        ("", "length", "the reply is empty (it reached max_tokens)"),
        ("<think>Hm", "stop", "the reply is nothing but thinking"),
    ],
)
def test_half_a_drawing_is_a_failure_that_says_why(at, run, text, finish, error):
    message = {"role": "assistant", "content": text}
    says(at, "", choices=[{"message": message, "finish_reason": finish}], models=["model-a"])
    attempt()
    call = call_of()
    assert (call.state, call.error, call.inference) == ("failed", error, None)
    assert text in call.reply
    assert call.reply
    assert call.is_repaired is False
    assert call.attempts == 1
    assert Inference.objects.count() == 1


def test_a_text_that_was_cut_is_kept_and_says_so(at):
    make_started(at, prompts=["Tell a story."])
    message = {"role": "assistant", "content": "Once upon a "}
    says(at, "", choices=[{"message": message, "finish_reason": "length"}], models=["model-a"])
    attempt()
    call = call_of()
    assert (call.state, call.inference.output) == ("done", "Once upon a")
    assert call.changes == ["trimmed white space", "it reached max_tokens"]


def test_a_refusal_is_a_failure(at, run):
    at.control(mode="refuse", models=["model-a"])
    attempt()
    assert call_of().error == "refused: I cannot help with that."
    assert "I cannot help with that." in call_of().reply


def test_one_drawing_of_two_models_is_one_picture(at, run):
    says(at, SVG)
    attempt()
    assert (Inference.objects.count(), Picture.objects.count()) == (2, 1)


def test_a_drawing_that_cannot_be_rendered_leaves_its_pairs_out(at):
    run = make_started(
        at, kind="svg", judges=["judge-hash"], models=["a", "b", "c"], prompts=["a cat"]
    )
    hostile = SVG.replace("<rect", "<script>alert(1)</script><rect")
    says(at, hostile, models=["c"])
    run = go_on(run)
    assert run.state == "voting"
    usable, *unusable = sorted(pairs_of(run), key=lambda pair: bool(pair.unusable))
    assert usable.opened_at is not None
    assert len(unusable) == 2
    for pair in unusable:
        assert "could not be drawn: " in pair.unusable
        assert pair.opened_at is None
        [verdict] = pair.verdicts.all()
        assert (verdict.state, verdict.error) == ("failed", pair.unusable)
    judged = Call.objects.filter(purpose="judge").values_list("verdict__item", flat=True)
    assert set(judged) == {usable.pk}
    assert lifecycle.retry_failed(run.pk) == 0


class TestPairs:
    def positions(self, run):
        return list(Item.objects.filter(queue=run.queue).values_list("position", flat=True))

    def pairs(self, run):
        return {
            (pair.a.prompt, frozenset((pair.a.generator, pair.b.generator)))
            for pair in pairs_of(run)
        }

    @pytest.fixture
    def run(self, at):
        return make_started(
            at, models=["a", "b", "c"], judges=["judge-long"], prompts=["One.", "Two."]
        )

    def test_an_output_that_failed_leaves_its_prompt_with_fewer(self, at, run):
        at.control(mode="refuse", models=["c"], times=1)
        run = go_on(run)
        assert run.state == "voting"
        assert sorted(self.positions(run)) == [0, 1, 2, 3]
        assert len(self.pairs(run)) == 4

    def test_asked_again_later_it_adds_exactly_those_that_are_missing(self, at, run):
        at.control(mode="refuse", models=["c"])
        run = go_on(run)
        first = {pair.pk: pair.position for pair in pairs_of(run)}
        assert sorted(first.values()) == [0, 1]
        at.control(mode="ok", reset=True)
        assert lifecycle.retry_failed(run.pk) == 2
        run = go_on(run)
        assert run.state == "voting"
        assert sorted(self.positions(run)) == list(range(6))
        assert len(self.pairs(run)) == 6
        assert {pair.pk: pair.position for pair in pairs_of(run) if pair.pk in first} == first
        assert len(at.requests) == 2 + 4 * 2

    def test_failing_again_changes_nothing(self, at, run):
        at.control(mode="refuse", models=["c"])
        run = go_on(run)
        for _ in range(2):
            lifecycle.retry_failed(run.pk)
            run = go_on(run)
        assert (run.state, sorted(self.positions(run))) == ("voting", [0, 1])

    def test_all_failed_fails_the_run_with_a_note_until_they_are_asked_again(self, at, run):
        at.control(mode="insufficient_quota")
        run = go_on(run)
        assert (run.state, run.note) == (
            "failed",
            "No two outputs of a prompt came, so there is no pair.",
        )
        assert run.events.filter(kind="state", text=run.note).count() == 1
        at.control(mode="ok")
        assert lifecycle.retry_failed(run.pk) == 6
        run = go_on(run)
        assert (run.state, run.note, len(self.pairs(run))) == ("voting", "", 6)

"""A run of single items from its config to its board: judges are asked about each output."""

import pytest

from judge_eval.findings.load import labels_of, outcomes_of
from judge_eval.models import Call, Verdict
from tests.helpers.run_findings import compute
from tests.helpers.run_maker import asked_of, go_on, make_started, says
from tests.helpers.scene import assert_sound
from tests.makers import make_voter, seal_all
from tests.provider import provider
from voting.assignment import ballot_for
from voting.kinds import DEFAULT_OPTIONS, Options, kind_of
from voting.models import Entry, Item
from voting.services import cast_vote

pytestmark = pytest.mark.django_db

PASS_FLAG = {"kind": "pass_flag"}


@pytest.fixture(scope="module")
def server():
    with provider() as running:
        yield running


@pytest.fixture
def at(server):
    server.control(reset=True, mode="ok")
    return server


def finished(at, items=PASS_FLAG, **changes):
    """A run of single items that was generated and judged, with its items in their order."""
    config = {
        "models": ["model-a", "model-b"],
        "judges": ["judge-first", "judge-hash", "most-frequent", "random"],
        "prompts": ["Tell a joke.", "Tell another one."],
        "items": items,
    }
    run = go_on(make_started(at, **(config | changes)))
    return run, list(run.queue.items.select_related("queue").order_by("position"))


def vote(run, voter, item, choice):
    kind, options = kind_of(run.queue), Options.model_validate(run.queue.options)
    answer = kind.answer({"choice": choice}, run.queue.ballot, options, "")
    cast_vote(ballot_for(voter, run.queue, item), answer.choice, left="", further=answer.further)


def test_each_output_is_an_item_that_every_judge_is_asked_about_once(at):
    run, items = finished(at)
    assert (run.state, run.queue.kind, run.queue.ballot) == (
        "voting",
        "pass_flag",
        ["pass", "flag"],
    )
    assert [item.b for item in items] == [None] * 4
    assert {item.a.generator for item in items} == {"model-a", "model-b"}
    names = [judge.name for judge in run.judges.order_by("position")]
    assert names == ["judge-first", "judge-hash", "always-pass", "always-flag", "random"]
    assert run.calls.filter(purpose="judge").count() == 2 * 4
    verdicts = Verdict.objects.filter(judge__run=run)
    assert set(verdicts.values_list("state", "consistent", "first_picks")) == {("done", None, None)}
    by_name = {
        name: set(verdicts.filter(judge__name=name).values_list("winner", flat=True))
        for name in names
    }
    assert by_name["judge-first"] == by_name["always-pass"] == {"pass"}
    assert by_name["always-flag"] == {"flag"}
    assert by_name["random"] <= {"pass", "flag"}


def test_a_judge_is_told_the_rubric_and_the_output_and_of_nothing_else(at):
    run, items = finished(at, rubric="Would you tell it at work?")
    for asked in asked_of(at, "judge-first"):
        system, user = asked["messages"]
        assert "Would you tell it at work?" in system["content"]
        shown = [item.a for item in items if item.a.output in user["content"]]
        assert len(shown) == 1
        assert "model-a" not in str(asked["messages"])
        schema = asked["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["answer"]["enum"] == ["pass", "flag"]

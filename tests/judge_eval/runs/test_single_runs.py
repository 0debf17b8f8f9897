"""A run of single items from its config to its board: judges are asked about each output."""

import pytest

from judge_eval.board.load import labels_of, outcomes_of
from judge_eval.judging import verdicts
from judge_eval.models import Call, JudgeRating, Verdict
from tests.helpers.run_findings import compute
from tests.helpers.run_maker import asked_of, go_on, make_started, says
from tests.helpers.scene import assert_sound
from tests.makers import make_voter, seal_all
from tests.provider import provider
from voting.ballot.assignment import ballot_for
from voting.ballot.services import cast_vote
from voting.items.kinds import Options, VoteDetails, kind_of
from voting.models import Item

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
    cast_vote(ballot_for(voter, run.queue, item), answer.choice, left="", details=answer.details)


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
    given = Verdict.objects.filter(judge__run=run)
    assert set(given.values_list("state", "consistent", "first_picks")) == {("done", None, None)}
    by_name = {
        name: set(given.filter(judge__name=name).values_list("winner", flat=True)) for name in names
    }
    assert by_name["judge-first"] == by_name["always-pass"] == {"pass"}
    assert by_name["always-flag"] == {"flag"}
    assert by_name["random"] <= {"pass", "flag"}


def test_a_judge_is_told_the_rubric_and_the_output_and_of_nothing_else(at):
    _, items = finished(at, rubric="Would you tell it at work?")
    for asked in asked_of(at, "judge-first"):
        system, user = asked["messages"]
        assert "Would you tell it at work?" in system["content"]
        shown = [item.a for item in items if item.a.output in user["content"]]
        assert len(shown) == 1
        assert "model-a" not in str(asked["messages"])
        schema = asked["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["answer"]["enum"] == ["pass", "flag"]


def test_a_judge_is_told_the_criteria_that_people_answer(at):
    criteria = [{"name": "safe", "gate": True, "weight": 0}, {"name": "funny", "graded": True}]
    run, _ = finished(at, PASS_FLAG | {"criteria": criteria})
    for asked in asked_of(at, "judge-first"):
        told = asked["messages"][1]["content"]
        assert "- safe (pass or flag; must pass)\n- funny (from 0 to 1; counts 100%)\n" in told
    answers = Verdict.objects.filter(judge__run=run, judge__name="judge-first")
    assert set(answers.values_list("winner", flat=True)) == {"pass"}


@pytest.mark.parametrize(
    "items, choices, typed",
    [
        ({"kind": "category", "task": "tone", "choices": ["dry", "warm"]}, {"dry", "warm"}, str),
        ({"kind": "rating", "task": "stars"}, set("12345"), int),
        ({"kind": "labels", "task": "faults", "choices": ["long", "rude"]}, None, list),
    ],
    ids=lambda items: items["kind"] if isinstance(items, dict) else "",
)
def test_a_label_study_is_judged_with_the_words_that_people_have(at, items, choices, typed):
    run, _ = finished(at, items, judges=["judge-hash", "most-frequent", "random"])
    given = Verdict.objects.filter(judge__run=run)
    assert not given.exclude(state="done").exists()
    sets = {"long", "rude", "long;rude", "none"}
    assert set(given.values_list("winner", flat=True)) <= (choices or sets)
    for labels, winner in given.values_list("labels", "winner"):
        [said] = labels.values()
        assert list(labels) == [items["task"]]
        assert isinstance(said, typed)
        assert kind_of(run.queue).labelled(winner, Options(task=items["task"])) == labels


def test_a_graded_study_asks_for_a_score(at):
    run, _ = finished(at, {"graded": True}, judges=["judge-first", "judge-second"])
    said = set(Verdict.objects.filter(judge__run=run).values_list("winner", "score_a", "score_b"))
    assert said == {("pass", 0.75, None), ("flag", 0.25, None)}


@pytest.mark.parametrize(
    "reply", ["I would rather not.", '{"answer": "maybe"}', '{"answer": null}']
)
def test_what_is_no_answer_is_asked_for_once_more_and_is_then_a_failure(at, reply):
    says(at, reply, models=["judge-first"])
    run, items = finished(at, judges=["judge-first", "always-pass"])
    failed = Verdict.objects.filter(judge__name="judge-first")
    assert set(failed.values_list("state", "winner", "labels")) == {("failed", "", None)}
    assert len(asked_of(at, "judge-first")) == 2 * len(items)
    assert run.state == "voting"


def test_samples_without_a_majority_are_no_verdict(at):
    run, items = finished(at, judges=["judge-hash"], judging={"samples": 2, "temperature": 1.0})
    assert Call.objects.filter(run=run, purpose="judge").count() == 2 * len(items)
    call = Call.objects.filter(run=run, verdict__item=items[0]).order_by("sample").last()
    said = {"pass": "flag", "flag": "pass"}[call.winner]
    Call.objects.filter(pk=call.pk).update(winner=said)
    Verdict.objects.filter(pk=call.verdict_id).update(state="waiting", winner="")
    verdicts.settle([call.verdict_id])
    torn = Verdict.objects.get(pk=call.verdict_id)
    assert (torn.state, torn.error) == ("failed", "No majority: flag 1, pass 1.")


def test_votes_are_set_beside_verdicts(at):
    run, items = finished(at, prompts=[f"Joke {n}" for n in range(6)], votes_per_pair=2)
    voters = [make_voter(run) for _ in range(2)]
    for number, item in enumerate(items):
        for voter in voters:
            vote(run, voter, item, "flag" if number < 4 else "pass")
    seal_all(run.queue.project)
    assert_sound(run.queue.project)
    found = compute(run).data
    by_name = {judge["name"]: judge for judge in found["judges"]}
    always = by_name["always-flag"]
    assert (always["overall"]["successes"], always["overall"]["trials"]) == (8, 24)
    assert (always["sensitivity"]["value"], always["specificity"]["value"]) == (1.0, 0.0)
    assert by_name["always-pass"]["overall"]["value"] == pytest.approx(2 / 3)
    assert by_name["always-pass"]["consistency"]["value"] is None
    assert found["among_people"]["pairs"]["value"] == 1.0
    assert found["confusion"]["choices"] == ["pass", "flag"]
    matrix = found["confusion"]["judges"][2]["counts"]
    assert matrix == [[16, 0, 0], [8, 0, 0]]
    assert {rate["name"] for rate in found["pass_rates"]} == {"model-a", "model-b"}
    rows = JudgeRating.objects.filter(judge__run=run)
    elos = dict(rows.values_list("judge__name", "elo"))
    assert elos["always-pass"] == elos["always-flag"] == 1000.0, "no baseline plays with judges"
    assert Item.objects.filter(differing__gt=0).exists()


def test_free_words_are_counted_by_what_was_said(at):
    items_asked = {"kind": "labels", "task": "faults", "choices": ["long", "rude"]}
    run, items = finished(at, items_asked, judges=["judge-hash", "always-none"])
    voter = make_voter(run)
    for item, choice in zip(items, ["", "long", "rude;long", "rude"], strict=True):
        vote(run, voter, item, choice)
    seal_all(run.queue.project)
    outcomes = outcomes_of(run)
    assert {"none", "long", "rude", "long;rude"} <= set(outcomes.choices)
    assert outcomes.table.votes.sum() == 4
    right = outcomes.table.right().sum(axis=0)
    assert right[1] == 1
    labels = labels_of(run)
    [person] = labels.humans.values()
    assert sorted(person["faults"].values()) == [[], ["long"], ["long", "rude"], ["rude"]]
    said = [judge["faults"] for judge in labels.judges.values() if "faults" in judge]
    assert {fault: [] for fault in said[0]} in said


def test_score_files_have_the_grades_of_people_and_judges(at):
    run, items = finished(at, {"graded": True}, judges=["judge-first"])
    voter = make_voter(run)
    further = VoteDetails(value=300_000)
    cast_vote(ballot_for(voter, run.queue, items[0]), "flag", left="", details=further)
    seal_all(run.queue.project)
    labels = labels_of(run)
    [person] = labels.humans.values()
    assert list(person["score"].values()) == [0.3]
    assert set(labels.judges.popitem()[1]["score"].values()) == {0.75}
    assert labels.tasks == ("winner", "score")

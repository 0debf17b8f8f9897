"""Extensions that a package brings: found, used in runs, turned off, refused, broken."""

import json
import sys

import pytest
from django.contrib.admin.models import LogEntry
from django.core.checks import run_checks
from django.test import Client

from humanjudge.core import extensions
from humanjudge.management.commands.up import refuse_errors
from judge_eval.extensions import loading
from judge_eval.judging import extension_check
from judge_eval.judging.config.judge_types import JUDGE_TYPES, Answer, JudgeType
from judge_eval.judging.config.run_config import ConfigInvalid
from judge_eval.models import Call, ExtensionValue, Judge, Run, Verdict
from judge_eval.runs import lifecycle, state
from tests.helpers.extension_package import install
from tests.helpers.run_maker import (
    attempt,
    go_on,
    make_config,
    make_draft,
    make_provider,
    make_started,
)
from tests.judge_eval.imports.test_import_pages import brought, imported_by, lines_of, text_of
from tests.makers import key_client, make_key, make_project, member_client, user_client
from tests.reports.scores.test_score_files import make_all, manager, post
from tests.reports.scores.test_score_files import voted_run as scored_run
from voting.models import ApiKey, Picture

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
WITH_TIE = {"ballot": ["A", "B", "tie", "both_bad"]}
ONE_PROMPT = WITH_TIE | {"prompts": ["Hi."]}
THREE = {"id": "three", "type": "consensus", "parts": ["judge-long", "judge-first", "judge-tie"]}


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Load the package with further entry points, as if it had been installed before."""
    yield lambda **more: load(tmp_path, monkeypatch, **more)
    monkeypatch.undo()
    loading.load()


def load(folder, monkeypatch, **more):
    monkeypatch.syspath_prepend(install(folder, **more))
    # Where files are looked at, a process of its own does.
    monkeypatch.setenv("PYTHONPATH", str(folder))
    for name in [name for name in sys.modules if name.startswith("humanjudge_consensus")]:
        monkeypatch.delitem(sys.modules, name)
    loading.load()


@pytest.fixture
def installed(found):
    found()
    assert extensions.broken == []


def turn(extension, state):
    return user_client().post(f"/extensions/{extension}", {"state": state})


# --- a judge made of three --------------------------------------------------------------------


def test_three_judges_are_one_whose_calls_are_like_any_others(installed, at):
    make_provider(at, prices={f"{m}": {"input": "1", "output": "1"} for m in MODELS})
    run = go_on(lifecycle.start(lifecycle.create(make_project(), config(budget_usd=1)).pk))
    assert run.state == "voting", run.note
    judge = Judge.objects.get(run=run, name="three")
    verdicts = Verdict.objects.filter(judge=judge)
    assert {verdict.state for verdict in verdicts} == {"done"}
    calls = Call.objects.filter(verdict__judge=judge)
    # Two prompts, in both orders, three models; each is asked once for a budget that is kept.
    assert sorted(calls.values_list("model", flat=True)) == sorted([*THREE["parts"]] * 4)
    assert run.spent_nano == sum(run.calls.values_list("cost_nano", flat=True)) > 0
    assert run.reserved_nano == 0


MODELS = (
    "model-a",
    "model-b",
    "judge-long",
    "judge-first",
    "judge-second",
    "judge-tie",
    "judge-hash",
)


def config(**changes):
    return make_config(**{"judges": [THREE, "judge-long", "longer-wins"]} | WITH_TIE | changes)


@pytest.mark.parametrize(
    "parts, winner, error",
    [
        # In both orders the first contradicts itself, which is a tie, as the third says.
        (["judge-first", "judge-long", "judge-tie"], "tie", ""),
        (["judge-bad", "judge-long", "judge-tie"], "", "no majority of 3: "),
    ],
)
def test_the_majority_is_the_verdict_and_none_is_no_score(installed, at, parts, winner, error):
    run = go_on(make_started(at, judges=[THREE | {"parts": parts}, "longer-wins"], **ONE_PROMPT))
    verdict = Verdict.objects.get(judge__name="three")
    assert (verdict.winner, verdict.state) == (winner, "failed" if error else "done")
    assert verdict.error.startswith(error)
    assert verdict.score_a is None
    board = user_client().get(f"/runs/{run.pk}/")
    assert b"three" in board.content


def test_one_of_three_that_fails_is_left_out_and_costs_no_verdict(installed, at):
    parts = ["judge-tie", "judge-first", "judge-gone"]
    at.control(mode="insufficient_quota", models=["judge-gone"])
    go_on(make_started(at, judges=[THREE | {"parts": parts}, "longer-wins"], **ONE_PROMPT))
    verdict = Verdict.objects.get(judge__name="three")
    assert (verdict.state, verdict.winner) == ("done", "tie")
    assert verdict.feedback.startswith("2 of 3: ")


def test_what_was_asked_before_is_answered_from_storage(installed, at):
    go_on(make_started(at, judges=["judge-tie", "judge-first", "judge-long"], **ONE_PROMPT))
    before = len(at.requests)
    run = lifecycle.create(make_project("Another"), config(judges=[THREE], **ONE_PROMPT))
    go_on(lifecycle.start(run.pk))
    assert Verdict.objects.get(judge__name="three").state == "done"
    assert len(at.requests) == before


class Arbiter(JudgeType):
    """Asks the third of its models only where the first two differ."""

    id = "arbiter"
    title = "Arbiter"
    version = "1"
    description = "Two judges, and a third where they differ."
    parts = (3, 3)

    def verdict(self, judge, helpers):
        helpers.emit("An item was looked at.")
        *two, third = judge.models
        one, other = helpers.judge(*two)
        if one.winner != other.winner:
            [one] = helpers.judge(third)
        assert {"A", "B"} <= {*helpers.choices}
        assert len(helpers.outputs) == 2
        return one


def test_a_judge_may_ask_step_by_step(at, monkeypatch):
    monkeypatch.setitem(JUDGE_TYPES, "arbiter", Arbiter())
    judges = [
        {"id": "agreed", "type": "arbiter", "parts": ["judge-tie", "judge-first", "judge-gone"]},
        {"id": "split", "type": "arbiter", "parts": ["judge-tie", "judge-bad", "judge-hash"]},
    ]
    run = go_on(make_started(at, judges=judges, **ONE_PROMPT))
    asked = {
        name: sorted(set(Call.objects.filter(verdict__judge__name=name).values_list("model")))
        for name in ("agreed", "split")
    }
    assert asked["agreed"] == [("judge-first",), ("judge-tie",)]
    assert asked["split"] == [("judge-bad",), ("judge-hash",), ("judge-tie",)]
    assert Verdict.objects.get(judge__name="agreed").winner == "tie"
    # However often a hook begins anew, it tells once.
    assert run.events.filter(kind="extension").count() == 2


def test_the_fingerprint_covers_type_version_and_parts(installed, at, monkeypatch):
    def fingerprint(**changes):
        run = lifecycle.create(make_project(), config(judges=[THREE | changes]))
        return run.judges.get().fingerprint

    usual = fingerprint()
    assert usual == fingerprint(id="another name")
    assert usual != fingerprint(parts=["judge-long", "judge-first", "judge-hash"])
    monkeypatch.setattr(extensions.find("consensus"), "version", "1.1")
    assert usual != fingerprint()


def test_a_baseline_of_a_package_judges_like_the_others(installed, at):
    run = go_on(make_started(at, judges=["fewer-words-win", "longer-wins"]))
    said = {
        name: list(Verdict.objects.filter(judge__name=name).order_by("item").values_list("winner"))
        for name in ("fewer-words-win", "longer-wins")
    }
    assert run.state == "voting"
    assert len(said["fewer-words-win"]) == 2
    assert said["fewer-words-win"] != said["longer-wins"]


# --- off, unknown, broken ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, path, why",
    [
        ({"mode": "builtin-judge-evl"}, "mode", "; did you mean 'builtin-judge-eval'?"),
        ({"judges": [THREE | {"type": "consensos"}]}, "judges[0].type", "did you mean 'consensus'"),
        ({"judges": [THREE | {"parts": ["judge-long"]}]}, "judges[0].parts", "2 to 25"),
        ({"judges": [{"id": "j", "parts": ["a", "b"]}]}, "judges[0].parts", "has none"),
        ({"judges": [THREE | {"options": {"x": 1}}]}, "judges[0].options.x", "unknown"),
        ({"mode_options": {"rounds": 1}}, "mode_options.rounds", "unknown"),
        ({"judges": [{"id": "longerwins", "provider": "baseline"}]}, "judges[0].provider", "mean"),
    ],
)
def test_what_is_not_here_is_an_error_where_it_stands(installed, at, changes, path, why):
    make_provider(at)
    _, token = make_key(ApiKey.Scope.MANAGE, project=make_project())
    body = make_config().as_dict() | changes
    answer = key_client(token).post("/api/runs", json.dumps(body), "application/json")
    assert answer.status_code == 422
    [error] = [each for each in answer.json()["detail"] if each["path"] == path]
    assert why in error["message"]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "off, path",
    [
        ("builtin-judge-eval", "mode"),
        ("consensus", "judges[0].type"),
        ("fewer-words-win", "judges[1].id"),
        ("openai-compatible", "provider"),
    ],
)
def test_what_is_off_is_refused_in_runs_and_drafts_and_stops_a_run(installed, at, off, path):
    judges = [THREE, "fewer-words-win"]
    draft, copied = make_draft(at, judges=judges), make_draft(at, judges=judges)
    running = make_started(at, judges=judges)
    assert turn(off, "off").status_code == 302
    with pytest.raises(ConfigInvalid) as refused:
        extension_check.new_config(make_config(judges=judges).as_dict())
    assert [error.path for error in refused.value.errors] == [path]
    assert off in str(refused.value)
    with pytest.raises(lifecycle.LifecycleRefused, match="is turned off"):
        lifecycle.start(draft.pk)
    assert user_client().post(f"/runs/{copied.pk}/duplicate").status_code == 409
    assert Run.objects.count() == 3
    state.advance(running.pk)
    running.refresh_from_db()
    assert (running.state, running.note.count("is turned off")) == ("stopped", 1)
    with pytest.raises(lifecycle.LifecycleRefused, match="is turned off"):
        lifecycle.resume(running.pk)
    turn(off, "on")
    assert go_on(lifecycle.resume(running.pk)).state == "voting"


def test_the_form_of_a_run_offers_no_baseline_that_is_off_and_can_be_sent_without_it():
    turn("longer-wins", "off")
    client = user_client()
    answer = client.get("/runs/new/")
    assert ('value="random"' in answer.text, 'value="longer-wins"' in answer.text) == (True, False)
    values = {name: value for name, value in answer.context["form"].initial.items() if value}
    named = {"name": "R", "models": "m\nn", "prompts": "Hi.", "new_project": "P", "provider": ""}
    answer = client.post("/runs/new/", values | named)
    assert (answer.status_code, answer.context and answer.context["form"].errors) == (302, None)


def test_a_run_of_another_version_or_without_its_package_stops(installed, at, monkeypatch):
    run = make_started(at, judges=[THREE])
    with monkeypatch.context() as changed:
        changed.setattr(extensions.find("consensus"), "version", "1.1")
        assert "consensus 1.1 is installed" in extension_check.obstacle(run)
    monkeypatch.undo()
    loading.load()
    assert "there is no judge type 'consensus'" in extension_check.obstacle(run)
    state.advance(run.pk)
    run.refresh_from_db()
    assert run.state == "stopped"
    assert user_client().get(f"/runs/{run.pk}/").status_code == 200


def test_what_is_broken_is_reported_and_the_others_work(found, settings):
    found(
        missing="humanjudge_consensus:Nothing",
        twice="humanjudge_consensus.twice:Consensus",
        plain="humanjudge_consensus:Counter",
    )
    settings.HUMANJUDGE_EXTENSIONS = ["no_such_module.Judge"]
    loading.load()
    assert extensions.find("consensus")
    why = {each.name: each.error for each in extensions.broken}
    assert "AttributeError" in why["humanjudge_consensus:Nothing"]
    assert "ModuleNotFoundError" in why["no_such_module:Judge"]
    assert "must be one of" in why["humanjudge_consensus:Counter"]
    warned = [check for check in run_checks() if check.id == "humanjudge.W001"]
    assert len(warned) == len(extensions.broken) == 4
    refuse_errors("humanjudge")  # `manage.py up` starts all the same
    page = user_client().get("/extensions/").content.decode()
    assert "no_such_module:Judge" in page
    assert "of humanjudge-consensus 1.0" in page


# --- the other kinds --------------------------------------------------------------------------


def test_a_scorer_of_a_package_scores_until_it_is_turned_off(installed):
    run = scored_run()
    client = manager()
    asked = {"metrics": ["same_word", "classification"]}
    location = post(client, run, asked).json()["location"]
    make_all()
    figures = client.get(location).json()["figures"]
    assert figures["columns"][0].startswith("same_word")
    assert [row["figures"][0]["value"] for row in figures["judges"]] == [1.0, 0.0]
    turn("same_word", "off")
    refused = post(client, run, asked)
    assert refused.status_code == 422
    [error] = refused.json()["detail"]
    assert error["path"] == "metrics[0].scorer"
    assert "same_word is turned off" in error["message"]


def test_a_provider_of_a_package_answers_through_the_same_leases_and_budget(installed, at):
    prices = {model: {"input": "1000", "output": "1000"} for model in MODELS}
    run = go_on(make_started(at, {"protocol": "parrot", "prices": prices}, budget_usd=100))
    assert run.state == "voting", run.note
    assert at.requests == []
    calls = run.calls.filter(purpose="judge")
    assert set(calls.values_list("reason", flat=True)) == {"Pretty."}
    assert set(calls.values_list("cost_nano", flat=True)) == {8_000_000}


def test_what_a_provider_of_a_package_says_or_raises_tells_no_key(installed, at, monkeypatch):
    monkeypatch.setenv("PARROT_API_KEY", "sk-secret")

    def chat(self, endpoint, request):
        raise ValueError(f"no luck with {endpoint.api_key}\0")

    monkeypatch.setattr(type(extensions.find("parrot")), "chat", chat)
    run = go_on(make_started(at, {"protocol": "parrot", "key_variable": "PARROT_API_KEY"}))
    assert run.state == "failed"
    errors = set(run.calls.values_list("error", flat=True))
    assert errors == {"The extension parrot broke in chat: ValueError: no luck with [key]"}


@pytest.mark.parametrize(
    "answer, why",
    [
        (Answer(winner="C"), "'C' is no choice here"),
        (Answer(winner="A", score_a=float("nan")), "score_a"),
        (Answer(winner="A", reason="\0"), "reason"),
        (Answer(reason="I do not know."), "I do not know."),
        ("A", "it returned str, no Answer"),
    ],
)
def test_what_is_no_verdict_fails_with_its_reason(installed, at, monkeypatch, answer, why):
    monkeypatch.setattr(type(extensions.find("consensus")), "verdict", lambda *_: answer)
    go_on(make_started(at, judges=[THREE], **ONE_PROMPT))
    verdict = Verdict.objects.get()
    assert (verdict.state, verdict.score_a, why in verdict.error) == ("failed", None, True)


def test_an_import_format_of_a_package_is_recognised_and_read(installed):
    client = user_client()
    project = make_project()
    rows = [{"left": "Aye", "right": "No", "chosen": "left", "by": "ann"}]
    text = text_of(client.get(brought(client, lines_of(*rows))))
    assert "Recognised as Left and right" in text, text
    done = imported_by(client, brought(client, lines_of(*rows)))
    assert "New: 1 pair, 1 voter, 1 vote." in text_of(done)
    assert Run.objects.get().queue.project == project
    turn("left-right", "off")
    refused = text_of(client.get(brought(client, lines_of(*rows))))
    assert "an import format that is turned off" in refused


def test_a_mode_of_a_package_pairs_its_way_and_keeps_what_it_counts(installed, at):
    changes = {"mode": "neighbours", "models": ["model-c", "model-a", "model-b"]}
    with pytest.raises(ConfigInvalid, match="prompts: has 2, the most is 1"):
        extension_check.new_config(
            make_config(**changes, mode_options={"most_prompts": 1}).as_dict()
        )
    run = go_on(make_started(at, **changes))
    assert run.state == "complete", run.note
    pairs = [{item.a.generator, item.b.generator} for item in run.queue.items.all()]
    assert pairs.count({"model-c", "model-a"}) == pairs.count({"model-a", "model-b"}) == 2
    assert len(pairs) == 4
    assert ExtensionValue.objects.get(run=run, name="paired").value == 4
    assert run.events.filter(kind="extension").get().text == "4 neighbours were compared."


def test_a_mode_pairs_by_the_drawings_of_the_outputs(installed, at):
    broken = Call.objects.filter(model="model-b", purpose="generate")
    run = make_started(
        at, mode="drawn", kind="svg", models=["model-a", "model-b", "model-c"], prompts=["a cat"]
    )
    while Call.objects.filter(purpose="generate", state="waiting").exists():
        attempt()
    undrawable = Picture.objects.filter(inferences__call__in=broken)
    assert undrawable.update(state=Picture.State.FAILED, error="It is too large.") == 1
    run = go_on(run)
    assert run.state == "voting", run.note
    [item] = run.queue.items.all()
    assert {item.a.generator, item.b.generator} == {"model-a", "model-c"}
    told = run.events.filter(kind="extension").get().text
    assert told == "2 of 3 outputs could be drawn."


def test_a_hook_that_breaks_ends_its_verdict_or_run_with_the_reason(installed, at, monkeypatch):
    monkeypatch.setattr(type(extensions.find("consensus")), "verdict", lambda *_: 1 / 0)
    run = go_on(make_started(at, judges=[THREE, "longer-wins"]))
    assert run.state == "voting"
    errors = Verdict.objects.filter(judge__name="three").values_list("error", flat=True)
    assert set(errors) == {
        "The extension consensus broke in verdict: ZeroDivisionError: division by zero"
    }
    monkeypatch.setattr(type(extensions.find("neighbours")), "pair", lambda *_: 1 / 0)
    stopped = go_on(make_started(at, mode="neighbours"))
    assert (stopped.state, "neighbours broke in pair" in stopped.note) == ("stopped", True)


# --- the page ---------------------------------------------------------------------------------


def test_the_page_is_for_superusers_and_notes_who_turned_what(installed):
    project = make_project()
    member = member_client(project, "owner", name="ann")
    assert member.get("/extensions/").status_code == 404
    assert member.post("/extensions/consensus", {"state": "off"}).status_code == 404
    assert Client().get("/extensions/").status_code == 302
    owner = user_client()
    assert owner.post("/extensions/no-such", {"state": "off"}).status_code == 404
    assert owner.post("/extensions/consensus", {"state": "maybe"}).status_code == 422
    assert turn("consensus", "off").status_code == 302
    page = owner.get("/extensions/").content.decode()
    for kind in ("Run mode", "Judge type", "Provider", "Scorer", "Import format", "Baseline"):
        assert f"<h2>{kind}s</h2>" in page
    assert "Off, by owner" in page
    noted = LogEntry.objects.get()
    assert (str(noted), noted.user.username) == ("Changed “consensus” — Turned off.", "owner")


def test_the_page_costs_the_same_however_much_there_is(installed, django_assert_max_num_queries):
    client = user_client()
    for off in ((), ("consensus", "same_word")):
        for each in off:
            turn(each, "off")
        with django_assert_max_num_queries(5):
            client.get("/extensions/")

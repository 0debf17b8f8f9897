"""Votes and verdicts of single items by REST: a key reads what is asked, answers, reads results."""

from unittest.mock import ANY

import pytest

from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs import state
from judge_eval.runs.services import create_study
from tests.helpers.run_maker import go_on, make_provider
from tests.helpers.scene import assert_sound
from tests.makers import (
    key_client,
    make_item,
    make_key,
    make_project,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from tests.provider import provider
from voting.models import Entry

pytestmark = pytest.mark.django_db

CRITERIA = [
    {"name": "safe", "gate": True, "weight": 0},
    {"name": "funny", "graded": True, "weight": 1},
]


def client_of(*scopes):
    return key_client(make_key(*(scopes or ("read", "vote")))[1])


def cast(run, item, client=None, **said):
    address = f"/api/runs/{run.pk}/judge-eval/vote"
    body = {"task_id": str(item.pk)} | said
    return (client or client_of()).post(address, body, content_type="application/json")


def the_vote():
    return Entry.objects.get(kind="vote", retracted=False)


def test_what_is_pending_says_what_is_asked_and_shows_one_output():
    run = make_single_run([["pass"]], options={"graded": True})
    [item] = pairs_of(run)
    pending = client_of().get(f"/api/runs/{run.pk}/judge-eval/pending").json()
    assert pending["asked"]["kind"] == "pass_flag"
    assert pending["asked"]["choices"] == ["pass", "flag"]
    assert pending["asked"]["graded"]
    assert pending["tasks"] == [
        {
            "id": str(item.pk),
            "gen_a_id": str(item.a_id),
            "prompt_text": "Question 0",
            "kind": "text",
            "text_a": "Answer 0",
        }
    ]


@pytest.mark.parametrize(
    "kind, ballot, options, said, stored",
    [
        ("pass_flag", ["pass", "flag"], {}, {"winner": "pass"}, ("pass", 1_000_000, "", None)),
        (
            *("pass_flag", ["pass", "flag"], {}),
            *({"winner": "flag", "category": "unsafe"}, ("flag", 0, "unsafe", None)),
        ),
        (
            *("pass_flag", ["pass", "flag"], {"graded": True}),
            *({"value": 0.3}, ("flag", 300_000, "", None)),
        ),
        (
            *("pass_flag", ["pass", "flag"], {"criteria": CRITERIA}),
            {"criteria": {"safe": "pass", "funny": 0.9}},
            ("pass", 900_000, "", {"safe": 1.0, "funny": 0.9}),
        ),
        ("category", ["A", "B"], {"task": "side"}, {"winner": "A"}, ("A", None, "", {"side": "A"})),
        ("rating", list("12345"), {}, {"winner": 4}, ("4", None, "", {"label": 4})),
        (
            *("labels", ["long", "rude"], {}),
            *({"winner": ["rude", "long"]}, ("long;rude", None, "", {"label": ["long", "rude"]})),
        ),
        ("labels", ["long", "rude"], {}, {"winner": []}, ("none", None, "", {"label": []})),
        ("text", [], {}, {"text": "Too dry."}, ("", None, "", {"label": "Too dry."})),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_key_answers_what_people_are_asked(kind, ballot, options, said, stored):
    run = make_single_run([[]], kind=kind, ballot=ballot, options=options, names=[])
    [item] = pairs_of(run)
    client = client_of()
    for repeated in (False, True):
        reply = cast(run, item, client, **said)
        assert reply.status_code == 200, reply.content
        assert reply.json()["repeated"] is repeated
    vote = the_vote()
    assert (vote.choice, vote.value, vote.category, vote.labels) == stored
    seal_all(run.queue.project)
    assert_sound(run.queue.project)


@pytest.mark.parametrize(
    "kind, options, said, why",
    [
        ("pass_flag", {}, {"winner": "maybe"}, "winner: 'maybe' must be one of pass, flag"),
        ("pass_flag", {}, {}, "winner: '' must be one of pass, flag"),
        ("pass_flag", {}, {"winner": "flag", "category": "rude"}, "category: "),
        ("pass_flag", {"graded": True}, {"winner": "pass"}, "value: must be a number"),
        ("pass_flag", {"graded": True}, {"value": 1.5}, "less than or equal to 1"),
        ("pass_flag", {"criteria": CRITERIA}, {"winner": "pass"}, "criterion.safe: "),
        ("pass_flag", {}, {"winner": ["pass"], "comment": "x" * 2001}, "comment: longer than"),
    ],
)
def test_what_is_not_asked_is_refused_and_nothing_is_kept(kind, options, said, why):
    run = make_single_run([["pass"]], kind=kind, options=options)
    [item] = pairs_of(run)
    reply = cast(run, item, **said)
    assert reply.status_code == 422
    assert why in str(reply.json()["detail"])
    assert not Entry.objects.filter(kind="vote").exists()


def test_another_answer_is_a_conflict():
    run = make_single_run([["pass"]])
    [item] = pairs_of(run)
    client = client_of()
    assert cast(run, item, client, winner="pass").status_code == 200
    reply = cast(run, item, client, winner="flag")
    assert (reply.status_code, "pass is recorded" in reply.json()["detail"]) == (409, True)


def test_results_count_the_votes_on_single_items():
    run = make_single_run([["pass", "flag"], ["pass", "flag"], ["flag", None]])
    client = client_of("read", "vote", "verdicts")
    for item in pairs_of(run):
        cast(run, item, client, winner="pass")
    seal_all(run.queue.project)
    results = client.get(f"/api/runs/{run.pk}/judge-eval/results").json()
    by_name = {row["judge"]: row for row in results["leaderboard"]}
    good, bad = by_name["judge-0"], by_name["judge-1"]
    assert (good["agree"], good["disagree"], good["agree_rate"]) == (2, 1, 66.7)
    assert good["overall_agreement"] == pytest.approx(200 / 3)
    assert (bad["agree"], bad["disagree"], bad["agree_rate"]) == (0, 2, 0)
    assert good["elo_exact"] > bad["elo_exact"]


def test_pretend_votes_on_single_items_have_their_value():
    run = make_single_run([["pass"], ["flag"]])
    client = client_of("vote", "manage")
    address = f"/api/runs/{run.pk}/judge-eval/simulate"
    reply = client.post(address, {"choice": "pass"}, content_type="application/json")
    assert reply.json()["voted"] == 2
    seal_all(run.queue.project)
    assert [item.value_sum for item in pairs_of(run)] == [1_000_000] * 2
    assert_sound(run.queue.project)


# --- judges that join ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with provider() as running:
        yield running


def join(run, **joining):
    address = f"/api/runs/{run.pk}/judges"
    return client_of("manage").post(address, joining, content_type="application/json")


def logged_run(items=3, **fields):
    """A run of single items that a client logs: no judge was asked."""
    about = {"kind": "pass_flag", "ballot": ["pass", "flag"]} | fields
    run = create_study(make_project(), "Logged", "Is it right?", **about)
    for number in range(items):
        make_item(run.queue, f"Answer {number}")
    return run


def test_judges_join_a_run_whose_items_were_logged_and_voted_on(server):
    make_provider(server)
    run = logged_run(votes_per_item=2)
    voter = make_voter(run)
    for item in pairs_of(run):
        make_vote(voter, item, "pass")
    seal_all(run.queue.project)
    reply = join(run, judges=["judge-first", "judge-second", "most-frequent"])
    assert reply.status_code == 200, reply.content
    assert reply.json()["verdicts"] == 4 * 3
    run = go_on(Run.objects.get(pk=run.pk))
    assert run.state == "voting"
    seal_all(run.queue.project)
    assert_sound(run.queue.project)
    ratings = {j.name: (j.rating.agree, j.rating.disagree) for j in run.judges.all()}
    assert ratings == {
        "judge-first": (3, 0),
        "judge-second": (0, 3),
        "always-pass": (3, 0),
        "always-flag": (0, 3),
        "random": ANY,
    }
    assert all(item.opened_at for item in pairs_of(run))


def test_what_is_logged_later_is_judged_too(server):
    make_provider(server)
    run = logged_run(votes_per_item=2)
    join(run, judges=["judge-first", "always-flag"])
    go_on(Run.objects.get(pk=run.pk))
    make_item(run.queue, "A later answer")
    state.want_verdicts_on_new_items()
    go_on(Run.objects.get(pk=run.pk))
    # Two judges, and beside a baseline that is named the others that look at nothing.
    assert Verdict.objects.filter(judge__run=run, state="done").count() == 4 * 4


@pytest.mark.parametrize(
    "joining, status, why",
    [
        ({"judges": []}, 422, "must have at least 1"),
        ({"judges": ["always-maybe"]}, 422, "must be one of the baselines here"),
        ({"judges": ["j"], "budget_usd": 1}, 409, "price"),
        ({"judges": ["j"], "provider": "nobody"}, 409, "no provider named nobody"),
        ({"judges": ["always-pass", "always-pass"]}, 422, "is given twice"),
        ({"judge": ["j"]}, 422, "did you mean 'judges'"),
    ],
)
def test_judges_that_cannot_join_are_refused_and_nothing_is_changed(server, joining, status, why):
    make_provider(server)
    run = logged_run()
    reply = join(run, **joining)
    assert (reply.status_code, why in str(reply.json()["detail"])) == (status, True), reply.json()
    run.refresh_from_db()
    assert (run.config, run.state, Judge.objects.filter(run=run).count()) == (None, "voting", 0)


def test_a_judge_joins_once(server):
    make_provider(server)
    run = logged_run()
    join(run, judges=["always-pass"])
    go_on(Run.objects.get(pk=run.pk))
    reply = join(run, judges=["always-pass"])
    assert reply.status_code in (409, 422)
    assert Judge.objects.filter(run=run).count() == 1
    assert join(run, judges=["always-flag"]).status_code == 200
    run.refresh_from_db()
    assert [judge["id"] for judge in run.config["judges"]] == ["always-pass", "always-flag"]

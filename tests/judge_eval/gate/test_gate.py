"""The gate by REST: what is decided and refused, who is asked, and what is written of it."""

from copy import deepcopy
from xml.etree import ElementTree

import pytest

from humanjudge.cli.gate import junit_xml, summary
from judge_eval.exports.export import export_project
from judge_eval.models import Board, Call, Findings, Judge, Run, Verdict
from tests.helpers.board_rows import make_studied_run
from tests.helpers.bundles import empty_the_instance, restored
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.run_maker import go_on, make_provider
from tests.makers import (
    key_client,
    make_key,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from tests.provider import provider
from voting.models import Project, Queue

pytestmark = pytest.mark.django_db


def ask(run, judge="near-judge", *, key=None, **conditions):
    client = key_client(key or make_key("read")[1])
    return client.get(f"/api/runs/{run.pk}/gate", {"judge": judge, **conditions})


def head_of(run):
    return Board.objects.get(run=run).seq


def ends(run, judge="near-judge", **conditions):
    reply = ask(run, judge, **conditions).json()
    return reply["code"], [check["code"] for check in reply["checks"]]


@pytest.fixture(scope="module")
def made_once(module_db):
    return voted_run()


@pytest.fixture
def run(made_once):
    return deepcopy(made_once)


# --- what is decided ------------------------------------------------------------------------------


def test_agreement_passes_fails_or_is_not_settled(run):
    assert ends(run, min_agreement=0.7) == (0, [0])
    assert ends(run, "contrary-judge", min_agreement=0.8) == (1, [1])
    assert ends(run, min_agreement=0.9) == (3, [3])


def test_without_an_entry_it_goes_by_the_interval_that_holds_however_often_one_looks(run):
    at = head_of(run)
    compute(run, f"at:{at}")
    judge = compute(run).data["judges"][0]
    weighed = {"min_agreement": 0.8, "not_worse_than": "contrary-judge", "margin": 0.05}
    (open_one, apart), (fixed, fixed_apart) = (
        ask(run, **weighed, **more).json()["checks"] for more in ({}, {"at": at})
    )
    # Which of the two reaches lower depends on the order in which prompts enter: it is keyed.
    assert open_one["low"] == round(judge["always_low"], 6) != round(judge["overall"]["low"], 6)
    assert open_one["code"] == (0 if open_one["low"] > 0.8 else 3)
    assert (fixed["code"], fixed["low"]) == (0, 0.811277)
    assert apart["low"] != fixed_apart["low"]


def test_few_votes_settle_nothing_where_they_are_fixed():
    run = voted_run(pairs=5)
    compute(run, f"at:{head_of(run)}")
    reply = ask(run, min_agreement=0.1, at=head_of(run)).json()
    assert reply["code"] == 3
    assert "fewer than 10" in reply["checks"][0]["words"]


def test_an_interval_that_is_withheld_settles_nothing():
    run = voted_run(pairs=12)
    row = Findings.objects.get(run=run)
    row.data["judges"][0] |= {"always_low": None, "always_high": None, "always_why": "so many"}
    for end in ("low", "high"):
        row.data["claims"][f"difference_always_{end}"][0][1] = None
    row.save()
    reply = ask(run, min_agreement=0.1, not_worse_than="contrary-judge", margin=0.9).json()
    assert [check["code"] for check in reply["checks"]] == [3, 3]
    assert all("(so many)" in check["words"] for check in reply["checks"])


def test_the_floor_passes_where_it_is_claimed_and_fails_where_a_judge_is_worse():
    run = make_studied_run(pairs=120)
    compute(run)
    assert ends(run, "good", beats_floor="true") == (0, [0])
    assert ends(run, "weak", beats_floor="true") == (3, [3])
    worse = voted_run(pairs=60)
    reply = ask(worse, "contrary-judge", beats_floor="true").json()
    assert reply["checks"][0]["words"] == "it is worse than floor-baseline"
    assert reply["code"] == 1


def test_another_judge_is_compared_by_the_paired_difference(run):
    against = {"not_worse_than": "contrary-judge", "margin": 0.05}
    assert ends(run, **against) == (0, [0])
    assert ends(run, "contrary-judge", not_worse_than="near-judge", margin=0.05) == (1, [1])
    # A judge against itself has no interval.
    assert ends(run, not_worse_than="near-judge", margin=0.05) == (3, [3])


def test_a_judge_like_people_passes_the_alt_test(run):
    assert ends(run, like_people="true") == (0, [0])
    assert ends(run, "contrary-judge", like_people="true", epsilon=0.3) == (1, [1])
    # It passes no test, and nothing shows that it is worse than it may be.
    row = Findings.objects.get(run=run, part="")
    tested = row.data["alt_test"]["judges"][1]
    tested["shortfall"] |= {"low": 0.25, "high": 0.9}
    row.save()
    assert ends(run, "contrary-judge", like_people="true", epsilon=0.3) == (3, [3])
    assert ends(run, "contrary-judge", like_people="true", epsilon=0.2) == (1, [1])
    two = ask(voted_run(people=2), like_people="true").json()
    assert two["code"] == 3
    assert "2 people voted" in two["checks"][0]["words"]


def test_of_several_conditions_one_that_fails_decides_else_one_that_is_not_settled(run):
    both = {"min_agreement": 0.9, "like_people": "true"}
    assert ends(run, **both) == (3, [3, 0])
    assert ends(run, "contrary-judge", **both)[0] == 1


def test_later_votes_are_left_out_where_the_anchors_are_frozen():
    run = voted_run(pairs=40)
    at = head_of(run)
    compute(run, f"at:{at}")
    before = ask(run, min_agreement=0.8, at=at).json()
    pair = pairs_of(run)[0]
    pair.votes_wanted = 9
    pair.save()
    for _ in range(3):
        make_vote(make_voter(run), pair, "A")
    seal_all(run.queue.project)
    # Figures that lack a sealed vote decide nothing, whoever asks.
    behind = {"state": "computing", "ledger_seq": head_of(run)}
    assert ask(run, min_agreement=0.8).json() == behind
    assert ask(run, min_agreement=0.8, at=at).json() == behind
    # Whoever has waited for these entries does not wait for those that came meanwhile.
    assert ask(run, min_agreement=0.8, known=at).json()["seq"] == at
    compute(run)
    compute(run, f"at:{at}")
    frozen, now = (ask(run, min_agreement=0.8, **more).json() for more in ({"at": at}, {}))
    assert (frozen["votes"], now["votes"], frozen["at"]) == (120, 123, at)
    assert frozen["checks"] == before["checks"]
    # A verdict that changes later is an answer like any other.
    assert ask(run, min_agreement=0.8, at=10**6).status_code == 409


def test_a_bundle_takes_the_anchors_along(run):
    at, conditions = head_of(run), {"min_agreement": 0.8, "beats_floor": "true"}
    compute(run, f"at:{at}")
    before = ask(run, at=at, **conditions).json()
    lines = list(export_project(run.queue.project))
    empty_the_instance()
    [back] = restored(lines)
    compute(back)
    compute(back, f"at:{at}")
    assert ask(back, at=at, **conditions).json() == before


def test_what_a_judge_did_not_answer_counts_against_it_and_is_said():
    run = voted_run(computed=False)
    judge = Judge.objects.get(run=run, name="near-judge")
    judge.verdicts.filter(item__position__lt=10).update(
        state="failed", winner="", score_a=None, score_b=None, error="no answer"
    )
    compute(run)
    reply = ask(run, min_agreement=0.8).json()
    assert reply["wordings"] == 2
    assert reply["notes"] == [
        "Best of 2 wordings tried on these votes.",
        "It gave no verdict on 10 items; votes there count against it.",
    ]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "conditions, says",
    [
        ({}, "name a condition"),
        ({"judge": "", "min_agreement": 0.8}, "judge: name one"),
        ({"not_worse_than": "x"}, "must be given together with not_worse_than"),
        ({"margin": 0.1, "beats_floor": "true"}, "must be given together with not_worse_than"),
        ({"beats_floor": "true", "epsilon": 0.1}, "can only be given with like_people"),
        ({"like_people": "true", "epsilon": 0.123}, "must be one of 0.00, 0.05"),
        ({"min_agreement": 80}, "less than or equal to 1"),
        (
            {"min_agreement": 0.8, "judge": "nobody"},
            "not on the board (near-judge, contra",
        ),
        ({"beats_floor": "true", "min_agrement": 0.8}, "min_agrement: there is no such condition"),
    ],
)
def test_what_is_not_asked_well_is_refused_with_the_reason(run, conditions, says):
    response = ask(run, **conditions)
    assert response.status_code in (404, 409, 422)
    why = response.json()["detail"]
    if not isinstance(why, str):
        why = f"{why[0]['path']}: {why[0]['message']}"
    assert says in why


def test_simulated_votes_are_no_labels(run):
    Queue.objects.filter(pk=run.queue_id).update(is_simulated=True)
    response = ask(run, min_agreement=0.8)
    assert response.status_code == 409
    assert "simulated" in response.json()["detail"]


def test_a_key_needs_read_and_its_own_project_and_nothing_left_to_vote_on():
    run = voted_run(pairs=12)
    assert ask(run, key=make_key("vote")[1], min_agreement=0.8).status_code == 403
    other = Project.objects.create(name="Other")
    assert ask(run, key=make_key("read", project=other)[1], min_agreement=0.8).status_code == 404
    Queue.objects.filter(pk=run.queue_id).update(votes_per_item=9)
    run.queue.items.update(votes_wanted=9)
    assert ask(run, key=make_key("read", "vote")[1], min_agreement=0.8).status_code == 403


def test_while_judges_are_asked_nothing_is_decided(run):
    Run.objects.filter(pk=run.pk).update(state="judging")
    assert ask(run, min_agreement=0.8).json()["state"] == "computing"


# --- who is asked first ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def provider_server():
    with provider() as running:
        yield running


def request_missing(run, judge, status=200, **more):
    client = key_client(make_key("manage")[1])
    body = {"judge": judge, **more}
    response = client.post(f"/api/runs/{run.pk}/gate/ask", body, content_type="application/json")
    assert response.status_code == status
    return response.json().get("verdicts", response.json().get("detail"))


def verdicts_by(name):
    return Verdict.objects.filter(judge__name=name)


def test_one_judge_is_asked_about_items_with_votes_and_nobody_else(provider_server):
    make_provider(provider_server)
    run = voted_run(pairs=12, people=1, computed=False)
    at = head_of(run)
    unvoted = run.queue.items.filter(position__gte=10)
    unvoted.update(votes=0)
    assert request_missing(run, "judge-first") == 10
    go_on(run)
    assert not verdicts_by("judge-first").filter(item__in=unvoted).exists()
    # There is nothing left to ask, of one whose verdicts were imported neither.
    assert request_missing(run, "judge-first") == 0
    assert request_missing(run, "near-judge") == 0
    # What failed is asked again, of this judge alone; up to an entry, what had votes then.
    assert request_missing(run, "judge-tie") == 10
    go_on(run)
    for name in ("judge-first", "judge-tie"):
        failed = verdicts_by(name).filter(item__position__lt=3)
        Call.objects.filter(verdict__in=failed).update(
            state="failed", winner="", score_a=None, score_b=None, error="no answer"
        )
        failed.update(state="failed", winner="", score_a=None, score_b=None, error="no answer")
    assert request_missing(run, "judge-first", at=0) == 0
    judge = Judge.objects.get(run=run, name="judge-first")
    assert request_missing(run, str(judge.pk)[:8], at=at) == 3
    go_on(run)
    assert not verdicts_by("judge-first").filter(state="failed").exists()
    assert verdicts_by("judge-tie").filter(state="failed").count() == 3


def test_a_run_on_which_judges_are_tuned_takes_new_ones_in_its_workshop():
    run = voted_run(pairs=4, computed=False)
    Queue.objects.filter(pk=run.queue_id).update(is_tuning=True, held_out_from=0)
    assert "in its workshop" in request_missing(run, "judge-new", status=409)


# --- what is written ------------------------------------------------------------------------------

HOSTILE = '<b>a|b</b> & "x" \x00\x1b[31m\n# [l](javascript:alert(1)) @all _i_ http://e.vil ]]>'


def hostile_reply():
    check = {"name": "not-worse-than", "result": "failed", "code": 1, "words": f"of {HOSTILE}"}
    return {
        "run": "7",
        "run_name": HOSTILE,
        "judge_name": HOSTILE,
        "result": "failed",
        "at": 9,
        "votes": 1,
        "people": 1,
        "items": 1,
        "checks": [check, {**check, "code": 3}, {**check, "code": 0}],
        "notes": [HOSTILE],
    }


def test_names_are_text_in_xml():
    tree = ElementTree.fromstring(junit_xml(hostile_reply()))
    [suite] = tree
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert suite[0][0].get("message").startswith('of <b>a b</b> & "x" [31m # [l](javascript')
    *cases, notes = suite
    assert [len(case) for case in cases] == [1, 1, 0]
    assert notes.text.startswith('<b>a b</b> & "x" [31m')


def test_names_are_text_in_markdown():
    text = summary(hostile_reply())
    assert len(text.splitlines()) == 11
    for sign in ("<", "[", "]", "@", "_", "://", "&amp", "e.v"):
        assert sign not in text
    assert all(row.count("|") == 4 for row in text.splitlines() if row.startswith("|"))

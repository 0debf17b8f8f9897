"""Claiming costs the same for one call and for fifty; writing costs the same for each."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge_eval.judging import leases, results, verdicts
from judge_eval.judging.requests import question_of
from judge_eval.models import Call, Provider, Run
from judge_eval.runs import state
from judge_eval.runs.progress import progress_of
from tests.helpers.run_budget import priced
from tests.helpers.run_maker import a_verdict, ask, attempt, make_started, says
from voting.models import Entry, Inference

pytestmark = [pytest.mark.both, pytest.mark.django_db]

LIMITS = {"concurrency": 1000, "requests_per_minute": 600_000}


def queries_of(action):
    with CaptureQueriesContext(connection) as queries:
        action()
    return len(queries)


def judging_run(at, pairs):
    """A run of which as many pairs wait for a judge as are wanted."""
    says(at, a_verdict())
    prompts = [f"Say {n}." for n in range(pairs)]
    run = make_started(at, priced(**LIMITS), budget_usd=100, judges=["judge-long"], prompts=prompts)
    Provider.objects.update(next_start_at=None, requests_per_minute=None)
    attempt(slots=1000)
    Provider.objects.update(**LIMITS)
    state.advance(run.pk)
    return run


def claimed(number):
    """So many calls, of a provider whose pace has room for them."""
    Provider.objects.update(next_start_at="2020-01-01T00:00Z")
    calls = leases.claim(number, uuid4())
    assert len(calls) == number
    return calls


@pytest.mark.parametrize("kind", ["fresh", "lost"])
def test_claiming_fifty_calls_asks_as_often_as_claiming_one(at, kind):
    judging_run(at, 26)
    if kind == "lost":
        Call.objects.filter(state="waiting").update(
            lease=uuid4(), leased_until="2020-01-01T00:00Z", reserved_nano=5
        )
        Run.objects.update(reserved_nano=52 * 5)
    one = queries_of(lambda: claimed(1))
    assert queries_of(lambda: claimed(50)) == one
    assert one <= (14 if kind == "lost" else 12)


def test_asking_what_claimed_calls_ask_needs_no_query_but_the_config_once(at):
    judging_run(at, 25)
    there = Provider.objects.get()
    calls = claimed(50)
    question_of(calls[0], there)
    assert queries_of(lambda: [question_of(call, there) for call in calls]) == 0


def test_looking_for_stored_replies_is_one_query(at):
    judging_run(at, 25)
    there = Provider.objects.get()
    questions = [question_of(call, there) for call in claimed(50)]
    assert queries_of(lambda: results.stored_replies(questions)) == 1


def test_each_answer_is_written_with_as_many_queries(at):
    judging_run(at, 25)
    answers = [ask(call) for call in claimed(50)]
    counts = [queries_of(lambda a=answer: results.write([a])) for answer in answers]
    assert len(counts) == 50
    assert set(counts) == {counts[0]}
    # A savepoint and its release, the lock, the call, the purse.
    assert counts[0] == 5


def test_settling_ten_verdicts_asks_as_often_as_settling_one(at):
    judging_run(at, 25)
    final = results.write([ask(call) for call in claimed(50)])
    first, *others = sorted({call.verdict_id for call in final})
    verdicts.settle([first])  # the judge has its name from here on
    one = queries_of(lambda: verdicts.settle(others[:1]))
    assert queries_of(lambda: verdicts.settle(others[1:11])) == one
    assert Entry.objects.filter(kind="verdicts").count() == 12
    # The calls and the verdicts; three savepoints and their releases; the pairs and their verdicts,
    # locked and read twice; the verdicts, pairs and entries written, after a look for entries that
    # an import has made.
    assert one <= 16


def test_giving_ten_calls_back_asks_as_often_as_giving_back_one(at):
    judging_run(at, 25)
    one, *ten = claimed(11)
    assert queries_of(lambda: leases.let_go(*ten)) == queries_of(lambda: leases.let_go(one))
    assert not Call.objects.filter(attempts__gt=0, purpose="judge").exists()


# SQLite takes so many values in a statement and no more.
@pytest.mark.postgresql_only
@pytest.mark.parametrize("kind", ["both", "random"])
def test_asking_for_fifty_verdicts_is_as_many_queries_as_for_one(at, kind):
    def pending(pairs):
        prompts = [f"Say {n}." for n in range(pairs)]
        run = make_started(
            at, priced(**LIMITS), judges=["judge-long"], prompts=prompts, verdict_orders=kind
        )
        Call.objects.filter(run=run).update(state="done")
        for call in Call.objects.filter(run=run):
            call.inference = Inference.objects.create(
                project=run.queue.project,
                prompt=prompts[call.prompt],
                output=f"{call.model} says it.",
                kind="text",
                generator=call.model,
            )
            call.save()
        run.refresh_from_db()
        state.pair_outputs(run)
        return lambda: state.ask_for_verdicts(run)

    assert queries_of(pending(50)) == queries_of(pending(1))
    assert Call.objects.filter(purpose="judge").count() == 51 * (2 if kind == "both" else 1)


@pytest.mark.parametrize("pairs", [1, 30])
def test_progress_is_eight_queries_whatever_the_size(at, pairs):
    run = judging_run(at, pairs)
    attempt(slots=7)
    assert queries_of(lambda: progress_of(run)) == 8

"""What a crew does about calls that cannot be asked or kept, and hands that do not come back."""

from uuid import uuid4

import pytest

from judge_eval.judging import leases, pool, results, worker
from judge_eval.judging.pool import IN_A_ROW, Pool
from judge_eval.judging.providers.chat import ChatReply
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.judging.requests import question_of
from judge_eval.judging.results import CallAnswer
from judge_eval.judging.worker import MOST_ASIDE, to_set_aside
from judge_eval.models import Call, Provider, Run
from tests.helpers.run_maker import PRICES, go_on, leases_run_out, make_judging, make_started
from tests.helpers.waiting import eventually

pytestmark = pytest.mark.slow

NO = CallFailed("No.")
MODELS = ["model-a", "model-b", "judge-long", "judge-hash"]


def questions(calls):
    provider = Provider.objects.get()
    return [question_of(call, provider) for call in calls]


def by_model(calls):
    made = questions(calls)
    return {
        name: [one for one in made if one.call.model == name] for _, name in {q.model for q in made}
    }


@pytest.fixture
def asking(monkeypatch):
    """Ask by hands of a crew; return what was collected once so many answers came."""
    hired = []

    def ask(number, *, now, aside=(), answers):
        hired.append(Pool(number))
        for question in aside:
            hired[-1].set_aside(question)
        for question in now:
            hired[-1].ask(question)
        collected = hired[-1].collect(5)
        while len(collected.answers) < answers:
            more = hired[-1].collect(5)
            collected.answers += more.answers
            collected.followed += more.followed
            collected.dropped += more.dropped
        return collected

    yield ask
    for one in hired:
        one.dismiss()


@pytest.mark.django_db
class TestPool:
    def test_calls_that_were_set_aside_follow_where_others_are_answered(self, at, asking):
        make_started(at, prompts=list("abcd"))
        asked = questions(leases.claim(8, uuid4()))
        collected = asking(2, now=asked[:2], aside=asked[2:], answers=8)
        assert {answer.question.call.pk for answer in collected.answers} == {
            question.call.pk for question in asked
        }
        assert collected.followed == asked[2:]
        assert not collected.dropped
        assert at.log()["peak"] <= 2

    def test_nothing_follows_a_model_s_wish_to_be_left_alone_but_other_models(self, at, asking):
        make_started(at, prompts=list("abcd"))
        at.control(mode="429", retry_after=7, models=["model-a"])
        models = by_model(leases.claim(8, uuid4()))
        asked = models["model-a"] + models["model-b"]
        collected = asking(1, now=asked[:1], aside=asked[1:], answers=5)
        assert collected.followed == models["model-b"]
        assert collected.dropped == models["model-a"][1:]
        assert len(at.requests) == 5

    def test_with_an_answer_that_nobody_has_collected_they_are_busy(self, at):
        make_started(at)
        [question] = questions(leases.claim(1, uuid4()))
        crew_pool = Pool(1)
        assert not crew_pool.busy
        crew_pool.ask(question)
        eventually(lambda: not crew_pool.out())
        assert crew_pool.busy
        crew_pool.dismiss()
        assert len(crew_pool.collect(0).answers) == 1
        assert not crew_pool.busy

    def test_one_refusal_for_being_too_much_is_that_call_s_own_affair(self, at, asking):
        make_started(at, prompts=list("abcd"))
        at.control(mode="429", times=1)
        asked = questions(leases.claim(8, uuid4()))
        collected = asking(1, now=asked[:1], aside=asked[1:], answers=8)
        assert collected.followed == asked[1:]

    def test_nothing_follows_the_last_of_several_refusals_in_a_row(self, at, asking):
        make_started(at, prompts=list("abcd"))
        at.control(mode="429", times=IN_A_ROW)
        asked = by_model(leases.claim(8, uuid4()))["model-a"]
        collected = asking(1, now=asked[:1], aside=asked[1:], answers=IN_A_ROW)
        assert (collected.followed, collected.dropped) == (asked[1:IN_A_ROW], asked[IN_A_ROW:])
        [(model, seconds, why)] = collected.pauses
        assert (model, seconds) == (("default", "model-a"), 1)
        assert "rate limit reached" in why
        assert len(at.requests) == IN_A_ROW

    def test_only_what_is_of_the_runs_that_are_kept_is_begun(self, at):
        kept, stopped = (make_started(at, prompts=["one"]) for _ in range(2))
        asked = questions(leases.claim(4, uuid4()))
        crew_pool = Pool(1)
        for question in asked:
            crew_pool.set_aside(question)
        crew_pool.drop(lambda question: question.call.run_id != kept.pk)
        gone = crew_pool.collect(0).dropped
        assert {question.call.run_id for question in gone} == {stopped.pk}
        assert crew_pool.aside()["default"] == 2

    def test_what_is_dropped_is_not_begun(self, at):
        make_started(at, prompts=list("ab"))
        at.control(mode="slow", slow_ms=300)
        asked = questions(leases.claim(4, uuid4()))
        crew_pool = Pool(1)
        for question in asked[1:]:
            crew_pool.set_aside(question)
        crew_pool.ask(asked[0])
        crew_pool.drop(lambda question: question.call.model == "another")
        assert crew_pool.aside()["default"] == 3
        crew_pool.drop()
        [answer] = (collected := crew_pool.collect(5)).answers
        assert answer.question is asked[0]
        assert (collected.followed, collected.dropped) == ([], asked[1:])
        crew_pool.dismiss()

    def test_what_was_set_aside_long_ago_is_not_begun(self, at, asking, monkeypatch):
        monkeypatch.setattr(pool, "ASIDE_SECONDS", -1)
        make_started(at)
        asked = questions(leases.claim(2, uuid4()))
        collected = asking(1, now=asked[:1], aside=asked[1:], answers=1)
        assert collected.dropped == asked[1:]

    def test_a_hand_that_does_not_come_back_is_done_without(self, at, monkeypatch):
        monkeypatch.setattr(pool, "GRACE_SECONDS", -59.9)
        make_started(at)
        at.control(mode="slow", slow_ms=1000, times=1)
        late, good = questions(leases.claim(2, uuid4()))
        crew_pool = Pool(1)
        crew_pool.ask(late)
        eventually(lambda: at.requests)
        [answer] = eventually(lambda: crew_pool.collect(0.1).answers)
        assert answer.question is late
        assert answer.failure.retryable
        assert "did not come back" in answer.failure.reason
        monkeypatch.setattr(pool, "GRACE_SECONDS", 10)
        assert crew_pool.free == 1
        crew_pool.ask(good)
        [answer] = eventually(lambda: crew_pool.collect(0.1).answers)
        assert answer.question is good
        # The late reply is nobody's, and its hand goes home.
        assert not crew_pool.collect(1.2).answers
        crew_pool.dismiss()


@pytest.mark.django_db
class TestPace:
    @pytest.mark.parametrize(
        "latency_ms,replies,ahead", [(150, 1, 10), (150, 8, 20), (1, 8, MOST_ASIDE), (4000, 8, 0)]
    )
    def test_as_many_are_set_aside_as_are_answered_soon(self, at, latency_ms, replies, ahead):
        make_started(at, {"concurrency": 2})
        [question] = questions(leases.claim(1, uuid4()))
        reply = ChatReply("Fine.", "m", latency_ms=latency_ms)
        assert to_set_aside([CallAnswer(question, reply=reply)] * replies, 0, 4) == ahead

    def test_calls_that_are_out_count_as_well_as_those_that_were_answered(self, at):
        make_started(at, {"concurrency": 64})
        [question] = questions(leases.claim(1, uuid4()))
        reply = ChatReply("Fine.", "m", latency_ms=1000)
        assert to_set_aside([CallAnswer(question, reply=reply)] * 4, 60, 512) == 96

    def test_failures_tell_nothing_of_it(self, at):
        make_started(at)
        [question] = questions(leases.claim(1, uuid4()))
        assert to_set_aside([CallAnswer(question, failure=NO)] * 9, 8, 4) == 0


@pytest.mark.django_db
class TestClaims:
    def test_what_is_set_aside_holds_no_place_and_nobody_else_takes_it(self, at):
        make_started(at, {"concurrency": 2}, prompts=list("abcd"))
        first, second = uuid4(), uuid4()
        claimed = leases.claim(4, first, {"default": 3})
        assert [call.lease for call in claimed] == [first] * 2 + [None] * 3
        assert leases.claim(4, second) == []
        Provider.objects.update(concurrency=5)
        assert len(leases.claim(4, second)) == 3

    def test_many_calls_at_once_are_shared_among_the_crews(self, at):
        make_started(at, {"concurrency": 200}, prompts=[f"prompt {n}" for n in range(200)])
        first, second = uuid4(), uuid4()
        alone = leases.claim(500, first)
        assert len(alone) == 200
        # There is no place yet, but from now on the first makes room.
        assert leases.claim(500, second) == []
        assert leases.claim(0, first, {"default": 50}) == []
        leases.let_go(*alone[:30])
        assert len(leases.claim(500, first)) == 29
        assert len(leases.claim(500, second)) == 1
        assert leases.claim(500, first, {"default": 50}) == []
        leases.let_go(*alone[30:150])
        assert len(leases.claim(500, second)) == 99
        assert len(leases.claim(500, first)) == 21

    def test_a_few_calls_at_once_are_not_shared(self, at):
        make_started(at, {"concurrency": 64}, prompts=[f"prompt {n}" for n in range(60)])
        first, second = uuid4(), uuid4()
        assert len(leases.claim(500, first)) == 64
        assert leases.claim(500, second) == []
        assert len(leases.claim(0, first, {"default": 50})) == 50

    def test_what_was_set_aside_is_taken_unless_it_was_another_s_meanwhile(self, at):
        make_started(at, prompts=list("ab"))
        mine = uuid4()
        [call] = leases.claim(0, mine, {"default": 1})
        leases.take([call], mine)
        assert Call.objects.get(pk=call.pk).lease == mine

        [other] = leases.claim(0, mine, {"default": 1})
        leases_run_out(pk=other.pk)
        theirs = uuid4()
        claimed = leases.claim(0, theirs, {"default": 4})
        assert other.pk in {call.pk for call in claimed}
        leases.take([other], mine)
        assert Call.objects.get(pk=other.pk).lease is None
        leases.take(claimed, theirs)
        assert Call.objects.get(pk=other.pk).lease == theirs

    def test_what_is_let_go_is_as_it_was_and_its_money_is_back(self, at):
        run = make_started(at, {"prices": {"model-a": PRICES}})
        before = Call.objects.order_by("pk").values()[0]
        call, *_ = claimed = leases.claim(1, uuid4(), {"default": 1})
        for each in claimed:
            assert leases.reserve(each, 1000)
            leases.let_go(each)
        assert Call.objects.filter(pk=call.pk).values()[0] == before
        assert Run.objects.get(pk=run.pk).reserved_nano == 0

    def test_an_answer_to_what_was_set_aside_is_written_unless_it_was_another_s_meanwhile(self, at):
        make_started(at, prompts=list("ab"))
        late = leases.claim(0, uuid4(), {"default": 2})
        answers = [CallAnswer(question, failure=NO) for question in questions(late)]
        leases_run_out(pk=late[0].pk)
        again = leases.claim(0, uuid4(), {"default": 4})
        assert late[0].pk in {call.pk for call in again}
        results.write(answers)
        assert Call.objects.get(state="failed").pk == late[1].pk

    def test_too_many_out_set_nothing_aside(self, at):
        make_started(at, {"concurrency": 3}, prompts=list("abcd"))
        leases.claim(3, uuid4())
        assert len(leases.claim(0, uuid4(), {"default": 1})) == 1
        Provider.objects.update(concurrency=2)
        assert leases.claim(0, uuid4(), {"default": 1}) == []

    def test_a_limit_of_calls_a_minute_sets_nothing_aside(self, at):
        make_started(at, {"requests_per_minute": 60}, prompts=list("abcd"))
        assert len(leases.claim(8, uuid4(), {"default": 8})) == 1

    def test_a_small_run_is_not_held_up_by_a_large_one(self, at):
        large = make_started(at, prompts=[f"prompt {n}" for n in range(50)])
        leases.claim(4, uuid4())
        Provider.objects.all().delete()
        small = make_started(at, prompts=["one"])
        assert {call.run_id for call in leases.claim(2, uuid4())} == {small.pk}
        assert {call.run_id for call in leases.claim(2, uuid4())} == {large.pk}

    def test_a_busy_provider_does_not_hold_up_another(self, at):
        make_started(at, prompts=[f"prompt {n}" for n in range(50)])
        leases.claim(4, uuid4())
        run = make_started(at, {"name": "another"}, provider="another", prompts=["one"])
        assert {call.run_id for call in leases.claim(2, uuid4())} == {run.pk}


@pytest.mark.django_db
class TestCrew:
    def test_a_call_that_cannot_be_asked_fails_and_the_others_are_made(self, at):
        run = make_started(at, judges=["judge-long"], prompts=list("abc"))
        broken = Call.objects.filter(prompt=1, model="model-a")
        broken.update(prompt=99)
        run = go_on(run)
        call = Call.objects.get(prompt=99)
        assert (call.state, call.lease) == ("failed", None)
        assert call.error.startswith("it could not be asked: ")
        assert run.events.filter(kind="call_failed").count() == 1
        assert run.state == "voting"

    def test_a_provider_that_is_deleted_as_its_calls_are_claimed(self, at, monkeypatch):
        run = make_started(at, judges=["judge-long"])
        claim = leases.claim

        def claim_and_lose(*args, **more):
            claimed = claim(*args, **more)
            Provider.objects.all().delete()
            return claimed

        monkeypatch.setattr(leases, "claim", claim_and_lose)
        worker.work()
        assert set(Call.objects.values_list("state", "error", "lease")) == {
            ("failed", "there is no provider named default", None)
        }
        assert run.events.filter(kind="call_failed").count() == 4
        assert at.requests == []

    def test_models_that_say_nothing_but_that_it_is_too_much_are_left_alone(self, at):
        make_started(at, {"concurrency": 2}, prompts=[f"prompt {n}" for n in range(20)])
        at.control(mode="429")
        worker.work(should_stop=lambda: len(Provider.objects.get().pauses) == 2)
        assert Provider.objects.get().pauses.keys() == {"model-a", "model-b"}
        assert 6 <= len(at.requests) <= 16
        assert Call.objects.filter(attempts=0).count() >= 40 - 16

    def test_one_refusal_among_replies_is_that_call_s_own_affair(self, at):
        run = make_started(at, {"concurrency": 1}, prompts=["one", "two"])
        at.control(mode="429", times=2)
        go_on(run)
        assert Provider.objects.get().pauses == {}
        assert at.log()["modes"]["429"] == 2

    def test_a_crew_that_must_stop_begins_nothing(self, at):
        make_started(at)
        worker.work(should_stop=lambda: True)
        assert not at.requests
        assert not Call.objects.exclude(attempts=0).exists()

    def test_a_repeated_run_is_answered_from_storage_and_nothing_is_asked(self, at):
        go_on(make_started(at))
        asked = len(at.requests)
        Provider.objects.all().delete()
        run = go_on(make_started(at))
        assert run.state == "voting"
        assert len(at.requests) == asked
        assert not run.calls.filter(reused=None).exists()


@pytest.mark.django_db
def test_leases_are_renewed_before_anything_is_claimed(at):
    run = make_judging(at)
    one, two = Call.objects.filter(run=run, state="waiting")
    lease = uuid4()
    assert len(leases.claim(2, lease)) == 2
    leases_run_out()
    leases.renew(lease, [one.pk])
    assert [call.pk for call in leases.claim(2, uuid4())] == [two.pk]

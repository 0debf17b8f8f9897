"""Traces over `/api/v1`: logged once, put before voters, read back with what was voted."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reports.grandjury import services
from reports.models import Trace
from tests.helpers.concurrent_calls import together
from tests.helpers.grandjury import Person, get, make_voter, post, rows, vote
from tests.helpers.imports import assert_whole
from tests.helpers.run_findings import compute
from tests.makers import make_project, seal_all
from voting.ballot.services import undo_last_vote
from voting.models import Assignment, Entry, Exposure, Inference, Item, Queue, Voter

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.fixture
def ada():
    return Person("ada")


@pytest.fixture
def bot(ada):
    return ada.model("Bot")


def seal(model):
    seal_all(model.row.project)


# --- logging ------------------------------------------------------------------------------------


def test_a_trace_is_an_open_item_of_the_models_queue(bot):
    told = {"name": "chat", "model": "m-1", "latency_ms": 5, "prompt_tokens": 1}
    told |= {"completion_tokens": 2, "metadata": {"a": 1}}
    response = bot.log("t-1", "Hello", **told)
    assert (response.status_code, response.json()) == (201, {"gj_inference_id": "t-1"})
    item = bot.item("t-1")
    assert (item.position, item.b, item.votes_wanted) == (0, None, 1)
    assert timezone.now() - item.opened_at < timedelta(minutes=1)
    assert (item.a.prompt, item.a.output, item.a.kind) == ("A question", "Hello", "text")
    assert item.a.generator == "Bot"
    assert item.a.metadata == told


def test_a_trace_opens_in_the_ledger_before_its_votes_and_has_figures_without_a_judge(bot):
    bot.log("t-1", "Hello")
    item = bot.item("t-1")
    vote(make_voter(bot.row.project), item)
    seal(bot)
    _, opened, voted = Entry.objects.order_by("seq")  # behind that of the run
    assert (opened.kind, opened.item, voted.kind) == ("verdicts", item, "vote")
    run = item.queue.run
    assert opened.payload.keys() == {"run", "prompt", "votes_wanted", "item", "texts", "verdicts"}
    assert (opened.payload["prompt"], opened.payload["verdicts"]) == (item.prompt_key, [])
    assert compute(run).data["as_of"]["votes"] == 1
    assert_whole(bot.row.project)


def test_the_same_trace_again_changes_nothing(bot):
    bot.log("t-1", "Hello")
    again = bot.log("t-1", "Something else")
    assert (again.status_code, again.json()) == (200, {"gj_inference_id": "t-1"})
    assert [output.output for output in Inference.objects.all()] == ["Hello"]
    assert Item.objects.count() == 1


def test_two_models_of_a_project_may_use_the_same_name(ada, bot):
    other = ada.model("Other")
    assert bot.log("t-1").status_code == other.log("t-1").status_code == 201
    assert list(Item.objects.order_by("position").values_list("position", flat=True)) == [0, 1]


def test_what_a_client_need_not_say(bot):
    least = {"gj_inference_id": "t-1", "output": "Hello"}
    nothing = dict.fromkeys(("name", "input", "model", "latency_ms", "metadata"))
    assert post(bot.client, "traces/ingest", least | nothing).status_code == 201
    assert post(bot.client, "traces/ingest", least | {"gj_inference_id": "t-2"}).status_code == 201
    later = least | {"gj_inference_id": "t-3", "conversation": "of a client to come"}
    assert post(bot.client, "traces/ingest", later).status_code == 201
    assert {output.prompt for output in Inference.objects.all()} == {""}


@pytest.mark.parametrize(
    "wrong, path",
    [
        ({"gj_inference_id": None}, "gj_inference_id"),
        ({"gj_inference_id": "x" * 201}, "gj_inference_id"),
        ({"gj_inference_id": "a\nb"}, "gj_inference_id"),
        ({"output": None}, "output"),
        ({"output": " \n"}, "output"),
        ({"output": "a\x00b"}, "output"),
        ({"output": "\ud800"}, "output"),
        ({"input": "\udfff"}, "input"),
        ({"input": 7}, "input"),
        ({"model": "\x00"}, "model"),
        ({"latency_ms": -1}, "latency_ms"),
        ({"latency_ms": "soon"}, "latency_ms"),
        ({"prompt_tokens": 1.5}, "prompt_tokens"),
        ({"metadata": "a"}, "metadata"),
        ({"metadata": {"a": [{"b\x00": 1}]}}, "metadata"),
        ({"metadata": {"a": "\ud800"}}, "metadata"),
        ({"metadata": {"a": float("nan")}}, "metadata"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_kept(bot, wrong, path):
    body = {"gj_inference_id": "t-1", "output": "Hello"} | wrong
    response = post(bot.client, "traces/ingest", json.dumps(body))
    assert response.status_code == 422
    assert [each["path"] for each in response.json()["detail"]] == [path]
    assert not Inference.objects.exists()


def test_a_body_of_more_than_a_mebibyte_is_refused(bot):
    frame = len(json.dumps({"gj_inference_id": "t-1", "output": ""}))
    assert post(bot.client, "traces/ingest", _body("t-1", (1 << 20) - frame)).status_code == 201
    for more in (1, 1 << 21):
        response = post(bot.client, "traces/ingest", _body("t-2", (1 << 20) - frame + more))
        assert response.status_code == 413
        assert "bytes" in response.json()["detail"]
    assert Trace.objects.count() == 1


def _body(name, length):
    return json.dumps({"gj_inference_id": name, "output": "x" * length})


def test_logging_costs_the_same_however_much_there_is(bot):
    bot.log("t-0")
    for number in range(1, 4):
        with CaptureQueriesContext(connection) as queries:
            bot.log(f"t-{number}")
        # The key, its model, whether the trace is known, then one transaction.
        assert len(queries) <= 11, [query["sql"] for query in queries]


# --- results ------------------------------------------------------------------------------------


def test_traces_and_votes_of_a_model(ada, bot):
    first, second, _ = bot.logged("t-1", "t-2", "t-3")
    vera, otto = (make_voter(bot.row.project, name) for name in ("Vera", "Otto"))
    vote(vera, first)
    vote(otto, first, "flag", category="unsafe", comment="No!")
    vote(vera, second, "flag")
    seal(bot)
    common = {"input": "A question", "output": "An answer", "model": "bot"}
    traces = [
        {"trace_id": "t-1", "pass_count": 1, "flag_count": 1, "total_votes": 2, "pass_rate": 0.5},
        {"trace_id": "t-2", "pass_count": 0, "flag_count": 1, "total_votes": 1, "pass_rate": 0.0},
    ]
    for client in (ada.client, bot.client):
        assert rows(client, bot.path) == [common | row for row in traces]
    votes = rows(bot.client, bot.path, detail="votes")
    assert [(row["trace_id"], row["voter_id"], row["verdict"]) for row in votes] == [
        ("t-1", vera.pseudonym, "pass"),
        ("t-1", otto.pseudonym, "flag"),
        ("t-2", vera.pseudonym, "flag"),
    ]
    assert votes[1]["flag_category"] == "unsafe"
    assert votes[1]["feedback"] == "No!"
    assert (votes[0]["flag_category"], votes[0]["feedback"]) == (None, None)
    assert {row["voter_name"] for row in votes} == {vera.pseudonym, otto.pseudonym}
    assert "Vera" not in json.dumps(votes)


def test_what_does_not_count_is_not_there(bot):
    [item] = bot.logged("t-1")
    vera = make_voter(bot.row.project)
    vote(vera, item)
    assert rows(bot.client, bot.path) == rows(bot.client, bot.path, detail="votes") == []
    seal(bot)
    assert len(rows(bot.client, bot.path, detail="votes")) == 1
    undo_last_vote(vera, item.queue)
    seal(bot)
    assert rows(bot.client, bot.path) == rows(bot.client, bot.path, detail="votes") == []


def test_the_model_of_a_trace_is_what_its_client_said_or_the_slug(bot):
    bot.log("t-1", model="gpt-x")
    bot.log("t-2")
    for name in ("t-1", "t-2"):
        vote(make_voter(bot.row.project), bot.item(name))
    seal(bot)
    assert [row["model"] for row in rows(bot.client, bot.path)] == ["gpt-x", "bot"]
    path = f"benchmarks/{bot.benchmark.slug}/votes"
    assert [row["model"] for row in rows(bot.client, path)] == ["bot", "bot"]


def test_pages_of_rows(bot):
    names = [f"t-{number}" for number in range(7)]
    vera = make_voter(bot.row.project)
    for item in bot.logged(*names):
        vote(vera, item)
    seal(bot)
    for detail in ("traces", "votes"):
        found = [
            row["trace_id"]
            for offset in (0, 3, 6, 9)
            for row in rows(bot.client, bot.path, detail=detail, limit=3, offset=offset)
        ]
        assert found == names


def test_rows_of_a_time(bot):
    early, late = bot.logged("t-1", "t-2")
    vera = make_voter(bot.row.project)
    Inference.objects.filter(pk=early.a_id).update(created_at="2026-03-01T23:59:59.5Z")
    Inference.objects.filter(pk=late.a_id).update(created_at="2026-03-02T08:00:00Z")
    for item, at in ((early, "2026-03-03T12:00:00Z"), (late, "2026-03-04T12:00:00Z")):
        Entry.objects.filter(uid=vote(vera, item).uid).update(at=at)
    seal(bot)

    def named(**query):
        return [row["trace_id"] for row in rows(bot.client, bot.path, **query)]

    assert named(to_date="2026-03-01") == ["t-1"]
    assert named(from_date="2026-03-02") == ["t-2"]
    assert named(from_date="2026-03-01", to_date="2026-03-02") == ["t-1", "t-2"]
    assert named(from_date="2026-03-02T08:00:01") == []
    assert named(to_date="2026-03-02T10:00:00+02:00") == ["t-1", "t-2"]
    assert named(detail="votes", to_date="2026-03-03") == ["t-1"]
    assert named(detail="votes", from_date="2026-03-04") == ["t-2"]


@pytest.mark.parametrize(
    "query, path",
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"offset": -1}, "offset"),
        ({"detail": "everything"}, "detail"),
        ({"from_date": "yesterday"}, "from_date"),
        ({"to_date": "2026-13-01"}, "to_date"),
    ],
)
def test_what_is_wrong_with_a_question_is_named(bot, query, path):
    response = get(bot.client, bot.path, **query)
    assert response.status_code == 422
    assert [each["path"] for each in response.json()["detail"]] == [path]


def test_exactly_a_thousand_rows_may_be_asked_for(bot):
    assert rows(bot.client, bot.path, limit=1000) == []


# --- benchmarks ---------------------------------------------------------------------------------


class Arena:
    """Ada's benchmark, with models of Bob and Cleo that were voted on."""

    def __init__(self, ada):
        self.benchmark = services.benchmark_of(make_project("Arena"), ada.user)
        services.open_to_enrolment(self.benchmark, True)
        self.path = f"benchmarks/{self.benchmark.slug}"
        self.people = {name: Person(name) for name in ("bob", "cleo")}
        self.models = {name: person.model(f"{name}s") for name, person in self.people.items()}
        voter = make_voter(self.benchmark.project)
        for name, choices in (("bob", ("pass", "flag")), ("cleo", ("pass", "pass", "pass"))):
            services.enroll(self.models[name].row, self.benchmark)
            for number, choice in enumerate(choices):
                self.models[name].log(f"{name}-{number}")
                trace = Trace.objects.get(
                    trace_id=f"{name}-{number}", enrollment__benchmark=self.benchmark
                )
                vote(voter, trace.item, choice)
        seal_all(self.benchmark.project)


@pytest.fixture
def arena(ada):
    return Arena(ada)


def test_a_leaderboard_needs_no_key(arena):
    enrolled = Person("dora").model("Unvoted")
    services.enroll(enrolled.row, arena.benchmark)
    assert rows(Client(), f"{arena.path}/leaderboard") == [
        {"model_name": "cleos", "model_slug": "cleos", "total_votes": 3, "pass_rate": 1.0},
        {"model_name": "bobs", "model_slug": "bobs", "total_votes": 2, "pass_rate": 0.5},
        {"model_name": "Unvoted", "model_slug": "unvoted", "total_votes": 0, "pass_rate": None},
    ]


def test_a_leaderboard_counts_votes_anew_only_when_there_are_new_ones(arena):
    def standing():
        with CaptureQueriesContext(connection) as queries:
            found = rows(Client(), f"{arena.path}/leaderboard")
        return found[1]["total_votes"], len(queries)

    votes, cost = standing()
    assert standing() == (votes, cost - 1)
    trace = Trace.objects.get(trace_id="bob-0", enrollment__benchmark=arena.benchmark)
    vote(make_voter(arena.benchmark.project), trace.item)
    seal_all(arena.benchmark.project)
    assert standing() == (votes + 1, cost)


def test_who_runs_a_benchmark_reads_all_and_others_their_own(ada, arena):
    def named(client, **query):
        return {row["trace_id"] for row in rows(client, f"{arena.path}/votes", **query)}

    bobs, cleos = {"bob-0", "bob-1"}, {"cleo-0", "cleo-1", "cleo-2"}
    assert named(ada.client) == named(ada.client, detail="votes") == bobs | cleos
    assert named(arena.people["bob"].client, detail="votes") == bobs
    assert named(arena.models["cleo"].client, detail="votes") == cleos
    assert named(Person("dora").client) == set()
    assert named(ada.client, model="bobs") == bobs
    assert named(ada.client, model=str(arena.models["cleo"].row.pk)) == cleos
    assert named(ada.client, model="bobs,cleos", detail="votes") == bobs | cleos
    assert named(ada.client, model="nobody") == set()
    assert named(arena.people["bob"].client, model="cleos") == set()


def test_one_evaluation_of_a_model(arena):
    bob = arena.models["bob"]
    vote(make_voter(bob.row.project), bob_item(arena))
    seal_all(bob.row.project)
    assert len(rows(bob.client, bob.path)) == 3
    benchmark, run = arena.benchmark, arena.benchmark.queue.run
    for name in (benchmark.slug, benchmark.queue_id, benchmark.project_id, run.pk):
        found = rows(bob.client, bob.path, evaluation_id=str(name))
        assert [row["trace_id"] for row in found] == ["bob-0", "bob-1"]
    assert get(bob.client, bob.path, evaluation_id="nothing").status_code == 404


def bob_item(arena):
    bob = arena.models["bob"]
    return Trace.objects.get(trace_id="bob-0", enrollment__benchmark=bob.benchmark).item


@pytest.mark.parametrize("detail", ["traces", "votes"])
def test_results_cost_the_same_however_much_there_is(ada, bot, detail):
    vera = make_voter(bot.row.project)
    counts = []
    for portion in range(2):
        for number in range(3):
            vote(vera, *bot.logged(f"t-{portion}-{number}"))
        seal(bot)
        for path in (bot.path, f"benchmarks/{bot.benchmark.slug}/votes"):
            with CaptureQueriesContext(connection) as queries:
                assert len(rows(ada.client, path, detail=detail)) == 3 * (portion + 1)
            counts.append(len(queries))
    assert counts[:2] == counts[2:] or counts[0] > counts[2]  # the key's first use is noted
    assert max(counts) <= 7


# --- who votes does not read what others think --------------------------------------------------


@pytest.fixture
def wanted_twice(bot):
    """Two traces that two people are to vote on; one has voted on both."""
    Queue.objects.filter(pk=bot.benchmark.queue_id).update(votes_per_item=2)
    items = bot.logged("t-1", "t-2")
    for item in items:
        vote(make_voter(bot.row.project), item)
    seal(bot)
    return items


def named(client, path, **query):
    return [row["trace_id"] for row in rows(client, path, **query)]


@pytest.mark.parametrize("detail", ["traces", "votes"])
def test_a_voter_reads_nothing_of_what_is_still_to_be_voted_on(ada, bot, wanted_twice, detail):
    voter = make_voter(bot.row.project, user=ada.user)
    Assignment.objects.create(voter=voter, item=wanted_twice[0], leased_until=timezone.now())
    arena = f"benchmarks/{bot.benchmark.slug}/votes"
    for path in (bot.path, arena):
        assert named(ada.client, path, detail=detail) == []
    vote(voter, wanted_twice[0])
    for path in (bot.path, arena):
        assert set(named(ada.client, path, detail=detail)) == {"t-1"}
    # A model's key is held by a program that logs, and by no voter.
    assert set(named(bot.client, bot.path, detail=detail)) == {"t-1", "t-2"}


@pytest.mark.parametrize("detail", ["traces", "votes"])
def test_who_has_read_votes_is_no_blind_voter_afterwards(ada, bot, wanted_twice, detail):
    assert named(ada.client, bot.path, detail=detail) == ["t-1", "t-2"]
    voter = Voter.objects.get(user=ada.user)
    seen = Exposure.objects.filter(voter=voter)
    assert set(seen.values_list("item", flat=True)) == {item.pk for item in wanted_twice}
    recorded = vote(voter, wanted_twice[0])
    seal(bot)
    assert Entry.objects.get(uid=recorded.uid).unblinded


def test_reading_what_nobody_can_vote_on_any_more_leaves_no_trace(ada, bot):
    vote(make_voter(bot.row.project), *bot.logged("t-1"))
    seal(bot)
    assert named(ada.client, bot.path) == ["t-1"]
    assert not Exposure.objects.exists()
    assert not Voter.objects.filter(user=ada.user).exists()


# --- at the same moment -------------------------------------------------------------------------


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_traces_at_the_same_moment_have_places_without_gaps_and_one_each(bot):
    def log(name):
        return lambda: bot.log(name).status_code

    statuses = together(*(log(f"t-{number % 4}") for number in range(8)))
    assert sorted(statuses) == [200] * 4 + [201] * 4
    assert sorted(Item.objects.values_list("position", flat=True)) == list(range(4))
    assert Inference.objects.count() == Trace.objects.count() == 4

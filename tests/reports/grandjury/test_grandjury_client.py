"""The published client `grandjury` against a running HumanJudge: every call that it has."""

import asyncio
import csv
import json
import subprocess
import sys

import pytest
import requests
from grandjury import GrandJury, GrandJuryClient
from pyarrow import parquet

from tests.helpers import oracles
from tests.helpers.recorded_votes import ROWS
from tests.process.up import ROOT, environment

pytestmark = [pytest.mark.process, pytest.mark.fault, pytest.mark.slow]

# More than two pages of a thousand hold.
MANY = 2_010
PATIENCE = 60


@pytest.fixture(scope="module")
def made(up, tmp_path_factory):
    """Make rows in the product's database, in one process for all tests."""
    errors = tmp_path_factory.mktemp("rows") / "errors"
    with (
        errors.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-m", "tests.process.grandjury_rows"],
            cwd=ROOT,
            env=environment(up.data),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        ) as process,
    ):

        def make(what, *arguments):
            process.stdin.write(f"{json.dumps([what, arguments])}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, errors.read_text()
            return json.loads(answer)

        yield make
        process.stdin.close()
        assert process.wait(60) == 0, errors.read_text()


@pytest.fixture(autouse=True)
def quiet(capfd, monkeypatch):
    """Whatever the client is asked, it has nothing to complain of."""
    for name in ("GRANDJURY_API_KEY", "GRANDJURY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield
    assert capfd.readouterr().err == ""


class Client:
    """Ada's client with her own key, and those of her models with theirs."""

    def __init__(self, up, token):
        self.url = up.url
        self.person = self._client(token=token)

    def _client(self, **key):
        return GrandJury(base_url=self.url, timeout=PATIENCE, **key)

    def new_model(self, name):
        made = self.person.models.create(name)
        return made, self._client(api_key=made["secret_key"])


@pytest.fixture(scope="module")
def ada(up, made):
    return Client(up, made("person", "ada")["token"])


@pytest.fixture(scope="module")
def bot(ada, made):
    """A model that has logged a trace by each of the client's ways, and was voted on."""
    _, gj = ada.new_model("Bot")
    logged = [gj.trace(name="chat", input="i", output="o", model="m", latency_ms=5)]
    logged.append(asyncio.run(gj.atrace(name="chat", input="i", output="o", metadata={"a": 1})))

    @gj.observe(name="op", model="m")
    def answer(prompt):
        return f"r {prompt}"

    @gj.observe()
    async def answer_later(prompt):
        return {"r": prompt}

    async def wait():
        await answer_later("hello")
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    assert answer("hello") == "r hello"
    asyncio.run(wait())
    with gj.span("op", input="p") as span:
        span.set_output({"a": 1})
        span.set_metadata(z=2)
    logged.append(span.gj_inference_id)
    made("vote_on_all", "models-of-ada", ["r hello"])
    return gj, logged


# --- logging ------------------------------------------------------------------------------------


def test_trace_atrace_observe_and_span(bot):
    gj, logged = bot
    assert all(logged)
    found = gj.results()
    assert [(row["input"], row["output"]) for row in found] == [
        ("i", "o"),
        ("i", "o"),
        ("hello", "r hello"),
        ("hello", "{'r': 'hello'}"),
        ("p", "{'a': 1}"),
    ]
    assert set(logged) <= {row["trace_id"] for row in found}


def test_a_trace_of_the_same_name_is_logged_once(ada, made):
    _, gj = ada.new_model("Twice")
    for _ in range(2):
        assert gj.trace(output="o", gj_inference_id="mine") == "mine"
    made("vote_on_all", "models-of-ada")
    assert len(gj.results()) == 1


def test_what_failed_says_so_to_the_program_alone(ada):
    _, gj = ada.new_model("Silent")
    assert gj.trace(output="") is None
    with pytest.raises(ValueError, match="x"), gj.span("op"):
        raise ValueError("x")


# --- results ------------------------------------------------------------------------------------

TRACE = ["trace_id", "input", "output", "model", "pass_count", "flag_count"]
TRACE += ["total_votes", "pass_rate"]
VOTE = ["trace_id", "voter_id", "voter_name", "verdict", "flag_category", "feedback", "created_at"]


def test_results_of_a_model(bot):
    gj, _ = bot
    assert [list(row) for row in gj.results()] == [TRACE] * 5
    votes = gj.results(detail="votes")
    assert [list(row) for row in votes] == [VOTE] * 5
    assert {row["verdict"] for row in votes} == {"pass", "flag"}
    [flag] = [row for row in votes if row["verdict"] == "flag"]
    assert (flag["flag_category"], flag["feedback"]) == ("format", "Too long.")
    assert gj.results(to_date="2020-01-01").to_pandas().empty


def test_results_by_slug_with_a_persons_key(ada, bot):
    model = ada.person.model("bot")
    assert len(model.traces()) == len(model.votes()) == len(ada.person.results("bot")) == 5
    assert len(model.votes(arena="models-of-ada")) == 5
    assert len(model.traces(from_date="2020-01-01", to_date="2100-01-01")) == 5
    assert model.traces().head(2).data == model.traces().fetch().data[:2]


@pytest.fixture(scope="module")
def many(ada, up, made):
    """A model of a project of its own, with more traces than two pages hold."""
    crowd = Client(up, made("person", "crowd")["token"])
    crowd.new_model("Crowd")
    made("many", "crowd", MANY)
    return crowd.person.model("crowd")


def test_more_rows_than_a_page_holds(many, tmp_path):
    traces = many.traces()
    assert len(traces) == MANY
    assert len({row["trace_id"] for row in traces}) == MANY
    assert many.traces().to_pandas()["trace_id"].nunique() == MANY
    assert many.votes().to_polars()["trace_id"].n_unique() == MANY
    many.votes().to_parquet(str(tmp_path / "votes.parquet"))
    assert parquet.read_table(tmp_path / "votes.parquet").num_rows == MANY
    many.traces().to_csv(str(tmp_path / "traces.csv"))
    assert len(oracles.pandas.read_csv(tmp_path / "traces.csv")) == MANY
    assert len(json.loads(many.votes().to_json())) == MANY
    assert sum(1 for _ in many.votes()) == MANY


# --- models and benchmarks ----------------------------------------------------------------------


def test_models(ada):
    made, gj = ada.new_model("My Model")
    assert set(made) == {"id", "name", "type", "secret_key", "publishable_key"}
    [row] = [row for row in ada.person.models.list() if row["id"] == made["id"]]
    assert row == {"id": made["id"], "name": "My Model", "slug": "my-model"}
    assert gj.models.list() == [row]
    detail = ada.person.models.get("my-model")
    assert detail == gj.models.get(made["id"])
    assert detail["enrollments"][0]["status"] == "active"
    more = ada.person.models.create("N", description="d", type="sdk", metadata={"x": 1})
    assert ada.person.models.get(more["id"])["metadata"] == {"x": 1}


@pytest.fixture(scope="module")
def arena(ada, made):
    """Ada's benchmark with two models that were voted on."""
    where = made("arena", "Jokes at work", "ada")
    for name, by in (("Wit", "id"), ("Pun", "slug")):
        model, gj = ada.new_model(name)
        enrolled = ada.person.arena(where[by]).enroll(model["id"])
        assert enrolled == {
            "enrollment_id": enrolled["enrollment_id"],
            "model_id": model["id"],
            "evaluation_id": where["evaluation"],
            "status": "active",
        }
        for n in range(2):
            assert gj.trace(input="Tell a joke", output=f"{name} {n}")
    made("vote_on_all", where["slug"], ["Pun 1"])
    return where


def test_benchmarks(ada, arena):
    wanted = {"id": arena["id"], "title": "Jokes at work", "slug": arena["slug"]}
    assert wanted in ada.person.benchmarks.list()
    [model, *_] = ada.person.models.list()
    enrolled = ada.person.benchmarks.enroll(arena["slug"], model["id"])
    assert enrolled["status"] == "active"
    # The client keeps silent about a refusal here.
    assert ada.person.benchmarks.enroll(arena["slug"], model["id"], {"endpoint": "e"}) is None
    assert len(ada.person.benchmarks.leaderboard(arena["id"])) >= 2


def test_a_leaderboard_needs_no_key(up, arena):
    anybody = GrandJury(base_url=up.url, timeout=PATIENCE)
    for name in arena.values():
        rows = anybody.leaderboard(name).data
        assert [(row["model_slug"], row["pass_rate"]) for row in rows if row["total_votes"]] == [
            ("wit", 1.0),
            ("pun", 0.5),
        ]
    models = anybody.arena(arena["slug"]).models()
    assert {"name": "Wit", "slug": "wit"} in models.data
    assert set(models.to_pandas()["slug"]) >= {"wit", "pun"}


def test_an_arenas_traces_and_votes(ada, arena):
    there = ada.person.arena(arena["slug"])
    assert len(there.votes()) == len(there.traces()) == 4
    assert {row["model"] for row in there.traces(model="wit")} == {"wit"}
    assert len(there.votes(model=["wit", "pun"], from_date="2026-01-01")) == 4
    assert len(there.votes(model="wit")) == 2
    assert len(ada.person.results(arena=arena["slug"], model="wit")) == 2
    assert there.traces(limit=1, offset=1).data == there.traces().data[1:2]


# --- figures ------------------------------------------------------------------------------------


def written(path):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def test_every_figure_of_the_client_for_figures(up, tmp_path):
    client = GrandJuryClient(base_url=up.url)
    voters = [101, 102, 103, 104]
    for votes in (
        ROWS,
        oracles.pandas.DataFrame(ROWS),
        oracles.polars.DataFrame(ROWS),
        written(tmp_path / "votes.csv"),
    ):
        assert client.vote_histogram(votes, duration_minutes=120) == {
            "2024-07-07 18:00:00": 2,
            "2024-08-06 18:00:00": 3,
            "2024-10-06 18:00:00": 2,
        }
        assert client.vote_completeness(votes, voters, [1, 3]) == {"1": 0.25, "3": 0.75}
        assert client.vote_completeness(votes, voters, gross=True) == 0.75
        assert client.population_confidence(votes, voters) == 0.75
        assert client.majority_good_votes(votes) == {"count": 2}
        assert client.votes_distribution(votes, [1]) == {"1": 1}


def test_a_step_of_the_score(up, ada):
    client = GrandJuryClient(api_key=ada.person._token, base_url=up.url)
    assert (
        client.evaluate_model()
        == {
            "score": 0.0,
            "freshness": 0.0,
            "timestamp": client.evaluate_model()["timestamp"],
        }
        or client.evaluate_model()["score"] == 0
    )
    made = client.evaluate_model(0.5, "2026-01-01T00:00:00", [0.8, 0.6, 0.9], [1, 1, 1])
    assert made["score"] == pytest.approx(0.766667, abs=1e-6)
    assert made["freshness"] == 1


# --- the faults of the client that docs/grandjury.md names --------------------------------------


def test_faults_that_the_client_has(ada, bot, capfd):
    assert ada.person.trace(output="o") is None
    with pytest.raises(TypeError):
        ada.person.results(evaluation="models-of-ada")
    with pytest.raises(ValueError, match="ResultSet"):
        ada.person.analytics.vote_histogram()
    frame = oracles.pandas.DataFrame({"vote_time": oracles.pandas.to_datetime(["2026-01-01"])})
    with pytest.raises(TypeError, match="Timestamp"):
        GrandJuryClient(base_url=ada.url).vote_histogram(frame)
    with pytest.raises(requests.HTTPError):
        ada.person.arena("nowhere").enroll("bot")
    assert "there is no benchmark 'nowhere'" in capfd.readouterr().err

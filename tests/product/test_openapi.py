"""The OpenAPI document and the answers agree: schemathesis asks by the one and checks the other.

Every operation is asked what the document allows and what it forbids, and rows stand where its
identifiers lead, so that each is also answered as it is meant to be.
"""

from functools import cached_property
from hashlib import sha256

import hypothesis
import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from schemathesis.core.parameters import ParameterLocation

from humanjudge.core.ratelimit import RateLimit
from judge_eval.models import Call, DisagreementTag, Import
from judge_eval.runs import api_access, api_events, exclusion, lifecycle, state
from judge_eval.workshop import services
from reports.composite import sources
from reports.models import ScoreReport
from reports.report.views.shares import make_share
from reports.scores import views
from tests.helpers.run_findings import compute
from tests.helpers.run_rows import make_config, make_provider, set_state
from tests.helpers.tuned import fresh, joining
from tests.makers import (
    make_project,
    make_run,
    make_verdict,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from tests.plugin import IS_THOROUGH
from voting.ballot.services import flag
from voting.models import ApiKey

# Of the two databases PostgreSQL is the one that refuses what a schema forgot to forbid.
pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.postgresql_only]

# Beyond what a schema can say: names that must differ or exist, characters that cannot be printed,
# scorers with options of their own, mappings that fit the files, what a run's own ballot offers,
# plans that no number of votes fulfils. These requests may be refused with 422, which is declared.
RULED = (
    "^POST /api/runs(|/estimate|/demo|/import|/{run_id}/import|/{run_id}/scores|/{run_id}/judges"
    "|/{run_id}/variants(|/ask|/look|/tag|/suggestion)|/{run_id}/judge-eval/(vote|simulate)"
    "|/{run_id}/left-out(|/take-back))$"
    "|^POST .*/shares$|^PUT |^GET /api/planner$"
)
ACCEPTED = ["2xx", "3xx", "401", "403", "404", "409", "422", "429"]
# They take what `POST /api/runs` and `POST /api/runs/{run_id}/variants` take: its values are tried
# there, and here in the thorough run.
TRIED_ELSEWHERE = "^POST /api/runs/(estimate|{run_id}/judges)$"
SECRET = "of all scopes"
CONFIG = schemathesis.Config.from_dict(
    {
        # No database stores a NUL, and no pattern says so without making every text long.
        "generation": {"allow-x00": False},
        "auth": {"openapi": {"KeyAuth": {"bearer": f"hj_12345678_{SECRET}"}}},
        "operations": [
            {
                "include-name-regex": TRIED_ELSEWHERE,
                "phases": {"coverage": {"enabled": IS_THOROUGH}},
                "checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}},
            },
            {
                "include-name-regex": RULED,
                "checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}},
            },
        ],
    }
)
SETTINGS = hypothesis.settings(
    # There are many operations, and each is asked by every value of its schema besides.
    max_examples=hypothesis.settings().max_examples // 3,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
django = get_wsgi_application()


def application(environ, start_response):
    """Say who asks and close every answer, as a server does."""
    answer = django({"REMOTE_ADDR": "192.0.2.1"} | environ, start_response)
    try:
        return [b"".join(answer)]
    finally:
        answer.close()


schema = schemathesis.openapi.from_wsgi("/api/openapi.json", application, config=CONFIG)

# Which run an operation is asked of, by the last word of its path; all others of one with votes.
RUNS = {
    "start": "draft",
    "duplicate": "draft",
    "resume": "stopped",
    "simulate": "fresh",
    "findings": "found",
    "gate": "found",
    "composite": "composed",
    **dict.fromkeys("variants disagreements ask look decide tag suggestion".split(), "tuned"),
}


# Weights and sources must fit each other and the run, which no schema says.
COMPOSITE = {
    "weights": {"liked": {"weight": 1, "reason": "x"}},
    "sources": {"liked": {"from": "win_rate"}},
}


class Rows:
    """What is there, and what was answered."""

    def __init__(self):
        # In the examples of the document the project is called so.
        self.project = make_project("Demo")
        make_provider()
        ApiKey.objects.create(
            prefix="12345678",
            secret_sha256=sha256(SECRET.encode()).hexdigest(),
            scopes=["read", "vote", "verdicts", "manage"],
        )
        self.statuses = set()

    @cached_property
    def voted(self):
        run = make_run(self.project, pairs=3, votes_wanted=2)
        make_vote(make_voter(run), pairs_of(run)[0])
        seal_all(self.project)
        return run

    @cached_property
    def stopped(self):
        set_state(self.voted, "stopped")
        return self.voted

    @cached_property
    def found(self):
        compute(self.voted)
        return self.voted

    @cached_property
    def composed(self):
        sources.store(self.voted, sources.read_config(self.voted, COMPOSITE))
        return self.voted

    @cached_property
    def fresh(self):
        return make_run(self.project, pairs=3)

    @cached_property
    def draft(self):
        return lifecycle.create(self.project, make_config())

    @cached_property
    def tuned(self):
        """With a variant that people do not agree with, and a wording that was suggested."""
        run = make_run(self.project, pairs=4, judges=1)
        voter = make_voter(run)
        for pair in pairs_of(run):
            make_vote(voter, pair, "B")
        services.open_for_tuning(run)
        run = fresh(run)
        services.add(run, joining({"id": "strict", "model": "model-a"}))
        # The baselines that join with it answer at once.
        state.advance(run.pk)
        seal_all(self.project)
        variant, item = run.judges.get(name="strict"), self.disputed(run)
        verdict = make_verdict(variant, item, "A")
        verdict.save()
        DisagreementTag.objects.create(verdict=verdict, tag="both_fine", rubric=run.queue.rubric)
        about = {"judge": variant, "provider": "default", "model": "model-a", "state": "done"}
        Call.objects.create(run=run, purpose="suggest", reply="By {rubric}.", **about)
        return run

    def disputed(self, run):
        return run.queue.items.filter(is_held_out=False).order_by("pk").last()

    @cached_property
    def job(self):
        return Import.objects.create(project=self.project, form={})

    @cached_property
    def reviewed(self):
        pair = pairs_of(self.voted)[0]
        flag(make_voter(self.voted), pair.pk, "unsafe", "")
        return pair

    @cached_property
    def report(self):
        report = ScoreReport.objects.create(run=self.voted, state="done", table={})
        path = views.path_of(report)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a zip")
        return report

    @cached_property
    def share(self):
        return make_share(self.project, self.voted, None)[0]

    @cached_property
    def project_share(self):
        return make_share(self.project, None, None)[0]

    def known(self, name, path):
        """Return the identifier of a row of which the operation at this path can do its work."""
        if name == "extension_id":
            return "random"
        run = RUNS.get(path.rpartition("/")[2], "voted")
        rows = {"import_id": "job", "report_id": "report", "project_id": "project"}
        rows |= {"share_id": "project_share" if "/projects/" in path else "share"}
        row = (rows | {"item_id": "reviewed"}).get(name, run)
        return str(getattr(self, row).pk)

    def answer(self, case):
        """Ask, with rows that exist where the case does not try others, and check the answer."""
        if not case.meta.is_negative_at(ParameterLocation.PATH):
            for name in case.path_parameters:
                case.path_parameters[name] = self.known(name, case.path)
        self.fill(case)
        with transaction.atomic():
            if case.path.endswith("/left-out/take-back"):
                judge = self.voted.judges.get(name="judge-0")
                exclusion.leave_out(judge, make_voter(self.voted), "")
            response = case.call_and_validate()
            transaction.set_rollback(True)
        self.statuses.add(response.status_code)

    def fill(self, case):
        """Put what no schema can say into a case that is to be accepted."""
        is_allowed = not case.meta.is_negative_at(ParameterLocation.BODY)
        if is_allowed and isinstance(case.body, dict):
            self.name_rows(case)
        if case.method == "PUT" and not case.meta.generation.mode.is_negative:
            case.body = COMPOSITE
        if case.path.endswith("/gate") and not case.meta.generation.mode.is_negative:
            case.query = {"judge": "judge-0", "min_agreement": 0.5}
        if "/variants" in case.path and is_allowed and case.method == "POST":
            self.name_variant(case)
        if case.path.endswith("/disagreements") and not case.meta.generation.mode.is_negative:
            case.query = {"variant": "strict"}

    def name_rows(self, case):
        if "task_id" in case.body:
            case.body["task_id"] = str(pairs_of(self.voted)[0].pk)
        if "/left-out" in case.path:
            case.body["judge"] = "judge-0"

    def name_variant(self, case):
        if not isinstance(case.body, dict):
            return
        if case.path.endswith("/variants"):
            case.body = {"judges": [{"id": "another", "model": "model-b"}]}
        if "variant" in case.body:
            case.body["variant"] = "strict"
        if "item" in case.body:
            case.body["item"] = str(self.disputed(self.tuned).pk)


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(api_events, "STREAM_SECONDS", 0)
    # It tries a wrong key beside each example, and none of these tries is to be one too many.
    monkeypatch.setattr(api_access, "WRONG_KEYS", RateLimit(per_second=1e6, burst=1_000_000))
    # A server lets its connection go when it has answered; here the test's transaction is on it.
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    return Rows()


@pytest.fixture
def reached_rows(rows):
    yield rows
    assert any(200 <= status < 300 for status in rows.statuses)


@schema.parametrize()
@SETTINGS
def test_answers_are_what_the_document_says(case, reached_rows):
    reached_rows.answer(case)


# Where runs and imports are made, and what is done with one: all that the document links.
LINKED = r"^/api/(runs|runs/import|runs/\{run_id\}|imports/.*)$"
linked = schema if IS_THOROUGH else schema.include(path_regex=LINKED)


class Machine(linked.as_state_machine()):
    """Goes on with what an operation has made, as the document says where it is."""

    def setup(self):
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()

    def teardown(self):
        transaction.set_rollback(True)
        self.savepoint.__exit__(None, None, None)

    def before_call(self, case):
        if case.path.endswith("/import") and not case.meta.generation.mode.is_negative:
            case.body = {"file": ["pair"], "name": "Rows", "format": "csv"}

    def after_call(self, response, case):
        super().after_call(response, case)
        Machine.answered.add((case.operation.label, response.status_code))


def test_what_was_made_is_there_and_can_be_gone_on_with(rows):
    Machine.answered = set()
    expected = {
        ("GET /api/runs/{run_id}", 200),
        ("GET /api/imports/{import_id}", 200),
        ("POST /api/imports/{import_id}/stop", 200),
    }
    # It draws where it goes, anew each time: seldom, it does not come by there in so few steps.
    few = {"max_examples": 20, "stateful_step_count": 6, "derandomize": False}
    for _ in range(5):
        Machine.run(settings=hypothesis.settings(SETTINGS, **few))
        if expected <= Machine.answered:
            return
    assert expected <= Machine.answered

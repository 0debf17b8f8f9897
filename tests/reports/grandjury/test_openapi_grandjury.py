"""The OpenAPI document of the GrandJury protocol and its answers agree."""

from hashlib import sha256

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.db import connection, transaction
from schemathesis.core.parameters import ParameterLocation

from humanjudge.core.ratelimit import RateLimit
from judge_eval.runs import api_access
from reports.grandjury import api as access
from reports.grandjury import services
from tests.helpers.grandjury import Model, make_voter, vote
from tests.makers import make_project, seal_all
from tests.product.test_openapi import ACCEPTED, SECRET, SETTINGS, application
from voting.models import ApiKey

# Of the two databases PostgreSQL is the one that refuses what a schema forgot to forbid.
pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.postgresql_only]

PERSON, MODEL = f"gj_pat_12345678_{SECRET}", f"gj_sk_87654321_{SECRET}"
# Beyond what a schema can say: fields that rows of votes must have, lists of one length, text that
# no database stores, dates.
RULED = "^(POST|GET /api/v1/(benchmarks/{benchmark_id}/votes|models/{model_id}/evaluations))"
CONFIG = schemathesis.Config.from_dict(
    {
        "auth": {"openapi": {"KeyAuth": {"bearer": PERSON}}},
        "operations": [
            {
                "include-name-regex": RULED,
                "checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}},
            }
        ],
    }
)
schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application, config=CONFIG)


@pytest.fixture
def known(monkeypatch):
    """Rows that identifiers lead to; return these, and all statuses that were answered."""
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    without_end = RateLimit(per_second=1e6, burst=1_000_000)
    monkeypatch.setattr(access, "PUBLIC_LIMIT", without_end)
    monkeypatch.setattr(api_access, "WRONG_KEYS", without_end)
    ada = User.objects.create(username="ada", is_superuser=True)
    model = Model(*services.create_model(ada, None, "Bot"))
    arena = services.benchmark_of(make_project("Arena"), ada)
    services.open_to_enrolment(arena, True)
    vote(make_voter(model.row.project), *model.logged("t-1"))
    seal_all(model.row.project)
    secret = sha256(SECRET.encode()).hexdigest()
    ApiKey.objects.filter(pk=model.row.api_key.pk).update(prefix="87654321", secret_sha256=secret)
    ApiKey.objects.create(
        kind="gj_pat", prefix="12345678", secret_sha256=secret, scopes=["read", "manage"], user=ada
    )
    statuses = set()
    yield {"model_id": "bot", "benchmark_id": arena.slug}, statuses
    assert any(200 <= status < 300 for status in statuses)


@schema.parametrize()
@SETTINGS
def test_answers_are_what_the_document_says(case, known):
    names, statuses = known
    if not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters |= {n: names[n] for n in case.path_parameters}
    if not case.meta.is_negative_at(ParameterLocation.QUERY) and case.query:
        case.query.pop("evaluation_id", None)
    key = {"Authorization": f"Bearer {MODEL}"} if case.path.endswith("/ingest") else None
    with transaction.atomic():
        response = case.call_and_validate(headers=key)
        transaction.set_rollback(True)
    statuses.add(response.status_code)

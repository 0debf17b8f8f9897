"""Seals at the same moment bring a project's quality score up to date."""

from datetime import timedelta
from functools import partial

import pytest
from django.test import override_settings
from django.utils import timezone

from tests.helpers.concurrent_calls import together
from tests.reports.quality.test_quality_projection import Study, assert_as_expected, quality_of
from voting.ledger import ledger

pytestmark = pytest.mark.both


@pytest.mark.django_db(transaction=True)
def test_seals_at_the_same_moment_count_each_vote_once():
    study = Study()
    for seconds in range(12):
        study.vote((7 * seconds) % 12, ["A", "both_bad"][seconds % 2])
    later = timezone.now() + timedelta(seconds=1)
    seal = partial(ledger.seal, study.project.pk, now=later)
    with override_settings(SEAL_BATCH=2):
        assert sum(together(*[seal] * 6)) == 12
    assert_as_expected(study.project)
    assert quality_of(study.project).votes == 12

"""Votes that are there before any judge: people are counted at once, judges join later."""

import pytest

from tests.helpers.imports import (
    assert_whole,
    imported,
    pair,
    vote,
)
from tests.helpers.run_findings import compute
from voting.models import Entry

pytestmark = pytest.mark.django_db

TWO_VOTES = [vote(1, "ann", "A"), vote(1, "bob", "A"), vote(2, "ann", "B"), vote(2, "bob", "A")]


def kinds_of(run):
    entries = Entry.objects.filter(queue=run.queue_id, seq__isnull=False).order_by("seq")
    return [entry.kind for entry in entries]


def test_votes_alone_are_figures_of_people_and_of_models():
    run = imported(pair(1), pair(2), *TWO_VOTES)
    assert kinds_of(run) == ["verdicts", "verdicts", "parameters", *["vote"] * 4, "parameters"]
    [first, _] = Entry.objects.filter(queue=run.queue, kind="verdicts").order_by("seq")
    assert first.payload["verdicts"] == []
    assert first.payload["prompt"] == first.item.prompt_key
    data = compute(run).data
    assert data["as_of"]["votes"] == 4
    assert data["among_people"]["pairs"]["value"] == 0.5
    assert data["models"]["boards"][0]["by"] == "people"
    assert data["judges"] == []
    assert_whole(run.queue.project)

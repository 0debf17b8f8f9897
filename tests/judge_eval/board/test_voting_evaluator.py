"""An evaluator who votes too is not told where judges and people disagree."""

import pytest

from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all, user_client
from voting.models import Voter

pytestmark = pytest.mark.django_db

DISPUTED = "Where judges and people disagree most"
HIDDEN = "is not shown while you have pairs to vote on"


def a_disputed_run():
    run = make_run(pairs=2, judges=2, votes_wanted=3, baselines=[])
    for _ in range(2):
        make_vote(make_voter(run), pairs_of(run)[0], "A")
    seal_all(run.queue.project)
    assert compute(run, "").data["disputed"]
    return run


def board(client, run):
    return text_of(client.get(f"/runs/{run.pk}/"))


def test_while_pairs_are_open_the_disputed_ones_are_not_named():
    run = a_disputed_run()
    client, other = user_client(), user_client("another")
    assert DISPUTED in board(client, run)
    client.post(f"/runs/{run.pk}/vote/me")
    client.get(f"/vote/{run.queue_id}/")
    assert HIDDEN in board(client, run)
    assert "of 2 differ" not in board(client, run)
    assert HIDDEN not in board(other, run)
    for pair in pairs_of(run):
        make_vote(Voter.objects.get(user__username="owner"), pair)
    assert HIDDEN not in board(client, run)
    assert DISPUTED in board(client, run)


def test_the_list_of_pairs_neither_counts_nor_sorts_by_it_then():
    run = a_disputed_run()
    client = user_client()
    pairs = f"/runs/{run.pk}/pairs/"
    assert " of 4 " in text_of(client.get(pairs))
    client.post(f"/runs/{run.pk}/vote/me")
    client.get(f"/vote/{run.queue_id}/")
    page = text_of(client.get(pairs))
    assert " of 4 " not in page
    assert "Not shown while you have pairs to vote on" in page
    assert client.get(f"{pairs}?sort=disagreement").status_code == 403

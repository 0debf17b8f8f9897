"""What is asked often does not read all votes of a project, however many there are."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge_eval.board.cache import is_readable
from judge_eval.runs.deletion import outputs_of
from judge_eval.runs.queries import used_pictures
from reports.report.views.shared_report import current
from reports.report.views.shares import make_share
from tests.helpers.plans import plan_of
from tests.helpers.run_findings import voted_run
from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ballot.queries import number_unsealed
from voting.curating.services import decide
from voting.people.voters import invited

pytestmark = pytest.mark.django_db

# What waits to be sealed has an index of its own, in which there is little.
ALL_ENTRIES = (
    r"SCAN voting_entry(?! USING INDEX entry_unsealed)"
    r"|sqlite_autoindex_voting_entry_\d \(project_id=\?( AND seq>\?)?\)"
)


def those_that_read_all(do):
    with CaptureQueriesContext(connection) as queries:
        do()
    asked = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert any("voting_entry" in sql for sql in asked)
    return [sql for sql in asked if re.search(ALL_ENTRIES, plan_of(sql))]


def test_a_vote_is_sealed_beside_decisions():
    run = make_run(pairs=2, votes_wanted=9)
    decided, voted = pairs_of(run)
    decide(decided.pk, "exclude", make_voter(run, name="Cara"), after=None)
    seal_all(run.queue.project)
    make_vote(make_voter(run), voted, "A")
    assert not those_that_read_all(lambda: seal_all(run.queue.project))


def test_a_run_opens_behind_the_votes_of_another():
    run = make_run()
    assert not those_that_read_all(lambda: is_readable(run))


def test_invites_count_the_votes_of_their_run():
    run = make_run()
    assert not those_that_read_all(lambda: invited(run.queue))


def test_what_waits_to_be_sealed_is_counted():
    assert not those_that_read_all(number_unsealed)


def test_a_frozen_report_asks_what_was_erased_since():
    run = voted_run()
    share, _ = make_share(run.queue.project, run, None, is_frozen=True)
    assert not those_that_read_all(lambda: current(share))


# All items of a run, asked for anew with each row of something else.
ALL_ITEMS_EACH = r"CORRELATED SCALAR SUBQUERY \d+ SEARCH U0 USING INDEX \w+ \(queue_id=\?\)"


@pytest.mark.parametrize("rows", [used_pictures, outputs_of])
def test_what_a_run_uses_is_read_once(rows):
    run = make_run()
    with CaptureQueriesContext(connection) as queries:
        list(rows(run))
    [query] = queries
    assert not re.search(ALL_ITEMS_EACH, plan_of(query["sql"]))

"""A statement that is on its way while Python computes: its answer, its errors, its guard."""

import pytest
from django.db import DatabaseError, transaction

from tests.makers import make_run, pairs_of
from voting.ledger.bulk_sql import LedgerConflict, adding, asked, key, sent, updating
from voting.models import Comparison

pytestmark = pytest.mark.django_db


def test_the_answer_is_there_when_the_block_is_left():
    with sent("SELECT 1 + %s", [1]) as answer:
        pass
    assert answer.rows == [(2,)]


def test_rows_of_values_are_as_django_reads_them():
    run = make_run(pairs=2)
    pairs = Comparison.objects.filter(queue=run.queue).order_by("position")
    wanted = pairs.values_list("pk", "position", "votes_wanted")[:5]
    with asked(wanted) as answer:
        pass
    assert answer.rows == list(wanted)


def test_whoever_asks_while_an_answer_is_awaited_is_refused_and_nothing_is_lost():
    run = make_run(pairs=2)
    pair = pairs_of(run)[0]
    with (
        pytest.raises(RuntimeError, match="its answer comes first: SELECT"),
        transaction.atomic(),
        sent("UPDATE voting_queue SET name = %s", ["never"]),
    ):
        Comparison.objects.get(pk=pair.pk)
    run.queue.refresh_from_db()
    assert run.queue.name != "never"
    assert Comparison.objects.filter(pk=pair.pk).exists()  # the connection is as good as before


def test_a_statement_that_fails_fails_as_any_other():
    with pytest.raises(DatabaseError), transaction.atomic():  # noqa: SIM117  # first one to leave
        with sent("SELECT of_no_such_column", []):
            pass
    assert Comparison.objects.count() == 0


def test_each_row_that_is_named_must_change():
    gone = pairs_of(make_run(pairs=1))[0]
    Comparison.objects.filter(pk=gone.pk).update(votes=1)
    rows = [(7, key(gone.pk))]
    with (
        pytest.raises(LedgerConflict, match="0 rows changed, 1 expected"),
        transaction.atomic(),
        updating(Comparison, ["position"], rows, while_null="votes"),
    ):
        pass
    gone.refresh_from_db()
    assert gone.position == 0


def test_nothing_to_change_asks_nothing(django_assert_num_queries):
    with django_assert_num_queries(0), updating(Comparison, ["position"], []):
        pass
    with (
        django_assert_num_queries(0),
        adding(Comparison, ["votes"], [], ["position"]) as answer,
    ):
        pass
    assert answer.rows == []

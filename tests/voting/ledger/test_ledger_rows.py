"""Hand-written updates of many rows change exactly the rows they name."""

import pytest
from django.db import transaction

from tests.makers import make_run, pairs_of
from voting.ledger.bulk_sql import LedgerConflict, key, update_many
from voting.models import Item

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def test_each_row_that_is_named_must_change():
    gone = pairs_of(make_run(pairs=1))[0]
    Item.objects.filter(pk=gone.pk).update(votes=1)
    rows = [(7, key(gone.pk))]
    with pytest.raises(LedgerConflict, match="0 rows changed, 1 expected"), transaction.atomic():
        update_many(Item, ["position"], rows, while_null="votes")
    gone.refresh_from_db()
    assert gone.position == 0


def test_nothing_to_change_asks_nothing(django_assert_num_queries):
    with django_assert_num_queries(0):
        update_many(Item, ["position"], [])

"""Nothing that a page or a sweep reads grows with the projects that it does not show."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from judge_eval.models import Import
from tests.helpers.every_page import EveryPage, read
from tests.helpers.many_projects import beat_tasks, copy_everything, settle
from voting.models import Project

pytestmark = [pytest.mark.both, pytest.mark.django_db]

PROJECTS = 1_000
# Of one table, by one query.
MOST_ROWS = 200
READS = ("SELECT", "UPDATE", "DELETE", "WITH")
# Whoever sees all projects and runs is shown how many they are.
LISTED = {"voting_project", "voting_queue", "judge_eval_run", "judge_eval_board", "reports_review"}


@pytest.fixture
def pages():
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL tells how many rows it has read")
    pages = EveryPage()
    Import.objects.update(state="done", done_at=timezone.now())
    settle()
    copy_everything(PROJECTS // Project.objects.count())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        # Of a few pages it would read all, which is quicker than an index as long as they are few.
        cursor.execute("SET LOCAL enable_seqscan = off")
    return pages


def read_by(do):
    """Return from which tables many rows were read, by what, and for which query."""
    with CaptureQueriesContext(connection) as queries:
        do()
    for sql in {query["sql"] for query in queries if query["sql"].startswith(READS)}:
        for table, rows, how in rows_read(plan_of(sql)):
            if rows > MOST_ROWS:
                yield table, f"{rows} rows by {how}: {sql[:600]}"


def plan_of(sql):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}")
        [[[plan]]] = cursor.fetchall()
        transaction.set_rollback(True)
    return plan["Plan"]


def rows_read(node, table=""):
    table = node.get("Relation Name", table)
    for part in node.get("Plans", ()):
        yield from rows_read(part, table)
    if "Scan" in node["Node Type"] and table.startswith(("voting_", "judge_eval_", "reports_")):
        removed = (value for name, value in node.items() if name.startswith("Rows Removed by"))
        rows = node["Actual Rows"] + sum(removed)
        yield table, rows * node["Actual Loops"], node.get("Index Name", node["Node Type"])


@pytest.mark.slow
def test_no_page_and_no_sweep_reads_the_rows_of_all_projects(pages):
    found = []
    for name, address in pages.addresses().items():
        read_all = read_by(lambda address=address: read(pages.client.get(address)))
        listed = LISTED | {"voting_voter"} if name == "admin list" else LISTED
        found += [(name, why) for table, why in read_all if table not in listed]
    for name, sweep in beat_tasks().items():
        found += [(name, why) for _, why in read_by(sweep)]
    assert found == []

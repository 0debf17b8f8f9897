"""Imports that are asked for at once, or while somebody else writes: each waits for its turn."""

import io
import json
import sqlite3
import threading
from contextlib import closing
from functools import partial

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection

from judge_eval.imports import import_jobs
from judge_eval.management.commands.import_waiting import do_all
from judge_eval.models import Import, Run
from tests.helpers.concurrent_calls import only, together
from tests.helpers.imports import assert_whole, study
from tests.helpers.waiting import PATIENCE
from tests.makers import key_client, make_key, make_project
from voting.models import Entry

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]

WAITS = "Another process is writing to the database; the import waits for it."


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "study.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in study(range(30), 3)), "utf-8")
    return path


def command(source, name, complaints=None):
    call_command(
        *("import_run", str(source), "--project", "Together", "--name", name),
        stdout=io.StringIO(),
        stderr=complaints or io.StringIO(),
    )


def by_rest(source, project):
    client = key_client(make_key("manage", project=project)[1])
    with source.open("rb") as file:
        options = {"name": "by REST", "project": str(project.pk)}
        return client.post("/api/runs/import", {"file": file, **options})


def assert_all_came_in(*names):
    runs = Run.objects.select_related("queue__project").order_by("name")
    assert [run.name for run in runs] == sorted(names)
    for run in runs:
        votes = Entry.objects.filter(queue=run.queue_id, kind="vote", seq__isnull=False)
        assert (run.queue.items.count(), votes.count()) == (30, 30)
        assert_whole(run.queue.project)
    assert set(Import.objects.values_list("state", flat=True)) == {"done"}


def test_a_command_and_what_was_posted_wait_for_each_other(source):
    project = make_project("Together")
    assert by_rest(source, project).status_code == 202
    answers = together(partial(command, source, "by command"), do_all)
    assert not only(Exception, answers)
    do_all()  # the command may have been at work when there was nothing else to do
    assert_all_came_in("by REST", "by command")


class Watched(io.StringIO):
    """Says when something was written to it."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def write(self, text):
        self.written.set()
        return super().write(text)


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="only SQLite has one lock for all")
def test_while_somebody_else_writes_a_command_says_that_it_waits(source):
    make_project("Together")
    complaints = Watched()

    def impatient():
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 0")
        command(source, "one", complaints)

    def write_until_it_waits():
        with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
            other.execute("BEGIN IMMEDIATE")
            holds.set()
            assert complaints.written.wait(timeout=PATIENCE)
            other.rollback()

    holds = threading.Event()
    writer = threading.Thread(target=write_until_it_waits)
    writer.start()
    assert holds.wait(timeout=PATIENCE)
    answers = together(impatient)
    writer.join()
    assert not only(Exception, answers)
    assert complaints.getvalue().count(WAITS) == 1
    assert_all_came_in("one")


def test_any_other_failure_of_the_database_is_not_waited_for():
    def fail():
        raise OperationalError("no such table") from sqlite3.OperationalError("no such table")

    said = []
    with pytest.raises(OperationalError, match="no such table"):
        import_jobs.when_unlocked(fail, said.append)
    assert said == []

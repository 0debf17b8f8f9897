"""Imports as work that is asked for: one at a time, in short transactions, whole or not at all."""

import io
import json
import sqlite3
import sys
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from itertools import count, pairwise

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from judge_eval.exports.export import export_project, export_run
from judge_eval.imports import import_jobs, import_steps, import_write
from judge_eval.imports.import_jobs import SourceFile
from judge_eval.judging.leases import runs_at_work
from judge_eval.models import Import, Judge, Run
from tests.helpers.bundles import (
    as_file,
    changed,
    empty_the_instance,
    facts_of,
    numbers_of,
    restored,
    rows_of_everything,
)
from tests.helpers.imports import (
    assert_whole,
    import_run,
    imported,
    pair,
    rows,
    study,
    vote,
    votes_of,
)
from tests.helpers.reference import assert_as_expected
from tests.judge_eval.exports.test_export_round_trip import make_eventful_run
from tests.makers import (
    key_client,
    make_key,
    make_project,
    pairs_of,
    seal_all,
)
from voting.models import Entry, Inference, Item, Queue, Voter

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

PAIRS = range(6)
SOURCE = study(PAIRS, voters=4)
ITEMS = [
    record
    for n in PAIRS
    for record in (
        {"item": f"i{n}", "output": f"Answer {n}", "voter": f"v{n % 4}", "vote": "yes"},
        {"item": f"i{n}", "judge": "x", "verdict": "no" if n % 2 else "yes"},
        {"item": f"i{n}", "judge": "y", "verdict": "yes"},
    )
]


def file_of(*records, name="rows.jsonl"):
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    return SourceFile(name, io.BytesIO(text.encode()))


def job_of(project, *, run=None, name="Run", **options):
    form = {"options": options, "mapping": None, "format": None}
    return Import(project=project, run=run, name="" if run else name, form=form)


def asked(project, *sources, **how):
    return import_jobs.submit(job_of(project, **how), sources)


def worked():
    """Do what waits, as a worker does."""
    while job := import_jobs.claim():
        import_jobs.run(job)


class Killed(SystemExit):
    pass


def kill_at(job, step):
    """Let a worker die at this step of an import, inside its transaction if it is at one."""
    steps = iter(range(step))

    def on_progress():
        if next(steps, None) is None:
            raise Killed

    job.on_progress = on_progress
    with pytest.raises(Killed):
        import_jobs.run(job)


def cut_into(size, monkeypatch, settings):
    settings.SEAL_BATCH = size
    monkeypatch.setattr("judge_eval.imports.import_scratch.MOST_ROWS", size)


@pytest.fixture
def small_chunks(monkeypatch, settings):
    cut_into(4, monkeypatch, settings)


@pytest.fixture
def chunks_of_eleven(monkeypatch, settings):
    """Still two of the verdicts and more of the ledger; each one is a step to die at."""
    cut_into(11, monkeypatch, settings)


def said_of(run):
    """What an import wrote, without the numbers that differ from one to the other."""
    pairs = [
        (p.position, p.external_id, *(o.output for o in p.outputs), p.opened_at is None, p.votes)
        for p in pairs_of(run)
    ]
    votes = [(v.voter.external_id, v.item.external_id, v.choice) for v in votes_of(run)]
    verdicts = Entry.objects.filter(queue=run.queue_id, kind="verdicts").count()
    judges = [(j.name, round(j.rating.elo, 6)) for j in run.judges.order_by("position")]
    return (run.state, run.queue.ballot, run.queue.is_open, pairs, votes, verdicts, judges)


@pytest.mark.parametrize("source", [SOURCE, ITEMS], ids=["pairs", "items"])
def test_a_worker_that_dies_at_any_step_is_followed_by_one_that_goes_on(small_chunks, source):
    expected = said_of(imported(*source))
    project, step = make_project("Other"), 0
    asked(project, file_of(*source), baselines=False)
    while True:
        step += 1
        job = import_jobs.claim()
        job.on_progress = None
        before = Import.objects.get(pk=job.pk).written
        try:
            kill_at(job, 2)
        except pytest.fail.Exception:
            break  # it came to its end
        # Nothing of it shows, and each worker gets a little further than the last.
        assert not Run.objects.filter(queue__project=project).exists()
        assert len(key_client(make_key("read")[1]).get("/api/runs").json()) == 1
        now = Import.objects.get(pk=job.pk)
        assert now.attempts <= 1
        assert now.written >= before
    assert step > 5
    run = Run.objects.get(queue__project=project)
    assert said_of(run) == expected
    if source is SOURCE:
        assert_as_expected(run)
    assert_whole(project)


def test_a_run_of_items_says_what_a_file_without_their_columns_is_about():
    run = imported({"item": "i1", "output": "x"})
    text = b"prompt_id,id,voter,vote\np,i1,ann,pass\n"
    asked(run.queue.project, SourceFile("v.csv", io.BytesIO(text)), run=run)
    worked()
    assert Import.objects.get().report["new"]["votes"] == 1
    asked(run.queue.project, file_of({"pair": "p", "voter": "a", "vote": "A"}), run=run)
    worked()
    report = Import.objects.latest("requested_at").report
    assert [error["why"] for error in report["errors"]] == [
        "a pair; this run is made of single items"
    ]


def test_exports_leave_out_a_run_that_is_still_being_imported(small_chunks):
    whole = imported(*SOURCE)
    project = whole.queue.project
    expected = list(export_project(project))
    asked(project, file_of(*SOURCE), name="Half", baselines=False)
    half = Entry.objects.filter(queue__run__state="importing", seq__isnull=False)
    while not half.filter(kind="vote").exists():
        kill_at(import_jobs.claim(), 2)
        seal_all(project)
    assert half.filter(kind="verdicts").exists()
    lines = list(export_project(project))
    # The project is further by now, and all else is as it was.
    assert lines[1:] == expected[1:]
    [back] = restored(lines, make_project("Elsewhere"))
    # Voters' names are in no bundle; all else is.
    nameless = [[*said_of(run)[:4], *said_of(run)[5:]] for run in (back, whole)]
    assert nameless[0] == nameless[1]
    assert len(votes_of(back)) == len(votes_of(whole))
    with pytest.raises(CommandError, match="there is no run"):
        call_command("export_run", str(Run.every.get(name="Half").pk))
    worked()
    assert len(json.loads(next(export_project(project)))["runs"]) == 2


def test_at_last_all_rows_that_were_read_are_counted():
    asked(make_project(), file_of(*SOURCE))
    worked()
    assert Import.objects.get().rows_read == len(SOURCE)


def test_while_a_source_is_read_nothing_is_locked_or_written():
    project = make_project()
    before = Queue.objects.count(), Inference.objects.count()
    atomic = len(connection.savepoint_ids)

    def watched():
        for item in rows(*SOURCE):
            assert len(connection.savepoint_ids) == atomic
            assert (Queue.objects.count(), Inference.objects.count()) == before
            yield item

    assert import_run(project, "Run", watched()).run_id


def test_who_lost_the_lease_writes_nothing_more(small_chunks):
    asked(make_project(), file_of(*SOURCE), baselines=False)
    first = import_jobs.claim()
    kill_at(first, 4)
    first = import_jobs.claim()
    assert import_jobs.claim() is None
    past = timezone.now() - timedelta(seconds=1)
    Import.objects.update(leased_until=past)
    second = import_jobs.claim()
    assert second.pk == first.pk
    written = Item.objects.count(), Entry.objects.count()
    import_jobs.run(first)
    assert (Item.objects.count(), Entry.objects.count()) == written
    assert import_jobs.run(second).state == "done"
    assert_whole(Run.objects.get().queue.project)


def test_what_breaks_off_again_and_again_is_given_up_and_removed(small_chunks):
    project = make_project()
    asked(project, file_of(*SOURCE))
    kill_at(import_jobs.claim(), 6)
    assert (Run.every.count(), Run.objects.count(), runs_at_work()) == (1, 0, [])
    assert Item.objects.exists()
    Import.objects.update(attempts=import_jobs.MOST_ATTEMPTS)
    worked()
    job = Import.objects.get()
    assert (job.state, job.detail) == ("refused", "The import failed 3 times.")
    for model in (Run.every, Item.objects, Inference.objects, Judge.objects, Voter.objects):
        assert not model.exists()
    assert not (settings.DATA / "imports" / str(job.pk)).exists()


def test_a_scratch_file_on_a_full_disk_is_tried_again_when_there_may_be_space(small_chunks):
    asked(make_project(), file_of(*SOURCE), baselines=False)
    job = import_jobs.claim()

    def full():
        raise sqlite3.OperationalError("database or disk is full")

    job.on_progress = full
    with pytest.raises(sqlite3.OperationalError):
        import_jobs.run(job)
    assert Import.objects.get().state in Import.UNFINISHED
    Import.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    worked()
    assert Import.objects.get().state == "done"


def test_what_dies_at_one_point_again_and_again_is_given_up(small_chunks):
    asked(make_project(), file_of(*SOURCE))
    kill_at(import_jobs.claim(), 6)
    begun = Import.objects.get().written
    assert begun

    class PowerCut(BaseException):
        pass

    for _ in range(import_jobs.MOST_ATTEMPTS):
        job = import_jobs.claim()

        def cut_at_the_next_chunk(job=job):
            if job.written > begun:
                raise PowerCut

        job.on_progress = cut_at_the_next_chunk
        with pytest.raises(PowerCut):
            import_jobs.run(job)
        Import.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    worked()
    assert Import.objects.get().detail == "The import failed 3 times."
    assert not Run.every.exists()


def test_projects_take_turns():
    full, other, third = make_project("Full"), make_project("Other"), make_project("Third")
    jobs = [asked(full, file_of(pair(1), vote(1, "ann", "A")), name=f"{n}") for n in range(3)]
    jobs += [asked(it, file_of(pair(1), vote(1, "ann", "A")), name="x") for it in (other, third)]
    turns = []
    while job := import_jobs.claim():
        turns.append(jobs.index(job))
        import_jobs.run(job)
    assert turns == [0, 3, 4, 1, 2]


@pytest.mark.parametrize("seconds, first_pieces", [(1e-6, [4, 2, 2]), (60, [4, 8, 16])])
def test_as_much_is_written_at_once_as_takes_little_time(monkeypatch, seconds, first_pieces):
    for name, value in {"FIRST_ROWS": 4, "LEAST_ROWS": 2, "SECONDS_AT_ONCE": seconds}.items():
        monkeypatch.setattr(import_steps, name, value)
    asked(make_project(), file_of(*(pair(n) for n in range(40))), baselines=False)
    job, written = import_jobs.claim(), []
    job.on_progress = lambda: written.append(job.written)
    assert import_jobs.run(job).state == "done"
    ends = list(dict.fromkeys(written))
    assert [after - before for before, after in pairwise(ends)][:3] == first_pieces


def test_what_is_made_once_is_written_apart_from_the_rows(monkeypatch):
    """Baselines and the run's objects would make the first transaction the longest."""
    step, made = import_write.step, []

    @contextmanager
    def watched(project):
        before = [Judge.objects.count(), Entry.objects.filter(kind="verdicts").count()]
        with step(project) as held:
            yield held
        after = [Judge.objects.count(), Entry.objects.filter(kind="verdicts").count()]
        made.append([new - old for new, old in zip(after, before, strict=True)])

    monkeypatch.setattr(import_write, "step", watched)
    asked(make_project(), file_of(*SOURCE))
    worked()
    assert any(judges for judges, _ in made[1:])
    assert any(entries for _, entries in made)
    assert not [both for both in made if all(both)]


def test_a_worker_that_dies_after_it_made_the_baselines_is_followed_by_another(
    monkeypatch,
):
    expected = said_of(imported(*SOURCE, baselines=None))
    project, record = make_project("Other"), import_write.record_objects
    asked(project, file_of(*SOURCE))

    def died(run, **how):
        if Judge.objects.filter(run=run, provider=Judge.BASELINE).exists():
            raise Killed
        record(run, **how)

    monkeypatch.setattr(import_write, "record_objects", died)
    for _ in range(2):
        with pytest.raises(Killed):
            import_jobs.run(import_jobs.claim())
    assert not Run.objects.filter(queue__project=project).exists()
    monkeypatch.setattr(import_write, "record_objects", record)
    worked()
    assert said_of(Run.objects.get(queue__project=project)) == expected
    assert_whole(project)


def test_of_what_is_refused_nothing_is_left():
    asked(make_project(), file_of(pair(1), vote(1, "ann", "left")))
    worked()
    job = Import.objects.get()
    assert (job.state, job.status, Run.every.count()) == ("refused", 422, 0)
    assert not (settings.DATA / "imports" / str(job.pk)).exists()


def test_what_a_command_died_over_a_worker_goes_on_with():
    job = job_of(make_project())
    job.is_local = True
    import_jobs.submit(job, [file_of(*SOURCE)])
    kill_at(import_jobs.claim(job.pk), 1)
    worked()
    assert Import.objects.get().state == "done"
    assert len(votes_of(Run.objects.get())) == len(PAIRS)


def test_of_what_is_stopped_before_it_is_read_no_file_is_left():
    job = asked(make_project(), file_of(*SOURCE))
    import_jobs.cancel(job)
    assert import_jobs.claim() is None
    assert not (settings.DATA / "imports" / str(job.pk)).exists()


# --- bundles ------------------------------------------------------------------------------------


@cache
def eventful():
    """What an eventful run shows, its numbers and its lines; the run itself is gone."""
    run = make_eventful_run()
    told = facts_of(run), numbers_of(run), list(export_run(run))
    empty_the_instance()
    return told


def bundle_of(lines, project=None):
    key, _ = make_key("manage")
    job = Import(project=project, is_bundle=True, form={}, api_key=key)
    return import_jobs.submit(job, [SourceFile("run.jsonl", as_file(lines))])


def steps_of(lines):
    """Let a worker die at the first step, at the second and so on, each time from an empty start.

    The one that comes to its end is the last.
    """
    for step in count():
        empty_the_instance()
        bundle_of(lines)
        try:
            kill_at(import_jobs.claim(), step)
        except pytest.fail.Exception:
            assert step > 10
            return
        yield step


def test_at_whatever_step_a_worker_dies_a_bundle_comes_back_as_one_of_which_none_did(
    chunks_of_eleven,
):
    facts, numbers, lines = eventful()
    reports = []
    for _ in steps_of(lines):
        assert not Run.objects.exists()
        assert not Queue.objects.filter(is_open=True).exists()
        worked()
        back = Run.objects.select_related("queue__project").get()
        assert (facts_of(back), numbers_of(back)) == (facts, numbers)
        assert_whole(back.queue.project)
        reports.append(Import.objects.get().report)
    assert reports[0]["new"] == {"pairs": 4, "judges": 3, "verdicts": 12, "voters": 2, "votes": 9}
    assert all(report == reports[0] for report in reports)


def test_a_copy_goes_on_with_the_numbers_it_began_with(small_chunks):
    run = make_eventful_run()
    lines, project = list(export_run(run)), make_project("Another")
    job = bundle_of(lines, project)
    while Import.objects.get().state != "done":
        with suppress(pytest.fail.Exception):
            kill_at(import_jobs.claim(), 3)
    job.refresh_from_db()
    assert facts_of(Run.objects.get(queue__project=project)) == facts_of(run)
    assert Run.every.count() == 2
    assert_whole(project)
    bundle_of(lines, project)
    worked()
    assert Run.every.count() == 2


def test_of_a_bundle_that_is_wrong_nothing_is_left_whoever_dies_removing_it(
    chunks_of_eleven,
):
    *_, lines = eventful()
    for _ in steps_of(changed(lines, "vote", -1, comment="never said")):
        worked()
        assert not any(rows_of_everything().values())
        job = Import.objects.get()
        assert (job.state, job.status) == ("refused", 422)
        assert job.report["errors"][0]["field"] == "comment_sha256"


def test_who_asked_may_die_over_a_bundle_as_soon_as_all_of_it_was_read(small_chunks, tmp_path):
    expected, _, lines = eventful()
    job = Import(is_bundle=True, is_local=True, form={})
    job = import_jobs.claim(import_jobs.submit(job, [SourceFile("run.jsonl", as_file(lines))]).pk)
    job.on_progress = lambda: job.written and sys.exit()
    with pytest.raises(SystemExit):
        import_jobs.run(job)
    worked()
    assert facts_of(Run.objects.get()) == expected


def broken_off(lines, project, *, ledger):
    """Let a bundle be given up after its rows, or after the first entries of its ledger."""
    bundle_of(lines, project)
    while not Entry.objects.exists() if ledger else not Item.objects.exists():
        kill_at(import_jobs.claim(), 3)
    Import.objects.update(attempts=import_jobs.MOST_ATTEMPTS)
    worked()
    return Import.objects.latest("requested_at").detail


def test_a_bundle_that_breaks_off_again_and_again_is_removed(small_chunks):
    *_, lines = eventful()
    before = rows_of_everything()
    assert broken_off(lines, None, ledger=False) == "The import failed 3 times."
    assert rows_of_everything() == before


def test_what_the_ledger_holds_of_a_bundle_stays_unseen_and_is_in_nobodys_way(small_chunks):
    expected, _, lines = eventful()
    project = make_project()
    detail = broken_off(lines, project, ledger=True)
    assert detail.endswith("Its votes are in the ledger, so its rows are kept, but not shown.")
    assert (Run.objects.count(), Run.every.count()) == (0, 1)
    assert_whole(project)
    [again] = restored(lines, project)
    assert facts_of(again) == expected
    assert_whole(project)
    assert restored(lines, project) == [again]


def test_a_bundle_goes_only_where_who_brought_it_may_make_runs():
    run = make_eventful_run()
    lines, person = list(export_run(run)), User.objects.create(username="ada")
    key, _ = make_key("manage", user=person)

    def bring():
        job = Import(is_bundle=True, form={}, api_key=key)
        import_jobs.submit(job, [SourceFile("run.jsonl", as_file(lines))])
        worked()
        job.refresh_from_db()
        return job

    refused = bring()
    assert (refused.state, Run.objects.count()) == ("refused", 1)
    assert "in which you may make runs" in str(refused.report["errors"])
    person.user_permissions.add(Permission.objects.get(codename="add_project"))
    assert bring().state == "done"
    made = Run.objects.select_related("queue__project").exclude(pk=run.pk).get().queue.project
    assert (made.name, made.pk != run.queue.project_id) == (run.queue.project.name, True)
    assert made.members.get().user == person

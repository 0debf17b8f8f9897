"""What pages and idle beat tasks cost beside ten projects, and beside a thousand.

A thousand hold 380,000 outputs, 570,000 verdicts and 300,000 calls: each page is timed that shows
one project or run of them, a list of them, or what waits for somebody.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench.lib.installation import installation
from bench.lib.pages import analyze, time_page
from bench.lib.report import figure, note

if TYPE_CHECKING:
    from judge_eval.models import Run

FEW = 10
MANY = int(os.environ.get("BENCH_PROJECTS", "1000"))
PAIRS, JUDGES, CALLS, WAITING = 190, 3, 300, 7
TIMES = 7
PAGES = {
    "home": "/",
    "runs": "/runs/",
    "runs by votes": "/runs/?sort=votes",
    "projects": "/projects/",
    "review": "/review/",
    "board": "/runs/{run}/",
    "pairs": "/runs/{run}/pairs/",
    "progress": "/runs/{run}/progress/",
    "people": "/runs/{run}/people/",
    "a project": "/projects/{project}/quality/",
}


def main() -> None:
    with installation():
        run = make_project()
        for projects in (FEW, MANY):
            grow(run, projects)
            measure(run, projects)


def make_project() -> Run:
    """Return a run that judges are at work for and people vote in, in a project of its own."""
    from judge_eval.models import Call, Run
    from reports.models import Review
    from tests.helpers.run_rows import make_calls, make_config, make_provider
    from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all

    make_provider()
    run = make_run(pairs=PAIRS, judges=JUDGES, votes_wanted=3)
    run.judges.filter(position__gt=0).update(provider="default", model="a-model")
    Run.objects.filter(pk=run.pk).update(config=make_config().as_dict())
    calls = make_calls(run)
    Call.objects.filter(pk__in=[call.pk for call in calls[CALLS:]]).delete()
    voter = make_voter(run)
    for pair in pairs_of(run)[:40]:
        make_vote(voter, pair)
    seal_all(run.queue.project)
    for item in pairs_of(run)[:WAITING]:
        Review.objects.update_or_create(
            item=item, defaults={"project": run.queue.project, "waits": True}
        )
    return run


def grow(run: Run, projects: int) -> None:
    from django.db import connection, transaction

    from tests.helpers.many_projects import copy_everything, settle
    from voting.models import Project

    settle()
    standing = Project.objects.count()
    with transaction.atomic():
        copy_everything(projects // standing - 1)
    analyze()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM voting_inference")
        note(f"{Project.objects.count():,} projects, {cursor.fetchone()[0]:,} outputs")


def measure(run: Run, projects: int) -> None:
    from tests.makers import user_client

    client = user_client(HTTP_HOST="localhost")
    names = {"run": run.pk, "project": run.queue.project_id}
    for name, address in PAGES.items():
        aim = "" if projects == FEW else "at most 60"
        time_page(client, address.format(**names), f"{name}, {projects:,} projects", aim)
    # No worker is at work here.
    aim = "" if projects == FEW else "at most 10"
    time_page(client, "/healthz", f"healthz, {projects:,} projects", aim, status=503)
    time_tasks(projects)


def time_tasks(projects: int) -> None:
    """What beat's tasks take in a minute in which nothing happens, with their database."""
    from humanjudge.celery import app
    from tests.helpers.many_projects import beat_tasks

    spent, tasks = 0.0, beat_tasks()
    for entry in app.conf.beat_schedule.values():
        began = time.perf_counter()
        for _ in range(TIMES):
            tasks[entry["task"]]()
        each = (time.perf_counter() - began) / TIMES
        note(f"{entry['task']} takes {each * 1000:.1f} ms")
        spent += each * 60 / entry["schedule"]
    aim = "at most 300" if projects == MANY else ""
    figure(f"beat's tasks in an idle minute, {projects:,} projects", spent * 1000, "ms", aim)


if __name__ == "__main__":
    main()

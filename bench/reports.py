"""Shared reports of 100,000 votes on both databases: their pages, a badge, a bundle, its check."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.lib.pages import on_both_databases, prepare, time_page
from bench.lib.report import figure, note

PAIRS = int(os.environ.get("BENCH_PAIRS", "4000"))
VOTERS = int(os.environ.get("BENCH_VOTERS", "25"))
BADGES = 200


def main(arguments: list[str]) -> None:
    if arguments:
        measure(arguments[0])
    else:
        on_both_databases("bench.reports")


def measure(database: str) -> None:
    prepare()
    from django.core.cache import cache
    from django.test import Client

    from judge_eval.models import Findings
    from reports.report.bundle import bundle_file
    from reports.report.make import report_of
    from reports.report.views.shares import make_share
    from tests.helpers.bundles import empty_the_instance
    from tests.helpers.run_findings import voted_run

    run = voted_run(people=VOTERS, pairs=PAIRS)
    project, size = run.queue.project, f"{PAIRS * VOTERS:,} votes, {database}"
    client = Client(HTTP_HOST="localhost")
    for of in (run, None):
        _, token = make_share(project, of, None)
        what = "a run" if of else "a project"
        # The very first reads templates, too.
        for _ in range(2):
            cache.clear()
            began = time.perf_counter()
            assert client.get(f"/r/{token}/").status_code == 200
            took = (time.perf_counter() - began) * 1000
        figure(f"report of {what}, the first after a vote, {size}", took, "ms", "at most 100")
        time_page(client, f"/r/{token}/", f"report of {what}, {size}")
    began = time.perf_counter()
    for number in range(BADGES):
        # One address alone would reach the limit of public links.
        reply = client.get(f"/r/{token}/badge.svg", REMOTE_ADDR=f"10.0.0.{number}")
        assert reply.status_code == 200
    figure(f"badges, {size}", BADGES / (time.perf_counter() - began), "/s", "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bundle.zip"
        began = time.perf_counter()
        with path.open("wb") as file, bundle_file(report_of(project, run), project) as bundle:
            shutil.copyfileobj(bundle, file)
        took, entries = time.perf_counter() - began, project.head_seq
        figure(f"bundle of {size}", entries / took, "entries/s", "")
        Findings.objects.all().delete()
        empty_the_instance()
        check(path, entries, size)


def check(path: Path, entries: int, size: str) -> None:
    from reports.report.bundle import verify

    began, used = time.perf_counter(), time.process_time()
    verify(path)
    figure(f"verified {size}", entries / (time.perf_counter() - began), "entries/s", "")
    note(f"in {time.process_time() - used:.0f} s of processor time")


if __name__ == "__main__":
    main(sys.argv[1:])

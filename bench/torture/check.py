"""What must be true in the end, whatever happened."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.torture.installation import Installation, ask, wait
from bench.torture.people import People
from bench.torture.work import Work
from tests.process.up import ROOT, environment

if TYPE_CHECKING:
    from tests.helpers.scene import Scene

CALM_SECONDS = 900
# Calls that a model may be asked at once, and so be asked again after one death.
AT_ONCE = 64
SHOWN = 5


@dataclass
class Verdict:
    """What came of one installation."""

    acknowledged: int = 0
    refused: int = 0
    failures: int = 0
    lost: int = 0
    doubled: int = 0
    asked_again: int = 0
    runs: int = 0
    imports: int = 0
    wrong: list[str] = field(default_factory=list)


def check(here: Installation, scene: Scene, people: People, work: Work, deaths: int) -> Verdict:
    """Let voters and work come to an end, then hold the ledger against what was acknowledged."""
    work.end()
    people.end()
    verdict = Verdict(wrong=[*work.wrong])
    try:
        wait(_is_calm, "the end of all runs, imports and drawings", CALM_SECONDS)
    except TimeoutError as error:
        verdict.wrong.append(str(error))
    _votes(scene, people, verdict)
    _work(here, deaths, verdict)
    verdict.wrong += ledgers(here)
    return verdict


def _is_calm() -> bool:
    from judge_eval.models import Import, Run
    from voting.models import Entry, Picture

    going_on = (
        Run.every.filter(state__in=("generating", "judging", "importing")),
        Import.objects.filter(state__in=("waiting", "reading", "writing")),
        Picture.objects.filter(state="waiting"),
        Entry.objects.filter(seq__isnull=True),
    )
    return ask(lambda: not any(each.exists() for each in going_on)) is True


def _votes(scene: Scene, people: People, verdict: Verdict) -> None:
    from voting.models import Entry

    acknowledged = {}
    for voter in people.voters:
        acknowledged |= voter.told.acknowledged
        verdict.refused += voter.told.refused
        verdict.failures += voter.told.failures
        verdict.wrong += voter.told.wrong
    verdict.acknowledged = len(acknowledged)
    columns = ("uid", "voter", "item", "choice")
    votes = list(Entry.objects.filter(queue=scene.queue, kind="vote").values_list(*columns))
    kept = {uid: (item, choice) for uid, _, item, choice in votes}
    lost = [uid for uid, what in acknowledged.items() if kept.get(uid) != what]
    uncalled = [uid for uid in kept if uid not in acknowledged]
    twice = [place for place, n in Counter((v, i) for _, v, i, _ in votes).items() if n > 1]
    verdict.lost, verdict.doubled = len(lost), len(twice) + len(uncalled)
    for what, which in (("lost", lost), ("not acknowledged", uncalled), ("twice", twice)):
        if which:
            verdict.wrong.append(f"{len(which)} votes {what}: {which[:SHOWN]}")


def _work(here: Installation, deaths: int, verdict: Verdict) -> None:
    """No run is stuck or failed, and nobody was paid twice but after a death."""
    from judge_eval.imports.import_jobs import MOST_ATTEMPTS
    from judge_eval.models import Call, Import, Run
    from voting.models import Picture

    verdict.runs, verdict.imports = Run.objects.count(), Import.objects.count()
    for run in Run.every.exclude(state__in=("voting", "complete", "draft")):
        verdict.wrong.append(f"run {run.name} is {run.state}: {run.note}")
    for job in Import.objects.exclude(state="done"):
        # What broke off again and again is given up, and says so.
        if job.attempts <= MOST_ATTEMPTS:
            verdict.wrong.append(f"import {job.name} is {job.state}: {job.detail}")
    if Call.objects.exclude(state="done").exists():
        why = Counter(Call.objects.exclude(state="done").values_list("state", "error"))
        verdict.wrong.append(f"calls that are not done: {dict(why)}")
    if failed := Picture.objects.filter(state="failed").values_list("error", flat=True):
        verdict.wrong.append(f"drawings failed: {Counter(failed)}")
    counts = here.model.log()["counts"]
    verdict.asked_again = sum(counts.values()) - len(counts)
    if verdict.asked_again > AT_ONCE * deaths:
        verdict.wrong.append(f"{verdict.asked_again} calls made again after {deaths} deaths")


def ledgers(here: Installation) -> Iterator[str]:
    """The product's own checks, in processes of their own."""
    from voting.models import Project

    if said := _manage(here, "replay", "--check"):
        yield f"replay --check: {said}"
    file = here.folder / "ledger.jsonl"
    for project in Project.objects.all():
        if said := _manage(here, "export_ledger", str(project.pk), "--out", str(file)):
            yield f"export_ledger: {said}"
        elif said := _manage(here, "verify_ledger", str(file), "--head", project.ledger_head):
            yield f"verify_ledger: {said}"
        numbers = [int(n) for n in re.findall(r'"seq":\s*(\d+)', file.read_text())]
        if sorted(set(numbers)) != list(range(1, project.head_seq + 1)):
            yield f"the ledger of {project.name} has gaps"


def _manage(here: Installation, *arguments: str) -> str:
    """Return what a command said, if it failed."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(here.data, **here.variables),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout[-2000:] + done.stderr[-2000:] if done.returncode else ""

"""The demo's study of PandaLM: how long it takes to load, and what its labels are evidence of.

Evidence depends on the order in which prompts enter, which is fixed by a key: that of the run
stands beside the median over other keys.
"""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial
from statistics import median
from uuid import NAMESPACE_URL, UUID, uuid5

import numpy as np

from bench.lib.report import figure, note
from judge_eval.demo import content
from judge_eval.stats.bootstrap import FloatArray
from judge_eval.stats.evidence import evidence, thresholds
from judge_eval.stats.evidence_order import Event, ItemClosed, ItemOpened, VoteCast, enter
from judge_eval.stats.outcomes_table import FAILED
from voting.items.order import prompt_order

LABELS = ("A", "B", "tie")
OTHER_KEYS = 200


def main() -> None:
    show_loading()
    key = uuid5(NAMESPACE_URL, content.PANDALM.address)
    of_run = largest(key)
    others = [largest(uuid5(key, str(number))) for number in range(OTHER_KEYS)]
    needed = float(thresholds(np.zeros(len(of_run), dtype=bool))[0, 1])
    note(f"a claim takes {needed:.0f} : 1; prompts enter in the order of a keyed hash")
    for one, other in ((0, 1), (1, 0)):
        names = " over ".join(content.PANDALM.judges[n] for n in (one, other))
        figure(f"largest evidence for {names}", of_run[one, other], ": 1")
        values = [found[one, other] for found in others]
        figure(f"its median over {OTHER_KEYS} other keys", median(values), ": 1")
        note(f"{sum(value >= needed for value in values)} of these keys claim it")


def largest(key: UUID) -> FloatArray:
    """Return the largest evidence of each judge over each other, all votes being there at once."""
    rows = content.PANDALM.rows()
    numbers = {prompt: n for n, prompt in enumerate(dict.fromkeys(row.prompt for row in rows))}
    order = list(map(partial(prompt_order, key), numbers))
    events: list[Event] = [
        ItemOpened(pair, pair, numbers[row.prompt], len(row.people), codes(row.judges))
        for pair, row in enumerate(rows)
    ]
    events += [
        VoteCast(len(rows), pair, code)
        for pair, row in sorted(enumerate(rows), key=lambda it: order[numbers[it[1].prompt]])
        for code in codes(row.people)
    ]
    entered = enter([*events, ItemClosed(len(rows) + 1)], order)
    needed = thresholds(np.zeros(entered.n_judges, dtype=bool))
    return np.exp(evidence(entered, needed).log_largest)


def codes(said: dict[str, str]) -> list[int]:
    return [LABELS.index(label) if label in LABELS else FAILED for label in said.values()]


def show_loading() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HUMANJUDGE_DATA": folder, "DATABASE_URL": ""}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import transaction

        from judge_eval.demo.load import make_published
        from voting.models import Project

        call_command("migrate", verbosity=0)
        before = time.process_time()
        with transaction.atomic():
            make_published(Project.objects.create(name="Published labels"), content.PANDALM)
        spent = time.process_time() - before
        figure("processor time to load the published labels", spent, "s", "<= 3")


if __name__ == "__main__":
    main()

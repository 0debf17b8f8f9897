"""Where people pass most outputs, agreement makes nobody the equal of who finds the flags."""

import csv

import numpy as np
import pytest

from judge_eval.stats.claims import claims, margin_above
from judge_eval.stats.evidence_order import ItemOpened, PromptQueue, VoteCast
from tests.helpers.imports import imported
from tests.helpers.published_files import SHARED
from tests.helpers.run_findings import compute
from voting.models import Entry

LABELS = SHARED / "cases" / "field" / "12-imbalanced" / "labels.csv"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not LABELS.exists(), reason="not run: no ../shared/cases"),
    pytest.mark.django_db,
]


def study():
    """200 outputs, of which both people flag 10; nods finds none of these, catcher all."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        item = {name: row[name] for name in ("item", "prompt", "output")}
        yield item | {"generator": "model"}
        for column, said in row.items():
            what, _, who = column.partition(".")
            if what == "vote":
                yield {"item": row["item"], "voter": who, "vote": said}
            elif what == "verdict":
                yield {"item": row["item"], "judge": who, "verdict": said}


def test_a_judge_that_finds_no_flag_is_not_the_same_as_one_that_finds_them():
    run = imported(*study(), vote_kind="pass_flag", baselines=None)
    data = compute(run).data
    names = [judge["name"] for judge in data["judges"]]
    nods, strict, catcher = (names.index(name) for name in ("nods", "strict", "catcher"))
    for one, other in ((nods, strict), (nods, catcher), (strict, catcher)):
        assert not data["claims"]["same"][one][other]
    assert "practically the same" not in data["words"]
    assert not any("practically the same" in point for point in data["more"])
    # The floor passes 95 % of the outputs: half of what is left, fixed by an entry.
    assert data["claims"]["margin"] == pytest.approx(0.025)
    fixed = Entry.objects.filter(queue=run.queue_id, payload__has_key="margin")
    assert [entry.payload for entry in fixed] == [{"margin": repr(data["claims"]["margin"])}]
    assert compute(run).data["claims"]["margin"] == data["claims"]["margin"]
    assert fixed.count() == 1


def test_where_94_percent_pass_two_rates_of_flags_tell_two_judges_apart():
    """One finds 90 % of the flags and the other 5 %; all votes together are within the margin."""
    flags = np.arange(4000) % 100 < 6
    place = np.cumsum(flags)
    finds = [flags & (place % 100 < share) for share in (90, 5)]
    verdicts = np.stack(finds, axis=1).astype(int).tolist()
    opened = [ItemOpened(n, n, n, 1, said) for n, said in enumerate(verdicts)]
    voted = [VoteCast(4000 + n, n, int(flag)) for n, flag in enumerate(flags)]
    queue = PromptQueue(range(4000)).follow([*opened, *voted])
    answers = [queue.entered(only=code) for code in (0, 1)]
    agreement = np.array([0.994, 0.943])
    none = np.zeros(2, dtype=bool)
    margin = margin_above([0.94])
    assert margin == pytest.approx(0.03)
    together = claims(queue.entered(), none, agreement, margin=0.1)
    assert together.same[0, 1]
    apart = claims(queue.entered(), none, agreement, margin=0.1, by_answer=answers)
    assert not apart.same.any()
    assert not claims(queue.entered(), none, agreement, margin=margin, by_answer=answers).same.any()

"""The data of a run in a notebook: by a key over HTTP and beside the server, the same frames."""

import subprocess
import sys

import pytest

import humanjudge
from humanjudge.cli.client import Failed
from tests.helpers.imports import imported, pair, verdict, vote
from tests.helpers.run_findings import compute
from tests.makers import make_key, seal_all
from voting.models import Voter

AT = "2026-03-04T05:06:07.000008Z"


def make_judged_run():
    run = imported(
        pair(1, output_a="- a list", tags=["short"]),
        pair(2),
        vote(1, "ann", "A", voted_at=AT, comment="shorter"),
        vote(1, "bob", "B"),
        vote(2, "ann", "tie", labels={"tone": "rude"}),
        verdict(1, "x", "A", cost_usd=0.25),
        verdict(2, "x", "B"),
        verdict(1, "y", "B"),
        {"pair": "p2", "judge": "y", "error": "no reply"},
    )
    seal_all(run.queue.project)
    compute(run)
    return run


def assert_is_all_of(data):
    assert list(data.items["pair"]) == ["p1", "p2"]
    assert data.items["output_a"][0] == "- a list"
    assert data.items["tags"][0] == ["short"]
    is_by_ann = data.votes["voter"] == Voter.objects.get(external_id="ann").pseudonym
    assert list(data.votes[is_by_ann]["vote"]) == ["A", "tie"]
    assert data.votes["voted_at"][0].year == 2026
    assert data.votes["labels"][2] == {"tone": "rude"}
    assert list(data.verdicts["verdict"].fillna("")) == ["A", "B", "B", ""]
    assert data.verdicts["cost_usd"][0] == 0.25
    figures = data.figures.set_index("judge")
    assert list(figures.index) == ["x", "y"]
    assert figures["overall_agreement"]["x"] == pytest.approx(100 / 3)
    # As docs/exporting.md has it.
    both = data.verdicts.merge(data.votes, on="pair").query("verdict == vote")
    assert both.groupby("judge").size().to_dict() == {"x": 1, "y": 1}
    assert {"overall_low", "overall_high", "elo_exact", "rank"} <= {*figures.columns}


@pytest.mark.django_db
def test_beside_the_server():
    run = make_judged_run()
    assert_is_all_of(humanjudge.load(str(run.pk)[:8]))
    with pytest.raises(LookupError, match="there is no run 'ffffffff'"):
        humanjudge.load("ffffffff")


@pytest.mark.django_db(transaction=True)
def test_by_a_key_over_http(live_server):
    run = make_judged_run()
    key = make_key("manage", "read")[1]
    assert_is_all_of(humanjudge.load(str(run.pk)[:8], url=live_server.url, key=key))
    with pytest.raises(Failed, match="scope 'manage'"):
        humanjudge.load(str(run.pk), url=live_server.url, key=make_key("read")[1])


@pytest.mark.django_db
def test_a_run_without_votes_has_empty_frames():
    data = humanjudge.load(str(imported(pair(1)).pk))
    assert (len(data.items), len(data.votes), len(data.verdicts), len(data.figures)) == (1, 0, 0, 0)


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout + done.stderr


def test_neither_django_nor_pandas_is_needed_to_import_it():
    code = (
        "import sys, humanjudge, humanjudge.notebook; print({'django', 'pandas'} & {*sys.modules})"
    )
    assert python(code) == "set()\n"


def test_without_pandas_it_says_so():
    code = "import sys, humanjudge; sys.modules['pandas'] = None; humanjudge.load('x')"
    assert python(code).endswith("ImportError: humanjudge.load needs pandas: pip install pandas\n")


def test_nothing_else_is_to_be_had_there():
    with pytest.raises(AttributeError, match="no attribute 'save'"):
        humanjudge.save  # noqa: B018

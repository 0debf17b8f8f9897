"""Scores as files: hostile names are text, a failure leaves nothing half done."""

from base64 import b64decode, b64encode
from copy import deepcopy
from hashlib import sha256

import pytest
from django.core.management import CommandError, call_command

from judge_eval.stats import SCORERS, Estimate
from tests.helpers.scores import (
    ACCURACY,
    MoreAs,
    Page,
    files_in,
    page_of,
    read_csv,
    read_json,
    scored,
    voted_run,
)

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


class Broken(MoreAs):
    async def compute_score_async(
        self, judge_data, human_data, task_name, judge_id, aggregation_mode
    ):
        raise ZeroDivisionError("there is nothing to divide by")


class Unwritable(MoreAs):
    async def compute_score_async(
        self, judge_data, human_data, task_name, judge_id, aggregation_mode
    ):
        figures = {"more_as": Estimate(1.0, n=1)}
        about = judge_id, task_name, aggregation_mode
        return self.result(*about, figures, metadata={"what": object()})


@pytest.fixture(autouse=True)
def _scorers(monkeypatch):
    for name, scorer in {"broken": Broken, "unwritable": Unwritable}.items():
        monkeypatch.setitem(SCORERS, name, scorer)


@pytest.fixture(scope="module")
def made_once(module_db):
    return voted_run()


@pytest.fixture
def run(made_once):
    return deepcopy(made_once)


# --- hostile names ------------------------------------------------------------------------------

EVIL = [
    "../../evil",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=1+1",
    "{{ run }}{% now %}",
    "a/b",
    "a:b",
]


def test_no_name_leaves_the_folder_and_none_is_lost(tmp_path):
    out = tmp_path / "inside" / "out"
    out.parent.mkdir()
    run = voted_run(dict.fromkeys(EVIL, ("A", "B", "A", "B")))
    scored(run, out, [{"scorer": "classification"}])
    around = [path for path in tmp_path.rglob("*") if path.is_file() and out not in path.parents]
    assert [path.name for path in around] == ["metrics.json"]
    folder = out / "scores" / "classification_accuracy" / ACCURACY
    assert [path for path in folder.iterdir() if path.is_dir()] == []
    assert sorted(read_json(path)["judge_id"] for path in folder.iterdir()) == sorted(EVIL)
    in_csv = ["'=1+1" if name == "=1+1" else name for name in EVIL]
    assert [row["judge_id"] for row in read_csv(out)] == in_csv


def drawings_of(page):
    """Return the pictures of a page, all of which it must hold in itself."""
    sources = [attrs["src"] for tag, attrs in page.tags if tag == "img"]
    heads = [source.partition(",")[0] for source in sources]
    assert heads == ["data:image/svg+xml;base64"] * len(sources)
    return [Page(b64decode(source.partition(",")[2]).decode()) for source in sources]


def test_no_name_is_anything_but_text_on_the_page(tmp_path):
    out = tmp_path / "out"
    run = voted_run(dict.fromkeys(EVIL, ("A", "B", "A", "B")), name="<b onclick=x>run</b>")
    scored(run, out, [{"scorer": "classification", "display_name": "plain"}], has_charts=True)
    page = page_of(out)
    tags = [tag for tag, _ in page.tags]
    assert (tags.count("script"), tags.count("style")) == (1, 1)
    drawings = drawings_of(page)
    assert tags.count("img") == len(drawings) == 1
    for drawing in (page, *drawings):
        assert not {"image", "foreignobject", "a", "b"} & {tag for tag, _ in drawing.tags}
        assert not any(name.startswith("on") for _, attrs in drawing.tags for name in attrs)
    for name in EVIL:
        assert name in page.texts
    assert any(text.startswith("<b onclick=x>run</b>: how well") for text in page.texts)


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_runs_only_its_own_script(run, tmp_path):
    out = tmp_path / "out"
    scored(run, out, has_charts=True)
    page = page_of(out)
    drawings = drawings_of(page)
    assert len(drawings) > 1
    assert all("script" not in {tag for tag, _ in drawing.tags} for drawing in drawings)
    named = {name for tag, attrs in page.tags for name in attrs if tag != "img"}
    assert not named & {"href", "xlink:href", "src", "style", "srcdoc"}
    references = [
        value
        for drawing in drawings
        for tag, attrs in drawing.tags
        for name, value in attrs.items()
        if name in ("href", "xlink:href", "src")
    ]
    assert all(reference.startswith("#") for reference in references)
    [policy] = [
        attrs["content"]
        for tag, attrs in page.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")
    for kind, text in page.inline.items():
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "url(" not in page.inline["style"]


# --- what is refused ----------------------------------------------------------------------------


def refused(run, out, *args):
    before = files_in(out.parent)
    with pytest.raises(CommandError) as error:
        scored(run, out, *args)
    assert [f for f in files_in(out.parent) if f != "metrics.json"] == before
    return str(error.value)


def test_a_wrong_configuration_is_told_with_its_place(run, tmp_path):
    config = [{"scorer": "classification"}, {"scorer": "kapa"}]
    told = refused(run, tmp_path / "out", config)
    assert told.startswith("the configuration is wrong:\nmetrics[1].scorer: no scorer is called")


def test_two_metrics_of_one_name_ask_for_a_display_name(run, tmp_path):
    told = refused(run, tmp_path / "out", [{"scorer": "classification"}] * 2)
    assert f"two metrics are called {ACCURACY}: give one of them a display_name" in told


def test_a_scorer_that_fails_leaves_no_half_report(run, tmp_path):
    config = [{"scorer": "classification"}, {"scorer": "broken"}]
    told = refused(run, tmp_path / "out", config)
    assert told == "while more_as scored gpt on winner: there is nothing to divide by"


def test_a_result_that_is_no_json_leaves_no_half_report(run, tmp_path):
    told = refused(run, tmp_path / "out", [{"scorer": "unwritable"}])
    assert told.startswith("more_as_1tasks_978f6f60_single of gpt cannot be written as JSON")


@pytest.mark.slow
def test_a_folder_of_somebody_else_is_left_alone(run, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    assert "--force" in refused(run, out)
    scored(run, out, None, "--force")
    assert (out / "scores" / "score_report.csv").exists()
    [kept] = tmp_path.glob("out.before-*")
    assert (kept / "thesis.tex").read_text() == "mine"


@pytest.mark.slow
def test_a_report_is_made_again_in_its_place(run, tmp_path):
    out = tmp_path / "out"
    scored(run, out, [{"scorer": "cohen_kappa"}], has_charts=True)
    assert [path.parent.parent.name for path in out.rglob("gpt_result.json")] == ["cohens_kappa"]
    scored(run, out, [{"scorer": "classification"}], has_charts=True)
    assert [path.name for path in (out / "scores").iterdir() if path.is_dir()] == [
        "classification_accuracy"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.json", "out"]


def test_there_must_be_such_a_run(tmp_path):
    with pytest.raises(CommandError, match="there is no run '00000000'"):
        call_command("score", "00000000", "--out", str(tmp_path / "out"))

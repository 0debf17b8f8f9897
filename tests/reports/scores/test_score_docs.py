"""What docs/results.md shows is what the command does."""

import re
from pathlib import Path

import pytest

from judge_eval.stats import SCORERS
from judge_eval.stats.annotator_test import AltTestSettings
from tests.helpers.imports import imported, pair, verdict, vote
from tests.helpers.scores import read_csv, scored

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "results.md").read_text("utf-8")

pytestmark = pytest.mark.django_db


def block(language):
    [text] = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return text


def test_the_configuration_and_the_scorer_of_the_page_do_what_it_says(tmp_path, monkeypatch):
    monkeypatch.setattr("judge_eval.stats.registry.SCORERS", dict(SCORERS))
    people = ("ann", "ben", "cem")
    labels = {"helpful": "yes", "explanation": "A CAT"}
    run = imported(
        *(pair(n) for n in range(3)),
        *(vote(n, who, "AB"[n % 2], labels=labels) for n in range(3) for who in people),
        *(verdict(n, "gpt", "A", labels=labels | {"explanation": "A"}) for n in range(3)),
    )
    (tmp_path / "my_scorers.py").write_text(block("python"))
    (tmp_path / "metrics.yaml").write_text(block("yaml"))
    (tmp_path / "house.mplstyle").write_text("font.size: 12")
    out = tmp_path / "report"
    scored(run, out, None, "--config", str(tmp_path / "metrics.yaml"), has_charts=True)
    [row] = read_csv(out)
    # "A" has one A and "A CAT" has two, on all items.
    assert row["more_as_1tasks_74d08617_single"] == "-1.0"
    name = "more_as_1tasks_74d08617_single"
    assert (out / "scores" / "more_as" / name / "all_judges.txt").read_text() == "gpt: -1.0\n"
    assert float(row["classification_accuracy_1tasks_978f6f60_single"]) == pytest.approx(2 / 3)
    tree = {
        re.sub(r"<\w+>", "*", name)
        for name in re.findall(r"^      (\S+\w)", PAGE, flags=re.MULTILINE)
    }
    assert "scores/*/*/accuracy_scores.png" in tree
    assert [name for name in tree if not list(out.glob(name))] == []
    assert {path.name for path in out.iterdir()} == {name.split("/")[0] for name in tree}


def test_every_scorer_and_every_option_of_the_alt_test_is_on_the_page():
    assert [name for name in SCORERS if f"`{name}`" not in PAGE] == []
    options = set(AltTestSettings.__dataclass_fields__) - {"resampling"}
    assert [name for name in sorted(options) if f"`{name}`" not in PAGE] == []

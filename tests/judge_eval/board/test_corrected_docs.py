"""docs/corrected.md: its examples are true, and its table names the fields that REST has."""

import doctest
import re
from dataclasses import fields
from pathlib import Path

from judge_eval.board.model import GeneratorRates, JudgeRates
from judge_eval.stats.estimate import Corrected

PAGE = Path(__file__).resolve().parents[3] / "docs" / "corrected.md"


def test_examples_on_the_page_are_true():
    outcome = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 15
    assert outcome.failed == 0


def test_the_page_names_every_field_and_no_other():
    table = PAGE.read_text("utf-8").split("| field | what |")[1]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    told = {name for head, _ in rows for name in re.findall(r"`([\w.]+)`", head)}
    told |= {
        name for _, text in rows for name in re.findall(r"`(judge|is_own_family|rates)`", text)
    }
    figures = {f"rates.{field.name}" for field in fields(Corrected)}
    assert told == {*GeneratorRates.model_fields, *JudgeRates.model_fields} | figures

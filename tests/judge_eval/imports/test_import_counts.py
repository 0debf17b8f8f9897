"""What an import says of a file adds up, whatever is in the file."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_eval.imports.import_report import ImportOptions
from tests.helpers.imports import import_run, rows
from tests.makers import make_project

pytestmark = pytest.mark.django_db

NAMES = st.sampled_from(["1", "1.0", "01", "p", "q", "", None, 2, 2.0])
WORDS = st.sampled_from(["x", "y", None, "", "a\0b", "\ud83d"])
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "pair": NAMES,
        "prompt": WORDS,
        "generator_a": st.sampled_from(["m", "n"]),
        "generator_b": st.sampled_from(["m", "n"]),
        "output_a": WORDS,
        "output_b": WORDS,
        "judge": st.sampled_from(["j", None]),
        "verdict": st.sampled_from(["A", "B", "tie", None, "?"]),
        "score_a": st.sampled_from([1, 7.5, None]),
        "score_b": st.sampled_from([1, 99, None]),
        "voter": st.sampled_from(["ann", "bob", None]),
        "vote": st.sampled_from(["A", "model_b", "Tie", None, "?"]),
    },
)


@settings(deadline=None)
@given(records=st.lists(RECORDS, min_size=1, max_size=12))
def test_records_read_are_those_used_and_those_left_out(records):
    options = ImportOptions(skip_errors=True, baselines=False)
    report = import_run(make_project(), "Any", rows(*records), options=options)
    if not report.runs:
        assert report.errors
        return
    assert report.records == len(records)
    faulty = {error.row for error in report.errors} | {item.row for item in report.left_out}
    assert 0 <= report.used <= report.records
    # Whatever is not used has a reason.
    assert report.records - report.used <= len(faulty)
    written = [json.dumps(record) for record in records]
    assert len(written) == report.records

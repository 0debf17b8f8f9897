"""Single values: what each field takes, and what it refuses in words."""

import contextlib
import datetime as dt
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.imports import fields
from judge_eval.imports.fields import Unfit

NAIVE = datetime(2026, 11, 21, 9, 30)  # noqa: DTZ001 - what a column without a zone holds


@pytest.mark.parametrize(
    "raw, expected",
    [
        ("A", "A"),
        (" b ", "B"),
        ("TIE", "tie"),
        ("Both_Bad", "both_bad"),
        ("model_a", "A"),
        ("Model_B", "B"),
        ("", None),
    ],
)
def test_choices(raw, expected):
    assert fields.choice(raw) == expected


@pytest.mark.parametrize("raw", ["left", "right", "1", 1, "tie (inconsistent)", True, "A B"])
def test_choices_are_not_guessed(raw):
    with pytest.raises(Unfit, match="is not one of A, B, tie, both_bad"):
        fields.choice(raw)


@pytest.mark.parametrize("raw, expected", [(0, 0.0), ("10", 10.0), (7.5, 7.5), (" 1e0 ", 1.0)])
def test_scores(raw, expected):
    assert fields.score(raw) == expected


@pytest.mark.parametrize(
    "raw, why",
    [
        (10.1, "10.1 is not within 0..10"),
        ("-1", "-1 is not within 0..10"),
        ("8/10", "'8/10' is not a number"),
        ("1_0", "'1_0' is not a number"),
        ("nan", "'nan' is not a number"),
        ("٣", "is not a number"),
        (float("nan"), "is not a finite number"),
        ("1e999", "is not a finite number"),
        (10**400, "is too large a number"),
        (True, "must be a number, not a truth value"),
        ([], "must be a number, not a list"),
    ],
)
def test_what_is_no_score(raw, why):
    with pytest.raises(Unfit, match=why):
        fields.score(raw)


@pytest.mark.parametrize(
    "raw",
    [
        "2026-11-21T10:30:00+01:00",
        "2026-11-21 09:30:00Z",
        "2026-11-21T09:30Z",
        "20261121T093000Z",
        datetime(2026, 11, 21, 10, 30, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    ],
)
def test_times_come_out_in_utc(raw):
    assert fields.moment(raw) == NAIVE.replace(tzinfo=UTC)
    assert fields.moment(raw).tzinfo is UTC


@pytest.mark.parametrize("places", ["", "000", "000000", "000000000", ".0"])
def test_a_number_is_seconds_since_1970_or_parts_of_one(places):
    at = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
    text = f"{int(at.timestamp())}{places}"
    assert fields.moment(text) == fields.moment(float(text)) == at


@pytest.mark.parametrize("raw", [NAIVE, NAIVE.isoformat()])
def test_a_time_without_a_zone_is_refused_unless_one_is_agreed(raw):
    with pytest.raises(Unfit, match="2026-11-21T09:30:00 names no time zone"):
        fields.moment(raw)
    assert fields.moment(raw, fields.zone_of("UTC")) == NAIVE.replace(tzinfo=UTC)
    assert fields.moment(raw, fields.zone_of("-05:30")) == datetime(2026, 11, 21, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    "raw, why",
    [
        ("yesterday", "'yesterday' is not an ISO 8601 time"),
        ("2026-11-21", "'2026-11-21' has no time of day"),
        (1_700, "1700 is no time since 1970"),
        (-1_700_000_000, "is no time since 1970"),
        (float("inf"), "is not a finite number"),
        (True, "must be an ISO 8601 time, not a truth value"),
        (dt.date(2026, 11, 21), "must be an ISO 8601 time, not a date"),
        ("0001-01-01T00:00:00+14:00", "is out of range in UTC"),
    ],
)
def test_what_is_no_time(raw, why):
    with pytest.raises(Unfit, match=why):
        fields.moment(raw)


@pytest.mark.parametrize("raw", ["Mars/Olympus", "+24:00", "+01:60", "utc", None, 1])
def test_what_is_no_zone(raw):
    with pytest.raises(Unfit, match="must be UTC or an offset"):
        fields.zone_of(raw)


@pytest.mark.parametrize(
    "raw, expected", [("x", "x"), (7, "7"), (7.0, "7"), ("", None), (" ", None), (" a", " a")]
)
def test_names(raw, expected):
    assert fields.name(raw) == expected


@pytest.mark.parametrize(
    "raw, why",
    [
        (7.5, "must be text or a whole number, not a number"),
        (2.0**60, "must be text or a whole number"),
        (True, "not a truth value"),
        (["a"], "not a list"),
        ("n" * 201, "longer than 200 characters"),
        ("a\0b", "holds a NUL character"),
    ],
)
def test_what_is_no_name(raw, why):
    with pytest.raises(Unfit, match=why):
        fields.name(raw)


def test_a_text_must_fit_into_a_database():
    with pytest.raises(Unfit, match="half a surrogate pair"):
        fields.text("\ud800")
    with pytest.raises(Unfit, match="NUL"):
        fields.text("\0")
    with pytest.raises(Unfit, match="must be text, not a number"):
        fields.text(7)


def test_only_an_output_may_be_empty():
    assert fields.output("") == ""
    assert fields.text("") is None


@pytest.mark.parametrize("raw, expected", [("true", True), ("False", False), (True, True)])
def test_truth_values(raw, expected):
    assert fields.flag(raw) is expected


@pytest.mark.parametrize("raw", ["yes", 1, 0, "1"])
def test_truth_values_are_not_guessed(raw):
    with pytest.raises(Unfit, match="is not one of true, false"):
        fields.flag(raw)


@pytest.mark.parametrize(
    "raw, expected",
    [("a", "a"), (3, 3), (0.5, 0.5), (True, True), (["a", "b"], ("a", "b")), ([], ()), ("", None)],
)
def test_labels_keep_their_types(raw, expected):
    assert fields.label(raw) == expected
    assert type(fields.label(raw)) is type(expected)


@pytest.mark.parametrize("raw", [{"a": 1}, [1, 2], float("inf"), b"x"])
def test_what_is_no_label(raw):
    with pytest.raises(Unfit):
        fields.label(raw)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.decimals(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
EVERY = [
    fields.text,
    fields.output,
    fields.name,
    fields.choice,
    fields.side,
    fields.kind,
    fields.flag,
    fields.number,
    fields.score,
    fields.moment,
    fields.words,
    fields.label,
]


@given(raw=anything)
def test_no_value_breaks_a_reader(raw):
    for convert in EVERY:
        with contextlib.suppress(Unfit):
            convert(raw)

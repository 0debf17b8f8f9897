"""The GrandJury vote file, written and read back."""

import csv
import io
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.exchange.rows import RowError
from judge_eval.exchange.vote_exports import VOTE_COLUMNS as COLUMNS
from judge_eval.exchange.vote_exports import VoteLine
from judge_eval.exchange.vote_exports import read_votes as read
from judge_eval.exchange.vote_exports import vote_lines as lines

AT = datetime(2026, 11, 21, 9, 0, 0, 250_000, tzinfo=UTC)


def read_back(text):
    return list(read(io.BytesIO(text.encode()), "votes.csv"))


def as_the_client_reads(text):
    """Read a cell as the public client does where pandas is not installed."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.lower() == "none" or text == "":
        return None
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def test_a_file_has_the_columns_and_values_that_the_client_reads():
    text = "".join(
        lines(
            [
                VoteLine("1", True, "101", AT, "3"),
                VoteLine("a,b", False, "v", AT),
                VoteLine("2", None, "v", AT),
                VoteLine("2", 0.25, "v", AT),
            ]
        )
    )
    table = [list(map(as_the_client_reads, row)) for row in csv.reader(io.StringIO(text))]
    assert table == [
        list(COLUMNS),
        [1, True, 101, "2026-11-21T09:00:00.250000Z", 3],
        ["a,b", False, "v", "2026-11-21T09:00:00.250000Z", None],
        [2, None, "v", "2026-11-21T09:00:00.250000Z", None],
        [2, 0.25, "v", "2026-11-21T09:00:00.250000Z", None],
    ]


def test_times_are_written_in_utc():
    at = AT.astimezone(timezone(timedelta(hours=-5)))
    assert "2026-11-21T09:00:00.250000Z" in list(lines([VoteLine("1", True, "v", at)]))[1]


@pytest.mark.parametrize(
    "line, why",
    [
        (VoteLine("1", True, "v", AT.replace(tzinfo=None)), "names no time zone"),
        (VoteLine("1", 1.5, "v", AT), "1.5 is not within 0..1"),
    ],
)
def test_what_must_not_be_written(line, why):
    with pytest.raises(ValueError, match=why):
        list(lines([line]))


def test_the_clients_own_examples_are_read():
    text = (
        "inference_id,voter_id,vote,vote_time\n"
        "1,101,True,2024-07-07T19:22:30\n"
        "1,102,None,2024-07-07 20:22:30\n"
        "2,101,0,2024-07-08T19:22:30\n"
    )
    first, second, third = read_back(text)
    assert first == VoteLine("1", True, "101", datetime(2024, 7, 7, 19, 22, 30, tzinfo=UTC))
    assert (second.vote, second.vote_time.hour) == (None, 20)
    assert third.vote == 0.0
    assert third.vote is not False


@pytest.mark.parametrize(
    "row, field, why",
    [
        (",True,v,2024-07-07T19:22:30,", "inference_id", "missing"),
        ("1,maybe,v,2024-07-07T19:22:30,", "vote", "'maybe' is not a number"),
        ("1,2,v,2024-07-07T19:22:30,", "vote", "2 is not within 0..1"),
        ("1,True,v,soon,", "vote_time", "'soon' is not an ISO 8601 time"),
        ("1,True,v", None, "3 columns, the header has 5"),
    ],
)
def test_broken_lines_are_told(row, field, why):
    assert read_back(f"{','.join(COLUMNS)}\n{row}\n") == [RowError("votes.csv", 2, field, why)]


ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)
ids = ids.filter(str.strip)
votes = st.builds(
    VoteLine,
    ids,
    st.none() | st.booleans() | st.floats(0, 1),
    ids,
    st.datetimes(timezones=st.just(UTC)),
    st.none() | ids,
)


@given(st.lists(votes))
def test_what_is_written_is_read_back(expected):
    found = read_back("".join(lines(expected)))
    assert found == expected
    assert [type(line.vote) for line in found] == [type(line.vote) for line in expected]

"""The figures of the GrandJury protocol: recorded replies, rules, frames, and what is refused."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.grandjury.analysis import (
    MOST_MINUTES,
    VoteInvalid,
    completeness,
    histogram,
    majority_good,
    population_confidence,
    votes_distribution,
)
from tests.helpers import oracles
from tests.helpers.recorded_votes import ROWS, SHARES, VOTERS


def as_rows(rows):
    return rows


def as_times(rows):
    return [row | {"vote_time": datetime.fromisoformat(row["vote_time"])} for row in rows]


def as_pandas(rows):
    frame = oracles.pandas.DataFrame(rows)
    return frame.assign(vote_time=oracles.pandas.to_datetime(frame["vote_time"]))


def as_polars(rows):
    return oracles.polars.DataFrame(as_times(rows))


def as_downloaded(rows):
    """Rows as the client brings them with `results(detail="votes")`."""
    verdicts = {True: "pass", False: "flag", None: None}
    return [
        {
            "trace_id": row["inference_id"],
            "voter_id": row["voter_id"],
            "verdict": verdicts[row["vote"]],
            "created_at": f"{row['vote_time']}Z",
        }
        for row in rows
    ]


@pytest.mark.parametrize("made", [as_rows, as_times, as_pandas, as_polars, as_downloaded])
def test_recorded_replies(made):
    votes = made(ROWS)
    assert histogram(votes, duration_minutes=120) == {
        "2024-07-07 18:00:00": 2,
        "2024-08-06 18:00:00": 3,
        "2024-10-06 18:00:00": 2,
    }
    assert completeness(votes, VOTERS, [1, 2, 3, 4]) == SHARES
    assert completeness(votes, VOTERS, gross=True) == 0.75
    assert population_confidence(votes, VOTERS, [1, 2, 3, 4]) == SHARES
    assert population_confidence(votes, VOTERS) == 0.75
    assert majority_good(votes, True, 0.5) == {"count": 2}
    assert majority_good(votes, True, 0.3) == {"count": 3}
    assert votes_distribution(votes) == {"3": 3, "4": 2, "2": 1, "1": 1}
    assert list(votes_distribution(votes).values()) == [3, 2, 1, 1]
    assert votes_distribution(votes, [1]) == {"1": 1}


def test_another_recorded_reply():
    votes = [
        {"inference_id": 1, "voter_id": voter, "vote": vote}
        for voter, vote in [(101, True), (102, True), (103, False)]
    ]
    assert majority_good(votes, True, 0.6) == {"count": 1}
    assert completeness(votes, [101, 102, 103, 104, 105], gross=True) == 0.6


def test_one_share_over_the_items_that_are_named():
    assert completeness(ROWS, VOTERS, [1, 2], gross=True) == 0.5
    assert completeness(ROWS, VOTERS, [], gross=True) == 0
    assert completeness(ROWS, VOTERS, []) == {}


def test_voters_who_are_not_listed_and_items_that_are_not_there():
    assert completeness(ROWS, [101, 101, 104]) == 0.5
    assert completeness(ROWS, [101], [1, 9]) == {"1": 1.0, "9": 0.0}
    assert votes_distribution(ROWS, [9]) == {}


def test_a_histogram_of_each_item():
    assert histogram(ROWS, 1440, gross=False) == {
        "1": {"2024-07-07 00:00:00": 1},
        "2": {"2024-07-07 00:00:00": 1},
        "3": {"2024-08-06 00:00:00": 3},
        "4": {"2024-10-06 00:00:00": 2},
    }


def test_times_of_other_zones_and_before_1970():
    def at(time):
        return histogram([{"vote_time": time}])

    assert at("2024-07-07T01:30:00+02:00") == {"2024-07-06 23:00:00": 1}
    assert at("1969-12-31 23:59:59") == {"1969-12-31 23:00:00": 1}


def test_a_good_vote_may_be_a_word():
    votes = [{"inference_id": 1, "vote": "A"}, {"inference_id": 2, "vote": "B"}]
    assert majority_good(votes, "A") == {"count": 1}
    assert majority_good(ROWS, "flag") == {"count": 1}
    assert majority_good([{"inference_id": 1, "vote": 1.0}], True) == {"count": 1}


def test_gaps_in_a_frame_make_decimals_of_whole_numbers():
    frame = oracles.pandas.DataFrame({"inference_id": [1, 2, 2], "vote": [1.0, None, 0.0]})
    frame["inference_id"] = frame["inference_id"].astype(float)
    assert votes_distribution(frame) == {"2": 2, "1": 1}
    assert majority_good(frame) == {"count": 1}
    assert majority_good(
        oracles.polars.DataFrame({"inference_id": [1], "vote": [float("nan")]})
    ) == {"count": 0}


@pytest.mark.parametrize(
    "votes, said",
    [
        ([{}], "row 1: vote_time: is missing"),
        ([ROWS[0], {"vote_time": None}], "row 2: vote_time: 'None' is no time"),
        ([{"vote_time": "yesterday"}], "row 1: vote_time: 'yesterday' is no time"),
        ([{"vote_time": 1720000000}], "row 1: vote_time: '1720000000' is no time"),
        ([{"vote_time": "0001-01-01"}], "row 1: vote_time: is too far from now"),
    ],
)
def test_a_time_that_is_none(votes, said):
    with pytest.raises(VoteInvalid) as refused:
        histogram(votes, MOST_MINUTES)
    assert str(refused.value) == said


def test_what_a_row_lacks_is_named():
    with pytest.raises(VoteInvalid, match="row 2: voter_id: is missing"):
        completeness([{"voter_id": 1}, {"voter": 1}], [1])
    with pytest.raises(VoteInvalid, match="row 1: inference_id: is empty"):
        votes_distribution([{"inference_id": None}])
    with pytest.raises(VoteInvalid, match="row 1: vote: is missing"):
        majority_good([{"inference_id": 1}])


def test_what_is_out_of_bounds_is_named():
    with pytest.raises(ValueError, match="voter_list"):
        completeness(ROWS, [])
    for minutes in (0, MOST_MINUTES + 1):
        with pytest.raises(ValueError, match="duration_minutes"):
            histogram(ROWS, minutes)
    for threshold in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="threshold"):
            majority_good(ROWS, threshold=threshold)


TIMES = st.datetimes(datetime(1960, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
VOTES = st.lists(
    st.fixed_dictionaries(
        {
            "inference_id": st.integers(0, 5),
            "voter_id": st.integers(0, 5),
            "vote": st.sampled_from([True, False, None]),
            "vote_time": TIMES,
        }
    )
)


@given(VOTES, st.integers(1, MOST_MINUTES))
def test_every_vote_is_in_the_stretch_that_its_time_is_in(votes, minutes):
    counted = histogram(votes, minutes)
    assert sum(counted.values()) == len(votes)
    assert list(counted) == sorted(counted)
    for vote in votes:
        starts = [datetime.fromisoformat(f"{text}+00:00") for text in counted]
        length = timedelta(minutes=minutes)
        assert sum(start <= vote["vote_time"] < start + length for start in starts) == 1
        assert all(
            (start - datetime(1970, 1, 1, tzinfo=UTC)) % length == timedelta(0) for start in starts
        )


@given(VOTES, st.sets(st.integers(0, 7), min_size=1))
def test_shares_are_shares_and_the_whole_has_heard_at_least_what_each_item_has(votes, voters):
    whole = completeness(votes, voters)
    shares = completeness(votes, voters, range(7))
    assert all(0 <= share <= whole <= 1 for share in shares.values())
    assert completeness(votes, voters, range(7), gross=True) == whole


@given(VOTES, st.floats(0, 1))
def test_a_higher_threshold_never_counts_more_items(votes, threshold):
    count = majority_good(votes, True, threshold)["count"]
    assert majority_good(votes, True, 1)["count"] == 0
    assert count <= majority_good(votes, True, threshold / 2)["count"]
    assert majority_good(votes, "pass", threshold)["count"] == count


@given(VOTES)
def test_a_distribution_has_every_row_and_the_most_first(votes):
    counted = votes_distribution(votes)
    assert sum(counted.values()) == len(votes)
    assert list(counted.values()) == sorted(counted.values(), reverse=True)

"""Figures of votes by the names and in the shapes of the GrandJury protocol: SCORING 7.

Votes are rows with `inference_id`, `voter_id`, `vote` and `vote_time`: a list of mappings, a
pandas frame or a polars frame. A vote that is null was asked for and not decided. The columns of
vote rows as `results(detail="votes")` brings them are known too: `trace_id` for `inference_id`,
`verdict` (pass or flag) for `vote`, `created_at` for `vote_time`.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from humanjudge.core.text import excerpt

Row: TypeAlias = Mapping[str, Any]
# Rows, or a frame that turns itself into rows.
Votes: TypeAlias = Any

MOST_MINUTES: Final = 366 * 24 * 60
_ALSO: Final = {"inference_id": "trace_id", "vote": "verdict", "vote_time": "created_at"}
_WORDS: Final = {"true": True, "pass": True, "false": False, "flag": False, "": None}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MISSING: Final = object()


class VoteInvalid(ValueError):
    """A row of votes lacks a value or has a wrong one; `row` counts from 0."""

    def __init__(self, row: int, field: str, message: str) -> None:
        super().__init__(f"row {row + 1}: {field}: {message}")
        self.row = row
        self.field = field
        self.message = message


def histogram(
    votes: Votes, duration_minutes: int = 60, gross: bool = True
) -> dict[str, int] | dict[str, dict[str, int]]:
    """Count votes per stretch of time.

    Parameters
    ----------
    votes : rows or frame
        Each with `vote_time`: a time, or its ISO text. Times without a zone are UTC.
    duration_minutes : int
        Length of a stretch, 1 to 527,040. Stretches begin at whole multiples of it since
        1970-01-01T00:00 UTC.
    gross : bool
        False: a histogram for each item, by its identifier.

    Returns
    -------
    dict
        By the beginning of each stretch that holds votes, `YYYY-MM-DD HH:MM:SS`, oldest first.

    Raises
    ------
    VoteInvalid
        A row has no time, or what it has is none.
    ValueError
        `duration_minutes` is out of bounds.

    Examples
    --------
    >>> histogram([{"vote_time": "2024-07-07T19:22:30"}], duration_minutes=120)
    {'2024-07-07 18:00:00': 1}
    """
    if not 1 <= duration_minutes <= MOST_MINUTES:
        raise ValueError(f"duration_minutes must be from 1 to {MOST_MINUTES:,}")
    length = timedelta(minutes=duration_minutes)
    starts = ((row, _start(row, length)) for row in _rows(votes))
    if gross:
        return _by_time(Counter(start for _, start in starts))
    items: dict[str, Counter[datetime]] = {}
    for row, start in starts:
        items.setdefault(row.name("inference_id"), Counter())[start] += 1
    return {item: _by_time(counts) for item, counts in items.items()}


def completeness(
    votes: Votes,
    voter_list: Collection[object],
    inference_ids: Collection[object] | None = None,
    gross: bool = False,
) -> float | dict[str, float]:
    """Return the share of the listed voters who have a row.

    Parameters
    ----------
    votes : rows or frame
        Each with `voter_id`, and with `inference_id` where items are named.
    voter_list : collection
        Everybody who was asked. Who is named twice counts once; rows of others do not count.
    inference_ids : collection, optional
        Items to look at.
    gross : bool
        One share over the named items together.

    Returns
    -------
    float or dict
        With `inference_ids` a share for each of them by its text, in their order; otherwise one.

    Raises
    ------
    VoteInvalid
        A row lacks a value.
    ValueError
        `voter_list` is empty.

    Examples
    --------
    >>> rows = [{"inference_id": 1, "voter_id": 101}, {"inference_id": 2, "voter_id": 102}]
    >>> completeness(rows, [101, 102, 103, 104])
    0.5
    >>> completeness(rows, [101, 102], inference_ids=[1, 3])
    {'1': 0.5, '3': 0.0}
    """
    listed = {_name(voter) for voter in voter_list}
    if not listed:
        raise ValueError("voter_list names nobody")
    if inference_ids is None:
        return len(listed & {row.name("voter_id") for row in _rows(votes)}) / len(listed)
    heard: dict[str, set[str]] = {_name(item): set() for item in inference_ids}
    for row in _rows(votes):
        item, voter = row.name("inference_id"), row.name("voter_id")
        if item in heard and voter in listed:
            heard[item].add(voter)
    if gross:
        return len(set().union(*heard.values())) / len(listed)
    return {item: len(voters) / len(listed) for item, voters in heard.items()}


def population_confidence(
    votes: Votes, voter_list: Collection[object], inference_ids: Collection[object] | None = None
) -> float | dict[str, float]:
    """Return the share of the population that was heard: the same figure as `completeness`.

    Examples
    --------
    >>> population_confidence([{"voter_id": 101}], [101, 102])
    0.5
    """
    return completeness(votes, voter_list, inference_ids)


def majority_good(votes: Votes, good_vote: object = True, threshold: float = 0.5) -> dict[str, int]:
    """Count the items whose share of good votes is above a threshold.

    Parameters
    ----------
    votes : rows or frame
        Each with `inference_id` and `vote`; null votes are left out of the share.
    good_vote : bool, str or number
        Which vote is a good one; `true` and `pass` are the same, and `false` and `flag`.
    threshold : float
        In [0, 1]; a share that equals it is not above it.

    Returns
    -------
    dict
        `count`: how many items.

    Raises
    ------
    VoteInvalid
        A row lacks a value.
    ValueError
        `threshold` is out of bounds.

    Examples
    --------
    >>> rows = [{"inference_id": 1, "vote": True}, {"inference_id": 1, "vote": False}]
    >>> majority_good(rows), majority_good(rows, threshold=0.3)
    ({'count': 0}, {'count': 1})
    """
    if not 0 <= threshold <= 1:
        raise ValueError("threshold must be from 0 to 1")
    good_one = _vote(good_vote)
    total: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for row in _rows(votes):
        item, vote = row.name("inference_id"), _vote(row.value("vote"))
        if vote is not None:
            total[item] += 1
            good[item] += vote == good_one
    return {"count": sum(good[item] / total[item] > threshold for item in total)}


def votes_distribution(
    votes: Votes, inference_ids: Collection[object] | None = None
) -> dict[str, int]:
    """Count the rows of each item, the most first; equal ones stay in their order.

    `inference_ids` names the items to look at; one without rows is left out.

    Examples
    --------
    >>> votes_distribution([{"inference_id": 1}, {"inference_id": 2}, {"inference_id": 2}])
    {'2': 2, '1': 1}
    """
    counts = Counter(row.name("inference_id") for row in _rows(votes))
    if inference_ids is not None:
        requested = {_name(item) for item in inference_ids}
        counts = Counter({item: count for item, count in counts.items() if item in requested})
    return dict(counts.most_common())


class _VoteRow:
    __slots__ = ("_number", "_values")

    def __init__(self, number: int, values: Row) -> None:
        self._number = number
        self._values = values

    def value(self, field: str) -> Any:
        """Return what a field holds, null where that is not a number."""
        value = self._values.get(field, _MISSING)
        if value is _MISSING:
            value = self._values.get(_ALSO.get(field, field), _MISSING)
        if value is _MISSING:
            raise self.invalid(field, "is missing")
        return None if isinstance(value, float) and math.isnan(value) else value

    def name(self, field: str) -> str:
        value = self.value(field)
        if value is None:
            raise self.invalid(field, "is empty")
        return _name(value)

    def invalid(self, field: str, message: str) -> VoteInvalid:
        return VoteInvalid(self._number, field, message)


def _rows(votes: Votes) -> Iterator[_VoteRow]:
    for number, values in enumerate(_records(votes)):
        yield _VoteRow(number, values)


def _records(votes: Votes) -> Iterable[Row]:
    """Turn a frame into rows; neither library is imported for it."""
    if hasattr(votes, "to_dicts"):  # polars
        return votes.to_dicts()  # type: ignore[no-any-return]
    if hasattr(votes, "notna"):  # pandas
        return votes.astype(object).where(votes.notna(), None).to_dict("records")  # type: ignore[no-any-return]
    return votes  # type: ignore[no-any-return]


def _name(value: object) -> str:
    """Name 7 and 7.0 alike: a column of whole numbers with a gap in it comes as decimals."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _vote(value: object) -> object:
    """Read what a table has as text: a word for true or false, a number, nothing."""
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        number = float(word)
    except ValueError:
        return value
    return None if math.isnan(number) else number


def _start(row: _VoteRow, length: timedelta) -> datetime:
    try:
        return _EPOCH + (_time(row) - _EPOCH) // length * length
    except OverflowError:
        raise row.invalid("vote_time", "is too far from now") from None


def _time(row: _VoteRow) -> datetime:
    value = row.value("vote_time")
    try:
        vote_time = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        vote_time = None
    if not isinstance(vote_time, datetime):
        raise row.invalid("vote_time", f"{excerpt(str(value), 60)} is no time")
    return vote_time.astimezone(UTC) if vote_time.tzinfo else vote_time.replace(tzinfo=UTC)


def _by_time(counts: Counter[datetime]) -> dict[str, int]:
    return {f"{start:%Y-%m-%d %H:%M:%S}": counts[start] for start in sorted(counts)}

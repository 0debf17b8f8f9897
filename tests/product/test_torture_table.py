"""What `make torture` says came of its parts."""

import doctest

from bench.torture import table
from bench.torture.table import Part, growth, markdown


def test_growth_is_a_slope_that_leaves_the_beginning_out():
    assert doctest.testmod(table, optionflags=doctest.ELLIPSIS).failed == 0
    assert growth([10, 90, 90, 90, 90, 90, 90, 90]) == 0
    assert growth([50, 60, 70, 80]) == 10


def test_parts_of_one_database_are_added_up_and_days_stand_apart():
    kills = {"acknowledged": 1000, "lost": 0, "doubled": 1, "asked_again": 2}
    parts = [
        Part("SQLite, kills 1 to 2", "SQLite", {"beat": [1.0], "worker": [2.0]}, kills),
        Part("SQLite, kills 3 to 3", "SQLite", {"beat": [4.0]}, kills),
        Part("PostgreSQL, kills 1 to 1", "PostgreSQL", {"beat": [3.0]}, kills),
        Part("SQLite, 24 hours", "SQLite", {}, kills, hours=24, growth={"web 7": 0.25}),
    ]
    faults, votes, days = (block.splitlines()[2:] for block in markdown(parts).split("\n\n"))
    assert faults == ["| beat | 2 | 2.5, 4.0 | 1 | 3.0, 3.0 |", "| worker | 1 | 2.0, 2.0 | - | - |"]
    assert votes == [
        "| SQLite | 3 | 2,000 | 0 | 0 | 0 | 2 | 0 | 0 | 4 |",
        "| PostgreSQL | 1 | 1,000 | 0 | 0 | 0 | 1 | 0 | 0 | 2 |",
    ]
    assert days == ["| SQLite | 24 | 1,000 | 0 | 1 | 0 | 0.25 (web) |"]

"""`manage.py votes`: the figures of votes in a file of any format, and what is wrong with one."""

import csv
import io
import json

import pyarrow
import pytest
from django.core.management import CommandError, call_command
from pyarrow import parquet

from tests.helpers.recorded_votes import ROWS, SHARES


def write_csv(path):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        writer.writerows(ROWS)


WRITERS = {
    "csv": write_csv,
    "json": lambda path: path.write_text(json.dumps(ROWS)),
    "jsonl": lambda path: path.write_text("\n".join(map(json.dumps, ROWS))),
    "parquet": lambda path: parquet.write_table(pyarrow.Table.from_pylist(ROWS), path),
}


def votes(*arguments):
    out = io.StringIO()
    call_command("votes", *map(str, arguments), stdout=out)
    return json.loads(out.getvalue())


@pytest.mark.parametrize("suffix", WRITERS)
def test_recorded_replies(suffix, tmp_path):
    path = tmp_path / f"votes.{suffix}"
    WRITERS[suffix](path)
    voters = ("--voters", "101,102,103,104")
    assert votes("histogram", path, "--minutes", "120") == {
        "2024-07-07 18:00:00": 2,
        "2024-08-06 18:00:00": 3,
        "2024-10-06 18:00:00": 2,
    }
    assert votes("histogram", path, "--minutes", "120", "--per-item")["1"] == {
        "2024-07-07 18:00:00": 1
    }
    assert votes("completeness", path, *voters, "--items", "1,2,3,4") == SHARES
    assert votes("completeness", path, *voters, "--items", "1,2", "--gross") == 0.5
    assert votes("population-confidence", path, *voters) == 0.75
    assert votes("majority-good", path) == {"count": 2}
    assert votes("majority-good", path, "--good-vote", "false") == {"count": 1}
    assert votes("majority-good", path, "--threshold", "0.3") == {"count": 3}
    assert list(votes("votes-distribution", path).values()) == [3, 2, 1, 1]


@pytest.mark.parametrize(
    "name, text, figure, said",
    [
        ("votes.csv", "inference_id\n1\n2,3\n", "votes-distribution", "votes.csv:3: 2 columns"),
        ("votes.csv", "voter_id\n7\n", "votes-distribution", "votes.csv:2: inference_id: is"),
        (
            "votes.csv",
            "inference_id,vote_time\n1,soon\n",
            "histogram",
            "votes.csv:2: vote_time: 'soon'",
        ),
        ("votes.doc", "inference_id\n", "histogram", "the name must end in"),
        ("votes.csv", "voter_id\n7\n", "completeness", "voter_list names nobody"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(name, text, figure, said, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(CommandError) as refused:
        votes(figure, path)
    assert said in str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        votes("histogram", tmp_path / "votes.csv")

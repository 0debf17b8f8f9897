"""What the beginning of files is taken for: columns, first items, faults, and their bounds."""

import json

import pytest

from humanjudge.core.validation import ConfigInvalid
from judge_eval.imports import mapping
from judge_eval.imports.preview import (
    LONGEST_TEXT,
    LOOKED_AT,
    MOST_COLUMNS,
    MOST_ITEMS,
    MOST_STATEMENTS,
    PreviewRequest,
    look,
)
from judge_eval.imports.row_models import ITEMS, PAIRS
from voting.items.conversations import messages_of


@pytest.fixture
def seen(tmp_path):
    def look_at(*records, name="rows.jsonl", **more):
        path = tmp_path / "0"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        return look(PreviewRequest(files=[(path, name)], **more))

    return look_at


def test_what_rows_say_of_an_item_stands_together(seen):
    found = seen(
        {"pair": "p", "prompt": "Q", "output_a": "x", "generator_a": "ada"},
        {"pair": "p", "output_b": "", "judge": "j", "verdict": "tie"},
        {"pair": "p", "judge": "k", "pick_ab": "A", "pick_ba": "B"},
        {"pair": "p", "judge": "l", "error": "no reply"},
        {"pair": "p", "voter": "ann", "vote": "B", "labels.sure": 3},
    )
    [item] = found.items
    assert (item.name, item.prompt) == ("p", "Q")
    assert [(output.generator, output.text) for output in item.outputs] == [("ada", "x"), ("", "")]
    assert item.verdicts == [
        ("j", "tie"),
        ("k", "A with A first, B with B first"),
        ("l", "no verdict: no reply"),
    ]
    assert item.votes == [("ann", "B, sure: 3")]


def test_single_items_have_one_output_and_answers_of_their_own(seen):
    found = seen({"item": "t", "output": "x", "voter": "ann", "vote": ["a", "b"]})
    assert found.shape == "item"
    assert len(found.items[0].outputs) == 1
    assert found.items[0].votes == [("ann", "a; b")]


def test_only_a_beginning_is_read_and_shown(seen):
    rows = [{"pair": n, "output_a": "x" * 2000, "output_b": None} for n in range(LOOKED_AT)]
    rows += [{"pair": 0, "voter": n, "vote": "A"} for n in range(50)] + [
        {"pair": "last", "vote": 1}
    ]
    found = seen(*rows)
    assert len(found.items) == MOST_ITEMS
    assert len(found.items[0].outputs[0].text) == LONGEST_TEXT + 1
    assert found.faults == []
    votes = [{"pair": 0, "voter": n, "vote": "A"} for n in range(50)]
    assert len(seen(*votes).items[0].votes) == MOST_STATEMENTS


def test_a_long_conversation_stays_one_and_its_last_turns_are_shown(seen):
    turns = [{"role": "user", "content": f"{n} " * LONGEST_TEXT} for n in range(50)]
    found = seen({"pair": "p", "prompt": json.dumps(turns), "output_a": "x", "output_b": "y"})
    shown = messages_of(found.items[0].prompt)
    assert len(shown) == MOST_STATEMENTS
    assert shown[-1].content == ("49 " * LONGEST_TEXT)[:LONGEST_TEXT]


def test_columns_come_with_values_that_may_be_choices(seen):
    rows = [{"pair": n, "vote": "AB"[n % 2], "sure": 1.0, "text": "x" * n * 9} for n in range(20)]
    columns = seen(*rows).columns
    assert columns == {"pair": [], "vote": ["A", "B"], "sure": ["1"], "text": []}
    many = {f"c{n}": 1 for n in range(MOST_COLUMNS + 7)} | {"x\n": 1, "y" * 201: 1}
    found = seen(many)
    assert (len(found.columns), found.more_columns) == (MOST_COLUMNS, 9)


def test_each_fault_is_said_once_with_its_first_row(seen):
    found = seen(*[{"pair": n, "voter": "a", "vote": "left"} for n in range(3)])
    [fault] = found.faults
    assert (fault.place, fault.field, fault.more) == ("rows.jsonl, row 1", "vote", 2)


@pytest.mark.parametrize(
    "rows, said",
    [
        (
            [{"pair": "p", "output_a": "x"}, {"pair": "p", "output_a": "y"}],
            [("rows.jsonl, row 2", "output_a", "'y', but pair 'p' has 'x'")],
        ),
        (
            [{"pair": "p", "voter": "ann", "vote": choice} for choice in ("A", "A", "B", "tie")],
            [
                ("rows.jsonl, row 3", "vote", "'B', but ann said 'A' on pair 'p' before"),
                ("rows.jsonl, row 4", "vote", "'tie', but ann said 'A' on pair 'p' before"),
            ],
        ),
        (
            [
                {"item": "t", "judge": "j", "verdict": "pass"},
                {"item": "t", "judge": "j", "error": "no reply"},
                {"item": "t", "judge": "j", "verdict": "flag", "voter": "ann", "vote": 0.5},
            ],
            [
                ("rows.jsonl, row 2", "verdict", "'failed', but j said 'pass' on item 't' before"),
                ("rows.jsonl, row 3", "verdict", "'flag', but j said 'pass' on item 't' before"),
            ],
        ),
        (
            [{"pair": "p", "judge": "j", "verdict": "A", "consistent": False}],
            [("rows.jsonl, row 1", "verdict", "two orders that disagree are a tie, not A")],
        ),
    ],
)
def test_rows_that_contradict_each_other_are_faults(seen, rows, said):
    found = seen(*rows)
    assert [(fault.place, fault.field, fault.reason) for fault in found.faults] == said


def test_rows_of_two_files_contradict_each_other_too(tmp_path):
    (tmp_path / "0").write_text('{"pair": 1, "prompt": "Q"}\n')
    (tmp_path / "1").write_text("pair,prompt\n1,Why?\n")
    found = look(PreviewRequest(files=[(tmp_path / "0", "a.jsonl"), (tmp_path / "1", "b.csv")]))
    [fault] = found.faults
    assert (fault.place, fault.reason) == ("b.csv, row 2", "'Why?', but pair '1' has 'Q'")
    (tmp_path / "1").write_text("item,output\n1,x\n")
    [fault] = look(
        PreviewRequest(files=[(tmp_path / "0", "a.jsonl"), (tmp_path / "1", "b.csv")])
    ).faults
    assert (fault.place, fault.reason) == (
        "b.csv, row 2",
        "a single item; this run is made of pairs",
    )


def test_several_files_are_one_source(tmp_path):
    (tmp_path / "0").write_text('{"pair": 1, "prompt": "Q"}\n')
    (tmp_path / "1").write_text("pair,voter,vote\n1,ann,A\n")
    files = [(tmp_path / "0", "pairs.jsonl"), (tmp_path / "1", "votes.csv")]
    found = look(PreviewRequest(files=files))
    assert list(found.columns) == ["pair", "prompt", "voter", "vote"]
    assert found.items[0].votes == [("ann", "A")]


def test_roles_are_those_that_reading_by_names_has():
    columns = ["id", "labels.x", "metadata", "vote.ann", "item", "score_a"]
    assert list(mapping.roles_of(columns, ITEMS).values()) == [
        *("", "labels", "metadata", "voters", "item", "")
    ]
    assert list(mapping.roles_of(columns, PAIRS).values()) == [
        *("", "labels", "", "voters", "", "score_a")
    ]


def test_what_is_chosen_reads_as_a_mapping_does():
    config = mapping.config_of(
        {"no": "pair", "gpt": "judges", "verdict.x": "judges", "sure": "labels", "z": ""},
        {"gpt": {"1": "A", "0": None}},
        voter="ann",
        judge="",
    )
    assert config == {
        "voter": {"value": "ann"},
        "pair": {"column": "no"},
        "judges": {
            "gpt": {"column": "gpt", "values": {"1": "A", "0": None}},
            "x": {"column": "verdict.x"},
        },
        "labels": {"sure": {"column": "sure"}},
    }
    assert mapping.parse(config).shape is PAIRS
    with pytest.raises(ConfigInvalid, match=r"mapping\.pair: chosen again for 'b'"):
        mapping.config_of({"a": "pair", "b": "pair"}, {})

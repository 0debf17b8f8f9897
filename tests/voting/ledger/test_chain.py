"""Canonical JSON, the hash chain, and what its verification refuses."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import pytest

from tests.helpers.ledgers import export_of, ledger_of
from voting.ledger import chain
from voting.ledger.chain import ChainBroken, canonical, extend, genesis, verify

PROJECT = UUID("6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e")


def test_canonical_json_is_sorted_dense_and_utf8():
    content = {"b": [1, True, None], "ä": "é\u2028", "a": {"z": 0, "y": -1}}
    assert canonical(content) == '{"a":{"y":-1,"z":0},"b":[1,true,null],"ä":"é\u2028"}'.encode()


@pytest.mark.parametrize(
    "value", [0.5, float("nan"), b"x", {1, 2}, PROJECT, datetime.now(UTC), {1: "A"}]
)
def test_canonical_json_refuses_what_has_no_one_text(value):
    with pytest.raises(TypeError, match=r"a ledger entry (holds no|has only text keys)"):
        canonical({"deep": [{"inside": value}]})


def test_genesis_is_the_hash_of_the_lower_case_uuid_text():
    assert genesis(PROJECT) == sha256(b"6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e").digest()


def test_each_hash_covers_the_one_before_as_32_bytes():
    previous = genesis(PROJECT)
    assert extend(previous, {"seq": 1}) == sha256(previous + b'{"seq":1}').digest()
    assert len(previous) == 32


def test_times_are_utc_with_microseconds():
    at = datetime(2026, 11, 21, 10, tzinfo=timezone(timedelta(hours=1)))
    assert chain.timestamp(at) == "2026-11-21T09:00:00.000000Z"


def test_free_text_stands_as_a_salted_hash():
    assert chain.salted_hash("salt", "text") == sha256(b"salttext").hexdigest()


def test_an_unbroken_chain_verifies():
    entries = ledger_of(5, retracting={4: 2})
    lines, head = export_of(PROJECT, entries)
    verified = verify(lines, head)
    assert (verified.project, verified.entries, verified.head) == (PROJECT, 5, head)


def test_an_empty_ledger_verifies_to_its_genesis():
    lines, head = export_of(PROJECT, [])
    assert verify([*lines, "", "  \n"], head).head == genesis(PROJECT).hex()


def broken(lines, head=None):
    with pytest.raises(ChainBroken) as caught:
        verify(lines, head)
    return caught.value


LINES, _ = export_of(PROJECT, ledger_of(4))
FORGED, _ = export_of(PROJECT, [entry | {"choice": "B"} for entry in ledger_of(4)])
OTHER, _ = export_of(UUID(int=1), [])
BROKEN = {
    "another choice": (
        [*LINES[:3], LINES[3].replace('"choice":"A"', '"choice":"B"'), LINES[4]],
        "line 4: entry 3 is not the one its hash was made of",
    ),
    "another choice with its hash": ([*LINES[:3], FORGED[3], LINES[4]], "line 4: "),
    "removed": (LINES[:2] + LINES[3:], "entry 3 stands where 2 must"),
    "reordered": ([*LINES[:2], LINES[3], LINES[2], LINES[4]], "line 3: "),
    "inserted": ([*LINES[:3], LINES[2], *LINES[3:]], "line 4: "),
    "another project": ([*OTHER, *LINES[1:]], "line 2: "),
    "a key twice": (
        [LINES[0], LINES[1].replace('"choice":"A"', '"choice":"B","choice":"A"')],
        "a key is given twice",
    ),
    "a float": ([LINES[0], LINES[1].replace('"seq":1', '"seq":1,"value":1.0')], "holds no float"),
}


@pytest.mark.parametrize("lines, words", BROKEN.values(), ids=BROKEN)
def test_what_was_changed_is_found_at_its_line(lines, words):
    assert words in str(broken(lines))


def test_a_cut_tail_is_found_only_with_the_head():
    lines, head = export_of(PROJECT, ledger_of(4))
    assert verify(lines[:-1]).entries == 3
    error = broken(lines[:-1], head)
    assert str(error).startswith("the export ends at")
    assert "its tail was cut" in str(error)


def test_the_head_may_be_given_in_capitals_and_with_spaces():
    lines, head = export_of(PROJECT, ledger_of(1))
    assert verify(lines, f" {head.upper()}\n").entries == 1


@pytest.mark.parametrize("retracting", [{3: 3}, {2: 3}, {3: 1, 4: 1}], ids=str)
def test_a_retraction_of_nothing_is_refused(retracting):
    """Of itself, of a later vote, of a vote that is retracted already."""
    lines, head = export_of(PROJECT, ledger_of(4, retracting=retracting))
    assert "retracts a vote that does not stand" in str(broken(lines, head))


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["not JSON"],
        ["[1]"],
        ["{}"],
        ['{"ledger":"nonsense","schema":1}'],
        ['{"ledger":"6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e","schema":2}'],
        ['{"ledger":"6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e","schema":1}', "{"],
        ['{"ledger":"6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e","schema":1}', '{"hash":"ab"}'],
        ['{"ledger":"6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e","schema":1}', '{"entry":{},"hash":1}'],
        [
            '{"ledger":"6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e","schema":1}',
            '{"entry":{"seq":1,"schema":1,"note":"\\ud800"},"hash":"ab"}',
        ],
        ['{"ledger":"6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e","schema":1}', "[" * 100_000],
    ],
    ids=lambda lines: (lines[-1] if lines else "empty")[:40],
)
def test_what_is_no_ledger_is_refused_in_words(lines):
    assert str(broken(lines))


def test_an_entry_of_another_schema_is_refused():
    lines, head = export_of(PROJECT, [ledger_of(1)[0] | {"schema": 2}])
    assert "schema 2" in str(broken(lines, head))


def run_alone(folder, *arguments):
    """Run the file by itself in another folder, without Django and without the project."""
    script = folder / "chain.py"
    script.write_text(Path(chain.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-I", "-S", str(script), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_the_file_alone_verifies_an_export_and_fails_on_a_broken_chain(tmp_path):
    lines, head = export_of(PROJECT, ledger_of(3))
    file = tmp_path / "ledger.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    done = run_alone(tmp_path, str(file), "--head", head)
    assert done.returncode == 0
    assert "verified: 3 entries" in done.stdout
    assert "the head is as given" in done.stdout
    assert "a cut tail would pass" in run_alone(tmp_path, str(file)).stdout
    file.write_text("\n".join(lines[:-1]), encoding="utf-8")
    failed = run_alone(tmp_path, str(file), "--head", head)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "its tail was cut" in failed.stderr


@pytest.mark.parametrize("content", [b"\xff\xfe", None], ids=["not UTF-8", "no file"])
def test_a_file_that_cannot_be_read_is_said(tmp_path, capsys, content):
    file = tmp_path / "ledger.jsonl"
    if content is not None:
        file.write_bytes(content)
    assert chain.main([str(file)]) == 1
    assert str(file) in capsys.readouterr().err


def test_a_receipt_fits_the_export_that_it_is_of_and_no_other():
    lines, _ = export_of(PROJECT, ledger_of(5))
    others = [entry | {"choice": "B"} for entry in ledger_of(5)]
    rewritten, _ = export_of(PROJECT, others)
    third = json.loads(lines[3])["hash"]
    assert verify(lines, receipts={3: third}).entries == 5
    with pytest.raises(ChainBroken, match="entry 3 is not the one that the receipt is of"):
        verify(rewritten, receipts={3: third})
    with pytest.raises(ChainBroken, match="no entry 9, of which there is a receipt"):
        verify(lines, receipts={9: third})

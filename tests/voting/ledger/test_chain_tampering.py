"""Whatever is changed in a ledger, verification with the head finds it."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.ledgers import export_of
from voting.ledger import chain
from voting.ledger.chain import ChainBroken, verify

texts = st.text(st.characters(codec="utf-8"), max_size=8)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2)
)


@st.composite
def exports(draw):
    """Draw a ledger of votes and retractions with any further fields, and its head."""
    entries = []
    standing = []
    for seq in range(1, draw(st.integers(1, 5)) + 1):
        entry = draw(st.dictionaries(texts, values, max_size=3))
        entry |= {"schema": chain.SCHEMA, "seq": seq, "id": f"entry-{seq}"}
        if standing and draw(st.booleans()):
            target = standing.pop(draw(st.integers(0, len(standing) - 1)))
            entry |= {"kind": "retraction", "target": target}
        else:
            entry |= {"kind": "vote", "choice": draw(st.sampled_from(["A", "B", "tie"]))}
            standing.append(entry["id"])
        entries.append(entry)
    return export_of(draw(st.uuids()), entries)


def facts(lines):
    """What an export says, however it is spelled: 1 and true and 1.0 are not the same."""
    head, *records = [json.loads(line) for line in lines if line.strip()]
    return UUID(head["ledger"]), [json.dumps(record["entry"], sort_keys=True) for record in records]


def assert_found(before, after, head):
    """Nothing but a change that changes no fact may pass."""
    try:
        verify(after, head)
    except ChainBroken:
        return
    assert facts(after) == facts(before)


@given(exports())
def test_a_random_ledger_verifies(export):
    lines, head = export
    assert verify(lines, head).entries == len(lines) - 1


@given(exports(), st.data())
def test_any_single_byte_that_is_changed_is_found(export, data):
    lines, head = export
    number = data.draw(st.integers(0, len(lines) - 1), label="line")
    altered = bytearray(lines[number].encode())
    place = data.draw(st.integers(0, len(altered) - 1), label="byte")
    altered[place] ^= data.draw(st.integers(1, 255), label="bits")
    try:
        line = altered.decode()
    except UnicodeDecodeError:
        return  # the file cannot even be read; test_chain has that case
    assert_found(lines, [*lines[:number], line, *lines[number + 1 :]], head)


@given(exports(), st.data())
def test_any_field_that_is_changed_added_or_removed_is_found(export, data):
    lines, head = export
    number = data.draw(st.integers(1, len(lines) - 1), label="line")
    record = json.loads(lines[number])
    name = data.draw(st.sampled_from(sorted(record["entry"])) | texts, label="field")
    value = data.draw(values, label="value")
    old = record["entry"].pop(name, "absent")
    if data.draw(st.booleans(), label="put back"):
        if json.dumps(old) == json.dumps(value):
            return
        record["entry"][name] = value
    elif old == "absent":
        return
    altered = [*lines[:number], json.dumps(record), *lines[number + 1 :]]
    with pytest.raises(ChainBroken):
        verify(altered, head)


@given(exports(), st.data())
def test_any_other_order_or_number_of_entries_is_found(export, data):
    lines, head = export
    rows = lines[1:]
    shuffled = data.draw(st.lists(st.sampled_from(rows), max_size=len(rows) + 1), label="rows")
    if shuffled == rows:
        return
    with pytest.raises(ChainBroken):
        verify([lines[0], *shuffled], head)

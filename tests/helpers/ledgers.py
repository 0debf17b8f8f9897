"""Ledgers of plain dictionaries, for the tests of the chain."""

import json

from voting.ledger import chain


def ledger_of(votes, retracting=None):
    """Return entries 1..votes; `retracting` maps the number of a retraction to that of its vote."""
    retracting = retracting or {}
    return [_entry(seq, retracting.get(seq)) for seq in range(1, votes + 1)]


def _entry(seq, target):
    entry = {"schema": chain.SCHEMA, "seq": seq, "id": f"entry-{seq}", "voter": "5ec2e7"}
    if target is not None:
        return entry | {"kind": "retraction", "target": f"entry-{target}", "payload": None}
    return entry | {"kind": "vote", "choice": "A", "left": "B", "elapsed_ms": 1200}


def export_of(project, entries):
    """Return the lines of an export and the head they lead to."""
    previous = chain.genesis(project)
    lines = [json.dumps(chain.header(project))]
    for entry in entries:
        previous = chain.extend(previous, entry)
        record = {"entry": entry, "hash": previous.hex()}
        lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")))
    return lines, previous.hex()

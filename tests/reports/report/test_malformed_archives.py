"""Whatever is in a file, `verify` and `restore` refuse it in one sentence, having read little."""

import json
import zlib
from functools import partial
from hashlib import sha256
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import pytest

from humanjudge.server import backup
from reports.report.bundle import LEDGER, MANIFEST, REPORT, NotVerified, verify

pytestmark = pytest.mark.django_db
DEEP = b"[" * 100_000 + b"]" * 100_000
DEEP_LINE = b'{"type":"run","config":' + DEEP + b"}"
HEADER = (
    b'{"type":"header","format":"humanjudge","version":1,"runs":[],"project":{"id":'
    b'"00000000-0000-0000-0000-000000000001","name":"P","created_at":"2026-01-01T00:00:00Z",'
    b'"head_seq":0,"head":"' + b"0" * 64 + b'"}}'
)
END = b'{"type":"end","lines":1}'


def zipped(path, members, compression=ZIP_DEFLATED):
    with ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def with_manifest(path, members, compression=ZIP_DEFLATED):
    sums = {name: sha256(content).hexdigest() for name, content in members.items()}
    return zipped(path, {MANIFEST: json.dumps({"sha256": sums}), **members}, compression)


def encrypted(path):
    """Mark every member as encrypted, in its header and in the directory."""
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(signature)
        while place >= 0:
            data[place + flags] |= 1
            place = data.find(signature, place + 1)
    return written(path, data)


def report(**changes):
    head = {"seq": 0, "hash": "0" * 64}
    whole = {"title": "T", "made_at": "2026-01-01T00:00:00Z", "head": head, "versions": {}}
    return json.dumps(whole | changes).encode()


LEDGERS = {
    "empty": b"",
    "a list": b"[]\n",
    "a text": b'"a"\n',
    "lists for objects": HEADER.replace(b'"project":{', b'"project":[{').replace(b"}}", b"}]}"),
    "deep": HEADER + b"\n" + DEEP_LINE + b"\n" + END,
    "no end": HEADER,
    "no text": b"\xff\xfe\n",
    "another head": HEADER + b"\n" + END + b"\n",
}
REPORTS = {
    "a list": b"[]",
    "nothing": b"",
    "deep": DEEP,
    "lists for objects": report(head=[]),
    "more than it may hold": b" " * 50_000_001,
    "no runs": report(runs=[]),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_a_malformed_ledger_is_refused(tmp_path, name):
    path = with_manifest(tmp_path / "b.zip", {REPORT: report(), LEDGER: LEDGERS[name]})
    assert refused(path)


@pytest.mark.parametrize("name", REPORTS)
def test_a_malformed_report_is_refused(tmp_path, name):
    # The head of an empty ledger.
    head = sha256(b"00000000-0000-0000-0000-000000000001").hexdigest()
    ledger = HEADER.replace(b"0" * 64, head.encode()) + b"\n" + END + b"\n"
    content = REPORTS[name].replace(b"0" * 64, head.encode())
    path = with_manifest(tmp_path / "b.zip", {REPORT: content, LEDGER: ledger})
    assert refused(path)


MANIFESTS = {
    "a list": b"[]",
    "nothing": b"",
    "deep": DEEP,
    "lists for objects": b'{"sha256":[],"format":[],"tables":[]}',
    "more than it may hold": b" " * 1_000_001 + b"{}",
    "numbers for texts": b'{"sha256":{"a":1},"format":1,"version":[]}',
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_malformed_manifest_is_refused(tmp_path, name):
    path = zipped(tmp_path / "b.zip", {MANIFEST: MANIFESTS[name], REPORT: b"", LEDGER: b""})
    assert refused(path)
    assert not_restored(path)


def damaged(path):
    whole = with_manifest(path, {REPORT: report(), LEDGER: HEADER * 20}).read_bytes()
    start = whole.find(b"report.json") + len("report.json")
    return written(path, whole[:start] + b"\xff" * 20 + whole[start + 20 :])


def written(path, content):
    path.write_bytes(content)
    return path


ARCHIVES = {
    "no zip": lambda path: written(path, b"PK"),
    "cut": lambda path: written(path, zipped(path, {MANIFEST: b"{}"}).read_bytes()[:-30]),
    "empty": lambda path: zipped(path, {}),
    "damaged": damaged,
    "encrypted": lambda path: encrypted(zipped(path, {MANIFEST: b"{}"})),
    "unknown compression": lambda path: with_manifest(path, {REPORT: b"x"}, ZIP_BZIP2),
    "a bomb": lambda path: zipped(path, {MANIFEST: b"{}", LEDGER: bytes(200_000_000)}),
    "many small bombs": lambda path: zipped(
        path, {MANIFEST: b"{}", **{f"{n}": bytes(1_000_000) for n in range(80)}}
    ),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_malformed_zip_is_refused(tmp_path, name):
    path = ARCHIVES[name](tmp_path / "b.zip")
    assert refused(path)
    assert not_restored(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert refused(tmp_path / "b.zip")
    assert not_restored(tmp_path / "b.zip")


def test_what_is_refused_is_not_unpacked(tmp_path, monkeypatch):
    path = ARCHIVES["a bomb"](tmp_path / "b.zip")
    monkeypatch.setattr(ZipFile, "open", lambda *_: pytest.fail("it is unpacked"))
    assert "would unpack to 200,000,002 bytes" in refused(path)


def refused(path, error=NotVerified, read=verify):
    with pytest.raises(error) as wrong:
        read(path)
    said = str(wrong.value)
    assert "\n" not in said
    return said


def not_restored(path):
    return refused(path, backup.BackupRefused, partial(backup.restore, say=str))


def backed_up(path, line):
    """A backup whose first table has this line."""
    first, *others = backup.tables()
    content = line + b"\n"
    tables = {table.label: {"rows": 0, "sha256": "0" * 64} for table in others}
    tables[first.label] = {"rows": 1, "sha256": sha256(content).hexdigest()}
    manifest = {"format": backup.FORMAT, "version": backup.VERSION}
    manifest |= {"migrations": backup.applied(), "tables": tables, "pictures": {"files": 0}}
    return zipped(path, {MANIFEST: json.dumps(manifest), first.member: content})


@pytest.mark.parametrize("line", [b"{}", b"1", DEEP, b"\xff", b"[", b'["id"]\n"ab"', b"[[]]\n[{}]"])
def test_a_malformed_table_is_refused(tmp_path, line):
    assert not_restored(backed_up(tmp_path / "b.zip", line))


def test_zlib_is_what_damages(tmp_path):
    with pytest.raises(zlib.error), ZipFile(damaged(tmp_path / "b.zip")) as archive:
        archive.read(REPORT)

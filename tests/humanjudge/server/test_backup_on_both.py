"""A backup is the whole installation; what is restored is verified, or nothing is."""

import json
from hashlib import sha256
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import OperationalError

from humanjudge.server import backup
from humanjudge.server.backup import BackupRefused, restore, tables
from judge_eval.models import JudgeRating
from tests.helpers.scene import assert_sound, make_scene
from tests.makers import make_key, make_picture, seal_all, user_client
from voting.ballot.services import cast_vote, undo_last_vote
from voting.models import ApiKey, Entry, Item, Picture, Project
from voting.pictures.store import store, stored_path

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]


def quiet(_):
    pass


@pytest.fixture
def scene(png):
    scene = make_scene(pairs=4, voters=3)
    for voter, pair in [(0, 0), (0, 1), (1, 0), (2, 3), (2, 0)]:
        cast_vote(scene.ballot(voter, pair), "A" if pair else "B")
    seal_all(scene.project)
    undo_last_vote(scene.voters[2], scene.queue)
    seal_all(scene.project)
    make_key("read", project=scene.project)
    user_client("ann")
    scene.run.config = {"b": [1, 2.5, None, "ü \u2028"], "a": {"z": True}}
    scene.run.save()
    return scene


@pytest.fixture
def png():
    """A picture that is stored and named by a row."""
    picture = make_picture()
    with default_storage.open(stored_path(picture.png_sha256)) as file:
        return file.read()


@pytest.fixture
def written(scene, tmp_path):
    path = tmp_path / "backup"
    backup.backup(path, quiet)
    return path


def empty():
    call_command("flush", verbosity=0, interactive=False)


def everything():
    return {
        table.label: list(table.rows.values_list(*(field.attname for field in table.fields)))
        for table in tables()
    }


def test_what_is_restored_is_what_was_there(scene, written, png):
    before = everything()
    address = sha256(png).hexdigest()
    empty()
    for suffix in ("png", "webp"):
        default_storage.delete(stored_path(address, suffix))
    restore(written, quiet)
    assert everything() == before
    assert len(before["voting.entry"]) > 5
    assert_sound(Project.objects.get())
    assert written.stat().st_mode & 0o077 == 0
    with default_storage.open(stored_path(address)) as file:
        assert file.read() == png
    assert default_storage.exists(stored_path(address, "webp"))
    # New rows are numbered behind the old ones.
    last = Entry.objects.latest("pk").pk
    cast_vote(scene.ballot(1, 3), "A")
    assert Entry.objects.latest("pk").pk > last
    seal_all(scene.project)
    assert_sound(Project.objects.get())


def test_the_manifest_counts_and_names_everything(written):
    with ZipFile(written) as file:
        manifest = json.loads(file.read(backup.MANIFEST))
        assert set(manifest["tables"]) == {table.label for table in tables()}
        for label, said in manifest["tables"].items():
            data = file.read(f"tables/{label}.jsonl")
            assert sha256(data).hexdigest() == said["sha256"]
            assert data.count(b"\n") == said["rows"] + 1
        assert manifest["pictures"] == {"files": 1, "lost": 0}


def test_a_picture_that_is_lost_is_said_and_the_rest_is_kept(scene, tmp_path, png):
    default_storage.delete(stored_path(sha256(png).hexdigest()))
    said = []
    backup.backup(tmp_path / "b", said.append)
    assert [line for line in said if line.startswith("WARNING: the picture")]
    store(png)


def test_nothing_is_read_into_a_database_that_holds_something(written):
    before = everything()
    with pytest.raises(BackupRefused, match="the database is not empty: there are rows of"):
        restore(written, quiet)
    assert everything() == before


def changed(path, **members):
    """A copy with other members; the manifest says of the tables what is there now."""
    copy = path.with_name("changed")
    with ZipFile(path) as old, ZipFile(copy, "w", ZIP_DEFLATED) as new:
        for name in old.namelist():
            short = name.removeprefix("tables/").removesuffix(".jsonl")
            data = old.read(name)
            if name == backup.MANIFEST:
                data = members.get("manifest", lambda it: it)(data)
            elif short in members:
                data = members[short](data)
            new.writestr(name, data)
    return copy


def in_manifest(change):
    def changed(data):
        manifest = json.loads(data)
        change(manifest)
        return json.dumps(manifest).encode()

    return changed


WRONG = {
    "another row": (
        {"voting.project": lambda it: it.replace(b"Project", b"Another")},
        "manifest says",
    ),
    "another version": ({"manifest": in_manifest(lambda it: it.update(version=2))}, "can read"),
    "another product": ({"manifest": in_manifest(lambda it: it.pop("format"))}, "no manifest"),
    "other migrations": (
        {"manifest": in_manifest(lambda it: it["migrations"].append("a.0002"))},
        "another version made this backup",
    ),
    "other columns": ({"voting.item": lambda it: it.replace(b'"turn"', b'"tur"')}, "other columns"),
    "no row": ({"voting.voter": lambda it: it.split(b"\n")[0] + b"\n[1]\n"}, "voting.voter, rows"),
    "no JSON": ({"voting.voter": lambda it: it.split(b"\n")[0] + b"\nx\n"}, "voting.voter"),
    "pictures": ({"manifest": in_manifest(lambda it: it["pictures"].update(files=2))}, "2 were"),
}


@pytest.mark.parametrize("members,words", WRONG.values(), ids=WRONG)
def test_what_is_not_what_was_written_is_refused_and_nothing_is_there(written, members, words):
    wrong = changed(written, **members)
    empty()
    with pytest.raises(BackupRefused, match=words):
        restore(wrong, quiet)
    assert not Project.objects.exists()
    assert not Picture.objects.exists()
    assert not ApiKey.objects.exists()
    restore(written, quiet)


def truthful(path, table, change):
    """A backup whose manifest agrees with a table that was changed."""
    once = changed(path, **{table: change})
    with ZipFile(once) as file:
        digest = sha256(file.read(f"tables/{table}.jsonl")).hexdigest()
    told = in_manifest(lambda it: it["tables"][table].update(sha256=digest))
    return changed(path, **{table: change, "manifest": told})


def other_choice(data):
    """The rows of the ledger with the first vote for B made one for A."""
    head, *lines = data.decode().splitlines()
    column = json.loads(head).index("choice")
    rows = [json.loads(line) for line in lines]
    next(row for row in rows if row[column] == "B")[column] = "A"
    return "\n".join([head, *map(json.dumps, rows), ""]).encode()


def other_rating(data):
    head, *lines = data.decode().splitlines()
    column = json.loads(head).index("elo")
    rows = [json.loads(line) for line in lines]
    rows[0][column] += 1.0
    return "\n".join([head, *map(json.dumps, rows), ""]).encode()


@pytest.mark.parametrize(
    "table,change,words",
    [
        ("voting.entry", other_choice, "does not verify"),
        ("judge_eval.judgerating", other_rating, "are not what its ledger says"),
    ],
)
def test_a_ledger_or_a_figure_that_was_changed_is_refused(written, table, change, words):
    wrong = truthful(written, table, change)
    empty()
    with pytest.raises(BackupRefused, match=words):
        restore(wrong, quiet)
    assert not Item.objects.exists()
    assert not JudgeRating.objects.exists()


def test_a_file_that_is_cut_or_none_is_refused(written, tmp_path):
    empty()
    cut = tmp_path / "cut"
    data = written.read_bytes()
    for some in (data[: len(data) // 2], b"", b"PK", b"not a zip at all"):
        cut.write_bytes(some)
        with pytest.raises(BackupRefused, match="is damaged, or no backup"):
            restore(cut, quiet)
    # A bit in the middle of a table.
    broken = bytearray(data)
    broken[data.index(b"tables/voting.entry.jsonl") + 60] ^= 0xFF
    cut.write_bytes(broken)
    with pytest.raises(BackupRefused):
        restore(cut, quiet)
    assert not Project.objects.exists()


def test_a_database_that_cannot_be_read_is_said(scene, tmp_path, monkeypatch):
    def fails(*_):
        raise OperationalError("no such table: voting_entry")

    monkeypatch.setattr(backup, "_write_table", fails)
    with pytest.raises(BackupRefused, match="cannot be read: no such table"):
        backup.backup(tmp_path / "b", quiet)
    assert list(tmp_path.iterdir()) == []


def test_a_backup_that_fails_leaves_no_file(scene, tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "_write_pictures", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        backup.backup(tmp_path / "b", quiet)
    assert list(tmp_path.iterdir()) == []

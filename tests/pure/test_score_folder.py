"""A folder that is whole or as it was before, and never somebody else's."""

import json
from pathlib import Path

import pytest

from reports.report.score_files import MADE_BY, MANIFEST, FolderTaken, replacing


def write_report(folder, text="new"):
    (folder / "score_report.csv").write_text(text)
    (folder / "scores").mkdir()
    files = ["score_report.csv", "scores", MANIFEST]
    (folder / MANIFEST).write_text(json.dumps({"made_by": MADE_BY, "files": files}))


def contents(folder):
    return sorted(path.name for path in folder.iterdir())


def test_it_is_made_with_its_parents_and_nothing_else_is_left(tmp_path):
    place = tmp_path / "a" / "b"
    with replacing(place) as folder:
        write_report(folder)
        assert not place.exists()
    assert (place / "score_report.csv").read_text() == "new"
    assert contents(place.parent) == ["b"]
    manifest = json.loads((place / MANIFEST).read_text())
    assert manifest["files"] == ["score_report.csv", "scores", MANIFEST]


def test_an_empty_folder_and_an_older_report_are_replaced(tmp_path):
    for text in ("first", "second"):
        place = tmp_path / "out"
        place.mkdir(exist_ok=True)
        with replacing(place) as folder:
            write_report(folder, text)
        assert (place / "score_report.csv").read_text() == text
        assert contents(tmp_path) == ["out"]


def test_a_failure_leaves_what_was_there(tmp_path):
    place = tmp_path / "out"
    with replacing(place) as folder:
        write_report(folder, "old")
    with pytest.raises(FileNotFoundError), replacing(place) as folder:
        write_report(folder / "nowhere", "new")
    assert (place / "score_report.csv").read_text() == "old"
    assert contents(tmp_path) == ["out"]


def test_a_failure_leaves_nothing_where_nothing_was(tmp_path):
    with pytest.raises(RuntimeError), replacing(tmp_path / "out"):
        raise RuntimeError
    assert contents(tmp_path) == []


def foreign_folders(tmp_path):
    ours = tmp_path / "ours and more"
    with replacing(ours) as folder:
        write_report(folder)
    (ours / "notes.txt").write_text("mine")
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "thesis.doc").write_text("mine")
    pretending = tmp_path / "pretending"
    pretending.mkdir()
    (pretending / MANIFEST).write_text(json.dumps({"made_by": "another tool", "files": [MANIFEST]}))
    file = tmp_path / "file"
    file.write_text("mine")
    return [ours, plain, pretending, file]


@pytest.mark.parametrize("which", range(4))
def test_what_is_not_ours_is_refused_before_any_work(tmp_path, which):
    place = foreign_folders(tmp_path)[which]
    before = contents(tmp_path)
    with pytest.raises(FolderTaken, match="--force"), replacing(place):
        pytest.fail("it was given out")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("which", range(4))
def test_force_moves_it_aside_and_loses_nothing(tmp_path, which):
    place = foreign_folders(tmp_path)[which]
    before = set(tmp_path.iterdir())
    kept = place.read_text() if place.is_file() else contents(place)
    with replacing(place, force=True) as folder:
        write_report(folder)
    [aside] = set(tmp_path.iterdir()) - before
    assert aside.name.startswith(f"{place.name}.before-")
    assert kept == (aside.read_text() if aside.is_file() else contents(aside))
    assert contents(place) == sorted(["score_report.csv", "scores", MANIFEST])


def test_a_link_is_followed_not_replaced(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    with replacing(link) as folder:
        write_report(folder)
    assert link.is_symlink()
    assert "score_report.csv" in contents(real)


def test_it_may_be_the_present_folder_s_child(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with replacing(Path("out")) as folder:
        write_report(folder)
    assert contents(tmp_path) == ["out"]

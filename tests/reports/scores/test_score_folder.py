"""A folder of score files: whole or as it was before, never somebody else's, with names in it."""

import json
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.scores.config import is_safe
from reports.scores.files import (
    MANIFEST,
    PRODUCT_MARK,
    FolderTaken,
    file_name,
    judge_names,
    replacing,
)


def write_report(folder, text="new"):
    (folder / "score_report.csv").write_text(text)
    (folder / "scores").mkdir()
    files = ["score_report.csv", "scores", MANIFEST]
    (folder / MANIFEST).write_text(json.dumps({"made_by": PRODUCT_MARK, "files": files}))


def contents(folder):
    return sorted(path.name for path in folder.iterdir())


def test_it_is_made_with_its_parents_and_nothing_else_is_left(tmp_path):
    place = tmp_path / "a" / "b"
    with replacing(place) as folder:
        write_report(folder)
        assert not place.exists()
    assert (place / "score_report.csv").read_text() == "new"
    assert contents(place.parent) == ["b"]


def test_an_empty_folder_and_an_older_report_are_replaced(tmp_path):
    place = tmp_path / "out"
    place.mkdir()
    for text in ("first", "second"):
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


@pytest.fixture(params=["ours and more", "plain", "pretending", "a file"])
def foreign(request, tmp_path):
    """Something that is not ours, or not all of it."""
    place = tmp_path / request.param
    if request.param == "a file":
        place.write_text("mine")
        return place
    place.mkdir()
    if request.param == "ours and more":
        write_report(place)
    if request.param == "pretending":
        manifest = {"made_by": "another tool", "files": [MANIFEST]}
        (place / MANIFEST).write_text(json.dumps(manifest))
    else:
        (place / "notes.txt").write_text("mine")
    return place


def test_what_is_not_ours_is_refused_before_any_work(tmp_path, foreign):
    with pytest.raises(FolderTaken, match="--force"), replacing(foreign):
        pytest.fail("it was given out")
    assert contents(tmp_path) == [foreign.name]


def test_force_moves_it_aside_and_loses_nothing(tmp_path, foreign):
    place = foreign
    kept = place.read_text() if place.is_file() else contents(place)
    with replacing(place, force=True) as folder:
        write_report(folder)
    [aside] = set(tmp_path.iterdir()) - {place}
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


# --- names ---------------------------------------------------------------------------------------

HOSTILE = [
    *("../../etc/passwd", "..", ".", "", "/", "C:\\x", "a/b", "a\\b", "a\0b", ".hidden", "-rf"),
    *("\u202egpj.exe", "x" * 500, "ü" * 300, "<script>alert(1)</script>", "=cmd|' /C calc'!A0"),
    *("line\nbreak", "\ud800"),
]


def file_names(names):
    taken = set()
    return {name: file_name(name, taken) for name in names}


def insist_on_files(names):
    found = file_names(names)
    assert list(found) == names
    for file in found.values():
        assert file
        assert not file.startswith((".", "-"))
        assert PurePosixPath(file).name == PureWindowsPath(file).name == file
        assert file.isprintable()
        assert len(f"{file}_result.json".encode()) <= 255
    assert len({file.casefold() for file in found.values()}) == len(names)


def test_hostile_names_are_plain_files():
    insist_on_files(HOSTILE)


@given(st.lists(st.text(), unique=True, max_size=8))
def test_any_names_are_plain_files(names):
    insist_on_files(names)


def test_plain_names_stay_as_they_are():
    names = ["gpt-4.1", "longer-wins", "Llama_3", "modèle", "claude+tools"]
    assert list(file_names(names).values()) == names


def test_names_made_to_meet_are_told_apart():
    trap = file_names(["a/b"])["a/b"]
    insist_on_files(["a/b", trap, f"{trap}-2", f"{trap}-3", trap.upper()])


def test_judges_of_one_name_are_told_apart():
    names = {"11111111-a": "gpt", "22222222-b": "gpt", "33333333-c": "gpt (11111111)"}
    assert judge_names(names) == {
        "11111111-a": "gpt (11111111)",
        "22222222-b": "gpt (22222222)",
        "33333333-c": "gpt (11111111)-2",
    }


@given(st.dictionaries(st.uuids().map(str), st.text(max_size=3), max_size=6))
def test_every_judge_has_a_name_of_its_own(names):
    found = judge_names(names)
    assert list(found) == list(names)
    assert len({name.casefold() for name in found.values()}) == len(names)


def test_what_may_be_a_folder():
    assert all(map(is_safe, ["more_as", "f1 macro", "x"]))
    assert not any(map(is_safe, ["", ".", "..", "a/b", "a\\b", ".x", "x ", "x" * 200, 7]))

"""Names of judges as file names: none leaves its folder, and no two are one."""

from pathlib import PurePosixPath, PureWindowsPath

from hypothesis import given
from hypothesis import strategies as st

from reports.report.score_config import is_safe
from reports.report.score_files import file_name, judge_names

HOSTILE = [
    "../../etc/passwd",
    "..",
    ".",
    "",
    "/",
    "C:\\x",
    "a/b",
    "a\\b",
    "a\0b",
    ".hidden",
    "-rf",
    "\u202egpj.exe",
    "x" * 500,
    "ü" * 300,
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "line\nbreak",
    "\ud800",
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
    assert all(map(is_safe, ["more_as", "f1 (macro)".replace("(", "").replace(")", ""), "x"]))
    assert not any(map(is_safe, ["", ".", "..", "a/b", "a\\b", ".x", "x ", "x" * 200, 7]))

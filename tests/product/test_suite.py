"""The workers that tests run in: each test once, whatever dies, and what fails is shown."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite import Half, main

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
import os
import pytest
from tests.workers import Distribution

def pytest_configure(config):
    adopt = lambda number: os.environ.update(WORKER=str(number))
    group_of = lambda item: str(item.path)
    config.pluginmanager.register(Distribution(2, group_of=group_of, adopt=adopt))

@pytest.fixture(scope="session", autouse=True)
def whole_session():
    yield
    with open("ended", "a") as ended:
        print(os.environ["WORKER"], file=ended)

@pytest.fixture(scope="module")
def scene():
    with open("scenes", "a") as made:
        print("made", file=made)

@pytest.fixture(autouse=True)
def count(request):
    with open("begun", "a") as begun:
        print(request.node.name, file=begun)
"""


@pytest.fixture
def suite(tmp_path):
    """Run files of tests, by their names, in two workers; what was printed, and its code."""

    def run(*options, **files):
        (tmp_path / "conftest.py").write_text(CONFTEST)
        (tmp_path / "pytest.ini").write_text("[pytest]")
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text)
        plugins = [
            f"-pno:{name}" for name in ("django", "randomly", "schemathesis", "cacheprovider")
        ]
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *plugins, *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )

    return run


def lines(path):
    return path.read_text().split("\n")[:-1]


def test_each_test_runs_once_and_a_file_keeps_what_its_tests_share(suite, tmp_path):
    text = "def test_one(scene): pass\ndef test_two(scene): pass\n"
    done = suite(first=text, second=text, third=text)
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout
    assert sorted(lines(tmp_path / "begun")) == ["test_one"] * 3 + ["test_two"] * 3
    assert lines(tmp_path / "scenes") == ["made"] * 3
    assert sorted(lines(tmp_path / "ended")) == ["0", "1"]


def test_what_fails_is_shown_with_what_it_printed(suite):
    done = suite(
        good="def test_good(): pass\n",
        bad="def test_bad():\n    print('said before')\n    assert 1 + 1 == 3\n",
    )
    assert done.returncode == 1
    assert "assert (1 + 1) == 3" in done.stdout
    assert "said before" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


def test_a_test_that_kills_its_worker_has_failed_and_the_others_run(suite, tmp_path):
    text = "import os\ndef test_one(): pass\ndef test_two(): os._exit(3)\ndef test_three(): pass\n"
    done = suite(deadly=text, good="def test_good(): pass\n")
    assert done.returncode == 1
    assert "test_deadly.py::test_two" in done.stdout
    assert "the process of the test ended with 3" in done.stdout
    assert "1 error" in done.stdout
    assert "3 passed" in done.stdout
    assert sorted(lines(tmp_path / "begun")) == ["test_good", "test_one", "test_three", "test_two"]


def test_after_as_many_failures_as_are_asked_for_no_test_is_begun(suite, tmp_path):
    each = "@pytest.mark.parametrize('number', range(200))"
    many = f"import pytest\n{each}\ndef test_bad(number): assert not number + 1\n"
    done = suite("-x", many=many)
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout
    assert len(lines(tmp_path / "begun")) < 200
    assert lines(tmp_path / "ended")


def test_an_error_at_the_end_of_a_session_is_an_error(suite):
    fixture = "import pytest\n@pytest.fixture(scope='session')\ndef late():\n    yield\n    1 / 0\n"
    done = suite(late=f"{fixture}def test_late(late): pass\n")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout


def test_both_halves_say_how_far_they_are_and_what_failed_stands_last(tmp_path, monkeypatch, capfd):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p tests.plugin\npythonpath = .\n")
    (tmp_path / "test_bad.py").write_text("def test_bad():\n    assert 1 + 1 == 3\n")
    (tmp_path / "test_good.py").write_text("def test_good(): pass\n")
    plugins = ("-c", str(tmp_path / "pytest.ini"), "-pno:schemathesis", "-pno:cacheprovider")
    halves = [
        Half(name, "sqlite", 2, (str(tmp_path / f"test_{name}.py"),), plugins)
        for name in ("bad", "good")
    ]
    monkeypatch.setattr("tests.suite.HALVES", halves)
    file = tmp_path / "costs.json"
    assert main(["--costs", str(file)]) == 1
    shown = capfd.readouterr().out
    progress, told, logs = shown.partition("\nProcessor seconds\n")
    assert progress.count("FAILED") == 1
    assert "bad: 1 of 1 | good: 1 of 1 | 1 failed" in progress
    assert told
    good, bad, after = map(logs.index, ("== good ==", "== bad ==", "Failed: bad."))
    assert good < bad < logs.index("assert (1 + 1) == 3") < after
    last = logs.strip().splitlines()[-3:]
    assert "test_bad.py::test_bad (bad)" in last[0]
    phases = json.loads(file.read_text())["halves"]["bad"]
    assert phases["total"] > phases["collect"] > 0

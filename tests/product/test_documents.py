"""The pages to begin with, command by command, against a HumanJudge that `make run` has started."""

import re
import subprocess
import sys

import httpx
import pytest

from tests.process.documents import Terminal, commands, matches, text_of
from tests.process.up import ROOT, environment

pytestmark = [pytest.mark.process, pytest.mark.fault, pytest.mark.slow]

# Each with the judges of its study.
PAGES = {
    "first-study": ("judge-one", "judge-two", "longer-wins"),
    "quickstart-judges": ("judge-one", "judge-two", "always-pass", "always-flag", "random"),
    "quickstart-grandjury": (),
}
VOTE = "\n## 4. Vote"


@pytest.mark.parametrize("page", ["quickstart-judges", "quickstart-grandjury"])
def test_every_command_of_the_page_works_and_prints_what_it_says(page, up):
    text = text_of(page)
    assert VOTE in text
    (start, _), *before = commands(text.partition(VOTE)[0])
    assert start.splitlines()[-1] == "make run"
    plain = {
        name: value
        for name, value in environment(up.data, PORT=str(up.port)).items()
        if not name.startswith(("HUMANJUDGE_U", "GRANDJURY_"))
    }
    terminal = Terminal(up.folder, plain)
    for command, promised in before:
        follow(terminal, page, command, promised)
    if page == "quickstart-grandjury":
        # What the page asks a person to do.
        rows = [sys.executable, "-m", "tests.process.grandjury_rows", "vote_on_all"]
        subprocess.run([*rows, '["models-of-admin"]'], cwd=ROOT, env=plain, check=True)
    for command, promised in commands(text.partition(VOTE)[2]):
        follow(terminal, page, command, promised)
    terminal.end()


def test_a_reader_goes_from_page_to_page_with_what_make_run_has_installed(up):
    """One terminal, in the order in which the pages lead on to each other."""
    plain = environment(
        up.data,
        PORT=str(up.port),
        PYTHONPATH=str(ROOT / "tests" / "process" / "only_requirements"),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        GITHUB_STEP_SUMMARY="summary.md",
    )
    plain = {n: v for n, v in plain.items() if not n.startswith("HUMANJUDGE_U")}
    terminal = Terminal(up.folder, plain)
    read_first_study(terminal, up)
    read_gate(terminal, up.folder)
    read_improve_a_judge(terminal)
    terminal.end()


def read_first_study(terminal, up):
    terminal.run('export PATH="$PWD/.venv/bin:$PATH"')
    begin, _, rest = text_of("first-study").partition(VOTE)
    vote, _, rest = rest.partition("\n## 5. Read")
    for command, promised in commands(begin)[2:]:
        follow(terminal, "first-study", command, promised)
    for command, promised in commands(vote):
        follow(terminal, "first-study", command, promised)
    # The reader votes on the page, before any file of the study is made.
    vote_on_each(up, terminal.run("echo $run").strip())
    for command, promised in commands(rest):
        follow(terminal, "first-study", command, promised)


def read_gate(terminal, folder):
    text = text_of("gate")
    printed = "".join(terminal.run(command) for command, _ in commands(text))
    assert printed.count("gate|") >= 3, printed
    assert "judge:judge-three" in printed
    assert re.search(r"anchors\|\w{8}\|at\|\d+\|votes\|6\|people\|1\|items\|6\n", printed), printed
    assert re.search(r"\d (passed|failed)", printed), printed
    [step] = re.findall(r"run: \|\n((?: {10}.+\n)+)", text)
    assert "gate|" in terminal.run(f"{step.strip()} || test $? != 2")
    assert (folder / "gate.xml").read_text().startswith("<?xml")
    assert (folder / "summary.md").read_text().startswith("### Gate: ")


def read_improve_a_judge(terminal):
    printed = ""
    for command, promised in commands(text_of("improve-a-judge")):
        printed = terminal.run(command)
        assert promised is None or matches(printed, promised), f"{command}\n{printed}"
        if "--held-out" in command:
            (label, *figures), (used, *check) = (
                printed_line.split("\t") for printed_line in printed.splitlines()[-3:-1]
            )
            assert (label, figures[3]) == ("plain", "30")
            assert (used, check[3], check[6]) == ("strict", "30", "20")
            assert check[7] in {"keep", "drop", "wait"}
            assert printed.splitlines()[-1] == "held-out-looks|1"
    assert printed.splitlines()[0] == "tuning|ended|held-out-looks|1|in-use|plain"
    assert "100.0" in printed  # it answers the same when it is asked again


def follow(terminal, page, command, promised):
    printed = terminal.run(command)
    assert promised is None or matches(printed, promised), f"{command}\n{printed}"
    if "results" in command:
        assert all(judge in printed for judge in PAGES[page])
    if "verify" in command:
        assert re.fullmatch(r"verified\|\d+\|head\|\w+\|known\|0", printed.splitlines()[-1])


def vote_on_each(up, run):
    """Vote as the command line does, but in one process."""
    with httpx.Client(
        base_url=f"{up.url}/api/runs/{run}/judge-eval/",
        headers={"Authorization": f"Bearer {up.access()['cli_key']}"},
        timeout=60,
    ) as api:
        tasks = api.get("pending", params={"limit": 20, "verdicts": False}).json()["tasks"]
        for task in tasks:
            reply = api.post("vote", json={"task_id": task["id"], "winner": "A"})
            assert reply.status_code == 200, reply.text


def test_the_page_says_what_the_client_is_pinned_to():
    [pinned] = re.findall(r"grandjury==(\S+)", (ROOT / "requirements-dev.txt").read_text())
    assert f"grandjury=={pinned}" in text_of("quickstart-grandjury")
    assert f"`grandjury` (PyPI, {pinned})" in text_of("grandjury")

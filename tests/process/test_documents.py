"""The pages to begin with, command by command, against a HumanJudge that `make run` has started."""

import re
import subprocess
import sys

import httpx
import pytest

from tests.process.documents import Terminal, commands, matches, text_of
from tests.process.up import ROOT, environment

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(900)]

# Each with the judges of its study.
PAGES = {
    "first-study": ("judge-one", "judge-two", "longer-wins"),
    "quickstart-judges": ("judge-one", "judge-two", "always-pass", "always-flag", "random"),
    "quickstart-grandjury": (),
}
VOTE = "\n## 4. Vote"
# Twelve questions, for a person to vote on.
STUDY_OF_PEOPLE = """
cat >gated.json <<'END'
{"project": "Demo", "name": "Gated", "kind": "text", "models": ["model-a", "model-b"],
 "judges": ["judge-one", "judge-two", "longer-wins"],
 "prompts": ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]}
END
humanjudge judge-eval-create --config gated.json --wait | grep '^created' | cut -d'|' -f2
"""


@pytest.mark.parametrize("page", PAGES)
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


def test_a_judge_is_improved_as_the_page_says(up):
    plain = environment(up.data, PORT=str(up.port))
    plain = {n: v for n, v in plain.items() if not n.startswith("HUMANJUDGE_U")}
    terminal = Terminal(up.folder, plain)
    terminal.run('export PATH="$PWD/.venv/bin:$PATH"')
    printed = ""
    for command, promised in commands(text_of("improve-a-judge")):
        printed = terminal.run(command)
        assert promised is None or matches(printed, promised), f"{command}\n{printed}"
        if "--held-out" in command:
            label, *figures = printed.splitlines()[-2].split("\t")
            assert (label, figures[3]) == ("plain", "30")
            assert printed.splitlines()[-1] == "held-out-looks|1"
    assert printed.splitlines()[0] == "tuning|ended|held-out-looks|1"
    assert "100.0" in printed  # it answers the same when it is asked again
    terminal.end()


def follow(terminal, page, command, promised):
    printed = terminal.run(command)
    assert promised is None or matches(printed, promised), f"{command}\n{printed}"
    if "results" in command:
        assert all(judge in printed for judge in PAGES[page])
    if "verify" in command:
        assert re.fullmatch(r"verified\|\d+\|head\|\w+\|known\|0", printed.splitlines()[-1])


def test_every_command_of_the_gate_works(up, tmp_path):
    text = text_of("gate")
    plain = environment(up.data, GITHUB_STEP_SUMMARY="summary.md", PYTHONPATH=str(ROOT))
    plain = {name: value for name, value in plain.items() if not name.startswith("HUMANJUDGE_U")}
    plain["PATH"] = f"{up.folder}/.venv/bin:{plain['PATH']}"
    # A folder of its own: pytest would take the settings of this project.
    terminal = Terminal(tmp_path, plain)
    vote_on_each(up, terminal.run(STUDY_OF_PEOPLE).strip())
    printed = "".join(terminal.run(command) for command, _ in commands(text))
    assert printed.count("gate|") >= 3, printed
    assert "judge:judge-three" in printed
    assert re.search(r"anchors\|\w{8}\|at\|\d+\|votes\|12\|people\|1\|items\|12\n", printed)
    assert re.search(r"\d (passed|failed)", printed), printed
    [step] = re.findall(r"run: \|\n((?: {10}.+\n)+)", text)
    assert "gate|" in terminal.run(f"{step.strip()} || test $? != 2")
    assert (tmp_path / "gate.xml").read_text().startswith("<?xml")
    assert (tmp_path / "summary.md").read_text().startswith("### Gate: ")
    terminal.end()


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

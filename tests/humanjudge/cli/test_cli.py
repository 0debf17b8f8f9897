"""The command line against a running HumanJudge: what an agent types, and how each of it ends."""

import json
import re
import signal
import subprocess
import sys

import pytest

from tests.process.up import ROOT, environment, free_port, try_up
from tests.process.wheel import wheel_and_programs

pytestmark = [pytest.mark.process, pytest.mark.fault, pytest.mark.slow]

CONFIG = {
    "name": "Asked of nobody",
    "kind": "text",
    "models": ["silent-a", "silent-b"],
    "judges": ["longer-wins"],
    "prompts": ["Say hello."],
    "project": "Demo",
}
WITHOUT = ("HUMANJUDGE_URL", "HUMANJUDGE_API_KEY", "PYTHONPATH")


@pytest.fixture
def launcher():
    """The command as it is installed, in a folder whose name holds spaces."""
    return wheel_and_programs()[1] / "humanjudge"


class Shell:
    """Somebody's shell, in some folder, on the machine where the server runs."""

    def __init__(self, launcher, folder, data, **more):
        self.launcher, self.folder = launcher, folder
        plain = environment(data, **more)
        self.environment = {
            name: value for name, value in plain.items() if name in more or name not in WITHOUT
        }

    def start(self, *words, **options):
        return subprocess.Popen(
            [self.launcher, *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *words, given=None):
        return subprocess.run(
            [self.launcher, *map(str, words)],
            cwd=self.folder,
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def lines(self, *words, given=None):
        """What a command printed that did what it was told."""
        done = self.run(*words, given=given)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.splitlines()

    def refused(self, code, *words, given=None):
        """The one line of a command that ended with this code."""
        done = self.run(*words, given=given)
        assert (done.returncode, done.stdout) == (code, ""), done
        assert done.stderr.startswith("error|")
        assert done.stderr.count("\n") == 1
        return done.stderr.strip()


@pytest.fixture
def shell(launcher, up, tmp_path):
    # A folder of the same name as the package, where the command is called, changes nothing.
    (tmp_path / "humanjudge").mkdir()
    (tmp_path / "humanjudge" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    return Shell(launcher, tmp_path, up.data)


def created(lines):
    return re.fullmatch(r"created\|([0-9a-f]{8})", lines[0])[1]


def new_run(shell, *words):
    return created(shell.lines("judge-eval-create", "--kind", "text", "--wait", *words))


@pytest.fixture(scope="module")
def some_run(up, tmp_path_factory):
    """A run with tasks, for tests that leave it as it is."""
    launcher = wheel_and_programs()[1] / "humanjudge"
    return new_run(Shell(launcher, tmp_path_factory.mktemp("shell"), up.data))


# --- the whole pipeline, with no person and no network ------------------------------------------


def test_the_pipeline_runs_by_itself_and_its_results_hold_every_vote(shell):
    said = shell.lines("judge-eval-create", "--wait", "--kind", "svg", "--name", "Pipe")
    run = created(said)
    assert said[1:] == ["state|voting"]

    status = shell.lines("judge-eval-status", run)
    assert status[:3] == [f"run|{run}", "state|voting", "total|30|done|0|pending|30"]
    assert re.fullmatch(r"next-task\|[0-9a-f]{8}\|prompt:.{1,80}", status[3])
    judges = {line.partition("|")[0] for line in status[4:]}
    assert {"always-first", "random", "longer-wins"} <= judges
    for line in status[4:]:
        assert re.fullmatch(r"[\w-]+\|winner:(A|B|tie|both_bad|err)\|scores:\S+", line)

    assert shell.lines("judge-eval-vote", run, "auto", "--seed", "1") == ["voted|30|skipped|0"]
    rows = [line.split("\t") for line in shell.lines("judge-eval-results", run)[:-1]]
    assert {row[1] for row in rows} == judges
    assert rows[0][0] == "1"
    as_of = shell.lines("judge-eval-results", run)[-1]
    assert re.fullmatch(r"as-of-vote\|\d+\|newer\|\d+", as_of)
    assert all(int(row[5]) == 30 for row in rows)
    assert sum(int(row[2]) for row in rows) == pytest.approx(1000 * len(rows), abs=len(rows))
    overall = [float(row[6]) for row in rows]
    assert overall == sorted(overall, reverse=True)
    for _, _, _, rate, agree, total, *_ in rows:
        assert float(rate) == pytest.approx(100 * int(agree) / int(total), abs=0.05)

    done = shell.lines("judge-eval-status", run)
    assert done[2:4] == ["simulated|1", "total|30|done|30|pending|0"]
    assert shell.lines("judge-eval-vote", run, "auto", "--seed", "1") == ["voted|0|skipped|0"]


def within(value, low, high):
    """Tell whether a figure lies in its interval; what cannot be said is written as "-".

    Which judge has games, and enough of them, depends on the votes that were drawn.
    """
    return (low, high) == ("-", "-") or float(low) <= float(value) <= float(high)


def test_the_findings_say_how_sure_the_board_is(shell):
    run = new_run(shell, "--name", "Findings")
    shell.lines("judge-eval-vote", run, "auto", "--seed", "1")

    words, as_of, *rows = shell.lines("judge-eval-findings", run)
    assert words == "words|No judge was asked yet. Add judges: they answer on the votes you have."
    assert as_of == "as-of-vote|30|newer|0", "it waits for its own votes"
    rows = [line.split("\t") for line in rows]
    assert {row[0] for row in rows} >= {"always-first", "random", "longer-wins"}
    for _, *numbers, coverage, rating, low, high, ranks, ties in rows:
        assert re.fullmatch(r"-|\d+(-\d+)?", ranks)
        assert ties == "-"
        assert within(rating, low, high)
        assert within(*numbers[:3])
        assert within(*numbers[3:])
        assert 0 < float(coverage) <= 100
    whole = json.loads("\n".join(shell.lines("judge-eval-findings", run, "--json")))
    assert (whole["state"], whole["as_of"]["votes"]) == ("ready", 30)
    decided = shell.lines("judge-eval-findings", run, "--part", "ballot:decided")
    part = "Only votes and verdicts for A or B: "
    assert decided[0] == words.replace("|", f"|{part}", 1)
    assert "tag" in shell.refused(7, "judge-eval-findings", run, "--part", "colour:red")
    assert "nowhere" in shell.refused(5, "judge-eval-findings", run, "--part", "tag:nowhere")


# --- real votes ---------------------------------------------------------------------------------


def next_task(shell, run, *words):
    status = shell.lines("judge-eval-status", run, *words)
    found = [line.split("|")[1] for line in status if line.startswith("next-task|")]
    return found[0], status


def test_a_real_vote_on_one_task_and_what_was_seen_before_it(shell):
    run = new_run(shell)
    task, status = next_task(shell, run, "--blind")
    assert not any("|winner:" in line for line in status)
    assert shell.lines("judge-eval-vote", run, "A", "--task", task) == ["voted|1|skipped|0"]
    assert shell.lines("judge-eval-vote", run, "A", "--task", task) == ["voted|0|skipped|1"]
    said = shell.refused(6, "judge-eval-vote", run, "B", "--task", task)
    assert "A is recorded" in said

    seen, _ = next_task(shell, run)
    voted = shell.lines("judge-eval-vote", run, "B", "--task", seen)
    assert voted == ["voted|1|skipped|0|unblinded|1"]
    assert "People have voted" in shell.refused(6, "judge-eval-vote", run, "auto")
    results = json.loads("\n".join(shell.lines("judge-eval-results", run, "--json")))
    assert (results["votes"], results["unblinded"], results["simulated"]) == (1, 1, False)


# --- the life of a run --------------------------------------------------------------------------


def test_a_run_is_stopped_and_goes_on(shell):
    run = new_run(shell, "--name", "Stop | and go")
    assert shell.lines("stop", run) == [f"stopped|{run}"]
    assert "note|Stopped by hand." in shell.lines("judge-eval-status", run)
    assert "Voting has closed" in shell.refused(6, "judge-eval-vote", run, "auto")
    assert shell.lines("resume", run) == [f"resumed|{run}"]
    assert shell.refused(6, "resume", run).startswith("error|This run is ")
    [listed] = [line for line in shell.lines("list-runs") if f"|{run}|" in line]
    assert re.fullmatch(
        rf"run\|{run}\|\w+\|total\|30\|done\|0\|simulated\|0\|name:Stop and go", listed
    )
    assert len(shell.lines("list-runs", "--limit", "1")) == 1


def test_a_report_is_shared_and_not_any_more(shell, some_run):
    run = some_run
    [shared] = shell.lines("share", run, "--label", "press", "--days", "7")
    number, link = re.fullmatch(r"shared\|(\d+)\|(http://.+/r/[\w-]{43}/)", shared).groups()
    [listed] = shell.lines("list-shares", run)
    begins = link.rstrip("/")[-43:][:6]
    assert listed.startswith(f"share|{number}|live|views|0|expires|")
    assert listed.endswith(f"|token:{begins}|label:press")
    assert "|revoked|" in shell.lines("revoke-share", number, run)[0]
    assert "no link" in shell.refused(5, "revoke-share", "999999", run)
    assert "and not both" in shell.refused(2, "share")


def test_a_config_is_drafted_started_and_given_up(shell, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    run = created(shell.lines("judge-eval-create", "--config", "config.json", "--draft"))
    assert "state|draft" in shell.lines("judge-eval-status", run)
    assert shell.lines("start", run) == [f"started|{run}"]
    assert shell.lines("stop", run) == [f"stopped|{run}"]
    assert re.fullmatch(r"error\|.*start or resume it first.*", shell.refused(6, "retry", run))


def test_waiting_ends_when_the_run_is_stopped_or_the_time_is_over(shell):
    config = json.dumps(CONFIG | {"name": "Waited for"})
    done = shell.run("judge-eval-create", "--config", "-", "--wait", "--timeout", "0", given=config)
    run = created(done.stdout.splitlines())
    assert done.returncode == 8
    assert done.stderr == f"error|{run} is still at work; it goes on\n"
    shell.lines("stop", run)

    waiting = shell.start("judge-eval-create", "--config", "config.json", "--wait")
    with waiting:
        assert waiting.wait(60) == 2
        assert waiting.stderr.read().startswith("error|cannot read config.json")


def begun(shell, tmp_path):
    """A command that waits for a run which will not get anywhere, and the run."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    waiting = shell.start("judge-eval-create", "--config", "config.json", "--wait")
    return waiting, created([waiting.stdout.readline().strip()])


def test_a_run_that_is_stopped_while_it_is_waited_for_is_a_failure(shell, tmp_path):
    waiting, run = begun(shell, tmp_path)
    with waiting:
        shell.lines("stop", run)
        assert waiting.wait(60) == 1
        assert waiting.stdout.read() == "state|stopped\n"
        assert waiting.stderr.read() == "error|stopped: Stopped by hand.\n"


def test_an_interrupted_wait_says_so_and_the_run_goes_on(shell, tmp_path):
    waiting, run = begun(shell, tmp_path)
    with waiting:
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == 130
        assert waiting.stderr.read().strip() == "error|interrupted"
    assert shell.lines("stop", run) == [f"stopped|{run}"]


# --- files --------------------------------------------------------------------------------------


TABLE = """item,question,one,two,who,better
1,"Say, hello",Hello,Hi,ann,A
2,Say goodbye,Bye,Goodbye,ann,B
"""
MAPPING = {
    "pair": "item",
    "prompt": "question",
    "output_a": "one",
    "output_b": "two",
    "generator_a": {"value": "ada"},
    "generator_b": {"value": "bob"},
    "voter": "who",
    "vote": "better",
}


def test_a_table_is_imported_once_and_taken_out_again(shell, tmp_path):
    (tmp_path / "a table.csv").write_text(TABLE)
    (tmp_path / "mapping.json").write_text(json.dumps(MAPPING))
    words = ("import", "a table.csv", "--mapping", "mapping.json")
    [line] = shell.lines(*words, "--project", "Demo")
    found = re.fullmatch(r"imported\|(\w{8})\|pairs\|2\|judges\|0\|verdicts\|0\|.*votes\|2", line)
    run = found[1]
    assert any(line.endswith("|name:a table") for line in shell.lines("list-runs"))
    again = shell.lines(*words, "--run", run)
    assert again[0].startswith(f"imported|{run}|pairs|0|")

    assert re.fullmatch(
        r"exported\|run\.jsonl\|bytes\|\d+", shell.lines("export", run, "--out", "run.jsonl")[0]
    )
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == len(shell.lines("export", run))
    assert json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])["type"] == "header"
    # The columns, and a row for each vote.
    assert len(shell.lines("export", run, "--format", "csv")) == 1 + 2
    assert not list(tmp_path.glob("*.part"))


def test_rows_that_are_wrong_are_named_and_may_be_left_out(shell, tmp_path):
    (tmp_path / "rows.csv").write_text(TABLE + "3,Say what,Yes,No,ann,perhaps\n")
    (tmp_path / "mapping.json").write_text(json.dumps(MAPPING))
    words = ("import", "rows.csv", "--mapping", "mapping.json", "--name", "Wrong rows")
    words += ("--project", "Demo")
    said = shell.refused(7, *words)
    assert re.search(r"error\|.*nothing was imported: rows\.csv:4: ", said)
    lines = shell.lines(*words, "--skip-errors")
    assert re.fullmatch(r"imported\|\w{8}\|pairs\|2\|.*", lines[0])
    assert lines[1].startswith("error|rows.csv|4|")


def test_files_that_cannot_be_sent_are_refused(shell, launcher, up, tmp_path):
    (tmp_path / "rows.csv").write_text(TABLE)
    (tmp_path / "mapping.json").write_text("{")
    assert "cannot read none.csv" in shell.refused(2, "import", "none.csv")
    assert "not JSON" in shell.refused(7, "import", "rows.csv", "--mapping", "mapping.json")
    assert "Missing argument" in shell.refused(2, "import")
    assert "there is no run" in shell.refused(5, "import", "rows.csv", "--run", "00000000")
    assert "there is no run" in shell.refused(5, "export", "00000000", "--out", "x.jsonl")
    assert not (tmp_path / "x.jsonl").exists()
    (tmp_path / "large.csv").write_text("item\n" + "x" * 3_000_000)
    stranger = Shell(launcher, tmp_path, up.data, HUMANJUDGE_API_KEY="hj_00000000_x")
    assert stranger.refused(4, "import", "large.csv")
    voter = Shell(launcher, tmp_path, up.data, HUMANJUDGE_API_KEY=up.access()["api_key"])
    assert "lacks the scope 'manage'" in voter.refused(4, "import", "large.csv")
    with (tmp_path / "large.csv").open("wb") as large:
        large.truncate(300 * 2**20)
    assert "at most 258 MB" in shell.refused(7, "import", "large.csv")


def test_a_ledger_is_verified_without_a_server(shell, up, tmp_path):
    run = new_run(shell)
    ledger = tmp_path / "the ledger.jsonl"
    [listed] = json.loads("\n".join(shell.lines("list-runs", "--limit", "1", "--json")))
    assert listed["id"].startswith(run)
    export_ledger(up, listed["project_id"], ledger)
    by_http = tmp_path / "by_http.jsonl"
    shell.lines("export", run, "--format", "ledger", "--out", by_http)
    assert by_http.read_text() == ledger.read_text()
    alone = Shell(shell.launcher, tmp_path, tmp_path / "nothing here")
    [line] = alone.lines("verify", ledger)
    found = re.fullmatch(r"verified\|(\d+)\|head\|([0-9a-f]{64})\|known\|0", line)
    assert int(found[1]) > 0
    assert alone.lines("verify", ledger, "--head", found[2])[0].endswith("|known|1")
    cut = tmp_path / "cut.jsonl"
    cut.write_text("\n".join(ledger.read_text().splitlines()[:-1]))
    assert "its tail was cut" in alone.refused(1, "verify", cut, "--head", found[2])
    assert "not an entry" in alone.refused(1, "verify", spoiled(ledger, tmp_path))
    assert "No such file" in alone.refused(2, "verify", tmp_path / "none")


def spoiled(ledger, folder):
    file = folder / "spoiled.jsonl"
    file.write_text(ledger.read_text().splitlines()[0] + "\n{}\n")
    return file


def export_ledger(up, project, file):
    subprocess.run(
        [sys.executable, "manage.py", "export_ledger", project, "--out", file],
        cwd=ROOT,
        env=environment(up.data),
        check=True,
        capture_output=True,
    )


# --- what goes wrong ----------------------------------------------------------------------------


def test_every_command_prints_json_when_asked(shell):
    run = new_run(shell)
    for words in (
        ["judge-eval-status", run],
        ["judge-eval-vote", run, "A", "--limit", "1"],
        ["judge-eval-results", run],
        ["list-runs"],
        ["stop", run],
        ["resume", run],
    ):
        assert json.loads("\n".join(shell.lines(*words, "--json")))


def test_each_kind_of_failure_has_its_exit_code_and_one_line(
    shell, some_run, launcher, up, tmp_path
):
    missing, run = "00000000", some_run
    assert "there is no run" in shell.refused(5, "judge-eval-status", missing)
    assert "Missing argument" in shell.refused(2, "judge-eval-vote")
    assert "No such option" in shell.refused(2, "list-runs", "--everything")
    assert "'C' must be one of A, B" in shell.refused(7, "judge-eval-vote", run, "C")
    assert "has a CHOICE" in shell.refused(2, "judge-eval-vote", run, "--task", missing)
    assert "this run has no task" in shell.refused(
        5, "judge-eval-vote", run, "A", "--task", missing
    )
    config = json.dumps(CONFIG | {"models": [{"id": "a"}, {"id": ""}], "judges": []})
    said = shell.refused(7, "judge-eval-create", "--config", "-", given=config)
    assert said == "error|models[1].id: is empty; judges: must have at least 1, has 0"
    twice = '{"name": "a", "name": "b"}'
    assert "is given twice" in shell.refused(7, "judge-eval-create", "--config", "-", given=twice)

    access, url = up.access(), f"http://127.0.0.1:{up.port}"
    wrong = Shell(launcher, tmp_path, up.data, HUMANJUDGE_API_KEY="hj_00000000_x")
    assert wrong.refused(4, "list-runs")
    voter = Shell(launcher, tmp_path, up.data, HUMANJUDGE_API_KEY=access["api_key"])
    assert "lacks the scope 'manage'" in voter.refused(4, "judge-eval-create")
    silent = f"http://127.0.0.1:{free_port()}"
    nobody = Shell(
        launcher, tmp_path, up.data, HUMANJUDGE_URL=silent, HUMANJUDGE_API_KEY=access["cli_key"]
    )
    assert nobody.refused(3, "list-runs").startswith(f"error|cannot reach {silent}: ")
    elsewhere = Shell(launcher, tmp_path, up.data, HUMANJUDGE_URL=silent)
    assert "HUMANJUDGE_API_KEY must be set too" in elsewhere.refused(2, "list-runs")
    given = Shell(
        launcher,
        tmp_path,
        tmp_path / "no data",
        HUMANJUDGE_URL=f"{url}/",
        HUMANJUDGE_API_KEY=access["cli_key"],
    )
    assert given.lines("list-runs")
    lost = Shell(launcher, tmp_path, tmp_path / "no data")
    assert "humanjudge up starts a server, or set HUMANJUDGE_URL" in lost.refused(2, "list-runs")


def test_a_second_start_is_refused_in_one_line(up):
    same_data = try_up(up.data, free_port())
    assert same_data.returncode == 1
    running = rf"humanjudge: already running on {re.escape(str(up.data))} \(process \d+\)\n"
    assert re.fullmatch(running, same_data.stderr)
    same_port = try_up(up.data.with_name("other"), up.port)
    assert same_port.returncode == 1
    assert same_port.stderr.startswith(f"humanjudge: cannot listen on 127.0.0.1 port {up.port}")
    assert same_port.stderr.count("\n") == 1
    assert not up.data.with_name("other").joinpath("humanjudge.sqlite3").exists()
    assert up.healthy()


@pytest.mark.usefixtures("some_run")
def test_a_reader_who_has_enough_ends_it_quietly(shell):
    reading = shell.start("list-runs", "--json")
    with reading:
        reading.stdout.close()
        assert reading.wait(60) == 141
        assert reading.stderr.read() == ""


def test_the_address_and_the_key_are_for_the_owners_eyes(up):
    for name in ("url", "access.json"):
        assert (up.data / name).stat().st_mode & 0o077 == 0, name
    assert (up.data / "url").read_text() == f"{up.url}\n"


def test_help_needs_no_server(launcher, tmp_path):
    alone = Shell(launcher, tmp_path, tmp_path / "nothing here")
    helped = "\n".join(alone.lines("--help"))
    for command in ("judge-eval-create", "list-runs", "import", "export", "verify", "retry"):
        assert command in helped

"""The gate on the command line, against a server, and as a pytest fixture."""

import json
import os
import re
import subprocess
import sys

import pytest

from humanjudge.cli.main import main
from judge_eval.board.model import RunFindings
from judge_eval.models import Findings, Judge
from tests.helpers.run_findings import compute, voted_run
from tests.judge_eval.gate.test_gate import head_of
from tests.makers import make_key, make_vote, make_voter, pairs_of, seal_all
from tests.process.up import ROOT
from voting.models import Queue

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def cli(live_server, monkeypatch, capsys):
    monkeypatch.setenv("HUMANJUDGE_URL", live_server.url)
    monkeypatch.setenv("HUMANJUDGE_API_KEY", make_key("read")[1])

    def run(*words):
        code = main(["gate", *map(str, words)])
        return (code, *capsys.readouterr())

    return run


AGREEMENT = ("--min-agreement", "0.7", "--timeout", "1")


def test_the_exit_code_says_how_it_ends(cli):
    run = voted_run()
    code, out, err = cli(run.pk, "--judge", "near-judge", *AGREEMENT)
    assert (code, err) == (0, "")
    # In which order prompts enter, and so what the interval has been, is drawn for each run.
    assert re.sub(r"\([78]\d\.\d to 9\d\.\d\)", "(low to high)", out).splitlines() == [
        "gate|passed|judge:near-judge",
        f"anchors|{str(run.pk)[:8]}|at|{head_of(run)}|votes|120|people|3|items|40",
        "min-agreement|passed|overall agreement 95.0 % (low to high) must be above 70 %",
        "note|Best of 2 wordings tried on these votes.",
    ]
    assert cli(run.pk, "--judge", "contrary-judge", *AGREEMENT)[0] == 1
    assert cli(run.pk, "--judge", "near-judge", "--min-agreement", "0.9")[0] == 3
    assert cli(run.pk, "--judge", "nobody", *AGREEMENT)[0] == 2
    assert cli(run.pk, "--judge", "near-judge")[0] == 2
    assert cli(run.pk, "--judge", "near-judge", "--min-agreement", "80")[0] == 2
    assert cli("ffffffff", "--judge", "near-judge", *AGREEMENT)[0] == 2
    code, out, err = cli(voted_run(computed=False).pk, "--judge", "near-judge", *AGREEMENT)
    assert (code, out) == (2, "")
    assert "are the workers running?" in err
    Queue.objects.filter(pk=run.queue_id).update(is_simulated=True)
    code, out, err = cli(run.pk, "--judge", "near-judge", *AGREEMENT)
    assert (code, out, "simulated" in err) == (2, "", True)


def test_the_same_votes_and_answers_are_the_same_bytes(cli, tmp_path):
    run = voted_run()

    def files(name, *more):
        junit, markdown = tmp_path / f"{name}.xml", tmp_path / f"{name}.md"
        written = ("--junit", junit, "--markdown", markdown, "--json")
        conditions = (*AGREEMENT, "--beats-floor", "--like-people", *more)
        code, out, _ = cli(run.pk, "--judge", "near-judge", *conditions, *written)
        return code, out, junit.read_bytes(), markdown.read_bytes()

    first = files("first")
    assert files("second") == first
    at_head = RunFindings.read(compute(run, f"at:{head_of(run)}").data)
    frozen = files("frozen", "--at", head_of(run))
    judge = next(judge for judge in at_head.judges if judge.name == "near-judge")
    # Where the votes are fixed, so is the number of looks.
    lows = [json.loads(out)["checks"][0]["low"] for _, out, *_ in (first, frozen)]
    assert lows == pytest.approx([judge.always_low, judge.overall.low], abs=1e-6)
    assert lows[0] != lows[1]
    assert b"Best of 2 wordings tried" in first[2]
    assert b"Best of 2 wordings tried" in first[3]
    pair = pairs_of(run)[0]
    pair.votes_wanted = 9
    pair.save()
    at = head_of(run)
    make_vote(make_voter(run), pair, "A")
    seal_all(run.queue.project)
    compute(run, f"at:{at}")
    assert files("later", "--at", at) == frozen


def test_another_process_with_another_order_of_sets_writes_the_same_bytes(live_server, tmp_path):
    run = voted_run()
    words = ["gate", run.pk, "--judge", "near-judge", *AGREEMENT, "--beats-floor", "--like-people"]

    def written(seed, *more):
        junit, markdown = tmp_path / f"{seed}.xml", tmp_path / f"{seed}.md"
        command = ["-m", "humanjudge", *words, "--junit", junit, "--markdown", markdown, *more]
        about = {"HUMANJUDGE_URL": live_server.url, "HUMANJUDGE_API_KEY": make_key("read")[1]}
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=ROOT,
            capture_output=True,
            env={**os.environ, **about, "PYTHONHASHSEED": seed},
            timeout=120,
        )
        return done.returncode, done.stdout, junit.read_bytes(), markdown.read_bytes()

    first = [written("1"), written("1", "--json")]
    # What is kept is computed anew, as after a restart.
    Findings.objects.all().delete()
    compute(run)
    assert [written("2"), written("2", "--json")] == first


def test_asking_ends_with_2_where_a_judge_did_not_answer(cli, monkeypatch):
    run = voted_run()
    monkeypatch.setenv("HUMANJUDGE_API_KEY", make_key("read", "manage")[1])
    assert cli(run.pk, "--judge", "near-judge", "--ask", *AGREEMENT)[0] == 0
    judge = Judge.objects.get(run=run, name="near-judge")
    judge.verdicts.filter(item__position__lt=10).update(
        state="failed", winner="", score_a=None, score_b=None, error="no answer"
    )
    compute(run)
    # Items without votes are no anchors.
    run.queue.items.filter(position__lt=2).update(votes=0)
    code, out, err = cli(run.pk, "--judge", "near-judge", "--ask", *AGREEMENT)
    assert (code, out) == (2, "")
    assert "no verdict on 8 items" in err


def test_a_server_that_is_not_there_is_no_judge_that_failed(cli, monkeypatch):
    monkeypatch.setenv("HUMANJUDGE_URL", "http://127.0.0.1:9")
    assert cli("51b04665", "--judge", "x", *AGREEMENT)[0] == 2


def test_a_pytest_fixture_fails_with_the_words_of_the_gate(cli, tmp_path):
    run = voted_run()
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["humanjudge.gate"]\n')
    (tmp_path / "test_judge.py").write_text(
        "def test_near(gate):\n"
        f"    assert gate('{run.pk}', 'near-judge', min_agreement=0.7)['code'] == 0\n"
        "def test_contrary(gate):\n"
        f"    gate('{run.pk}', 'contrary-judge', min_agreement=0.8, like_people=True)\n"
        "def test_nobody(gate):\n"
        f"    gate('{run.pk}', 'nobody', min_agreement=0.8)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."]
    done = subprocess.run(
        [*command, "-c", "/dev/null", "-p", "no:django"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "min-agreement|failed|overall agreement" in done.stdout
    assert "the gate could not be asked: judge: not on the board (near-judge" in done.stdout

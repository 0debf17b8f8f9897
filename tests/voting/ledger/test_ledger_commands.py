"""The commands of the ledger, as they are typed."""

import json
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from judge_eval.models import Board
from tests.makers import make_project, make_run, make_vote, make_voter, pairs_of, seal_all

pytestmark = pytest.mark.django_db


def a_voted_run():
    run = make_run(pairs=2)
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    return run


def said(*command):
    out = StringIO()
    call_command(*command, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_replay_says_of_every_project_that_it_is_equal():
    run, other = a_voted_run(), a_voted_run()
    out = said("replay", "--check")
    for each in (run, other):
        project = each.queue.project
        assert f"{project.pk} {project.name}: 3 entries, 0 differences, equal" in out


def test_replay_check_fails_on_a_difference_and_changes_nothing():
    run = a_voted_run()
    Board.objects.filter(run=run).update(votes=9)
    with pytest.raises(CommandError, match="1 values are not what the ledger says"):
        said("replay", "--check")
    assert Board.objects.get(run=run).votes == 9


def test_replay_corrects():
    run = a_voted_run()
    Board.objects.filter(run=run).update(votes=9)
    out = said("replay", "--project", str(run.queue.project_id))
    assert "stored 9, replayed 1" in out
    assert "1 differences, corrected" in out
    assert "equal" in said("replay", "--check")


def test_replay_of_one_project_leaves_the_others():
    run, other = a_voted_run(), a_voted_run()
    Board.objects.filter(run=other).update(votes=9)
    out = said("replay", "--check", "--project", str(run.queue.project_id))
    assert str(other.queue.project_id) not in out


@pytest.mark.parametrize("command", [("replay", "--project"), ("export_ledger",)])
def test_a_project_that_is_not_there_is_said(command):
    with pytest.raises(CommandError, match="there is no project"):
        said(*command, str(uuid4()))


def test_an_exported_file_verifies(tmp_path, capsys):
    run = a_voted_run()
    file = tmp_path / "ledger.jsonl"
    said("export_ledger", str(run.queue.project_id), "--out", str(file))
    said("verify_ledger", str(file), "--head", run.queue.project.ledger_head)
    assert "verified: 3 entries" in capsys.readouterr().out


def test_an_export_without_a_file_is_written_out(capsys):
    project = make_project()
    said("export_ledger", str(project.pk))
    assert json.loads(capsys.readouterr().out) == {"ledger": str(project.pk), "schema": 1}


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(CommandError, match="cannot write"):
        said("export_ledger", str(make_project().pk), "--out", str(tmp_path / "no" / "folder"))


def test_a_broken_export_fails(tmp_path, capsys):
    run = a_voted_run()
    file = tmp_path / "ledger.jsonl"
    said("export_ledger", str(run.queue.project_id), "--out", str(file))
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]))
    assert "verified: 2 entries" in said_by_verify(file, capsys)
    with pytest.raises(CommandError, match="does not verify") as error:
        said("verify_ledger", str(file), "--head", run.queue.project.ledger_head)
    assert error.value.returncode == 1
    assert "its tail was cut" in capsys.readouterr().err


def said_by_verify(file, capsys):
    said("verify_ledger", str(file))
    return capsys.readouterr().out


@pytest.mark.django_db(databases=[])
def test_verification_asks_no_database(tmp_path, capsys):
    file = tmp_path / "ledger.jsonl"
    file.write_text(f'{{"ledger":"{uuid4()}","schema":1}}\n')
    assert "verified: 0 entries" in said_by_verify(file, capsys)

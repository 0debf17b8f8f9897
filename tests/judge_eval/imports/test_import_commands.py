"""`import_run` and `export_run`: the same by commands, for files that are too large to post."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from judge_eval.exports.files import FORMATS, in_blocks
from judge_eval.judging.baselines import names_asked, names_for
from judge_eval.models import Run
from tests.helpers.bundles import empty_the_instance, facts_of
from tests.helpers.imports import imported, pair, verdict, vote
from voting.models import Project

pytestmark = pytest.mark.django_db


@pytest.fixture
def write(tmp_path):
    def to(name, *records):
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
        return str(path)

    return to


def command(*arguments, **options):
    out, complaints = io.StringIO(), io.StringIO()
    call_command(*arguments, stdout=out, stderr=complaints, **options)
    return out.getvalue().splitlines(), complaints.getvalue().splitlines()


def test_files_become_a_run_in_a_project_that_is_made_if_need_be(write):
    files = write("a.jsonl", pair(1), verdict(1, "j", "A")), write("b.jsonl", vote(1, "ann", "B"))
    out, complaints = command("import_run", *files, "--project", "New", "--votes-per-pair", "2")
    run = Run.objects.select_related("queue__project").get()
    assert (run.name, run.queue.project.name, run.queue.votes_per_item) == ("a", "New", 2)
    assert complaints == []
    floor = ", ".join(names_asked(names_for("text"), "AB"))
    assert out == [
        "pairs: 1 new, 0 known",
        "judges: 1 new, 0 known",
        "verdicts: 1 new, 0 known",
        "voters: 1 new, 0 known",
        "votes: 1 new, 0 known",
        "3 records: 3 used, 0 left out",
        "1 pair came with outputs",
        f"Baselines are on the board, as its floor: {floor}.",
        f"run {run.pk}",
    ]


def test_single_items_with_what_is_asked_of_them(write):
    item = {"item": "i1", "output": "x"}
    answers = [
        item | {"voter": who, "labels": {"toxic": toxic, "looks": "good"}}
        for who, toxic in (("ann", "yes"), ("bob", "no"))
    ]
    stated = ["--vote-kind", "category", "--ballot", "yes,no", "--task", "toxic"]
    files = write("a.jsonl", *answers), "--project", "New", *stated, "--epsilon", "0.15"
    out, complaints = command("import_run", *files)
    run = Run.objects.select_related("queue").get()
    assert (run.queue.kind, run.queue.ballot, run.epsilon) == ("category", ["yes", "no"], 0.15)
    assert complaints == []
    assert out[:2] == ["items: 1 new, 0 known", "judges: 0 new, 0 known"]
    flagged = item | {"voter": "ann", "vote": "flag", "category": "rude"}
    stated = ["--graded", "--flag-categories", "rude,wrong"]
    command("import_run", write("b.jsonl", flagged), "--project", "New", *stated)
    options = {"graded": True, "flag_categories": ["rude", "wrong"]}
    assert Run.objects.get(name="b").queue.options == options


def test_what_is_wrong_is_told_and_nothing_is_made(write):
    path = write("a.jsonl", vote(1, "ann", "left"))
    complaints = io.StringIO()
    with pytest.raises(CommandError, match="1 error; nothing was imported"):
        call_command("import_run", path, "--project", "New", stderr=complaints)
    assert "a.jsonl:1: vote: 'left' is not one of" in complaints.getvalue()
    assert not Project.objects.exists()


def test_a_run_is_added_to_by_the_beginning_of_its_number(write):
    run = imported(pair(1))
    path = write("v.jsonl", vote(1, "ann", "A"), vote(1, "bob", "left"))
    out, complaints = command("import_run", path, "--run", str(run.pk)[:8], "--skip-errors")
    assert "votes: 1 new, 0 known" in out
    assert "2 records: 1 used, 1 left out" in out
    assert complaints == ["v.jsonl:2: vote: 'left' is not one of A, B, tie, both_bad"]


def test_a_mapping_comes_from_a_file(write, tmp_path):
    mapping = write("m.json", {"pair": "n", "voter": {"value": "ann"}, "vote": "said"})
    path = write("v.jsonl", {"n": 7, "said": "A"})
    command("import_run", path, "--project", "New", "--mapping", mapping, "--ballot", "A,B")
    assert Run.objects.get().queue.ballot == ["A", "B"]


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["nowhere.jsonl", "--project", "P"], "No such file"),
        (["FILE"], "--project: say where"),
        (["FILE", "--run", "00000000"], "there is no run"),
        (["FILE", "--project", "P", "--ballot", "A"], "ballot: must have at least 2, has 1"),
        (["FILE", "--project", "P", "--open-for-voting"], "has no outputs"),
        (["FILE", "--project", "P", "--mapping", "FILE"], "nothing was imported"),
    ],
)
def test_what_cannot_be_is_one_line(write, arguments, why):
    path = write("a.jsonl", {"voter": "ann"} if "--mapping" in arguments else {"pair": "p"})
    with pytest.raises(CommandError, match=why):
        call_command("import_run", *[path if a == "FILE" else a for a in arguments])
    assert not Project.objects.exists()


def test_a_run_goes_out_and_comes_in_again(tmp_path):
    run = imported(pair(1), verdict(1, "j", "A"), vote(1, "ann", "A"), name="Round")
    before, path = facts_of(run), tmp_path / "run.jsonl"
    command("export_run", str(run.pk)[:8], "--out", str(path))
    empty_the_instance()
    out, _ = command("import_run", str(path))
    assert facts_of(Run.objects.select_related("queue").get()) == before
    assert out[-1] == f"run {run.pk}"
    out, _ = command("import_run", str(path))
    assert "It is here already; nothing was changed." in out
    with pytest.raises(CommandError, match="a bundle comes alone"):
        command("import_run", str(path), str(path))


def test_a_project_goes_out_by_its_name(tmp_path, capsys):
    run = imported(pair(1))
    call_command("export_run", "--project", run.queue.project.name)
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[0])["runs"] == [str(run.pk)]
    assert json.loads(lines[-1])["type"] == "end"


def test_a_run_goes_out_in_every_format_of_its_page(tmp_path):
    run, path = imported(pair(1), vote(1, "ann", "A")), tmp_path / "run"
    for name, chosen in FORMATS.items():
        command("export_run", str(run.pk), "--format", name, "--out", str(path))
        assert path.read_bytes() == b"".join(in_blocks(chosen.pieces(run)))
    [*_, last] = map(json.loads, path.read_text().splitlines())
    assert (name, last["entry"]["kind"]) == ("ledger", "parameters")


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["00000000"], "there is no run"),
        (["--project", "nowhere"], "there is no project"),
        (["--project", "P", "--format", "csv"], "a project is written as jsonl"),
        (["RUN", "--out", "/nowhere/at/all"], "cannot write"),
    ],
)
def test_what_cannot_be_exported_is_one_line(arguments, why):
    run = imported(pair(1))
    with pytest.raises(CommandError, match=why):
        command("export_run", *[str(run.pk) if a == "RUN" else a for a in arguments])

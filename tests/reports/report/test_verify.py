"""`humanjudge verify` computes every figure of a report anew, and finds what was changed."""

import io
import json
import re
import subprocess
import sys
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client

from judge_eval.models import Run, Verdict
from judge_eval.runs.deletion import delete
from reports.composite import sources
from reports.models import FrozenRows
from reports.report.bundle import (
    LEDGER,
    MANIFEST,
    REPORT,
    NoBundle,
    NotVerified,
    bundle_file,
    verify,
)
from reports.report.make import report_of
from reports.report.not_covered import NOT_COVERED, UNCOVERED_FIGURES
from reports.report.views.shares import forget_deleted_runs, make_share
from tests.helpers.bundles import empty_the_instance
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.run_rows import set_state
from tests.makers import (
    make_judges,
    make_picture,
    make_vote,
    make_voter,
    pairs_of,
    restate,
    seal_all,
)
from voting.ballot.services import flag, undo_last_vote
from voting.curating.services import decide, exclude_voter
from voting.models import Flag, Inference, Item

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def made_once(module_db):
    """A run with a vote that was taken back, a flag, and one vote more than was asked for."""
    cache.clear()
    run = voted_run(pairs=24)
    late = make_voter(run, name="Late Example")
    make_vote(late, pairs_of(run)[0], "B")
    make_vote(late, pairs_of(run)[1], "A")
    seal_all(run.queue.project)
    undo_last_vote(late, run.queue)
    flag(late, pairs_of(run)[2].pk, Flag.Category.UNSAFE, "Secret comment.")
    seal_all(run.queue.project)
    compute(run)
    return run


@pytest.fixture
def study(made_once):
    cache.clear()
    return deepcopy(made_once)


def link_of(run, *, of_project=False, **options):
    _, token = make_share(run.queue.project, None if of_project else run, None, **options)
    return f"/r/{token}/"


def bundle_of(run, **options):
    return bundle_behind(link_of(run, **options))


def bundle_behind(link):
    answer = Client().get(f"{link}bundle.zip")
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)


def bundle_refused(link, words):
    answer = Client().get(f"{link}bundle.zip")
    assert (answer.status_code, words in text_of(answer)) == (409, True)


def members_of(bundle):
    with ZipFile(io.BytesIO(bundle)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, path, *, with_sums=True):
    """Write files as a bundle whose manifest fits, as somebody who cheats would."""
    if with_sums:
        manifest = json.loads(members[MANIFEST])
        manifest["sha256"] = {n: sha256(b).hexdigest() for n, b in members.items() if n != MANIFEST}
        members = members | {MANIFEST: json.dumps(manifest).encode()}
    with ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def verified(path, head=""):
    """Verify where nothing is known of the report, as the command does."""
    empty_the_instance()
    return verify(path, head).report


@pytest.mark.parametrize("of_project", [False, True])
def test_a_report_that_follows_from_its_ledger_is_verified(study, tmp_path, of_project):
    path, head = tmp_path / "bundle.zip", study.queue.project.ledger_head
    path.write_bytes(bundle_of(study, of_project=of_project))
    report = verified(path, head)
    assert report.title == (study.queue.project.name if of_project else study.name)
    assert report.head.hash == head


def test_whatever_was_changed_is_found(study, tmp_path):
    whole, path = bundle_of(study), tmp_path / "bundle.zip"
    members = members_of(whole)
    lines = members[LEDGER].decode().splitlines()
    place = [n for n, line in enumerate(lines) if json.loads(line)["type"] == "vote"][3]
    vote, end = json.loads(lines[place]), json.loads(lines[-1])
    vote["choice"] = "B" if vote["choice"] == "A" else "A"
    shorter = json.dumps(end | {"lines": end["lines"] - 1})
    report = json.loads(members[REPORT])
    report["runs"][0]["findings"]["judges"][0]["overall"]["value"] += 1e-6

    def ledger(*changed):
        return members | {LEDGER: "".join(f"{line}\n" for line in changed).encode()}

    byte = members | {LEDGER: members[LEDGER].replace(b"0", b"1", 1)}
    assert "is not the file" in refused(zipped(byte, path, with_sums=False))
    more = members | {"more.txt": b"x"}
    assert "are not those" in refused(zipped(more, path, with_sums=False))
    named = json.loads(more[MANIFEST])
    named["sha256"]["more.txt"] = sha256(b"x").hexdigest()
    more |= {MANIFEST: json.dumps(named).encode()}
    assert "are not those" in refused(zipped(more, path, with_sums=False))
    for rewritten in (
        (*lines[:place], json.dumps(vote), *lines[place + 1 :]),
        (*lines[:place], *lines[place + 1 : -1], shorter),
        (*lines[:-2], shorter),
    ):
        assert re.search("hash|head", refused(zipped(ledger(*rewritten), path)))
    figure = members | {REPORT: json.dumps(report).encode()}
    where = "runs[0].findings.judges[0].overall.value: the report says"
    assert where in refused(zipped(figure, path))
    path.write_bytes(whole)
    assert "not to the given one" in refused(path, "0" * 64)
    path.write_text("no zip")
    assert "is no bundle of a report" in refused(path)


def refused(path, head=""):
    with pytest.raises(NotVerified) as wrong:
        verified(path, head)
    return str(wrong.value)


def test_the_command_uses_a_database_of_its_own(study, tmp_path):
    path = tmp_path / "bundle.zip"
    path.write_bytes(bundle_of(study))
    command = [sys.executable, "-m", "humanjudge", "verify", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"every figure of {study.name!r} follows from its ledger" in done.stdout
    assert "compare it with one you know" in done.stdout
    assert "Not covered by any ledger:" in done.stdout
    assert all(f"- {each.subject}\n" in done.stdout for each in NOT_COVERED)
    with pytest.raises(CommandError, match="This database has projects"):
        call_command("verify", str(path))


# Beside no single value of the page, which lists them.
LISTED_ALONE = {
    *("runs[].composite.outputs", "runs[].composite.without"),
    *("since", "counted.items", "runs[].findings.claims.votes_left"),
    *("runs[].findings.claims.forecast", "runs[].findings.claims.withdrawn"),
    *("runs[].findings.judges[].self_agreement", "runs[].findings.judges[].flips"),
    "runs[].findings.generators[].judges[].is_own_family",
}


def test_a_report_marks_and_lists_what_its_head_does_not_cover(study):
    pages = [page.read_text() for page in (ROOT / "templates/reports/report").glob("shared*.html")]
    marked = re.findall('_not_covered.html" with of="([^"]+)"', "".join(pages))
    assert {*marked} | LISTED_ALONE == UNCOVERED_FIGURES
    Run.objects.update(note="Imported from elsewhere.")
    for of_project, marks in ((False, 4), (True, 8)):
        text = text_of(Client().get(link_of(study, of_project=of_project)))
        assert all(each.subject in text for each in NOT_COVERED)
        assert text.count("(not covered by the head)") == marks


def test_a_bundle_is_of_the_moment_of_its_report(study):
    project = study.queue.project
    report = report_of(project, study)
    make_vote(make_voter(study), pairs_of(study)[3], "A")
    seal_all(project)
    with pytest.raises(NoBundle, match="Try again in a moment"):
        bundle_file(report, project)


def test_no_bundle_is_given_while_judges_are_asked_again(study):
    Verdict.objects.filter(pk=Verdict.objects.last().pk).update(state="waiting", winner="")
    bundle_refused(link_of(study), "Votes or verdicts are coming")


@pytest.mark.parametrize("of_project", [False, True])
def test_a_frozen_report_is_verified_as_of_its_position(study, tmp_path, of_project):
    project = study.queue.project
    link = link_of(study, of_project=of_project, is_frozen=True)
    frozen, head = bundle_behind(link), project.ledger_head
    change_everything(study)
    after = bundle_behind(link)
    assert members_of(after)[LEDGER] == members_of(frozen)[LEDGER]
    assert head != project.ledger_head
    (path := tmp_path / "bundle.zip").write_bytes(after)
    report = verified(path, head)
    assert report.head.hash == head
    manifest = json.loads(members_of(after)[MANIFEST])
    assert manifest["seeds"] == [str(study.pk)]
    assert manifest["head"]["seq"] == report.head.seq
    assert {"numpy", "scipy"} <= manifest["versions"].keys()


def change_everything(run):
    """Take back and exclude votes that were counted, cast others, flag, and join a judge."""
    project = run.queue.project
    first, second = project.voters.all()[:2]
    undo_last_vote(first, run.queue)
    item, curator = pairs_of(run)[5], make_voter(run)
    decide(item.pk, "exclude", curator, "It is broken.", after=None)
    exclude_voter(second.pk, run.queue, curator, "A bot.", after=None)
    make_vote(make_voter(run), pairs_of(run)[7], "B")
    flag(curator, pairs_of(run)[8].pk, Flag.Category.OTHER, "")
    Item.objects.filter(queue=run.queue).update(votes_wanted=9)
    make_judges(run, ["late-judge"], first=3)
    run.queue.is_open = False
    run.queue.save()
    seal_all(project)
    compute(run)


def test_a_report_that_is_frozen_while_figures_follow_has_no_bundle(study):
    make_vote(make_voter(study), pairs_of(study)[3], "A")
    seal_all(study.queue.project)
    frozen = link_of(study, is_frozen=True)
    assert Client().get(f"{frozen}bundle.zip").status_code == 404
    assert "There is no bundle" in text_of(Client().get(frozen))
    bundle_refused(link_of(study), "Try again in a moment")


def test_no_bundle_is_given_of_a_ledger_that_is_not_whole(study):
    other = voted_run(pairs=12, project=study.queue.project)
    set_state(other, "stopped")
    frozen = link_of(study, of_project=True, is_frozen=True)
    delete(other.pk, other.name)
    seal_all(study.queue.project)
    compute(study)
    for link in (link_of(study), frozen):
        bundle_refused(link, "A run of this project was deleted")
    forget_deleted_runs()
    assert not FrozenRows.objects.exists()


def test_a_composite_is_computed_anew_where_the_bundle_holds_what_it_needs(study, tmp_path):
    config = {
        "weights": {"near": {"weight": 1, "reason": "It knows best."}},
        "sources": {"near": {"from": "judge_wins", "judge": "near-judge"}},
    }
    sources.store(study, sources.read_config(study, config))
    members = members_of(bundle_of(study))
    path = zipped(members, tmp_path / "bundle.zip")
    assert verified(path).runs[0].composite.mean is not None
    report = json.loads(members[REPORT])
    report["runs"][0]["composite"]["mean"] += 1e-6
    zipped(members | {REPORT: json.dumps(report).encode()}, path)
    assert "runs[0].composite.mean: the report says" in refused(path)


def test_a_composite_of_what_no_bundle_holds_is_named_as_unchecked(study, tmp_path):
    config = {
        "label": "Grade",
        "weights": {"grade": {"weight": 1, "reason": "Teachers gave it."}},
        "sources": {"grade": {"from": "metadata", "key": "grade", "range": [1, 5]}},
    }
    sources.store(study, sources.read_config(study, config))
    path = tmp_path / "bundle.zip"
    path.write_bytes(bundle_of(study))
    name = study.name
    empty_the_instance()
    said = io.StringIO()
    call_command("verify", str(path), stdout=said)
    assert f"Not checked, as it asks for outputs: Grade of {name}." in said.getvalue()


def test_nothing_private_is_in_a_bundle(study):
    outputs = [item.a.output for item in pairs_of(study)]
    for of_project in (False, True):
        said = b"".join(members_of(bundle_of(study, of_project=of_project)).values()).decode()
        assert "Secret comment" not in said
        assert "Late Example" not in said
        assert not [text for text in outputs if f'"{text}"' in said]


def test_drawings_are_not_needed_to_verify_what_was_voted_on_them(study, tmp_path):
    outputs = Inference.objects.filter(project=study.queue.project)
    outputs.update(kind="svg", picture=make_picture())
    restate(study)
    compute(study)
    path = tmp_path / "bundle.zip"
    path.write_bytes(bundle_of(study))
    assert verified(path).runs[0].findings.as_of.open == 24

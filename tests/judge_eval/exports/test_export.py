"""What an export says, and what it never says."""

import csv
import io
import json

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge_eval.exports.export import export_project, export_run
from judge_eval.exports.files import FORMATS, in_blocks
from judge_eval.exports.rows import grandjury_votes
from judge_eval.models import Provider
from judge_eval.runs.access import note_runs_seen
from tests.helpers.imports import imported, pair, vote
from tests.makers import (
    make_exposure,
    make_invite,
    make_many_entries,
    make_many_votes,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.access.keys import create_key
from voting.ballot.services import flag, undo_last_vote
from voting.models import Entry, Voter
from voting.people.voters import invite_token, voter_of_key, voter_of_user

pytestmark = pytest.mark.django_db

AT = "2026-03-04T05:06:07.000008Z"


def records_of(lines):
    return [json.loads(line) for line in lines]


def of_type(lines, kind):
    return [record for record in records_of(lines) if record["type"] == kind]


def test_the_records_come_in_their_order_and_are_counted():
    run = make_run(pairs=2, judges=2)
    voter = make_voter(run)
    for each in pairs_of(run):
        make_vote(voter, each)
    flag(voter, pairs_of(run)[0].pk, "other", "")
    seal_all(run.queue.project)
    records = records_of(export_run(run))
    kinds = [record["type"] for record in records]
    assert list(dict.fromkeys(kinds)) == [
        *("header", "rubric", "run", "judge", "inference", "comparison", "verdict"),
        *("voter", "flag", "entry", "vote", "end"),
    ]
    assert records[-1]["lines"] == len(records) - 1


def test_a_vote_says_all_that_is_known_of_it():
    run = imported(
        pair(1),
        vote(1, "ann", "B", voted_at=AT, comment="shorter", left_side="A", labels={"c": 0.5}),
    )
    stored = Entry.objects.select_related("voter").get(kind="vote")
    [record] = of_type(export_run(run), "vote")
    assert record == {
        "type": "vote",
        "seq": 4,  # behind the run, its opening and the entry with which an import begins
        "hash": bytes(stored.hash).hex(),
        "id": str(stored.uid),
        "at": AT,
        "run": str(run.pk),
        "voter": stored.voter.pseudonym,
        "comparison": str(stored.item_id),
        "choice": "B",
        "value": None,
        "category": "",
        "left_side": "A",
        "rubric": {"name": "Imported", "version": 1},
        "elapsed_ms": None,
        "reputation": 1_000_000,
        "unblinded": False,
        "simulated": False,
        "comment": "shorter",
        "comment_sha256": stored.comment_sha256,
        "salt": stored.salt,
        "labels": {"c": 0.5},
        "labels_sha256": stored.payload["labels_sha256"],
        "retracted": None,
    }


def test_a_vote_that_was_taken_back_says_when():
    run = make_run()
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    lines = list(export_run(run))
    [taken_back], [_, retraction] = of_type(lines, "vote"), of_type(lines, "entry")
    assert taken_back["retracted"] == {"seq": 3, "at": retraction["at"]}
    assert (retraction["kind"], retraction["target"]) == ("retraction", taken_back["id"])


def test_the_header_tells_the_head_of_the_ledger_and_later_votes_are_not_there():
    run = make_run(pairs=2)
    voter, (first, second) = make_voter(run), pairs_of(run)
    make_vote(voter, first)
    project = run.queue.project
    seal_all(project)
    lines = export_run(run)
    header = json.loads(next(lines))
    make_vote(voter, second)
    undo_last_vote(voter, run.queue)
    undo_last_vote(voter, run.queue)
    head = project.ledger_head
    seal_all(project)
    assert (header["project"]["head"], header["project"]["head_seq"]) == (head, 3)
    rest = list(lines)
    assert [record["seq"] for record in of_type(rest, "vote")] == [3]
    assert of_type(rest, "vote")[0]["retracted"] is None


def test_a_project_is_exported_whole_and_a_run_alone():
    one = make_run(pairs=1)
    other = make_run(one.queue.project, pairs=2)
    voter = make_voter(other)
    make_vote(voter, pairs_of(other)[0])
    seal_all(one.queue.project)
    whole, alone = list(export_project(one.queue.project)), list(export_run(one))
    assert len(of_type(whole, "run")) == 2
    assert len(of_type(whole, "comparison")) == 3
    assert len(of_type(whole, "vote")) == 1
    assert len(of_type(alone, "comparison")) == 1
    assert (of_type(alone, "vote"), of_type(alone, "voter")) == ([], [])
    assert json.loads(whole[0])["runs"] == [str(one.pk), str(other.pk)]


def test_the_queries_do_not_grow_with_the_rows():
    counts = []
    reader = User.objects.create(username="ann")
    for size in (2, 40):
        run = make_run(pairs=size)
        voters = Voter.objects.bulk_create(Voter(project=run.queue.project) for _ in range(size))
        make_many_votes(run, [(voters[n], each, "A") for n, each in enumerate(pairs_of(run))])
        seal_all(run.queue.project)
        with CaptureQueriesContext(connection) as queries:
            note_runs_seen(reader, [run])
            for each in FORMATS.values():
                list(each.pieces(run))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_nothing_secret_is_in_an_export():
    run = make_run(pairs=3)
    project, pairs = run.queue.project, pairs_of(run)
    Provider.objects.create(
        name="acme", base_url="https://zzz-endpoint.example/v1", key_variable="ZZZ_API_KEY"
    )
    key, token = create_key("zzz key name", ["vote"], project)
    user = User.objects.create_user("zzz-user", "zzz@example.com", "zzz-password")
    invite = make_invite(run, label="zzz label")
    people = [
        make_voter(run, name="Zzz Name", invite=invite, external_id="zzz-mail@example.com"),
        voter_of_user(project, user),
        voter_of_key(project.pk, key),
    ]
    for person, each in zip(people, pairs, strict=True):
        make_vote(person, each)
    seal_all(project)
    exports = [export_project(project), *(each.pieces(run) for each in FORMATS.values())]
    text = "\n".join(b"\n".join(in_blocks(file)).decode(errors="replace") for file in exports)
    assert "zzz" not in text.lower()
    secrets = [token, token.split("_", 2)[2], key.prefix, invite_token(invite), user.password]
    for secret in [*secrets, *(str(person.pk) for person in people), str(invite.pk)]:
        assert secret not in text
        assert secret.replace("-", "") not in text
    assert all(person.pseudonym in text for person in people)


# --- the vote file ------------------------------------------------------------------------------


def as_the_client_reads(text):
    """Read a cell as the public client does where pandas is not installed."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.lower() == "none" or text == "":
        return None
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def grades(run):
    """The lines of the vote file: inference_id, vote, voter_id, vote_time, voter_prompt_id."""
    header, *lines = csv.reader(io.StringIO("".join(grandjury_votes(run)), newline=""))
    assert header == ["inference_id", "vote", "voter_id", "vote_time", "voter_prompt_id"]
    return [tuple(map(as_the_client_reads, line)) for line in lines]


def test_a_vote_on_a_pair_grades_both_outputs():
    choices = {1: "A", 2: "B", 3: "tie", 4: "both_bad"}
    run = imported(*[vote(n, "ann", choice, voted_at=AT) for n, choice in choices.items()])
    pseudonym = Voter.objects.get().pseudonym
    found = grades(run)
    assert [vote for _, vote, *_ in found] == [1.0, 0.0, 0.0, 1.0, 0.5, 0.5, 0.0, 0.0]
    assert [inference for inference, *_ in found] == [
        str(output) for each in pairs_of(run) for output in (each.a_id, each.b_id)
    ]
    assert {line[2:] for line in found} == {
        (pseudonym, "2026-03-04T05:06:07.000008Z", "Imported v1")
    }


def test_votes_that_do_not_count_are_left_out():
    run = make_run(pairs=3)
    voter, (kept, undone, seen) = make_voter(run), pairs_of(run)
    make_exposure(voter, seen)
    make_vote(voter, kept)
    make_vote(voter, seen)
    make_vote(voter, undone)
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert [inference for inference, *_ in grades(run)] == [str(kept.a_id), str(kept.b_id)]


def test_pretend_votes_are_in_no_vote_file():
    run = make_run()
    run.queue.is_simulated = True
    run.queue.save()
    common = {"voter": make_voter(run), "item": pairs_of(run)[0], "choice": "A"}
    make_many_entries(run, "vote", [common | {"rubric": run.queue.rubric, "simulated": True}])
    seal_all(run.queue.project)
    assert grades(run) == []
    pseudonym = run.queue.project.voters.get().pseudonym
    for name in FORMATS.keys() - {"jsonl", "ledger"}:
        file = b"".join(in_blocks(FORMATS[name].pieces(run)))
        assert pseudonym.encode() not in file, name

"""Import on the page: files are looked at, mapped, imported, refused, changed, stopped, left."""

import csv
import io
import json
import subprocess
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.utils import timezone

from judge_eval.exports.export import export_run
from judge_eval.imports import import_jobs, preview
from judge_eval.imports.preview import TOO_MUCH
from judge_eval.models import Import, Run, Verdict
from tests.helpers.imports import imported, pair, verdict, vote
from tests.helpers.pages import HTMX, text_of
from tests.makers import (
    key_client,
    make_key,
    make_project,
    make_run,
    member_client,
    pairs_of,
    user_client,
)
from voting.models import Entry, Exposure, Inference, Project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("forked_previews")]

ROWS = [
    {"no": n, "question": f"Q{n}", "one": f"A{n}", "two": f"<b>B{n}</b>", "winer": "12"[n % 2]}
    | {"person": f"p{n}", "gpt": "A"}
    for n in (1, 2, 3)
]
ROLES = {"no": "pair", "question": "prompt", "one": "output_a", "two": "output_b", "winer": "vote"}
ROLES |= {"person": "voter", "gpt": "judges"}


def csv_of(rows, name="votes.csv"):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return SimpleUploadedFile(name, text.getvalue().encode())


def lines_of(*records, name="rows.jsonl"):
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    return SimpleUploadedFile(name, text.encode())


def brought(client, *files, run=None):
    """Bring files; return the address of what they became."""
    address = f"/runs/{run.pk}/import/" if run else "/runs/import/"
    answer = client.post(address, {"file": list(files)})
    assert answer.status_code == 302, text_of(answer)
    return answer.headers["Location"]


def fields_of(client, address, *, roles=None, **more):
    """What the form sends when nothing but this is changed; columns by their names."""
    form = client.get(address).context["form"]
    selects = [each for c in form.columns for each in (c.role, *c.values) if each.name]
    sent = {select.name: (roles or {}).get(select.subject, select.selected) for select in selects}
    shown = {name: form[name].value() or "" for name in form.fields}
    return sent | {name: value for name, value in shown.items() if value is not False} | more


def work():
    while job := import_jobs.claim():
        import_jobs.run(job)


def imported_by(client, address, **more):
    answer = client.post(address, fields_of(client, address, do="import", **more))
    assert answer.status_code == 302, text_of(answer)
    work()
    return client.get(address)


def test_a_file_is_looked_at_and_nothing_is_written():
    client = user_client()
    shown = text_of(client.get(brought(client, csv_of([{"pair": 1, "vote": "A", "voter": "ann"}]))))
    assert "Recognised as pairs, by columns" in shown
    assert "What voters will see" in shown
    assert not Run.every.exists()
    assert not Inference.objects.exists()
    assert not Project.objects.exists()


def test_columns_are_chosen_and_their_values_and_a_worker_imports_them():
    client, project = user_client(), make_project()
    address = brought(client, csv_of(ROWS))
    first = client.get(address)
    assert "What voters will see" in text_of(first)
    assert client.post(address, fields_of(client, address, roles=ROLES)).status_code == 302
    second = text_of(client.get(address))
    # What 1 and 2 stand for is proposed.
    assert "What is wrong" not in second
    assert "Its values stand for" in second
    chosen = ROLES | {"1": "A", "2": "B"}
    client.post(address, fields_of(client, address, roles=chosen))
    third = client.get(address)
    assert "What is wrong" not in text_of(third)
    assert "Q1" in text_of(third)
    assert "<b>B1" not in third.content.decode()
    done = imported_by(client, address, name="Sky")
    assert "New: 3 pairs, 1 judge, 3 verdicts, 3 voters, 3 votes." in text_of(done)
    run = Run.objects.get()
    assert (run.name, run.queue.project) == ("Sky", project)
    assert f'href="/runs/{run.pk}/"' in done.content.decode()
    votes = Entry.objects.filter(kind="vote").order_by("seq")
    assert list(votes.values_list("choice", flat=True)) == ["B", "A", "B"]


def test_what_is_shown_is_read_as_the_columns_are_chosen_at_first():
    client = user_client()
    rich = {
        "question": "Why?",
        "response_a": "So.",
        "response_b": "No.",
        "user": "ann",
        "winner": 2,
    }
    shown = text_of(
        client.get(brought(client, lines_of(rich, rich | {"winner": 1, "user": "bob"})))
    )
    assert "So." in shown
    assert "not read:" not in shown
    assert "What is wrong" not in shown
    one = {"user_input": "Why?", "response": "So."}
    address = brought(client, csv_of([one]))
    shown = text_of(client.get(address))
    assert "Recognised as single items" in shown
    assert "So." in shown
    people = [{"user": "ann", "label": "good"}, {"user": "bob", "label": "bad"}]
    address = brought(
        client, lines_of({"inputs": {"query": "Why?"}, "answer": {"text": "So."}, "said": people})
    )
    assert '"rows": "said[]"' in client.get(address).content.decode().replace("&quot;", '"')
    make_project()
    done = imported_by(client, address)
    assert "New: 1 item, 2 voters, 2 votes." in text_of(done)


def test_an_encoding_is_said_and_can_be_changed():
    client, _ = user_client(), make_project()
    text = "pair,voter,vote,größer\n1,ann,A,naïve\n".encode("cp1252")
    address = brought(client, SimpleUploadedFile("v.csv", text))
    shown = client.get(address)
    assert "Western European (Windows)" in text_of(shown)
    assert "größer" in text_of(shown)
    client.post(address, fields_of(client, address, encoding="cp1251"))
    assert "grц" in text_of(client.get(address))
    done = imported_by(client, address, encoding="cp1252", vote_kind="comparison")
    assert "1 vote" in text_of(done)


def test_one_voter_and_one_judge_may_be_said_for_the_whole_file():
    client, _ = user_client(), make_project()
    rows = [{"pair": n, "vote": "A", "verdict": "B"} for n in (1, 2)]
    address = brought(client, csv_of(rows))
    done = imported_by(client, address, voter="ann", judge="gpt")
    assert "New: 2 pairs, 1 judge, 2 verdicts, 1 voter, 2 votes." in text_of(done)


def test_a_column_that_is_not_known_names_the_nearest_one():
    client = user_client()
    address = brought(client, csv_of([{"pair": 1, "prmpt": "Q", "vote": "A", "voter": "ann"}]))
    assert "Not known: is it prompt ?" in text_of(client.get(address))


MTBENCH = {
    "question_id": 81,
    "model_a": "x",
    "model_b": "y",
    "winner": "model_a",
    "judge": "gpt-4",
    "turn": 1,
}


@pytest.mark.parametrize(
    "file, recognised, shown",
    [
        (lines_of(MTBENCH, name="gpt4.jsonl"), "MT-bench", "81__x__y__1"),
        (
            SimpleUploadedFile("human_annotations.json", b'{"ann": {"i1": "yes"}}'),
            "Alt-Test",
            "i1",
        ),
        (
            csv_of([{"item": "t1", "output": "Paris", "voter": "ann", "vote": "flag"}]),
            "single items, by columns",
            "Paris",
        ),
    ],
    ids=["mtbench", "alttest", "items"],
)
def test_it_says_how_a_file_was_recognised(file, recognised, shown):
    client = user_client()
    make_project()
    file.seek(0)
    address = brought(client, file)
    text = text_of(client.get(address))
    assert f"Recognised as {recognised}" in text
    assert shown in text
    assert "Imported: " in text_of(imported_by(client, address))


def test_what_was_guessed_is_marked_where_nothing_is_asked_beside_it():
    client = user_client()
    row = {"prompt": "Why so?", "AntwortA": "An answer.", "AntwortB": "Another one."}
    rows = [row | {"Besser": choice} for choice in "AB"]
    page = text_of(client.get(brought(client, csv_of(rows))))
    assert page.count("✓ guessed") == 2
    for column in ("AntwortA", "AntwortB"):
        assert f"{column} ✓ guessed" in page


def test_a_public_format_may_be_read_by_its_columns_instead():
    client = user_client()
    address = brought(client, lines_of(MTBENCH | {"pair": 7}))
    client.post(address, fields_of(client, address, read_as="pair"))
    roles = {"pair": "pair", "model_a": "generator_a", "model_b": "generator_b"}
    client.post(address, fields_of(client, address, roles=roles | {"judge": ""}))
    [item] = client.get(address).context["seen"].items
    assert (item.name, [output.generator for output in item.outputs]) == ("7", ["x", "y"])


def test_a_bundle_says_what_is_in_it_and_comes_back_whole():
    run = make_run(pairs=2)
    lines, name = "\n".join(export_run(run)) + "\n", run.queue.project.name
    client = user_client()
    address = brought(client, SimpleUploadedFile("run.jsonl", lines.encode()))
    assert f"The project {name} with {run.name}" in text_of(client.get(address))
    other = make_project("Elsewhere")
    assert "Imported: run.jsonl" in text_of(imported_by(client, address, project=str(other.pk)))
    assert Run.objects.filter(queue__project=other).count() == 1


def test_more_is_added_to_a_run():
    run, client = imported(pair(1)), user_client()
    address = brought(client, lines_of(vote(1, "ann", "A"), pair(2)), run=run)
    assert f"Import rows.jsonl into {run.name}" in text_of(client.get(address))
    done = text_of(imported_by(client, address))
    assert "New: 1 pair, 1 voter, 1 vote." in done
    assert run.queue.items.count() == 2


# --- what is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files, status, said",
    [
        ([], 422, "1 to 50 files are needed"),
        ([("v.doc", b"pair\n1\n")], 422, "the name must end in one of .csv"),
        ([(f"{n}.csv", b"pair\n1\n") for n in range(51)], 422, "1 to 50 files are needed"),
        ([("v.csv", b"x" * (2 << 20))], 413, "v.csv has more than 1 MB"),
    ],
    ids=["none", "unknown", "many", "large"],
)
def test_files_that_cannot_be_taken_are_refused_with_a_reason(files, status, said, settings):
    settings.IMPORT_MAX_MB = 1
    sent = {"file": [SimpleUploadedFile(*file) for file in files]}
    answer = user_client().post("/runs/import/", sent)
    assert (answer.status_code, said in text_of(answer)) == (status, True)
    assert not Import.objects.exists()


def test_a_bundle_is_no_part_of_a_run_and_a_run_that_generates_takes_nothing():
    run, client = make_run(), user_client()
    bundle = SimpleUploadedFile("run.jsonl", ("\n".join(export_run(run)) + "\n").encode())
    answer = client.post(f"/runs/{run.pk}/import/", {"file": bundle})
    assert (answer.status_code, "a run of its own" in text_of(answer)) == (422, True)
    Run.objects.update(state=Run.State.GENERATING)
    answer = client.post(f"/runs/{run.pk}/import/", {"file": lines_of(pair(1))})
    assert (answer.status_code, "its own pairs come first" in text_of(answer)) == (409, True)


WRONG_CHOICES = [
    ({"name": " "}, "Name the run."),
    ({"project": ""}, "Name the new project, or choose one."),
    ({"votes_per_pair": "0"}, "greater than or equal to 1"),
    ({"roles": {"one": "pair"}}, "pair: chosen again for 'one'"),
    ({"read_as": "item", "roles": ROLES}, "choose the column that names the item"),
]


def test_a_choice_that_is_wrong_is_422_and_the_others_are_kept():
    client, _ = user_client(), make_project()
    address = brought(client, csv_of(ROWS))
    for wrong, said in WRONG_CHOICES:
        with transaction.atomic():
            roles = ROLES | wrong.get("roles", {})
            sent = fields_of(client, address, roles=roles, rubric="Which is shorter?")
            answer = client.post(address, sent | {"do": "import"} | _without_roles(wrong))
            assert (answer.status_code, said in text_of(answer)) == (422, True), wrong
            assert "Which is shorter?" in text_of(answer)
            assert not Run.every.exists()
            transaction.set_rollback(True)


def _without_roles(fields):
    return {name: value for name, value in fields.items() if name != "roles"}


def test_what_is_refused_keeps_its_files_and_choices_to_be_changed():
    client = user_client()
    rows = [*ROWS, ROWS[0] | {"one": "Another", "winer": "9"}, ROWS[2] | {"winer": "1"}]
    address = brought(client, csv_of(rows))
    chosen = ROLES | {"1": "A", "2": "B"}
    client.post(address, fields_of(client, address, roles=ROLES))
    fields = {"roles": chosen, "new_project": "Sky", "name": "Sky"}
    refused = text_of(imported_by(client, address, **fields))
    assert "Not imported" in refused
    assert "votes.csv, row 5, vote : '9' is not one of 1, 2" in refused
    assert "votes.csv, row 6, vote : 'A', but p3 said 'B' on pair '3' before" in refused
    assert not Run.every.exists()
    done = text_of(imported_by(client, address, skip_errors="on"))
    assert "New: 3 pairs, 1 judge, 3 verdicts, 3 voters, 3 votes." in done
    assert "Rows that were wrong and left out" in done
    assert Project.objects.get().name == "Sky"
    assert not list(import_jobs._folder(Import.objects.get()).glob("*"))


def test_an_import_is_stopped_and_goes_on_or_is_discarded():
    client, _ = user_client(), make_project()
    address = brought(client, lines_of(pair(1)))
    client.post(address, fields_of(client, address, do="import"))
    assert "Next in line" in text_of(client.get(address))
    assert client.post(f"{address}stop").status_code == 302
    assert "It was stopped." in text_of(client.get(address))
    assert "New: 1 pair." in text_of(imported_by(client, address))
    other = brought(client, lines_of(pair(2)))
    folder = import_jobs._folder(Import.objects.get(state="draft"))
    assert client.post(f"{other}discard").headers["Location"] == "/runs/import/"
    assert client.get(other).status_code == 404
    assert not folder.exists()


def test_uploads_that_nobody_imports_are_removed_after_a_day():
    client = user_client()
    old, new = (brought(client, lines_of(pair(n))) for n in (1, 2))
    shown = client.get("/runs/import/").content.decode()
    assert shown.count('href="/imports/') == 2
    row = Import.objects.get(pk=old.split("/")[2])
    Import.objects.filter(pk=row.pk).update(requested_at=timezone.now() - timedelta(days=2))
    import_jobs.submit_lost()
    assert client.get(old).status_code == 404
    assert not import_jobs._folder(row).exists()
    assert client.get(new).status_code == 200


# --- how far it is ------------------------------------------------------------------------------


def test_the_page_follows_an_import_and_asks_for_nothing_when_nothing_is_new():
    client, _ = user_client(), make_project()
    address = brought(client, lines_of(pair(1)))
    client.post(address, fields_of(client, address, do="import"))
    seen = client.get(address).context["seen"]
    same = client.get(f"{address}?state=waiting&seen={seen}", headers=HTMX)
    assert same.status_code == 204
    Import.objects.update(rows_read=7)
    newer = client.get(f"{address}?state=waiting&seen=0-0", headers=HTMX)
    assert "seen=7-0" in newer.content.decode()
    Import.objects.update(state="writing", written=1, to_write=8, rows_read=4)
    assert "Writing 0 of 4 rows" in text_of(client.get(address))
    Import.objects.update(written=2)
    changed = client.get(f"{address}?state=waiting&seen=7-0", headers=HTMX)
    assert changed.headers["HX-Refresh"] == "true"
    writing = client.get(address)
    assert "Writing 1 of 4 rows" in text_of(writing)
    assert "stop" not in writing.content.decode()


def test_who_waits_sees_for_what_and_no_name_of_others():
    owner, mine, theirs = user_client(), make_project("Mine"), make_project("Theirs")
    other = member_client(theirs, "evaluator")
    first = brought(owner, lines_of(pair(1), name="big.jsonl"))
    owner.post(first, fields_of(owner, first, do="import", project=str(mine.pk), new_project=""))
    assert "Next in line" in text_of(owner.get(first))
    Import.objects.update(state="writing", written=63, to_write=100)
    for client, project, said in (
        (owner, mine, "Second in line, behind big.jsonl (63 % done)."),
        (other, theirs, "Second in line, behind another import (63 % done)."),
    ):
        address = brought(client, lines_of(pair(1), name="small.jsonl"))
        client.post(address, fields_of(client, address, do="import", project=str(project.pk)))
        assert said in text_of(client.get(address))
        Import.objects.filter(pk=address.split("/")[2]).delete()


# --- hostile files ------------------------------------------------------------------------------


def test_nothing_in_a_file_is_markup_on_the_page():
    client = user_client()
    evil = '"><script>alert(1)</script>'
    record = dict.fromkeys(("prompt", "output_a", "output_b", "generator_a", "voter"), evil)
    record |= {"pair": evil, "vote": "A", evil: evil, "judge": evil, "verdict": "B"}
    file = lines_of(record, {"pair": "2", "vote": evil, "voter": "x"}, name=f"{evil}.jsonl")
    address = brought(client, file)
    for page in (client.get(address), client.get("/runs/import/")):
        assert "<script>alert" not in page.content.decode()
    assert "alert(1)" in text_of(client.get(address))


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("v.csv", "pair,prompt\n1,größer caf".encode() + b"\xe9\n", "v.csv, row 2 : not UTF-8"),
        ("v.csv", b'pair,prompt\n1,"open\n', "v.csv, row"),
        ("v.csv", b"pair,prompt\n1," + b"x" * 2_100_000 + b"\n", "a record of more than 2,000,000"),
        ("v.csv", b"", "the file is empty"),
        ("v.json", b"[" * 100_000, "nested too deeply"),
        ("v.parquet", b"PAR1 no parquet PAR1", "not readable as Parquet"),
        ("v.csv", b"a;b\n1;2\n", "Say what these two columns are."),
    ],
)
def test_a_file_that_cannot_be_read_says_why(name, content, said):
    client = user_client()
    answer = client.get(brought(client, SimpleUploadedFile(name, content)))
    assert answer.status_code == 200
    assert said in text_of(answer)


def test_a_small_file_that_holds_very_much_does_not_grow_the_server(monkeypatch):
    # Started as the product starts it: a fork may fill what memory the test has left over.
    monkeypatch.setattr(preview, "subprocess", subprocess)
    values = ["x" * 180_000_000, *["y"] * 399]
    table = pa.table({"pair": [str(n) for n in range(400)], "output_a": values})
    file = io.BytesIO()
    pq.write_table(table, file, compression="lz4", use_dictionary=False, write_statistics=False)
    client = user_client()
    address = brought(client, SimpleUploadedFile("bomb.parquet", file.getvalue()))
    assert TOO_MUCH in text_of(client.get(address))


# --- who may ------------------------------------------------------------------------------------


def test_a_draft_is_nothing_to_keys():
    job = brought(user_client(), lines_of(pair(1)))
    client = key_client(make_key("manage")[1])
    assert client.get(f"/api{job}".rstrip("/")).status_code == 404


def test_who_imports_verdicts_has_seen_them():
    client, _ = user_client(), make_project()
    imported_by(client, brought(client, lines_of(pair(1), verdict(1, "x", "A"))))
    run = Run.objects.get()
    assert Verdict.objects.filter(judge__name="x").count() == 1
    seen = Exposure.objects.filter(voter__user__username="owner")
    assert [exposure.item_id for exposure in seen] == [pairs_of(run)[0].pk]

"""The same files make the same run by page, by REST and by command, with a mapping or without."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from judge_eval.models import Run, Verdict
from tests.judge_eval.imports.test_exchange_api import done, manager
from tests.judge_eval.imports.test_import_pages import brought, fields_of, imported_by, text_of
from tests.makers import user_client
from voting.models import Entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("forked_previews")]

PROJECT = Path(__file__).resolve().parents[2] / "data" / "exchange" / "metaevaluator"
RECORDS = [
    {
        "uid": number,
        "chat": {"a": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "x"}]},
        "said": [{"user": "ann", "value": 1.2}, {"user": "bob", "value": 1.5}],
    }
    for number in (1, 2)
]
MAPPING = {
    "pair": "uid",
    "prompt": "chat.a[:-1]",
    "output_a": "chat.a[-1].content",
    "output_b": {"value": "y"},
    "rows": "said[].{who: user, preference: value}",
    "voter": "who",
    "vote": {"column": "preference", "threshold": 1.5},
}
LINES = "".join(f"{json.dumps(record)}\n" for record in RECORDS).encode()


def facts_of(run):
    votes = Entry.objects.filter(queue=run.queue, kind=Entry.Kind.VOTE)
    verdicts = Verdict.objects.filter(judge__run=run).exclude(judge__provider="baseline")
    items = run.queue.items.order_by("position")
    return (
        list(items.values_list("external_id", "a__prompt", "a__output", "b__output")),
        sorted(votes.values_list("item__external_id", "voter__external_id", "choice", "labels__x")),
        sorted(verdicts.values_list("item__external_id", "judge__name", "winner", "state")),
    )


def by_page(files, mapping):
    client = user_client()
    address = brought(client, *(SimpleUploadedFile(*file) for file in files))
    more = {"name": "Run", "new_project": "By page"}
    more |= {"written": json.dumps(mapping)} if mapping else {}
    page = imported_by(client, address, **more)
    assert "Imported:" in text_of(page)
    return Run.objects.get(queue__project__name="By page")


def by_rest(files, mapping):
    more = {"mapping": json.dumps(mapping)} if mapping else {}
    uploads = [SimpleUploadedFile(*file) for file in files]
    job = done(manager(), *uploads, name="Run", project="By REST", **more)
    assert job["state"] == "done", job
    return Run.objects.get(pk=job["run_id"])


def by_command(files, mapping, folder):
    paths = [folder / name for name, _ in files]
    for path, (_, data) in zip(paths, files, strict=True):
        path.write_bytes(data)
    more = []
    if mapping:
        (folder / "map.json").write_text(json.dumps(mapping))
        more = ["--map", str(folder / "map.json")]
    call_command("import_run", *map(str, paths), "--project", "By command", *more)
    return Run.objects.get(queue__project__name="By command")


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_whole_project_comes_in_one_go(is_packed, tmp_path):
    files = [(path.name, path.read_bytes()) for path in sorted(PROJECT.iterdir())]
    assert len(files) == 8
    if is_packed:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, data in files:
                archive.writestr(f"project/{name}", data)
        files = [("project.zip", stream.getvalue())]
    found = [facts_of(by_page(files, None)), facts_of(by_rest(files, None))]
    found.append(facts_of(by_command(files, None, tmp_path)))
    items, votes, verdicts = found[0]
    assert (len(items), bool(votes), bool(verdicts)) == (3, True, True)
    assert found[0] == found[1] == found[2]


def test_a_mapping_reads_the_same_everywhere(tmp_path):
    files = [("nested.jsonl", LINES)]
    found = [facts_of(by_page(files, MAPPING)), facts_of(by_rest(files, MAPPING))]
    found.append(facts_of(by_command(files, MAPPING, tmp_path)))
    assert found[0] == found[1] == found[2]
    assert found[0][0] == [("1", "Q", "x", "y"), ("2", "Q", "x", "y")]
    assert [vote[:3] for vote in found[0][1]] == [
        ("1", "ann", "A"),
        ("1", "bob", "tie"),
        ("2", "ann", "A"),
        ("2", "bob", "tie"),
    ]


def test_a_mapping_is_kept_and_offered_for_the_next_file_of_its_shape():
    by_page([("nested.jsonl", LINES)], MAPPING)
    client = user_client()
    address = brought(client, SimpleUploadedFile("next.jsonl", LINES))
    first = text_of(client.get(address))
    assert "Read as nested.jsonl was" in first
    assert "What is wrong" not in first
    client.post(address, fields_of(client, address))
    shown = text_of(client.get(address))
    assert "What is wrong" not in shown
    other = brought(client, SimpleUploadedFile("other.csv", b"pair,voter,vote\n1,ann,A\n"))
    assert "Read as" not in text_of(client.get(other))

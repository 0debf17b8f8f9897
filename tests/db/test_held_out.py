"""While judges are tuned, no address tells a vote or a verdict on an item that is held out."""

import csv
import io

import pandas
import pytest
from django.test import Client

from humanjudge.api import api, grandjury_api
from judge_eval.models import Call, Run, Verdict
from judge_eval.runs import variants
from tests.helpers.every_page import EveryPage
from tests.helpers.run_findings import compute
from tests.makers import key_client, make_key, make_vote, make_voter, restate, seal_all
from voting.models import Entry

pytestmark = pytest.mark.django_db
SECRET = "held-out-words"
FILES = ("csv", "labels", "votes", "jsonl", "ledger")


@pytest.fixture
def scene():
    """Every address, of a run whose tuning is open; each held-out item as the one asked for."""
    pages = EveryPage()
    run = Run.objects.get(pk=pages.values["run_id"])
    held = run.queue.items.filter(is_held_out=True)
    variants.open_for_tuning(run)
    pages.items = list(held)
    verdicts = Verdict.objects.filter(item__in=pages.items)
    verdicts.update(feedback=f"{SECRET} of a verdict")
    calls = Call.objects.filter(verdict__in=verdicts)
    calls.update(reply=f"{SECRET} of a reply", reason=SECRET, error=SECRET, winner="")
    calls.update(state="failed")
    voter = make_voter(run, name="Late")
    for item in pages.items:
        make_vote(voter, item, "B")
    votes = Entry.objects.filter(kind="vote", item__in=pages.items)
    votes.update(comment=f"{SECRET} of a vote", category=SECRET)
    restate(run)
    seal_all(run.queue.project)
    Run.objects.filter(pk=run.pk).update(is_shared=True)
    pages.run = Run.objects.select_related("queue").get(pk=run.pk)
    compute(pages.run)
    pages.values |= {"item_id": pages.items[0].pk, "call_id": calls[0].pk, "part": ""}
    pages.of_pages["reveal"] = {"vote_uid": votes[0].uid}
    return pages


def body_of(response):
    if response.streaming:
        return b"".join(response.streaming_content).decode(errors="replace")
    return response.content.decode(errors="replace")


def telling(scene):
    """The pages that tell it to somebody who may see everything, or to anybody."""
    return {
        name
        for client in (scene.client, Client())
        for name, address in scene.addresses().items()
        if SECRET in body_of(client.get(address, SERVER_NAME="localhost"))
    }


def test_no_page_tells_a_vote_or_a_verdict_that_is_held_out(scene):
    assert 2 <= len(scene.items) < scene.run.queue.items.count()
    assert telling(scene) == set()
    # Afterwards they are told: by these addresses it is seen that something was kept back.
    variants.end(scene.run)
    compute(scene.run)
    assert telling(scene) >= {"run-pair", "run-call"}


@pytest.mark.parametrize("form", FILES)
def test_no_file_does(scene, form):
    response = scene.client.get(f"/runs/{scene.run.pk}/export/{form}", SERVER_NAME="localhost")
    if form in ("jsonl", "ledger"):
        assert response.status_code == 409
        return
    text = body_of(response)
    assert SECRET not in text
    rows = list(csv.reader(io.StringIO(text)))
    held = {str(item.pk) for item in scene.items} | {i.external_id for i in scene.items} - {""}
    outputs = {str(pk) for item in scene.items for pk in (item.a_id, item.b_id)}
    for row in rows[1:]:
        if form == "labels" and row[0] in held:
            assert not any(row[1:])
        if form == "votes":
            assert row[0] not in outputs


def test_no_cell_of_the_parquet_does(scene):
    address = f"/runs/{scene.run.pk}/export/labels-parquet"
    response = scene.client.get(address, SERVER_NAME="localhost")
    frame = pandas.read_parquet(io.BytesIO(b"".join(response.streaming_content)))
    names = frame.set_index(frame.columns[0]).notna().any(axis=1)
    held = {i.external_id or str(i.pk) for i in scene.items}
    assert held & {*names.index}
    assert not held & {*names[names].index}
    assert names.any()


def test_no_address_of_the_api_does(scene):
    token = make_key("read", "manage", "verdicts", "vote", project=scene.run.queue.project)[1]
    client, asked = key_client(token), []
    for prefix, document in (("", api), ("", grandjury_api)):
        for path, about in document.get_openapi_schema()["paths"].items():
            if "get" in about:
                try:
                    address = prefix + path.format(**scene.values)
                except KeyError:
                    continue
                text = body_of(client.get(address, SERVER_NAME="localhost"))
                asked.append(address)
                assert SECRET not in text, address
    assert len(asked) > 15

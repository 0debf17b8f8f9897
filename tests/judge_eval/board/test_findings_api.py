"""The findings by REST: all that the boards show, for whoever may see results, and blind voters."""

import pytest
from django.test import Client

from judge_eval.board import cache
from judge_eval.board.api import Ready
from judge_eval.models import Findings
from tests.helpers.pages import HTMX
from tests.helpers.run_findings import compute, voted_run
from tests.makers import (
    key_client,
    make_key,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    voter_client,
)
from tests.voting.ballot.test_blindness import Study, assert_blind
from voting.models import Project
from voting.people.voters import voter_of_key

pytestmark = pytest.mark.django_db


def url(run, whole=True):
    return f"/api/runs/{run.pk if whole else str(run.pk)[:8]}/findings"


def reader(*scopes, **fields):
    return key_client(make_key(*(scopes or ("read",)), **fields)[1])


def test_everything_that_is_stored_is_given_and_nothing_is_lost():
    run = voted_run()
    found = Findings.objects.get(run=run)
    response = reader().get(url(run))
    assert response.status_code == 200
    reply = response.json()
    Ready.model_validate(reply)
    assert (reply.pop("state"), reply.pop("behind")) == ("ready", False)
    as_of = (reply.pop("ledger_seq"), reply.pop("newer"), reply.pop("sealed"))
    assert as_of == (Project.objects.get().head_seq, 0, True)
    assert reply.pop("computed_at").startswith(found.computed_at.isoformat()[:19])
    assert reply.pop("silent") == []
    named = [{"id", "external_id"} & set(pair) for pair in reply["disputed"]]
    assert named == [{"id", "external_id"}] * len(named) != []
    for pair in reply["disputed"]:
        del pair["id"], pair["external_id"]
    assert [row[0] for row in reply.pop("rows")] == [
        "near-judge",
        "contrary-judge",
        "floor-baseline",
    ]
    assert reply == found.data


def test_what_was_not_computed_comes_as_null_with_its_reason():
    run = make_run(pairs=1)
    stored = compute(run).data
    reply = reader().get(url(run)).json()
    Ready.model_validate(reply)
    assert {name: reply[name] for name in stored} == stored
    assert reply["alt_test"] is None
    assert "0 people voted" in reply["alt_test_why"]
    assert reply["judges"][0]["rating"]["why"]


def test_a_figure_that_is_new_is_given_before_it_is_described():
    run = voted_run(pairs=2)
    found = Findings.objects.get(run=run)
    found.data["brand_new"] = {"value": 1}
    found.save()
    assert reader().get(url(run)).json()["brand_new"] == {"value": 1}


def test_people_who_could_not_be_compared_are_there_too():
    run = voted_run()
    late = make_voter(run)
    pair = pairs_of(run)[0]
    pair.votes_wanted = 9
    pair.save()
    make_vote(late, pair, "A")
    seal_all(run.queue.project)
    compute(run)
    humans = reader().get(url(run)).json()["alt_test"]["judges"][0]["humans"]
    assert [human["name"] for human in humans if human["why"]] == [late.pseudonym]


def test_it_says_that_it_is_being_computed_and_asks_for_it():
    run = voted_run(computed=False)
    assert reader().get(url(run)).json() == {"state": "computing"}
    assert Findings.objects.filter(run=run, part="", data__isnull=True).count() == 1


def test_it_says_when_newer_votes_are_being_counted():
    run = voted_run(pairs=2)
    pair = pairs_of(run)[0]
    pair.votes_wanted = 9
    pair.save()
    make_vote(make_voter(run), pair, "A")
    seal_all(run.queue.project)
    reply = reader().get(url(run)).json()
    assert reply["behind"] is True
    assert reply["as_of"]["votes"] == 6


def test_a_part_is_computed_for_whoever_asks():
    run = voted_run(pairs=4)
    client, part = reader(), "generator:generator-0"
    assert client.get(url(run), {"part": part}).json() == {"state": "computing"}
    compute(run, part)
    reply = client.get(url(run), {"part": part}).json()
    assert reply["as_of"]["part"] == "pairs with generator-0"
    assert "parts" not in reply


@pytest.mark.parametrize(
    "part, status, says",
    [
        ("colour:red", 422, "tag:…, generator:…, group:… or ballot:decided"),
        ("ballot:everything", 422, "ballot:decided"),
        ("tag:", 422, "tag:…"),
        ("tag:nowhere", 404, "this run has no tag 'nowhere'"),
        ("generator:nobody", 404, "this run has no generator 'nobody'"),
    ],
)
def test_a_part_that_is_none_is_refused_in_words(part, status, says):
    run = voted_run(pairs=1)
    response = reader().get(url(run), {"part": part})
    assert response.status_code == status
    assert says in response.json()["detail"]
    assert Findings.objects.filter(run=run).count() == 1


def test_more_parts_than_anybody_looks_at_are_refused(monkeypatch):
    monkeypatch.setattr(cache, "MOST_PARTS", 1)
    run = voted_run(pairs=1)
    response = reader().get(url(run), {"part": "ballot:decided"})
    assert response.status_code == 429


def test_a_key_that_votes_blindly_is_told_nothing_until_it_has_voted():
    run = voted_run(people=1, pairs=2)
    for pair in pairs_of(run):
        pair.votes_wanted = 2
        pair.save()
    api_key, token = make_key("read", "vote")
    client = key_client(token)
    response = client.get(url(run))
    assert response.status_code == 403
    for secret in (b"near-judge", b"contrary", b"generator-"):
        assert secret not in response.content
    for pair in pairs_of(run):
        make_vote(voter_of_key(run.queue.project_id, api_key), pair, "A")
    assert client.get(url(run)).status_code == 200
    assert reader("read", "vote", "verdicts").get(url(run)).status_code == 200


def test_a_voter_gets_nothing_of_the_findings_from_any_page_or_from_the_api():
    study = Study()
    compute(study.run)
    compute(study.run, "tag:ulm-tag")
    board = f"/runs/{study.run.pk}/"
    addresses = [
        url(study.run),
        *(
            f"{board}{page}?part={part}"
            for page in ("alt-test/", "alt-test/items/", "models/")
            for part in ("", "tag:ulm-tag", "generator:nobody")
        ),
    ]
    voter = voter_client(make_voter(study.run))
    answers = {address: voter.get(address) for address in addresses}
    answers |= {f"htmx {address}": voter.get(address, headers=HTMX) for address in addresses}
    assert {answer.status_code for answer in answers.values()} == {401, 403}
    blindly = key_client(make_key("read", "vote")[1]).get(url(study.run))
    assert blindly.status_code == 403
    assert_blind(study, answers | {"key": blindly})


def test_the_document_describes_both_answers_and_every_figure():
    api = Client().get("/api/openapi.json").json()
    operation = api["paths"]["/api/runs/{run_id}/findings"]["get"]
    assert {parameter["name"] for parameter in operation["parameters"]} == {"run_id", "part"}
    assert {"200", "401", "403", "404", "422", "429"} <= set(operation["responses"])
    schemas = api["components"]["schemas"]
    run = voted_run(pairs=2)
    stored = Findings.objects.get(run=run).data
    of_the_answer = {"state", "computed_at", "behind", "ledger_seq", "newer", "sealed", "rows"}
    of_the_answer |= {"silent"}
    assert set(stored) | of_the_answer == set(schemas["Ready"]["properties"])
    judge = stored["judges"][0]
    assert set(judge) == set(schemas["JudgeFindings"]["properties"])
    assert set(stored["models"]["boards"][1]) == set(schemas["ModelBoard"]["properties"])
    assert schemas["Computing"]["properties"]["state"]["const"] == "computing"

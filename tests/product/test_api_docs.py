"""The OpenAPI document says what the API does, and its page works under the policy."""

import re

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

pytestmark = pytest.mark.django_db

PATHS = {
    "/api/runs": ["get", "post"],
    "/api/runs/demo": ["post"],
    "/api/runs/estimate": ["post"],
    "/api/runs/{run_id}": ["get"],
    "/api/runs/{run_id}/start": ["post"],
    "/api/runs/{run_id}/stop": ["post"],
    "/api/runs/{run_id}/resume": ["post"],
    "/api/runs/{run_id}/retry": ["post"],
    "/api/runs/{run_id}/duplicate": ["post"],
    "/api/runs/{run_id}/events": ["get"],
    "/api/runs/import": ["post"],
    "/api/runs/{run_id}/import": ["post"],
    "/api/imports/{import_id}": ["get"],
    "/api/imports/{import_id}/stop": ["post"],
    "/api/runs/{run_id}/export": ["get"],
    "/api/runs/{run_id}/judge-eval/pending": ["get"],
    "/api/runs/{run_id}/judge-eval/vote": ["post"],
    "/api/runs/{run_id}/judge-eval/simulate": ["post"],
    "/api/runs/{run_id}/judge-eval/results": ["get"],
    "/api/runs/{run_id}/findings": ["get"],
    "/api/runs/{run_id}/scores": ["post"],
    "/api/runs/{run_id}/scores/{report_id}": ["get"],
    "/api/runs/{run_id}/scores/{report_id}/download": ["get"],
    "/api/runs/{run_id}/shares": ["get", "post"],
    "/api/runs/{run_id}/shares/{share_id}/revoke": ["post"],
    "/api/projects/{project_id}/shares": ["get", "post"],
    "/api/projects/{project_id}/shares/{share_id}/revoke": ["post"],
}


def document():
    response = Client().get("/api/openapi.json")
    assert response.status_code == 200
    return response.json()


def references(value):
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "$ref":
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_the_document_is_openapi_3_1_and_whole():
    api = document()
    assert api["openapi"].startswith("3.1")
    assert api["info"]["title"] == "HumanJudge"
    for reference in references(api):
        place = api
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def test_every_endpoint_is_there_with_its_key_and_its_words():
    api = document()
    assert {path: sorted(api["paths"][path]) for path in PATHS} == PATHS
    operations = [operation for methods in api["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        assert operation["security"] == [{"KeyAuth": []}]
        assert operation["description"]
    assert api["components"]["securitySchemes"]["KeyAuth"]["scheme"] == "bearer"


def test_the_parameters_of_the_pending_pairs_are_named():
    pending = document()["paths"]["/api/runs/{run_id}/judge-eval/pending"]["get"]
    names = {parameter["name"] for parameter in pending["parameters"]}
    assert names == {"run_id", "limit", "cursor", "verdicts"}


def test_the_errors_of_a_vote_are_documented():
    responses = document()["paths"]["/api/runs/{run_id}/judge-eval/vote"]["post"]["responses"]
    assert {"200", "401", "403", "404", "409", "422", "429"} <= set(responses)


def test_every_refusal_has_one_shape():
    problem = {"$ref": "#/components/schemas/Problem"}
    for methods in document()["paths"].values():
        for operation in methods.values():
            refusals = {s: each for s, each in operation["responses"].items() if s >= "400"}
            assert {"401", "403", "500", "503"} <= set(refusals)
            for refusal in refusals.values():
                assert refusal["content"] == {"application/json": {"schema": problem}}


def test_the_schemas_name_the_fields_of_the_answers():
    schemas = document()["components"]["schemas"]
    assert {"id", "gen_a_id", "gen_b_id", "prompt_text", "svg_a", "svg_b", "verdicts"} <= set(
        schemas["Task"]["properties"]
    )
    assert {"judge", "elo", "agree", "disagree", "total", "agree_rate"} <= set(
        schemas["Standing"]["properties"]
    )


def test_a_prompt_is_documented_as_text_or_as_messages():
    body = document()["paths"]["/api/runs"]["post"]["requestBody"]["content"]["application/json"]
    *alone, named = body["schema"]["properties"]["prompts"]["items"]["anyOf"]
    for ways in (alone, named["properties"]["text"]["anyOf"]):
        assert [way["type"] for way in ways] == ["string", "array"]
        assert ways[1]["items"]["properties"].keys() == {"role", "content"}


def test_the_page_has_no_inline_script_and_nothing_from_elsewhere():
    response = Client().get("/api/docs")
    body = response.content.decode()
    assert response.status_code == 200
    assert "//cdn" not in body
    assert "https://" not in body
    for attributes, content in re.findall(r"<script([^>]*)>(.*?)</script>", body, re.DOTALL):
        assert not content.strip() or 'type="application/json"' in attributes
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", body)


def test_what_the_page_names_is_there():
    body = Client().get("/api/docs").content.decode()
    named = re.findall(r'(?:src|href)="/static/([^"?]+)', body)
    assert any(name.endswith("swagger-ui-bundle.js") for name in named)
    assert all(finders.find(name) for name in named)

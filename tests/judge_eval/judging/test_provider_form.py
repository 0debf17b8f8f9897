"""Providers are made and changed on a page of their own, by who administers; no key is shown."""

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.test import Client

from judge_eval.judging import provider_access
from judge_eval.models import RESERVED_NAMES, Judge, Provider
from tests.helpers.pages import queries_of, text_of
from tests.helpers.run_rows import make_provider
from tests.makers import make_project, member_client, user_client

pytestmark = pytest.mark.django_db

NEW = "/providers/new/"


def filled(**changes):
    data = {
        "name": "openrouter",
        "base_url": "https://openrouter.example/api/v1",
        "key_variable": "OPENROUTER_API_KEY",
        "structured_output": "on",
        "timeout_s": "60",
        "concurrency": "8",
        "requests_per_minute": "",
        "prices": '{"gpt": {"input": "2.50", "output": 10}}',
    }
    return data | changes


def test_a_provider_is_made_and_that_is_noted():
    response = user_client("root").post(NEW, filled())
    assert (response.status_code, response.url) == (302, "/providers/#provider-openrouter")
    provider = Provider.objects.get()
    assert (provider.name, provider.key_variable) == ("openrouter", "OPENROUTER_API_KEY")
    assert provider.prices == {"gpt": {"input": "2.50", "output": 10}}
    note = LogEntry.objects.get()
    assert (note.user.username, note.object_repr) == ("root", "openrouter")
    assert note.get_change_message() == "Made."
    client = user_client("root")
    assert "y is saved" in text_of(client.post(NEW, filled(name="y"), follow=True))


def test_without_prices_there_are_none():
    user_client().post(NEW, filled(prices=""))
    assert Provider.objects.get().prices == {}


@pytest.mark.parametrize(
    "field, value, error",
    [
        ("prices", "[]", "must be an object, not a list"),
        ("prices", "{", "Enter a valid JSON"),
        ("prices", '{"m": 3}', "m: must be an object, not a number"),
        ("prices", '{"m": {"input": 1}}', "m.output: is missing"),
        ("prices", '{"m": {"input": 1, "output": 1, "inptu": 1}}', "m.inptu: unknown"),
        ("prices", '{"m": {"input": "-1", "output": 1}}', "m.input: must be at least 0"),
        ("prices", '{"m": {"input": "NaN", "output": 1}}', "m.input: must be a finite number"),
        ("prices", '{"m": {"input": 1, "output": true}}', "m.output: must be a number, not true"),
        ("prices", '{"m": {"input": "a", "output": 1}}', "m.input: must be a number, not text"),
        (
            "prices",
            '{"m": {"input": 1, "output": 1, "picture_tokens": true}}',
            "m.picture_tokens: must be a whole number",
        ),
        ("name", "baseline", "baseline is what judges that are not asked go by"),
        ("name", "imported", "imported is what"),
        ("key_variable", "SECRET_KEY", "ends in _API_KEY"),
        ("key_variable", "sk-1234567890", "ends in _API_KEY"),
        ("base_url", "openrouter.example", "An http or https address"),
        ("base_url", "file:///etc/passwd", "An http or https address"),
        ("concurrency", "0", "greater than or equal to 1"),
        ("timeout_s", "0", "greater than or equal to 1"),
        ("requests_per_minute", "0", "greater than or equal to 1"),
        ("prices", '{"a\\u0000": {"input": 1, "output": 1}}', "control characters"),
        ("project", "x", "not a valid UUID"),
        ("protocol", "telex", "Select a valid choice"),
        ("name", "x", "already exists"),
    ],
)
def test_what_cannot_be_is_refused_by_the_name_of_its_field(field, value, error):
    make_provider(name="x")
    response = user_client().post(NEW, filled(**{field: value}))
    assert response.status_code == 422
    assert error in text_of(response)
    assert [*response.context["form"].errors] == [field]
    assert f'href="#id_{field}"' in response.content.decode()
    assert Provider.objects.count() == 1


def test_a_key_that_was_typed_in_is_not_shown_again():
    response = user_client().post(NEW, filled(key_variable="sk-of-mine-123", name="mine"))
    assert response.status_code == 422
    body = response.content.decode()
    assert "sk-of-mine-123" not in body
    assert 'value="mine"' in body
    assert "checked" in body


def test_a_key_that_is_set_is_on_no_page(monkeypatch):
    monkeypatch.setenv("OF_THIS_TEST_API_KEY", "sk-secret-value")
    provider = make_provider(name="x", key_variable="OF_THIS_TEST_API_KEY")
    for page in ("/providers/", f"/providers/{provider.pk}/"):
        response = user_client().get(page)
        assert response.status_code == 200
        assert b"OF_THIS_TEST_API_KEY" in response.content
        assert b"sk-secret-value" not in response.content


def test_a_change_leaves_what_workers_wrote_meanwhile(monkeypatch):
    provider = make_provider(name="x", base_url="https://a.example/v1", refused={"m": ["stop"]})
    page, prices = f"/providers/{provider.pk}/", {"m": {"input": "0", "output": "0.5"}}
    data = filled(name="x", base_url=provider.base_url, prices=json.dumps(prices))
    save = provider_access.save

    def slowly(*args):
        Provider.objects.update(pauses={"m": ["2030-01-01", "busy"]})
        save(*args)

    monkeypatch.setattr(provider_access, "save", slowly)
    assert user_client().post(page, data).status_code == 302
    provider.refresh_from_db()
    assert (provider.prices, provider.refused) == (prices, {"m": ["stop"]})
    assert provider.pauses == {"m": ["2030-01-01", "busy"]}
    changed = LogEntry.objects.get().get_change_message()
    assert "prices" in changed
    assert "0.5" not in changed
    # At another address nothing is known of what it refuses.
    assert user_client().post(page, data | {"base_url": "https://b.example/v1"}).status_code == 302
    provider.refresh_from_db()
    assert (provider.base_url, provider.refused) == ("https://b.example/v1", {})


def test_without_the_token_of_the_page_nothing_is_written():
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create(username="root", is_superuser=True))
    assert client.post(NEW, filled()).status_code == 403
    assert not Provider.objects.exists()


@pytest.mark.parametrize(
    "is_staff, permissions, may",
    [
        (True, ["add_provider"], {NEW}),
        (True, ["change_provider"], {"change"}),
        (True, [], set()),
        (False, ["add_provider", "change_provider"], set()),
    ],
)
def test_it_takes_what_the_admin_takes(is_staff, permissions, may):
    provider = make_provider(name="x")
    user = User.objects.create(username="clerk", is_staff=is_staff)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    pages = {NEW: NEW, "change": f"/providers/{provider.pk}/"}
    assert {name for name, at in pages.items() if client.get(at).status_code == 200} == may
    assert client.get("/providers/").status_code == (200 if "change" in may else 403)


def test_who_only_runs_studies_is_led_to_no_form():
    project = make_project()
    make_provider(name="x")
    body = member_client(project, "evaluator").get("/providers/").content.decode()
    assert "Try it" in body
    assert NEW not in body
    assert ">Change<" not in body
    body = user_client().get("/providers/").content.decode()
    assert f'href="{NEW}"' in body
    assert f'href="/providers/{Provider.objects.get(name="x").pk}/"' in body


def test_the_form_takes_as_many_queries_however_many_projects_there_are():
    provider, client = make_provider(name="x"), user_client()
    page = f"/providers/{provider.pk}/"
    client.get(page)
    few = queries_of(client, page)
    for number in range(5):
        make_project(f"Project {number}")
    assert queries_of(client, page) == few


@pytest.mark.parametrize("name", RESERVED_NAMES)
def test_it_is_refused(name):
    provider = Provider(name=name, base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ValidationError, match=f"{name} is what judges that are not asked go by"):
        provider.full_clean()


def test_these_are_all_and_others_are_taken():
    assert set(RESERVED_NAMES) == {Judge.BASELINE, Judge.IMPORTED}
    Provider(name="imports", base_url="http://127.0.0.1:1/v1").full_clean()

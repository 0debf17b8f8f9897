"""Every table of the admin: its list, search, filters and pages, at a price that does not grow."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from tests.helpers.admin_rows import make_rows_of_everything
from tests.helpers.pages import queries_of
from tests.voting.curating.test_admin import admin_client
from voting.admin import FirstPages
from voting.models import ApiKey, Member, Project

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

TABLES = {model._meta.label: page for model, page in admin.site._registry.items()}
# What is made here by hand; everything else is written by the product, and read here.
MADE_HERE = {
    *("auth.Group", "auth.User"),
    *("voting.ApiKey", "voting.Invite", "voting.Project", "voting.VoterPrompt"),
}
CHANGED_HERE = MADE_HERE | {"judge_eval.Run", "voting.Queue", "voting.Voter"}
DELETED_HERE = {"auth.Group", "auth.User", "judge_eval.Provider", "voting.Invite"}


def address(page, what="changelist", *args):
    return reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_{what}", args=args)


@pytest.fixture(scope="module")
def made_once(module_db):
    """Whoever looks, and rows of everything, in which two secrets stand."""
    client = admin_client()
    make_rows_of_everything(2)  # a filter by project is there when there are two
    ApiKey.objects.update(secret_sha256="5ec2e7" * 10)
    User.objects.update(password="pbkdf2_sha256$1$salt$0123456789abcdef")
    client.force_login(User.objects.get(username="root"))
    return client


@pytest.fixture
def client(made_once):
    return made_once


def pages_of(client, page):
    """The addresses of a table: its list, with everything it can be narrowed by, one row, a new."""
    lists = address(page)
    row = page.model._default_manager.order_by("pk").first()
    shown = client.get(lists).context["cl"]
    assert shown.has_filters == bool(page.list_filter), page.opts.label
    chosen = [list(spec.choices(shown))[-1]["query_string"][1:] for spec in shown.filter_specs]
    narrowed = "&".join([*chosen, *(["q=ada"] if page.search_fields else [])])
    made = [address(page, "add")] if page.opts.label in MADE_HERE else []
    return [lists, f"{lists}?{narrowed}", address(page, "change", row.pk), *made]


def test_each_page_answers_and_costs_the_same_with_two_rows_as_with_ten(client):
    pages = {label: pages_of(client, page) for label, page in TABLES.items()}

    def costs():
        return {each: queries_of(client, each) for found in pages.values() for each in found}

    two = costs()
    make_rows_of_everything(8)
    many = costs()
    assert {each: (two[each], many[each]) for each in two if many[each] > two[each]} == {}
    assert max(many.values()) <= 20


@pytest.mark.parametrize("right, tables", [
    ("add", MADE_HERE), ("change", CHANGED_HERE), ("delete", DELETED_HERE)
])  # fmt: skip
def test_what_the_product_writes_not_even_a_superuser_changes(right, tables, rf, client):
    request = rf.get("/")
    request.user = User.objects.get(username="root")
    assert (request.user.is_staff, request.user.is_superuser) == (True, True)
    may = {label for label, p in TABLES.items() if getattr(p, f"has_{right}_permission")(request)}
    assert may == tables


def test_no_page_shows_a_hash_of_a_secret_or_a_password_and_a_row_links_to_its_page(client):
    for label, page in TABLES.items():
        row = page.model._default_manager.order_by("pk").first()
        for each in (address(page), address(page, "change", row.pk)):
            body = client.get(each).content.decode()
            assert "5ec2e7" not in body, each
            assert "0123456789abcdef" not in body, each
            assert "token_sha256" not in body, each
        # The last that was opened is its row.
        if callable(page.view_on_site):
            assert f'href="{page.view_on_site(row)}"' in body, label


def test_a_list_counts_so_far_and_no_further(monkeypatch, client):
    monkeypatch.setattr(FirstPages, "MOST", 120)
    make_rows_of_everything(130)
    shown = client.get("/admin/voting/entry/?p=2")
    assert (shown.status_code, shown.context["cl"].result_count) == (200, 120)


def test_members_cost_the_same_however_many_there_are(client):
    project = Project.objects.create(name="Project")
    ada = User.objects.create(username="ada")
    pages = [
        address(TABLES["voting.Project"], "change", project.pk),
        address(TABLES["auth.User"], "change", ada.pk),
    ]

    def costs(number):
        for n in range(number):
            Member.objects.create(
                project=project, user=User.objects.create(username=f"{number}-{n}")
            )
            Member.objects.create(project=Project.objects.create(name="Other"), user=ada)
        return [queries_of(client, page) for page in pages]

    costs(0)  # what a process looks up once
    assert costs(1) == costs(6)


def test_projects_and_queues_are_found_by_typing(client):
    for model, field in (("voterprompt", "project"), ("apikey", "project"), ("invite", "queue")):
        query = {"app_label": "voting", "model_name": model, "field_name": field, "term": "e"}
        found = client.get("/admin/autocomplete/", query)
        assert found.status_code == 200, (field, found.content)
        assert found.json()["results"], field


@pytest.mark.parametrize(
    "asked",
    [
        "created_at__year=999999999999999999999",
        "created_at__year=x",
        "project__id__exact=x",
        "q=%00",
        "q=%ff",
        "p=999999999999999999999",
        "kind__exact=%00",
        "nothing=1",
        "project__members__user__password__startswith=p",
    ],
)
def test_a_list_that_is_asked_for_nonsense_is_a_list_or_refused(asked, client):
    answer = client.get(f"/admin/voting/queue/?{asked}")
    # Django shows the whole list again, or refuses to look through other tables.
    assert answer.status_code in (200, 302, 400), answer.status_code

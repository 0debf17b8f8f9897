"""Login by an identity provider: who gets in, as whom, and everything that lets nobody in."""

import base64
import hmac
import json
import time
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from django.contrib.auth.models import User
from django.test import Client
from joserfc import jwk

from tests.helpers.pages import text_of
from tests.helpers.waiting import PATIENCE
from tests.makers import make_run
from tests.openid_server import ADA, CLIENT, OpenIDServer
from voting.access import members, openid
from voting.access.roles import projects_where
from voting.models import Identity, Member

pytestmark = pytest.mark.django_db

START, BACK = "/login/provider/", "/login/provider/callback"
UNTRUSTED = "cannot be trusted, so nobody was logged in"


@pytest.fixture
def provider(settings):
    server = OpenIDServer()
    settings.OIDC_ISSUER, settings.OIDC_NAME = server.issuer, "Example ID"
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT
    settings.ALLOWED_HOSTS = ["testserver"]
    yield server
    server.stop()
    openid._client.cache_clear()


def begin(client, wanted=""):
    """Go to the provider and come back; return the address that it sends the browser to."""
    answer = client.get(START, {"next": wanted})
    assert answer.status_code == 302, text_of(answer)
    return requests.get(answer["Location"], allow_redirects=False, timeout=PATIENCE).headers[
        "Location"
    ]


def arrive(client, address):
    return client.get(urlsplit(address).path, dict(parse_qsl(urlsplit(address).query)))


def log_in(client=None, wanted=""):
    client = client or Client()
    return arrive(client, begin(client, wanted))


def user_of(client):
    pk = client.session.get("_auth_user_id")
    return User.objects.get(pk=pk) if pk else None


# --- who gets in --------------------------------------------------------------------------------


def test_somebody_new_gets_an_account_without_any_membership(provider):
    make_run()
    client = Client()
    provider.who |= {"preferred_username": "ada", "name": "Ada Lovelace"}
    answer = log_in(client)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    ada = user_of(client)
    assert (ada.username, ada.email, ada.first_name) == ("ada", ADA["email"], "Ada Lovelace")
    assert (ada.is_staff, ada.is_superuser, ada.has_usable_password()) == (False, False, False)
    assert not Member.objects.exists()
    assert Identity.objects.get().subject == ADA["sub"]
    assert not projects_where(ada, "see").exists()


def test_the_same_identity_is_the_same_account_whatever_its_address_became(provider):
    log_in()
    provider.who["email"] = "ada@elsewhere.example"
    client = Client()
    log_in(client)
    assert user_of(client) == User.objects.get()


def test_a_verified_address_opens_the_account_that_has_it(provider):
    ben = User.objects.create_user("ben", "Ada@Example.org", "a long enough password")
    client = Client()
    log_in(client)
    assert user_of(client) == ben


@pytest.mark.parametrize("verified", [False, None])
def test_an_address_that_is_not_verified_opens_no_account(provider, verified):
    ben = User.objects.create_user("ben", ADA["email"])
    provider.who["email_verified"] = verified
    client = Client()
    log_in(client)
    assert user_of(client) not in (None, ben)
    assert user_of(client).email == ""


@pytest.mark.parametrize("right", ["is_staff", "is_superuser"])
def test_nobody_becomes_an_admin_by_an_address(provider, right):
    User.objects.create_user("root", ADA["email"], **{right: True})
    client = Client()
    answer = log_in(client)
    assert answer.status_code == 403
    assert "administers this server" in text_of(answer)
    assert (user_of(client), Identity.objects.count()) == (None, 0)


def test_an_address_that_two_accounts_have_opens_neither(provider):
    for name in ("one", "two"):
        User.objects.create_user(name, ADA["email"])
    client = Client()
    log_in(client)
    assert user_of(client).username not in ("one", "two")


def test_names_that_are_taken_are_numbered(provider):
    User.objects.create_user("ada")
    User.objects.create_user("ada-2")
    provider.who |= {"preferred_username": "ada", "email_verified": False}
    client = Client()
    log_in(client)
    assert user_of(client).username == "ada-3"


def test_whatever_people_call_themselves_it_is_a_name_of_one_line(provider):
    hostile = "<script>alert(1)</script>\0\n" + "x" * 300
    provider.who |= {"preferred_username": hostile, "name": hostile, "email_verified": False}
    client = Client()
    log_in(client)
    ada = user_of(client)
    assert ada.username.startswith("<script>alert(1)</script> x")
    assert (len(ada.username), len(ada.first_name)) == (140, 150)
    assert b"<script>alert" not in client.get("/projects/").content


def account_named(provider, name, sub="another", email="mallory@example.org"):
    provider.who |= {"sub": sub, "email": email, "preferred_username": name, "name": name}
    client = Client()
    log_in(client)
    return user_of(client)


@pytest.mark.parametrize(
    "name, username",
    [
        ("ada@example.org", "mallory"),  # another's address
        ("ada\uff20example.org", "mallory"),  # the same with a wide "@"
        ("\u0430da", "mallory"),  # a Cyrillic "a"
        ("a\u202eda", "a da"),
        ("\uff21\uff24\uff21", "ADA-2"),  # wide letters
        (" ada ", "ada-2"),
        ("Jos\xe9", "Jose"),
        ("\u674e\u660e", "mallory"),
    ],
)
def test_a_name_that_somebody_chose_is_no_address_and_looks_like_nobody_elses(
    provider, name, username
):
    User.objects.create_user("ada", "ada@example.org")
    made = account_named(provider, name)
    assert made.username == username
    assert made.first_name == username.removesuffix("-2").replace("mallory", "")


def test_an_owner_who_adds_an_address_adds_the_account_that_has_it(provider):
    project, by = make_run().queue.project, User.objects.create_user("owner")
    mallory = account_named(provider, "ada@example.org")
    # As accounts were named before.
    User.objects.filter(pk=mallory.pk).update(username="ada@example.org")
    with pytest.raises(members.CannotBeMember, match="no account"):
        members.add_member(project, "ada@example.org", "viewer", by)
    ada = User.objects.create_user("ada", "Ada@Example.org")
    assert members.add_member(project, "ada@example.org", "viewer", by).user == ada
    User.objects.create_user("Ada@Example.org", "ben@example.org")
    with pytest.raises(members.CannotBeMember, match="several accounts"):
        members.add_member(project, "Ada@Example.org", "viewer", by)


def test_an_account_that_is_linked_to_an_identity_is_opened_by_no_other(provider):
    log_in()
    ada = User.objects.get()
    client = Client()
    provider.who["sub"] = "another"
    answer = log_in(client)
    assert (answer.status_code, user_of(client)) == (403, None)
    assert "linked to another identity" in text_of(answer)
    assert list(Identity.objects.values_list("user", "subject")) == [(ada.pk, ADA["sub"])]


def test_who_loses_a_race_for_a_name_tries_again(provider, monkeypatch):
    made = openid._new_account

    def with_somebody_before(claims):
        monkeypatch.setattr(openid, "_new_account", made)
        User.objects.create_user("ada")
        return User.objects.create_user("ada")

    provider.who["preferred_username"] = "ada"
    monkeypatch.setattr(openid, "_new_account", with_somebody_before)
    client = Client()
    log_in(client)
    assert user_of(client).username == "ada"


def test_an_account_that_is_switched_off_lets_nobody_in(provider):
    log_in()
    User.objects.update(is_active=False)
    client = Client()
    answer = log_in(client)
    assert (answer.status_code, user_of(client)) == (403, None)
    assert "switched off" in text_of(answer)


def test_a_group_of_the_provider_administers_and_leaving_it_ends_that(provider, settings):
    settings.OIDC_ADMIN_GROUP = "judge-admins"
    for groups, is_admin in (
        (["judge-admins", "x"], True),
        (["x"], False),
        ("judge-admins", False),
        (None, False),
    ):
        provider.who["groups"] = groups
        log_in()
        ada = User.objects.get()
        assert (ada.is_staff, ada.is_superuser) == (is_admin, is_admin), groups


@pytest.mark.parametrize(
    "wanted, leads_to",
    [
        ("/projects/?page=2", "/projects/?page=2"),
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("javascript:alert(1)", "/"),
        (r"\\evil.example", "/"),
    ],
)
def test_a_login_leads_to_pages_of_this_server_alone(provider, wanted, leads_to):
    assert log_in(wanted=wanted)["Location"] == leads_to


def test_what_is_asked_of_the_provider_and_how_long_the_login_lasts(provider):
    client = Client()
    log_in(client)
    [asked] = provider.asked
    assert asked["redirect_uri"] == f"http://testserver{BACK}"
    assert asked["scope"] == "openid email profile"
    assert min(len(asked["state"]), len(asked["nonce"]), len(asked["code_challenge"])) >= 20
    assert client.session.get_expiry_age() <= openid.SESSION_SECONDS
    client.post("/logout/")
    assert user_of(client) is None


def test_a_public_client_shows_its_verifier_and_has_no_secret(provider, settings):
    settings.OIDC_CLIENT_SECRET, provider.knows_secret = "", False
    client = Client()
    log_in(client)
    assert user_of(client) is not None


# --- what lets nobody in ------------------------------------------------------------------------


def packed(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def unsigned(claims, alg="none"):
    return ".".join(packed(json.dumps(part).encode()) for part in ({"alg": alg}, claims)) + "."


def signed_with_the_public_key(claims, key):
    """As if what everybody knows were a secret that is shared: an old confusion of algorithms."""
    text = unsigned(claims, "HS256").removesuffix(".")
    return f"{text}.{packed(hmac.digest(key.as_pem(private=False), text.encode(), 'sha256'))}"


LIES = {
    "another issuer": {"iss": "https://evil.example"},
    "another audience": {"aud": "another-application"},
    "another audience, by us": {"aud": "another-application", "azp": CLIENT[0]},
    "several audiences without us": {"aud": ["one", "two"], "azp": CLIENT[0]},
    "another nonce": {"nonce": "of another login"},
    "no nonce": {"nonce": None},
    "expired": {"exp": int(time.time()) - 3600},
    "not valid yet": {"nbf": int(time.time()) + 3600},
    "without an end": {"exp": None},
    "an end that is no number": {"exp": "tomorrow"},
    "without a subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a subject that is no text": {"sub": ["248289761001"]},
    "a subject with a NUL": {"sub": "a\0b"},
    "a subject without an end": {"sub": "a" * 256},
    "an address that is no text": {"email": {"x": 1}},
    "an address with a line break": {"email": "ada@example.org\nBcc: all@example.org"},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_is_not_for_this_login_lets_nobody_in(provider, lie, caplog):
    provider.lies = LIES[lie]
    refused(provider, 403, UNTRUSTED)
    assert "login by the identity provider" in caplog.text


def test_a_token_that_the_provider_did_not_sign_lets_nobody_in(provider):
    another = jwk.RSAKey.generate_key(2048, {"kid": "one"})
    for signs in (
        unsigned,
        lambda claims: provider.signed(claims, key=another),
        lambda claims: signed_with_the_public_key(claims, provider.key),
        lambda claims: provider.signed(claims, {"kid": "two"}),
        lambda claims: provider.signed(claims)[:-8] + "AAAAAAAA",
        lambda _: "no token at all",
        lambda _: "",
        lambda _: None,
    ):
        provider.signs = signs
        refused(provider, 403, UNTRUSTED)


def refused(provider, status, words, client=None):
    client = client or Client()
    answer = log_in(client)
    assert answer.status_code == status, text_of(answer)
    assert words in text_of(answer)
    assert "Traceback" not in text_of(answer)
    assert (user_of(client), User.objects.count()) == (None, 0)


def test_an_answer_to_a_login_that_was_begun_elsewhere_lets_nobody_in(provider):
    """An attacker's own code, in a link that a victim follows."""
    address = begin(Client())
    for client in (Client(), victim := Client()):
        answer = arrive(client, address)
        assert (answer.status_code, user_of(client)) == (400, None)
        assert "Begin again" in text_of(answer)
    begin(victim)
    assert arrive(victim, address).status_code == 400
    for query in ({}, {"code": "x"}, {"state": "x"}, {"code": "", "state": ""}):
        assert Client().get(BACK, query).status_code == 400


def test_an_answer_of_another_issuer_lets_nobody_in(provider):
    """RFC 9207: a provider that answers for another gets no code of ours."""
    provider.adds = {"iss": "https://evil.example"}
    refused(provider, 403, UNTRUSTED)
    assert len(provider.codes) == 1  # never sent
    provider.adds = {"iss": provider.issuer}
    log_in(client := Client())
    assert user_of(client) is not None


def test_a_provider_that_always_names_its_issuer_must_do_so(provider):
    provider.document_lies = {"authorization_response_iss_parameter_supported": True}
    refused(provider, 403, UNTRUSTED)


def test_a_code_counts_once(provider):
    client = Client()
    address = begin(client)
    assert arrive(client, address).status_code == 302
    assert arrive(Client(), address).status_code == 400
    assert arrive(client, address).status_code == 400


def test_the_provider_may_say_no(provider):
    provider.refuses = "access_denied"
    client = Client()
    answer = log_in(client)
    assert (answer.status_code, user_of(client)) == (403, None)
    assert "did not let you in" in text_of(answer)
    assert b"<b>no</b>" not in answer.content


def test_a_wrong_secret_of_this_server_is_said_without_details(provider, settings):
    settings.OIDC_CLIENT_SECRET = "old"
    refused(provider, 403, UNTRUSTED)


def test_a_provider_that_is_away_is_503(provider, settings):
    client = Client()
    address = begin(client)
    provider.stop()
    openid._client.cache_clear()  # as in a process that has asked it nothing so far
    for answer in (arrive(client, address), Client().get(START)):
        assert (answer.status_code, answer["Retry-After"]) == (503, "2")
        assert "does not answer" in text_of(answer)


@pytest.mark.parametrize(
    "lie", [{"issuer": "https://evil.example"}, {"issuer": None}, {"authorization_endpoint": None}]
)
def test_a_provider_that_describes_itself_wrongly_is_not_asked(provider, lie):
    provider.document_lies = lie
    answer = Client().get(START)
    assert answer.status_code == 403
    assert UNTRUSTED in text_of(answer)


# --- the login page -----------------------------------------------------------------------------


def test_the_button_names_the_provider_and_keeps_where_one_wanted_to_go(provider):
    page = Client().get("/login/?next=/projects/")
    assert "Log in with Example ID" in text_of(page)
    assert 'href="/login/provider/?next=/projects/"' in page.content.decode()
    assert 'name="password"' in page.content.decode()


def test_passwords_can_be_switched_off(provider, settings):
    settings.PASSWORD_LOGIN = False
    User.objects.create_user("ada", password="a long enough password", is_staff=True)
    assert 'name="password"' not in Client().get("/login/").content.decode()
    client = Client()
    answer = client.post("/login/", {"username": "ada", "password": "a long enough password"})
    assert (answer.status_code, user_of(client)) == (403, None)
    assert "takes no passwords" in text_of(answer)


def test_without_a_provider_there_is_no_such_page(settings):
    settings.OIDC_ISSUER = ""
    assert Client().get(START).status_code == 404
    assert Client().get(BACK).status_code == 404
    assert "provider" not in Client().get("/login/").content.decode()

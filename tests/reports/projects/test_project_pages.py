"""The pages that hold a project together: members and roles, voters, invites, keys, settings."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tests.helpers.pages import queries_of, text_of
from tests.makers import (
    make_invite,
    make_key,
    make_project,
    make_run,
    make_vote,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    user_client,
)
from voting.access.changes import changes_of
from voting.access.keys import ScopesExceeded, create_project_key, find_key
from voting.access.roles import can
from voting.models import ApiKey, Entry, Member, Project, Voter

pytestmark = pytest.mark.django_db


def address(project, page="people/"):
    return f"/projects/{project.pk}/{page}"


def said_of(project):
    return [change.get_change_message() for change in changes_of(project)]


def roles_of(project):
    return dict(Member.objects.filter(project=project).values_list("user__username", "role"))


def member_of(project, name):
    return Member.objects.get(project=project, user__username=name)


def change(client, project, name, **data):
    return client.post(address(project, f"members/{member_of(project, name).pk}"), data)


class TestMembers:
    def test_an_owner_adds_an_account_by_name_or_address_changes_its_role_and_removes_it(self):
        project = make_project()
        User.objects.create(username="ann", email="ann@example.org")
        client = member_client(project, "owner")
        added = client.post(
            address(project, "people/add"), {"account": "ANN@example.org", "role": "viewer"}
        )
        assert added.status_code == 302
        assert roles_of(project) == {"owner": "owner", "ann": "viewer"}
        assert change(client, project, "ann", role="curator").status_code == 302
        assert "ann@example.org curator: decides about items" in text_of(
            client.get(address(project))
        )
        assert change(client, project, "ann", role="curator", remove="yes").status_code == 302
        assert roles_of(project) == {"owner": "owner"}
        assert said_of(project) == [
            "ann is no member any more; the role was curator.",
            "ann: viewer to curator.",
            "ann is a member now: viewer.",
        ]

    @pytest.mark.parametrize(
        "account, why",
        [
            ("nobody", "There is no account “nobody”"),
            ("gone", "There is no account “gone”"),
            ("owner", "is a member already"),
            ("two@example.org", "is the user name or the e-mail address of several accounts"),
            ("", "This field is required"),
        ],
    )
    def test_who_cannot_be_added_is_said_beside_the_field(self, account, why):
        project = make_project()
        User.objects.create(username="gone", is_active=False)
        for name in ("one", "two"):
            User.objects.create(username=name, email="two@example.org")
        client = member_client(project, "owner")
        answer = client.post(address(project, "people/add"), {"account": account, "role": "viewer"})
        assert answer.status_code == 422
        assert why in text_of(answer)
        assert roles_of(project) == {"owner": "owner"}
        assert said_of(project) == []

    @pytest.mark.parametrize("data", [{"role": "viewer"}, {"role": "owner", "remove": "yes"}])
    def test_the_last_owner_stays_and_may_go_once_there_is_another(self, data):
        project = make_project()
        client = member_client(project, "owner")
        member_client(project, "owner", name="other")
        User.objects.filter(username="other").update(is_active=False)
        refused = change(client, project, "owner", **data)
        assert refused.status_code == 409
        assert "keeps at least one owner" in text_of(refused)
        assert roles_of(project)["owner"] == "owner"
        User.objects.filter(username="other").update(is_active=True)
        assert change(client, project, "owner", **data).status_code == 302
        assert roles_of(project).get("owner") != "owner"
        assert client.get(address(project)).status_code in (403, 404)

    def test_a_member_of_another_project_is_not_changed_from_here(self):
        project, other = make_project(), make_project()
        member_client(other, "viewer", name="theirs")
        pk = member_of(other, "theirs").pk
        client = member_client(project, "owner")
        answer = client.post(address(project, f"members/{pk}"), {"role": "owner"})
        assert answer.status_code == 404
        assert roles_of(other) == {"theirs": "viewer"}

    def test_a_role_that_there_is_not(self):
        project = make_project()
        assert (
            change(member_client(project, "owner"), project, "owner", role="king").status_code
            == 422
        )


class TestVoters:
    def test_each_with_group_votes_and_reputation_found_by_name(self):
        run = make_run(pairs=2)
        project = run.queue.project
        ann = make_voter(run, name="Ann <b>", group="experts")
        make_voter(run, name="Bob", blocked_at=timezone.now())
        for pair in pairs_of(run):
            make_vote(ann, pair)
        seal_all(project)
        client = member_client(project, "curator")
        text = text_of(client.get(address(project) + "?show=voters"))
        assert f"Ann <b> {ann.pseudonym} experts 2 0 minutes ago 1" in text.replace("\xa0", " ")
        assert "blocked" in text
        found = text_of(client.get(address(project) + "?show=voters&q=exper"))
        assert "Ann" in found
        assert "Bob" not in found
        assert "Change the reputation" not in found

    def test_an_owner_changes_a_reputation_for_votes_from_now_on(self):
        run = make_run(pairs=2)
        project, voter = run.queue.project, make_voter(run, name="Ann")
        first, second = pairs_of(run)
        make_vote(voter, first)
        seal_all(project)
        client = member_client(project, "owner")
        asked = client.get(address(project) + f"?show=voters&voter={voter.pk}")
        assert "A change applies to new votes" in text_of(asked)
        where = address(project, f"voters/{voter.pk}")
        assert client.post(where, {"reputation": "0.5"}).status_code == 302
        make_vote(voter, second)
        seal_all(project)
        votes = Entry.objects.filter(voter=voter).order_by("seq")
        assert list(votes.values_list("reputation", flat=True)) == [1_000_000, 500_000]
        assert said_of(project) == [f"Reputation of voter {voter.pseudonym}: 1 to 0.5."]

    @pytest.mark.parametrize("value", ["0", "-1", "0.0001", "1001", "NaN", "much", "", "1e400"])
    def test_a_reputation_outside_its_bounds_is_refused(self, value):
        run = make_run()
        voter = make_voter(run)
        client = member_client(run.queue.project, "owner")
        where = address(run.queue.project, f"voters/{voter.pk}")
        answer = client.post(where, {"reputation": value})
        assert answer.status_code == 422
        assert "From 0.001 to 1,000" in text_of(answer)
        assert Voter.objects.get(pk=voter.pk).reputation == 1_000_000

    def test_a_voter_of_another_project_is_not_changed_from_here(self):
        run, project = make_run(), make_project()
        where = address(project, f"voters/{make_voter(run).pk}")
        client = member_client(project, "owner")
        assert client.post(where, {"reputation": "2"}).status_code == 404


def test_invites_are_counted_by_run():
    run = make_run()
    invite = make_invite(run)
    make_invite(run, revoked_at=timezone.now())
    make_voter(run, invite=invite)
    invite.guests.add(make_voter(run))
    text = text_of(
        member_client(run.queue.project, "owner").get(address(run.queue.project) + "?show=invites")
    )
    assert "A run of pairs 2 invites, of which 1 let people in; 2 joined." in text


def test_lists_of_people_cost_the_same_at_one_and_at_many():
    def costs(size):
        run = make_run()
        project = run.queue.project
        voters = [make_voter(run, name=f"Voter {n}") for n in range(size)]
        make_vote(voters[0], pairs_of(run)[0])
        for number in range(size):
            member_client(project, "viewer", name=f"member {number}")
            make_run(project)
            make_invite(run)
        seal_all(project)
        client = member_client(project, "owner")
        client.get(address(project))
        lists = ("members", "voters", "invites")
        return [queries_of(client, f"{address(project)}?show={shown}") for shown in lists]

    assert costs(1) == costs(12)


class TestKeys:
    def made(self, project, client, **data):
        given = {"name": "nightly", "scopes": ["read", "manage"], "days": ""} | data
        return client.post(address(project, "keys/new"), given)

    def test_a_key_is_made_shown_exactly_once_used_and_revoked(self):
        project = make_project()
        client = member_client(project, "owner")
        answer = self.made(project, client)
        assert answer.status_code == 200
        assert "no-store" in answer.headers["Cache-Control"]
        [token] = set(re.findall(r"hj_[0-9a-f]{8}_[\w-]+", answer.content.decode()))
        key = find_key(token, "hj")
        assert (key.project_id, key.scopes) == (project.pk, ["read", "manage"])
        listed = client.get(address(project, "keys/"))
        assert token not in listed.content.decode()
        text = text_of(listed)
        assert f"nightly hj_{key.prefix}… read runs and results and make, start" in text
        assert "by owner, for a script" in text
        assert "never used" not in text
        assert client.post(address(project, f"keys/{key.pk}")).status_code == 302
        assert find_key(token, "hj") is None
        assert "revoked" in text_of(client.get(address(project, "keys/")))
        assert said_of(project) == [
            f"Key “nightly ({key.prefix}…)” revoked.",
            f"Key “nightly ({key.prefix}…)” made: read, manage.",
        ]

    def test_a_key_without_a_scope_is_listed(self):
        project = make_project()
        key, _ = make_key(project=project)
        text = text_of(member_client(project, "owner").get(address(project, "keys/")))
        assert f"hj_{key.prefix}… do nothing" in text

    def test_it_never_does_more_than_its_maker_may(self):
        project = make_project()
        client = member_client(project, "owner")
        member_client(project, "owner", name="other")
        token = re.search(r"hj_\w+_[\w-]+", self.made(project, client).content.decode())[0]
        assert can(find_key(token, "hj"), "manage", project)
        assert not can(find_key(token, "hj"), "manage", make_project())
        Member.objects.filter(user__username="owner").update(role="viewer")
        assert can(find_key(token, "hj"), "see", project)
        assert not can(find_key(token, "hj"), "run", project)
        Member.objects.filter(user__username="owner").delete()
        assert not can(find_key(token, "hj"), "see", project)

    def test_no_scope_beyond_those_of_its_maker(self):
        project = make_project()
        member_client(project, "viewer", name="viewer")
        viewer = User.objects.get(username="viewer")
        with pytest.raises(ScopesExceeded, match="manage, vote"):
            create_project_key(project, "k", ["read", "vote", "manage"], None, viewer)
        assert create_project_key(project, "k", ["read"], None, viewer)

    @pytest.mark.parametrize(
        "data",
        [
            {"name": ""},
            {"scopes": []},
            {"scopes": ["ingest"]},
            {"scopes": ["everything"]},
            {"days": "0"},
            {"days": "4000"},
        ],
    )
    def test_what_cannot_be_is_said_and_no_key_is_made(self, data):
        project = make_project()
        answer = self.made(project, member_client(project, "owner"), **data)
        assert answer.status_code == 422
        assert "Please look at this again" in text_of(answer)
        assert not ApiKey.objects.exists()

    def test_it_expires(self):
        project = make_project()
        self.made(project, member_client(project, "owner"), days="7")
        left = ApiKey.objects.get().expires_at - timezone.now()
        assert timedelta(days=6) < left <= timedelta(days=7)

    def test_a_key_of_another_project_is_not_revoked_from_here(self):
        project, (key, token) = make_project(), make_key("read", project=make_project())
        client = member_client(project, "owner")
        assert client.post(address(project, f"keys/{key.pk}")).status_code == 404
        assert find_key(token, "hj")

    def test_the_list_costs_the_same_at_one_and_at_many(self):
        def cost(size):
            project = make_project()
            client = member_client(project, "owner")
            for _ in range(size):
                self.made(project, client)
            return queries_of(client, address(project, "keys/"))

        assert cost(1) == cost(60)


class TestSettings:
    def test_an_owner_renames_the_project(self):
        project = make_project("Old")
        client = member_client(project, "owner")
        where = address(project, "settings/save")
        answer = client.post(where, {"name": "New <i>"}, follow=True)
        assert "New <i>: settings" in text_of(answer)
        assert client.post(where, {"name": "New <i>"}).status_code == 302
        assert said_of(project) == ["Renamed from “Old” to “New <i>”."]
        assert member_client(project, "evaluator").post(where, {"name": "x"}).status_code == 403

    @pytest.mark.parametrize("name", ["", " ", "x" * 201, "a\0b"])
    def test_a_name_that_cannot_be(self, name):
        project = make_project("Old")
        client = member_client(project, "owner")
        assert client.post(address(project, "settings/save"), {"name": name}).status_code == 422
        assert Project.objects.get(pk=project.pk).name == "Old"


def test_the_tabs_are_those_that_a_role_may_open():
    project = make_project()
    some = ["Quality", "People", "Audit"]
    expected = {
        "owner": [*some, "Share", "Keys", "Settings"],
        "evaluator": [*some, "Share"],
        "curator": some,
    }
    for role, tabs in expected.items():
        page = member_client(project, role).get(address(project)).content.decode()
        [row] = re.findall(r'<nav class="tabs".*?</nav>', page, re.DOTALL)
        shown = re.findall(r"<a [^>]*>([^<]+)</a>", row)
        assert [tab for tab in shown if tab in expected["owner"]] == tabs
        assert re.findall(r'<a [^>]*aria-current="page">([^<]+)</a>', row) == ["People"]


def test_a_list_of_people_that_there_is_not():
    project = make_project()
    client = member_client(project, "owner")
    assert client.get(address(project) + "?show=others").status_code == 400


def test_a_project_that_there_is_not():
    assert user_client().get(address(Project(pk=make_run().pk))).status_code == 404

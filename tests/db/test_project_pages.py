"""The pages that hold a project together: members and roles, voters, invites, keys, settings."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tests.helpers.pages import queries_of, text_of
from tests.makers import (
    make_invite,
    make_project,
    make_run,
    make_vote,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    user_client,
)
from voting.changes import changes_of
from voting.models import Entry, Member, Project, Voter

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


# Of each page: who may open it.
PAGES = {
    "people/": ("owner", "evaluator", "curator"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_for_roles_that_may_and_is_nowhere_for_strangers(page):
    project = make_project()
    for role in Member.Role.values:
        status = member_client(project, role).get(address(project, page)).status_code
        assert status == (200 if role in PAGES[page] else 403), role
    assert member_client(project, "").get(address(project, page)).status_code == 404
    elsewhere = member_client(make_project(), "owner", name="owner of another")
    assert elsewhere.get(address(project, page)).status_code == 404
    assert user_client("administrator").get(address(project, page)).status_code == 200


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
            ("two@example.org", "Several accounts have the address"),
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

    @pytest.mark.parametrize("role", ["evaluator", "curator", "viewer", ""])
    def test_nobody_else_changes_members(self, role):
        project = make_project()
        member_client(project, "owner")
        client = member_client(project, role)
        expected = 403 if role else 404
        assert change(client, project, "owner", role="viewer").status_code == expected
        added = client.post(address(project, "people/add"), {"account": "owner", "role": "owner"})
        assert added.status_code == expected
        assert roles_of(project)["owner"] == "owner"

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
        assert "It concerns votes from now on" in text_of(asked)
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
    assert "A run of pairs : 2 invites, of which 1 let people in; 2 joined." in text


@pytest.mark.parametrize("shown", ["members", "voters", "invites"])
def test_lists_of_people_cost_the_same_at_one_and_at_many(shown):
    def cost(size):
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
        return queries_of(client, address(project) + f"?show={shown}")

    assert cost(1) == cost(60)


def test_a_list_of_people_that_there_is_not():
    project = make_project()
    client = member_client(project, "owner")
    assert client.get(address(project) + "?show=others").status_code == 400


def test_a_project_that_there_is_not():
    assert user_client().get(address(Project(pk=make_run().pk))).status_code == 404

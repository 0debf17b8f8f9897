"""Two owners who demote or remove each other at once: one of them stays."""

from functools import partial

import pytest
from django.contrib.auth.models import User

from tests.helpers.concurrent_calls import only, together
from tests.makers import make_project
from voting.access import members
from voting.models import Member

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("is_removal", [True, False])
def test_a_project_keeps_an_owner(is_removal):
    project = make_project()
    one, two = (User.objects.create(username=name) for name in ("one", "two"))
    first, second = (
        Member.objects.create(project=project, user=u, role="owner") for u in (one, two)
    )

    def against(member, by):
        if is_removal:
            return partial(members.remove_member, project, member.pk, by)
        return partial(members.change_role, project, member.pk, "viewer", by)

    answers = together(against(first, two), against(second, one))

    assert len(only(members.LastOwner, answers)) == 1, answers
    assert len(only(Member, answers)) == 1
    assert Member.objects.filter(project=project, role="owner").count() == 1


def test_the_same_account_is_added_once():
    project, by = make_project(), User.objects.create(username="by")
    User.objects.create(username="ann")
    answers = together(*[partial(members.add_member, project, "ann", "viewer", by)] * 4)
    assert len(only(Member, answers)) == 1, answers
    assert len(only(members.CannotBeMember, answers)) == 3

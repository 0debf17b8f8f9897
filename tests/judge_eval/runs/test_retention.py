"""Raw replies go when their project says so; all that was made of them stays."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from judge_eval.models import Call, Verdict
from judge_eval.runs import deletion, lifecycle
from tests.helpers.pages import text_of
from tests.helpers.run_maker import go_on, make_judging, says
from tests.makers import make_project, member_client, user_client
from voting.access.changes import changes_of

pytestmark = pytest.mark.django_db
RAW = "I like both, says the secret reply."


@pytest.fixture
def run(at):
    """A finished run of one verdict, for which the judge had to be asked once more."""
    run = make_judging(at, judges=["judge-x"], verdict_orders="random")
    says(at, RAW, times=1, models=["judge-x"])
    run = go_on(run)
    lifecycle.stop(run.pk)
    run.refresh_from_db()
    return run


def in_days(days):
    return timezone.now() + timedelta(days=days)


def rows(run):
    """Return all that is known of a run's calls and verdicts but the raw replies."""
    kept = [f.name for f in Call._meta.concrete_fields if f.name not in GO]
    verdicts = Verdict.objects.filter(judge__run=run)
    return list(run.calls.order_by("pk").values(*kept)), list(verdicts.values())


GO = {"reply", "reply_removed_at", "changes"}


def test_replies_go_after_their_days_and_nothing_else(run, monkeypatch):
    monkeypatch.setattr(deletion, "AT_ONCE", 2)
    before, calls = rows(run), run.calls.exclude(reply="")
    assert calls.count() == 3
    assert deletion.remove_old_replies(in_days(1000)) == 0
    deletion.set_retention(run.queue.project, 30)
    assert deletion.remove_old_replies(in_days(29)) == 0
    assert deletion.remove_old_replies(in_days(31)) == 3
    assert not calls.exists()
    assert rows(run) == before
    assert Call.objects.filter(reply_removed_at__isnull=False).count() == 3
    everything = [*Call.objects.values(), *run.events.values("text", "data")]
    assert "secret reply" not in str(everything)
    page = f"/runs/{run.pk}/calls/{Call.objects.get(purpose='judge').pk}/"
    said = text_of(user_client().get(page))
    assert f"Removed on {in_days(31):%-d %b %Y} by the project's retention." in said
    assert "what it had said was removed by the project's retention" in said
    assert deletion.remove_old_replies(in_days(40)) == 0


def test_a_run_that_goes_on_and_other_projects_keep_theirs(at, run):
    other = go_on(make_judging(at, judges=["judge-y"]))
    assert other.state == "voting"
    deletion.set_retention(other.queue.project, 1)
    assert deletion.remove_old_replies(in_days(10)) == 0
    deletion.set_retention(run.queue.project, 1)
    deletion.set_retention(run.queue.project, None)
    assert deletion.remove_old_replies(in_days(10)) == 0


def test_a_reply_that_was_removed_answers_no_other_call(at, run):
    deletion.set_retention(run.queue.project, 1)
    deletion.remove_old_replies(in_days(2))
    at.control(reset=True)
    again = go_on(lifecycle.start(lifecycle.duplicate(run.pk).pk))
    assert again.state == "voting"
    assert len(at.requests) == 3
    assert not again.calls.filter(reused__isnull=False).exists()


def test_owners_say_it_on_a_page_and_others_may_not():
    project = make_project()
    page = f"/projects/{project.pk}/settings/save"
    owner, as_it_is = member_client(project, "owner"), {"name": project.name}
    said = text_of(owner.post(page, as_it_is | {"days": "30"}, follow=True))
    assert "Raw replies are removed 30 days after they came." in said
    assert owner.post(page, as_it_is | {"days": "0"}).status_code == 422
    project.refresh_from_db()
    assert project.keep_replies_days == 30
    assert "Raw replies are kept." in text_of(owner.post(page, as_it_is, follow=True))
    noted = [change.change_message for change in changes_of(project)]
    assert noted == ["Raw replies are kept for good.", "Raw replies are kept for 30 days."]
    for role, status in (("evaluator", 403), ("", 404)):
        answer = member_client(project, role).post(page, as_it_is | {"days": "1"})
        assert answer.status_code == status


def test_the_command_says_how_many_it_removed(run, capsys):
    Call.objects.update(done_at=in_days(-3))
    call_command("keep_replies", str(run.queue.project_id), days=2)
    assert capsys.readouterr().out == "3 replies removed\n"
    for project, days in ((str(run.pk), 2), ("x", 2), (str(run.queue.project_id), 0)):
        with pytest.raises(CommandError):
            call_command("keep_replies", project, days=days)

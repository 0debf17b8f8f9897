"""A run is deleted for good: its texts go, its ledger entries stay, the chain still verifies."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.files.storage import default_storage
from django.db.models import CharField, JSONField, TextField
from django.utils import timezone

from judge_eval.exports.export import export_project
from judge_eval.models import Call, Import, Judge, Run, RunEvent, Verdict
from judge_eval.runs import deletion
from judge_eval.runs.lifecycle import LifecycleRefused
from reports.models import Review, ScoreReport
from tests.helpers.pages import text_of
from tests.helpers.scene import assert_sound
from tests.makers import (
    make_inference,
    make_invite,
    make_item,
    make_picture,
    make_queue,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    restate,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.services import flag
from voting.ledger import ledger
from voting.models import Entry, Flag, Inference, Invite, Item, Picture, Queue, Voter
from voting.people.voters import invited
from voting.pictures.store import stored_path

pytestmark = [pytest.mark.both, pytest.mark.django_db]

SECRET = "the parrot"


def make_deletable(project=None, *, state="stopped"):
    """A run with votes, and with the secret in every text that it has."""
    run = make_run(project, pairs=3, votes_wanted=9, baselines=())
    Run.objects.filter(pk=run.pk).update(state=state, name=f"About {SECRET}")
    run.refresh_from_db()
    outputs = Inference.objects.filter(project=run.queue.project)
    outputs.update(prompt=SECRET, output=SECRET, metadata={"note": SECRET}, tags=[SECRET])
    Queue.objects.filter(pk=run.queue_id).update(name=SECRET)
    Item.objects.filter(queue=run.queue_id, position=0).update(external_id=SECRET)
    Judge.objects.filter(run=run).update(name=SECRET, model=SECRET)
    Verdict.objects.filter(judge__run=run).update(feedback=SECRET)
    invite = make_invite(run, label=SECRET)
    voter = make_voter(run, invite=invite)
    for pair in pairs_of(run):
        make_vote(voter, pair)
    Entry.objects.filter(queue=run.queue_id, kind="vote").update(
        comment=SECRET, salt="salt", labels={"why": SECRET}
    )
    flag(voter, pairs_of(run)[0].pk, "unsafe", SECRET)
    make_call(run, reply=SECRET, reason=SECRET)
    run.record("made", SECRET)
    Import.objects.create(run=run, project=run.queue.project, name=SECRET, form={}, state="done")
    seal_all(run.queue.project)
    return run


def make_call(run, **fields):
    verdict = Verdict.objects.filter(judge__run=run).first()
    fields = {"state": "done", "reply": ""} | fields
    return Call.objects.create(
        run=run, purpose="judge", verdict=verdict, provider="p", model="m", order="AB", **fields
    )


def delete(run):
    deletion.delete(run.pk, run.name)
    seal_all(run.queue.project)


def rows_with(text):
    """Return where a text still is, of all tables."""
    return [
        f"{model.__name__}.{field.name}"
        for model in apps.get_models()
        if model._meta.app_label in ("voting", "judge_eval", "reports")
        for field in model._meta.fields
        if isinstance(field, CharField | TextField | JSONField)
        for value in model._base_manager.values_list(field.name, flat=True)
        if text in str(value)
    ]


def test_no_text_of_it_is_left_anywhere():
    run = make_deletable()
    before = set(rows_with(SECRET))
    assert {"Inference.output", "Verdict.feedback", "Call.reply", "Entry.comment"} <= before
    delete(run)
    assert rows_with(SECRET) == []
    for model in (Run, Judge, Verdict, Call, RunEvent, Import, Invite, Flag):
        assert not model._base_manager.exists(), model


def test_its_ledger_stays_and_verifies_and_replays():
    run = make_deletable()
    project = run.queue.project
    entries = list(Entry.objects.order_by("seq").values_list("uid", "hash"))
    delete(run)
    assert_sound(project)
    sealed = Entry.objects.order_by("seq")
    assert list(sealed.values_list("uid", "hash"))[: len(entries)] == entries
    last = sealed.last()
    assert (last.kind, last.payload) == ("erasure", {"queue": str(run.queue_id)})


def test_the_votes_go_on_counting_in_the_quality_of_the_project():
    run = make_deletable()
    quality = run.queue.project.qualities.get()
    delete(run)
    again = run.queue.project.qualities.get()
    assert (again.votes, again.score) == (quality.votes, quality.score)
    assert again.votes == 3


def test_another_run_of_the_project_keeps_everything():
    run = make_deletable()
    other = make_run(run.queue.project, pairs=2, votes_wanted=9)
    voter = make_voter(other, invite=make_invite(other, label="Others"))
    make_vote(voter, pairs_of(other)[0])
    # One output is shown by both.
    shared = pairs_of(run)[0].a
    Item.objects.filter(pk=pairs_of(other)[1].pk).update(a=shared)
    restate(other)
    delete(run)
    assert_sound(run.queue.project)
    shared.refresh_from_db()
    assert shared.output == SECRET
    assert Verdict.objects.filter(judge__run=other).count() == 4
    assert [found.votes for found in invited(other.queue)] == [1]
    assert "A run of pairs" in text_of(user_client().get("/runs/"))
    # Votes and undo go on.
    make_vote(voter, pairs_of(other)[1])
    seal_all(run.queue.project)
    assert_sound(run.queue.project)


def test_pictures_go_unless_another_drawing_has_them(django_capture_on_commit_callbacks):
    run = make_deletable()
    own, shared = pairs_of(run)[0].a, pairs_of(run)[1].a
    lone = make_picture("teal", inferences=[own])
    kept = make_picture("gold", inferences=[shared, make_inference(run.queue.project)])
    with django_capture_on_commit_callbacks(execute=True):
        deletion.delete(run.pk, run.name)
    assert list(Picture.objects.values_list("pk", flat=True)) == [kept.pk]
    for suffix in ("png", "webp"):
        assert not default_storage.exists(stored_path(lone.png_sha256, suffix))
        assert default_storage.exists(stored_path(kept.png_sha256, suffix))


def test_outputs_that_came_to_no_pair_go():
    run = make_deletable()
    output = make_inference(run.queue.project, SECRET)
    Call.objects.create(
        run=run,
        purpose="generate",
        prompt=0,
        provider="p",
        model="m",
        state="done",
        inference=output,
    )
    delete(run)
    assert not Inference.objects.filter(pk=output.pk).exists()
    assert rows_with(SECRET) == []


def test_curators_are_asked_about_it_no_more():
    run = make_deletable()
    assert Review.objects.filter(waits=True).exists()
    delete(run)
    assert not Review.objects.exists()
    assert "Nothing waits for a curator here" in text_of(user_client().get("/review/"))
    assert ledger.replay(run.queue.project, write=True) == []


def test_files_of_scores_go_with_it(settings):
    from reports.tasks import publish_heads

    run = make_deletable()
    folder = settings.DATA / "scores"
    folder.mkdir(exist_ok=True)
    report = ScoreReport.objects.create(run=run, config={}, state="done")
    kept = ScoreReport.objects.create(run=make_run(), config={}, state="done")
    for each in (report, kept):
        (folder / f"{each.pk}.zip").write_bytes(b"zip")
    delete(run)
    publish_heads()
    assert not (folder / f"{report.pk}.zip").exists()
    assert (folder / f"{kept.pk}.zip").exists()


def test_its_voters_are_told_that_voting_has_closed():
    run = make_deletable()
    voter = Voter.objects.get()
    delete(run)
    page = voter_client(voter).get(f"/vote/{run.queue_id}/")
    assert "Voting has closed" in text_of(page)
    assert voter_client(voter).get(f"/vote/{run.queue_id}/mine").status_code == 200


def test_the_project_is_exported_without_it():
    run = make_deletable()
    delete(run)
    lines = list(export_project(run.queue.project))
    assert '"runs":[]' in lines[0]
    assert not any(str(run.queue_id) in line for line in lines)


@pytest.mark.parametrize("state", ["generating", "judging", "voting", "draft"])
def test_what_is_under_way_is_refused(state):
    run = make_deletable(state=state)
    with pytest.raises(LifecycleRefused, match=r"Stop it first|page of the draft"):
        deletion.delete(run.pk, run.name)
    assert Run.objects.filter(pk=run.pk).exists()


def test_calls_that_are_out_are_waited_for():
    run = make_deletable()
    Call.objects.filter(run=run).delete()
    soon = timezone.now() + timedelta(minutes=1)
    make_call(run, state="waiting", lease=uuid4(), leased_until=soon)
    with pytest.raises(LifecycleRefused, match="1 call of this run must"):
        deletion.delete(run.pk, run.name)


def test_an_import_into_it_is_waited_for():
    run = make_deletable()
    Import.objects.create(run=run, project=run.queue.project, form={}, state="reading")
    with pytest.raises(LifecycleRefused, match="being imported"):
        deletion.delete(run.pk, run.name)


class TestThePage:
    def test_it_says_what_goes_and_what_stays(self):
        run = make_deletable()
        text = text_of(user_client().get(f"/runs/{run.pk}/delete/"))
        assert "6 outputs with prompts" in text
        assert "6 verdicts with reasons and scores, the judges, 1 call with replies" in text
        assert "6 ledger entries of votes and verdicts" in text
        assert "1 invite link" in text

    def test_another_name_deletes_nothing_and_keeps_what_was_typed(self):
        run = make_deletable()
        page = user_client().post(f"/runs/{run.pk}/delete/", {"name": "About a parrot"})
        assert page.status_code == 422
        assert "not the name of this run" in text_of(page)
        assert 'value="About a parrot"' in page.content.decode()
        assert Run.objects.filter(pk=run.pk).exists()

    def test_the_name_deletes_it_and_leads_to_the_list(self):
        run = make_deletable()
        page = user_client().post(f"/runs/{run.pk}/delete/", {"name": f" {run.name}\n"})
        assert page.url == "/runs/"
        for address in ("", "pairs/", "vote/", "progress/", "delete/"):
            assert user_client().get(f"/runs/{run.pk}/{address}").status_code == 404

    def test_what_is_under_way_is_a_409_with_what_to_do(self):
        run = make_deletable(state="voting")
        assert "Stop it first" in text_of(user_client().get(f"/runs/{run.pk}/delete/"))
        page = user_client().post(f"/runs/{run.pk}/delete/", {"name": run.name})
        assert page.status_code == 409
        assert "Stop it first" in text_of(page)


def test_a_queue_that_models_send_their_traces_to_stays():
    from reports.models import Benchmark

    run = make_deletable()
    Benchmark.objects.create(project=run.queue.project, queue=run.queue, slug="b")
    with pytest.raises(LifecycleRefused, match="Models send their traces"):
        deletion.delete(run.pk, run.name)


def test_single_items_are_deleted_alike():
    project = make_run().queue.project
    queue = make_queue(project, kind="pass_flag", ballot=["pass", "flag"])
    run = Run.objects.create(queue=queue, name="Items", state="complete")
    item = make_item(queue, SECRET)
    make_vote(make_voter(run), item, "pass")
    seal_all(project)
    delete(run)
    assert rows_with(SECRET) == []
    assert_sound(project)

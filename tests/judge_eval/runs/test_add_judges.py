"""The form by which judges join a run whose items are there."""

import pytest

from judge_eval.models import Run, Verdict
from judge_eval.runs.services import new_item
from tests.helpers.pages import text_of
from tests.helpers.run_rows import make_provider
from tests.makers import make_inference, make_run, make_single_run, user_client

pytestmark = pytest.mark.django_db


def post(run, **said):
    return user_client().post(f"/runs/{run.pk}/judges", said)


def test_judges_join_by_a_form_on_the_progress_page():
    make_provider()
    run = make_single_run([["pass"], ["flag"]])
    assert "Add judges" in text_of(user_client().get(f"/runs/{run.pk}/progress/"))
    response = post(run, judges="judge-long\r\nmost-frequent", provider="default")
    assert response.url == f"/runs/{run.pk}/progress/"
    run.refresh_from_db()
    assert run.state == Run.State.JUDGING
    names = list(run.judges.order_by("position").values_list("name", flat=True))
    assert names == ["judge-0", "judge-long", "always-pass", "always-flag", "random"]
    assert Verdict.objects.filter(judge__run=run, state="waiting").count() == 4 * 2


def test_settings_follow_the_name_of_a_judge_as_in_a_new_run():
    make_provider()
    run = make_single_run([["pass"]])
    judges = "judge-long temperature=none reasoning_effort=low\njudge-plain"
    assert post(run, judges=judges, provider="default").status_code == 302
    run.refresh_from_db()
    own, plain = run.config["judges"][-2:]
    assert own == {
        "id": "judge-long",
        "provider": "default",
        "temperature": None,
        "reasoning_effort": "low",
    }
    assert plain == {"id": "judge-plain", "provider": "default"}


@pytest.mark.parametrize(
    "judges, why",
    [
        ("a temperature=hot", "number"),
        ("", "must have at least 1"),
        ("longer-wins", "must be one of the baselines here"),
        ("a\na", "is given twice"),
    ],
)
def test_what_is_wrong_is_said_beside_the_judges_and_what_was_typed_stays(judges, why):
    make_provider()
    run = make_single_run([["pass"]])
    response = post(run, judges=judges)
    assert response.status_code == 422
    assert '<details class="folded" id="join" open>' in response.content.decode()
    # The other forms stand on it as before.
    assert response.context["leaving_out"].fields
    assert "none can be watched" in response.context["unwatched"]
    assert why in text_of(response)
    assert judges in response.content.decode()
    assert run.judges.count() == 1


def test_a_run_of_pairs_takes_judges_too_and_one_at_work_takes_none():
    make_provider()
    run = make_run(pairs=2)
    assert post(run, judges="judge-long\nrandom").status_code == 302
    assert post(run, judges="another").status_code == 409


def test_judges_are_asked_about_the_items_whose_outputs_are_here():
    make_provider()
    run = make_run(pairs=3)
    first = run.queue.items.first()
    run.queue.items.filter(pk=first.pk).update(lacks_output=True)
    assert post(run, judges="judge-long\nrandom").status_code == 302
    asked = Verdict.objects.filter(judge__run=run, item=first, state="waiting")
    names = {verdict.judge.name for verdict in asked}
    assert "random" in names
    assert "judge-long" not in names
    assert Verdict.objects.filter(judge__name="judge-long").count() == 2


def test_items_without_a_prompt_share_none():
    queue = make_single_run([["pass"]]).queue
    outputs = [make_inference(queue.project, prompt=prompt) for prompt in ("", " ", "Q", "Q")]
    keys = [new_item(queue, place, each).prompt_key for place, each in enumerate(outputs)]
    assert len(set(keys[:3])) == 3
    assert keys[2] == keys[3]

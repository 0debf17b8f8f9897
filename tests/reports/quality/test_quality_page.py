"""The page of a project's quality: its figures, its chart, its settings, and who may see it."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from reports.models import Quality
from reports.quality.parameters import SUGGESTED, parameters_of, settings_of
from tests.helpers.pages import HTMX, queries_of, text_of
from tests.makers import (
    key_client,
    make_key,
    make_many_votes,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.models import Entry, Project, Voter

pytestmark = pytest.mark.django_db

FORM = {
    "decay": "0.1/day",
    "decay_unit": "second",
    "initial_score": "0.5",
    "batch_window": "0",
    "critical_variance": "0.05",
    "min_votes": "3",
    "flags_to_review": "with_reason",
}


def page_of(project):
    return f"/projects/{project.pk}/quality/"


def make_voted(votes=(("both_bad", 7),), *, made=timedelta(hours=1)):
    """A run whose project was made some time ago, with votes at so many seconds after that."""
    run = make_run(votes_wanted=1000)
    begin = timezone.now() - made
    Project.objects.filter(pk=run.queue.project_id).update(created_at=begin)
    for choice, seconds in votes:
        at = begin + timedelta(seconds=seconds)
        make_vote(make_voter(run), pairs_of(run)[0], choice, at=at)
    seal_all(run.queue.project)
    return run


def shown(project, **options):
    response = user_client().get(page_of(project), **options)
    assert response.status_code == 200
    return text_of(response)


class TestFigures:
    def test_percents_are_whole_and_exact_values_are_there_on_demand(self):
        text = shown(make_voted().queue.project)
        assert "The only vote does not pass." in text
        assert "No score yet: too few votes." in text
        assert "Quality score not yet" in text
        assert "The last votes weigh 7 %" in text
        assert "Score 0.46619690995" in text
        assert "Share of pairs with a good answer" in text

    def test_votes_pass_rate_with_its_interval_and_the_last_vote_stand_with_it(self):
        votes = [("A" if n < 8 else "both_bad", n) for n in range(10)]
        text = shown(make_voted(votes, made=timedelta(days=3)).queue.project)
        assert "80 % of the last 10 votes pass." in text
        assert "Votes 10" in text
        assert "Pass rate 80 % 95 % interval 49\N{EN DASH}94 %" in text
        assert "Last vote 3 days ago" in text

    def test_nothing_decays_while_nobody_votes_and_the_page_says_so(self):
        run = make_voted()
        before = Quality.objects.get().score
        seal_all(run.queue.project)
        assert Quality.objects.get().score == before
        assert "Nothing decays while nobody votes" in shown(run.queue.project)

    def test_before_the_first_vote_it_says_what_moves_the_score(self):
        text = shown(make_project())
        assert "No votes yet" in text
        assert "The score begins at 50 %" in text

    def test_the_half_life_stands_beside_lambda_and_one_that_is_too_short_is_warned_of(self):
        text = shown(make_voted([("A", 0), ("A", 600), ("A", 1200)]).queue.project)
        assert "Lambda is 0.01 per second: the half-life is 69 s" in text
        assert "The half-life of 69 s is shorter than the median time between votes, 10 min" in text
        assert "shorter than" not in shown(make_voted([("A", 0), ("A", 9)]).queue.project)

    def test_the_chart_has_the_score_behind_each_vote_and_the_pass_rate_of_each_day(self):
        votes = [("A", 0), ("both_bad", 60), ("A", 3 * 86_400)]
        run = make_voted(votes, made=timedelta(days=4))
        page = user_client().get(page_of(run.queue.project)).content.decode()
        assert page.count('<path class="rate"') in (2, 3)  # the first minute may pass midnight
        # A score that remembers a minute is one from then on.
        assert 'class="score" stroke-dasharray="2 4" d="M44.0 ' in page
        assert re.search(r'class="score" d="M\d+\.\d \d+\.\dH', page)
        assert "The same as a table" in page

    def test_htmx_is_told_when_nothing_is_new(self):
        run = make_voted()
        client, url = user_client(), page_of(run.queue.project)
        live = client.get(url, headers=HTMX)
        assert "<h1>" not in live.content.decode()
        seen = live.context["seen"]
        assert client.get(f"{url}?seen={seen}", headers=HTMX).status_code == 204
        make_vote(make_voter(run), pairs_of(run)[0])
        seal_all(run.queue.project)
        assert client.get(f"{url}?seen={seen}", headers=HTMX).status_code == 200


class TestAccess:
    def test_projects_are_listed_with_their_scores(self):
        run = make_voted()
        make_project("Nobody has voted")
        text = text_of(user_client().get("/projects/"))
        assert f"{run.queue.project.name} \N{EN DASH} 1" in text
        assert "on pairs" not in text
        assert "Nobody has voted \N{EN DASH} 0" in text

    def test_what_is_not_there_is_404(self):
        run = make_run()
        assert user_client().get(page_of(run)).status_code == 404
        assert user_client().get(f"/runs/{run.queue.project_id}/quality/").status_code == 404


class TestSettings:
    def test_a_change_is_an_entry_and_the_settings_before_stay_to_be_seen(self):
        run = make_voted()
        project, client = run.queue.project, user_client("ada")
        answer = client.post(f"{page_of(project)}settings", FORM)
        assert answer.headers["Location"] == page_of(project)
        assert "being applied" in shown(project)
        seal_all(project)
        text = shown(project)
        words = "0.1 per day 6.9 days 50 % equal times only 0.05 3 with a reason"
        assert f"ledger entry 3 ada {words}" in text
        assert "The beginning by default 0.01 per second 69 s" in text
        assert parameters_of(project).decay_unit == "day"

    def test_which_flags_go_to_review_is_chosen_beside_the_limits(self):
        project = make_project()
        for chosen, words in (("all", "all"), ("none", "none"), ("with_reason", "with a reason")):
            user_client().post(f"{page_of(project)}settings", FORM | {"flags_to_review": chosen})
            seal_all(project)
            assert parameters_of(project).flags_to_review == chosen
            assert f"0.05 3 {words}" in shown(project)

    def test_another_lambda_than_those_offered(self):
        project = make_project()
        other = {"decay": "other", "decay_rate": "0.5", "decay_unit": "hour"}
        user_client().post(f"{page_of(project)}settings", FORM | other)
        page = user_client().get(page_of(project)).content.decode()
        assert 'value="other"' in page
        assert 'value="0.5"' in page
        assert settings_of(project).get().payload["quality"]["decay_rate"] == "0.5"

    @pytest.mark.parametrize(
        "wrong, message",
        [
            ({"decay": "other", "decay_rate": ""}, "Enter another lambda, or choose"),
            ({"decay": "other", "decay_rate": "0"}, "Must be at least 1e-06"),
            ({"decay": "other", "decay_rate": "nan"}, "Enter a number"),
            ({"decay": "soon"}, "Select a valid choice"),
            ({"initial_score": "1.5"}, "Must be at most 1"),
            ({"critical_variance": "0.25"}, "Must be less than 0.25"),
            ({"min_votes": "0"}, "Must be at least 1"),
            ({"flags_to_review": "some"}, "Select a valid choice"),
            ({"batch_window": "-1"}, "Must be at least 0"),
        ],
    )
    def test_what_cannot_be_is_said_at_its_field_and_nothing_is_stored(self, wrong, message):
        project = make_project()
        answer = user_client().post(f"{page_of(project)}settings", FORM | wrong)
        assert answer.status_code == 422
        assert message in text_of(answer)
        assert not settings_of(project).exists()

    def test_all_mistakes_are_said_at_once(self):
        wrong = {"initial_score": "7", "critical_variance": "7", "min_votes": "many"}
        answer = user_client().post(f"{page_of(make_project())}settings", FORM | wrong)
        assert list(answer.context["form"].errors) == [
            *("min_votes", "initial_score", "critical_variance")
        ]


class TestNewProject:
    def test_a_tenth_per_day_is_preselected_and_every_preset_is_explained(self):
        page = user_client().get("/projects/new/")
        assert page.context["form"]["decay"].value() == "0.1/day"
        text = text_of(page)
        assert "weeks: 0.1 per day, half-life 6.9 days" in text
        assert "months: 0.01 per day, half-life 69 days" in text
        assert "minutes: 0.01 per second, half-life 69 s" in text

    def test_it_is_made_with_its_parameters(self):
        answer = user_client().post("/projects/new/", FORM | {"name": "Answers"})
        project = Project.objects.get(name="Answers")
        assert answer.headers["Location"] == page_of(project)
        seal_all(project)
        assert parameters_of(project).decay_unit == "day"

    def test_a_name_is_enough(self):
        answer = user_client().post("/projects/new/", {"name": "Answers"})
        project = Project.objects.get(name="Answers")
        assert answer.headers["Location"] == page_of(project)
        seal_all(project)
        parameters = parameters_of(project)
        assert (parameters.decay_rate, parameters.decay_unit) == (0.1, "day")
        assert parameters == SUGGESTED

    def test_with_a_mistake_nothing_is_made(self):
        wrong = FORM | {"name": "Answers", "min_votes": "0"}
        assert user_client().post("/projects/new/", wrong).status_code == 422
        assert user_client().post("/projects/new/", FORM).status_code == 422
        assert not Project.objects.filter(name="Answers").exists()
        assert not Entry.objects.exists()


class TestApi:
    def test_scores_and_their_history_are_read(self):
        run = make_voted()
        project, client = run.queue.project, key_client(make_key("read")[1])
        found = client.get(f"/api/projects/{str(project.pk)[:8]}/quality").json()
        assert found["items"] is None
        assert round(found["pairs"]["score"], 6) == 0.466197
        assert found["pairs"]["votes"] == len(found["pairs"]["history"]) == 1
        assert found["parameters"]["decay_rate"] == 0.01
        assert round(found["parameters"]["half_life_seconds"], 1) == 69.3

    def test_parameters_are_changed_one_by_one(self):
        project, client = make_project(), key_client(make_key("manage")[1])
        url = f"/api/projects/{project.pk}/quality"
        answer = client.patch(url, {"min_votes": 5}, content_type="application/json")
        assert answer.status_code == 200
        assert (answer.json()["min_votes"], answer.json()["applied"]) == (5, False)
        client.patch(url, {"decay_unit": "day"}, content_type="application/json")
        client.patch(url, {"flags_to_review": "none"}, content_type="application/json")
        seal_all(project)
        assert parameters_of(project).min_votes == 5
        assert parameters_of(project).decay_unit == "day"
        assert parameters_of(project).flags_to_review == "none"
        same = client.patch(url, {"min_votes": 5}, content_type="application/json")
        assert same.json()["applied"]

    @pytest.mark.parametrize(
        "body, path",
        [
            ({"min_vote": 5}, "min_vote"),
            ({"critical_variance": 0.5, "initial_score": 2}, "initial_score"),
            ({"flags_to_review": "some"}, "flags_to_review"),
            ({"apply_reputations": "yes"}, "apply_reputations"),
            ([], ""),
        ],
    )
    def test_what_cannot_be_is_named(self, body, path):
        project, client = make_project(), key_client(make_key("manage")[1])
        url = f"/api/projects/{project.pk}/quality"
        answer = client.patch(url, body, content_type="application/json")
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["path"] == path
        assert not settings_of(project).exists()

    def test_a_key_that_votes_blindly_is_told_nothing_before_it_has_voted(self):
        run = make_voted()
        client = key_client(make_key("read", "vote")[1])
        url = f"/api/projects/{run.queue.project_id}/quality"
        assert client.get(url).status_code == 403
        body = {"task_id": str(pairs_of(run)[0].pk), "winner": "A"}
        client.post(f"/api/runs/{run.pk}/judge-eval/vote", body, content_type="application/json")
        assert client.get(url).status_code == 200


def test_the_pages_cost_the_same_at_1_and_at_200_votes():
    def cost(votes):
        run = make_voted()
        voters = Voter.objects.bulk_create(Voter(project=run.queue.project) for _ in range(votes))
        make_many_votes(run, [(voter, pairs_of(run)[0], "A") for voter in voters])
        seal_all(run.queue.project)
        owner, script = user_client(), key_client(make_key("read")[1])
        api = f"/api/projects/{run.queue.project_id}/quality"
        return [
            queries_of(owner, page_of(run.queue.project)),
            queries_of(owner, "/projects/"),
            queries_of(script, api),
        ]

    assert cost(1) == cost(200)

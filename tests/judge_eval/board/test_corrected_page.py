"""Rates of generators by people, by judges and corrected: pages, reports, files and REST."""

import csv
import io
from copy import deepcopy

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from judge_eval.models import Findings, Judge
from reports.report.views.shares import make_share
from tests.helpers import imports
from tests.helpers.pages import queries_of, text_of
from tests.helpers.run_findings import compute, voted_run
from tests.makers import (
    judges_of,
    key_client,
    make_key,
    make_many_votes,
    make_project,
    make_single_run,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    user_client,
)
from voting.models import Inference, Project

pytestmark = pytest.mark.django_db

NOTHING_LEFT = "nothing is left to correct"


def compared(voted=60, pairs=150, both_bad=0, **options):
    """Two generators; the judge is of the family of the first, and prefers it more than people."""
    people = [*["both_bad"] * both_bad, *["ABAB"[n % 4] for n in range(both_bad, voted)]]
    judge = ["A" if n % 5 == 1 else "ABAB"[n % 4] for n in range(pairs)]
    names = {"generator_a": "gpt-4o", "generator_b": "claude-3"}
    run = imports.imported(
        *(imports.pair(n, **names) for n in range(pairs)),
        *(imports.verdict(n, "gpt-5", said) for n, said in enumerate(judge)),
        *(imports.verdict(n, "always A", "A") for n in range(pairs)),
        *(imports.vote(n, "ann", said) for n, said in enumerate(people)),
        **options,
    )
    compute(run)
    return run


def passed(voted=120, outputs=240, **fields):
    """Outputs of two models that a judge passes too often; people voted on the first ones."""
    said = [["pass" if n % 3 or n % 9 == 0 else "flag"] for n in range(outputs)]
    run = make_single_run(said, **fields)
    Judge.objects.filter(run=run).update(provider="imported")
    items = pairs_of(run)
    for name, own in (("model-a", items[::2]), ("model-b", items[1::2])):
        Inference.objects.filter(pk__in=[item.a_id for item in own]).update(generator=name)
    voter = make_voter(run)
    votes = [(voter, item, "pass" if n % 3 else "flag") for n, item in enumerate(items[:voted])]
    make_many_votes(run, votes)
    seal_all(run.queue.project)
    compute(run)
    return run


@pytest.fixture(scope="module")
def pairs_once(module_db):
    return compared()


@pytest.fixture
def compared_run(pairs_once):
    return deepcopy(pairs_once)


@pytest.fixture(scope="module")
def outputs_once(module_db):
    return passed()


@pytest.fixture
def passed_run(outputs_once):
    return deepcopy(outputs_once)


def page(run, **query):
    response = user_client().get(f"/runs/{run.pk}/models/", query)
    assert response.status_code == 200
    return response


def rates_of(run):
    return Findings.objects.get(run=run, part="").data["generators"]


# --- findings -------------------------------------------------------------------------------------


def test_the_rates_compared_run(compared_run):
    [claude, gpt] = rates_of(compared_run)
    assert (gpt["name"], gpt["votes"], gpt["people"]["value"]) == ("gpt-4o", 60, 0.5)
    by, always = gpt["judges"]
    assert by["is_own_family"] is True
    assert by["rates"]["error"]["value"] == pytest.approx(0.1)
    assert claude["judges"][0]["rates"]["error"]["value"] == pytest.approx(-0.1)
    assert by["rates"]["unvoted"] == 90
    assert 0 < by["rates"]["saving"] < 1
    assert by["rates"]["corrected"]["method"] == "ppi++"
    assert by["rates"]["by_rates"] is None
    assert claude["judges"][0]["is_own_family"] is False
    assert always["is_own_family"] is None


def test_a_tie_is_half_a_win_and_both_bad_says_nothing():
    names = {"generator_a": "ada", "generator_b": "bob"}
    votes = ["A", "tie", "both_bad", "A", "B"]
    run = imports.imported(
        *(imports.pair(n, **names) for n in range(5)),
        *(imports.verdict(n, "judge", said) for n, said in enumerate(["A", "A", "A", "tie", "B"])),
        *(imports.vote(n, "ann", said) for n, said in enumerate(votes)),
        imports.vote(4, "ben", "A"),
    )
    compute(run)
    [ada, bob] = rates_of(run)
    # On the last one people are divided.
    assert ada["people"]["value"] == (1 + 0.5 + 1 + 0.5) / 4
    assert bob["people"]["value"] == (0 + 0.5 + 0 + 0.5) / 4
    assert (ada["votes"], ada["both_bad"]) == (6, 1)
    assert ada["judges"][0]["rates"]["error"]["value"] == pytest.approx((0 + 0.5 - 0.5 - 0.5) / 4)


def test_the_rates_of_single_outputs(passed_run):
    for of in rates_of(passed_run):
        [by] = of["judges"]
        assert by["rates"]["unvoted"] == 60
        assert by["rates"]["error"]["value"] >= 0
    assert rates_of(passed_run)[0]["judges"][0]["rates"]["by_rates"] is not None


def test_an_owner_sets_the_families_of_models_whose_names_do_not_tell(compared_run):
    assert [of["judges"][0]["is_own_family"] for of in rates_of(compared_run)] == [False, True]
    project = compared_run.queue.project
    owner, where = member_client(project, "owner"), f"/projects/{project.pk}/settings/"
    fields = {"name": project.name, "families": "\nclaude = OpenAI\nhouse-=meta"}
    assert owner.post(f"{where}save", fields).status_code == 302
    assert "claude = openai\nhouse- = meta" in owner.get(where).content.decode()
    assert Findings.objects.get(run=compared_run).is_behind
    compute(compared_run)
    assert [of["judges"][0]["is_own_family"] for of in rates_of(compared_run)] == [True, True]


@pytest.mark.parametrize("line", ["claude", "= meta", "claude =", "x" * 200 + " = meta"])
def test_a_line_that_is_no_family_is_refused(line):
    project = make_project()
    where = f"/projects/{project.pk}/settings/save"
    answer = member_client(project, "owner").post(where, {"name": "P", "families": line})
    assert answer.status_code == 422
    assert "must be like: house-7b = meta" in text_of(answer)
    assert Project.objects.get(pk=project.pk).model_families == {}


def test_baselines_are_left_out():
    run = voted_run()
    names = {str(judge.pk): judge.name for judge in judges_of(run)}
    judged = [[names[by["judge"]] for by in of["judges"]] for of in rates_of(run)]
    assert judged == [["near-judge", "contrary-judge"]] * 2


# --- pages ----------------------------------------------------------------------------------------


def test_the_page_has_the_corrected_rates_of_the_best_judge_and_of_any(compared_run):
    text = text_of(page(compared_run))
    assert "Corrected by the votes" in text
    assert "gpt-5 rates gpt-4o (its own family) higher and claude-3 lower than people do." in text
    savings = [of["judges"][0]["rates"]["saving"] for of in rates_of(compared_run)]
    saves = f"gpt-5 saves {100 * sum(savings) / 2:.0f} % of the votes (median of 2 models)"
    assert saves in text.replace("\xa0", " ")
    assert "both bad" not in text
    assert "gpt-4o own family 50.0" in text
    other = text_of(page(compared_run, by=str(judges_of(compared_run)[1].pk)))
    assert "always A rates" in other
    assert "always A saves nothing here" in other
    assert "up to" not in other


def test_people_and_corrected_figures_are_drawn_on_one_axis_where_something_is_left(compared_run):
    plot = page(compared_run).context["corrected"]["plot"]
    corrected = [of["judges"][0]["rates"]["corrected"]["value"] for of in rates_of(compared_run)]
    assert [row.value for row in plot.rows] == [
        f"{of:.0%}".replace("%", "\xa0%") for of in corrected
    ]
    assert {row.second.text for row in plot.rows} == {"people alone 50\xa0%"}
    assert all(row.thick for row in plot.rows)
    for few in (compared(voted=12), compared(voted=60, pairs=60)):
        assert page(few).context["corrected"]["plot"] is None


def test_of_few_prompts_the_page_says_that_no_saving_is_told_yet(compared_run):
    row = Findings.objects.get(run=compared_run)
    for of in row.data["generators"]:
        of["judges"][0]["rates"]["saving"] = None
    row.save()
    assert "How many votes gpt-5 saves is told from 30 prompts" in text_of(page(compared_run))


def test_where_everything_is_voted_on_the_page_says_so():
    run = compared(voted=60, pairs=60, both_bad=18)
    for of in rates_of(run):
        [_, rates] = [by["rates"] for by in of["judges"]]
        assert rates["corrected"]["value"] == of["people"]["value"]
        assert (rates["unvoted"], of["both_bad"]) == (0, 18)
    text = text_of(page(run)).replace("\xa0", " ")
    assert "30 % of the pairs were both bad: the rates are those among the others." in text
    assert f"People have voted wherever gpt-5 has a verdict: {NOTHING_LEFT}." in text
    assert "Votes saved" not in text
    assert "gpt-4o own family 50.0" in text


def test_too_few_labels_are_named_beneath_the_table():
    text = text_of(page(compared(voted=12)))
    assert "Too few labels to correct: it takes votes on 10 prompts, 5 items on which" in text
    assert "There are too few votes yet to correct its figures by them." in text


def test_the_page_of_pass_rates_has_both_estimates(passed_run):
    text = text_of(page(passed_run))
    assert "How often the outputs of each model pass, with 95" in text
    assert "By its error rates" in text


def test_without_votes_or_judges_there_is_no_such_section():
    assert "Corrected by the votes" not in text_of(page(compared(voted=0)))
    run = voted_run(computed=False)
    Judge.objects.filter(run=run).update(provider="baseline")
    compute(run)
    assert "Corrected by the votes" not in text_of(page(run))


def test_more_generators_and_judges_take_no_more_queries(compared_run, passed_run):
    client = user_client()
    # That somebody looks at figures is noted now and then: the clock stands still.
    with time_machine.travel(timezone.now(), tick=False):
        addresses = [f"/runs/{run.pk}/models/" for run in (compared_run, passed_run)]
        for address in addresses:
            client.get(address)
        counts = {queries_of(client, address) for address in addresses}
    assert len(counts) == 1


def test_files_have_every_judge(compared_run):
    address = f"/runs/{compared_run.pk}/tables/corrected"
    rows = list(csv.DictReader(io.StringIO(user_client().get(f"{address}.csv").content.decode())))
    pairs = [(row["model"], row["judge"]) for row in rows]
    assert pairs == [(m, j) for m in ("claude-3", "gpt-4o") for j in ("gpt-5", "always A")]
    by = rates_of(compared_run)[1]["judges"][0]["rates"]
    assert float(rows[2]["corrected_low"]) == by["corrected"]["low"]
    assert rows[2]["votes_saved"] == str(round(60 * by["saving"] / (1 - by["saving"])))
    assert user_client().get(f"{address}.json").json()["rows"][2]["own_family"] is True


def test_the_api_gives_what_the_page_shows(compared_run):
    reply = key_client(make_key("read")[1]).get(f"/api/runs/{compared_run.pk}/findings").json()
    assert reply["generators"] == rates_of(compared_run)


def test_a_report_shows_them_too():
    cache.clear()
    run = compared()
    _, token = make_share(run.queue.project, run, None)
    text = text_of(Client().get(f"/r/{token}/"))
    assert "Corrected by the votes: gpt-5" in text
    assert "(median of 2 models)" in text

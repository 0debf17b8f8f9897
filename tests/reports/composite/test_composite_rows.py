"""The composite page: components first, who may see and change it, and what it costs."""

import json
import re
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from humanjudge.core.tables import DASH
from judge_eval.models import Judge, Verdict
from judge_eval.runs.exclusion import include, leave_out
from reports.composite.config import parse
from reports.composite.sources import offered, proposal, store
from reports.models import CompositeDefinition
from tests.helpers.pages import HTMX, queries_of, text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    key_client,
    make_key,
    make_many_votes,
    make_passes,
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.models import Assignment, Entry, Exposure, Inference, Item
from voting.people.voters import voter_of_key, voter_of_user

pytestmark = pytest.mark.django_db

CONFIG = {
    "label": "first try",
    "weights": {
        "quality": {"weight": 3, "reason": "The judge reads everything."},
        "liked": {"weight": 1, "reason": "People choose <b>it</b>."},
    },
    "gates": ["safe"],
    "sources": {
        "quality": {"from": "judge_score", "judge": "judge-0"},
        "liked": "win_rate",
        "safe": {"from": "metadata", "key": "safe", "equals": True},
    },
    "check": "pass_rate",
}


def address(run):
    return f"/api/runs/{run.pk}/composite"


def page_of(run, *more):
    return "/".join([f"/runs/{run.pk}/composite", *more, ""])


def make_scored(*, pairs=2, shared=False, defined=True, **changes):
    """A run whose first output is unsafe; its judge gives 8 to the first and 4 to the second."""
    run = make_run(pairs=pairs, judges=1, votes_wanted=5, shared=shared)
    Verdict.objects.filter(judge__run=run).update(score_a=8, score_b=4)
    compared = pairs_of(run)
    make_many_votes(run, [(make_voter(run), pair, "A") for pair in compared])
    outputs = Inference.objects.filter(project=run.queue.project)
    outputs.update(metadata={"safe": True})
    outputs.filter(pk=compared[0].a_id).update(metadata={"safe": False})
    seal_all(run.queue.project)
    if defined:
        store(run, parse(CONFIG | changes, needs_sources=True))
    return run


@pytest.fixture(scope="module")
def plain(module_db):
    return make_scored(defined=False)


@pytest.fixture(scope="module")
def scored(module_db):
    return make_scored()


def cells(html, tag):
    found = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", html, re.DOTALL)
    return [" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in found]


def outputs_table(response):
    return response.content.decode().split('id="outputs"')[1].split("</table>")[0]


def cells_of(response):
    """The rows of the table of outputs, without the first cell."""
    rows = outputs_table(response).split("<tbody>")[1].split("<tr>")[1:]
    return [cells(row, "td")[1:] for row in rows]


class TestTable:
    def test_components_stand_first_and_the_composite_never_alone(self, scored):
        response = user_client().get(page_of(scored))
        assert cells(outputs_table(response), "th") == [
            *("Output", "quality", "liked", "safe", "Composite", "Note")
        ]
        assert cells_of(response) == [
            ["0.80", "1.00", "1.00", "0.85", ""],
            ["0.40", "0.00", "1.00", "0.30", ""],
            ["0.40", "0.00", "1.00", "0.30", ""],
            ["0.80", "1.00", "0.00", "0.00", "hard-gate fail: safe"],
        ]

    def test_what_it_is_made_of_with_the_reasons(self, scored):
        text = text_of(user_client().get(page_of(scored)))
        assert "The judge reads everything." in text
        assert "75 %" in text
        assert "mean score by judge-0, 0 to 10" in text
        assert "gate 0.75" in text  # a gate has no reason

    def test_the_headline_stands_above_its_components_and_names_the_gates_that_failed(self, scored):
        text = text_of(user_client().get(page_of(scored)))
        assert "Composite 0.36 , not checked with people" in text
        assert "The mean composite of 4 outputs." in text
        assert "Failed gates (the composite is 0): safe on 1 output." in text
        assert text.index("0.36") < text.index("quality mean score by judge-0")
        Verdict.objects.filter(item=pairs_of(scored)[1]).update(score_a=None)
        text = text_of(user_client().get(page_of(scored)))
        assert "1 output has no composite; the list says why." in text

    def test_reasons_are_escaped(self, scored):
        html = user_client().get(page_of(scored)).content.decode()
        assert "People choose &lt;b&gt;it&lt;/b&gt;." in html

    def test_an_output_without_a_component_has_no_number_and_says_why(self, scored):
        Verdict.objects.filter(item=pairs_of(scored)[1]).update(score_a=None)
        Verdict.objects.filter(item=pairs_of(scored)[0]).update(score_b=40)
        rows = cells_of(user_client().get(page_of(scored)))
        whys = {row[-1].replace("&#x27;", "'"): row[-2] for row in rows if row[-1]}
        assert whys["component 'quality' is missing"] == DASH
        assert whys["component 'quality' is 4, which is outside [0, 1]"] == DASH

    def test_many_outputs_come_in_pages(self):
        run = make_scored(pairs=30)
        first, second = (user_client().get(page_of(run) + f"?page={n}") for n in (1, 2))
        assert (len(cells_of(first)), len(cells_of(second))) == (50, 10)
        assert "hard-gate fail" in cells_of(second)[-1][-1]
        assert "60 outputs" in text_of(first)

    def test_a_part_is_chosen_and_stays_chosen_on_the_next_page(self):
        run = make_scored(pairs=30)
        client, address = user_client(), page_of(run)
        assert 'name="part"' not in client.get(address).content.decode()
        compute(run)
        html = client.get(address).content.decode()
        assert '<option value="generator:generator-0">' in html
        part = client.get(f"{address}?part=ballot:decided")
        assert "60 outputs: only votes and verdicts for A or B" in text_of(part)
        assert '<option value="ballot:decided" selected>' in part.content.decode()
        assert "?part=ballot%3Adecided&amp;page=2" in part.content.decode()
        empty = client.get(f"{address}?part=tag:nothing")
        assert "No output belongs to this part." in text_of(empty)
        assert client.get(f"{address}?part=colour:red").status_code == 400

    def test_without_a_definition_a_form_proposes_one_with_reasons(self, plain):
        Judge.objects.filter(run=plain).update(provider="default")
        response = user_client().get(page_of(plain))
        assert "No composite yet" in text_of(response)
        form = response.context["form"]
        first, second = ({name: row[name].value() for name in row} for row in form.rows)
        assert json.loads(first["source"]) == {"from": "judge_score", "judge": "judge-0"}
        assert (first["name"], first["weight"], first["reason"]) == (
            "judge-0",
            "1",
            "Judges count alike.",
        )
        assert (second["name"], second["gate"], second.get("weight")) == ("rendered", True, None)


class TestDrift:
    def test_by_quarter_with_n_and_votes(self):
        run = make_scored(pairs=8)
        outputs = [side for pair in pairs_of(run)[1:] for side in (pair.a, pair.b)]
        passes = [(item, n % 2 == 0) for n, item in enumerate(outputs)]
        disliked = [passes[0][0], outputs[1]]
        passes += [(item, 0.5) for item in disliked]
        make_passes(run, passes, at=timezone.now().replace(year=2025, month=5))
        text = text_of(user_client().get(page_of(run)))
        assert "In 2025 Q2 the composite ranks items as people do" in text
        assert re.search(r"Composite 0\.\d\d , orders outputs as people do \(0\.\d\d\)", text)
        assert "2025 Q2" in text
        assert "14" in text
        assert "bootstrap over 14 items, 1,000 resamples" in text

    def test_too_little_is_said_and_no_number_is_made_up(self, scored):
        make_passes(scored, [(pairs_of(scored)[0].a, 1)])
        text = text_of(user_client().get(page_of(scored)))
        assert "it takes 3 items that people voted on, there are 1" in text

    def test_nobody_has_voted_on_outputs(self, scored):
        text = text_of(user_client().get(page_of(scored)))
        assert "Nobody has passed or flagged an output yet." in text

    def test_what_it_contains_is_no_check_of_it(self):
        run = make_scored(check="win_rate")
        text = text_of(user_client().get(page_of(run)))
        assert "Not checked: it contains what it would be checked against." in text

    def test_earlier_versions_stay_in_the_check(self, scored):
        store(scored, parse(CONFIG | {"gates": [], "label": "second try"} | _without_safe()))
        text = text_of(user_client().get(page_of(scored)))
        assert text.index("second try") < text.index("first try")
        assert "earlier" in text


def _without_safe():
    return {"sources": {name: CONFIG["sources"][name] for name in ("quality", "liked")}}


class TestJudgeLeftOut:
    def test_a_composite_made_with_it_has_no_value_and_says_so(self):
        run = make_scored()
        gone = run.judges.get(name="judge-0")
        leave_out(gone, make_voter(run), "Dead.")
        seal_all(run.queue.project)
        client, said = user_client(), "judge-0 is left out of this run"
        page = client.get(page_of(run))
        assert f"Composite {DASH}" in text_of(page)
        assert f"No composite: {said}. Take it back , or use another judge." in text_of(page)
        assert f"Not checked: {said}." in text_of(page)
        assert [row[-2:] for row in cells_of(page)] == [[DASH, said]] * 4
        assert not any(source.get("judge") for source in offered(run))
        assert ">mean score by judge-0</option>" in page.content.decode()
        _, token = make_key("read", "manage", project=run.queue.project)
        api = key_client(token)
        got = api.get(address(run)).json()
        assert (got["mean"], got["drift_in_words"]) == (None, f"Not checked: {said}.")
        again = api.put(address(run), CONFIG, content_type="application/json")
        refusal = "judge-0 is left out of this run: take it back, or choose another"
        assert again.status_code == 422
        assert refusal in again.content.decode()
        refused = TestForm().post(run, *ROWS)
        assert refused.status_code == 422
        assert f"J{refusal[1:]}." in text_of(refused)

        include(gone, make_voter(run))
        seal_all(run.queue.project)
        assert "Composite 0.36" in text_of(client.get(page_of(run)))


class TestAccess:
    def test_a_shared_one_is_for_everybody_without_the_form(self):
        response = Client().get(page_of(make_scored(shared=True)))
        assert response.status_code == 200
        assert "<form" not in response.content.decode().split("<main")[1]

    def test_a_voter_with_open_pairs_is_refused(self):
        run = make_scored(shared=True)
        assert voter_client(make_voter(run)).get(page_of(run)).status_code == 403

    def test_an_evaluator_who_votes_sees_no_numbers_of_open_pairs(self):
        run = make_scored(pairs=10)
        client = user_client()
        client.get(page_of(run))
        voter = Exposure.objects.first().voter
        Exposure.objects.all().delete()
        for pair in pairs_of(run):
            Assignment.objects.create(voter=voter, item=pair, leased_until=timezone.now())
        make_vote(voter, pairs_of(run)[1], "A")
        assert client.get(page_of(run)).status_code == 403
        # What judges say of items that nobody has voted on is told of no open one either.
        Item.objects.filter(queue=run.queue).update(votes=0)
        response = client.get(page_of(run))
        closed = [row for row in cells_of(response) if len(row) == 1]
        assert len(closed) == 18
        assert "You have its pair open for voting" in closed[0][0]
        assert "hard-gate fail" not in text_of(response).split("20 outputs")[1]
        seen = Exposure.objects.filter(voter=voter).values_list("item", flat=True)
        assert set(seen) == {pairs_of(run)[1].pk}

    def test_who_has_seen_judges_scores_has_seen_verdicts(self, scored):
        user_client().get(page_of(scored))
        assert Exposure.objects.count() == 2

    def test_who_has_seen_what_people_like_has_seen_their_votes(self):
        weights = {"liked": CONFIG["weights"]["liked"]}
        run = make_scored(weights=weights, gates=[], sources={"liked": "win_rate"})
        user_client().get(page_of(run))
        assert Exposure.objects.count() == 2

    def test_a_composite_of_few_outputs_would_tell_of_those_that_are_open(self):
        run = make_scored(pairs=9)
        voter = voter_of_user(run.queue.project, User.objects.create(username="owner"))
        Assignment.objects.create(voter=voter, item=pairs_of(run)[0], leased_until=timezone.now())
        assert user_client().get(page_of(run)).status_code == 403

    def test_a_run_that_is_not_there(self):
        assert user_client().get(f"/runs/{uuid4()}/composite/").status_code == 404


class TestApi:
    def put(self, run, config):
        client = key_client(make_key("read", "manage")[1])
        text = config if isinstance(config, str) else json.dumps(config)
        return client.put(address(run), text, content_type="application/json")

    def test_what_is_put_is_read_again_and_shown(self, plain):
        reader = key_client(make_key("read")[1])
        assert reader.get(address(plain)).status_code == 404
        response = self.put(plain, CONFIG)
        assert response.status_code == 200
        told = reader.get(address(plain)).json()
        assert {name: told[name] for name in response.json()} == response.json()
        assert parse(response.json()["config"]) == parse(CONFIG)
        assert response.json()["version"] == parse(CONFIG).version
        assert "first try" in text_of(user_client().get(page_of(plain)))

    def test_get_tells_values_components_gates_and_drift(self):
        about = {"quality": CONFIG["weights"]["quality"]}
        sources = {name: CONFIG["sources"][name] for name in ("quality", "safe")}
        run = make_scored(weights=about, sources=sources, check="win_rate")
        safe = Inference.objects.filter(project=run.queue.project, metadata={"safe": True})
        safe.filter(pk=pairs_of(run)[1].a_id).update(metadata={})
        safe.filter(pk=pairs_of(run)[1].b_id).update(metadata={"safe": "True"})
        told = key_client(make_key("read")[1]).get(address(run)).json()
        assert told["gates"]["safe"] == {"failed": 1, "no_value": 1}
        assert (told["with_value"], told["without_value"], told["pages"]) == (4, 0, 1)
        reasons = sorted(each["reason"] for each in told["outputs"])
        assert reasons == ["hard-gate fail: safe", "hard-gate fail: safe", "ok", "ok"]
        assert sum(each["is_missing"] for each in told["outputs"]) == 1
        best = told["outputs"][0]
        assert best["components"]["safe"] == 1
        assert best["value"] == max(each["value"] for each in told["outputs"])
        assert told["mean"] == sum(each["value"] for each in told["outputs"]) / 4
        assert [each["outputs"] for each in told["drift"]] == [4]
        page = text_of(user_client().get(page_of(run)))
        assert "Failed gates (the composite is 0): safe on 1 output." in page
        assert "Gates without a value (the composite is 0): safe on 1 output." in page

    def test_get_leaves_out_what_the_key_may_vote_on(self):
        run = make_scored(pairs=10)
        key, secret = make_key("read", "vote")
        voter = voter_of_key(run.queue.project_id, key)
        pair = pairs_of(run)[0]
        Assignment.objects.create(voter=voter, item=pair, leased_until=timezone.now())
        assert key_client(secret).get(address(run)).status_code == 403
        Item.objects.filter(queue=run.queue).update(votes=0)
        told = key_client(secret).get(address(run)).json()
        assert {str(pair.a_id), str(pair.b_id)}.isdisjoint(each["id"] for each in told["outputs"])

    def test_mistakes_are_named_by_their_path_and_nothing_is_stored(self, plain):
        response = self.put(plain, CONFIG | {"gates": ["safe", "tasty"], "chek": 1})
        errors = {each["path"]: each["message"] for each in response.json()["detail"]}
        assert response.status_code == 422
        assert errors["sources.tasty"] == "is missing"
        assert errors["chek"].startswith("unknown; did you mean")
        assert not CompositeDefinition.objects.filter(run=plain).exists()

    @pytest.mark.parametrize(
        "text, status", [("", 422), ("{", 422), ("[" * 5_000, 422), ("x" * 1_000_001, 413)]
    )
    def test_what_cannot_be_read(self, plain, text, status):
        assert self.put(plain, text).status_code == status
        assert not CompositeDefinition.objects.filter(run=plain).exists()


class TestSaving:
    def save(self, run, client):
        rows = [("name", "liked"), ("source", '{"from": "win_rate"}'), ("weight", "1")]
        data = {f"{name}-0": value for name, value in [*rows, ("reason", "It is liked.")]}
        return client.post(page_of(run) + "save", data | {"check": "pass_rate"})

    def test_a_new_composite_is_stored_and_shown(self, plain):
        response = self.save(plain, user_client())
        assert (response.status_code, response.url) == (302, page_of(plain))
        assert "It is liked." in text_of(user_client().get(page_of(plain)))

    def test_not_by_a_link(self, plain):
        assert user_client().get(page_of(plain) + "save").status_code == 405

    def test_not_from_another_site(self, plain):
        assert self.save(plain, user_client(enforce_csrf_checks=True)).status_code == 403


# What stands in the rows of `CONFIG`.
ROWS = [
    {
        "name": "quality",
        "source": '{"from": "judge_score", "judge": "judge-0"}',
        "low": "0",
        "high": "10",
        "weight": "3",
        "reason": "The judge reads everything.",
    },
    {
        "name": "liked",
        "source": '{"from": "win_rate"}',
        "weight": "1",
        "reason": "People choose <b>it</b>.",
    },
    {
        "name": "safe",
        "source": '{"from": "metadata", "key": "safe"}',
        "equals": "true",
        "gate": "on",
    },
]


class TestForm:
    def post(self, run, *rows, change=None, client=None, **fields):
        data = {"label": "first try", "check": "pass_rate"} | fields
        data |= {f"{name}-{n}": value for n, row in enumerate(rows) for name, value in row.items()}
        data |= {"change": change} if change else {}
        return (client or user_client()).post(page_of(run) + "save", data)

    def values(self, response):
        rows = response.context["form"].rows
        values = [{name: field.value() for name, field in row.items()} for row in rows]
        values = [row | {"gate": row["gate"] and "on"} for row in values]
        return [{k: v for k, v in row.items() if v not in (None, "", False)} for row in values]

    def test_rows_say_what_the_config_says(self, plain, scored):
        other = scored
        assert self.post(plain, *ROWS).status_code == 302
        mine, theirs = (CompositeDefinition.objects.get(run=each) for each in (plain, other))
        assert json.loads(mine.config) == json.loads(theirs.config)
        as_form = self.values(user_client().get(page_of(plain)))
        assert as_form == ROWS

    @pytest.mark.parametrize(
        "make",
        [
            lambda: make_run(pairs=2, judges=2, baselines=()),
            lambda: make_run(pairs=2, judges=1),
            lambda: make_scored(defined=False),
            lambda: make_single_run(outputs=["One", "Two"]),
        ],
    )
    def test_what_is_proposed_is_accepted_as_it_is(self, make):
        run = make()
        rows = self.values(user_client().get(page_of(run)))
        assert self.post(run, *rows, check=proposal(run)["check"]).status_code == 302
        assert "mean composite of" in text_of(user_client().get(page_of(run)))

    def test_only_tasks_of_this_run_are_offered(self, plain):
        other = make_single_run(outputs=["One"], project=plain.queue.project)
        own, strange = pairs_of(plain)[0], pairs_of(other)[0]
        for item, task in ((own, "tone"), (strange, "length")):
            vote = make_vote(make_voter(plain), item, "A" if item == own else "pass")
            Entry.objects.filter(uid=vote.uid).update(labels={task: "good"})
        seal_all(plain.queue.project)
        tasks = [source["task"] for source in offered(plain) if source["from"] == "label"]
        assert tasks == ["tone"]

    def test_a_row_comes_or_goes_and_nothing_else_does(self, plain):
        wrong = ROWS[0] | {"weight": "a lot", "low": "x"}
        more = self.post(plain, wrong, ROWS[1], change="add", label="mine")
        assert self.values(more) == [wrong, ROWS[1], {}]
        assert more.context["form"]["label"].value() == "mine"
        assert more.context["form"].fields["name-2"].widget.attrs["autofocus"]
        fewer = self.post(plain, *ROWS, change="remove-1")
        assert self.values(fewer) == [ROWS[0], ROWS[2]]
        assert more.status_code == fewer.status_code == 200
        assert not CompositeDefinition.objects.filter(run=plain).exists()

    def test_htmx_gets_the_form_alone(self, scored):
        data = {"change": "add", "label": "mine"}
        answer = user_client().post(page_of(scored) + "save", data, headers=HTMX)
        assert answer.content.decode().lstrip().startswith('<section id="composite-form"')

    def test_what_is_typed_is_shown_and_not_saved(self, scored):
        rows = [ROWS[0], ROWS[1] | {"weight": "9"}, ROWS[2]]
        client = user_client()
        client.defaults["HTTP_HX_REQUEST"] = "true"
        tried = self.post(scored, *rows, change="try", client=client)
        assert "Composite 0.29" in text_of(tried)
        assert "not saved yet" in text_of(tried)
        assert "<form" not in tried.content.decode()
        whole = text_of(self.post(scored, *rows, change="try"))
        assert "Composite 0.29" in whole
        assert "Use this composite" in whole
        assert "Composite 0.36" in text_of(user_client().get(page_of(scored)))
        wrong = self.post(scored, ROWS[0] | {"weight": ""}, change="try", client=client)
        assert "Weight of component 1 : Is missing." in text_of(wrong)
        assert CompositeDefinition.objects.filter(run=scored).count() == 1

    @pytest.mark.parametrize(
        "place, change, field, said",
        [
            (0, {"weight": "0"}, "weight-0", "Must be greater than 0."),
            (0, {"weight": "a lot"}, "weight-0", "Must be a number, not text."),
            (0, {"weight": ""}, "weight-0", "Is missing."),
            (1, {"reason": " "}, "reason-1", "Is empty."),
            (1, {"name": ""}, "name-1", "This field is required."),
            (1, {"name": "quality"}, "name-1", "Another component has this name."),
            (1, {"name": "<b>"}, "name-1", "Must be plain words on one line."),
            (2, {"name": "<b>"}, "name-2", "Must be plain words on one line."),
            (0, {"low": "10"}, "low-0", "Must be two numbers, the lower one first, as [1, 5]."),
            (0, {"high": ""}, "high-0", "Must be a number, not text."),
            (2, {"low": "0", "high": "1"}, "low-2", "Say which 'range' becomes"),
            (0, {"source": '{"from": "judge_score", "judge": "gpt"}'}, "source-0", "No judge of"),
            (0, {"source": '{"from": "rendred"}'}, "source-0", "'rendred' must be one of"),
            (0, {"source": "[" * 999}, "source-0", "must be one of"),
        ],
    )
    def test_a_mistake_stands_at_its_field_and_all_else_stays(
        self, plain, place, change, field, said
    ):
        rows = [row | change if n == place else row for n, row in enumerate(ROWS)]
        response = self.post(plain, *rows)
        form = response.context["form"]
        assert response.status_code == 422
        assert said in form.errors[field][0]
        assert list(form.errors) == [field], form.errors
        assert f'<a href="#id_{field}">' in response.content.decode()
        sent = [{name: value for name, value in row.items() if value} for row in rows]
        assert self.values(response) == sent
        assert not CompositeDefinition.objects.filter(run=plain).exists()

    def test_a_component_that_neither_counts_nor_is_a_gate_lacks_a_weight(self, plain):
        response = self.post(plain, {**ROWS[2], "gate": ""})
        assert response.context["form"].errors["weight-0"] == ["Is missing."]

    def test_a_rule_that_a_source_does_not_take_is_not_read(self, plain):
        assert self.post(plain, ROWS[1] | {"low": "1", "equals": "yes"}).status_code == 302

    def test_more_rows_than_a_composite_has(self, plain):
        response = self.post(plain, *(ROWS[1] | {"name": f"c{n}"} for n in range(31)))
        assert "weights: has 31, the most is 30" in text_of(response)

    def test_a_source_that_is_gone_stays_chosen(self, scored):
        Judge.objects.filter(run=scored).update(name="renamed")
        assert self.values(user_client().get(page_of(scored)))[0]["source"] == ROWS[0]["source"]


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow():
    counts = []
    for pairs in (1, 60):
        run = make_scored(pairs=pairs)
        make_passes(run, [(pair.a, 1) for pair in pairs_of(run)])
        counts.append(queries_of(user_client(), page_of(run)))
    # Figures over few items ask who has these to vote on.
    assert counts[0] >= counts[1]

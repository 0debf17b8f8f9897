"""The forms of a new run: what they make, and that whatever is wrong is said where it is."""

import html
import json
import re

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test.client import MULTIPART_CONTENT

from judge_eval.judging.baselines import names_for
from judge_eval.judging.config.run_config import RUBRICS, parse
from judge_eval.models import Run
from judge_eval.runs import lifecycle
from judge_eval.runs.forms import RunForm, empty_values, form_values
from reports.quality.parameters import parameters_of
from tests.helpers.pages import text_of
from tests.helpers.run_rows import make_provider
from tests.makers import make_project, make_run, seal_all, user_client
from voting.models import Project

pytestmark = pytest.mark.django_db

FORM = "/runs/new/"
JSON = "/runs/new/config/"
# Who may do everything.
ROOT = User(is_superuser=True)


def filled(**changes):
    """A form that is filled in, as a browser sends it."""
    data = empty_values(ROOT) | {
        "new_project": "A project",
        "name": "Harbours",
        "kind": "text",
        "models": "model-a\r\nmodel-b",
        "judges": "judge-long",
        "prompts": "a harbour\r\n\r\n  a lighthouse ",
    }
    data = {name: value for name, value in data.items() if value is not None}
    return data | changes


def post(data, url=FORM, **files):
    return user_client().post(url, {**data, **files})


def made(response):
    """The config of the draft that a form led to."""
    assert response.status_code == 302, errors_of(response)
    [run] = Run.objects.all()
    assert response.url == f"/runs/{run.pk}/draft/"
    assert run.state == "draft"
    return lifecycle.config_of(run)


def errors_of(response):
    """What is said beside each field."""
    body = response.content.decode()
    found = re.findall(r'<ul class="errorlist" id="id_(\w+)_error">(.*?)</ul>', body, re.DOTALL)
    return {
        field: [html.unescape(each) for each in re.findall(r"<li>(.*?)</li>", items, re.DOTALL)]
        for field, items in found
    }


def file(content, name="prompts.txt"):
    return SimpleUploadedFile(name, content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize(
    "changes, items, judges",
    [
        ({"items_kind": "pass_flag", "items_graded": "on"}, {"graded": True}, ["pass", "flag"]),
        ({"items_kind": "rating", "items_task": "stars"}, {"task": "stars"}, ["3"]),
        (
            {"items_kind": "category", "items_choices": "warm\r\n dry "},
            *({"choices": ["warm", "dry"]}, ["warm", "dry"]),
        ),
    ],
)
def test_a_form_asks_about_single_items(changes, items, judges):
    config = made(post(filled(models="model-a", **changes)))
    assert config.items.kind == changes["items_kind"]
    assert config.items.model_dump(mode="json").items() >= items.items()
    names = [judge.id for judge in config.judges]
    longer = ["longer-higher"] if changes["items_kind"] == "rating" else []
    assert names == ["judge-long", *(f"always-{choice}" for choice in judges), *longer, "random"]
    assert form_values(config, ROOT)["items_kind"] == changes["items_kind"]


def test_what_is_wrong_with_a_label_is_said_beside_the_labels():
    said = errors_of(post(filled(items_kind="labels", items_choices="a;b\nc")))
    assert "must not hold" in said["items_choices"][0].lower()
    said = errors_of(post(filled(items_kind="category")))
    assert said == {"items_choices": ["Must have at least 2, has 0."]}


def test_a_form_makes_a_draft():
    config = made(
        post(filled(budget_usd="2.5", overlap_share="15", judging_samples="3", margin="7"))
    )
    assert config.name == "Harbours"
    assert [model.id for model in config.models] == ["model-a", "model-b"]
    assert [prompt.text for prompt in config.prompts] == ["a harbour", "a lighthouse"]
    judges = [(judge.id, judge.provider) for judge in config.judges]
    assert judges[0] == ("judge-long", "default")
    assert [provider for _, provider in judges[1:]] == ["baseline"] * len(names_for("text"))
    assert (config.budget_usd, config.overlap.share, config.judging.samples) == (2.5, 0.15, 3)
    assert config.margin == 0.07
    assert Run.objects.get().queue.project.name == "A project"


def test_what_is_left_alone_is_what_a_config_has_by_default_but_for_overlap():
    config = made(post(filled()))
    same = parse(
        {
            "name": "Harbours",
            "kind": "text",
            "models": ["model-a", "model-b"],
            "judges": ["judge-long", *names_for("text")],
            "prompts": ["a harbour", "a lighthouse"],
            "overlap": {"share": 0.2, "votes": 3},
        }
    )
    assert config == same


def test_numbers_left_empty_are_the_defaults_and_temperatures_are_not_sent():
    numbers = ["votes_per_pair", "overlap_share", "overlap_votes", "judging_samples", "budget_usd"]
    numbers += ["margin", "generation_max_tokens", "judging_max_tokens"]
    numbers += ["generation_temperature", "judging_temperature"]
    config = made(post(filled(**dict.fromkeys(numbers, ""))))
    assert (config.votes_per_pair, config.overlap.share, config.judging.samples) == (1, 0, 1)
    assert (config.generation.max_tokens, config.judging.max_tokens) == (4000, 400)
    assert config.generation.temperature is None
    assert config.judging.temperature is None


def test_a_new_run_begins_with_pairs_that_several_people_vote_on():
    initial = user_client().get(FORM).context["form"].initial
    assert (initial["votes_per_pair"], initial["overlap_share"]) == (1, "20")
    assert initial["overlap_votes"] == 3


@pytest.mark.parametrize("projects", [0, 1, 2])
@pytest.mark.parametrize("form", ["", "config/"])
def test_a_project_is_chosen_only_where_there_is_no_choice(projects, form):
    made = [make_project() for _ in range(projects)]
    chosen = user_client().get(FORM + form).context["form"].initial["project"]
    assert chosen == (made[0] if projects == 1 else None)


def test_an_existing_project_is_taken():
    project = make_project("Lighthouses")
    made(post(filled(new_project="", project=str(project.pk))))
    assert Run.objects.get().queue.project == project
    assert Project.objects.count() == 1


@pytest.mark.parametrize("both", [True, False])
def test_one_project_and_only_one(both):
    project = make_project()
    chosen = {"new_project": "A project", "project": str(project.pk)} if both else {}
    data = filled(new_project="") | chosen
    response = post(data)
    assert response.status_code == 422
    assert list(errors_of(response)) == ["new_project"]
    assert not Run.objects.exists()


def test_the_rubric_follows_the_kind_until_somebody_writes_one():
    # As the form stood for drawings, without a script that changes it.
    assert made(post(filled(rubric=RUBRICS["svg"]))).rubric == RUBRICS["text"]
    lifecycle.delete(Run.objects.get().pk)
    assert made(post(filled(rubric=""))).rubric == RUBRICS["text"]
    lifecycle.delete(Run.objects.get().pk)
    assert made(post(filled(rubric="Mine.\r\nOnly mine."))).rubric == "Mine.\nOnly mine."


GENERATES_NOTHING = "random is a baseline: it judges and generates nothing."
DRAWINGS_ONLY = "more-elements-wins judges drawings only; the kind of this run is text."


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"models": "model-a"}, {"models": ["Enter at least two models."]}),
        ({"models": ""}, {"models": ["Enter at least two models."]}),
        (
            {"models": "\r\nm\r\n\r\nm\r\nrandom"},
            {"models": ["Line 4: 'm' is given twice.", f"Line 5: {GENERATES_NOTHING}"]},
        ),
        ({"judges": "j\r\n\r\nj"}, {"judges": ["Line 3: 'j' is given twice."]}),
        ({"judges": "", "baselines": []}, {"judges": ["Must have at least 1, has 0."]}),
        (
            {"baselines": ["random", "more-elements-wins"]},
            {"baselines": [f"more-elements-wins: {DRAWINGS_ONLY}"]},
        ),
        ({"prompts": " \r\n"}, {"prompts": ["Must have at least 1, has 0."]}),
        (
            {"prompts": f"a\r\n\r\n{'b' * 20_001}"},
            {"prompts": ["Line 3: has 20,001 characters, the most is 20,000."]},
        ),
        ({"votes_per_pair": "0"}, {"votes_per_pair": ["Must be at least 1."]}),
        ({"votes_per_pair": "some"}, {"votes_per_pair": ["Enter a whole number."]}),
        ({"overlap_share": "101"}, {"overlap_share": ["Must be from 0 to 100."]}),
        ({"judging_samples": "26"}, {"judging_samples": ["Must be at most 25."]}),
        ({"budget_usd": "0"}, {"budget_usd": ["Must be greater than 0."]}),
        ({"margin": "30"}, {"margin": ["Must be above 0, and up to 25."]}),
        ({"budget_usd": "nan"}, {"budget_usd": ["Enter a number."]}),
        ({"generation_temperature": "3"}, {"generation_temperature": ["Must be at most 2."]}),
        ({"rubric": "x" * 20_001}, {"rubric": ["Has 20,001 characters, the most is 20,000."]}),
    ],
)  # fmt: skip
def test_each_error_stands_beside_its_field(changes, expected):
    response = post(filled(**changes))
    assert response.status_code == 422
    assert errors_of(response) == expected
    assert not Run.objects.exists()
    assert not Project.objects.exists()


def test_all_errors_are_said_at_once_and_nothing_typed_is_lost():
    data = filled(
        models="only-one",
        votes_per_pair="x",
        prompts="a harbour\r\n<b>bold</b>",
        rubric="My own words.",
        judging_temperature="9",
    )
    response = post(data)
    assert set(errors_of(response)) == {"models", "votes_per_pair", "judging_temperature"}
    body = response.content.decode()
    for typed in (
        "only-one",
        "&lt;b&gt;bold&lt;/b&gt;",
        "My own words.",
        'value="x"',
        "judge-long",
    ):
        assert typed in body
    assert 'aria-describedby="id_models_helptext id_models_error"' in body
    assert '<a href="#id_votes_per_pair">Votes per pair</a>' in body


def test_of_very_many_errors_the_first_are_said():
    response = post(filled(models="\r\n".join(["m"] * 40)))
    said = errors_of(response)["models"]
    assert len(said) == 21
    assert said[-1] == "And 19 more."


@pytest.mark.parametrize(
    "name, content, prompts",
    [
        ("p.txt", "\ufeffone\r\n\r\ntwo\n", [("1", "one", ()), ("2", "two", ())]),
        ("p.JSON", '["one", {"id": "t", "text": "two\\nlines", "tags": ["x"]}]',
         [("1", "one", ()), ("t", "two\nlines", ("x",))]),
        ("p.csv", 'id,text,tags\r\na,"one, with a comma",x;y\r\n\r\n,two,\r\n',
         [("a", "one, with a comma", ("x", "y")), ("2", "two", ())]),
        ("p.csv", '\ufeffTEXT\n"two\nlines"\n', [("1", "two\nlines", ())]),
        ("p.csv", "text;tags\nein Hafen;a,b\n", [("1", "ein Hafen", ("a", "b"))]),
    ],
)  # fmt: skip
def test_prompts_come_from_a_file(name, content, prompts):
    config = made(post(filled(prompts=""), prompts_file=file(content, name)))
    assert [(p.id, p.text, p.tags) for p in config.prompts] == prompts


@pytest.mark.parametrize(
    "name, content, error",
    [
        ("p.json", "[1, ", "This file cannot be read: not JSON: Expecting value"),
        ("p.json", '{"a": 1, "a": 2}', "This file cannot be read: the key 'a' is given twice."),
        ("p.json", '{"text": "x"}', "it must be a JSON array"),
        ("p.json", '["x", {"txt": "y"}]', "Item 2, text: is missing."),
        ("p.json", "[1]", "Item 1: must be text or an object, not a number."),
        ("p.csv", "prompt\nx\n", "its first line must name the columns"),
        ("p.csv", "", "The submitted file is empty."),
        ("p.csv", "\n", "its first line must name the columns"),
        ("p.csv", 'text\n"x', "it is not CSV"),
        ("p.csv", "text\nx,y\n", "row 2 has more cells than there are columns"),
        ("p.csv", "id,text\nsame,x\nsame,y\n", "Row 3: 'same' is given twice."),
        ("p.csv", "id,text\nlonely\n", "Row 2, text: is empty."),
        ("p.txt", b"\xff\xfe", "it is not UTF-8"),
        ("p.txt", b"a\0b", "Line 1: must hold no NUL"),
        ("p.txt", "  \n", "Must have at least 1, has 0."),
    ],
)
def test_what_is_wrong_with_a_file_is_said_of_its_line(name, content, error):
    response = post(filled(prompts=""), prompts_file=file(content, name))
    assert response.status_code == 422
    said = errors_of(response)
    assert list(said) == ["prompts_file"]
    assert any(error in each for each in said["prompts_file"]), said
    assert "Choose your file again" in text_of(response)


def test_prompts_are_pasted_or_in_a_file_not_both():
    response = post(filled(), prompts_file=file("x"))
    assert errors_of(response)["prompts_file"] == ["Paste prompts or choose a file, not both."]


@pytest.mark.parametrize("url, field", [(FORM, "prompts_file"), (JSON, "config_file")])
def test_a_file_larger_than_5_mb_is_refused_and_what_was_typed_is_kept(url, field):
    data = filled(prompts="", models="typed-model\r\nb") if url == FORM else {"new_project": "New"}
    response = post(data, url, **{field: file(b"x" * 5_000_001)})
    assert response.status_code == 413
    assert errors_of(response)[field] == ["It is larger than 5 MB."]
    assert ("typed-model" if url == FORM else "New") in response.content.decode()


@pytest.mark.parametrize("url", [FORM, JSON])
def test_a_much_larger_body_is_not_even_read(url):
    class Unreadable:
        def read(self, *_):
            raise AssertionError("it was read")

        readline = read

        def __len__(self):
            return 9_000_000

    client = user_client(enforce_csrf_checks=True)
    response = client.generic(
        "POST", url, b"", content_type=MULTIPART_CONTENT, CONTENT_LENGTH="9000000",
        **{"wsgi.input": Unreadable()},
    )  # fmt: skip
    assert response.status_code == 413
    assert "A file may have 5 MB" in text_of(response)


def test_a_text_that_is_too_long_to_paste_is_refused_in_words():
    response = post(filled(prompts="x" * 2_700_000))
    assert response.status_code == 413
    assert "too much to paste" in text_of(response)


def offered():
    body = user_client().get(FORM).content.decode()
    select = body.partition('<select name="provider"')[2].partition("</select>")[0]
    return re.findall(r'<option value="([^"]*)"( selected)?', select)


def test_providers_are_offered_by_name_and_the_usual_one_is_chosen(settings):
    make_provider(name="vllm")
    make_provider(name="openrouter")
    assert offered() == [("openrouter", " selected"), ("vllm", "")]
    settings.PROVIDER_BASE_URL = "http://127.0.0.1:9/v1"
    assert offered() == [("default", " selected"), ("openrouter", ""), ("vllm", "")]
    assert made(post(filled(provider="vllm"))).provider == "vllm"


def test_where_there_is_no_provider_none_is_offered_and_it_is_said_how_to_add_one():
    assert offered() == [("", " selected")]
    assert 'href="/providers/"' in user_client().get(FORM).content.decode()
    response = post(filled())
    assert made(response).provider == "default"
    assert "There is no provider named default." in text_of(user_client().get(response.url))


def test_a_provider_that_is_gone_is_said_of_the_draft():
    response = post(filled(provider="gone"))
    assert made(response).provider == "gone"
    assert "There is no provider named gone." in text_of(user_client().get(response.url))


# --- a config as JSON -----------------------------------------------------------------------------

CONFIG = {
    "name": "By hand",
    "kind": "text",
    "models": ["a", "b"],
    "judges": ["j", {"id": "k", "provider": "other"}, "random"],
    "prompts": [{"id": "p", "text": "two\nlines", "tags": ["x"]}],
}


def test_a_config_makes_a_draft():
    config = made(post({"new_project": "P", "config": json.dumps(CONFIG)}, JSON))
    assert config == parse(CONFIG)


def test_a_config_may_be_a_file():
    upload = file("\ufeff" + json.dumps(CONFIG), "config.json")
    assert made(post({"new_project": "P"}, JSON, config_file=upload)) == parse(CONFIG)


@pytest.mark.parametrize(
    "config, error",
    [
        ('{"name": "x", "models": [{"id": ""}, "b"]}', "models[0].id: is empty"),
        ('{"name": ', "It is not JSON: Expecting value at character 9."),
        ('{"name": 1, "name": 2}', "It is the key 'name' is given twice."),
        ("[]", "must be an object, not a list"),
        ('{"nmae": "x"}', "nmae: unknown; did you mean 'name'?"),
        ("[" * 100_000, "It is nested too deeply."),
    ],
)
def test_each_error_of_a_config_is_said_with_its_path(config, error):
    response = post({"new_project": "P", "config": config}, JSON)
    assert response.status_code == 422
    assert error in errors_of(response)["config"]
    assert html.escape(config[:60], quote=False).replace('"', "&quot;") in response.content.decode()


@pytest.mark.parametrize("both", [True, False])
def test_a_config_is_pasted_or_a_file(both):
    data = {"new_project": "P", "config": json.dumps(CONFIG) if both else ""}
    files = {"config_file": file(json.dumps(CONFIG))} if both else {}
    response = post(data, JSON, **files)
    assert errors_of(response)["config_file"] == ["Paste a config or choose a file, not both."]


# --- a config changed -----------------------------------------------------------------------------


def make_draft(**changes):
    data = {
        "name": "First",
        "kind": "code",
        "models": ["a", "b"],
        "judges": ["j", "random"],
        "prompts": ["one", "two"],
        "ballot": ["A", "B", "tie"],
        "votes_per_pair": 2,
        "overlap": {"share": 0.07, "votes": 4},
        "reveal": "at_end",
        "verdict_orders": "random",
        "generation": {"temperature": None, "max_tokens": 99},
        "judging": {"temperature": 0.25, "max_tokens": 123, "samples": 5},
        "budget_usd": 1.5,
        "margin": 0.07,
        "provider": "somewhere",
    }
    return lifecycle.create(make_project("P"), parse(data | changes))


def test_duplicate_and_change_starts_from_all_that_the_run_says():
    run = make_draft()
    response = user_client().get(f"{FORM}?from={run.pk}")
    form = response.context["form"]
    assert isinstance(form, RunForm)
    assert form.initial["project"] == run.queue.project_id
    data = {name: value for name, value in form.initial.items() if value is not None}
    copy = RunForm(data, initial=form.initial, user=ROOT)
    assert copy.is_valid(), copy.errors
    assert copy.run_config.as_dict() == lifecycle.config_of(run).as_dict() | {
        "name": "First (copy)"
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"prompts": [{"id": "x", "text": "one"}]},
        {"prompts": [{"text": "one", "tags": ["t"]}]},
        {"prompts": ["two\nlines"]},
        {"prompts": [" spaces "]},
        {"judges": ["random", "j"]},
        {"judges": ["random", "always-first"]},
        {"judges": [{"id": "j", "provider": "other"}]},
        {"mode": "standard", "models": ["a"]},
        {"rubric": "Lines\n"},
    ],
)
def test_what_the_form_has_no_place_for_is_changed_as_json(changes):
    run = make_draft(**changes)
    client = user_client()
    response = client.get(f"{FORM}?from={run.pk}")
    assert response.url == f"{JSON}?from={run.pk}"
    form = client.get(response.url).context["form"]
    config = lifecycle.config_of(run)
    assert form_values(config, ROOT) is None
    assert parse(json.loads(form.initial["config"])).as_dict() == config.as_dict() | {
        "name": "First (copy)"
    }


def test_a_long_name_is_copied_within_its_length():
    run = make_draft(name="x" * 200)
    values = user_client().get(f"{FORM}?from={run.pk}").context["form"].initial
    assert len(values["name"]) == 200
    assert values["name"].endswith("x (copy)")


def test_only_a_run_with_a_config_can_be_changed():
    client = user_client()
    assert client.get(f"{FORM}?from={make_run().pk}").status_code == 404
    assert client.get(f"{FORM}?from=nonsense").status_code == 404


SIX = {
    "new_project": "P",
    "kind": "text",
    "items_kind": "comparison",
    "models": "a\r\nb temperature=none",
    "judges": "openai/o4-mini temperature=none reasoning_effort=low max_tokens=900",
    "prompts": "Hi.",
    "votes_per_pair": "2",
}


def test_six_fields_make_a_run_and_its_project_remembers_weeks():
    config = made(post(SIX))
    assert config.name == "a, b"
    assert config.votes_per_pair == 2
    assert config.models[1].settings == {"temperature": None}
    assert config.judges[0].id == "openai/o4-mini"
    assert config.judges[0].settings == {
        "temperature": None,
        "reasoning_effort": "low",
        "max_tokens": 900,
    }
    assert any(judge.is_baseline for judge in config.judges)
    assert form_values(config, ROOT)["judges"].startswith("openai/o4-mini max_tokens=900")
    seal_all(Project.objects.get())
    parameters = parameters_of(Project.objects.get())
    assert (parameters.decay_rate, parameters.decay_unit) == (0.1, "day")


@pytest.mark.parametrize("setting", ["heat=3", "temperature=9"])
def test_a_wrong_setting_of_a_model_is_named_with_its_line(setting):
    response = post(SIX | {"models": f"a\r\nb {setting}"})
    assert response.status_code == 422
    assert f"Line 2, {setting.partition('=')[0]}: " in str(errors_of(response)["models"])

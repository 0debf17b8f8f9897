"""A run is made whole: its outputs, pairs, judges and rubric."""

from collections import Counter

import pytest
from django.db import IntegrityError

from judge_eval.demo.content import DemoOutput, DemoPrompt
from judge_eval.judging.baselines import names_for
from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs.services import baseline, create_run
from tests.makers import make_project
from voting.models import Entry, Inference, Item, Picture, VoterPrompt

pytestmark = pytest.mark.django_db

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><rect width="9" height="9"/></svg>'


def prompt(text, outputs, kind="text"):
    outputs = [DemoOutput(generator, output) for generator, output in outputs]
    return DemoPrompt("slug", text, kind, ("easy",), outputs)


def spec(number=2, generators=3, **changed):
    prompts = [
        prompt(f"Question {n}", [(f"generator-{g}", f"Answer {n}.{g}") for g in range(generators)])
        for n in range(number)
    ]
    fields = {"name": "Study", "prompts": prompts, "rubric": "Which is better?"}
    return fields | {"baselines": names_for("text")} | changed


def pairs_of(run):
    return Item.objects.filter(queue=run.queue).order_by("position").select_related("a", "b")


def test_everybody_meets_everybody_on_each_prompt():
    run = create_run(make_project(), **spec())
    met = Counter((p.a.prompt, frozenset((p.a.generator, p.b.generator))) for p in pairs_of(run))
    assert len(met) == 6
    assert set(met.values()) == {1}
    assert all(pair.a.prompt == pair.b.prompt for pair in pairs_of(run))
    assert [pair.position for pair in pairs_of(run)] == list(range(6))
    assert Inference.objects.get(output="Answer 1.2").tags == ["easy"]


def test_who_stands_as_a_is_a_matter_of_chance():
    run = create_run(make_project(), **spec(number=40, generators=2))
    first = Counter(pair.a.generator for pair in pairs_of(run))
    assert set(first) == {"generator-0", "generator-1"}
    assert min(first.values()) > 5  # fewer than that happens once in 10**6 studies


def test_neighbours_are_not_all_of_one_prompt():
    run = create_run(make_project(), **spec(number=6))
    prompts = [pair.a.prompt for pair in pairs_of(run)]
    assert prompts != sorted(prompts)


def test_every_judge_is_asked_about_every_pair():
    run = create_run(make_project(), **spec())
    assert list(
        Judge.objects.filter(run=run).order_by("position").values_list("name", "fingerprint")
    ) == [(name, baseline(run, name).fingerprint) for name in names_for("text")]
    waiting = Verdict.objects.filter(judge__run=run, state="waiting")
    assert waiting.count() == 6 * len(names_for("text"))
    assert set(Judge.objects.filter(run=run).values_list("rating__elo", flat=True)) == {1000.0}
    assert (run.state, run.is_shared) == (Run.State.JUDGING, False)


def test_nothing_is_voted_and_nothing_is_open_yet():
    run = create_run(make_project(), **spec())
    assert not pairs_of(run).filter(opened_at__isnull=False).exists()
    assert not Entry.objects.exclude(kind="object").exists()
    assert run.board.votes == 0


def test_votes_wanted_without_overlap():
    run = create_run(make_project(), **spec(votes_per_item=2))
    assert {pair.votes_wanted for pair in pairs_of(run)} == {2}


def test_a_share_of_the_pairs_wants_more_people():
    wanted = Counter(
        pair.votes_wanted
        for pair in pairs_of(
            create_run(
                make_project(), **spec(number=120, generators=3, overlap_share=0.2, overlap_votes=3)
            )
        )
    )
    assert set(wanted) == {1, 3}
    # 360 pairs at 0.2: 72 on average, 7.6 the standard deviation.
    assert 30 < wanted[3] < 115


@pytest.mark.parametrize("share, wanted", [(0.0, {1}), (1.0, {4})])
def test_no_overlap_and_all_overlap(share, wanted):
    run = create_run(make_project(), **spec(overlap_share=share, overlap_votes=4))
    assert {pair.votes_wanted for pair in pairs_of(run)} == wanted


def test_equal_drawings_share_a_picture():
    outputs = [("one", SVG), ("two", SVG), ("three", SVG.replace("rect", "ellipse"))]
    drawn = prompt("Draw", outputs, "svg")
    create_run(make_project(), **spec(prompts=[drawn], baselines=names_for("svg")))
    assert Picture.objects.count() == 2
    assert Inference.objects.filter(picture__isnull=False).count() == 3


def test_two_runs_of_one_name_and_rubric_share_its_version():
    project = make_project()
    one, other = create_run(project, **spec()), create_run(project, **spec())
    assert one.queue.rubric == other.queue.rubric
    assert VoterPrompt.objects.count() == 1


def test_another_rubric_is_the_next_version_of_it():
    project = make_project()
    create_run(project, **spec())
    create_run(project, **spec(rubric="Which is shorter?"))
    again = create_run(project, **spec(rubric="Which is shorter?"))
    assert again.queue.rubric.text == "Which is shorter?"
    assert sorted(VoterPrompt.objects.values_list("version", flat=True)) == [1, 2]


def test_a_long_name_is_no_obstacle():
    run = create_run(make_project(), **spec(name="long " * 40))
    assert run.name == "long " * 40
    assert run.queue.rubric.name == ("long " * 40)[:100]


def test_a_run_that_cannot_be_is_not_half_there():
    with pytest.raises(IntegrityError):
        create_run(make_project(), **spec(overlap_share=2))
    assert not Run.objects.exists()
    assert not Inference.objects.exists()

"""The demo is complete, safe to render, and gives no generator away."""

import re
from collections import Counter
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from judge_eval.demo.content import DemoOutput, DemoPrompt, examples, jokes, load, rubric

SVG = "{http://www.w3.org/2000/svg}"
GENERATORS = {
    "svg": {"atelier-1", "sketch-mini", "doodle-nano"},
    "text": {"longform-xl", "plain-7b", "hasty-3b"},
}
KINDS = ("svg", "text")
MAX_BYTES = 40_000
MAX_DEPTH = 10
FORBIDDEN = {"script", "foreignObject", "image", "a", "animate", "style", "iframe"}
FONTS = {"DejaVu Sans", "DejaVu Serif", "DejaVu Sans Mono"}
GENERIC = {"sans-serif", "serif", "monospace"}

PROMPTS = [pytest.param(p, id=f"{kind}-{p.slug}") for kind in KINDS for p in load(kind)]
DRAWINGS = [
    pytest.param(output, id=f"{prompt.slug}-{output.generator}")
    for prompt in load("svg")
    for output in prompt.outputs
]


@pytest.mark.parametrize("kind", [*KINDS, "jokes"])
def test_each_example_judge_has_an_answer_and_a_reason_for_every_item(kind):
    prompts = jokes() if kind == "jokes" else load(kind)
    made = {
        (prompt.text, frozenset(output.generator for output in item))
        for prompt in prompts
        for item in combinations(prompt.outputs, 1 if kind == "jokes" else 2)
    }
    for answers in examples(kind).values():
        assert answers.keys() == made
        for (_, generators), (answer, why) in answers.items():
            others = {"pass", "flag"} if kind == "jokes" else {*generators, "tie", "both_bad"}
            assert answer in others
            assert why[-1] in ".!?"
            assert len(why) < 90
            assert not [name for name in generators if name in why]


def depth(element: ET.Element) -> int:
    return 1 + max(map(depth, element), default=0)


def tag(element: ET.Element) -> str:
    return element.tag.removeprefix(SVG)


@pytest.mark.parametrize("kind", KINDS)
def test_ten_prompts_by_three_generators_make_thirty_pairs(kind):
    prompts = load(kind)

    assert len(prompts) == 10
    assert len({prompt.slug for prompt in prompts}) == 10
    assert sum(len(p.outputs) * (len(p.outputs) - 1) // 2 for p in prompts) == 30
    for prompt in prompts:
        assert prompt.kind == kind
        assert {output.generator for output in prompt.outputs} == GENERATORS[kind]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompt_is_tagged_and_its_outputs_differ(prompt: DemoPrompt):
    assert prompt.text.strip() == prompt.text != ""
    assert 1 <= len(prompt.tags) <= 2
    assert len({output.output for output in prompt.outputs}) == 3
    assert all(output.output.strip() for output in prompt.outputs)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_no_output_names_a_generator(prompt: DemoPrompt):
    names = GENERATORS[prompt.kind] | {name.split("-")[0] for name in GENERATORS["svg"]}
    for output in prompt.outputs:
        assert not [name for name in names if name in output.output.lower()]


def test_thirty_jokes_of_one_line_six_by_each_of_five_generators():
    told = [(joke, *joke.outputs) for joke in jokes()]

    assert len({joke.text for joke, _ in told}) == len({o.output for _, o in told}) == 30
    made = Counter(output.generator for _, output in told)
    assert sorted(made.values()) == [6] * 5
    for joke, output in told:
        assert joke.kind == "text"
        assert 1 <= len(joke.tags) <= 2
        assert 5 <= len(output.output.split()) <= 25
        assert len(output.output.splitlines()) == 1
        assert not [name for name in made if name.partition("-")[0] in output.output.lower()]


@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_output_is_not_always_by_the_same_generator(kind):
    longest = Counter(
        max(prompt.outputs, key=lambda output: len(output.output)).generator
        for prompt in load(kind)
    )

    assert len(longest) >= 2
    assert longest.most_common(1)[0][1] <= 8


def test_most_elements_are_not_always_by_the_same_generator():
    def elements(output: DemoOutput) -> int:
        return sum(1 for _ in ET.fromstring(output.output).iter())

    assert len({max(prompt.outputs, key=elements).generator for prompt in load("svg")}) >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_rubric_is_short(kind):
    assert 2 <= len(re.findall(r"[.?!](?:\s|$)", rubric(kind))) <= 4


def test_text_answers_run_from_one_line_to_250_words():
    words = [len(o.output.split()) for prompt in load("text") for o in prompt.outputs]

    assert min(words) < 25
    assert max(words) <= 250


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_drawing_has_a_modest_size(drawing: DemoOutput):
    root = ET.fromstring(drawing.output)

    assert root.tag == f"{SVG}svg"
    assert len(root.attrib["viewBox"].split()) == 4
    assert 200 <= int(root.attrib["width"]) <= 800
    assert 200 <= int(root.attrib["height"]) <= 800
    assert len(drawing.output.encode()) < MAX_BYTES
    assert depth(root) <= MAX_DEPTH


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_drawing_reaches_for_nothing_outside_itself(drawing: DemoOutput):
    root = ET.fromstring(drawing.output)
    ids = {element.attrib["id"] for element in root.iter() if "id" in element.attrib}

    assert "<!" not in drawing.output
    assert not FORBIDDEN & {tag(element) for element in root.iter()}
    for element in root.iter():
        assert not [name for name in element.attrib if name.startswith("on") or name == "style"]
        assert element.attrib.get("href", "#").startswith("#")
        for value in element.attrib.values():
            assert set(re.findall(r"url\((.*?)\)", value)) <= {f"#{name}" for name in ids}
        if tag(element) == "use":
            assert element.attrib["href"][1:] in ids


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_drawing_uses_light_blurs_and_shipped_fonts_only(drawing: DemoOutput):
    root = ET.fromstring(drawing.output)

    for blur in (step for element in root.iter(f"{SVG}filter") for step in element):
        assert tag(blur) == "feGaussianBlur"
        assert float(blur.attrib["stdDeviation"]) <= 8
    for element in root.iter():
        if "font-family" in element.attrib:
            family, generic = element.attrib["font-family"].split(", ")
            assert family in FONTS
            assert generic in GENERIC

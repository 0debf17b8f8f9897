"""Code as HTML: the same text to the letter, marked by classes alone, in bounded time."""

import html
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.core import code
from humanjudge.core.code import highlighted
from judge_eval.judging.prompts.parse import extract
from voting.models import Inference

LANGUAGES = ["", "python", "JavaScript", "html", "c", "sql", "no such language"]
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "/* </code></pre><script>alert(1)</script> */",
    "print('<b>' \"&amp;\")  # </span><style>*{}</style>",
    "\r\n\ttabs\r\n\n\n",
    "\ufeff\x00\u202e\U0001d49c = 'ß'",
]


def assert_same_text(text, language):
    made = highlighted(text, language)
    without_marks = re.sub(r'<span class="hl-[a-z0-9]{1,2}">|</span>', "", made)
    assert "<" not in without_marks
    assert html.unescape(without_marks) == html.unescape(html.escape(text))
    assert made.count("<span") == made.count("</span>")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_code_stays_text(text, language):
    assert_same_text(text, language)


@given(st.text(max_size=300), st.sampled_from(LANGUAGES))
def test_any_text_comes_out_as_it_went_in(text, language):
    assert_same_text(text, language)


def test_what_is_marked():
    made = highlighted("def f(a):\n    return 'x'  # why\n", "python")
    assert made.startswith('<span class="hl-k">def</span> <span class="hl-nf">f</span>(a):')
    assert '<span class="hl-s1">&#x27;</span>' in made
    assert '<span class="hl-c1"># why</span>' in made
    assert highlighted("#!/usr/bin/python\nimport os", "") != "#!/usr/bin/python\nimport os"


@pytest.mark.parametrize("language", [None, 7, ["python"], {"a": 1}])
def test_a_language_that_is_no_word_is_none(language):
    assert Inference(metadata={"language": language}).language == ""
    assert Inference(metadata=[language]).language == ""


def test_what_is_long_is_shown_as_it_is():
    for text in ("x = 1\n" * 5_000, "x" * 1_001):
        assert highlighted(text, "python") == text


@pytest.mark.parametrize(
    "language, unit",
    [("html", "<style>\n"), ("javascript", "```\n"), ("python", '"""\\\n'), ("php", "<?php \n")],
)
def test_hostile_code_takes_no_longer_than_it_may(language, unit):
    text = unit * (code.LONGEST // len(unit))
    highlighted("warm", language)
    began = time.process_time()
    assert_same_text(text, language)
    assert time.process_time() - began < 2


def test_what_is_left_when_the_time_is_up_is_shown_as_it_is(monkeypatch):
    monkeypatch.setattr(code, "SECONDS", -1)
    assert highlighted("def late(): pass", "python") == "def late(): pass"


@pytest.mark.parametrize(
    "reply, language",
    [
        ("```Python\nx\n```", "python"),
        ("```\nx\n```", ""),
        ("x", ""),
        ("~~~c++ title\nx\n~~~", "c++"),
    ],
)
def test_the_fence_of_a_reply_names_the_language(reply, language):
    assert extract(reply, "code").language == language

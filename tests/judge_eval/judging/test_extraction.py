"""What models really send, and what is taken out of it: exactly, or with every change told."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from humanjudge.core.text import excerpt
from judge_eval.judging.prompts.parse import (
    ExtractedOutput,
    ReplyUnreadable,
    extract,
    fenced_blocks,
    without_thinking,
)
from tests.helpers.growth import assert_linear
from voting.pictures.screening import UnsafeSvg, screen

XMLNS = 'xmlns="http://www.w3.org/2000/svg"'
DRAWING = f'<svg {XMLNS} viewBox="0 0 9 9"><rect width="9" height="9"/></svg>'
OTHER = f'<svg {XMLNS} viewBox="0 0 5 5"><circle r="2"/></svg>'
# What is hostile about each is that a scan that looks back, or ahead each time, never ends.
NASTY = [
    *("<svg ", '<svg "', '<svg a="', "<svg>", "<svg a>", "</svg>", "</svg ", "<svg/>", "<svg\n"),
    *("<!--", "<![CDATA[", "<svg><!-- ", "<svg>-->", "<?xml ", "<!doctype [", "<svg a><svg></svg>"),
    *("<think>", "x<think>", "</think>", "</think>\n", "<think></think>", "&lt;svg &#39;"),
    *("```\n", "```svg\n<svg a>", "~~~\n", "\t```", "`<svg>`", "`", " ", "\n   ", "\ufeff", "\0"),
]
bits = st.sampled_from([*NASTY, DRAWING, OTHER, "> words ", "\n```\n", "-->", "]]>", "</think>"])
replies = st.lists(bits | st.text(max_size=9), max_size=12).map("".join)


def outcome(reply, kind):
    """Return what was extracted, or the reason why nothing could be."""
    try:
        return extract(reply, kind)
    except ReplyUnreadable as refused:
        return str(refused)


def reason(reply, kind="svg"):
    refused = outcome(reply, kind)
    assert isinstance(refused, str)
    return refused


def test_a_bare_drawing_is_taken_as_it_is():
    assert extract(DRAWING, "svg") == ExtractedOutput(DRAWING, ())


@pytest.mark.parametrize(
    "reply",
    [
        f"```svg\n{DRAWING}\n```",
        f"```xml\n{DRAWING}\n```\n",
        f"```html\n{DRAWING}\n```",
        f"```\n{DRAWING}\n```",
        f"``` svg\r\n{DRAWING}\r\n```",
        f"~~~svg\n{DRAWING}\n~~~",
        f"  ```svg\n  {DRAWING}\n  ```",
        f"```svg\n{DRAWING}```",
        f"```svg {DRAWING}```",
        f"```svg\n{DRAWING}",
    ],
)
def test_a_fence_is_left_out_and_told(reply):
    assert extract(reply, "svg") == ExtractedOutput(DRAWING, ("took it out of a fenced block",))


def test_prose_around_is_counted():
    extracted = extract(f"Here it is:\n\n{DRAWING}\n\nA square.", "svg")
    assert extracted == ExtractedOutput(DRAWING, ("left out 11 characters before and 9 after",))
    fenced = extract(f"Here:\n```svg\n{DRAWING}\n```\nEnjoy!", "svg")
    assert fenced.changes == (
        "took it out of a fenced block",
        "left out 5 characters before and 6 after",
    )


def test_white_space_around_is_told_too():
    assert extract(f"\n {DRAWING}\n", "svg").changes == ("trimmed white space",)


@pytest.mark.parametrize(
    "front, changes",
    [
        ('<?xml version="1.0" encoding="UTF-8"?>\n', ("left out the XML declaration",)),
        ("<!DOCTYPE svg>", ("left out the document type",)),
        (
            '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd">\n',
            ("left out the XML declaration", "left out the document type"),
        ),
        ("<!-- drawn by hand -->", ("left out 22 characters before and 0 after",)),
    ],
)
def test_what_stands_in_front_of_the_root_is_left_out(front, changes):
    assert extract(front + DRAWING, "svg") == ExtractedOutput(DRAWING, changes)


def test_of_several_drawings_the_last_complete_one_is_the_answer():
    extracted = extract(f"Draft:\n{OTHER}\nBetter:\n{DRAWING}", "svg")
    assert extracted.output == DRAWING
    assert extracted.changes == (f"left out {len(OTHER) + 15} characters before and 0 after",)
    assert extract(f"```svg\n{OTHER}\n```\n```svg\n{DRAWING}\n```", "svg").output == DRAWING


def test_a_drawing_within_a_drawing_is_part_of_it():
    nested = f'<svg {XMLNS}><svg x="1"><g/></svg><svg/><g><svg y="2"><g/></svg></g></svg>'
    assert extract(f"{OTHER}\n{nested}", "svg").output == nested


@pytest.mark.parametrize(
    "inside",
    [
        "<!-- <svg> -->",
        "<!-- </svg> -->",
        "<!-- a -> b - <svg a='1'> -->",
        "<style><![CDATA[ /* </svg> <svg> */ ]]></style>",
        '<g aria-label="a > b"/>',
        "<text>a ``` b</text>",
        "<desc>&lt;svg&gt; and &lt;/svg&gt;</desc>",
    ],
)
def test_what_only_looks_like_a_tag_is_none(inside):
    drawing = f"<svg {XMLNS} viewBox='0 0 9 9'>{inside}<g/></svg>"
    assert extract(f"Well: {drawing} Done.", "svg").output == drawing
    screen(drawing)


def test_quotes_in_a_tag_may_hold_its_end():
    drawing = f'<svg {XMLNS} aria-label="a > b / <" viewBox="0 0 9 9"><g/></svg>'.replace('<"', '"')
    assert extract(drawing, "svg").output == drawing


@pytest.mark.parametrize(
    "prose",
    [
        "I use an `<svg>` element. {}",
        "The <svg> element holds it. {}",
        "With `<svg width='9'>` as root: {}",
        'Between "<svg>" and "</svg>": {}',
        "{} I closed it with `</svg>`.",
        "{} All of it stands in <svg></svg> tags.",
        "{} All of it stands in <svg>…</svg> tags.",
        "{} Set `<svg width='400'>` to enlarge it.",
        "<!-- <svg a='b'> --> {}",
        "<!-- a note that never ends {}",
        "{} So much for </svg>.",
    ],
)
def test_prose_may_speak_of_the_tag(prose):
    assert extract(prose.format(DRAWING), "svg").output == DRAWING


@pytest.mark.parametrize(
    "reply",
    [
        DRAWING.removesuffix("</svg>"),
        DRAWING.removesuffix(">"),
        DRAWING[:30],
        f"<svg {XMLNS}",
        "Here: <svg",
        "<svg><rect width='9'/>",
        f"```svg\n<svg {XMLNS}><g/>\n```\nDone.",
        f"<svg {XMLNS}><g><svg x='1'><g/></svg>",
        f"<svg {XMLNS}><!-- half a comment",
        f"First: {OTHER} And now: <svg {XMLNS}><g>",
        f"```svg\n{OTHER}\n```\n```svg\n<svg {XMLNS}><g>",
        f"&lt;svg {XMLNS}&gt;&lt;g",
    ],
)
def test_a_drawing_that_is_cut_off_is_a_failure(reply):
    assert reason(reply) == "the reply ends before </svg>: truncated"


def test_a_cut_draft_in_a_fence_of_its_own_does_not_spoil_the_answer():
    assert extract(f"```svg\n<svg a='1'><g>\n```\nAgain:\n{DRAWING}", "svg").output == DRAWING


@pytest.mark.parametrize("reply", ["", " \n\t", "\ufeff", "\0\0", "\ufeff \0"])
@pytest.mark.parametrize("kind", ["svg", "text", "code"])
def test_an_empty_reply_is_a_failure(reply, kind):
    assert reason(reply, kind) == "the reply is empty"


def test_a_refusal_is_quoted_in_one_line():
    told = reason("I'm sorry,\n\u202ebut I cannot draw that. " + "x" * 500)
    assert told.startswith(
        "there is no drawing in the reply: 'I'm sorry, but I cannot draw that. xx"
    )
    assert told.endswith("x…'")
    assert len(told) == len("there is no drawing in the reply: ''…") + 120
    assert reason("I do not write <svg> files.").startswith("there is no drawing")


@pytest.mark.parametrize("tag", ["think", "thinking", "THINK"])
def test_thinking_is_left_out(tag):
    extracted = extract(f"<{tag}>Maybe {OTHER}?</{tag}>{DRAWING}", "svg")
    count = len(f"<{tag}>Maybe {OTHER}?</{tag}>")
    assert extracted == ExtractedOutput(DRAWING, (f"left out {count} characters of thinking",))


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>a</think>\n<think>b</think>{DRAWING}",
        f"Let me see. <think>{OTHER}</think>{DRAWING}",
        f"The tag that opened this is gone.\n</think>\n{DRAWING}",
        f"{DRAWING}<think>Was that right? {OTHER}",
        f"<think>one <think> in another {OTHER}</think>{DRAWING}",
    ],
)
def test_thinking_may_stand_anywhere_around_a_drawing(reply):
    extracted = extract(reply, "svg")
    assert extracted.output == DRAWING
    assert "of thinking" in extracted.changes[0]


@pytest.mark.parametrize("kind", ["svg", "text", "code"])
def test_thinking_that_never_ends_leaves_nothing(kind):
    assert reason(f"<think>Perhaps {DRAWING}", kind) == "the reply is nothing but thinking"


def test_only_thinking_at_the_beginning_of_a_text_is_thinking():
    assert extract("<think>a</think>\n <think>b</think>Use <think> tags.", "text").output == (
        "Use <think> tags."
    )
    assert without_thinking("Close it with </think> then.").startswith("Close")
    assert without_thinking("thought\n</think>\n\nanswer") == "\n\nanswer"
    assert without_thinking("Open <think> first,\nthen </think>\nso.").startswith("Open")


def test_a_missing_namespace_is_added_and_told():
    extracted = extract('<svg viewBox="0 0 9 9"><g/></svg>', "svg")
    assert extracted == ExtractedOutput(
        f'<svg {XMLNS} viewBox="0 0 9 9"><g/></svg>', ("added xmlns",)
    )
    screen(extracted.output)


def test_a_namespace_that_is_only_spoken_of_is_missing():
    assert extract('<svg aria-label=" xmlns=" viewBox="0 0 9 9"><g/></svg>', "svg").changes == (
        "added xmlns",
    )


@pytest.mark.parametrize("space", ["\n", "\t", " ", "  "])
def test_a_namespace_that_is_there_is_not_added_again(space):
    drawing = f"<svg{space}viewBox='0 0 9 9'{space}xmlns = 'http://www.w3.org/2000/svg'><g/></svg>"
    assert extract(drawing, "svg") == ExtractedOutput(drawing, ())


def test_a_missing_xlink_is_added_and_told():
    use = '<use xlink:href="#a"/>'
    extracted = extract(f'<svg {XMLNS} viewBox="0 0 9 9"><g id="a"/>{use}</svg>', "svg")
    assert extracted.changes == ("added xmlns:xlink",)
    screen(extracted.output)
    both = extract(f'<svg viewBox="0 0 9 9"><g id="a"/>{use}</svg>', "svg")
    assert both.changes == ("added xmlns", "added xmlns:xlink")
    screen(both.output)
    assert extract(both.output, "svg") == ExtractedOutput(both.output, ())


def test_an_escaped_drawing_is_unescaped_once_and_told():
    source = DRAWING.replace("</svg>", "<text>a &lt; b &amp; c</text></svg>")
    escaped = source.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    quoted = escaped.replace('"', "&quot;")
    for reply in (escaped, quoted, quoted.replace("&quot;", "&#34;")):
        assert extract(reply, "svg") == ExtractedOutput(source, ("undid HTML escapes",))


def test_escapes_within_a_drawing_are_left_alone():
    drawing = DRAWING.replace("</svg>", "<text>&lt;svg&gt; &amp;</text></svg>")
    assert extract(drawing, "svg") == ExtractedOutput(drawing, ())


def test_dirt_that_cannot_be_stored_is_left_out_and_told():
    dirty = "\ufeff" + DRAWING.replace("<rect", "\0<rect\0") + "\ud83d"
    assert extract(dirty, "svg") == ExtractedOutput(
        DRAWING,
        (
            "left out a byte order mark",
            "left out 2 NUL characters",
            "replaced 1 halves of surrogate pairs",
            "left out 0 characters before and 1 after",
        ),
    )


def test_a_tag_whose_quote_never_ends_is_left_to_the_screening():
    """It is not repaired: what was written is refused where drawings are checked."""
    broken = f'<svg {XMLNS} viewBox="0 0 9 9><g/></svg>'
    assert extract(broken, "svg").output.endswith('viewBox="0 0 9 9><g/></svg>')
    with pytest.raises(UnsafeSvg, match="not well-formed"):
        screen(extract(broken, "svg").output)


def test_a_tag_in_an_attribute_is_left_to_the_screening():
    drawing = f'<svg {XMLNS} viewBox="0 0 9 9"><g class="<svg>"/></svg>'
    assert extract(drawing, "svg") == ExtractedOutput(drawing, ())
    with pytest.raises(UnsafeSvg, match="not well-formed"):
        screen(drawing)


def test_an_empty_drawing_is_a_drawing_when_it_is_the_only_one():
    assert extract(f"<svg {XMLNS}></svg>", "svg").output == f"<svg {XMLNS}></svg>"
    assert extract(f"<svg {XMLNS}/>", "svg").output == f"<svg {XMLNS}/>"


def test_a_text_is_all_that_was_said():
    assert extract("# Four\n\n2 + 2 = 4", "text") == ExtractedOutput("# Four\n\n2 + 2 = 4", ())
    assert extract("\n four \n", "text") == ExtractedOutput("four", ("trimmed white space",))
    assert extract(f"```svg\n{DRAWING}\n```", "text").changes == ()


def test_code_is_the_one_fenced_block():
    assert extract("Sure:\n```python\n  x = 1\n\ny = 2\n```\nBye", "code") == ExtractedOutput(
        "  x = 1\n\ny = 2",
        ("took it out of a fenced block", "left out 5 characters before and 3 after"),
        "python",
    )
    assert extract("```\r\nx\r\n```", "code").output == "x"


@pytest.mark.parametrize(
    "reply",
    ["x = 1", "    indented = 1", "```\na\n```\nthen\n```\nb\n```", "use ```a``` here", "a``` b"],
)
def test_code_without_exactly_one_block_is_the_whole(reply):
    assert extract(reply, "code") == ExtractedOutput(reply, ())


def test_a_longer_fence_holds_a_shorter_one():
    assert extract("````md\n```\nx\n```\n````", "code").output == "```\nx\n```"
    assert fenced_blocks(["~~~", "```", "~~~~ x", "~~~~"]) == [(0, 3)]


def test_code_that_ends_in_the_block_is_taken_and_told():
    assert extract("```py\nx = 1", "code") == ExtractedOutput(
        "x = 1", ("took it out of a fenced block", "the fenced block had no end"), "py"
    )


def test_an_empty_block_is_no_code():
    assert reason("Here:\n```\n\n```", "code") == "the fenced block is empty"


def test_another_kind_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError, match="image"):
        extract("x", "image")


def test_an_excerpt_is_short_printable_and_one_line():
    assert excerpt(" a\n\tb\x07\u202e ") == "'a b'"
    assert len(excerpt("x" * 10**6, 40)) == 43


@given(replies, st.sampled_from(["svg", "text", "code"]))
@example(f"{DRAWING}<svg a='1'>", "svg")
def test_what_is_taken_out_was_there_or_is_told(reply, kind):
    extracted = outcome(reply, kind)
    if isinstance(extracted, str):
        assert extracted.isprintable()
        return
    source = extracted.output
    for added in (f" {XMLNS}", ' xmlns:xlink="http://www.w3.org/1999/xlink"'):
        if f"added {added.split('=')[0].strip()}" in extracted.changes:
            source = source.replace(added, "", 1)
    if "undid HTML escapes" not in extracted.changes and "\0" not in reply:
        assert source in without_thinking(reply, anywhere=kind == "svg")
    assert (extracted.output == reply) == (not extracted.changes)
    assert source.strip()
    source.encode()


@given(replies)
def test_a_drawing_begins_and_ends_as_one(reply):
    extracted = outcome(reply, "svg")
    if isinstance(extracted, ExtractedOutput):
        assert extracted.output[:4].lower() == "<svg"
        assert extracted.output.endswith(">")


def calls_made(reply, kind):
    """Count every call, those into C included: what a scan that is not linear does too often."""
    made = 0

    def count(_frame, event, _argument):
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        outcome(reply, kind)
    finally:
        sys.setprofile(before)
    return made


@pytest.mark.parametrize("bit", NASTY)
@pytest.mark.parametrize("kind", ["svg", "code"])
def test_twice_the_reply_is_at_most_twice_the_work(bit, kind):
    once, twice = (calls_made(f"<svg a='b'>{bit * n}", kind) for n in (500, 1000))
    assert twice <= 2 * once + 50


@pytest.mark.parametrize("front", ["", "<svg a='b'><g "])
@pytest.mark.parametrize("kind", ["svg", "text", "code"])
def test_a_long_reply_of_anything_is_read_through(kind, front):
    """The expressions run in C, where no call is counted: a quadratic one takes half a minute."""

    def read(bits):
        extracted = outcome(front + bits, kind)
        if isinstance(extracted, ExtractedOutput):
            assert len(extracted.output) <= len(front + bits) + 100
        else:
            assert len(extracted) < 200

    assert_linear(read, NASTY)

"""What the screening lets through, what it refuses, and that it never does anything else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hostile_svg import OWN, data_url, drawing, image, png
from voting.pictures.rendering import with_shipped_families
from voting.pictures.screening import UnsafeSvg, element_count, screen

XMLNS = 'xmlns="http://www.w3.org/2000/svg"'
# Whatever else is hostile is left to the limits of the child process, or out of the drawing.
REFUSED = {
    *("deep_mixture", "data_svg", "data_svg_as_png", "data_text", "entity_in_attribute"),
    "script_by_prefix",
}
OUTSIDE = ("http", "//127", "/tmp/", "file:", "@import", "ht tp", "xml:base", "127.0.0.1")


def root(attributes):
    return f"<svg {XMLNS} {attributes}/>"


def refusal(source):
    with pytest.raises(UnsafeSvg) as caught:
        screen(source)
    return str(caught.value)


GOOD = {
    "gradient and shadow": (
        '<defs><linearGradient id="a"><stop/></linearGradient><linearGradient id="b" href="#a"/>'
        '<filter id="f" x="-50%" y="-50%" width="200%" height="200%">'
        '<feDropShadow dx="2" dy="2" stdDeviation="3"/></filter></defs>'
        '<rect width="9" height="9" fill="url(#b)" filter="url(\'#f\')"/>'
    ),
    "style sheet": "<style>/* sky */ .a > rect { fill: url( '#g' ); } @media print {a{}}</style>",
    "mask, clip, pattern, marker, use": (
        '<mask id="m"/><clipPath id="c"/><pattern id="p"/><marker id="k"/><symbol id="s"/>'
        '<path d="M0 0L9 9" mask="url(#m)" clip-path="url(#c)" fill="url(#p)" '
        'style="marker:url(#k)"/>'
        '<use xlink:href="#s"/><use href=" #s "/>'
    ),
    "embedded picture": image(data_url(png(3, 2))),
    "animation of something seen": '<rect><animate attributeName="x" to="9"/></rect>',
    "text about code": "<text>url(http://a), @import and onclick= are words here</text>",
    "description": '<g aria-label="the curl(1) manual" data-note="a\\b" id="a\\b"/>',
    "editor's own attributes": '<g xmlns:i="urn:editor" i:label="x"><i:note>n</i:note></g>',
    "motion along its parent": (
        '<path id="p"><animateMotion><mpath href="#p"/></animateMotion></path>'
    ),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD.keys())
def test_an_honest_drawing_passes(body):
    assert screen(drawing(body)).width == 200


@pytest.mark.parametrize("name", sorted(OWN))
def test_hostile_drawings_are_refused_or_refer_to_nothing_outside(name):
    source = OWN[name](9911, "/tmp/secret.png")
    if name in REFUSED:
        assert len(refusal(source)) > 20
    elif name != "css_comment_url":  # a comment parts two words: it is no url
        svg = screen(source).svg.replace("http://www.w3.org/", "")
        assert not any(outside in svg for outside in OUTSIDE)


@pytest.mark.parametrize(
    "body, words",
    [
        ("<script>alert(1)</script>", "contains a script element"),
        ('<x:SCRIPT xmlns:x="http://www.w3.org/2000/svg"/>', "contains a SCRIPT element"),
        ("<foreignObject/>", "contains a foreignObject element"),
        ("<FOREIGNobject/>", "contains a FOREIGNobject element"),
        ("<g><video/></g>", "contains a video element"),
        ('<image href="data:image/svg+xml;base64,PHN2Zz4="/>', "embeds data:image/svg+xml"),
        ('<image href="data:image/svg+xml,%3Csvg/%3E"/>', "embeds data:image/svg+xml"),
        ('<image href="data:image/png;base64,PHN2Zz4="/>', "only PNG, JPEG, GIF and WebP"),
        ('<image href="data:image/png,%89PNG"/>', "only PNG, JPEG, GIF and WebP in base64"),
        ('<feImage href=" DATA:text/plain,x"/>', "only PNG, JPEG, GIF and WebP"),
        (f"<style>a{{b:url(c){'(' * 40_000}</style>", "nested too deeply"),
        (f"<style>@import 'a';{'a' * 70_000}</style>", "more than 64 KB of CSS"),
    ],
)
def test_what_no_picture_could_show_is_refused_with_its_reason(body, words):
    assert words in refusal(drawing(body))


LEFT_OUT = {
    "a picture": ('<image href="a.png" x="1"/>', '<image x="1"></image>', "a.png"),
    "a filter's picture": ('<feImage xlink:href="//a"/>', "<feImage></feImage>", "//a"),
    "a shape elsewhere": ('<use href="b.svg#c"/>', "<use></use>", "b.svg#c"),
    "data of no picture": ('<use href="data:image/png;base64,A"/>', "<use></use>", "data:image"),
    "a link": ('<a href="javascript:alert(1)"><g/></a>', "<a><g></g></a>", ""),
    "nothing": ('<use href=""/>', "<use></use>", ""),
    "by any case": ('<image HREF="/etc/passwd"/>', "<image></image>", "/etc/passwd"),
    "by src": ('<image src="/etc/passwd"/>', "<image></image>", "/etc/passwd"),
    "a handler": ('<g onclick="x()" OnLoad="y()"/>', "<g></g>", ""),
    "a foreign handler": ('<g xmlns:e="urn:e" e:onx="y" e:href="z"/>', "<g></g>", ""),
    "a base": ('<g xml:base="#a"/>', "<g></g>", ""),
    "an instruction": ("<?php echo 1 ?><g/>", "<g></g>", ""),
    "a style sheet": ("<?xml-stylesheet href='a.css'?><g/>", "<g></g>", "a.css"),
    "an animation": ('<g><set attributeName="href" to="#a"/></g>', "<g></g>", ""),
    "what is no SVG": ('<g><p xmlns="urn:p">words<b/></p></g>', "<g></g>", ""),
    "fill": ('<g fill="URL(http://a/#b)"/>', '<g fill="none"></g>', "http://a/#b"),
    "fill with another": ("<g fill=\"url( 'x' ) red\"/>", '<g fill=" red"></g>', "x"),
    "an escape": ('<g fill="u\\72l(http://a)"/>', '<g fill="none"></g>', "http://a"),
    "a broken url": ('<g fill="url(#a url(http://a)"/>', '<g fill=""></g>', ""),
    "style": ('<g style="fill:url(//a);x:y"/>', '<g style="fill:none;x:y"></g>', "//a"),
    "an import": ("<style>@IMPORT 'a.css';b{c:d}</style>", "<style>b{c:d}</style>", "a.css"),
    "fonts": (
        "<style>@import url(https://a/css?b);@font-face{src:url(c)}t{d:e}</style>",
        "<style>t{d:e}</style>",
        "https://a/css?b, @font-face",
    ),
    "inside a rule": (
        "<style>@media print{a{b:url(c)}}</style>",
        "<style>@media print{a{b:none}}</style>",
        "c",
    ),
    "cut in two": ("<style>@imp<![CDATA[ort 'a.css';]]></style>", "<style></style>", "a.css"),
    "in an element": ("<style><g>@import 'a.css';</g></style>", "<style></style>", ""),
    "a comment that never ends": ("<style>/* @import 'a.css'; </style>", "<style></style>", ""),
}


@pytest.mark.parametrize("body, kept, noted", LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_what_lies_outside_is_left_out_and_named(body, kept, noted):
    screened = screen(drawing(body))
    assert screened.svg.partition(">")[2] == f"{kept}</svg>"
    assert ", ".join(screened.left_out).startswith(noted)
    assert bool(screened.left_out) == bool(noted)


KEPT = {
    "text": '<text xml:space="preserve">a &lt;b&gt; &amp; "c" <tspan>d</tspan> e</text>',
    "quotes": "<text style=\"font-family:'A', &quot;B&quot;\"></text>",
    "breaks": '<text x="1&#10;2&#9;3">\n</text>',
    "a sheet": "<style>.a &gt; b { fill: url( '#g' ) }</style>",
    "ids that look like CSS": '<g id="a\\b" class="c"></g>',
    "references": '<use xlink:href="#s"></use><g mask="url(#m)" style="marker:url(\'#k\')"></g>',
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_all_else_is_written_as_it_was_read(body):
    assert screen(drawing(body)).svg.partition(">")[2] == f"{body}</svg>"


def test_only_the_first_of_many_references_outside_are_named():
    screened = screen(drawing("".join(f'<use href="{n}.svg"/>' * 2 for n in range(30))))
    assert screened.left_out == tuple(f"{n}.svg" for n in range(10))


def test_a_document_type_is_read_over_but_for_entities():
    public = '"-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd"'
    plain = root('width="9" height="8"')
    attributes = "<!DOCTYPE svg [<!ATTLIST g a CDATA #IMPLIED>]>"
    for doctype in (f"<!DOCTYPE svg PUBLIC {public}>", attributes):
        assert screen(doctype + plain) == screen(plain)
        assert element_count(doctype + plain) == 1
    assert "defines entities (e)" in refusal(f"<!DOCTYPE svg [<!ENTITY e 'x'>]>{plain}")
    used = f"<!DOCTYPE svg PUBLIC {public}>{drawing('<text>&nbsp;</text>')}"
    assert "defines entities (nbsp)" in refusal(used)


@pytest.mark.parametrize(
    "attributes, size",
    [
        ('width="120" height="60"', (120, 60)),
        ('width="120px" height="6e1"', (120, 60)),
        ('width=" 120 " height="60PX" viewBox="0 0 1 1"', (120, 60)),
        ('width="72pt" height="1in"', (96, 96)),
        ('width="25.4mm" height="2.54cm"', (96, 96)),
        ('width="6pc" height="2em"', (96, 32)),
        ('viewBox="0 0 30 40"', (30, 40)),
        ('viewBox=" -5,-5, 30,40 "', (30, 40)),
        ('width="60" viewBox="0 0 30 40"', (60, 80)),
        ('height="80" viewBox="0 0 30 40"', (60, 80)),
        ('width="100%" height="100%" viewBox="0 0 30 40"', (30, 40)),
        ('width="50%" height="50%" viewBox="0 0 30 40"', (15, 20)),
        ('width="auto" height="auto" viewBox="0 0 30 40"', (30, 40)),
        ('width="100vw" height="10rem" viewBox="0 0 30 40"', (30, 40)),
        ('width="9" height="9" viewBox="nonsense"', (9, 9)),
        ("", (300, 150)),
        ('width="100%" height="50%"', (300, 75)),
        ('width="10"', (10, 150)),
        ('viewBox="0 0 0 1"', (300, 150)),
    ],
)
def test_natural_size(attributes, size):
    screened = screen(root(attributes))
    assert (screened.width, screened.height) == pytest.approx(size)


@pytest.mark.parametrize(
    "attributes, words",
    [
        ('width="0" height="10"', "no area"),
        ('width="-1" height="10" viewBox="0 0 1 1"', "no area"),
        ('width="1e999" height="1e999"', "no area"),
        ('width="1" height="1e9"', "100000 at most"),
        ('width="10" height="501"', "50 times"),
        ('viewBox="0 0 1 1e4"', "50 times"),
    ],
)
def test_sizes_that_cannot_be_shown_are_refused(attributes, words):
    assert words in refusal(root(attributes))


@pytest.mark.parametrize(
    "source, words",
    [
        ("", "empty"),
        (" \n\t", "empty"),
        (f"<svg {XMLNS}>\0</svg>", "not well-formed"),
        (f"<svg {XMLNS}>\x08</svg>", "not well-formed"),
        ("<svg>\ud800</svg>", "no text may contain"),
        (f"<svg {XMLNS}><g></svg>", "not well-formed"),
        (f"<svg {XMLNS}>&undefined;</svg>", "not well-formed"),
        (f"<svg {XMLNS}><y:g/></svg>", "not well-formed"),
        ("<svg/>", "lacks xmlns"),
        (f"<html {XMLNS}/>", "root element is html"),
        (f"<svg {XMLNS}>{' ' * 512 * 1024}</svg>", "512 KB"),
        ("é" * 300 * 1024, "512 KB"),
        (f"<svg {XMLNS}>{'<g>' * 64}{'</g>' * 64}</svg>", "deeper than 64"),
        (f"<svg {XMLNS}>{'<g/>' * 20_000}</svg>", "20,000 elements"),
    ],
)
def test_what_is_no_bounded_drawing_is_refused(source, words):
    assert words in refusal(source)


def test_a_reason_names_what_was_refused_on_one_printable_line():
    reason = refusal(drawing(image("data:a&#10;b&#x202e;c")))
    assert reason == (
        "the drawing embeds data:a bc…; only PNG, JPEG, GIF and WebP in base64 are allowed"
    )


def test_a_byte_order_mark_and_a_declaration_are_welcome():
    plain = screen(root('viewBox="0 0 8 8"'))
    declared = '<?xml version="1.0" encoding="UTF-16"?>' + root('viewBox="0 0 8 8"')
    assert screen(declared) == screen("\ufeff" + declared) == plain
    assert (plain.width, plain.height) == (8, 8)


def test_element_count_counts_what_can_be_read_and_never_fails():
    assert element_count(drawing("<g><rect/></g><rect/>")) == 4
    assert element_count(drawing("<script/>")) == 2
    for unreadable in ("", "words", "<svg>", "<svg>\0</svg>", "\ud800"):
        assert element_count(unreadable) == 0


PIECES = st.sampled_from(
    [
        *(
            "<svg ",
            XMLNS,
            ' viewBox="0 0 9 9"',
            ">",
            "</svg>",
            "<g>",
            "</g>",
            "<style>",
            "</style>",
        ),
        *('<use href="#a"/>', ' id="a"', '<mask id="a" style="mask:url(#a)">', "</mask>", "&#0;"),
        *("<filter ", ' width="', '1e9"', "/>", "url(", "\\", "/*", "{", "}", "<![CDATA[", "]]>"),
        *('<image href="data:image/png;base64,', 'AA"/>', "<!--", "-->", "\ud800", "\0", "\x7f"),
    ]
)


LONG = 500_000
REPETITIONS = {
    "digits": f'<filter x="{"1" * LONG}!"/>',
    "spaces": f'<filter x="1{" " * LONG}!"/>',
    "urls": f'<g fill="{"url(#" * (LONG // 5)}"/>',
    "spaced urls": f'<g fill="{"url( # " * (LONG // 7)}"/>',
    "spaces in url": f'<g fill="url{" " * LONG}"/>',
    "comments": f'<g fill="({"/*" * (LONG // 2)}"/>',
    "escapes": f'<g fill="({chr(92) * LONG}"/>',
    "one long selector": f"<style>{'a' * LONG}</style>",
    "braces": f"<style>{'{a' * (LONG // 2)}</style>",
    "at signs": f"<style>{'@ ' * (LONG // 2)}</style>",
    "functions": f"<style>{'-image' * (LONG // 6)}</style>",
    "blurs": f'<g style="{"blur(" * (LONG // 5)}"/>',
    "brackets in blur": f'<g filter="blur({"()" * (LONG // 2)}"/>',
    "media type": f'<image href="data:image/png{" " * LONG}"/>',
    "nesting": "<g>" * (LONG // 7) + "</g>" * (LONG // 7),
    "equal ids": '<g id="a"/>' * 9_000 + '<use href="#a"/>' * 9_000,
    "rules for all": f"<style>{'*{fill:url(#a)}' * 9_000}</style>{'<g/>' * 15_000}",
    "references of one": '<g id="x"/>' * 500 + f'<g fill="{"url(#x)" * 50_000}"/>',
    "inherited references": (
        f'<g mask="{"url(#x)" * 50_000}">' + '<g mask="inherit"/>' * 4_000 + "</g>"
    ),
}


@pytest.mark.parametrize("body", REPETITIONS.values(), ids=REPETITIONS.keys())
def test_no_repetition_keeps_the_screening_busy(body):
    # A tenth of a second each; hours where the time grows with the square of the length.
    assert svg_or_refusal(drawing(body))


@pytest.mark.parametrize(
    "piece", ["font:", "font:1 ", "font-family:'", "font-family:a ", "font-family:a,", "&quot;,"]
)
def test_no_repetition_keeps_the_replacing_of_fonts_busy(piece):
    source = "font-family:" + piece * (LONG // len(piece))
    assert with_shipped_families(source) == source


def svg_or_refusal(source):
    try:
        return screen(source).svg
    except UnsafeSvg as refused:
        return str(refused)


@given(st.text() | st.lists(PIECES).map("".join))
@example(root('width="9" height="9" viewBox="1 2 3"'))
@example(drawing('<use href="#"/>'))
def test_nothing_but_a_refusal_is_ever_raised(source):
    assert svg_or_refusal(source)


@given(st.lists(PIECES | st.text(max_size=5)).map(lambda body: drawing("".join(body))))
def test_nothing_but_a_refusal_is_ever_raised_inside_a_drawing(source):
    outcome = svg_or_refusal(source)
    assert outcome
    # What was written is a drawing, and is written the same again.
    assert not outcome.startswith("<svg") or screen(outcome).svg == outcome


@pytest.mark.parametrize(
    "asked, given_",
    [
        (
            '<text font-family="Arial, sans-serif">',
            '<text font-family="Liberation Sans, sans-serif">',
        ),
        ("<text font-family='Times New Roman'>", "<text font-family='Liberation Serif'>"),
        (
            '<text style="font-family:&quot;Courier New&quot;;x:1">',
            '<text style="font-family:&quot;Liberation Mono&quot;;x:1">',
        ),
        (
            "<style>text{font: bold 12px/1.5 'Helvetica Neue', Georgia}</style>",
            "<style>text{font: bold 12px/1.5 'Liberation Sans', Liberation Serif}</style>",
        ),
        (
            '<g font-family="Arial" class="Arial">Arial</g>',
            '<g font-family="Liberation Sans" class="Arial">Arial</g>',
        ),
        ('<g font-family="Arialesque">', '<g font-family="Arialesque">'),
        ('<g font-size="9">Arial</g>', '<g font-size="9">Arial</g>'),
    ],
)
def test_well_known_fonts_get_their_shipped_stand_in(asked, given_):
    assert with_shipped_families(asked) == given_

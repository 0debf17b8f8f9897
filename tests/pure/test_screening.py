"""What the screening lets through, what it refuses, and that it never does anything else."""

import doctest
import importlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hostile_svg import OWN, data_url, drawing, image, png
from voting.font_names import with_shipped_families
from voting.screening import Screened, UnsafeSvg, element_count, screen

XMLNS = 'xmlns="http://www.w3.org/2000/svg"'
# What only the limits of the child process stop, or what is merely odd.
PASSES_SCREENING = {
    *("huge_path", "tiny_dashes", "png_short", "fonts", "style_bomb", "morphology"),
    *("scaled_blur", "mask_by_inheritance", "mask_by_style_sheet", "costly_filters"),
    *("nested_viewports", "numbers", "view_box_of_dust"),
}


def root(attributes):
    return f"<svg {XMLNS} {attributes}/>"


def refusal(source):
    with pytest.raises(UnsafeSvg) as caught:
        screen(source)
    return caught.value.reason


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
def test_hostile_drawings_are_refused_or_left_to_the_child(name):
    source = OWN[name](9911, "/tmp/secret.png")
    if name in PASSES_SCREENING:
        assert screen(source).elements > 0
    else:
        assert len(refusal(source)) > 20


@pytest.mark.parametrize(
    "body",
    [
        "<script>alert(1)</script>",
        '<x:SCRIPT xmlns:x="http://www.w3.org/2000/svg"/>',
        '<script xmlns="urn:unknown"/>',
        "<foreignObject/>",
        "<FOREIGNobject/>",
        '<iframe xmlns="http://www.w3.org/1999/xhtml" src="#a"/>',
        '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="#a"/>',
        '<g onclick="x()"/>',
        '<g OnLoad="x()"/>',
        '<g xmlns:e="http://www.w3.org/2001/xml-events" e:onx="y"/>',
        '<a href="javascript:alert(1)"/>',
        '<use href=""/>',
        '<use href="data:image/png;base64,AAAA"/>',
        '<image href="data:image/png;base64,@@@@"/>',
        '<image href="data:image/png,%89PNG"/>',
        '<image HREF="/etc/passwd"/>',
        '<image src="/etc/passwd"/>',
        '<animate attributeName="href" values="/etc/passwd"/>',
        '<set attributeName=" XLINK:HREF " to="#a"/>',
        '<set attributeName="onclick" to="x"/>',
        '<animate attributeName="fill" to="url(http://a/#b)"/>',
        '<g fill="URL(http://a/#b)"/>',
        '<g fill="url(&quot;http://a/#b&quot;)"/>',
        '<g fill="u\\72l(http://a)"/>',
        '<g fill="u/*x*/rl(http://a)"/>',
        '<g fill="url(/**/http://a)"/>',
        '<g style="fill:url(//a)"/>',
        "<g style=\"background:image-set('http://a' 1x)\"/>",
        '<g style="fill:\\75rl(#a)"/>',
        '<g fill="url(#a url(http://a)"/>',
        "<g fill=\"url(#a) url( 'http://a' )\"/>",
        "<style>@IMPORT 'a.css';</style>",
        "<style>@imp<![CDATA[ort 'a.css';]]></style>",
        "<style>@font-face{font-family:x}</style>",
        "<style>/* open @import 'a.css'; </style>",
        "<style><g>@import 'a.css';</g></style>",
        "<STYLE>a{fill:url(http://a)}</STYLE>",
        '<style xmlns="urn:unknown">@import "a"</style>',
        '<g xml:base="#a"/>',
        "<?php echo 1 ?>",
    ],
)
def test_what_reaches_outside_or_runs_is_refused(body):
    assert refusal(drawing(body)).startswith("the drawing ")


@pytest.mark.parametrize(
    "filter_body, words",
    [
        ('<filter id="f" width="9999"/>', "filter region"),
        ('<filter id="f" filterUnits="userSpaceOnUse" x="-4001"/>', "filter region"),
        ('<filter id="f"><feFlood height="1e300"/></filter>', "filter region"),
        ('<filter id="f"><feGaussianBlur stdDeviation="1 201"/></filter>', "stdDeviation"),
        (
            '<filter primitiveUnits="objectBoundingBox"><feBlur stdDeviation="3"/></filter>',
            "stdDeviation",
        ),
        ('<filter id="f"><feTurbulence numOctaves="9"/></filter>', "numOctaves"),
        ('<filter id="f"><feMorphology radius="201"/></filter>', "radius"),
        (f'<filter id="f">{"<feOffset/>" * 41}</filter>', "41 steps"),
        ("<filter/>" * 201, "201 filters"),
        ('<g filter="blur(201px)"/>', "CSS filter"),
        ("<style>g{filter:drop-shadow(0 0 300px rgb(0,0,0))}</style>", "CSS filter"),
    ],
)
def test_filters_are_capped(filter_body, words):
    assert words in refusal(drawing(filter_body))


@pytest.mark.parametrize(
    "body",
    [
        '<use id="a" href="#a"/>',
        '<g id="a"><g><use href="#b"/></g></g><g id="b"><use href="#a"/></g>',
        '<mask id="a"><rect mask="url(#a)"/></mask>',
        '<clipPath id="a" clip-path="url(#a)"/>',
        '<marker id="a"><path style="marker-end: url(#a)"/></marker>',
        '<filter id="a"><feImage href="#b"/></filter><g id="b" filter="url(#a)"/>',
        '<style>.x{mask:url(#a)}</style><mask id="a"><g class="y x"/></mask>',
        # Of two equal ids one renderer takes the first, another the last.
        '<g id="a"/><g id="a"><use href="#a"/></g>',
    ],
)
def test_a_reference_to_itself_is_refused(body):
    assert "refers to itself" in refusal(drawing(body))


def test_expansion_is_counted_without_being_made():
    levels = "".join(
        f'<g id="g{n + 1}">{f"<use href=&quot;#g{n}&quot;/>".replace("&quot;", chr(34)) * 10}</g>'
        for n in range(60)
    )
    assert "stands for more than" in refusal(drawing(f'<g id="g0"/><defs>{levels}</defs>'))


def test_references_nested_deeper_than_a_renderer_survives_are_refused():
    masks = "".join(f'<mask id="m{n + 1}"><g mask="url(#m{n})"/></mask>' for n in range(20))
    assert "nested too deeply" in refusal(drawing(f'<mask id="m0"/>{masks}'))


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
    ],
)
def test_natural_size(attributes, size):
    screened = screen(root(attributes))
    assert (screened.width, screened.height) == pytest.approx(size)


@pytest.mark.parametrize(
    "attributes, words",
    [
        ("", "neither a width and height nor a viewBox"),
        ('width="10"', "neither"),
        ('width="100%" height="100%"', "neither"),
        ('width="0" height="10"', "no area"),
        ('width="-1" height="10" viewBox="0 0 1 1"', "no area"),
        ('width="1e999" height="1e999"', "no area"),
        ('width="1" height="1e9"', "100000 at most"),
        ('width="10" height="501"', "50 times"),
        ('width="10" height="10" viewBox="0 0 1 1e6"', "viewBox"),
    ],
)
def test_sizes_that_cannot_be_shown_are_refused(attributes, words):
    assert words in refusal(root(attributes))


@pytest.mark.parametrize(
    "source, words",
    [
        ("", "empty"),
        (" \n\t", "empty"),
        (b"\xff\xfe<\0s\0", "UTF-16"),
        (root('width="9" height="9"').encode("utf-16"), "UTF-16"),
        (root('width="9" height="9"').encode("utf-16-be"), "UTF-16"),
        ('<?xml version="1.0" encoding="utf-16"?><svg/>', "encoding utf-16"),
        ('<?xml version="1.0" encoding="latin-1"?><svg/>', "encoding latin-1"),
        (f"<svg {XMLNS}>é</svg>".encode("latin-1"), "not in UTF-8"),
        ("<svg>\0</svg>", "NUL"),
        (b"\0\1\2" * 99, "NUL"),
        ("<svg>\x08</svg>", "not well-formed"),
        ("<svg>\ud800</svg>", "no text may contain"),
        ("<svg><g></svg>", "not well-formed"),
        ("<svg>&undefined;</svg>", "not well-formed"),
        ("<svg><y:g/></svg>", "not well-formed"),
        ("<!DOCTYPE svg><svg/>", "DOCTYPE"),
        ("<svg/>", "lacks xmlns"),
        (f"<html {XMLNS}/>", "root element is html"),
        (f"<svg {XMLNS}>{' ' * 512 * 1024}</svg>", "512 KB"),
        ("é" * 300 * 1024, "512 KB"),
        (f"<svg {XMLNS}>{'<g>' * 64}{'</g>' * 64}</svg>", "deeper than 64"),
        (f"<svg {XMLNS}>{'<g/>' * 20_000}</svg>", "20,000 elements"),
    ],
)
def test_what_is_no_bounded_text_in_utf_8_is_refused(source, words):
    assert words in refusal(source)


def test_a_reason_names_what_was_refused_on_one_printable_line():
    reason = refusal(drawing(image("ht&#10;tp://a&#x202e;b")))
    assert reason == (
        "the drawing refers to ht tp://ab; only data: images and #fragments are allowed"
    )


def test_a_byte_order_mark_and_a_declaration_are_welcome():
    source = '<?xml version="1.0" encoding="UTF-8"?>' + root('viewBox="0 0 8 8"')
    expected = Screened(8, 8, 1)
    assert screen(source) == screen("\ufeff" + source) == screen(source.encode("utf-8-sig"))
    assert screen(source) == expected


@pytest.mark.parametrize(
    "content",
    [
        png(5000, 5000, rows=0),
        b"GIF89a" + bytes([255, 255, 255, 255]) + b"...",
        b"RIFF....WEBPVP8X" + bytes(8) + b"\xff\xff\xff\xff\xff\xff",
        b"RIFF....WEBPVP8L" + bytes(5) + b"\xff\xff\xff\xff" + bytes(9),
        b"RIFF....WEBPVP8 " + bytes(10) + b"\xff\x3f\xff\x3f",
        b"\xff\xd8\xff\xe0\0\4ab\xff\xc2\0\x0b\x08\xff\xff\xff\xff\x01",
    ],
    ids=["png", "gif", "webp extended", "webp lossless", "webp", "jpeg"],
)
def test_the_size_of_embedded_pictures_is_read_from_each_kind_of_header(content):
    assert "too large" in refusal(drawing(image(data_url(content))))


def test_element_count_counts_what_can_be_read_and_never_fails():
    assert element_count(drawing("<g><rect/></g><rect/>")) == 4
    assert element_count(drawing("<script/>")) == 2
    for unreadable in ("", "words", "<svg>", "<svg>\0</svg>", "\ud800", "<!DOCTYPE svg><svg/>"):
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
    "equal ids": '<g id="a"/>' * 9_000 + '<use href="#a"/>' * 9_000,
    "rules for all": f"<style>{'*{fill:url(#a)}' * 9_000}</style>{'<g/>' * 15_000}",
    "references of one": '<g id="x"/>' * 500 + f'<g fill="{"url(#x)" * 50_000}"/>',
    "inherited references": (
        f'<g mask="{"url(#x)" * 50_000}">' + '<g mask="inherit"/>' * 4_000 + "</g>"
    ),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("body", REPETITIONS.values(), ids=REPETITIONS.keys())
def test_no_repetition_keeps_the_screening_busy(body):
    # A tenth of a second each; hours where the time grows with the square of the length.
    assert elements_or_refusal(drawing(body))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece", ["font:", "font:1 ", "font-family:'", "font-family:a ", "font-family:a,", "&quot;,"]
)
def test_no_repetition_keeps_the_replacing_of_fonts_busy(piece):
    source = "font-family:" + piece * (LONG // len(piece))
    assert with_shipped_families(source) == source


def elements_or_refusal(source):
    try:
        return screen(source).elements
    except UnsafeSvg as refused:
        return refused.reason


@given(st.text() | st.binary() | st.lists(PIECES).map("".join))
@example(root('width="9" height="9" viewBox="1 2 3"'))
@example(drawing('<use href="#"/>'))
def test_nothing_but_a_refusal_is_ever_raised(source):
    assert elements_or_refusal(source)


@given(st.lists(PIECES | st.text(max_size=5)).map(lambda body: drawing("".join(body))))
def test_nothing_but_a_refusal_is_ever_raised_inside_a_drawing(source):
    outcome = elements_or_refusal(source)
    assert outcome
    assert isinstance(outcome, str) or outcome == element_count(source)


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


@pytest.mark.parametrize(
    "name", ["screening", "screening.css", "screening.images", "screening.size", "font_names"]
)
def test_the_examples_in_the_documentation_are_true(name):
    module = importlib.import_module(f"voting.{name}")
    outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted
    assert not outcome.failed

"""Drawings: fit for a page with a strict policy, safe with hostile names, restyled by a config."""

import io
import re
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree

import pytest
from PIL import Image

from humanjudge.charts.draw import ChartRefused, png, svg
from humanjudge.charts.plots import (
    Curve,
    Estimate,
    Versus,
    bars,
    grouped,
    intervals,
    lines,
)
from humanjudge.charts.spec import SHARE, Axis, Reference

NAMESPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "</text><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt; ]]> <!-- <![CDATA[",
    "datum.value + 1",
    "\ud800 lone \x00 null \x0b tab\t\nline \u202egnp.exe",
    "评判模型",
    "🦩 flamingo",
    "",
    "x" * 5000,
]


def charts(names):
    rows = [Estimate(name, 0.3 + n / 100, 0.2, 0.6, n % 3 == 0) for n, name in enumerate(names)]
    people = Reference(0.8, names[0], 0.7, 0.9)
    title, said = f"t {names[0]}", Axis(names[0], ".0%", 0, 1)
    return {
        "bars": bars(rows, title=title, axis=said, reference=people),
        "intervals": intervals(rows, title=title, axis=said, reference=people),
        "lines": lines(
            [Curve(name, [(0.0, 0.1), (0.1, 0.9)]) for name in names],
            title=title,
            x=said,
            y=said,
            threshold=people,
        ),
        "grouped": grouped([Versus(n, n, 0.5, 0.6) for n in names], title=title, axis=said),
    }


KINDS = sorted(charts(["a"]))


@pytest.fixture(scope="module")
def plain():
    return charts(["gpt", "claude", "mistralai/mistral-large-2411-instruct-v3"])


@pytest.fixture(scope="module")
def pages(plain):
    return {kind: svg(spec) for kind, spec in plain.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("theme", ["page", "dark"])
def test_a_drawing_uses_attributes_only_and_loads_nothing(plain, kind, theme):
    drawing = svg(plain[kind], theme)
    for element in ElementTree.fromstring(drawing).iter():
        assert element.tag.removeprefix(NAMESPACE) not in ("style", "script", "image", "a", "use")
        for name, value in element.items():
            assert name != "style"
            assert not name.startswith("on")
            assert "href" not in name
            assert not re.search(r"url\((?!#)|//", value), f"{name}={value}"
    assert drawing.count("http") == 1, "only the name space"
    assert not re.search(r"NaN|undefined|Infinity|#0a0b0", drawing)
    assert ("var(" in drawing) == (theme == "page")


@pytest.mark.parametrize("kind", KINDS)
def test_a_drawing_says_what_is_to_be_seen(pages, kind):
    root = ElementTree.fromstring(pages[kind])
    title, words = root[0], root[1]
    assert (title.tag, words.tag) == (f"{NAMESPACE}title", f"{NAMESPACE}desc")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {words.get('id')}"
    assert title.text == "t gpt"
    assert "claude" in words.text


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_smaller_than_eleven_pixels(pages, kind):
    sizes = {
        float(text.get("font-size").removesuffix("px"))
        for text in ElementTree.fromstring(pages[kind]).iter(f"{NAMESPACE}text")
    }
    assert min(sizes) >= 11


def test_charts_on_one_page_have_no_id_in_common(pages):
    ids = [name for page in pages.values() for name in re.findall(r'\bid="([^"]+)"', page)]
    assert len(ids) == len(set(ids)) >= 2 * len(pages)


def test_on_a_page_colours_are_variables_with_something_to_fall_back_on(pages):
    for drawing in pages.values():
        colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', drawing)) - {"none"}
        assert colours
        assert all(re.fullmatch(r"var\(--\w+, [#\w]+\)", colour) for colour in colours)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_are_text_and_nothing_else(kind):
    drawing = svg(charts(HOSTILE)[kind])
    root = ElementTree.fromstring(drawing)
    tags = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
    assert tags <= set("svg title desc g path line rect text tspan".split())
    said = "".join(root.itertext())
    assert "</text><script>" in said
    assert "datum.value + 1" in said, "a name is no expression"
    assert "(no name)" in said
    assert not set(said) & set("\ud800\x00\x0b\u202e")
    assert float(root.get("width")) < 1200
    assert drawing.encode()


@pytest.mark.parametrize("kind", KINDS)
def test_endless_words_do_not_make_an_endless_chart(kind):
    root = ElementTree.fromstring(svg(charts(["endless " * 700])[kind]))
    assert float(root.get("width")) < 900
    assert float(root.get("height")) < 700


@pytest.mark.parametrize("kind", KINDS)
def test_a_png_has_the_size_of_the_drawing_and_something_on_it(plain, kind):
    with Image.open(io.BytesIO(png(plain[kind], scale=2))) as picture:
        colours = picture.convert("RGB").getcolors(1 << 24)
        assert picture.getpixel((0, 0))[:3] == (255, 255, 255)
        width, height = picture.size
    with Image.open(io.BytesIO(png(plain[kind], scale=1))) as half:
        assert abs(width - 2 * half.width) <= 2
        assert abs(height - 2 * half.height) <= 2
    assert len(colours) > 20
    assert max(colours)[0] < 0.98 * width * height


def test_letters_of_a_png_come_from_the_shipped_fonts():
    first, second = (
        png(bars([Estimate(name, 0.5)], title="t", axis=SHARE)) for name in ("评判", "模型")
    )
    assert first != second, "boxes would be the same"


def test_a_dark_png_is_on_dark_paper(plain):
    with Image.open(io.BytesIO(png(plain["bars"], "dark"))) as picture:
        assert picture.getpixel((0, 0))[:3] == (0x16, 0x16, 0x15)


def test_a_png_cannot_have_the_colours_of_a_page(plain):
    with pytest.raises(ValueError, match="real colours"):
        png(plain["bars"], "page")


def test_a_config_restyles_and_leaves_the_rest(plain):
    config = {"bar": {"color": "#ff0000"}, "text": {"font": "Liberation Serif"}}
    drawing = svg(plain["bars"], "light", config)
    assert 'fill="#ff0000"' in drawing
    assert 'font-family="Liberation Serif"' in drawing
    assert "#ff0000" not in svg(plain["bars"], "light")
    assert png(plain["bars"], vega_config=config) != png(plain["bars"])
    # The specification itself is as it was.
    assert svg(plain["bars"], "light") == svg(charts(["gpt", "claude", LONG])["bars"], "light")


LONG = "mistralai/mistral-large-2411-instruct-v3"


def test_gradients_of_two_charts_do_not_meet(plain):
    stops = [{"offset": 0, "color": "red"}, {"offset": 1, "color": "blue"}]
    config = {"bar": {"color": {"gradient": "linear", "stops": stops}}}
    one = svg(plain["bars"], "page", config)
    other = svg(charts(["b"])["bars"], "page", config)
    found = [set(re.findall(r"url\(#([\w-]+)\)", drawing)) for drawing in (one, other)]
    assert found[0]
    assert found[1]
    assert not found[0] & found[1]
    assert all(f'id="{name}"' in one for name in found[0])


@pytest.fixture
def server():
    asked = []

    class Asked(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Asked) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", asked
        http.shutdown()
        thread.join()


def test_addresses_in_a_config_are_not_asked_and_do_not_come_out(plain, server):
    address, asked = server
    url = f"{address}/x.png"
    config = {
        "$schema": url,
        "data": {"url": url},
        "datasets": {"a": {"url": url}},
        "background": f"url({url})",
        "image": {"url": url},
        "mark": {"href": url, "url": url},
        "bar": {"fill": f"url({url}#a)", "href": url, "cursor": f"url({url})", "shape": url},
        "style": {"under": {"color": f"url('{url}')"}},
        "text": {"font": f"x; src: url({url})"},
        "signals": [{"name": "s", "init": f"data('{url}')"}],
        "title": {"color": f" URL({url})"},
    }
    for theme in ("page", "light"):
        try:
            drawing = svg(plain["bars"], theme, config)
        except ChartRefused:
            continue
        assert address not in drawing
    for key, value in config.items():
        try:
            drawing = svg(plain["bars"], "light", {key: value})
        except ChartRefused:
            continue
        assert address not in drawing
    png(plain["bars"], vega_config={"background": f"url({url})"})
    assert asked == []


def test_a_specification_that_names_an_address_is_not_followed(plain, server):
    address, asked = server
    layer = plain["bars"].layers[0] | {"data": {"url": f"{address}/rows.json"}}
    with pytest.raises(ChartRefused):
        svg(replace(plain["bars"], layers=[layer]))
    assert asked == []


DEEP = {}
for _ in range(5000):
    DEEP = {"style": DEEP}


@pytest.mark.parametrize(
    "config",
    [
        {"padding": 1_000_000},
        {"title": {"fontSize": 1e9}},
        {"title": {"fontSize": 10**400}},
        {"padding": {"left": 2000, "right": 2000, "top": 2000, "bottom": 2000}},
        {"rule": {"strokeDash": [1e-6]}},
        {"padding": float("nan")},
        {"bar": {"color": object()}},
        {"font": "a\x00b"},
        {"a\x00b": 1},
        {"font": "\ud800"},
        {"bar": {"color": {"expr": "sequence(1e9)"}}},
        {"axis": {"labelExpr": "'x'"}},
        {"bar": {"color": "x" * 100_000}},
        DEEP,
    ],
    ids="padding letters huge area dash nan object null key half expr labels long deep".split(),
)
def test_a_config_that_would_harm_is_refused_in_a_line(plain, config):
    with pytest.raises(ChartRefused) as refused:
        svg(plain["bars"], "light", config)
    assert "\n" not in str(refused.value)


def test_what_the_renderer_complains_of_is_said_in_a_line(plain):
    with pytest.raises(ChartRefused) as refused:
        svg(replace(plain["bars"], layers=[{"mark": "nothing"}]))
    assert "\n" not in str(refused.value)
    assert "jsdelivr" not in str(refused.value)

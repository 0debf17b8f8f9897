"""Pictures of drawings: right, the same every time, and safe to make from anything."""

import ctypes
import ctypes.util
import io
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from judge_eval.demo import content
from tests.drawings import DRAWN, NOT_DRAWN
from tests.helpers.waiting import eventually
from tests.hostile_svg import FULL, OWN, data_url, drawing, image, png
from tests.makers import make_inference, make_project
from voting.models import Picture
from voting.pictures import rendering
from voting.pictures.child import FONTS
from voting.pictures.rendering import BadPng, canonical, render, renderer_id
from voting.pictures.screening import RenderingFailed
from voting.pictures.store import render_picture

pytestmark = pytest.mark.process

HOSTILE = Path(__file__).parents[4] / "shared" / "data" / "svg_hostile"
# Whoever is too slow is killed after eight. Only where nobody is does it take this long.
SECONDS = 60
PROCESSOR_SECONDS = 1
MEMORY_BOUND = 1.2 * 2**30
SECRET_COLOUR = (255, 0, 222)
needs_cairo = pytest.mark.skipif(
    ctypes.util.find_library("cairo") is None,
    reason="not run: cairosvg needs the system library libcairo, which is not installed",
)
BACKENDS = [pytest.param("resvg"), pytest.param("cairosvg", marks=needs_cairo)]
every_backend = pytest.mark.parametrize("renderer", BACKENDS)
# Drawing one of these takes until a limit is met, or nearly: a second and more. One of each limit
# and backend is drawn each time, the others with `--thorough`.
COSTLY = {
    "resvg": {
        *("blur_big.svg", "many_filters.svg", "clip_paths", "costly_filters", "huge_path"),
        *("kernels", "marker_bomb", "mask_by_inheritance", "mask_by_style_sheet", "morphology"),
        *("png_many_large", "scaled_blur", "text_by_use", "text_of_glyphs"),
    },
    "cairosvg": {
        *("mask_nest.svg", "use_bomb_1e6.svg", "clip_paths", "huge_path", "numbers"),
        *("pattern_bomb", "png_many_large", "style_bomb", "text_by_use", "text_of_glyphs"),
        # Of masks and dashes one of each is left, and of filters, which it does not draw.
        *("mask_by_inheritance", "tiny_dashes"),
        *("blur_shorthand", "kernels", "morphology", "scaled_blur"),
    },
}


def landlock_version():
    if sys.platform != "linux":
        return 0
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)


def sized(attributes, body=FULL):
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{body}</svg>'


def pixels(picture):
    decoded = Image.open(io.BytesIO(picture.png if hasattr(picture, "png") else picture[0]))
    return decoded.convert("RGBA")


UNKNOWN = 'font-family="Never Heard Of It"'


def text(words, attributes=UNKNOWN):
    return sized(
        'viewBox="0 0 400 80"', f'<text x="9" y="50" font-size="40" {attributes}>{words}</text>'
    )


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        server.setblocking(False)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.png"
    path.write_bytes(png(64, 64, colour=bytes(SECRET_COLOUR)))
    return path


@pytest.fixture
def hurried(request, monkeypatch, tmp_path):
    """Give a drawing a fifth of the processor time that it may take, so that many can be tried.

    A thorough test has the real limits.
    """
    if request.node.get_closest_marker("thorough"):
        return
    program = rendering._CHILD.read_text()
    real = "\nCPU_SECONDS = 5\n"
    assert program.count(real) == 1
    hurried = tmp_path / "child.py"
    hurried.write_text(program.replace(real, f"\nCPU_SECONDS = {PROCESSOR_SECONDS}\n"))
    monkeypatch.setattr(rendering, "_CHILD", hurried)


def picture_or_none(make):
    """Make a picture within the limits of time and memory, and say whether there is one."""
    started, most_before = time.monotonic(), most_memory_of_a_child()
    used_before = processor_seconds_of_children()
    try:
        picture = make()
    except RenderingFailed:
        picture = None
    assert time.monotonic() - started < SECONDS
    # The limit ends it, or at the latest, a second later, the kill.
    limit = int(re.search(r"^CPU_SECONDS = (\d+)$", rendering._CHILD.read_text(), re.MULTILINE)[1])
    assert processor_seconds_of_children() - used_before < limit + 1.5
    # It never falls: a larger child of an earlier test says nothing of this one.
    most = most_memory_of_a_child()
    assert most == most_before or most < MEMORY_BOUND
    return picture


def processor_seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def most_memory_of_a_child():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


def assert_not_leaked(picture):
    if picture is not None:
        colours = pixels(picture).getcolors(2**21)
        assert SECRET_COLOUR not in {colour[:3] for _count, colour in colours}


def hostile(names, backends=BACKENDS, costly=COSTLY):
    """Try each of these on each of the backends; what is costly only where it is asked for."""
    return pytest.mark.parametrize(
        "name, renderer",
        [
            pytest.param(
                name,
                *backend.values,
                marks=[*backend.marks, *[pytest.mark.thorough] * (name in costly[renderer])],
            )
            for backend in backends
            for renderer in backend.values
            for name in names
        ],
    )


def hostile_files():
    return sorted(path.name for path in HOSTILE.glob("*.svg"))


needs_files = pytest.mark.skipif(not HOSTILE.is_dir(), reason="not run: no ../shared/data")


def aimed(name, listener, secret):
    source = (HOSTILE / name).read_bytes().decode(errors="replace")
    source = source.replace(":9911/", f":{listener.getsockname()[1]}/")
    return source.replace("/tmp/secret.png", str(secret))


@pytest.mark.real_data
@needs_files
@pytest.mark.usefixtures("hurried")
@hostile(hostile_files() or ["none"])
def test_a_known_hostile_file_does_no_harm(name, renderer, listener, secret):
    source = aimed(name, listener, secret)
    assert_not_leaked(picture_or_none(lambda: render(source, renderer=renderer)))


@pytest.mark.usefixtures("hurried")
@hostile(sorted(OWN))
def test_an_invented_hostile_drawing_does_no_harm(name, renderer, listener, secret):
    source = OWN[name](listener.getsockname()[1], str(secret))
    assert_not_leaked(picture_or_none(lambda: render(source, renderer=renderer)))


UNSCREENED = (
    *("deep_mixture", "data_svg", "href_file", "href_with_space", "css_escape_import"),
    *("entity_in_attribute", "use_other_file", "set_href", "pattern_bomb", "marker_bomb"),
)

# The screening lets these bombs pass: above, they reach the child as well. Of the others, cairosvg
# draws one of each way out: by the network, by a file, by an entity, by depth.
BOMBS = {"pattern_bomb", "marker_bomb"}
COSTLY_UNSCREENED = {
    "resvg": BOMBS,
    "cairosvg": BOMBS | {"data_svg", "css_escape_import", "use_other_file", "set_href"},
}


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
@hostile(UNSCREENED, costly=COSTLY_UNSCREENED)
def test_the_limits_of_the_child_hold_without_screening(name, renderer, listener, secret):
    source = OWN[name](listener.getsockname()[1], str(secret))
    picture_or_none(lambda: rendering.run_child(source.encode(), renderer, (1024, 1024)))
    assert render(drawing(FULL)).png


@pytest.mark.real_data
@pytest.mark.slow
@needs_files
@pytest.mark.usefixtures("hurried")
@hostile(hostile_files() or ["none"], BACKENDS[:1], {"resvg": COSTLY["resvg"] | {"turb_big.svg"}})
def test_the_limits_of_the_child_hold_for_known_files(name, renderer, listener, secret):
    source = aimed(name, listener, secret)
    picture_or_none(
        lambda: rendering.run_child(source.encode(errors="replace"), renderer, (512, 512))
    )


@pytest.mark.skipif(landlock_version() < 1, reason="not run: this kernel has no Landlock")
@pytest.mark.parametrize("href", ["{}", "file://{}"])
def test_the_child_cannot_read_a_local_picture_even_without_screening(href, secret):
    source = drawing(FULL + image(href.format(secret)))
    picture = rendering.run_child(source.encode(), "resvg", (512, 512))
    assert pixels(picture).getpixel((256, 256)) == (0, 128, 0, 255)


SIZES = {
    'width="24" height="24" viewBox="0 0 200 200"': (512, 512),
    'viewBox="0 0 600 420"': (600, 420),
    'viewBox="0 0 420 1000"': (420, 1000),
    'width="4000" height="1000"': (1024, 256),
    'width="10mm" height="2cm" viewBox="0 0 10 20"': (256, 512),
    'width="1in" height="72pt"': (512, 512),
    'width="50%" height="50%" viewBox="0 0 640 320"': (512, 256),
    'width="800" viewBox="0 0 4 3"': (800, 600),
}
# The size is computed before any renderer is asked: the other one is asked for one wide and one
# high.
SIZED_BY_CAIROSVG = ('viewBox="0 0 600 420"', 'width="10mm" height="2cm" viewBox="0 0 10 20"')


@hostile(SIZES, costly={"resvg": (), "cairosvg": SIZES.keys() - SIZED_BY_CAIROSVG})
def test_the_longer_side_is_between_512_and_1024_and_nothing_is_distorted(name, renderer):
    picture = render(sized(name), renderer=renderer)
    assert (picture.width, picture.height) == SIZES[name] == pixels(picture).size
    assert picture.renderer == renderer_id(renderer)


@every_backend
def test_a_picture_shows_what_was_drawn_on_white(renderer):
    body = '<circle cx="50" cy="50" r="40" fill="#ff0000" fill-opacity="0.5"/>'
    picture = pixels(render(sized('viewBox="0 0 100 100"', body), renderer=renderer))
    assert picture.getpixel((2, 2)) == (255, 255, 255, 255)
    assert picture.getpixel((256, 256)) == pytest.approx((255, 127, 127, 255), abs=1)
    # A circle stays one: as wide as it is high.
    left, top, right, bottom = Image.eval(picture.getchannel("G"), lambda v: 255 - v).getbbox()
    assert right - left == pytest.approx(bottom - top, abs=1)


@every_backend
def test_an_embedded_picture_is_drawn(renderer):
    source = drawing(image(data_url(png(8, 8, colour=b"\x00\x00\xff"))))
    assert pixels(render(source, renderer=renderer)).getpixel((256, 256)) == (0, 0, 255, 255)


@pytest.mark.parametrize("name", DRAWN)
def test_what_a_browser_shows_is_drawn(name):
    picture = pixels(render(DRAWN[name]))
    assert picture.getpixel((picture.width // 2, picture.height // 2)) == (0, 128, 0, 255)


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_what_is_not_drawn_has_its_reason(name):
    source, words = NOT_DRAWN[name]
    with pytest.raises(RenderingFailed) as failed:
        render(source)
    assert words in str(failed.value)


# The screening tells it, whatever draws the picture.
@hostile([("photo.png",), ()], costly={"resvg": (), "cairosvg": [()]})
def test_a_picture_tells_what_it_was_drawn_without(name, renderer):
    source = DRAWN["external picture"] if name else drawing(FULL)
    assert render(source, renderer=renderer).left_out == name


@every_backend
def test_the_same_drawing_gives_the_same_bytes_from_many_threads(renderer):
    source = text("Same 中 😀")
    with ThreadPoolExecutor(4) as threads:
        pictures = set(threads.map(lambda _: render(source, renderer=renderer).png, range(4)))
    assert len(pictures) == 1


@every_backend
def test_a_picture_carries_nothing_but_its_pixels(renderer):
    data = render(drawing(FULL), renderer=renderer).png
    kinds, position = [], 8
    while position < len(data):
        kinds.append(data[position + 4 : position + 8])
        position += 12 + int.from_bytes(data[position : position + 4])
    assert kinds == [b"IHDR", b"IDAT", b"IEND"]


ROW = 70
SCRIPTS = (
    ("Latin", "Lotin"),
    ("中文", "日本"),
    ("かな", "カナ"),
    ("한국", "조선"),
    ("Ωλ", "Жы"),
    ("سلام", "عربي"),
    ("שלום", "אבגד"),
    ("ไทย", "กขค"),
    ("हिन्दी", "नमस्ते"),
    ("😀", "🚀"),
    ("★✓", "→∑"),
    ("a中😀", "a中🚀"),
)


def rows_of(lines, renderer):
    """Draw each text, with its attributes, in a row of its own; return the pixels of the rows."""
    height = ROW * len(lines)
    body = "".join(
        f'<text x="9" y="{ROW * row + 50}" font-size="40" {attributes}>{words}</text>'
        for row, (words, attributes) in enumerate(lines)
    )
    drawn = pixels(render(sized(f'viewBox="0 0 480 {height}"', body), renderer=renderer))
    # A row is as high here as there: what two rows show can be compared.
    assert drawn.size == (480, height)
    return [drawn.crop((0, top, 480, top + ROW)).tobytes() for top in range(0, height, ROW)]


@every_backend
def test_text_never_vanishes_nor_turns_into_boxes(renderer):
    *first, blank = rows_of([*((one, UNKNOWN) for one, _ in SCRIPTS), ("", UNKNOWN)], renderer)
    second = rows_of([(other, UNKNOWN) for _, other in SCRIPTS], renderer)
    drawn = zip(SCRIPTS, first, second, strict=True)
    assert [words for words, *both in drawn if len({blank, *both}) < 3] == []


@every_backend
def test_each_generic_family_has_a_face_of_its_own(renderer):
    families = ("serif", "sans-serif", "monospace", "cursive")
    lines = [("Hamburg", f'font-family="{family}"') for family in families]
    lines += [("Hamburg", UNKNOWN), ("Hamburg", "style=\"font-family:'Arial'\"")]
    *drawn, unknown, arial = rows_of([*lines, *[("", UNKNOWN)] * 2], renderer)[:6]
    assert len(set(drawn)) == len(families)
    assert unknown == drawn[families.index("serif")]
    assert arial == drawn[families.index("sans-serif")]


def test_bold_and_italic_are_seen():
    styles = ("", 'font-weight="bold"', 'font-style="italic"')
    assert len({render(text("Hamburg", style)).png for style in styles}) == 3


def test_a_renderer_says_which_version_it_is():
    assert renderer_id("resvg").startswith("resvg_py ")
    assert renderer_id("cairosvg").startswith("cairosvg ")


def test_a_refused_drawing_fails_with_the_reason_of_the_screening():
    with pytest.raises(RenderingFailed, match="the drawing contains a script element"):
        render(drawing("<script/>"))


def test_a_crash_of_the_renderer_is_told_and_the_next_drawing_renders():
    crashing = drawing("<g>" * 3000 + "</g>" * 3000)
    with pytest.raises(RenderingFailed, match=r"crashed|too many elements"):
        rendering.run_child(crashing.encode(), "resvg", (512, 512))
    assert render(drawing(FULL)).png


@pytest.mark.parametrize("kills", [1, rendering.TRIES])
def test_a_drawing_is_not_blamed_for_a_child_that_somebody_else_killed(
    kills, tmp_path, monkeypatch
):
    child, killed = tmp_path / "child.py", tmp_path / "killed"
    child.write_text(
        f"import os\nfrom pathlib import Path\nkilled = Path({str(killed)!r})\n"
        "times = len(killed.read_text()) if killed.exists() else 0\n"
        f"if times < {kills}:\n    killed.write_text('x' * (times + 1)); os.kill(os.getpid(), 9)\n"
        f"import runpy\nrunpy.run_path({str(rendering._CHILD)!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(rendering, "_CHILD", child)
    if kills < rendering.TRIES:
        assert render(drawing(FULL)).png
    else:
        with pytest.raises(RenderingFailed, match="killed from outside, 3 times"):
            render(drawing(FULL))


def start(*command):
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.parametrize(
    "script",
    [
        "sleep 600",
        "sleep 600 & exit 0",
        "exec <&-; sleep 600",
        "trap '' TERM INT; cat; sleep 600 & sleep 600",
    ],
)
def test_a_child_that_does_not_end_is_killed_with_its_group(script, monkeypatch):
    monkeypatch.setattr(rendering, "WALL_SECONDS", 0.5)
    child = start("sh", "-c", script)
    rendering._answer(child, b"x" * 500_000)
    assert child.returncode is not None
    wait_until_group_is_gone(child.pid)


def wait_until_group_is_gone(leader):
    eventually(lambda: not any(group == leader for group in groups_that_run()))


def groups_that_run():
    # Orphans are reaped by init, or stay zombies where there is none: neither runs.
    listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True)
    states = (line.split() for line in listed.stdout.splitlines())
    return [int(group) for group, state in states if not state.startswith("Z")]


def test_a_child_that_floods_is_cut_off():
    child = start("yes")
    assert len(rendering._answer(child, b"")) == rendering.MAX_PNG_BYTES + 5
    assert child.returncode == -9


@pytest.mark.parametrize(
    "answer, words",
    [
        (b"", "ended with status 3"),
        (b"ERR\nbad \x1b[31m\n thing", r"bad \[31m thing"),
        (b"PNG\nGIF89a", "no PNG signature"),
        (b"PNG\n" + b"0" * (rendering.MAX_PNG_BYTES + 1), "larger than 8 MB"),
    ],
)
def test_an_answer_is_not_trusted(answer, words):
    with pytest.raises(RenderingFailed, match=words):
        rendering._checked(answer, 3)


def chunk(kind, body):
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


GOOD_PNG = png(4, 2)


def test_the_demo_comes_with_what_is_rendered_of_its_drawings():
    outputs = [output for prompt in content.load("svg") for output in prompt.outputs]
    wrong = [place for place, each in enumerate(outputs) if render(each.output).png != each.png]
    assert wrong == []  # a newer renderer: write the files anew


def test_a_canonical_png_has_the_same_pixels_and_no_other_chunk():
    noted = GOOD_PNG[:33] + chunk(b"tEXt", b"Comment\0hello") + GOOD_PNG[33:]
    assert canonical(noted, 1024) == (GOOD_PNG, 4, 2)


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "signature"),
        (GOOD_PNG[:-1], "cut short"),
        (GOOD_PNG + b"<script>", "followed by"),
        (GOOD_PNG[:20] + b"\1" + GOOD_PNG[21:], "checksum"),
        (png(1025, 1), "1025 by 1"),
        (png(4, 2, rows=1), "too few"),
        (png(4, 2, rows=3), "too many"),
        (png(1024, 1024, rows=60_000), "too many"),
        (GOOD_PNG[:33] + chunk(b"IDAT", b"nonsense") + chunk(b"IEND", b""), "decompressed"),
        (GOOD_PNG[:8] + chunk(b"IEND", b""), "no header"),
        (
            GOOD_PNG[:8]
            + chunk(b"IHDR", bytes([0, 0, 0, 4, 0, 0, 0, 2, 16, 2, 0, 0, 0]))
            + GOOD_PNG[33:],
            "plain 8-bit",
        ),
    ],
)
def test_what_is_not_a_plain_png_is_refused(data, words):
    with pytest.raises(BadPng, match=words):
        canonical(data, 1024)


def test_the_child_knows_every_shipped_font():
    folder = Path(rendering.__file__).with_name("fonts")
    assert {path.name for path in folder.glob("*.[ot]tf")} == set(FONTS)


def test_every_shipped_font_has_its_licence_and_all_are_small():
    folder = Path(rendering.__file__).with_name("fonts")
    told = (folder / "README.md").read_text()
    for licence in folder.glob("LICENSE-*"):
        assert licence.name in told
    assert len(list(folder.glob("LICENSE-*"))) == 7
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12_000_000


@pytest.mark.django_db
@pytest.mark.parametrize("status", [-signal.SIGXCPU, -signal.SIGKILL])
def test_a_drawing_that_meets_a_limit_of_time_is_not_tried_twice(monkeypatch, status):
    picture = Picture.objects.create(source_sha256="0" * 64)
    make_inference(make_project(), drawing(FULL), kind="svg", picture=picture)
    tries = []

    def run_out(*_):
        tries.append(1)
        return rendering._checked(b"", status)

    monkeypatch.setattr(rendering, "run_child", run_out)
    render_picture(picture.pk)
    picture.refresh_from_db()
    assert (picture.state, picture.is_refused, len(tries)) == ("failed", False, 1)
    assert "too " in picture.error


@pytest.mark.django_db
def test_what_a_picture_lacks_is_kept_with_it():
    picture = Picture.objects.create(source_sha256="0" * 64)
    make_inference(make_project(), DRAWN["web font"], kind="svg", picture=picture)
    render_picture(picture.pk)
    picture.refresh_from_db()
    assert (picture.state, picture.error) == ("done", "")
    assert picture.left_out == "https://fonts.example/css2?family=A&b, @font-face"

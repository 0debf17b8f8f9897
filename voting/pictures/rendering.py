"""SVG to PNG: screened, rendered in a limited child process, and checked before it is trusted.

Every drawing gets a process of its own, started afresh: a renderer that crashes, hangs or is
taken over takes nothing with it. The same source gives the same bytes on every machine, since
only the fonts shipped here are used and the picture carries nothing but its pixels.
"""

import importlib.metadata
import importlib.util
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from voting.pictures.screening import RenderingFailed, screen

MAX_SIDE = 1024
MIN_LONGER_SIDE = 512
MAX_PNG_BYTES = 8 * 1024 * 1024
WALL_SECONDS = 8.0
# Of a drawing whose child was killed by somebody else: a machine short of memory, or a person.
TRIES = 3
PACKAGES = {"resvg": "resvg_py", "cairosvg": "cairosvg"}
# What else the child is asked for: it reads pictures.
_IMPORTED = {"pillow": "PIL"}
_CHILD = Path(__file__).with_name("child.py")
_FONTS = Path(__file__).with_name("fonts")
_MARK = 4
# -I and -S: no environment, no user or site customisation runs before the limits are set.
_PYTHON = ("-I", "-S", "-B", "-X", "utf8")
_ENDS: dict[int, str] = {
    signal.SIGXCPU: "the drawing takes too much processor time to render",
    signal.SIGKILL: "the drawing takes too long to render",
    signal.SIGABRT: "the drawing needs more memory than a rendering may use",
    signal.SIGSEGV: "the renderer crashed on this drawing",
}


# The shipped fonts that stand in for families that drawings ask for.
SANS, SERIF, MONO, HAND = "Liberation Sans", "Liberation Serif", "Liberation Mono", "Comic Neue"
_FAMILIES = {
    SANS: (
        "arial, arial black, arial narrow, helvetica, helvetica neue, verdana, tahoma, geneva, "
        "trebuchet ms, segoe ui, calibri, lucida grande, lucida sans, lucida sans unicode, "
        "gill sans, futura, avenir, avenir next, century gothic, franklin gothic medium, impact, "
        "system-ui, ui-sans-serif, ui-rounded, -apple-system, blinkmacsystemfont, sf pro display, "
        "sf pro text, roboto, open sans, lato, montserrat, inter, poppins, nunito, raleway, "
        "ubuntu, noto sans, source sans pro, work sans, dm sans, oswald, bebas neue"
    ),
    SERIF: "times, times new roman, georgia, garamond, palatino, cambria, ui-serif, baskerville",
    MONO: (
        "courier, courier new, consolas, monaco, menlo, lucida console, andale mono, sf mono, "
        "ui-monospace, fira code, fira mono, jetbrains mono, source code pro, roboto mono"
    ),
    HAND: (
        "comic sans ms, comic sans, chalkboard, chalkboard se, brush script mt, bradley hand, "
        "marker felt, pacifico, caveat, segoe script, lucida handwriting"
    ),
}
_STAND_INS = {name: ours for ours, names in _FAMILIES.items() for name in names.split(", ")}
_NAME = r"(?:[\w -]{1,60}|'[^'\"<>;{}]{0,60}'|\"[^'\"<>;{}]{0,60}\"|&quot;[^&<>;{}]{0,60}&quot;)"
# Every repetition is bounded: the source is hostile and this runs outside the child.
_LIST = re.compile(
    r"(font-family\s{0,9}(?::|=\s{0,9}[\"'])\s{0,9}"
    r"|font\s{0,9}:[\w\s.%-]{0,60}?\d[\w.%]{0,12}(?:/[\w.%]{1,12})?\s{1,9})"
    rf"({_NAME}(?:\s{{0,9}},\s{{0,9}}{_NAME}){{0,20}})"
)
_WORDS = re.compile(r"-?\w[\w -]*\w")


@dataclass(frozen=True, slots=True)
class RenderedPicture:
    """A picture: its PNG bytes, its size in pixels, and what drew it (``renderer_id``).

    ``left_out`` names what the drawing refers to outside itself, which is not in the picture.
    """

    png: bytes
    width: int
    height: int
    renderer: str
    left_out: tuple[str, ...] = ()


class RendererMissing(RenderingFailed):
    """The machine has no renderer that starts, whatever the drawing."""


def render(source: str, *, renderer: str = "resvg") -> RenderedPicture:
    """Return the picture of a drawing, the longer side between 512 and 1024 pixels, on white.

    Raises RenderingFailed, with the reason, when there is none.
    """
    screened = screen(source)
    size = target_size(screened.width, screened.height)
    lettered = with_shipped_families(screened.svg)
    picture = run_child(lettered.encode(errors="replace"), renderer, size)
    return RenderedPicture(*picture, renderer_id(renderer), screened.left_out)


def rendered_before(png: bytes) -> RenderedPicture:
    """Return the picture that `render` has made of a drawing beforehand."""
    return RenderedPicture(*canonical(png, MAX_SIDE), renderer_id("resvg"))


def with_shipped_families(source: str) -> str:
    """Return a drawing with well-known font families replaced by their shipped stand-ins.

    A renderer draws a family that it does not have with its default, a serif: a chart lettered in
    Arial would come out in something like Times. The stand-ins have the same widths.

    >>> with_shipped_families('<text font-family="Courier New, monospace">Arial</text>')
    '<text font-family="Liberation Mono, monospace">Arial</text>'
    """
    if "font" not in source:
        return source

    def stand_in(name: re.Match[str]) -> str:
        return _STAND_INS.get(name[0].lower(), name[0])

    return _LIST.sub(lambda match: match[1] + _WORDS.sub(stand_in, match[2]), source)


@cache
def renderer_id(renderer: str) -> str:
    """Return the name and version of a backend, such as "resvg_py 0.5.0"."""
    package = PACKAGES[renderer]
    return f"{package} {importlib.metadata.version(package)}"


def target_size(width: float, height: float) -> tuple[int, int]:
    longer = max(width, height)
    scale = min(max(longer, MIN_LONGER_SIDE), MAX_SIDE) / longer
    return max(1, round(width * scale)), max(1, round(height * scale))


def run_child(source: bytes, renderer: str, size: tuple[int, int]) -> tuple[bytes, int, int]:
    """Render without screening: what the limits of the child alone must withstand."""
    command = [sys.executable, *_PYTHON, str(_CHILD), renderer, *map(str, size), str(_FONTS)]
    command.append(_package_folder(renderer))
    for _ in range(TRIES):
        started = time.monotonic()
        try:
            answer, status = _run(command, source)
        except OSError as error:
            raise RendererMissing(f"the renderer could not be started: {error}") from error
        is_late = time.monotonic() - started >= WALL_SECONDS
        if answer or status != -signal.SIGKILL or is_late:
            return _checked(answer, status, max(MAX_SIDE, *size))
    raise RenderingFailed(f"the renderer was killed from outside, {TRIES} times")


def _run(command: list[str], source: bytes) -> tuple[bytes, int]:
    with tempfile.TemporaryDirectory(prefix="render-") as empty:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd=empty,
            start_new_session=True,
        )
        return _answer(child, source), child.returncode


def _answer(child: subprocess.Popen[bytes], source: bytes) -> bytes:
    """Return what the child writes, within the limits of time and length, and end its group."""
    assert child.stdin and child.stdout  # noqa: PT018
    # A timer rather than communicate(timeout=...), which bounds the time but not the length.
    watchdog = threading.Timer(WALL_SECONDS, _kill_group, (child.pid,))
    watchdog.start()
    try:
        with suppress(BrokenPipeError):  # it died early: its exit status says why
            child.stdin.write(source)
            child.stdin.close()
        return child.stdout.read(_MARK + MAX_PNG_BYTES + 1)
    finally:
        watchdog.cancel()
        watchdog.join()
        # Before the child is waited for, so that its number cannot have become another's.
        _kill_group(child.pid)
        with suppress(BrokenPipeError), child:
            pass


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _checked(answer: bytes, status: int, max_side: int = MAX_SIDE) -> tuple[bytes, int, int]:
    mark, body = answer[:_MARK], answer[_MARK:]
    words = body[:300].decode(errors="replace")
    if mark == b"OUT\n":
        raise RendererMissing(f"the renderer could not be started: {words}")
    if mark == b"ERR\n" and b"nodes limit reached" in body:
        raise RenderingFailed("the drawing refers to itself, or stands for too many elements")
    if mark == b"ERR\n":
        raise RenderingFailed(f"the renderer refused the drawing: {words}")
    if mark != b"PNG\n":
        reason = _ENDS.get(-status, f"the renderer ended with status {status}")
        raise RenderingFailed(reason)
    if len(body) > MAX_PNG_BYTES:
        raise RenderingFailed("the picture is larger than 8 MB")
    return canonical(body, max_side)


@cache
def _package_folder(renderer: str) -> str:
    # The child sees neither site-packages nor the environment: it is told where the backend is.
    package = _IMPORTED.get(renderer) or PACKAGES[renderer]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise RendererMissing(f"the package {package} is not installed")
    return str(Path(spec.origin).parent.parent)


# --- a PNG taken apart and put together again, so that nothing but its pixels is kept -------------

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 6: 4}


class BadPng(RenderingFailed):
    """The bytes are not the plain PNG that a renderer writes."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the renderer returned no proper picture: {reason}")


def canonical(data: bytes, max_side: int) -> tuple[bytes, int, int]:
    """Check a PNG of 8-bit RGB or RGBA; return it with its pixels only, its width and its height.

    The bytes come from a process that may have been taken over by the drawing it rendered, and no
    image decoder should meet them in this one as they came: they are checked with zlib alone.

    Raises BadPng for anything else, a side longer than `max_side`, a wrong checksum, or pixel data
    of the wrong length. No time, text, profile or other chunk is kept.
    """
    chunks = _chunks(data)
    if chunks[0][0] != b"IHDR" or len(chunks[0][1]) != 13 or chunks[-1][1]:
        raise BadPng("it has no header or no end")
    header = chunks[0][1]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", header)
    if not (0 < width <= max_side and 0 < height <= max_side):
        raise BadPng(f"it is {width} by {height} pixels")
    if depth != 8 or colour not in _CHANNELS or any(rest):
        raise BadPng("it is not a plain 8-bit RGB or RGBA picture")
    pixels = b"".join(body for kind, body in chunks if kind == b"IDAT")
    inflater, expected = zlib.decompressobj(), height * (1 + width * _CHANNELS[colour])
    try:
        length = len(inflater.decompress(pixels, expected + 1))
    except zlib.error:
        raise BadPng("its pixels cannot be decompressed") from None
    if length != expected or not inflater.eof or inflater.unused_data:
        raise BadPng("it has too few or too many pixels")
    plain_chunks = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(*chunk) for chunk in plain_chunks), width, height


def _chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    if not data.startswith(SIGNATURE):
        raise BadPng("it has no PNG signature")
    chunks: list[tuple[bytes, bytes]] = []
    kind, position = b"", len(SIGNATURE)
    while kind != b"IEND" and position + 12 <= len(data):
        length = int.from_bytes(data[position : position + 4])
        chunk = data[position : position + 12 + length]
        kind, body = chunk[4:8], chunk[8:-4]
        if _chunk(kind, body) != chunk:
            raise BadPng("a checksum is wrong")
        chunks.append((kind, body))
        position += len(chunk)
    if kind != b"IEND" or position != len(data):
        raise BadPng("it is cut short or followed by something else")
    return chunks


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(kind + body)
    return len(body).to_bytes(4) + kind + body + checksum.to_bytes(4)

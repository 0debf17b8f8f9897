"""The child process that renders one drawing, started by ``voting.pictures.rendering``, or reads
one picture, for ``voting.pictures.images``.

``child.py RENDERER WIDTH HEIGHT FONTS [PACKAGES…]`` reads SVG, or with ``pillow`` a picture, from
standard input and writes ``PNG\\n`` and the picture to standard output, or the reason that there
is none: behind ``ERR\\n`` where it is the drawing, behind ``OUT\\n`` where the renderer could not
even begin.

It imports the renderer first and nothing else of the product, then gives up what rendering
does not need, and only then reads the drawing. Keep its imports few: they are half its time.
"""

from __future__ import annotations

import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Draw = Callable[[bytes, int, int], bytes]

MEMORY = 1 << 30
# What a picture may unpack to; it is told from its first bytes.
MOST_PIXELS = 40_000_000
CPU_SECONDS = 5
# Of the faces with a glyph that the asked family lacks, the first in this order draws it.
FONTS = (
    *("LiberationSans-Regular.ttf", "LiberationSerif-Regular.ttf", "LiberationMono-Regular.ttf"),
    *("LiberationSans-Bold.ttf", "LiberationSans-Italic.ttf", "LiberationSans-BoldItalic.ttf"),
    *("LiberationSerif-Bold.ttf", "LiberationSerif-Italic.ttf", "LiberationSerif-BoldItalic.ttf"),
    *("LiberationMono-Bold.ttf", "LiberationMono-Italic.ttf"),
    *("ComicNeue-Regular.otf", "ComicNeue-Bold.otf", "NotoColorEmoji-subset.ttf"),
    *("DejaVuSans-subset.ttf", "DroidSansFallback.ttf"),
    *("NotoSansThai-Regular.ttf", "NotoSansDevanagari-Regular.ttf", "NotoEmoji-subset.ttf"),
)
CAIRO_FALLBACKS = (
    *("DejaVu Sans", "Noto Emoji", "Droid Sans Fallback"),
    *("Noto Sans Thai", "Noto Sans Devanagari"),
)


def limit_resources() -> None:
    """Set the limits that this system has; a system without one still has the others."""
    # A second more of CPU until the kill: the first signal tells this limit from others.
    limits = {"AS": MEMORY, "CPU": CPU_SECONDS, "NOFILE": 64, "FSIZE": 0, "NPROC": 0, "CORE": 0}
    for name, soft in limits.items():
        hard = soft + (name == "CPU")
        try:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (soft, hard))
        except (AttributeError, ValueError, OSError):
            continue


def confine(readable: list[str]) -> None:
    """Let this process read below ``readable`` only and reach nothing, where Linux can.

    Landlock needs no privilege, unlike a network namespace. It knows no UDP; there, and where
    the kernel lacks it, screening stands alone: neither renderer opens a socket by itself.
    """
    if sys.platform != "linux":
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(444, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return
    # Every right to files of the first version; TCP since 4; abstract sockets, signals since 6.
    rights = [(1 << 13) - 1, 3, 3][: 1 + (version >= 4) + (version >= 6)]
    ruleset = (ctypes.c_uint64 * len(rights))(*rights)
    rules = libc.syscall(444, ruleset, ctypes.c_size_t(ctypes.sizeof(ruleset)), 0)
    for folder in readable:
        opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        # struct landlock_path_beneath_attr is packed: read file and list folder, then the folder.
        rule = (0b1100).to_bytes(8, sys.byteorder) + opened.to_bytes(4, sys.byteorder)
        libc.syscall(445, rules, 1, rule, 0)
        os.close(opened)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, without which the next call is refused
    if libc.syscall(446, rules, 0) != 0:
        raise OSError(ctypes.get_errno(), "the renderer could not be confined")
    os.close(rules)


def load_resvg(fonts: str) -> Draw:
    import resvg_py

    def draw(source: bytes, width: int, height: int) -> bytes:
        # Loading the fonts takes milliseconds: only where there is an element that needs them.
        files = [f"{fonts}/{name}" for name in FONTS] if b"text" in source else None
        return resvg_py.svg_to_bytes(
            svg_string=source.decode(),
            width=width,
            height=height,
            dpi=96,
            background="#ffffff",
            skip_system_fonts=True,
            font_files=files,
            font_family="Liberation Serif",
            serif_family="Liberation Serif",
            sans_serif_family="Liberation Sans",
            monospace_family="Liberation Mono",
            cursive_family="Comic Neue",
            fantasy_family="Comic Neue",
        )

    return draw


def load_cairosvg(fonts: str) -> Draw:
    os.environ["FONTCONFIG_FILE"] = f"{fonts}/fonts.conf"
    try:
        import cairosvg
    except OSError as error:
        raise RuntimeError(
            "cairosvg needs the system library libcairo, which is not installed"
        ) from error
    cairosvg.surface.cairo.Context = context_with_fallback(cairosvg.surface.cairo.Context)

    def draw(source: bytes, width: int, height: int) -> bytes:
        png: bytes = cairosvg.svg2png(
            bytestring=source, output_width=width, output_height=height, background_color="white"
        )
        return png

    return draw


def load_pillow(fonts: str) -> Draw:
    import io

    from PIL import Image, ImageOps, UnidentifiedImageError

    # Pillow warns of large pictures; here they are refused.
    Image.MAX_IMAGE_PIXELS = None
    formats = ("PNG", "JPEG", "GIF", "WEBP")
    Image.preinit()

    def draw(source: bytes, width: int, height: int) -> bytes:
        try:
            picture: Any = Image.open(io.BytesIO(source), formats=formats)
        except (UnidentifiedImageError, SyntaxError):
            raise ValueError("it is no PNG, JPEG, GIF or WebP picture") from None
        pixels = picture.width * picture.height
        if pixels > MOST_PIXELS:
            size = f"{picture.width} by {picture.height} pixels"
            raise ValueError(f"it has {size}; at most {MOST_PIXELS:,} are taken")
        # A JPEG is read at a fraction of its size where that is enough.
        picture.draft("RGB", (width, height))
        # The first of several: what moves cannot be compared.
        picture.seek(0)
        try:
            picture.load()
        except (OSError, EOFError, ValueError, SyntaxError) as error:
            raise ValueError(f"it is cut short or damaged ({error})") from None
        small = with_8_bits(ImageOps.exif_transpose(picture))
        small.thumbnail((width, height))
        if small.mode == "RGBA":
            paper = Image.new("RGBA", small.size, "white")
            small = Image.alpha_composite(paper, small)
        png = io.BytesIO()
        # A picture of its own, which has nothing of the other but its pixels.
        plain = Image.frombytes("RGB", small.size, small.convert("RGB").tobytes())
        plain.save(png, "PNG")
        return png.getvalue()

    return draw


def with_8_bits(picture: Any) -> Any:
    """Return a picture in RGB, or RGBA where it can be seen through, whatever it was in."""
    if picture.mode.startswith("I"):
        # Grey of 16 bits, of which a conversion would keep the lower ones.
        picture = picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    is_clear = picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info
    return picture.convert("RGBA" if is_clear else "RGB")


def context_with_fallback(context: Any) -> Any:
    """Return cairo's drawing context with a fallback for letters that the asked face lacks."""

    class Context(context):  # type: ignore[misc]
        face = ("sans-serif", 0, 0)

        def select_font_face(self, *face: Any) -> None:
            self.face = face
            super().select_font_face(*face)

        def text_extents(self, text: str) -> Any:
            measure = super().text_extents
            if not any(lacks(self, letter) for letter in text):
                return measure(text)
            parts = [with_covering_face(measure, self, letter) for letter in text]
            advance = sum(part[4] for part in parts)
            top, height = min(part[1] for part in parts), max(part[3] for part in parts)
            return parts[0][0], top, advance, height, advance, 0.0

        def text_path(self, text: str) -> None:
            with_covering_face(super().text_path, self, text)

        def show_text(self, text: str) -> None:
            with_covering_face(super().show_text, self, text)

    return Context


def with_covering_face(method: Callable[[str], Any], context: Any, letter: str) -> Any:
    face = context.face
    for family in CAIRO_FALLBACKS:
        if not lacks(context, letter):
            break
        context.select_font_face(family, *face[1:])
    answer = method(letter)
    context.select_font_face(*face)
    return answer


def lacks(context: Any, letter: str) -> bool:
    glyphs = context.get_scaled_font().text_to_glyphs(0, 0, letter, with_clusters=False)
    return bool(glyphs) and glyphs[0][0] == 0


def main(renderer: str, width: str, height: str, fonts: str, *packages: str) -> None:
    sys.path += packages
    mark = b"OUT\n"
    try:
        loaders = {"resvg": load_resvg, "cairosvg": load_cairosvg, "pillow": load_pillow}
        draw = loaders[renderer](fonts)
        limit_resources()
        # cairosvg and Pillow import some of their parts only when a drawing needs them.
        confine([fonts] if renderer == "resvg" else [fonts, *filter(os.path.isdir, sys.path)])
        mark = b"ERR\n"
        answer = b"PNG\n" + draw(sys.stdin.buffer.read(), int(width), int(height))
    except BaseException as error:  # noqa: BLE001  # a panic in Rust is no Exception
        reason = str(error) or type(error).__name__
        answer = mark + reason.encode(errors="replace")[:500]
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

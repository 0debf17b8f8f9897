"""Drawings made to hurt: each a function of the port to call and the file to leak."""

import base64
import struct
import zlib
from collections.abc import Callable

OPEN = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'width="200" height="200" viewBox="0 0 200 200">'
)
CLOSE = "</svg>"
FULL = '<rect width="200" height="200" fill="green"/>'


def drawing(body: str) -> str:
    return f"{OPEN}{body}{CLOSE}"


def png(width: int, height: int, rows: int | None = None, colour: bytes = b"\0\0\0") -> bytes:
    """An RGB picture; with few rows, one whose header promises more than it holds."""
    line = b"\0" + colour * width
    pack = zlib.compressobj(9)
    data = b"".join(pack.compress(line) for _ in range(height if rows is None else rows))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", data + pack.flush()),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def data_url(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def image(href: str) -> str:
    return f'<image width="200" height="200" href="{href}"/>'


def many(item: str, count: int) -> str:
    return "".join(item.format(n=number) for number in range(count))


def pattern_bomb() -> str:
    body = '<pattern id="p0" width="1" height="1"><rect width="1" height="1"/></pattern>'
    for level in range(1, 10):
        rects = f'<rect width="1" height="1" fill="url(#p{level - 1})"/>' * 10
        body += (
            f'<pattern id="p{level}" width=".01" height=".01" viewBox="0 0 1 1">{rects}</pattern>'
        )
    return drawing(body + '<rect width="200" height="200" fill="url(#p9)"/>')


def marker_bomb() -> str:
    dots = "M0 0" + "l1 1" * 3000
    body = '<marker id="m0"><rect width="1" height="1"/></marker>'
    for level in range(1, 6):
        body += f'<marker id="m{level}"><path d="{dots}" marker-mid="url(#m{level - 1})"/></marker>'
    return drawing(f'{body}<g style="marker:url(#m5)"><path d="{dots}"/></g>')


def mask_by_inheritance() -> str:
    mask = '<mask id="m"><rect width="200" height="200" fill="#fff"/></mask>'
    layers = '<g mask="inherit">' * 55
    return drawing(f'{mask}<g mask="url(#m)">{layers}{FULL * 900}{"</g>" * 56}')


def costly_filters() -> str:
    steps = '<feTurbulence baseFrequency=".9" numOctaves="8"/><feGaussianBlur stdDeviation="99"/>'
    body = f'<filter id="f" x="0" y="0" width="1" height="1">{steps * 20}</filter>'
    return drawing(body + '<rect width="200" height="200" filter="url(#f)"/>' * 100)


def nested_viewports() -> str:
    inner = '<svg width="1e6" height="1e6" viewBox="0 0 1e-6 1e-6" overflow="visible">' * 60
    return drawing(inner + FULL + "</svg>" * 60)


OWN: dict[str, Callable[[int, str], str]] = {
    "deep_mixture": lambda port, leak: drawing(
        "<g><a><switch><svg><symbol>" * 400 + "</symbol></svg></switch></a></g>" * 400
    ),
    "data_svg": lambda port, leak: drawing(
        image(data_url(drawing(image(leak)).encode(), "image/svg+xml"))
    ),
    "data_svg_as_png": lambda port, leak: drawing(image(data_url(drawing(FULL).encode()))),
    "data_text": lambda port, leak: drawing(image(data_url(drawing(FULL).encode(), "text/plain"))),
    "css_escape_url": lambda port, leak: drawing(
        f'<rect style="fill:u\\72l(http://127.0.0.1:{port}/a#b)" width="9" height="9"/>'
    ),
    "css_escape_import": lambda port, leak: drawing(
        f'<style>@\\69mport "http://127.0.0.1:{port}/a.css";</style>{FULL}'
    ),
    "css_comment_import": lambda port, leak: drawing(
        f'<style>@/**/import "http://127.0.0.1:{port}/a.css";</style>{FULL}'
    ),
    "css_comment_url": lambda port, leak: drawing(
        f'<rect fill="ur/**/l(http://127.0.0.1:{port}/a)" width="9" height="9"/>'
    ),
    "huge_path": lambda port, leak: drawing(
        f'<path stroke="#000" fill-rule="evenodd" d="M0 0{"L1 199 199 2" * 40_000}"/>'
    ),
    "many_dashes": lambda port, leak: drawing(
        f'<path stroke="#000" stroke-dasharray="{".001 " * 60_000}" d="M0 0L200 200"/>'
    ),
    "tiny_dashes": lambda port, leak: drawing(
        '<path stroke="#000" stroke-dasharray="1e-7" d="M0 0L1e9 1e9"/>' * 2000
    ),
    "pattern_bomb": lambda port, leak: pattern_bomb(),
    "marker_bomb": lambda port, leak: marker_bomb(),
    "gradient_cycle": lambda port, leak: drawing(
        '<linearGradient id="a" href="#b"/><linearGradient id="b" xlink:href="#a"/>'
        '<rect width="9" height="9" fill="url(#a)"/>'
    ),
    "pattern_cycle": lambda port, leak: drawing(
        '<pattern id="a" width="9" height="9"><rect width="9" height="9" fill="url(#a)"/></pattern>'
        '<rect width="99" height="99" fill="url(#a)"/>'
    ),
    "text_of_glyphs": lambda port, leak: drawing(
        f'<text y="20" font-size="3">{"Wq" * 240_000}</text>'
    ),
    "text_by_use": lambda port, leak: drawing(
        f'<text id="t" y="20">{"中" * 4000}</text>' + '<use href="#t"/>' * 3000
    ),
    "png_bomb": lambda port, leak: drawing(image(data_url(png(60_000, 60_000, rows=1000)))),
    "png_many_large": lambda port, leak: drawing(image(data_url(png(4000, 4000))) * 6),
    "png_short": lambda port, leak: drawing(image(data_url(png(4000, 4000, rows=1)))),
    "href_with_newline": lambda port, leak: drawing(image(f"ht&#10;tp://127.0.0.1:{port}/a.png")),
    "href_with_space": lambda port, leak: drawing(image(f" &#9;http://127.0.0.1:{port}/a.png")),
    "href_without_scheme": lambda port, leak: drawing(image(f"//127.0.0.1:{port}/a.png")),
    "href_file": lambda port, leak: drawing(image(f"file://{leak}")),
    "href_file_by_other_prefix": lambda port, leak: drawing(
        f'<image xmlns:x="http://www.w3.org/1999/xlink" x:href="{leak}" width="200" height="200"/>'
    ),
    "use_other_file": lambda port, leak: drawing(f'<use href="{leak}#a"/>'),
    "entity_in_attribute": lambda port, leak: (
        f'<!DOCTYPE svg [<!ENTITY e "{leak}">]>{drawing(image("&e;"))}'
    ),
    "html_link": lambda port, leak: drawing(
        '<link xmlns="http://www.w3.org/1999/xhtml" rel="stylesheet" '
        f'href="http://127.0.0.1:{port}/a.css"/>{FULL}'
    ),
    "set_href": lambda port, leak: drawing(
        f'<image width="9" height="9"><set attributeName="xlink:href" to="{leak}"/></image>'
    ),
    "script_by_prefix": lambda port, leak: drawing(
        '<x:ScRiPt xmlns:x="http://www.w3.org/2000/svg">fetch("/")</x:ScRiPt>'
    ),
    "xml_base": lambda port, leak: drawing(
        f'<g xml:base="http://127.0.0.1:{port}/"><use href="#a"/></g>'
    ),
    "style_sheet_instruction": lambda port, leak: (
        f'<?xml-stylesheet href="http://127.0.0.1:{port}/a.css"?>{drawing(FULL)}'
    ),
    "clip_paths": lambda port, leak: drawing(
        many('<clipPath id="c{n}" clip-path="url(#d{n})"><circle r="99"/></clipPath>', 1500)
        + many('<clipPath id="d{n}"><rect width="99" height="99"/></clipPath>', 1500)
        + many('<rect width="200" height="200" clip-path="url(#c{n})"/>', 1500)
    ),
    "fonts": lambda port, leak: drawing(
        many('<text font-family="F{n}" font-size="{n}e5" letter-spacing="1e9">中a</text>', 3000)
    ),
    "style_bomb": lambda port, leak: drawing(
        f"<style>{many('g g g g>*:not(.a{n}){{fill:red}}', 5000)}</style>{'<g>' * 5}"
        + '<rect width="9" height="9" class="a b c"/>' * 6000
        + "</g>" * 5
    ),
    "kernels": lambda port, leak: drawing(
        f'<filter id="f"><feConvolveMatrix order="99" kernelMatrix="{"1 " * 9801}"/>'
        '<feMorphology operator="dilate" radius="9999"/></filter>'
        '<rect width="200" height="200" filter="url(#f)"/>'
    ),
    "morphology": lambda port, leak: drawing(
        '<filter id="f"><feMorphology operator="dilate" radius="199"/></filter>'
        + '<rect width="200" height="200" filter="url(#f)"/>' * 50
    ),
    "scaled_blur": lambda port, leak: drawing(
        '<filter id="f"><feGaussianBlur stdDeviation="150"/></filter>'
        '<g transform="scale(1e6)"><rect width="200" height="200" filter="url(#f)"/></g>'
    ),
    "blur_shorthand": lambda port, leak: drawing(
        '<rect width="200" height="200" style="filter:blur(9e9px) drop-shadow(0 0 9e9px red)"/>'
    ),
    "mask_by_inheritance": lambda port, leak: mask_by_inheritance(),
    "mask_by_style_sheet": lambda port, leak: drawing(
        '<mask id="m"><rect width="200" height="200" fill="#fff"/></mask>'
        f"<style>g{{mask:url(#m)}}</style>{'<g>' * 50}{FULL * 500}{'</g>' * 50}"
    ),
    "costly_filters": lambda port, leak: costly_filters(),
    "nested_viewports": lambda port, leak: nested_viewports(),
    "numbers": lambda port, leak: drawing(
        '<rect x="-1e39" width="1e400" height="NaN" rx="1e38" stroke="red" stroke-width="1e38"/>'
        '<path transform="matrix(1e38 1e38 1e38 1e38 1e38 1e38)" d="M1e38 0A1e-38 1e38 0 0 0 9 9"/>'
    ),
    "view_box_of_dust": lambda port, leak: (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" viewBox="0 0 1e-30 1e-30">'
        f"{FULL}</svg>"
    ),
}

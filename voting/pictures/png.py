"""A PNG taken apart and put together again, so that nothing but its pixels is kept.

The bytes come from a process that may have been taken over by the drawing it rendered, and no
image decoder should meet them in this one as they came: they are checked with zlib alone.
"""

import struct
import zlib

from voting.pictures import RenderingFailed

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 6: 4}


class BadPng(RenderingFailed):
    """The bytes are not the plain PNG that a renderer writes."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the renderer returned no proper picture: {reason}")


def canonical(data: bytes, max_side: int) -> tuple[bytes, int, int]:
    """Check a PNG of 8-bit RGB or RGBA; return it with its pixels only, its width and its height.

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
    kept = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(*each) for each in kept), width, height


def _chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    if not data.startswith(SIGNATURE):
        raise BadPng("it has no PNG signature")
    found: list[tuple[bytes, bytes]] = []
    kind, position = b"", len(SIGNATURE)
    while kind != b"IEND" and position + 12 <= len(data):
        length = int.from_bytes(data[position : position + 4])
        whole = data[position : position + 12 + length]
        kind, body = whole[4:8], whole[8:-4]
        if _chunk(kind, body) != whole:
            raise BadPng("a checksum is wrong")
        found.append((kind, body))
        position += len(whole)
    if kind != b"IEND" or position != len(data):
        raise BadPng("it is cut short or followed by something else")
    return found


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(kind + body)
    return len(body).to_bytes(4) + kind + body + checksum.to_bytes(4)

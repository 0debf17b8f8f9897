"""Pictures embedded in a drawing: their kind and size, read from their headers only."""

from __future__ import annotations

import base64
import binascii
import re

from voting.screening.tree import UnsafeSvg

MAX_PIXELS = 16_000_000
MAX_SIDE = 16_384
_DATA = re.compile(r"data:image/(?:png|jpe?g|gif|webp)\s*;\s*base64\s*,", re.IGNORECASE)
# Frames of a JPEG that state its size: every SOFn but DHT (C4), JPG (C8) and DAC (CC).
_JPEG_SIZES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = {0x01, *range(0xD0, 0xD9)}


def pixels_of_data_url(url: str) -> int:
    """Return how many pixels the picture in a data url has.

    Parameters
    ----------
    url : str
        ``data:image/(png|jpeg|gif|webp);base64,…``

    Returns
    -------
    int
        Width times height, by the picture's own header.

    Raises
    ------
    UnsafeSvg
        Another type, broken base64, contents of another kind, or too many pixels.
    """
    head = _DATA.match(url)
    if head is None:
        raise UnsafeSvg(
            f"the drawing embeds {url[:40]}…; only PNG, JPEG, GIF and WebP in base64 are allowed"
        )
    try:
        data = base64.b64decode("".join(url[head.end() :].split()), validate=True)
    except (binascii.Error, ValueError):
        raise UnsafeSvg("the drawing embeds a picture whose base64 is broken") from None
    size = raster_size(data)
    if size is None:
        raise UnsafeSvg("the drawing embeds something that is not a PNG, JPEG, GIF or WebP")
    width, height = size
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise UnsafeSvg(f"the drawing embeds a picture of {width} by {height} pixels: too large")
    return width * height


def raster_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, WebP or JPEG, or None for anything else.

    Examples
    --------
    >>> raster_size(b"GIF89a" + bytes([2, 0, 3, 0]))
    (2, 3)
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if data[:6] in {b"GIF87a", b"GIF89a"} and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp_size(data)
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg_size(data)
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    if data[12:16] == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if data[12:16] == b"VP8 ":
        width, height = data[26:28], data[28:30]
        return int.from_bytes(width, "little") & 0x3FFF, int.from_bytes(height, "little") & 0x3FFF
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker in _JPEG_SIZES:
            height, width = data[position + 5 : position + 7], data[position + 7 : position + 9]
            return int.from_bytes(width), int.from_bytes(height)
        if marker == 0xFF:
            position += 1
        elif marker in _JPEG_BARE:
            position += 2
        else:
            position += 2 + int.from_bytes(data[position + 2 : position + 4])
    return None

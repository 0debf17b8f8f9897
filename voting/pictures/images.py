"""Pictures that are brought: read in the limited child process, and kept as pixels alone.

What comes is hostile. It never meets an image decoder in this process: the child reads it, and what
it returns is checked as a renderer's PNG is. No metadata, second frame or other chunk is left, and
the longer side is 1536 pixels at most.
"""

import importlib.metadata
import re
import struct
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from functools import cache
from typing import Final, NamedTuple

from django.core.files.storage import default_storage

from voting.pictures.rendering import RendererMissing, canonical, run_child
from voting.pictures.screening import RenderingFailed
from voting.pictures.store import store, stored_path

MAX_SIDE: Final = 1536
MAX_BYTES: Final = 32 << 20
# The output of a picture is its address: people and judges are shown the bytes that are there.
_ADDRESS: Final = re.compile("sha256:([0-9a-f]{64})")
_DATA: Final = re.compile(r"data:image/[\w.+-]{1,30};base64,", re.IGNORECASE)


class NoPicture(ValueError):
    """It is no picture that can be shown; the message says why."""


class Size(NamedTuple):
    width: int
    height: int


def reencoded(data: bytes) -> bytes:
    """Return a picture as PNG of its pixels alone, or raise NoPicture.

    Raises RendererMissing where the child cannot be started, whatever the picture.
    """
    if len(data) > MAX_BYTES:
        raise NoPicture(f"it has more than {MAX_BYTES >> 20} MB")
    try:
        png, *_ = run_child(data, "pillow", (MAX_SIDE, MAX_SIDE))
    except RendererMissing:
        raise
    except RenderingFailed as failed:
        # The child's limits are told as those of a drawing.
        reason = str(failed).removeprefix("the renderer refused the drawing: ")
        raise NoPicture(reason.replace("the drawing", "it")) from None
    return png


@cache
def reader_id() -> str:
    return f"pillow {importlib.metadata.version('pillow')}"


def data_in(text: str) -> bytes | None:
    """Return the bytes of a data URL; None where a text is none, NoPicture where it is broken.

    Examples
    --------
    >>> data_in("data:image/png;base64,iVBORw=="), data_in("cat.png")
    (b'\\x89PNG', None)
    """
    match = _DATA.match(text)
    if match is None:
        return None
    try:
        return b64decode("".join(text[match.end() :].split()), validate=True)
    except (NotBase64, ValueError):
        raise NoPicture("it is no base64") from None


def data_url(output: str) -> str:
    """Return the stored picture that an output names as a data URL; any other output as it is."""
    if not (png_sha256 := png_in(output)):
        return output
    with default_storage.open(stored_path(png_sha256)) as file:
        return f"data:image/png;base64,{b64encode(file.read()).decode()}"


def store_data_url(output: str) -> str:
    """Store the picture of a data URL that `data_url` made, byte for byte, and return its address.

    Raises NoPicture.
    """
    try:
        png, *_ = canonical(data_in(output) or b"", MAX_SIDE)
    except RenderingFailed as failed:
        raise NoPicture(str(failed)) from failed
    return address_of(store(png))


def address_of(png_sha256: str) -> str:
    return f"sha256:{png_sha256}"


def png_in(output: str) -> str:
    """Return the hash that an output of a picture names; nothing where it names none."""
    match = _ADDRESS.fullmatch(output)
    return match[1] if match else ""


def size_of(png_sha256: str) -> Size:
    """Return the size of a stored picture, from the header that every PNG begins with."""
    with default_storage.open(stored_path(png_sha256)) as file:
        return Size(*struct.unpack(">II", file.read(24)[16:]))

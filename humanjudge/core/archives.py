"""Zip files from elsewhere: how much is read of them is settled before anything is unpacked."""

from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile
from zlib import error as ZlibError  # noqa: N812

MOST_MEMBERS: Final = 1_000_000
# JSON Lines become 3 to 30 times smaller; a bomb becomes 1,000 times smaller.
MOST_RATIO: Final = 100
ALWAYS_ALLOWED: Final = 64_000_000
ENCRYPTED: Final = 1
# What reading a zip raises where it is damaged, cut, encrypted or packed in an unknown way; a
# RuntimeError is of a packing whose library is missing.
UNREADABLE: Final = (BadZipFile, ZlibError, EOFError, OSError, NotImplementedError, RuntimeError)


def check(archive: ZipFile) -> None:
    """Raise BadZipFile where an archive cannot be read, or unpacks to much more than it is.

    No member unpacks to more bytes than its header states: reading stops there.
    """
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise BadZipFile(f"it holds more than {MOST_MEMBERS:,} files")
    for member in members:
        if member.flag_bits & ENCRYPTED:
            raise BadZipFile(f"{member.filename!r} is encrypted")
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise BadZipFile(f"{member.filename!r} is compressed in an unknown way")
    packed, unpacked = (
        sum(getattr(member, size) for member in members) for size in ("compress_size", "file_size")
    )
    if unpacked > ALWAYS_ALLOWED + MOST_RATIO * packed:
        raise BadZipFile(f"it would unpack to {unpacked:,} bytes")


def read(archive: ZipFile, name: str, most: int) -> bytes:
    """Return a member of at most so many bytes; raises KeyError where there is none."""
    member = archive.getinfo(name)
    if member.file_size > most:
        raise BadZipFile(f"{name!r} has {member.file_size:,} bytes, the most is {most:,}")
    return archive.read(member)

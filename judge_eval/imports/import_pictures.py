"""Pictures that come with rows: as data URLs in a column, or in a zip beside the file of rows.

Nothing of a zip is unpacked onto the disk: a row names a member, and its bytes are read up to a
limit. A picture is read again in the limited child (`voting.pictures.images`) and kept in the
import's folder until it is written.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias
from zipfile import ZipFile, ZipInfo

from humanjudge.core.archives import ENCRYPTED, MOST_RATIO
from judge_eval.imports.containers import DAMAGED
from judge_eval.imports.import_report import ImportTooLarge
from judge_eval.imports.row_models import (
    OUTPUTS,
    ImportRow,
    InvalidField,
    Item,
    RowError,
    Values,
    column_of,
)
from voting.models import Inference
from voting.pictures.images import MAX_BYTES, NoPicture, address_of, data_in, reencoded

IMAGE: Final = Inference.Kind.IMAGE.value
Members: TypeAlias = Mapping[str, tuple[ZipFile, ZipInfo]]


class Pictures:
    """Puts the address of each picture in its place, and its PNG into a folder."""

    def __init__(self, folder: Path, members: Members, usual: str, most_bytes: int) -> None:
        self._folder, self._members, self._kind = folder, members, usual
        self._left = most_bytes
        # By the hash of what came: the same picture is read once.
        self._sources: dict[str, str] = {}

    def placed(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield rows with addresses for pictures, and an error for each that is none."""
        for item in items:
            if not isinstance(item, ImportRow):
                yield item
                continue
            # A row may leave out what those before it have said.
            self._kind = item.kind or self._kind
            try:
                yield self._with_addresses(item) if self._kind == IMAGE else item
            except InvalidField as error:
                yield RowError(item.file, item.line, error.field, error.reason)

    def _with_addresses(self, row: ImportRow) -> ImportRow:
        addresses: Values = {}
        for side in OUTPUTS:
            if text := getattr(row, side):
                try:
                    addresses[side] = address_of(self._png(text.strip()))
                except NoPicture as error:
                    raise InvalidField(column_of(row, side), f"no picture: {error}") from error
        return replace(row, kind="image", **addresses) if addresses else row

    def _png(self, text: str) -> str:
        data = data_in(text)
        if data is None:
            data = self._member(text)
        came = sha256(data).hexdigest()
        if came not in self._sources:
            png = reencoded(data)
            self._sources[came] = sha256(png).hexdigest()
            self._folder.mkdir(exist_ok=True)
            (self._folder / self._sources[came]).write_bytes(png)
        return self._sources[came]

    def _member(self, name: str) -> bytes:
        if name not in self._members:
            place = "in the zip" if self._members else "beside it, as there is no zip"
            raise NoPicture(f"{name[:100]!r} is neither a data URL nor a file {place}")
        archive, member = self._members[name]
        if member.flag_bits & ENCRYPTED:
            raise NoPicture(f"{name!r} is encrypted")
        # Pictures are compressed already: what shrinks so much more is made to fill a memory.
        if member.file_size > MOST_RATIO * max(member.compress_size, 1_000):
            raise NoPicture(f"{name!r} is compressed more than any picture")
        try:
            with archive.open(member) as file:
                data = file.read(MAX_BYTES + 1)
        except DAMAGED as error:
            raise NoPicture(f"{name!r} cannot be unpacked: {error}") from error
        self._left -= len(data)
        if self._left < 0:
            raise ImportTooLarge("The pictures are more than an import may unpack.")
        return data

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ReadableStaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Compressed files under names with a hash, which everybody on the machine may read.

    They are no secret, and often one user collects them and another one serves them. The settings
    for pictures and uploads would make them private, and so would a strict umask.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(
            *args, file_permissions_mode=0o644, directory_permissions_mode=0o755, **options
        )

    def compress_files(self, paths: set[str]) -> Iterator[tuple[str, str]]:
        for name, compressed in super().compress_files(paths):
            Path(self.path(compressed)).chmod(0o644)
            yield name, compressed

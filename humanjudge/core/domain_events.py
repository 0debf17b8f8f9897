"""What happens in a project and may be told elsewhere; the setting `ANNOUNCE` names who tells it.

Whoever announces does so in the transaction that makes it true, so that what is rolled back is
never told, and what is committed always is.
"""

from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

Data: TypeAlias = dict[str, str | int | float | None]


@dataclass(frozen=True)
class Announcement:
    """One thing that has happened, without texts of outputs, comments or names of voters."""

    event: str
    project: UUID
    # What has the same key is the same thing, and is told once.
    key: str
    # A sentence for people, and the page that shows more, without the host.
    text: str
    page: str
    data: Data = field(default_factory=dict)
    # The key of what does not hold any more: it may become true, and be told, once more.
    ends: str = ""


def announce(*happened: Announcement) -> None:
    if happened:
        import_string(settings.ANNOUNCE)(happened)

"""Groups of voters, as the ledger tells them: so figures of a group can be computed anew from it.

A `parameters` entry with the key `groups` says to which group voters belong from there on, by their
pseudonyms; an empty name takes a voter out of every group::

    {"groups": {"3f0a9c1e5b7d2468": "nurses", "9b1c…": ""}}

The last that an entry says of a voter holds for all the voter's votes, those before it too: who was
put into the wrong group was never of that group. What was frozen before stays as it was, as the
entries up to its head say what held then.
"""

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field, TypeAdapter

KEY: Final = "groups"
LONGEST_GROUP: Final = 60


def group_name(text: str) -> str:
    """Return the name of a group as it is kept; raises ValueError for what is none.

    Examples
    --------
    >>> group_name("  night   nurses "), group_name("")
    ('night nurses', '')
    """
    name = unicodedata.normalize("NFC", " ".join(text.split()))
    if not name.isprintable():
        raise ValueError("A group's name is made of visible characters.")
    if len(name) > LONGEST_GROUP:
        raise ValueError(f"A group's name has at most {LONGEST_GROUP} characters.")
    return name


def _as_kept(name: str) -> str:
    if group_name(name) != name:
        raise ValueError("is not written as a group's name is kept")
    return name


_Pseudonym = Annotated[str, Field(min_length=1, max_length=16)]
_GROUPS: Final = TypeAdapter(dict[_Pseudonym, Annotated[str, AfterValidator(_as_kept)]])


def groups_in(payload: object) -> dict[str, str]:
    """Return the groups that a `parameters` entry states, by pseudonym; nothing if it states none.

    Raises ValueError where it makes no sense.

    Examples
    --------
    >>> groups_in({"groups": {"ab12": "nurses"}}), groups_in({"votes_wanted": {}})
    ({'ab12': 'nurses'}, {})
    """
    said = payload.get(KEY) if isinstance(payload, Mapping) else None
    return {} if said is None else _GROUPS.validate_python(said, strict=True)

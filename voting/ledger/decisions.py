"""What curators decide, and what of it stands.

A `decision` entry is about an item (one about a voter would name the voter instead). Its payload
says what was decided, by which pseudonym, and the salted hash of why; the reason itself stands
beside the chain, as comments do. Of the decisions that nobody reversed the latest one stands; a
note decides nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

Action: TypeAlias = Literal["exclude", "keep", "another_round", "note", "reverse"]
# What settles whether the votes on an item count; the others only add to it.
SETTLING: Final = ("exclude", "keep", "another_round")
# Why an excluded item is not handed out.
EXCLUDED: Final = "A curator excluded it from the scores."

MOST_WANTED: Final = 32_767

_Wanted: TypeAlias = Annotated[int, Field(ge=0, le=MOST_WANTED)]


class Decision(BaseModel):
    """The payload of a `decision` entry."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    action: Action
    by: Annotated[str, Field(max_length=16)]
    why: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    # Another round: the votes that the item wants from here on, and those it wanted before.
    votes_wanted: _Wanted | None = None
    instead_of: _Wanted | None = None

    @property
    def payload(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class Made(NamedTuple):
    """A decision as the ledger holds it: about what, what it says, and which entry reversed it."""

    subject: UUID | None
    payload: Any
    reversed_by: int | None


class Standing(NamedTuple):
    """What stands of all decisions about one item; `votes_wanted` is None where none changed it."""

    action: str = ""
    votes_wanted: int | None = None

    @property
    def is_excluded(self) -> bool:
        return self.action == "exclude"


def standing(decisions: Iterable[Made]) -> dict[UUID, Standing]:
    """Fold decisions, in the order of the ledger, into what stands for each subject.

    Examples
    --------
    >>> pair = UUID(int=1)
    >>> more = {"action": "another_round", "votes_wanted": 5, "instead_of": 2}
    >>> standing([Made(pair, more, None), Made(pair, {"action": "exclude"}, None)])[pair]
    Standing(action='exclude', votes_wanted=5)
    >>> standing([Made(pair, more, 9), Made(pair, {"action": "note"}, None)])[pair]
    Standing(action='', votes_wanted=2)
    """
    found: dict[UUID, Standing] = {}
    for subject, payload, reversed_by in decisions:
        if subject is not None and isinstance(payload, Mapping):
            before = found.get(subject, Standing())
            found[subject] = _after(before, payload, is_reversed=reversed_by is not None)
    return found


def _after(before: Standing, payload: Mapping[str, Any], *, is_reversed: bool) -> Standing:
    action, wanted = before
    if payload.get("action") == "another_round":
        wanted = payload["instead_of"] if wanted is None else wanted
        wanted = wanted if is_reversed else payload["votes_wanted"]
    if payload.get("action") in SETTLING and not is_reversed:
        action = payload["action"]
    return Standing(action, wanted)

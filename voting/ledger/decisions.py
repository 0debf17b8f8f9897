"""What curators and leads decide, as entries of the ledger hold it, and what of it stands.

A `decision` entry is about an item, or about a voter or a judge of a queue. Its payload names the
judge, and says what was decided, by which pseudonym, and the salted hash of why; the reason itself
stands beside the chain, as comments do. Of the decisions that nobody reversed the latest one
stands; a note decides nothing, and neither does sending an item back to one of its voters, whom the
entry names.

A `parameters` entry of a queue may change how many votes its items want, from that entry on::

    {"votes_wanted": {
        "items": {"1": [ITEM, ITEM, …], "3": [ITEM, …]},
        "votes_per_item": 1, "overlap_share": "0.2", "overlap_votes": 3}}

`items` lists, by how many votes they want now, all items that the change is about, those too that
are not open yet: for these it holds over what a `verdicts` entry says of votes wanted, whichever
of the two comes first. The other three are the queue's rules for items that are added later; where
only some items change they are left out. What an item wants is the last such number (or the one
that it came with), and more where another round that nobody reversed asks for more.

One more of a queue fixes the margin within which two judges are practically the same, in points of
agreement per vote, as a share::

    {"margin": "0.1"}

A `parameters` entry of a project may say to which groups voters belong, by their pseudonyms; an
empty name takes a voter out of every group::

    {"groups": {"3f0a9c1e5b7d2468": "nurses", "9b1c…": ""}}

The last that an entry says of a voter holds for all the voter's votes, those before it too: who was
put into the wrong group was never of that group. What was frozen before stays as it was, as the
entries up to its ledger head say what held then.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    TypeAdapter,
)

from humanjudge.core.strict_json import JsonObject

Action: TypeAlias = Literal["exclude", "keep", "another_round", "note", "send_back", "reverse"]
# What settles whether the votes on an item count; the others only add to it.
SETTLING: Final = ("exclude", "keep", "another_round")
# Why an excluded item is not handed out.
EXCLUDED: Final = "A curator excluded it from the scores."

MOST_REQUIRED: Final = 32_767
# The key of a `parameters` entry that changes them.
VOTES_WANTED: Final = "votes_wanted"
# Entries of `parameters` before and behind the votes that an import brings: these came all at once,
# whatever their order.
IMPORT_BEGINS: Final = {"import": "begins"}
IMPORT_ENDS: Final = {"import": "ends"}

_MARGIN: Final = TypeAdapter(Annotated[float, Field(ge=0, le=0.5)])
_Number: TypeAlias = Annotated[int, Field(ge=0, le=MOST_REQUIRED)]


class Decision(BaseModel):
    """The payload of a `decision` entry."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    action: Action
    by: Annotated[str, Field(max_length=16)]
    why: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    # Whom it leaves out, or lets count again, where it is about a judge of its queue.
    judge: Annotated[str, Field(max_length=36)] | None = None
    # Another round: the votes that the item wants from here on, and those it wanted before.
    votes_wanted: _Number | None = None
    instead_of: _Number | None = None

    @property
    def payload(self) -> dict[str, JsonValue]:
        return self.model_dump(exclude_none=True)


class _VotesRequired(BaseModel):
    items: dict[Annotated[int, Field(ge=1, le=MOST_REQUIRED)], list[UUID]]


class Rules(BaseModel):
    """How many votes a queue asks for on items that are added to it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    votes_per_item: Annotated[int, Field(ge=1, le=MOST_REQUIRED)]
    # The chain takes no floats, so it is a text there.
    overlap_share: Annotated[float, Field(ge=0, le=1), PlainSerializer(repr)]
    overlap_votes: Annotated[int, Field(ge=1, le=MOST_REQUIRED)]


def payload_of(required: Mapping[UUID, int], rules: Rules | None = None) -> dict[str, JsonValue]:
    """Return what a `parameters` entry says of the votes that items want from there on.

    >>> payload_of({UUID(int=1): 3}, Rules(votes_per_item=3, overlap_share=0, overlap_votes=5))
    ... # doctest: +NORMALIZE_WHITESPACE
    {'votes_wanted': {'items': {'3': ['00000000-0000-0000-0000-000000000001']},
     'votes_per_item': 3, 'overlap_share': '0.0', 'overlap_votes': 5}}
    """
    items: dict[str, JsonValue] = {
        str(votes): [str(item) for item in required if required[item] == votes]
        for votes in dict.fromkeys(required.values())
    }
    return {VOTES_WANTED: {"items": items, **(rules.model_dump() if rules else {})}}


def votes_required_in(payload: object) -> dict[UUID, int]:
    """Return how many votes each item wants by a `parameters` entry; nothing if it is about others.

    Raises ValueError where it makes no sense.

    >>> votes_required_in(payload_of({UUID(int=1): 3})), votes_required_in({"quality": {}})
    ({UUID('00000000-0000-0000-0000-000000000001'): 3}, {})
    """
    change = payload.get(VOTES_WANTED) if isinstance(payload, Mapping) else None
    if not isinstance(change, Mapping):
        return {}
    items = _VotesRequired.model_validate(change).items
    return {item: votes for votes, ids in items.items() for item in ids}


def judges_left_out(decisions: Iterable[tuple[Any, int | None]]) -> set[str]:
    """Return the judges that decisions leave out; each has its payload and what reversed it.

    >>> judges_left_out(
    ...     [
    ...         ({"action": "exclude", "judge": "a"}, None),
    ...         ({"action": "exclude", "judge": "b"}, 9),
    ...         ({"action": "exclude"}, None),
    ...     ]
    ... )
    {'a'}
    """
    standing_payloads = (payload for payload, reversed_by in decisions if reversed_by is None)
    return {
        payload["judge"]
        for payload in standing_payloads
        if isinstance(payload, dict) and payload.get("judge") and payload["action"] == "exclude"
    }


# What a decision is about: an item, or a queue and one of its voters.
Subject: TypeAlias = UUID | tuple[UUID, UUID]


class LedgerDecision(NamedTuple):
    """A decision as the ledger holds it: about what, what it says, and which entry reversed it."""

    subject: Subject | None
    payload: Any
    reversed_by: int | None


class DecisionState(NamedTuple):
    """What stands of all decisions about one thing.

    `first` is how many votes an item wants without another round, None where nothing says so.
    """

    action: str = ""
    first: int | None = None
    another_round: int = 0

    @property
    def is_excluded(self) -> bool:
        return self.action == "exclude"

    @property
    def votes_wanted(self) -> int | None:
        return None if self.first is None else max(self.first, self.another_round)


def subject_of(item: UUID | None, queue: UUID | None, voter: UUID | None) -> Subject | None:
    """Return what a decision with these columns is about; None where it names nothing."""
    return item or ((queue, voter) if queue and voter else None)


def fold_decisions(decisions: Iterable[LedgerDecision]) -> dict[Subject, DecisionState]:
    """Fold decisions, in the order of the ledger, into what stands for each subject.

    >>> pair = UUID(int=1)
    >>> more = {"action": "another_round", "votes_wanted": 5, "instead_of": 2}
    >>> decisions = [(pair, more, None), (pair, {"action": "exclude"}, None)]
    >>> fold_decisions([LedgerDecision(*decision) for decision in decisions])[pair]
    DecisionState(action='exclude', first=2, another_round=5)
    >>> decisions = [(pair, more, 9), (pair, {"action": "note"}, None)]
    >>> fold_decisions([LedgerDecision(*decision) for decision in decisions])[pair].votes_wanted
    2
    """
    stands: dict[Subject, DecisionState] = {}
    for subject, payload, reversed_by in decisions:
        if subject is not None and isinstance(payload, dict):
            before = stands.get(subject, DecisionState())
            stands[subject] = _next_state(before, payload, is_reversed=reversed_by is not None)
    return stands


def _next_state(before: DecisionState, payload: JsonObject, *, is_reversed: bool) -> DecisionState:
    if payload.get("action") == "another_round":
        first = payload["instead_of"] if before.first is None else before.first
        before = before._replace(first=first)
    if is_reversed or payload.get("action") not in SETTLING:
        return before
    if payload["action"] == "another_round":
        before = before._replace(another_round=payload["votes_wanted"])
    return before._replace(action=payload["action"])


# --- groups of voters ----------------------------------------------------------------------------

# The key of a `parameters` entry that fixes the margin of a queue.
MARGIN: Final = "margin"


def margin_in(payload: object) -> float | None:
    """Return the margin that a `parameters` entry fixes, None where it is about something else.

    Raises ValueError where it makes no sense.

    >>> margin_in({"margin": "0.03"}), margin_in({"quality": {}})
    (0.03, None)
    """
    margin = payload.get(MARGIN) if isinstance(payload, Mapping) else None
    return None if margin is None else _MARGIN.validate_python(margin)


# The key of a `parameters` entry that puts voters into groups.
GROUPS: Final = "groups"
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


def _check_group_name(name: str) -> str:
    if group_name(name) != name:
        raise ValueError("is not written as a group's name is kept")
    return name


_Pseudonym = Annotated[str, Field(min_length=1, max_length=16)]
_GROUP_OF_VOTER: Final = TypeAdapter(
    dict[_Pseudonym, Annotated[str, AfterValidator(_check_group_name)]]
)


def groups_in(payload: object) -> dict[str, str]:
    """Return the groups that a `parameters` entry names, by pseudonym; nothing if it names none.

    Raises ValueError where it makes no sense.

    Examples
    --------
    >>> groups_in({"groups": {"ab12": "nurses"}}), groups_in({"votes_wanted": {}})
    ({'ab12': 'nurses'}, {})
    """
    groups = payload.get(GROUPS) if isinstance(payload, Mapping) else None
    return {} if groups is None else _GROUP_OF_VOTER.validate_python(groups, strict=True)

"""What rows say of one pair, put together, and what they say against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from itertools import groupby
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from pydantic import TypeAdapter

from judge_eval.exchange.rows import OF_A_PAIR, OUTPUTS, JudgeOrder, Label, PairPart, Row, RowError
from judge_eval.prompts.output import with_namespaces

# Stands for an output that is stored and was not needed yet.
UNREAD: Final = object()
# A chunk is held and written at once: so many rows, or fewer where their texts are long.
MOST_ROWS: Final = 500
MOST_TEXT: Final = 4_000_000
_SHOWN: Final = 60
_ROW: Final = TypeAdapter(Row)
AnyItem = TypeVar("AnyItem")


@dataclass(slots=True)
class PairDraft:
    """What is known of one pair: what is stored, and what rows have added.

    Attributes
    ----------
    known : dict
        By the names of `OF_A_PAIR`; what nobody has said is not there.
    added : set of str
        Fields that are not stored yet.
    position : int, optional
        Its place in the run; None for a pair that is not stored yet.
    is_complete : bool
        A pair that was not imported: rows may name it, and add nothing to it.
    is_open : bool
        It was opened for voting.
    changes : dict
        What was changed in an output so that it can be drawn, in words, by the output's field.
    """

    name: str
    pk: UUID
    a: UUID
    b: UUID
    known: dict[str, Any] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    position: int | None = None
    is_complete: bool = False
    is_open: bool = False
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, row: Row) -> RowError | None:
        """Add what a row says of the pair, all of it or, where it contradicts, nothing.

        Examples
        --------
        >>> from judge_eval.exchange.rows import PairPart
        >>> draft = PairDraft("7", *[UUID(int=0)] * 3, known={"output_a": "cat"})
        >>> str(draft.take(Row("f", 2, PairPart("7", output_a="dog", output_b="owl"))))
        "f:2: output_a: 'dog', but pair '7' has 'cat'"
        >>> draft.take(Row("f", 3, PairPart("7", output_b="owl"))), draft.added
        (None, {'output_b'})
        """
        said = {name: value for name in OF_A_PAIR if _is_said(value := getattr(row.pair, name))}
        changes = _mend(said) if said.get("kind", self.known.get("kind")) == "svg" else {}
        for name, value in said.items():
            if self._contradicts(name, value):
                why = f"{shown(value)}, but pair {self.name!r} has {shown(self.known[name])}"
                return RowError(row.file, row.line, name, why)
        if not self.is_complete:
            self.added |= {name for name in said if self.known.get(name) != said[name]}
            self.known |= said
            self.changes |= changes
        return None

    @property
    def lacks_output(self) -> bool:
        return any(field not in self.known for field in OUTPUTS)

    def _contradicts(self, name: str, value: object) -> bool:
        if name == "kind" and not {"output_a", "output_b"} & self.known.keys():
            return False  # a guess until there is an output of some kind
        return name in self.known and self.known[name] != value


def _mend(said: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Let drawings have what drawings that were generated here are given, too."""
    changes = {}
    for name in {"output_a", "output_b"} & said.keys():
        said[name], changed = astuple(with_namespaces(said[name]))
        if changed:
            changes[name] = changed
    return changes


def _is_said(value: object) -> bool:
    return value is not None and value != ()


def shown(value: object) -> str:
    """Return a value as an error quotes it.

    Examples
    --------
    >>> shown("A"), len(shown("A" * 1000))
    ("'A'", 62)
    """
    if isinstance(value, tuple):
        value = "; ".join(value)
    text = repr(value)
    return text if len(text) <= _SHOWN + 2 else f"{text[:_SHOWN]}…{text[-1]}"


def write_statement(row: Row, pair: UUID) -> str:
    """Return a row's statement on a pair that is known, as text: the pair is named and no more.

    Examples
    --------
    >>> from judge_eval.exchange.rows import PairPart, VotePart
    >>> row = Row("f", 1, PairPart("7", prompt="Why?"), vote=VotePart("ann", "A"))
    >>> again, pair = read_statement(write_statement(row, UUID(int=5)))
    >>> again.vote == row.vote, again.pair, pair.int
    (True, PairPart(id='7', ...), 5)
    """
    bare = replace(row, pair=PairPart(row.pair.id))
    return pair.hex + _ROW.dump_json(bare, exclude_defaults=True).decode()


def read_statement(text: str) -> tuple[Row, UUID]:
    return _ROW.validate_json(text[32:]), UUID(hex=text[:32])


def json_labels(labels: Mapping[str, Label]) -> dict[str, Any] | None:
    """Return the answers to further tasks as JSON holds them, None where there are none."""
    plain = {task: list(said) if isinstance(said, tuple) else said for task, said in labels.items()}
    return plain or None


def first_difference(
    said: Mapping[str, Any], stored: Mapping[str, Any]
) -> tuple[str, Any, Any] | None:
    """Return the first field that is said otherwise than it is stored, and both values.

    What is not said (None) contradicts nothing.

    Examples
    --------
    >>> first_difference({"vote": "A", "comment": None}, {"vote": "B", "comment": "good"})
    ('vote', 'A', 'B')
    """
    for name, value in said.items():
        if value is not None and value != stored[name]:
            return name, value, stored[name]
    return None


def text_of(row: Row) -> int:
    """Return how many characters of free text a row holds.

    Examples
    --------
    >>> from judge_eval.exchange.rows import PairPart, VotePart
    >>> text_of(Row("f", 1, PairPart("7", output_a="cat"), vote=VotePart("ann", "A", comment="ok")))
    5
    """
    pair, verdict, vote = row.pair, row.verdict, row.vote
    texts = [pair.prompt, pair.output_a, pair.output_b]
    texts += [verdict.feedback, verdict.error] if verdict else []
    texts += [vote.comment] if vote else []
    return sum(len(text) for text in texts if text)


def chunks(items: Iterable[Row | JudgeOrder]) -> Iterator[list[Row] | JudgeOrder]:
    """Group rows so that a group and what is made of it stay small; what parts them comes between.

    Examples
    --------
    >>> from judge_eval.exchange.rows import PairPart
    >>> [row, order] = Row("f", 1, PairPart("7")), JudgeOrder("f", ())
    >>> [type(found).__name__ for found in chunks([row, row, order, row])]
    ['list', 'JudgeOrder', 'list']
    """
    for is_order, alike in groupby(items, key=lambda item: isinstance(item, JudgeOrder)):
        if is_order:
            yield from cast(Iterator[JudgeOrder], alike)
        else:
            yield from pieces(cast(Iterator[Row], alike), text_of, MOST_ROWS, MOST_TEXT)


def pieces(
    items: Iterable[AnyItem], text_of: Callable[[AnyItem], int], most: int, most_text: int
) -> Iterator[list[AnyItem]]:
    """Group items; a group ends with the one that makes it too many, or their text too long.

    Examples
    --------
    >>> list(pieces(["a", "b", "c", "long", "d"], len, 2, 3))
    [['a', 'b'], ['c', 'long'], ['d']]
    """
    piece: list[AnyItem] = []
    size = 0
    for item in items:
        piece.append(item)
        size += text_of(item)
        if len(piece) == most or size > most_text:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece

"""What rows say, put together: of each pair or item what it is, and who said what of it, once."""

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import md5
from typing import Final, TypeVar
from uuid import UUID, uuid4

from judge_eval.imports.question import Columns
from judge_eval.imports.row_models import (
    MAIN,
    OF_A_PAIR,
    OUTPUTS,
    ImportRow,
    InvalidField,
    ShapeName,
    column_of,
    exchanged,
)
from judge_eval.judging.prompts.orders import combine, swap
from judge_eval.judging.prompts.parse import ParsedVerdict, with_namespaces
from voting.items.choices import WRONG

_NANO: Final = 10**9
_QUOTED: Final = 60
_MD5_LENGTH: Final = 32
AnyValue = TypeVar("AnyValue")


def mark(text: str) -> str:
    """Return what stands for a long text: its MD5, as databases compute it, and its beginning."""
    return md5(text.encode(), usedforsecurity=False).hexdigest() + text[: _QUOTED + 1]


def quote(value: object) -> str:
    """Return a value as an error quotes it.

    Examples
    --------
    >>> quote("A"), quote(["x", "y"]), len(quote("A" * 1000))
    ("'A'", "'x; y'", 62)
    """
    text = repr("; ".join(value) if isinstance(value, list) else value)
    return text if len(text) <= _QUOTED + 2 else f"{text[:_QUOTED]}…{text[-1]}"


@dataclass(slots=True)
class PairDraft:
    """What is known of one pair or single item: what is stored, and what rows have added.

    `known` goes by the names of `OF_A_PAIR`, with the `mark` of an output, and `metadata`; what
    nobody has stated is not there. What is not stored yet has no `position`. What was not imported
    `is_fixed`: rows may name it, and add nothing to it. `changes` are those of drawings, in words.
    """

    name: str
    facts: Columns
    pk: UUID = field(default_factory=uuid4)
    a: UUID = field(default_factory=uuid4)
    b: UUID = field(default_factory=uuid4)
    position: int | None = None
    is_fixed: bool = False
    is_changed: bool = False
    noun: ShapeName = "pair"
    generated_at: datetime | None = None
    votes_wanted: int | None = None
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, row: ImportRow) -> tuple[ImportRow, dict[str, str]]:
        """Add what a row states; return it as it is stored, and the texts of outputs that are new.

        A row whose A and B are exchanged is turned. Raises InvalidField where it contradicts; then
        nothing of it is added.
        """
        stated_facts, texts, changes = self._stated_facts(row)
        if self.noun == "pair" and self._contradicted_fact(stated_facts):
            other_way = _exchanged(stated_facts)
            sides = [name for name in other_way if exchanged(name) != name]
            has_same_side = any(self.facts.get(name) == other_way[name] for name in sides)
            if has_same_side and not self._contradicted_fact(other_way):
                row, stated_facts = row.turned(), other_way
                texts, changes = _exchanged(texts), _exchanged(changes)
        if name := self._contradicted_fact(stated_facts):
            stated_fact, stored_fact = texts.get(name, stated_facts[name]), self.facts[name]
            stored_fact = stored_fact[_MD5_LENGTH:] if name in texts else stored_fact
            reason = f"{quote(stated_fact)}, but {self.noun} {self.name!r} has {quote(stored_fact)}"
            raise InvalidField(column_of(row, name), reason)
        if self.is_fixed:
            return row, {}
        new = {name: text for name, text in texts.items() if name not in self.facts}
        self.is_changed |= any(
            self.facts.get(name) != value for name, value in stated_facts.items()
        )
        self.facts |= stated_facts
        self.changes |= changes
        self.generated_at = self.generated_at or row.generated_at
        if self.votes_wanted is None:
            self.votes_wanted = row.votes_wanted
        return row, new

    def _stated_facts(
        self, row: ImportRow
    ) -> tuple[Columns, dict[str, str], dict[str, tuple[str, ...]]]:
        """Return what a row states, by field; its outputs; and what was changed in drawings."""
        names = (*OF_A_PAIR, "metadata")
        facts = {name: value for name in names if (value := getattr(row, name))}
        facts |= {name: list(value) for name, value in facts.items() if isinstance(value, tuple)}
        texts: dict[str, str] = {}
        changes: dict[str, tuple[str, ...]] = {}
        for name in OUTPUTS:
            text = getattr(row, name)
            if text is None:
                continue
            if facts.get("kind", self.facts.get("kind")) == "svg":
                # Drawings get what drawings that are generated here are given, too.
                drawing = with_namespaces(text)
                text = drawing.output
                changes |= {name: drawing.changes} if drawing.changes else {}
            texts[name], facts[name] = text, mark(text)
        return facts, texts, changes

    def _contradicted_fact(self, stated_facts: Columns) -> str | None:
        for name, value in stated_facts.items():
            is_guess = name == "kind" and not self.facts.keys() & {*OUTPUTS}
            if not is_guess and self.facts.get(name, value) != value:
                return name
        return None

    @property
    def outputs(self) -> dict[str, UUID]:
        return {"a": self.a, "b": self.b} if self.noun == "pair" else {"a": self.a}

    @property
    def lacks_output(self) -> bool:
        return any(f"output_{side}" not in self.facts for side in self.outputs)


def _exchanged(values: dict[str, AnyValue]) -> dict[str, AnyValue]:
    return {exchanged(name): value for name, value in values.items()}


# --- verdicts and votes ---------------------------------------------------------------------------


def verdict_of(row: ImportRow, rule: str, labels: Columns | None) -> Columns:
    """Return the columns of a row's verdict, but for its judge and its item; raises InvalidField.

    What is said of a single item is in the labels.
    """
    winner: str = row.verdict or ""
    consistent, picks, first_picks = row.consistent, list[str](), None
    if row.pick_ab and row.pick_ba:
        stored_pick, swapped_pick = ParsedVerdict(row.pick_ab), ParsedVerdict(row.pick_ba)
        verdict = combine(stored_pick, swap(swapped_pick), is_decided_by_one=rule == "decided")
        winner, consistent, first_picks = verdict.winner, verdict.consistent, verdict.first_picks
        picks = list(verdict.picks)
        # Whatever they count as, a source calls two orders that disagree a tie.
        if row.verdict not in (None, winner):
            reason = f"{row.verdict}, but its picks in both orders make it {winner}"
            raise InvalidField("verdict", reason)
    if consistent is False and winner != "tie" and rule != "decided":
        raise InvalidField("verdict", f"two orders that disagree are a tie, not {winner}")
    cost_nano = None if row.cost_usd is None else round(row.cost_usd * _NANO)
    return {
        "state": "failed" if row.error else "done",
        # Only who was asked in both orders can be consistent or not.
        "order": "AB" if consistent is None else "both",
        "winner": by_rule(winner, consistent, rule),
        "consistent": consistent,
        "picks": picks,
        "first_picks": first_picks,
        "score_a": row.score_a,
        "score_b": row.score_b,
        "feedback": row.feedback or "",
        "error": row.error or "",
        "labels": labels,
        "latency_ms": row.latency_ms,
        "cost_nano": cost_nano,
        "unpriced": 0 if row.unpriced is None and cost_nano is not None else row.unpriced,
    }


def by_rule(winner: str, consistent: bool | None, rule: str) -> str:
    """Return what a tie of two orders that disagree counts as."""
    is_wrong = rule == "wrong" and consistent is False and winner == "tie"
    return WRONG if is_wrong else winner


def vote_of(row: ImportRow, labels: Columns | None) -> Columns:
    return {
        "at": row.voted_at and row.voted_at.isoformat(),
        "choice": row.vote or "",
        "value": None,
        "category": row.category or "",
        "left_side": row.left_side or "",
        "comment": row.comment or "",
        "labels": labels,
    }


# The columns that two statements of one thing must have in common, the choice first.
COMPARED: Final = {
    "verdict": "winner error score_a score_b consistent picks feedback labels".split(),
    "vote": "choice value at category comment left_side labels".split(),
}
_FIELDS: Final = {"winner": "verdict", "choice": "vote", "at": "voted_at"}


def check_consistent(table: str, row: ImportRow, statement: Columns, earlier: Columns) -> None:
    """Raise InvalidField where a statement contradicts what its judge or voter said before."""
    choice = COMPARED[table][0]
    statement, earlier = _with_answer(statement, choice), _with_answer(earlier, choice)
    for column in COMPARED[table]:
        # What is not stated contradicts nothing; but of a verdict it says that it failed.
        unstated = "failed" if column == "winner" else None
        value, facts = (
            unstated if columns[column] in ("", []) else columns[column]
            for columns in (statement, earlier)
        )
        if value is not None and value != facts:
            name = row.judge if table == "verdict" else row.voter
            earlier_answer = f"{name} said {quote(facts)} on {row.shape} {row.item!r} before"
            field = column_of(row, _FIELDS.get(column, column))
            raise InvalidField(field, f"{quote(value)}, but {earlier_answer}")


def _with_answer(statement: Columns, choice: str) -> Columns:
    """Return a vote or verdict with its answer in place of a choice, where that is not known."""
    labels = dict(statement["labels"] or {})
    if MAIN not in labels:
        return statement
    return {**statement, choice: labels.pop(MAIN), "labels": labels or None}


def of_another_shape(row: ImportRow) -> str:
    """Return why a row cannot stand beside others that are not about what it is about."""
    return {
        "pair": "a pair; this run is made of single items",
        "item": "a single item; this run is made of pairs",
    }[row.shape]

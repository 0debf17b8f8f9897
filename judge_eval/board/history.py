"""The ledger of a run as claims are made of it: what was opened, asked for and voted, in order."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import nan
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from django.db.models import BooleanField, ExpressionWrapper, Max, Q, QuerySet

from judge_eval.ledger.projection import SealedVerdict, untuned
from judge_eval.models import Run
from judge_eval.stats.evidence_order import (
    NOBODY,
    Event,
    ItemClosed,
    ItemOpened,
    OutOfOrder,
    VoteCast,
    VotesRequired,
)
from judge_eval.stats.outcomes_table import FAILED, UNASSIGNED
from voting.items.kinds import COMPARISON, grade_of, is_ordered, kind_of
from voting.items.order import keyed_number, prompt_order
from voting.ledger.decisions import IMPORT_BEGINS, IMPORT_ENDS, margin_in, votes_required_in
from voting.models import NO_VOTE, Entry

ROWS_AT_ONCE: Final = 20_000
TAKEN_BACK: Final = "a vote was taken back"
EXCLUDED: Final = "an item was excluded"
VOTER_EXCLUDED: Final = "a voter was excluded"
INCLUDED: Final = "excluded votes count again"
CHANGED: Final = "a verdict changed"
JOINED: Final = "a judge joined"
LEFT_OUT: Final = "a judge was left out"
COUNTS_AGAIN: Final = "a judge counts again"

# What readers of files call whose labels they are, where these are of no single person.
LABELS_OF_FILES: Final = frozenset(
    "annotator annotators chosen consensus expected gold ground_truth ground-truth human humans "
    "label labels majority people pooled reference truth".split()
)
# The choice of a vote that is none in this part of the run.
_ELSEWHERE: Final = -1


class Round(NamedTuple):
    """Another round of votes that a curator asks for, until it is reversed: then 0 are wanted."""

    seq: int
    comparison: int
    votes_wanted: int


Step: TypeAlias = ItemOpened | VotesRequired | Round | VoteCast


class History(NamedTuple):
    """What happened in a run, or in a part of it; the number of a comparison is its row there.

    `order` holds the places of the prompts, by number, in the order in which they enter, and
    `comparison_order` those of the comparisons of a prompt. `changes`
    tells the last entry that changed what was there before, by why. `votes_left` are those that
    comparisons still want. `votes` are the counted ones: comparison, choice and person, by number;
    so many of them were `imported`. `people` are those persons, None in place of labels that are
    no single person's. `margin` is that of the entry that fixed it, None before there is one.

    Where answers are in an order, the choice of a `VoteCast` is its row in `votes`, `grades` say
    how good these votes say an item is, `groups` to which groups their voters belong, and
    `verdict_grades` are by comparison those of all judges, NaN of failed ones, and None of those
    that were not asked.
    """

    events: list[Event]
    order: list[int]
    comparison_order: list[int]
    changes: dict[str, int]
    votes_left: int
    votes: list[tuple[int, int, int]]
    imported: int
    grades: list[float]
    groups: list[str]
    verdict_grades: dict[int, list[float | None]]
    people: list[UUID | None]
    margin: float | None


def history_of(
    run: Run,
    votes: QuerySet[Entry],
    items: Sequence[UUID],
    codes: Mapping[str, int],
    judges: Sequence[int],
    group: str = "",
    up_to: int | None = None,
    tuned_on: Collection[int] = (),
) -> History:
    """Read with five queries what the ledger says of some items, in the order of their rows.

    `votes` are those that count, whatever they say; `codes` are those of what may be said here,
    `judges` their positions, and `group` the voters whose votes are part of it, where not all are.
    With `up_to` nothing later is read but what judges say of items that were open then. Of judges
    that were tuned what they say in the rows `tuned_on` is no evidence.
    """
    rows = {item: row for row, item in enumerate(items)}
    return _HistoryReader(run, rows, codes, group, up_to, tuned_on).history(votes, judges)


class _HistoryReader:
    def __init__(
        self,
        run: Run,
        rows: Mapping[UUID, int],
        codes: Mapping[str, int],
        group: str,
        up_to: int | None,
        tuned_on: Collection[int],
    ) -> None:
        self.tuned_on = tuned_on
        self.run, self.rows, self.codes, self.group = run, rows, codes, group
        self.up_to = up_to
        # Numbers of prompts by their keys, and by comparison.
        self.prompts: dict[str, int] = {}
        self.prompt_of: dict[int, int] = {}
        self.changes: dict[str, int] = {}
        self.votes: list[tuple[int, int, int]] = []
        self.is_ordered = is_ordered(run.queue)
        self.grades: list[float] = []
        self.groups: list[str] = []
        self.people: list[UUID | None] = []
        self.margin: float | None = None
        self.verdict_grades: dict[int, list[float | None]] = {}
        # First and last entries of imports.
        self.imports: list[tuple[int, int]] = []
        # How many of the votes came in the order of a file.
        self.imported = 0
        # The first vote on an item that the queue had not handed out.
        self.first_chosen_seq = 0

    def history(self, votes: QuerySet[Entry], judges: Sequence[int]) -> History:
        opened, requirements = list(self._item_openings(judges)), list(self._requirements())
        order = [prompt_order(self.run.queue_id, prompt) for prompt in self.prompts]
        # A vote on an item that has no `verdicts` entry is no evidence about judges.
        voted = [vote for vote in self._cast_votes(votes) if vote.comparison in self.prompt_of]
        opened = list(self._open_before_votes(opened, voted))
        if self.imports:
            # An import's votes count as cast at the entry that ends it.
            voted = [v._replace(seq=self._find_import(v.seq)[1] or v.seq) for v in voted]
            voted.sort(key=lambda v: (v.seq, order[self.prompt_of[v.comparison]]))
        required_votes = _RequiredVotes()
        steps: list[Step] = sorted([*opened, *requirements, *voted], key=attrgetter("seq"))
        events = [event for step in steps for event in required_votes.take(step)]
        if self.first_chosen_seq:
            before = sum(event.seq < self.first_chosen_seq for event in events)
            events.insert(before, OutOfOrder(self.first_chosen_seq))
        gone = Q(retracted_seq__isnull=False, retracted_after_reveal=False)
        retracted = self._sealed_entries(Entry.Kind.VOTE).filter(gone)
        if last := retracted.order_by().aggregate(last=Max("retracted_seq"))["last"]:
            self.changes[TAKEN_BACK] = last
        left = required_votes.votes_left
        if events and not self.run.queue.is_open:
            # Nobody may vote any more, so nothing is waited for.
            events.append(ItemClosed(events[-1].seq))
            left = 0
        key, subject = str(self.run.queue_id), COMPARISON.subject
        places = [keyed_number(key, subject, item) for item in self.rows]
        counts = self.changes, left, self.votes, self.imported
        graded = self.grades, self.groups, self.verdict_grades
        return History(events, order, places, *counts, *graded, self.people, self.margin)

    def _sealed_entries(self, kind: str) -> QuerySet[Any]:
        # The project is there for the sake of indexes.
        queue = self.run.queue
        sealed = Entry.objects.filter(project=queue.project_id, queue=queue, seq__isnull=False)
        votes = Q() if kind == Entry.Kind.VOTE else NO_VOTE
        if self.up_to is not None and kind != Entry.Kind.VERDICTS:
            votes &= Q(seq__lte=self.up_to)
        return sealed.filter(votes, kind=kind).order_by("seq")

    def _item_openings(self, judges: Sequence[int]) -> Iterator[ItemOpened]:
        entries = self._sealed_entries(Entry.Kind.VERDICTS).values_list("seq", "item", "payload")
        before: dict[int, list[int]] = {}
        for seq, item, payload in entries.iterator(ROWS_AT_ONCE):
            if (row := self.rows.get(item)) is None:
                continue
            if self.up_to is not None and seq > self.up_to and row not in before:
                continue  # it was not open then
            verdicts = untuned(payload) if row in self.tuned_on else payload["verdicts"]
            winners = {verdict["position"]: verdict["winner"] for verdict in verdicts}
            codes = [self._code(winners[n]) if n in winners else UNASSIGNED for n in judges]
            if self.is_ordered:
                grades = {verdict["position"]: _grade(verdict) for verdict in verdicts}
                self.verdict_grades[row] = [grades.get(n) for n in judges]
            for old, new in zip(before.get(row, codes), codes, strict=True):
                if old != new:
                    self.changes[JOINED if old == UNASSIGNED else CHANGED] = seq
            before[row] = codes
            prompt = self.prompts.setdefault(payload["prompt"], len(self.prompts))
            self.prompt_of[row] = prompt
            yield ItemOpened(seq, row, prompt, payload["votes_wanted"], codes)

    def _code(self, winner: str | None) -> int:
        return FAILED if winner is None else self.codes.get(winner, UNASSIGNED)

    def _requirements(self) -> Iterator[VotesRequired | Round]:
        import_start = 0
        for seq, payload in self._sealed_entries(Entry.Kind.PARAMETERS).values_list(
            "seq", "payload"
        ):
            if payload == IMPORT_BEGINS:
                import_start = seq
            elif payload == IMPORT_ENDS:
                self.imports.append((import_start, seq))
            margin = margin_in(payload)
            # It is 0 above a baseline that is always right: nobody differs by less.
            self.margin = self.margin if margin is None else margin
            required = votes_required_in(payload).items()
            yield from (
                VotesRequired(seq, self.rows[item], n) for item, n in required if item in self.rows
            )
        yield from self._decision_rounds()

    def _decision_rounds(self) -> Iterator[Round]:
        decisions = self._sealed_entries(Entry.Kind.DECISION)
        rows = decisions.values_list("seq", "item", "payload", "retracted_seq")
        for seq, item, payload, reversed_at in rows:
            if payload["action"] in ("exclude", "keep"):
                is_back = reversed_at or payload["action"] == "keep"
                change = INCLUDED if is_back else EXCLUDED if item else VOTER_EXCLUDED
                if "judge" in payload:
                    change = COUNTS_AGAIN if is_back else LEFT_OUT
                self.changes[change] = max(reversed_at or seq, self.changes.get(change, 0))
            elif payload["action"] == "another_round" and item in self.rows:
                yield Round(seq, self.rows[item], payload["votes_wanted"])
                if reversed_at:
                    yield Round(reversed_at, self.rows[item], 0)

    def _cast_votes(self, votes: QuerySet[Entry]) -> Iterator[VoteCast]:
        people: dict[UUID, int] = {}
        cast = votes.exclude(choice="").order_by("seq")
        # A ballot of a pair, by which the queue hands it out, says which side is on the left; a
        # script that names a pair does not. Of single items the ledger tells nothing of it.
        queue = self.run.queue
        tells_side = len(kind_of(queue).sides) > 1 and not queue.is_simulated
        is_of_group = Q(voter__group=self.group) if self.group else Q(voter__isnull=False)
        cast = cast.annotate(is_own=ExpressionWrapper(is_of_group, BooleanField()))
        names = ["seq", "item", "choice", "voter", "voter__external_id", "left_side", "is_own"]
        names += ["value", "voter__group"] if self.is_ordered else []
        rows = cast.values_list(*names)
        for seq, item, choice, voter, name, left, is_own, *graded in rows.iterator(ROWS_AT_ONCE):
            if item not in self.rows:
                continue
            is_imported = any(self._find_import(seq or 0))
            if tells_side and not left and not is_imported:
                self.first_chosen_seq = self.first_chosen_seq or seq or 0
            row, code = self.rows[item], self.codes.get(choice, _ELSEWHERE)
            code = code if is_own else _ELSEWHERE
            person = people.setdefault(voter, len(people))
            if person == len(self.people):
                self.people.append(None if name.casefold() in LABELS_OF_FILES else voter)
            if code != _ELSEWHERE:
                self.votes.append((row, code, person))
                self.imported += is_imported
                if graded:
                    self.grades.append(grade_of(choice, graded[0]))
                    self.groups.append(graded[1])
                    code = len(self.grades) - 1
            yield VoteCast(seq or 0, row, code, NOBODY if self.people[person] is None else person)

    def _open_before_votes(
        self, opened: Iterable[ItemOpened], voted: Iterable[VoteCast]
    ) -> Iterator[ItemOpened]:
        """Let no item open behind its votes: earlier versions imported votes without an opening."""
        first: dict[int, int] = {}
        for vote in voted:
            if vote.comparison not in first:
                first_seq, _ = self._find_import(vote.seq)
                first[vote.comparison] = first_seq or vote.seq
        for event in opened:
            yield event._replace(seq=min(event.seq, first.pop(event.comparison, event.seq)))

    def _find_import(self, seq: int) -> tuple[int, int]:
        """Return the first and last entry of the import that brought a vote, (0, 0) if none did."""
        return next(
            ((first_seq, end) for first_seq, end in self.imports if first_seq < seq < end), (0, 0)
        )


def _grade(verdict: SealedVerdict) -> float:
    """Return how good a verdict in the ledger says an item is, NaN where it failed."""
    winner = verdict["winner"]
    return nan if winner is None else grade_of(winner, verdict.get("score"))


class _RequiredVotes:
    """Settles how many votes each comparison wants as the ledger goes on."""

    def __init__(self) -> None:
        self.opened: dict[int, int] = {}
        # Votes wanted that another entry states hold over those of the opening, also before it.
        self.changed: dict[int, int] = {}
        self.rounds: dict[int, int] = {}
        # A vote that is none in this part leaves one vote less to wait for.
        self.elsewhere = Counter[int]()
        self.votes = Counter[int]()

    def take(self, event: Step) -> Iterator[Event]:
        row = event.comparison
        match event:
            case ItemOpened():
                self.opened[row] = event.votes_wanted
                yield event._replace(votes_wanted=self._required(row))
                return
            case VoteCast(choice=choice) if choice != _ELSEWHERE:
                self.votes[row] += 1
                yield event
                return
            case VoteCast():
                if self.votes[row] >= self._required(row):
                    return
                self.elsewhere[row] += 1
            case VotesRequired():
                self.changed[row] = event.votes_wanted
            case Round():
                self.rounds[row] = event.votes_wanted
        if row in self.opened:
            yield VotesRequired(event.seq, row, self._required(row))

    def _required(self, row: int) -> int:
        required = max(self.changed.get(row, self.opened[row]), self.rounds.get(row, 0))
        return max(0, required - self.elsewhere[row])

    @property
    def votes_left(self) -> int:
        return sum(max(0, self._required(row) - self.votes[row]) for row in self.opened)

"""The run API in PathScore's shape: what is pending, a vote, the results; and all findings."""

import json
from datetime import datetime
from functools import lru_cache
from types import SimpleNamespace
from typing import Annotated, Any, Literal
from uuid import UUID

from django.conf import settings
from django.db.models import Prefetch, prefetch_related_objects
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from ninja import Field, Schema
from ninja.errors import HttpError
from pydantic import BeforeValidator, ConfigDict, WithJsonSchema

from humanjudge.core.ratelimit import RateLimit
from humanjudge.core.strict_json import JsonObject
from judge_eval.board.cache import newer_votes, request_findings
from judge_eval.board.columns import terminal_row
from judge_eval.board.few import require_votes_first
from judge_eval.board.filters import LONGEST, Slice
from judge_eval.board.model import DisputedPair, RunFindings
from judge_eval.board.ranking import agreement_intervals, ranking, stored_ranking
from judge_eval.models import Run, Verdict
from judge_eval.runs.access import is_voting, may_be_stopped, note_seen, visible
from judge_eval.runs.api_access import (
    Counts,
    KeyRouter,
    Prefix,
    Problem,
    keep_blind,
    key_of,
    own_votes,
    run_of,
)
from judge_eval.runs.queries import board, by_prefix
from voting.ballot.assignment import ballot_for
from voting.ballot.queries import in_turn, open_to, progress
from voting.ballot.services import RecordedVote, cast_key_vote, cast_vote, is_unblinded
from voting.ballot.tuning import HIDDEN
from voting.items.choices import CHOICES, FIXED, PassFlag
from voting.items.kinds import KINDS, AnswerInvalid, Options, Posted, joined, kind_of
from voting.models import ApiKey, Inference, Item
from voting.people.voters import voter_of_key
from voting.pictures.images import png_in

MOST_TASKS = 200


class Task(Schema):
    """A pair, or a single item, which has only an A."""

    id: UUID
    gen_a_id: UUID
    gen_b_id: UUID | None = None
    prompt_text: str
    kind: str
    svg_a: str | None = None
    svg_b: str | None = None
    # Of pictures: where their bytes are.
    image_a: str | None = None
    image_b: str | None = None
    text_a: str | None = None
    text_b: str | None = None
    verdicts: str | None = None


class Mine(Schema):
    votes: int = Field(alias="mine")
    left: int = Field(alias="left_for_me")


class TaskQuestion(Options):
    """What is asked of each item, and what may be answered; options are those of single items."""

    kind: str
    choices: list[str]


class Pending(Counts):
    tasks: list[Task]
    # Of single items.
    asked: TaskQuestion | None = None
    mine: Mine
    simulated: bool
    next_cursor: int | None


Grade = Annotated[float, Field(ge=0, le=1)]
_LABELS: Any = {"type": "array", "items": {"type": "string"}}


class VoteIn(Schema):
    """A vote. Of a single item `winner` is one of the choices, or a list of labels.

    What is graded has a `value` between 0 and 1 instead; a flag may have a `category`; `criteria`
    are answered one by one, and free text by `text`. A `comment` may stand beside each.
    """

    model_config = ConfigDict(json_schema_extra={"example": {"task_id": "8a757b33", "winner": "A"}})

    task_id: Prefix
    # Which of them the run's ballot has, it says itself.
    winner: Annotated[
        str | int | list[str],
        WithJsonSchema({"anyOf": [{"type": "string", "examples": list(FIXED)}, _LABELS]}),
    ] = ""
    value: Grade | None = None
    category: str = ""
    criteria: dict[str, Grade | PassFlag] = {}
    text: str = ""
    comment: str = ""

    def posted(self) -> Posted:
        """Return it as a form of the voting page would say it."""
        choice = self.winner
        choice_text = joined(choice) if isinstance(choice, list) else str(choice)
        answers = {"choice": choice_text, "category": self.category, "text": self.text}
        value = {} if self.value is None else {"value": str(self.value)}
        criteria = {f"criterion.{name}": str(grade) for name, grade in self.criteria.items()}
        return answers | value | criteria | {"comment": self.comment}


class VoteOut(Schema):
    ok: bool
    task_id: UUID
    vote_id: UUID
    winner: str
    repeated: bool
    unblinded: bool | None = None


Rounded = Annotated[int | None, BeforeValidator(lambda elo: elo and round(elo))]
Percent = Annotated[float | None, BeforeValidator(lambda share: share and 100 * share)]


class Standing(Schema, json_schema_serialization_defaults_required=True):
    # Of its rating in `row`, and of what `findings` have computed of it, if they have.
    judge: str = Field(alias="row.judge.name")
    judge_id: UUID = Field(alias="row.judge.id")
    baseline: bool = Field(alias="row.judge.is_baseline")
    rank: int | None
    elo: Rounded = Field(alias="elo.value")
    elo_exact: float | None = Field(alias="elo.value")
    elo_other_orders_low: float | None = Field(alias="elo.low")
    elo_other_orders_high: float | None = Field(alias="elo.high")
    elo_note: str = Field(alias="elo.note")
    agree: int = Field(alias="row.agree")
    disagree: int = Field(alias="row.disagree")
    total: int = Field(alias="row.total")
    agree_rate: float | None = Field(alias="row.agree_rate")
    agree_low: float | None = Field(None, alias="interval.0")
    agree_high: float | None = Field(None, alias="interval.1")
    coverage: float | None = Field(alias="row.coverage")
    overall_agreement: Percent = Field(alias="share")
    overall_low: Percent = Field(None, alias="findings.overall.low")
    overall_high: Percent = Field(None, alias="findings.overall.high")
    rank_low: int | None = Field(None, alias="findings.rank_low")
    rank_high: int | None = Field(None, alias="findings.rank_high")
    ties: str | None = Field(None, alias="findings.ties")
    beats_floor: bool | None = Field(None, alias="findings.beats_floor")


class OverallAsOf(Schema):
    """Which votes overall agreement and ELO in other orders are of; `newer` are being counted."""

    votes: int
    ledger_seq: int = Field(alias="seq")
    newer: int
    computed: bool = Field(alias="is_computed")


class RunName(Schema):
    id: UUID
    name: str


class Results(Counts):
    run: RunName
    leaderboard: list[Standing]
    votes: int
    unblinded: int
    simulated: bool
    ledger_seq: int = Field(alias="seq")
    sealed: bool
    overall_as_of: OverallAsOf


PART = r"^((tag|generator):[^\u0000]+|ballot:decided)?$"
Part = Annotated[str, WithJsonSchema({"type": "string", "maxLength": LONGEST, "pattern": PART})]


class Computing(Schema):
    """Nothing is known yet; ask again in a second."""

    state: Literal["computing"]


class Disputed(DisputedPair):
    """A pair on which judges were wrong so often; `external_id` is what an import called it."""

    id: UUID
    external_id: str


class Ready(RunFindings):
    """All figures, as of one ledger entry; `newer` votes are being counted, up to `ledger_seq`.

    `sealed`: all votes of this key are among those. `behind`: newer entries are being counted.
    `rows` are the judges by overall agreement as the command line prints them, and `silent` says
    who gave no verdict on what was voted on.
    """

    state: Literal["ready"]
    computed_at: datetime
    behind: bool
    newer: int
    ledger_seq: int
    sealed: bool
    silent: list[str]
    disputed: list[Disputed]  # type: ignore[assignment]  # of the same, with more about each
    rows: list[list[str]]


router = KeyRouter("runs")
limit = RateLimit(settings.VOTES_PER_SECOND, settings.VOTES_BURST)


@router.get("/{run_id}/judge-eval/pending", response=Pending, exclude_unset=True)
def pending(
    request: HttpRequest,
    run_id: Prefix,
    limit: Annotated[int, Field(ge=1, le=MOST_TASKS)] = 50,
    cursor: int = -1,
    verdicts: bool = True,
) -> Any:
    """Items that want votes and that this key has not voted on: pairs, or single outputs.

    They come in the order in which people are handed them. Votes in another order count too, but
    the board then takes prompts as evidence in the queue's order only.

    `verdicts` is there only for a key with the scope `verdicts`; what such a key then votes is
    kept, but not counted for the judges, since it was not blind. `verdicts=false` leaves them out.
    `total` and `done` count items of the run, `pending` those that this key may still vote on;
    `mine` counts its own standing votes.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    run = run_of(api_key, run_id)
    voter, _ = own_votes(api_key, run)
    items = in_turn(open_to(voter, run.queue), run.queue, after=cursor)
    pairs = list(items.select_related("a", "b")[:limit])
    tasks = [_task(pair) for pair in pairs]
    if verdicts and ApiKey.Scope.VERDICTS in api_key.scopes:
        note_seen(api_key, run.queue.project, [pair.pk for pair in pairs])
        visible_verdicts = Verdict.objects.exclude(HIDDEN).select_related("judge")
        visible_verdicts = visible_verdicts.order_by("judge__position")
        prefetch_related_objects(pairs, Prefetch("verdicts", visible_verdicts))
        for task, pair in zip(tasks, pairs, strict=True):
            task["verdicts"] = json.dumps([_verdict(verdict) for verdict in pair.verdicts.all()])
    counts, queue = progress(voter, run.queue), run.queue
    question = queue.options | {"kind": queue.kind, "choices": queue.ballot}
    return {
        "tasks": tasks,
        **({} if kind_of(queue).is_choice_only else {"asked": question}),
        "mine": counts,
        "total": counts.total,
        "done": counts.done,
        "pending": counts.left_for_me,
        "simulated": queue.is_simulated,
        "next_cursor": pairs[-1].position if len(pairs) == limit else None,
    }


def _task(item: Item) -> JsonObject:
    a, field_prefix = item.a, item.a.kind if item.a.kind in ("svg", "image") else "text"
    task = {"id": item.pk, "gen_a_id": item.a_id, "prompt_text": a.prompt, "kind": a.kind}
    task[f"{field_prefix}_a"] = _output_text(a)
    if item.b is not None:
        task |= {"gen_b_id": item.b_id, f"{field_prefix}_b": _output_text(item.b)}
    return task


def _output_text(output: Inference) -> str:
    png = png_in(output.output) if output.kind == Inference.Kind.IMAGE else ""
    return reverse("picture", args=[png]) if png else output.output


def _verdict(verdict: Verdict) -> JsonObject:
    answer = {"judge_model": verdict.judge.name, "winner": verdict.winner or None}
    if verdict.state != Verdict.State.DONE:
        return answer | {"error": verdict.error or "no verdict yet"}
    return answer | {name: getattr(verdict, name) for name in ("score_a", "score_b", "feedback")}


@router.post("/{run_id}/judge-eval/vote", response={200: VoteOut, 429: Problem}, exclude_none=True)
def vote(request: HttpRequest, run_id: Prefix, body: VoteIn) -> Any:
    """Vote as the key's own voter. The same vote again is answered as the first time.

    A key with the scope `verdicts` is told whether it had seen them before: `unblinded`.
    """
    api_key = key_of(request, ApiKey.Scope.VOTE)
    if not limit.allow(api_key.prefix):
        raise HttpError(429, "too many votes in a moment; this one was not recorded")
    try:
        recorded = _cast_at_once(api_key, run_id, body) or _cast(api_key, run_id, body)
    except AnswerInvalid as invalid:
        field = "winner" if invalid.field == "choice" else invalid.field
        raise HttpError(422, f"{field}: {invalid.reason}") from invalid
    return {
        "ok": True,
        "task_id": recorded.item,
        "vote_id": recorded.uid,
        "winner": recorded.choice,
        "repeated": recorded.repeated,
        "unblinded": is_unblinded(recorded) if ApiKey.Scope.VERDICTS in api_key.scopes else None,
    }


def _cast_at_once(api_key: ApiKey, run_id: str, body: VoteIn) -> RecordedVote | None:
    """Record the vote with one statement, if nothing speaks against it: four times as fast."""
    if body.winner not in CHOICES or api_key.user_id is not None:
        return None  # what a person may, their role says
    try:
        (queue, kind), item = _queue_of(UUID(run_id)), UUID(body.task_id)
    except (ValueError, Run.DoesNotExist):
        return None  # a prefix, or no run
    # A label may be called as a side is.
    if not KINDS[kind].is_choice_only:
        return None
    return cast_key_vote(api_key, queue, item, str(body.winner))


@lru_cache(maxsize=1000)
def _queue_of(run: UUID) -> tuple[UUID, str]:
    """Return the queue of a run and its kind, which it has for life."""
    return Run.objects.values_list("queue", "queue__kind").get(pk=run)


def _cast(api_key: ApiKey, run_id: str, body: VoteIn) -> RecordedVote:
    """Look everything up one by one: a prefix, the key's first vote, or something is wrong."""
    run = run_of(api_key, run_id, "vote")
    item = by_prefix(Item.objects.filter(queue=run.queue_id), body.task_id)
    if item is None:
        raise HttpError(404, f"this run has no task {body.task_id!r}")
    if item.lacks_output:
        raise HttpError(409, "the outputs of this task are not here")
    if item.opened_at is None or item.unusable:
        raise HttpError(409, item.unusable or "this task is not open for voting yet")
    ballot = ballot_for(voter_of_key(run.queue.project_id, api_key), run.queue, item)
    answer = ballot.answer(body.posted(), left="")
    return cast_vote(ballot, answer.choice, left="", details=answer.details)


def run_to_read(request: HttpRequest, run_id: str, part: str = "") -> tuple[Run, bool]:
    """Return a run whose figures a key may see, and whether all its own votes are in them."""
    api_key = key_of(request, ApiKey.Scope.READ)
    run = run_of(api_key, run_id)
    keep_blind(api_key, run)
    require_votes_first(api_key, run, Slice.parse(part))
    return run, own_votes(api_key, run)[1]


@router.get("/{run_id}/judge-eval/results", response=Results)
def results(request: HttpRequest, run_id: Prefix) -> Any:
    """The judges by overall agreement, baselines last. `sealed`: all votes of this key are counted.

    What is claimed of them is in their rank range (from `rank_low` to `rank_high`; the best judge
    has rank 1 alone), in letters that judges share of whom neither beats the other (`ties`), and in
    `beats_floor`. `rank` is the place in this list and claims nothing; a judge without a verdict on
    what was voted on has none, nor any of the others.

    While judges are tuned on half of the run nobody has an ELO, and `agree` and `disagree` are 0:
    they would tell votes on the other half. ELO and agreement are as of the last sealed vote. The
    ELO depends on the order of the votes: from `elo_other_orders_low` to `elo_other_orders_high` is
    where 90 % of other orders put it, and `elo_note` says when it is outside. Judges play among
    themselves, so baselines beside them have none, nor has a judge that is alone; `elo_note` says
    that too. Overall agreement with its interval and the ELO in other orders are computed in the
    background, as of the vote that `overall_as_of` names; until they were `computed` once, overall
    agreement is of this moment and has no interval. A key that votes blindly, with the scope `vote`
    and without `verdicts`, is refused while it has pairs to vote on; what it has done itself is in
    `mine` of `pending`.

    Where votes are ratings, overall agreement is that of their order, which is null until it was
    computed; `agree` counts equal ratings, and nobody has an ELO.
    """
    run, is_sealed = run_to_read(request, run_id)
    reader = key_of(request, ApiKey.Scope.READ)
    return results_of(run, is_live=not is_voting(reader, run)) | {"sealed": is_sealed}


def results_of(run: Run, *, is_live: bool = True) -> JsonObject:
    """Return what `Results` holds of a run, but for what depends on who asks."""
    counted, computed = board(run, is_live=is_live), stored_ranking(run)
    overall, intervals = ranking(counted, computed), agreement_intervals(counted, computed)
    standings = [
        SimpleNamespace(**line._asdict(), interval=intervals.get(line.row.judge.pk))
        for line in overall.lines(counted)
    ]
    return counted._asdict() | {
        "leaderboard": standings,
        "pending": counted.pending,
        "simulated": run.queue.is_simulated,
        "overall_as_of": overall._asdict()
        | {"newer": newer_votes(run, counted.votes, overall.votes)},
    }


@router.get(
    "/{run_id}/findings",
    response={200: Ready | Computing, 409: Problem, 429: Problem},
    by_alias=True,
)
def findings(request: HttpRequest, run_id: Prefix, part: Part = "") -> Any:
    """Judges and models with intervals, claims, the Alt-Test: all that the boards show.

    `words` say in two sentences which judge is best, or what is missing to tell. `more` has at most
    three points, each with the word that leads it ("Floor: …"), and `notes` what else one must know
    to read the figures. `claims` have the evidence behind it, of judges in rows over those in
    columns, in the order of `judges`. It holds however often one looks. `floor` tells which
    baselines a judge is held against: those that were asked in the same orders. `beats` of a
    baseline over a judge says that the judge is worse; `forecast` is from how many to how many more
    votes it takes, with null for an open end; `withdrawn` without `other` is that a judge was the
    best.

    They are computed in the background: `state` is `computing` until there is something, and
    `behind` says that newer votes are being counted. `part` is `tag:…`, `generator:…`,
    `group:…` (votes of a group of voters) or `ballot:decided` (only votes and verdicts for A or
    B); `parts` says what there is, and `groups` has the figures of each group of voters. What
    cannot be computed is null with a reason beside it. A key that votes blindly, with the scope
    `vote` and without `verdicts`, is refused while it has pairs to vote on.
    """
    run, is_sealed = run_to_read(request, run_id, part)
    requested = request_findings(run, part)
    figures = requested.findings
    if requested.refused:
        raise HttpError(409, requested.refused)
    if figures is None:
        return {"state": "computing"}
    is_behind = requested.row.seq < run.board.seq
    # Of a part, at most so many.
    counted = (requested.whole_run.data or {}).get("as_of", {}).get("votes", 0)
    readable = visible(key_of(request), run, figures.disputed)
    rows = run.queue.items.filter(position__in=[pair.position for pair in readable])
    items = {item.position: item for item in rows.only("queue", "position", "external_id")}
    about = {
        "state": "ready",
        "computed_at": requested.row.computed_at,
        "behind": not is_sealed or is_behind,
        "newer": newer_votes(run, run.board.votes, counted) if is_behind else 0,
        "ledger_seq": run.board.seq,
        "sealed": is_sealed,
        "disputed": [
            pair.model_dump() | {"id": item.pk, "external_id": item.external_id}
            for pair in figures.disputed
            if (item := items.get(pair.position))
        ],
        "rows": [terminal_row(judge) for judge in figures.best_first()],
        "silent": figures.answered_nothing,
        "words": figures.words_to(is_at_work=may_be_stopped(key_of(request), run)),
    }
    # It may be large, and was checked when it was read.
    return JsonResponse(figures.stored() | about)

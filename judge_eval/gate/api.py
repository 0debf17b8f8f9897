"""The gate by REST: may a judge go on, by conditions on the votes that a run has."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from ninja import Field, Query, Schema
from ninja.errors import HttpError
from pydantic import AfterValidator, ConfigDict, WithJsonSchema

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import fixed, listed, number_of
from humanjudge.core.validation import INTEGER, ConfigInvalid, Part, validated
from judge_eval.board.api import Computing, run_to_read
from judge_eval.board.cache import is_sealing, request_findings
from judge_eval.board.filters import Slice
from judge_eval.board.model import JudgeFindings, RunFindings
from judge_eval.gate import drift
from judge_eval.judging.config.run_config import DEFAULT_PROVIDER, JoiningJudges
from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs.api_access import KeyRouter, Prefix, key_of, run_of
from judge_eval.runs.lifecycle import add_judges_to, ask_missing
from judge_eval.runs.queries import by_prefix, stands_on_board, voted_items
from judge_eval.stats import gate
from judge_eval.stats.estimate import PASSES, WELL_COVERED, Estimate
from judge_eval.stats.gate import Outcome, Result
from voting.models import ApiKey

SIMULATED = "The votes of this run are simulated: a gate is for votes of people."
IN_WORKSHOP = "Judges are tuned on this run: add a new one as a variant, in its workshop."
NO_CONDITION = "name a condition: min_agreement, beats_floor, not_worse_than or like_people"

router = KeyRouter("runs")
# An entry of the ledger, by its number.
Entries = Annotated[int, Field(ge=0, le=10**18 - 1)]
# As precise as a share is the same on every machine, and never -0.
Rounded = Annotated[float, AfterValidator(lambda share: round(share, 6) + 0.0)] | None
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(max_length=200), WithJsonSchema({"type": "string", "minLength": 1})]


class Conditions(Schema):
    """What is asked of a judge: names or identifiers of judges, and shares between 0 and 1.

    `at` is the last entry of the ledger whose votes count; without it all do. `known` is the entry
    that figures need to know before anything is decided; without it, the run's last.
    """

    judge: Name = ""
    min_agreement: Share | None = None
    beats_floor: bool = False
    not_worse_than: Name | None = None
    margin: Share | None = None
    like_people: bool = False
    epsilon: Annotated[float, Field(ge=0, lt=1)] | None = None
    at: Entries | None = None
    known: Entries | None = None


class CheckOut(Schema):
    name: str
    result: Result = Field(alias="outcome.in_words")
    code: Outcome = Field(alias="outcome")
    words: str
    bound: Rounded
    value: Rounded
    low: Rounded
    high: Rounded


class Decided(Schema):
    """How it ends: `code` is 0 where all passed, else 1 where one failed, else 3.

    The votes are those up to entry `at` that still stand, on `items`; on `unanswered` of these the
    judge came to no verdict. It is one of so many `wordings` tried on these votes: judges that were
    asked and are no baselines. `seq` is the entry that these figures know.
    """

    state: Literal["ready"]
    run: str
    run_name: str
    judge: str
    judge_name: str
    at: int
    votes: int
    people: int
    items: int
    unanswered: int
    wordings: int
    code: Outcome
    result: Result
    checks: list[CheckOut]
    notes: list[str]
    seq: int


class GateComputing(Computing):
    """Nothing can be decided yet. Where votes keep coming, ask with `ledger_seq` as `known`."""

    ledger_seq: int


class Missing(Part):
    """Which judge to ask about what it did not answer, by `provider` where it is new in the run."""

    model_config = ConfigDict(json_schema_extra={"example": {"judge": "judge-0"}})

    judge: Annotated[str, Field(min_length=1, max_length=200)]
    provider: Annotated[str, Field(max_length=50)] = DEFAULT_PROVIDER
    at: Annotated[Entries, INTEGER] | None = None


class Requested(Schema):
    verdicts: int


@router.get("/{run_id}/gate", response=Decided | GateComputing)
def decide(request: HttpRequest, run_id: Prefix, conditions: Query[Conditions]) -> Any:
    """Whether a judge meets conditions on the votes of a run, for a build that waits for it.

    `min_agreement` passes where the lower end of the interval of overall agreement is above it, and
    fails where the upper end is below. `beats_floor` passes where that is claimed, and fails where
    the judge is shown to be worse than a baseline. `not_worse_than` another judge passes where the
    whole interval of the paired difference is above minus `margin`, and fails where it is below.
    These intervals hold however often one looks; with `at`, which fixes the votes, they are the
    95 % intervals. `like_people` is the Alt-Test, by the run's epsilon or another of its grid; it
    fails where the judge is shown to be worse than that allows. Everything else is too few votes to
    say, an interval that is withheld too. Simulated votes are refused with 409.

    `state` is `computing` until the figures know every sealed vote, or while judges are being
    asked.
    """
    run, is_sealed = run_to_read(request, run_id, _part(conditions.at))
    _require_consistent(request, conditions)
    if run.queue.is_simulated:
        raise HttpError(409, SIMULATED)
    if conditions.at is not None and conditions.at > run.board.seq:
        raise _refusal("at", f"the ledger of this run ends with {run.board.seq}")
    requested = request_findings(run, _part(conditions.at))
    if requested.refused:
        raise HttpError(409, requested.refused)
    # Until something is known of the whole run, nothing is of a part.
    is_requested_part = str(requested.part) == requested.row.part
    figures = requested.findings if is_requested_part else None
    last = run.board.seq
    required_seq = last if conditions.known is None else min(conditions.known, last)
    is_known = figures is not None and figures.as_of.seq >= required_seq
    if figures is None or not (is_known and is_sealed) or _is_answering(run, figures):
        return {"state": "computing", "ledger_seq": last}
    return _decision(run, figures, conditions)


def _is_answering(run: Run, figures: RunFindings) -> bool:
    """Whether judges are being asked, or have answered what these figures do not know."""
    on_board = run.judges.filter(stands_on_board(run)).count()
    return run.state in Run.AT_WORK or len(figures.judges) != on_board or is_sealing(run)


def _part(entry_seq: int | None) -> str:
    return "" if entry_seq is None else str(Slice("at", str(entry_seq)))


def _refusal(field: str, reason: str, status: int = 409) -> HttpError:
    """Refuse what is well-formed and cannot be weighed: the document of the API cannot say it."""
    return HttpError(status, f"{field}: {reason}")


def _require_consistent(request: HttpRequest, conditions: Conditions) -> None:
    # What is misspelled must not pass.
    if unknown := sorted(request.GET.keys() - Conditions.model_fields.keys()):
        raise ConfigInvalid.at(unknown[0], "there is no such condition")
    if not conditions.judge:
        raise _refusal("judge", "name one")
    is_named = conditions.beats_floor or conditions.like_people
    if not is_named and (conditions.min_agreement, conditions.not_worse_than) == (None, None):
        raise HttpError(409, NO_CONDITION)
    if (conditions.margin is None) != (conditions.not_worse_than is None):
        raise _refusal("margin", "must be given together with not_worse_than")
    if conditions.epsilon is not None and not conditions.like_people:
        raise _refusal("epsilon", "can only be given with like_people")


def _decision(run: Run, figures: RunFindings, conditions: Conditions) -> JsonObject:
    judge, snapshot = _judge_named(figures, "judge", conditions.judge), figures.as_of
    checks = list(_checks(run, figures, judge, conditions))
    end = gate.overall([check.outcome for check in checks])
    failed = Verdict.objects.filter(judge=UUID(judge.id), state=Verdict.State.FAILED)
    done_verdicts = Verdict.objects.filter(judge=OuterRef("pk"), state=Verdict.State.DONE)
    wordings = run.judges.exclude(provider=Judge.BASELINE).filter(Exists(done_verdicts)).count()
    return {
        "state": "ready",
        "run": str(run.pk),
        "run_name": run.name,
        "judge": judge.id,
        "judge_name": judge.name,
        "at": snapshot.seq if conditions.at is None else conditions.at,
        "votes": snapshot.votes,
        "people": snapshot.people,
        "items": snapshot.voted,
        "unanswered": failed.filter(item__in=voted_items(run, conditions.at)).count(),
        "wordings": wordings,
        "code": end,
        "result": end.in_words,
        "checks": checks,
        "notes": [gate.wordings_tried(wordings), *_notes(run, figures, judge, conditions)],
        "seq": snapshot.seq,
    }


def _judge_named(figures: RunFindings, field: str, name: str) -> JudgeFindings:
    judges = [judge for judge in figures.judges if judge.name == name]
    judges = judges or [judge for judge in figures.judges if judge.id.startswith(name.lower())]
    if len(judges) != 1:
        names = listed([judge.name for judge in figures.judges]) or "no judges"
        reason = f"not on the board ({names}); variants are, once the tuning has ended"
        if judges:
            reason = "several judges have this name; give an identifier"
        raise _refusal(field, reason, 409 if judges else 404)
    return judges[0]


def _checks(
    run: Run, figures: RunFindings, judge: JudgeFindings, conditions: Conditions
) -> Iterator[gate.Check]:
    place, claims, is_fixed = figures.judges.index(judge), figures.claims, conditions.at is not None
    if conditions.min_agreement is not None:
        figure = judge.overall if is_fixed else judge.always
        yield gate.min_agreement(figure, conditions.min_agreement)
    if conditions.beats_floor:
        floor = [(n, baseline) for n, baseline in enumerate(figures.judges) if baseline.is_baseline]
        worse_than = [baseline.name for n, baseline in floor if claims.beats[n][place]]
        yield gate.beats_floor(judge.beats_floor, worse_than)
    if conditions.not_worse_than is not None and conditions.margin is not None:
        rival = _judge_named(figures, "not_worse_than", conditions.not_worse_than)
        column = figures.judges.index(rival)
        ends = (claims.difference_low, claims.difference_high)
        if not is_fixed:
            ends = (claims.difference_always_low, claims.difference_always_high)
        value, low, high = (matrix[place][column] for matrix in (claims.difference, *ends))
        reason = judge.always_why or rival.always_why or None
        if value is None:
            reason = "no vote on an item that both were asked about"
        difference = Estimate(value, low, high, why=reason)
        yield gate.not_worse_than(rival.name, difference, conditions.margin)
    if conditions.like_people:
        yield _alt_test_check(run, figures, judge, conditions.epsilon)


def _alt_test_check(
    run: Run, figures: RunFindings, judge: JudgeFindings, own_epsilon: float | None
) -> gate.Check:
    test = figures.alt_test
    tested = next((row for row in test.judges if row.id == judge.id), None) if test else None
    epsilon = run.epsilon if own_epsilon is None else own_epsilon
    if test is None or tested is None or tested.winning_rates is None:
        reason = tested.words if tested else figures.alt_test_why or ""
        return gate.like_people(None, PASSES, epsilon, Estimate(None, why=reason or "not tested"))
    rates = {float(key): rate for key, rate in tested.winning_rates.items()}
    if epsilon not in rates:
        grid = listed([fixed(grid_epsilon, 2) for grid_epsilon in sorted(rates)])
        raise _refusal("epsilon", f"must be one of {grid}")
    return gate.like_people(rates[epsilon], PASSES, epsilon, tested.shortfall)


def _notes(
    run: Run, figures: RunFindings, judge: JudgeFindings, conditions: Conditions
) -> Iterator[str]:
    by_one_voter = figures.claims.by_one[figures.judges.index(judge)]
    floor = [place for place, row in enumerate(figures.judges) if row.is_baseline]
    if conditions.beats_floor and judge.beats_floor and any(by_one_voter[n] for n in floor):
        yield "It beats the baselines by one voter's votes alone."
    if judge.is_tuned:
        yield "It was tuned here: its figures are of the half that was held out."
    if conditions.like_people and conditions.at is None:
        yield "The Alt-Test holds for one look: freeze the votes with `at` to look again."
    coverage = judge.coverage.value
    if coverage is not None and coverage < WELL_COVERED:
        missing = number_of(round(judge.coverage.n * (1 - coverage)), "item")
        yield f"It gave no verdict on {missing}; votes there count against it."
    yield from map(drift.state_of, drift.watches_of(run, UUID(judge.id)))
    yield from filter(None, [drift.floating_models(run).get(UUID(judge.id))])


@router.post("/{run_id}/gate/ask", response=Requested)
def ask(request: HttpRequest, run_id: Prefix, body: Missing) -> Any:
    """Ask one judge about items with votes on which it has no verdict; `verdicts` says how many.

    One that is new in the run joins it, and is asked about these items alone. `at` is the last
    entry of the ledger whose votes count; without it all do.
    """
    run = run_of(key_of(request, ApiKey.Scope.MANAGE), run_id, "run")
    items, judges = voted_items(run, body.at), run.judges.order_by("position")
    named = (judge for judge in judges if judge.name == body.judge)
    if judge := next(named, None) or by_prefix(judges, body.judge):
        return {"verdicts": ask_missing(run.pk, judge, items)}
    if run.queue.is_tuning:
        raise HttpError(409, IN_WORKSHOP)
    try:
        new = {"judges": [body.judge], "provider": body.provider}
        return {"verdicts": add_judges_to(run.pk, validated(JoiningJudges, new), items)}
    except ConfigInvalid as invalid:
        raise HttpError(409, str(invalid)) from invalid

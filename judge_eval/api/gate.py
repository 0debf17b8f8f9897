"""The gate by REST: may a judge go on, by conditions on the votes that a run has."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Schema
from ninja.errors import HttpError
from pydantic import Field, WithJsonSchema

from humanjudge.lib.text import fixed, listed, number_of
from humanjudge.lib.validation import ConfigInvalid
from judge_eval.api.access import KeyRouter, Prefix
from judge_eval.api.votes import Computing, run_to_read
from judge_eval.findings.cache import request_findings
from judge_eval.findings.filters import Slice
from judge_eval.findings.model import JudgeFindings, RunFindings
from judge_eval.models import Run
from judge_eval.runs import drift
from judge_eval.stats import gate
from judge_eval.stats.estimate import PASSES, WELL_COVERED, Estimate
from voting.models import NO_VOTE, Entry

SIMULATED = "The votes of this run are simulated: a gate is for votes of people."
NOTHING_ASKED = "name a condition: min_agreement, beats_floor, not_worse_than or like_people"
_MOST_ENTRIES = 10**18 - 1

router = KeyRouter("runs")
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(max_length=200), WithJsonSchema({"type": "string", "minLength": 1})]


class Conditions(Schema):
    """What is asked of a judge: names or identifiers of judges, and shares between 0 and 1.

    `at` is the last entry of the ledger whose votes count; without it all do.
    """

    judge: Name = ""
    min_agreement: Share | None = None
    beats_floor: bool = False
    not_worse_than: Name | None = None
    margin: Share | None = None
    like_people: bool = False
    epsilon: Annotated[float, Field(ge=0, lt=1)] | None = None
    at: Annotated[int, Field(ge=0, le=_MOST_ENTRIES)] | None = None


class CheckOut(Schema):
    name: str
    result: Literal["passed", "failed", "too few votes to say"]
    code: Literal[0, 1, 3]
    words: str
    bound: float | None
    value: float | None
    low: float | None
    high: float | None


class Decided(Schema):
    """How it ends: `code` is 0 where all passed, else 1 where one failed, else 3.

    The votes are those up to entry `at` that still stand. `seq` is the entry that these figures
    know, and `ledger_seq` the run's last: where it is larger, ask again.
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
    code: Literal[0, 1, 3]
    result: Literal["passed", "failed", "too few votes to say"]
    checks: list[CheckOut]
    notes: list[str]
    seq: int
    ledger_seq: int


@router.get("/{run_id}/gate", response=Decided | Computing)
def decide(request: HttpRequest, run_id: Prefix, asked: Query[Conditions]) -> Any:
    """Whether a judge meets conditions on the votes of a run, for a build that waits for it.

    `min_agreement` passes where the lower end of the 95 % interval of overall agreement is above
    it, and fails where the upper end is below. `beats_floor` passes where that is claimed, and
    fails where the judge is shown to be worse than a baseline. `not_worse_than` another judge
    passes where the whole 95 % interval of the paired difference is above minus `margin`, and fails
    where it is below. `like_people` is the Alt-Test, by the run's epsilon or another of its grid.
    Everything else is too few votes to say. Simulated votes are refused with 409.

    `state` is `computing` until the figures know every vote, or while judges are being asked.
    """
    run, is_sealed = run_to_read(request, run_id, _part(asked.at))
    checked = _consistent(request, asked)
    if run.queue.is_simulated:
        raise HttpError(409, SIMULATED)
    if checked.at is not None and checked.at > run.board.seq:
        raise _refused("at", f"the ledger of this run ends with {run.board.seq}")
    requested = request_findings(run, _part(checked.at))
    if requested.refused:
        raise HttpError(409, requested.refused)
    # Until something is known of the whole run, nothing is of a part.
    is_it = str(requested.part) == requested.row.part
    figures = requested.findings if is_it else None
    if figures is None or not is_sealed or _is_answering(run, figures):
        return {"state": "computing"}
    return _decided(run, figures, checked)


def _is_answering(run: Run, figures: RunFindings) -> bool:
    """Whether judges are being asked, or have answered what these figures do not know."""
    queue = run.queue
    coming = Entry.objects.filter(
        NO_VOTE, project=queue.project_id, queue=queue, kind=Entry.Kind.VERDICTS, seq__isnull=True
    )
    known = len(figures.judges) == run.judges.count()
    return run.state in Run.AT_WORK or not known or coming.exists()


def _part(at: int | None) -> str:
    return "" if at is None else str(Slice("at", str(at)))


def _refused(field: str, why: str, status: int = 409) -> HttpError:
    """Refuse what is well-formed and cannot be weighed: the document of the API cannot say it."""
    return HttpError(status, f"{field}: {why}")


def _consistent(request: HttpRequest, asked: Conditions) -> Conditions:
    # What is misspelled must not pass.
    if unknown := sorted(request.GET.keys() - Conditions.model_fields.keys()):
        raise ConfigInvalid.at(unknown[0], "there is no such condition")
    if not asked.judge:
        raise _refused("judge", "name one")
    named = asked.beats_floor or asked.like_people or asked.not_worse_than is not None
    if not named and asked.min_agreement is None:
        raise HttpError(409, NOTHING_ASKED)
    if (asked.margin is None) != (asked.not_worse_than is None):
        raise _refused("margin", "it goes with not_worse_than, and that with it")
    if asked.epsilon is not None and not asked.like_people:
        raise _refused("epsilon", "it goes with like_people")
    return asked


def _decided(run: Run, figures: RunFindings, asked: Conditions) -> dict[str, Any]:
    judge, as_of = _named(figures, "judge", asked.judge), figures.as_of
    checks = list(_checks(run, figures, judge, asked))
    end = gate.overall([check.outcome for check in checks])
    return {
        "state": "ready",
        "run": str(run.pk),
        "run_name": run.name,
        "judge": judge.id,
        "judge_name": judge.name,
        "at": as_of.seq if asked.at is None else asked.at,
        "votes": as_of.votes,
        "people": as_of.people,
        "items": as_of.voted,
        "code": int(end),
        "result": end.in_words,
        "checks": [
            {
                "name": check.name,
                "result": check.outcome.in_words,
                "code": int(check.outcome),
                "words": check.words,
                **{of: _rounded(getattr(check, of)) for of in ("bound", "value", "low", "high")},
            }
            for check in checks
        ],
        "notes": list(_notes(run, judge)),
        "seq": as_of.seq,
        "ledger_seq": run.board.seq,
    }


def _rounded(share: float | None) -> float | None:
    """Return it as precise as it is the same on every machine."""
    return None if share is None else round(share, 6) + 0.0


def _named(figures: RunFindings, field: str, name: str) -> JudgeFindings:
    judges = [judge for judge in figures.judges if judge.name == name]
    judges = judges or [judge for judge in figures.judges if judge.id.startswith(name.lower())]
    if len(judges) != 1:
        names = listed([judge.name for judge in figures.judges]) or "none"
        why = "several judges have this name; give an identifier" if judges else f"there is {names}"
        raise _refused(field, why, 409 if judges else 404)
    return judges[0]


def _checks(
    run: Run, figures: RunFindings, judge: JudgeFindings, asked: Conditions
) -> Iterator[gate.Check]:
    place, claims = figures.judges.index(judge), figures.claims
    if asked.min_agreement is not None:
        yield gate.min_agreement(judge.overall, asked.min_agreement)
    if asked.beats_floor:
        floor = [(n, other) for n, other in enumerate(figures.judges) if other.is_baseline]
        worse_than = [other.name for n, other in floor if claims.beats[n][place]]
        yield gate.beats_floor(judge.beats_floor, worse_than)
    if asked.not_worse_than is not None and asked.margin is not None:
        other = _named(figures, "not_worse_than", asked.not_worse_than)
        column = figures.judges.index(other)
        parts = (claims.difference, claims.difference_low, claims.difference_high)
        value, low, high = (matrix[place][column] for matrix in parts)
        difference = Estimate(value, low, high, why="no vote on an item that both were asked about")
        if value is not None:
            difference = Estimate(value, low, high)
        yield gate.not_worse_than(other.name, difference, asked.margin)
    if asked.like_people:
        yield _like_people(run, figures, judge, asked.epsilon)


def _like_people(
    run: Run, figures: RunFindings, judge: JudgeFindings, wanted: float | None
) -> gate.Check:
    test = figures.alt_test
    tested = next((each for each in test.judges if each.id == judge.id), None) if test else None
    epsilon = run.epsilon if wanted is None else wanted
    if test is None or tested is None or tested.winning_rates is None:
        why = tested.words if tested else figures.alt_test_why or ""
        return gate.like_people(None, PASSES, epsilon, why)
    rates = {float(key): rate for key, rate in tested.winning_rates.items()}
    if epsilon not in rates:
        grid = listed([fixed(each, 2) for each in sorted(rates)])
        raise _refused("epsilon", f"must be one of {grid}")
    return gate.like_people(rates[epsilon], PASSES, epsilon, tested.words)


def _notes(run: Run, judge: JudgeFindings) -> Iterator[str]:
    coverage = judge.coverage.value
    if coverage is not None and coverage < WELL_COVERED:
        missing = number_of(round(judge.coverage.n * (1 - coverage)), "item")
        yield f"It gave no verdict on {missing}; votes there count against it."
    yield from drift.changes_of(run, UUID(judge.id))
    yield from filter(None, [drift.floating_models(run).get(UUID(judge.id))])

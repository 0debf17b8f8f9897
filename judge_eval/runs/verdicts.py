"""Verdicts: made of the calls in both orders and all samples, and put into the ledger when all of a
pair are final, which opens it for voting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from judge_eval.config.run_config import RunConfig, parse
from judge_eval.models import Call, Judge, Run, Verdict
from judge_eval.prompts.orders import AllSamplesFailed, Majority, answer_in, majority
from judge_eval.prompts.parse import ParsedVerdict
from judge_eval.runs import pairing, providers
from judge_eval.runs.bulk import update_rows
from judge_eval.services import add_judges, model_fingerprint
from voting.ledger.scheduler import nudge
from voting.models import Entry, Item

AT_ONCE = 500
ORDERS = {"AB": "as stored", "BA": "swapped"}

_WRITTEN = frozenset(
    "state judge order winner consistent picks first_picks sample_consistency score_a score_b "
    "feedback error latency_ms decided_at".split()
)
_READ = (
    "verdict order sample state winner score_a score_b reason error reported_model "
    "latency_ms".split()
)
Decision = tuple[Verdict, dict[str, Any]]


class _NoVerdict(Exception):
    """The calls give none; the text says why."""


def settle(verdicts: Collection[int]) -> None:
    """Make verdicts of calls that are all final, and open the pairs that this completes."""
    by_verdict = _final_calls(verdicts)
    final = list(Verdict.objects.filter(pk__in=by_verdict).order_by("pk"))
    # One object for each judge: what it calls itself is found out once, for all its verdicts. The
    # config is large, and only a judge that calls itself something new needs it.
    about = Judge.objects.select_related("run").defer("run__config")
    judges = about.in_bulk({verdict.judge_id for verdict in final})
    for verdict in final:
        verdict.judge = judges[verdict.judge_id]
    # At the beginning of a run many judges get their names; the run is locked once for all.
    with transaction.atomic():
        decisions = [(verdict, _fields(verdict, by_verdict[verdict.pk])) for verdict in final]
    _decide([(verdict, fields) for verdict, fields in decisions if _is_news(verdict, fields)])


def _final_calls(verdicts: Collection[int]) -> dict[int, list[Call]]:
    """Return the calls of those verdicts of which none is still to be made."""
    by_verdict: dict[int, list[Call]] = defaultdict(list)
    calls = Call.objects.filter(verdict__in=verdicts).order_by("verdict", "order", "sample")
    for call in calls.only(*_READ):
        assert call.verdict_id is not None  # it was asked for
        by_verdict[call.verdict_id].append(call)
    return {
        verdict: answers
        for verdict, answers in by_verdict.items()
        if all(call.state != Call.State.WAITING for call in answers)
    }


def _is_news(verdict: Verdict, fields: dict[str, Any]) -> bool:
    return any(getattr(verdict, name) != value for name, value in fields.items())


def settle_left(run_id: UUID) -> None:
    """Settle what nobody came to settle: who wrote the last call down was lost right after."""
    calls = Call.objects.filter(verdict=OuterRef("pk"))
    left = Verdict.objects.filter(
        Exists(calls),
        # Not by those that wait: before it has statistics, PostgreSQL would read the index of all
        # that do for each verdict.
        ~Exists(calls.exclude(state__in=(Call.State.DONE, Call.State.FAILED))),
        judge__run=run_id,
        state=Verdict.State.WAITING,
    )
    settle(list(left.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]))


def _decide(decisions: Sequence[Decision]) -> None:
    """Write verdicts, and open the pairs of which they were the last: all or nothing."""
    if not decisions:
        return
    now, pairs = timezone.now(), {verdict.item_id for verdict, _ in decisions}
    with transaction.atomic():
        # Of two who settle the last verdicts on a pair at the same time, the second must see it.
        locked = Item.objects.select_for_update(no_key=True).filter(pk__in=pairs)
        list(locked.order_by("pk").values_list("pk"))
        verdicts = Verdict.objects.filter(item__in=pairs).select_for_update(no_key=True)
        rows = verdicts.order_by("pk").values_list("pk", "state", "decided_at", "item")
        found = {row[0]: row for row in rows}
        as_read = [
            # What is asked again meanwhile is settled by whoever brings the answer.
            (verdict, fields | {"decided_at": now})
            for verdict, fields in decisions
            if found[verdict.pk][1:3] == (verdict.state, verdict.decided_at)
        ]
        update_rows(_WRITTEN, as_read)
        decided = {verdict.pk for verdict, _ in as_read}
        unfinished = {
            pair
            for pk, state, _, pair in found.values()
            if state == Verdict.State.WAITING and pk not in decided
        }
        touched = {verdict.item_id for verdict, _ in as_read}
        open_those_final(touched - unfinished, amend=True)


def _fields(verdict: Verdict, calls: Sequence[Call]) -> dict[str, Any]:
    try:
        orders = {order: _majority(order, calls) for order in sorted({c.order for c in calls})}
        judge = _competitor(verdict, calls)
    except _NoVerdict as reason:
        return {"state": Verdict.State.FAILED, "error": str(reason)}
    both = len(orders) == 2
    said = answer_in({order: most.verdict for order, most in orders.items()})
    latencies = [call.latency_ms for call in calls if call.latency_ms is not None]
    several = len(calls) > len(orders)
    rates = [most.consistency_rate for most in orders.values()]
    return {
        "state": Verdict.State.DONE,
        "judge": judge,
        "order": Verdict.Order.BOTH if both else next(iter(orders)),
        "winner": said.winner,
        "consistent": said.consistent,
        "picks": list(said.picks),
        "first_picks": said.first_picks,
        "sample_consistency": sum(rates) / len(rates) if several else None,
        "score_a": said.score_a,
        "score_b": said.score_b,
        "feedback": said.reason,
        "latency_ms": sum(latencies) if latencies else None,
    }


def _majority(order: str, calls: Sequence[Call]) -> Majority:
    samples = [call for call in calls if call.order == order]
    try:
        return majority([_said(call) for call in samples])
    except AllSamplesFailed as failed:
        error = next(call.error for call in samples if call.error)
        raise _NoVerdict(f"{ORDERS[order]}: {error}") from failed


def _said(call: Call) -> ParsedVerdict | None:
    if call.state != Call.State.DONE:
        return None
    return ParsedVerdict(call.winner, call.score_a, call.score_b, call.reason)  # type: ignore[arg-type]


def _competitor(verdict: Verdict, calls: Sequence[Call]) -> Judge:
    """Return who has answered: the judge that was asked, or a new one if the model has changed."""
    names = sorted({call.reported_model for call in calls if call.state == Call.State.DONE})
    if len(names) > 1:
        raise _NoVerdict(f"it answered as {' and as '.join(names)}, which are two judges")
    judge, reported = verdict.judge, names[0]
    if judge.reported_model == reported:
        return judge
    config = parse(judge.run.config)
    with transaction.atomic(savepoint=False):
        run = Run.objects.select_for_update(no_key=True).get(pk=judge.run_id)
        judge.refresh_from_db(fields=["fingerprint", "reported_model"])
        return _named(run, judge, reported, config)


def _named(run: Run, judge: Judge, reported: str, config: RunConfig) -> Judge:
    if judge.reported_model == "":
        judge.reported_model = reported
        judge.fingerprint = _fingerprint(run, judge, config)
        judge.save(update_fields=["fingerprint", "reported_model"])
    if judge.reported_model == reported:
        return judge
    known = run.judges.filter(
        provider=judge.provider, model=judge.model, reported_model=reported
    ).first()
    return known or _changed(run, judge, reported, config)


def _changed(run: Run, judge: Judge, reported: str, config: RunConfig) -> Judge:
    changed = Judge(
        run=run,
        name=f"{judge.model} ({reported})"[:200],
        provider=judge.provider,
        model=judge.model,
        reported_model=reported,
    )
    changed.fingerprint = _fingerprint(run, changed, config)
    text = f"{judge.name} now answers as {reported}: it is a new judge and starts at 1000."
    run.record("judge_changed", text, judge=str(judge.pk))
    return add_judges(run, [changed])[0]


def _fingerprint(run: Run, judge: Judge, config: RunConfig) -> str:
    """Name a judge by what it calls itself, and also by what it is asked for if that is taken.

    Two names of a config may lead to one model: each keeps its own place.
    """
    usual = model_fingerprint(config, judge.provider, judge.reported_model)
    if not run.judges.filter(fingerprint=usual).exclude(pk=judge.pk).exists():
        return usual
    both = f"{judge.model}, which answers as {judge.reported_model}"
    return model_fingerprint(config, judge.provider, both)


def decide(verdict_id: int) -> None:
    """Ask one judge about one comparison, once; a repeat finds the verdict and does nothing."""
    verdict = (
        Verdict.objects.select_related("judge", "item__a__picture", "item__b__picture")
        # The whole config may be long.
        .annotate(verdict_orders=F("judge__run__config__verdict_orders"))
        .get(pk=verdict_id)
    )
    if verdict.state == Verdict.State.WAITING:
        Verdict.objects.filter(pk=verdict_id, state=Verdict.State.WAITING).update(
            decided_at=timezone.now(), **answer_of_baseline(verdict, verdict.verdict_orders)
        )
    open_if_final(verdict.item_id)


def answer_of_baseline(verdict: Verdict, verdict_orders: str | None) -> dict[str, Any]:
    """Return the fields of a verdict that is asked for here; its pair has its outputs.

    `verdict_orders` is the run's, by which its judges are asked; an imported run states none.
    """
    orders = ("AB", "BA") if verdict_orders in (None, "both") else (pairing.toss(verdict),)
    try:
        return providers.ask_baseline(verdict.judge, verdict.item, orders)
    except providers.ProviderFailed as failure:
        return {"state": Verdict.State.FAILED, "error": str(failure)}


def open_if_final(item_id: UUID) -> None:
    """Open a comparison whose verdicts are all final, and put them into the ledger, once."""
    open_those_final([item_id])


def open_those_final(pairs: Collection[UUID], *, amend: bool = False) -> None:
    """Open comparisons whose verdicts are all final, and put them into the ledger, once.

    With `amend`, those of open ones are put there again if one is another than before.
    """
    wanted = Q(unusable="") if amend else Q(unusable="", opened_at__isnull=True)
    # No savepoint: who has begun a transaction wants all of it or none.
    with transaction.atomic(savepoint=False):
        comparisons = (
            Item.objects.select_for_update(of=("self",), no_key=True)
            .select_related("queue__run")
            .defer("queue__run__config")
            .filter(wanted, pk__in=pairs)
            .order_by("pk")
        )
        final = _final(list(comparisons))
        opened = [pair.pk for pair, _ in final if pair.opened_at is None]
        Item.objects.filter(pk__in=opened).update(opened_at=timezone.now())
        last = _last_words([pair.pk for pair, _ in final])
        entries = [verdicts_entry(pair, verdicts) for pair, verdicts in final]
        # An import has put them there already.
        _append([entry for entry in entries if entry.payload != last.get(entry.item_id)])


def _final(comparisons: list[Item]) -> list[tuple[Item, list[Verdict]]]:
    """Return those of which no verdict is missing, with all their verdicts."""
    verdicts: dict[UUID, list[Verdict]] = {pair.pk: [] for pair in comparisons}
    about = Verdict.objects.filter(item__in=verdicts).select_related("judge")
    for verdict in about.order_by("judge__position"):
        verdicts[verdict.item_id].append(verdict)
    return [
        (pair, verdicts[pair.pk])
        for pair in comparisons
        if all(verdict.state != Verdict.State.WAITING for verdict in verdicts[pair.pk])
    ]


def _last_words(pairs: Collection[UUID]) -> dict[UUID | None, Any]:
    """Return what the ledger says last of the verdicts on each of some comparisons."""
    entries = Entry.objects.filter(item__in=pairs, kind=Entry.Kind.VERDICTS)
    return dict(entries.order_by("pk").values_list("item", "payload"))


def write_verdicts(item: Item, verdicts: list[Verdict]) -> None:
    """Append all judges' final verdicts on a comparison to the ledger."""
    _append([verdicts_entry(item, verdicts)])


def _append(entries: list[Entry]) -> None:
    Entry.objects.bulk_create(entries)
    for project in {entry.project_id for entry in entries}:
        transaction.on_commit(partial(nudge, project))


def verdicts_entry(item: Item, verdicts: list[Verdict]) -> Entry:
    """Return the entry, not saved yet, that puts final verdicts into the ledger."""
    queue = item.queue
    return Entry(
        project_id=queue.project_id,
        kind=Entry.Kind.VERDICTS,
        at=timezone.now(),
        queue=queue,
        item=item,
        payload={
            "run": str(queue.run.pk),
            "verdicts": [
                {
                    "judge": str(verdict.judge_id),
                    "position": verdict.judge.position,
                    "fingerprint": verdict.judge.fingerprint,
                    "winner": verdict.winner or None,
                    "consistent": verdict.consistent,
                }
                for verdict in verdicts
            ],
        },
    )

"""Verdicts: made of the calls in both orders and all samples, and put into the ledger when all of a
pair are final, which opens it for voting.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from time import perf_counter
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from pydantic import TypeAdapter

from humanjudge.core.extensions import HookFailed, calling, storable
from humanjudge.core.strict_json import JsonObject
from judge_eval.judging.baselines import BASELINES, Opinion, opinion_of_single
from judge_eval.judging.config.judge_types import JUDGE_TYPES, Answer, JudgeType, NoVerdict
from judge_eval.judging.config.run_config import ONE_MODEL, JudgePart, JudgeSpec, RunConfig, parse
from judge_eval.judging.hook_api import AnswersMissing, RunJudgeHelpers
from judge_eval.judging.prompts.orders import CombinedVerdict, answer_in, majority
from judge_eval.judging.prompts.parse import ParsedVerdict
from judge_eval.judging.providers.errors import LEFT_OUT
from judge_eval.judging.results import Fields, update_rows
from judge_eval.ledger.objects import (
    item_hashes,
    last_payloads,
    record_objects,
    verdict_hash,
    verdicts_by_item,
)
from judge_eval.models import REPEATED, REPEATS_APART, SAMPLES_APART, Call, Judge, Run, Verdict
from judge_eval.runs.queries import is_drawn, switched_off
from judge_eval.runs.services import add_judges, couple_items, model_fingerprint
from voting.items.choices import MILLION
from voting.items.kinds import is_ordered, kind_of, options_of
from voting.items.order import keyed_number
from voting.ledger import ledger
from voting.models import Entry, Inference, Item, Queue

AT_ONCE = 500
# The run is locked meanwhile.
BASELINES_AT_ONCE = 100

LONGEST_ERROR = 10_000
_ANSWER = TypeAdapter(Answer)

# In the metadata of an output whose text is not here: how many characters it has.
OUTPUT_LENGTH = "output_length"

_UPDATED_FIELDS = frozenset(
    "state judge order winner consistent picks first_picks sample_consistency score_a score_b "
    "feedback error labels latency_ms decided_at".split()
)
_READ = (
    "verdict order sample state winner score_a score_b reason error provider model reported_model "
    "latency_ms".split()
)


def settle(verdicts: Collection[int]) -> None:
    """Make verdicts of calls that are all final, and open the pairs that this completes."""
    calls: dict[int, list[Call]] = defaultdict(list)
    of_verdicts = Call.objects.exclude(REPEATED).filter(verdict__in=verdicts)
    rows = of_verdicts.order_by("verdict", "order", "sample")
    for call in rows.only(*_READ):
        assert call.verdict_id is not None  # it was asked for
        calls[call.verdict_id].append(call)
    ready = [pk for pk, group in calls.items() if all(c.state != Call.State.WAITING for c in group)]
    rows_ready = Verdict.objects.filter(pk__in=ready).select_related("item__queue")
    final = list(rows_ready.order_by("pk"))
    # One object for each judge: what it calls itself is found out once, for all its verdicts. The
    # config is large, and only a judge that calls itself something new needs it.
    about = Judge.objects.select_related("run").defer("run__config")
    judges = about.in_bulk({verdict.judge_id for verdict in final})
    decisions, to_make = [], list[Call]()
    # At the beginning of a run many judges get their names; the run is locked once for all.
    with transaction.atomic():
        off = switched_off() if any(judge.recipe for judge in judges.values()) else ()
        for verdict in final:
            verdict.judge = judges[verdict.judge_id]
            if verdict.judge.recipe and verdict.judge.recipe["type"] in off:
                continue  # it is settled once the run goes on
            fields, unasked = verdict_or_calls(verdict, calls[verdict.pk])
            to_make += unasked
            if fields and any(getattr(verdict, name) != new for name, new in fields.items()):
                decisions.append((verdict, fields))
        # Two may settle the same verdict at once, and ask the same.
        Call.objects.bulk_create(to_make, batch_size=1000, ignore_conflicts=True)
    decide(decisions)


def settle_left(run_id: UUID) -> None:
    """Settle what nobody came to settle: who wrote the last call down was lost right after."""
    calls = Call.objects.exclude(REPEATED).filter(verdict=OuterRef("pk"))
    left = Verdict.objects.filter(
        Exists(calls),
        # Not by those that wait: before it has statistics, PostgreSQL would read the index of all
        # that do for each verdict.
        ~Exists(calls.exclude(state__in=(Call.State.DONE, Call.State.FAILED))),
        judge__run=run_id,
        state=Verdict.State.WAITING,
    )
    settle(list(left.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]))


def decide(decisions: Sequence[tuple[Verdict, Fields]]) -> None:
    """Write verdicts, and open the pairs of which they were the last: all or nothing."""
    if not decisions:
        return
    now, pairs = timezone.now(), {verdict.item_id for verdict, _ in decisions}
    with transaction.atomic():
        # Of two who settle the last verdicts on a pair at the same time, the second must see it.
        locked = Item.objects.select_for_update(no_key=True).filter(pk__in=pairs)
        list(locked.order_by("pk").values_list("pk"))
        rows = Verdict.objects.filter(item__in=pairs).select_for_update(no_key=True).order_by("pk")
        current = {row.pk: row for row in rows.only("state", "decided_at", "item_id")}
        as_read = [
            # What is asked again meanwhile is settled by whoever brings the answer.
            (verdict, fields | {"decided_at": now})
            for verdict, fields in decisions
            if (verdict.state, verdict.decided_at)
            == (current[verdict.pk].state, current[verdict.pk].decided_at)
        ]
        update_rows(_UPDATED_FIELDS, as_read)
        for verdict, _ in as_read:
            del current[verdict.pk]
        waiting = {v.item_id for v in current.values() if v.state == Verdict.State.WAITING}
        decided = {verdict.item_id for verdict, _ in as_read}
        open_those_final(decided - waiting, amend=True)
        # Judges that join, or are asked again, answer on items that are open one by one.
        record_changed(decided & waiting)


def verdict_or_calls(
    verdict: Verdict, calls: Sequence[Call] = ()
) -> tuple[Fields | None, list[Call]]:
    """Let the type of its judge decide a verdict by calls that are final.

    Return its fields, or the calls that have to be made before there are any.
    """
    helpers = helpers_of(verdict, calls)
    if helpers is None:
        return None, []  # nothing falls back on something else: the run is stopped
    try:
        answer = answer_of(verdict, helpers)
        judge = verdict.judge if verdict.judge.recipe else _competitor(verdict, calls)
    except AnswersMissing as asks:
        if any(call.error == LEFT_OUT for call in calls):
            return _failed_fields(LEFT_OUT), []
        return None, calls_for(verdict, asks.models)
    except (NoVerdict, HookFailed) as reason:
        helpers.write()
        return _failed_fields(storable(reason, LONGEST_ERROR) or "it came to no verdict"), []
    helpers.write()
    latencies = [call.latency_ms for call in calls if call.latency_ms is not None]
    return {
        **_done_fields(verdict.item, answer, _order({call.order for call in calls})),
        "judge": judge,
        "sample_consistency": answer.sample_consistency,
        "latency_ms": sum(latencies) if latencies else None,
    }, []


def helpers_of(verdict: Verdict, calls: Sequence[Call]) -> RunJudgeHelpers | None:
    """Return what a judge decides a verdict with; None where its type is not here as it was."""
    recipe = verdict.judge.recipe
    kind = JUDGE_TYPES.get(recipe["type"] if recipe else ONE_MODEL)
    if kind is None or (recipe and recipe["version"] != kind.version):
        return None
    by_model: dict[JudgePart, list[Call]] = defaultdict(list)
    for call in calls:
        by_model[JudgePart.model_construct(id=call.model, provider=call.provider)].append(call)
    return RunJudgeHelpers(
        verdict.judge.run,
        kind,
        item=verdict.item,
        models=spec_of(verdict.judge).models,
        answered={
            model: partial(answer_by_calls, verdict, model_calls)
            for model, model_calls in by_model.items()
        },
    )


def answer_of(verdict: Verdict, helpers: RunJudgeHelpers) -> Answer:
    """Let the type of its judge answer; raise Asks for calls to be made, NoVerdict, HookFailed."""
    kind, judge = helpers.extension, verdict.judge
    assert isinstance(kind, JudgeType)
    with calling(kind, "verdict", NoVerdict, AnswersMissing, HookFailed):
        answer = kind.verdict(spec_of(judge), helpers)
        return _checked_answer(answer, verdict) if judge.recipe else answer


def spec_of(judge: Judge) -> JudgeSpec:
    if judge.recipe is None:
        return JudgeSpec.model_construct(id=judge.model, provider=judge.provider)
    recipe_fields = {key: judge.recipe[key] for key in ("type", "parts", "options")}
    return JudgeSpec.model_validate({"id": judge.name, "provider": judge.provider, **recipe_fields})


def calls_for(verdict: Verdict, models: Sequence[JudgePart]) -> list[Call]:
    """Return the calls by which models are asked, each apart by the numbers of its samples."""
    config = verdict.judge.run.config
    assert config  # models judge it
    specs = [spec for spec in config["judges"] if spec["id"] == verdict.judge.name]
    about: JsonObject = next(iter(specs), {})
    samples = about.get("samples") or config["judging"]["samples"]
    repeats = about.get("repeats", 1)
    all_models = spec_of(verdict.judge).models
    places = [all_models.index(model) + 1 for model in models]
    firsts = [SAMPLES_APART * place if verdict.judge.recipe else 0 for place in places]
    return [
        Call(
            run=verdict.judge.run,
            purpose=Call.Purpose.JUDGE,
            provider=model.provider,
            model=model.id,
            verdict=verdict,
            order=order,
            sample=first + REPEATS_APART * repeat + sample,
        )
        for model, first in zip(models, firsts, strict=True)
        for order in orders_of(verdict, about.get("orders") or config["verdict_orders"])
        for repeat in range(repeats)
        for sample in range(samples)
    ]


def answer_by_calls(verdict: Verdict, calls: Sequence[Call]) -> Answer:
    """Return what one model says of an item by all calls to it."""
    try:
        samples = {
            order: _majority(verdict, order, [call for call in calls if call.order == order])
            for order in sorted({call.order for call in calls})
        }
        if verdict.judge.recipe:
            # A model of a judge answers by the name by which it has answered first.
            first = _first_name(verdict.judge.pk, calls[0].provider, calls[0].model)
            _one_name(calls, {first} - {""})
    except NoVerdict as reason:
        return Answer(error=str(reason))
    rates = [rate for _, rate in samples.values()]
    answer = answer_in({order: raw for order, (raw, _) in samples.items()})
    consistency = sum(rates) / len(rates) if len(calls) > len(samples) else None
    return _answer_of_combined(answer, sample_consistency=consistency)


def _answer_of_combined(answer: CombinedVerdict, sample_consistency: float | None = None) -> Answer:
    return Answer(
        winner=answer.winner,
        reason=answer.reason,
        score_a=answer.score_a,
        score_b=answer.score_b,
        consistent=answer.consistent,
        picks=answer.picks,
        sample_consistency=sample_consistency,
    )


def _one_name(calls: Sequence[Call], names: Collection[str] = ()) -> str:
    answered = (call.reported_model for call in calls if call.state == Call.State.DONE)
    all_names = sorted({*names, *answered})
    if len(all_names) > 1:
        raise NoVerdict(f"it answered as {' and as '.join(all_names)}, which are two judges")
    return all_names[0]


@lru_cache(maxsize=1000)
def _first_name(judge: UUID, provider: str, model: str) -> str:
    calls = Call.objects.filter(verdict__judge=judge, provider=provider, model=model)
    answered = calls.filter(state=Call.State.DONE).order_by("pk")
    return answered.values_list("reported_model", flat=True).first() or ""


def _checked_answer(answer: object, verdict: Verdict) -> Answer:
    """Refuse what no ballot knows: an extension may return anything."""
    if not isinstance(answer, Answer):
        raise TypeError(f"it returned {type(answer).__name__}, no Answer")
    answer = _ANSWER.validate_python(asdict(answer))
    if not answer.winner:
        raise NoVerdict(answer.error or answer.reason or "it came to no verdict")
    # A judge in two minds says so by a tie, also where people are not offered one.
    undecided = kind_of(verdict.item.queue).without_side[:1]
    if answer.winner not in {*undecided, *verdict.item.queue.ballot}:
        raise ValueError(f"{answer.winner!r} is no choice here")
    return answer


def _order(orders: Collection[str]) -> str:
    return Verdict.Order.BOTH if len(orders) == 2 else next(iter(orders), Verdict.Order.STORED)


def _failed_fields(error: str) -> Fields:
    return {"state": Verdict.State.FAILED, "error": error}


def _done_fields(item: Item, answer: Answer, order: str) -> Fields:
    kind, options = kind_of(item.queue), options_of(item.queue)
    # Of a single output nothing stood first.
    picks = list(answer.picks) if "orders" in kind.figures else []
    return {
        "state": Verdict.State.DONE,
        "order": order,
        "winner": answer.winner,
        "consistent": answer.consistent,
        "score_a": answer.score_a,
        "score_b": answer.score_b,
        "picks": picks,
        "first_picks": picks.count("A") if picks else None,
        "feedback": answer.reason,
        "labels": kind.labelled(answer.winner, options) or None,
    }


def _majority(verdict: Verdict, order: str, samples: Sequence[Call]) -> tuple[ParsedVerdict, float]:
    kind = kind_of(verdict.item.queue)
    most = majority(
        [
            ParsedVerdict(call.winner, call.score_a, call.score_b, call.reason)
            if call.state == Call.State.DONE
            else None
            for call in samples
        ],
        # No answer to a question about one output stands between the others.
        otherwise=next(iter(kind.without_side), ""),
    )
    if most is None:
        reason = next(call.error for call in samples if call.error)
        has_orders = "orders" in kind.figures
        raise NoVerdict(f"{Verdict.Order(order).label}: {reason}" if has_orders else reason)
    if not most[0].winner:
        raise NoVerdict(most[0].reason)
    return most


def _competitor(verdict: Verdict, calls: Sequence[Call]) -> Judge:
    """Return who has answered: the judge that was asked, or a new one if the model has changed."""
    judge, reported = verdict.judge, _one_name(calls)
    if judge.reported_model == reported:
        return judge
    config = parse(judge.run.config)
    with transaction.atomic(savepoint=False):
        run = Run.objects.select_for_update(no_key=True).get(pk=judge.run_id)
        judge.refresh_from_db(fields=["fingerprint", "reported_model"])
        if judge.reported_model == "":
            judge.reported_model = reported
            judge.fingerprint = _fingerprint(run, judge, config)
            judge.save(update_fields=["fingerprint", "reported_model"])
            record_objects(run)
        if judge.reported_model == reported:
            return judge
        names = {"provider": judge.provider, "model": judge.model, "reported_model": reported}
        name = f"{judge.name} ({reported})"[:200]
        # Not a variant that asks the same model otherwise.
        same = run.judges.filter(Q(name=name) | Q(name=judge.model), **names)
        if existing := same.order_by("position").first():
            return existing
        changed = Judge(run=run, name=name, is_tuned=judge.is_tuned, **names)
        changed.description = judge.description
        changed.fingerprint = _fingerprint(run, changed, config)
        text = f"{judge.name} now answers as {reported}: it is a new judge and starts at 1000."
        run.record("judge_changed", text, judge=str(judge.pk))
        [added] = add_judges(run, [changed])
        record_objects(run)
        return added


def _fingerprint(run: Run, judge: Judge, config: RunConfig) -> str:
    """Name a judge by what it calls itself, and also by what it is asked for if that is taken.

    Two names of a config may lead to one model: each keeps its own place.
    """
    about = (config, judge.name, judge.provider, judge.model)
    usual = model_fingerprint(*about, judge.reported_model)
    if not run.judges.filter(fingerprint=usual).exclude(pk=judge.pk).exists():
        return usual
    return model_fingerprint(*about, f"{judge.model}, which answers as {judge.reported_model}")


def answer_baselines(run: Run) -> bool:
    """Let baselines answer on pairs that are drawn; return whether there may be more of them."""
    ready = Verdict.objects.filter(
        is_drawn("item__"),
        judge__run=run,
        judge__provider=Judge.BASELINE,
        state=Verdict.State.WAITING,
    ).select_related("judge", "item__a", "item__b", "item__queue")
    waiting = list(ready.order_by("pk")[:BASELINES_AT_ONCE])
    orders = (run.config or {}).get("verdict_orders", "both")
    decide(
        [
            (verdict, answer_of_baseline(verdict, verdict.judge.own_orders or orders))
            for verdict in waiting
        ]
    )
    return len(waiting) == BASELINES_AT_ONCE


def answer_of_baseline(verdict: Verdict, verdict_orders: str) -> Fields:
    """Return the fields of a baseline's verdict in these orders; its pair has its outputs."""
    judge, item, started = verdict.judge, verdict.item, perf_counter()
    raw = {
        order: ParsedVerdict(opinion.winner, opinion.score, reason=opinion.reason)
        for order in orders_of(verdict, verdict_orders)
        if (opinion := _opinion(judge, item, order))
    }
    if not raw:
        return _failed_fields(f"no provider answers for {judge.name!r}")
    answer = _answer_of_combined(answer_in(raw))
    return _done_fields(item, answer, _order(raw)) | {
        "latency_ms": (perf_counter() - started) * 1000
    }


def _opinion(judge: Judge, item: Item, order: str) -> Opinion | None:
    if not judge.is_baseline:
        return None
    # An item that is imported twice is the same item, whatever its number here.
    seed = f"{item.external_id or item.pk} {order}"
    if item.b is None:
        about = judge.name, item.queue.kind, item.queue.ballot, seed
        return opinion_of_single(*about, _text_of(item.a))
    baseline, outputs = BASELINES.get(judge.model or judge.name), item.displayed(left=order[0])
    first, second = map(_text_of, outputs)
    return baseline(first, second, seed) if baseline else None


def _text_of(output: Inference) -> str:
    """Return an output; where only its length is known, as many blanks."""
    return output.output or " " * output.metadata.get(OUTPUT_LENGTH, 0)


def orders_of(verdict: Verdict, verdict_orders: str) -> Sequence[str]:
    """Return the orders in which a judge is shown a pair: both, or one, drawn for ever or fixed.

    Where it is drawn, all judges of a pair are shown the same one, and so are the baselines.
    """
    if verdict.item.b_id is None:
        return ("AB",)
    if verdict_orders != "random":
        fixed = {"both": ("AB", "BA"), "BA": ("BA",)}
        return fixed.get(verdict_orders, ("AB",))
    a, b = verdict.item.pair
    # Not by their numbers: a copy of the run shows the same first, and finds the stored reply.
    first, second = sorted((a, b), key=lambda output: output.generator)
    names = (a.prompt, first.generator, second.generator)
    on_the_left = second if keyed_number(settings.SECRET_KEY, "order", *names) & 1 else first
    return ("AB",) if on_the_left is a else ("BA",)


def open_those_final(pairs: Collection[UUID], *, amend: bool = False) -> None:
    """Open pairs whose verdicts are all final, and put these into the ledger, once.

    With `amend`, those of open ones are put there again if one is another than before.
    """
    is_open = Q(opened_at__isnull=False)
    # One that a curator excluded stays open behind that, and its verdicts stay up to date.
    to_open = Q(unusable="") | is_open if amend else Q(unusable="") & ~is_open
    # No savepoint: who has begun a transaction wants all of it or none.
    with transaction.atomic(savepoint=False):
        items = (
            Item.objects.select_for_update(of=("self",), no_key=True)
            .select_related("a", "b", "queue__run")
            .defer("queue__run__config")
            .filter(to_open, pk__in=pairs)
            .order_by("pk")
        )
        verdicts = verdicts_by_item(items)
        final = [
            item
            for item in items
            if all(verdict.state != Verdict.State.WAITING for verdict in verdicts[item.pk])
        ]
        opened = [item.pk for item in final if item.opened_at is None]
        Item.objects.filter(pk__in=opened).update(opened_at=timezone.now())
        # An import has put some there already.
        ledger.record(*changed_entries(final, verdicts))


def changed_entries(
    items: Collection[Item], verdicts: Mapping[UUID, Sequence[Verdict]]
) -> list[Entry]:
    """Return new entries, not saved yet, for items that differ from the last entries about them."""
    last = last_payloads(items)
    first = [item for item in items if item.pk not in last]
    for queue in {item.queue for item in first}:
        couple_items(queue, [item for item in first if item.queue == queue])
    entries = {item.pk: verdicts_entry(item, verdicts[item.pk]) for item in items}
    return [
        entry
        for pk, entry in entries.items()
        if _covered_fields(entry.payload) != _covered_fields(last.get(pk))
    ]


def _covered_fields(payload: JsonObject | None) -> JsonObject:
    # How many votes it wants is told by entries of another kind, too.
    return {name: value for name, value in (payload or {}).items() if name != "votes_wanted"}


def record_changed(pairs: Collection[UUID]) -> None:
    """Put items that the ledger knows into it again where they or their verdicts have changed."""
    if not pairs:
        return
    entries = Entry.objects.filter(item=OuterRef("pk"), kind=Entry.Kind.VERDICTS)
    items = Item.objects.filter(Exists(entries), pk__in=pairs).order_by("pk")
    known_items = items.select_related("a", "b", "queue__run").defer("queue__run__config")
    ledger.record(*changed_entries(known_items, verdicts_by_item(known_items)))


def verdicts_entry(item: Item, verdicts: Sequence[Verdict]) -> Entry:
    """Return the entry, not saved yet, that puts an item and what is final into the ledger.

    It says what claims are made of: votes that are asked for because people disagree come later.
    """
    queue = item.queue
    return Entry(
        project_id=queue.project_id,
        kind=Entry.Kind.VERDICTS,
        at=timezone.now(),
        queue=queue,
        item=item,
        payload={
            "run": str(queue.run.pk),
            "prompt": item.prompt_key,
            "votes_wanted": item.votes_wanted - item.extra_votes,
            **item_hashes(item, verdicts),
            "verdicts": [
                {
                    "judge": str(verdict.judge_id),
                    "position": verdict.judge.position,
                    "fingerprint": verdict.judge.fingerprint,
                    **({"tuned": True} if verdict.judge.is_tuned else {}),
                    "winner": verdict.winner or None,
                    "consistent": verdict.consistent,
                    **({"score": score} if (score := _score(verdict, queue)) is not None else {}),
                    "sha256": verdict_hash(queue.run, verdict),
                }
                for verdict in verdicts
                if verdict.state != Verdict.State.WAITING
            ],
        },
    )


def _score(verdict: Verdict, queue: Queue) -> int | None:
    """Return the score by which answers are put in order, in millionths."""
    if verdict.score_a is None or not is_ordered(queue):
        return None
    return round(verdict.score_a * MILLION)

"""Making a run: its outputs, its pairs, its judges, its queue of votes."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from random import Random
from typing import Any, Final, TypeVar

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.db.models.functions import Coalesce

from humanjudge.celery import enqueue
from humanjudge.core.extensions import OWN_PACKAGE
from humanjudge.core.strict_json import JsonObject
from judge_eval.demo.content import DemoPrompt
from judge_eval.judging.baselines import BASELINES, names_asked
from judge_eval.judging.config.judge_types import JUDGE_TYPES
from judge_eval.judging.config.run_config import ONE_MODEL, JudgeSpec, RunConfig
from judge_eval.judging.prompts.request_hash import judge_fingerprint
from judge_eval.judging.providers.chat import left_out
from judge_eval.ledger.objects import record_changed_queues, record_objects
from judge_eval.models import Board, Judge, JudgeRating, Provider, Run, Verdict
from voting.ballot.tuning import is_held_out
from voting.curating.services import votes_for
from voting.items.choices import DEFAULT_BALLOT
from voting.items.kinds import Kind, is_ordered, kind_of
from voting.items.order import couples, fresh_turn, keyed_number, prompt_order
from voting.ledger.chain import canonical
from voting.models import Inference, Item, Picture, Project, Queue, VoterPrompt, prompt_key
from voting.pictures.rendering import rendered_before, renderer_id
from voting.pictures.store import keep_rendered, source_address

# A change of what a baseline answers must change its fingerprint: it is another competitor then.
BASELINE_VERSION = 2
# The way of baselines that answer as the judge at a position was asked, item by item.
AS_JUDGE: Final = "judge "
# The ways of all others, as they are told from each other.
LABELS: Final = {**dict(Verdict.Order.choices), "random": "drawn"}
Output = TypeVar("Output", bound=Hashable)


def create_run(
    project: Project,
    name: str,
    prompts: Sequence[DemoPrompt],
    *,
    rubric: str,
    baselines: Sequence[str],
    ballot: Sequence[str] = DEFAULT_BALLOT,
    question: str = "",
    examples: Mapping[str, Callable[[Item], JsonObject]] | None = None,
    **rules: Any,
) -> Run:
    """Write a run of outputs that are there already, and let the workers begin.

    Of a `kind` of single items each output is one; otherwise those of a prompt are paired.
    `examples` are judges by name, each with what its verdict on an item is.
    """
    with transaction.atomic():
        queue = create_queue(project, name, rubric, ballot=list(ballot), **rules)
        run = Run.objects.create(queue=queue, name=name, state=Run.State.JUDGING, question=question)
        Board.objects.create(run=run)
        new: list[Sequence[Inference]] = []
        for prompt in prompts:
            outputs = [
                Inference(
                    project=project,
                    prompt=prompt.text,
                    output=output.output,
                    kind=prompt.kind,
                    generator=output.generator,
                    tags=list(prompt.tags),
                    picture=picture_of(output.output, output.png) if prompt.kind == "svg" else None,
                )
                for output in prompt.outputs
            ]
            by_pk = {output.pk: output for output in Inference.objects.bulk_create(outputs)}
            together = combined_outputs(kind_of(queue), list(by_pk), settings.SECRET_KEY)
            new += [[by_pk[pk] for pk in item] for item in together]
        # Neighbours in the list would otherwise be of one prompt.
        Random(str(queue.pk)).shuffle(new)  # noqa: S311  an order, not a secret
        items = add_items(queue, new)
        examples = examples or {}
        judges = [imported_judge(run, name, model=Judge.EXAMPLE) for name in examples]
        # Examples say one thing of a pair as it is stored.
        orders = Verdict.Order.STORED if examples and len(kind_of(queue).sides) > 1 else ""
        floor = names_asked(baselines, orders or "both")
        judges = add_judges(run, judges + [baseline(run, name, orders) for name in floor])
        verdicts = [
            Verdict(
                judge=judge,
                item=item,
                **(examples[judge.name](item) if judge.name in examples else {}),
            )
            for item in items
            for judge in judges
        ]
        Verdict.objects.bulk_create(verdicts, batch_size=1000)
        record_objects(run)
        enqueue("judge_eval.tasks.advance", str(run.pk))
    return run


def create_study(
    project: Project, name: str, rubric: str, *, kind: str, ballot: Sequence[str], **rules: Any
) -> Run:
    """Make a run of single items that come later, open for voting; judges may join it."""
    queue = create_queue(project, name, rubric, kind=kind, ballot=list(ballot), **rules)
    run = Run.objects.create(queue=queue, name=name, state=Run.State.VOTING)
    Board.objects.create(run=run)
    record_objects(run)
    return run


def create_queue(project: Project, name: str, rubric: str, **rules: Any) -> Queue:
    named = name[: VoterPrompt._meta.get_field("name").max_length]
    version = rubric_version(project, named, rubric)
    return Queue.objects.create(project=project, name=name, rubric=version, **rules)


def rubric_version(project: Project, name: str, text: str) -> VoterPrompt:
    """Return the last rubric of this name, or a new version where the text is another."""
    last = project.voter_prompts.filter(name=name).order_by("-version").first()
    if last is not None and last.text == text:
        return last
    version = last.version + 1 if last else 1
    return VoterPrompt.objects.create(project=project, name=name, version=version, text=text)


def change_question(run: Run, *, question: str, rubric: str) -> None:
    """Let a run ask another question, and people vote by another rubric from now on.

    Votes name the version that their voter was shown. What judges are told is in the config.
    """
    with transaction.atomic():
        locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        queue = Queue.objects.select_related("rubric", "project").get(pk=run.queue_id)
        if rubric != queue.rubric.text:
            queue.rubric = rubric_version(queue.project, queue.rubric.name, rubric)
            queue.save(update_fields=["rubric"])
            locked.record("rubric", f"People vote by {queue.rubric} from now on.")
        locked.question = question
        locked.save(update_fields=["question"])
        record_changed_queues(Queue.objects.filter(pk=queue.pk))


def combined_outputs(kind: Kind, outputs: Sequence[Output], key: str) -> list[tuple[Output, ...]]:
    """Return the items that the outputs of one prompt make: each by itself, or every pair.

    A keyed hash decides which of a pair is A.
    """
    return [
        group[::-1] if keyed_number(key, "pair", *group) & 1 else group
        for group in combinations(outputs, len(kind.sides))
    ]


def add_items(queue: Queue, new: Sequence[Sequence[Inference]]) -> list[Item]:
    """Put items of one output or two behind those that a queue has."""
    # Nobody adds others, and nobody changes how many votes they want, until they are there.
    queue = Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)
    first = _next_position(queue.items.all())
    items = [new_item(queue, position, *group) for position, group in enumerate(new, start=first)]
    return Item.objects.bulk_create(items, batch_size=1000)


def new_item(queue: Queue, position: int, a: Inference, b: Inference | None = None) -> Item:
    """Return an item, not saved and not open yet, with as many votes as its queue wants."""
    # Its name is not left to the database, since the ledger has a hash of it.
    item = Item(queue=queue, position=position, external_id="", a=a, b=b)
    # What has no prompt shares none.
    item.prompt_key = prompt_key(a.prompt) if a.prompt.strip() else str(item.pk)
    item.turn = fresh_turn(queue.pk, item.prompt_key)
    item.is_held_out = is_held_out(queue, item.prompt_key)
    item.votes_wanted = votes_for(item.pk, queue)
    return item


def couple_items(queue: Queue, new: Sequence[Item]) -> None:
    """Couple those of the new items, about to open, whose prompt has no other item.

    The order of ratings is compared within a prompt, so the second of two such prompts gets the key
    of the first. The last may be alone; then it waits for the next that opens.
    """
    if not new or not is_ordered(queue):
        return
    if connection.vendor == "postgresql":  # on SQLite the transaction is the lock
        with connection.cursor() as cursor:
            # Two who open items at once must not both couple them with the one that waits.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [queue.pk.int >> 65])
    usable = Item.objects.filter(queue=queue, unusable="")
    others = usable.filter(prompt_key=OuterRef("prompt_key")).exclude(pk=OuterRef("pk"))
    alone = usable.filter(~Exists(others))
    by_pk = {item.pk: item for item in new}
    keys = alone.filter(pk__in=by_pk, is_coupled=False).values_list("prompt_key", "pk")
    lone = {prompt: by_pk[pk] for prompt, pk in keys}
    waits = alone.filter(is_coupled=True).exclude(pk__in=by_pk).order_by("position").first()
    prompts = sorted(lone, key=lambda prompt: prompt_order(queue.pk, prompt))
    firsts = couples(prompts, waits.prompt_key if waits else "")
    for prompt, item in lone.items():
        item.prompt_key = firsts[prompt]
        item.turn, item.is_coupled = fresh_turn(queue.pk, item.prompt_key), True
        item.is_held_out = is_held_out(queue, item.prompt_key)
    changed = ["prompt_key", "turn", "is_coupled", "is_held_out"]
    Item.objects.bulk_update(lone.values(), changed, batch_size=500)


def _next_position(rows: QuerySet[Any]) -> int:
    return int(rows.aggregate(next=Coalesce(Max("position") + 1, 0))["next"])


def picture_of(source: str, png: bytes = b"") -> Picture:
    """Return the picture of a drawing, which waits to be rendered unless that was done before."""
    picture, _ = Picture.objects.get_or_create(source_sha256=source_address(source))
    if png and picture.state != Picture.State.DONE:
        keep_rendered(Picture.objects.filter(pk=picture.pk), rendered_before(png))
    return picture


def add_judges(run: Run, judges: Sequence[Judge]) -> list[Judge]:
    """Give judges their places behind those that a run has, and the rating that all start with."""
    for position, judge in enumerate(judges, start=_next_position(run.judges.all())):
        judge.position = position
    added = Judge.objects.bulk_create(judges)
    JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in added)
    return added


def add_captions(run: Run, question: str, descriptions: Mapping[str, str]) -> None:
    """Say in one line what a run asks and what its judges are, where nothing is said yet."""
    if question and not run.question:
        run.question = question
        run.save(update_fields=["question"])
    for name, description in descriptions.items():
        run.judges.filter(name=name, description="").update(description=description)


def baseline(run: Run, name: str, orders: str = "", label: str = "") -> Judge:
    """Return a baseline of a run, that answers in the run's orders or in some of its own.

    With a `label`, which tells its way from others, where the run has this baseline already.
    """
    version: int | str = BASELINE_VERSION
    if (baseline := BASELINES.get(name)) and baseline.package != OWN_PACKAGE:
        version = baseline.version
    competitor = {"provider": Judge.BASELINE, "model": name, "version": version}
    recipe: JsonObject = {"type": "baseline", "version": version, "parts": []}
    recipe |= {"options": {"orders": orders}}
    return Judge(
        run=run,
        name=f"{name} ({label})"[:200] if label else name,
        provider=Judge.BASELINE,
        model=name if label else "",
        recipe=recipe if orders else None,
        fingerprint=sha256(canonical(competitor | recipe if orders else competitor)).hexdigest(),
    )


def missing_baselines(run: Run, names: Sequence[str], ways: Iterable[str]) -> list[Judge]:
    """Return the baselines that a run lacks, as yet without places: all of them for each way.

    A way is the orders in which some judge is asked, or `judge N`: as the judge at that position
    was, item by item. The first has the plain names.
    """
    usual = (run.config or {}).get("verdict_orders", "both")
    existing = run.judges.filter(provider=Judge.BASELINE)
    answered = {(judge.model or judge.name, judge.own_orders or usual) for judge in existing}
    taken_names, new = {name for name, _ in answered}, list[Judge]()
    for way in dict.fromkeys(ways):
        label = LABELS.get(way) or f"as {run.judges.get(position=way.removeprefix(AS_JUDGE))}"
        # Only an imported run of pairs says nowhere in which orders its judges are asked.
        is_told = run.config is not None or run.queue.noun != "pair"
        orders = "" if is_told and way == usual else way
        lacking_names = [name for name in names_asked(names, way) if (name, way) not in answered]
        new += [baseline(run, n, orders, label if n in taken_names else "") for n in lacking_names]
        taken_names |= {*names}
    return new


def floor_of(run: Run) -> list[str]:
    """Name the baselines of a run, each once, in their order."""
    floor = run.judges.filter(provider=Judge.BASELINE).order_by("position")
    return list(dict.fromkeys(judge.model or judge.name for judge in floor))


def ways_of_judges(run: Run) -> list[str]:
    """Return the ways in which judges answered on pairs elsewhere; see `missing_baselines`."""
    done = Verdict.objects.filter(judge__run=run, judge__provider=Judge.IMPORTED).exclude(winner="")
    rows = done.order_by("judge__position", "order").values_list("judge__position", "order")
    orders = defaultdict[int, list[str]](list)
    for position, order in rows.distinct():
        orders[position].append(order)
    return [
        orders_of_judge[0] if len(orders_of_judge) == 1 else f"{AS_JUDGE}{position}"
        for position, orders_of_judge in orders.items()
    ]


def imported_judge(run: Run, name: str, source: str = "", model: str = "") -> Judge:
    """Return a judge whose verdicts were given elsewhere, as yet without a place."""
    fingerprint = imported_fingerprint(name, source)
    fields = {"provider": Judge.IMPORTED, "model": model or name}
    return Judge(run=run, name=name, fingerprint=fingerprint, **fields)


@lru_cache(maxsize=1000)
def imported_fingerprint(name: str, source: str) -> str:
    competitor = {"provider": Judge.IMPORTED, "model": name, "source": source}
    return sha256(canonical(competitor)).hexdigest()


def judge_of(run: Run, config: RunConfig, spec: JudgeSpec) -> Judge:
    """Return a judge of a config, as yet without a place."""
    judge = _competitor(run, config, spec)
    judge.description = spec.description
    return judge


def _competitor(run: Run, config: RunConfig, spec: JudgeSpec) -> Judge:
    if spec.is_baseline:
        is_usual = config.verdict_orders in (config.ways or [config.verdict_orders])
        return baseline(run, spec.id, "" if is_usual else config.ways[0])
    fields = {"run": run, "name": spec.id, "provider": spec.provider}
    if spec.type == ONE_MODEL:
        model = spec.model or spec.id
        fingerprint = model_fingerprint(config, spec.id, spec.provider, model)
        return Judge(**fields, model=model, fingerprint=fingerprint)
    recipe = recipe_of(spec)
    parts = [model_fingerprint(config, spec.id, part.provider, part.id) for part in spec.models]
    fingerprint = sha256(canonical(recipe | {"parts": parts})).hexdigest()
    return Judge(**fields, recipe=recipe, fingerprint=fingerprint)


def recipe_of(spec: JudgeSpec) -> JsonObject:
    """Return what a judge of another type keeps of how it is asked."""
    recipe = spec.model_dump(mode="json", include={"type", "parts", "options"})
    return recipe | {"version": JUDGE_TYPES[spec.type].version}


def model_fingerprint(
    config: RunConfig, judge: str, provider: str, model: str, reported: str = ""
) -> str:
    """Return the name of a competitor: whatever would make it another one."""
    rows = Provider.objects.filter(name=provider).values_list("refused", flat=True)
    without = left_out((rows.first() or {}).get(model, ()))
    parameters = config.asking(judge, provider, model).parameters
    spec = config.spec_of(judge)
    return judge_fingerprint(
        model=reported or model,
        provider=provider,
        prompt_version=config.judging.prompt_version,
        parameters={
            **{name: value for name, value in parameters.items() if name not in without},
            "samples": config.judging.samples,
            "orders": config.verdict_orders,
            **(spec.variation if spec else {}),
            **({"without": without} if without else {}),
        },
        renderer=renderer_id(settings.SVG_RENDERER) if config.kind == "svg" else None,
    )

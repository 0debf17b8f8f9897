"""Makes runs inside a running product and reads its ledger: one JSON question a line, one answer.

It is a process of its own because its settings are the product's, not those of the test run.
"""

import json
import os
import sys
import time
from random import Random
from unittest.mock import patch

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils import timezone  # noqa: E402

from judge_eval.demo import load  # noqa: E402
from judge_eval.judging.baselines import names_for  # noqa: E402
from judge_eval.models import Provider, Run  # noqa: E402
from judge_eval.runs import lifecycle, state  # noqa: E402
from tests import makers  # noqa: E402
from tests.helpers.boards import BOARDS  # noqa: E402
from tests.helpers.every_page import EveryPage  # noqa: E402
from tests.helpers.run_rows import make_draft, make_provider  # noqa: E402
from tests.helpers.tuned import joining  # noqa: E402
from voting.ballot import services  # noqa: E402
from voting.ballot.assignment import next_pairs  # noqa: E402
from voting.items.order import left_side  # noqa: E402
from voting.models import (  # noqa: E402
    Assignment,
    Entry,
    Flag,
    Inference,
    Item,
    Picture,
    Queue,
    Voter,
)
from voting.people.voters import invite_token, remember  # noqa: E402

COLOURS = ("teal", "coral", "gold", "plum", "olive", "navy", "khaki", "peru", "pink", "gray")
LONG_ANSWER = "\n\n".join(f"## Part {n}\n\n{'Some words about it. ' * 30}" for n in range(12))


def new_run(*, kind="text", long=False, output="", failed_drawing=False, **options):
    """A run with open pairs and an invite to it; `options` are those of `makers.make_run`."""
    run = makers.make_run(**options)
    outputs = Inference.objects.filter(project=run.queue.project).order_by("prompt", "generator")
    if kind == "svg":
        for place, inference in enumerate(outputs):
            makers.make_picture(COLOURS[place % len(COLOURS)], inferences=[inference])
    if long or output:
        outputs.update(output=output or LONG_ANSWER)
    if failed_drawing:
        picture = Picture.objects.create(
            source_sha256=run.pk.hex * 2, state="failed", error="the drawing takes too long"
        )
        outputs.filter(generator="generator-0").update(kind="svg", picture=picture)
    return _addresses(run)


def new_mixed_run(*, outputs, **options):
    """A run of pairs each of another sort: `outputs` are fields of both of its outputs."""
    run = makers.make_run(**options)
    for pair, fields in zip(makers.pairs_of(run), outputs, strict=True):
        Inference.objects.filter(pk__in=(pair.a_id, pair.b_id)).update(**fields)
        pair.verdicts.update(feedback=fields["prompt"])
    return _addresses(run)


def new_single_run(**options):
    """A run of single items; `options` are those of `makers.make_single_run`."""
    return _addresses(makers.make_single_run(**options))


def board_names():
    return list(BOARDS)


def new_board(*, name):
    """One of `tests.helpers.boards`, shared, with its findings."""
    run = BOARDS[name]()
    run.is_shared = True
    run.save()
    return _addresses(run)


def new_workshop(*, address, pairs=60):
    """People prefer answers with steps; their judge goes by the place about every second time.

    It is asked by the product's workers, at `address`. Its halves are the same every time.
    """
    dice = Random(7)
    with patch("os.urandom", Random(2).randbytes):
        project = makers.make_project("Support")
        run = makers.make_run(project, pairs=pairs, judges=0, votes_wanted=2)
    run.name, run.question = "Support answers", "Which answer helps more?"
    run.save()
    better = [dice.choice("AB") for _ in range(pairs)]
    for pair, side in zip(makers.pairs_of(run), better, strict=True):
        number = pair.position + 1
        prompt = f"How do I return item number {number} that I bought last week?"
        polite = f"Sure! It depends, there is much to say about number {number}. "
        said = [
            f"Step 1: open “My orders”. Next step: choose number {number}, press “Return”.",
            polite + "We are happy to help. " * dice.choice((0, 2)),
        ]
        shown = [pair.a_id, pair.b_id] if side == "A" else [pair.b_id, pair.a_id]
        for inference, output in zip(shown, said, strict=True):
            Inference.objects.filter(pk=inference).update(prompt=prompt, output=output)
        Item.objects.filter(pk=pair.pk).update(prompt_key=prompt)
    voters = [makers.make_voter(run) for _ in range(2)]
    slips = {"A": "B", "B": "A"}
    cast = [
        (voter, pair, slips[side] if dice.random() < 0.04 else side)
        for voter in voters
        for pair, side in zip(makers.pairs_of(run), better, strict=True)
    ]
    makers.make_many_votes(run, cast)
    makers.seal_all(run.queue.project)
    Provider.objects.update_or_create(name="workshop", defaults={"base_url": address})
    judge = {"id": "hasty-judge", "model": "judge-worded"}
    lifecycle.add_judges_to(run.pk, joining(judge, *names_for("text"), provider="workshop"))
    return _addresses(run)


def new_study(**options):
    """A run of single items, open, and an invite to it; options are those of `make_single_run`."""
    return _addresses(makers.make_single_run(**options))


def _addresses(run):
    invite = makers.make_invite(run)
    return {
        "project": str(run.queue.project_id),
        "queue": str(run.queue_id),
        "run": str(run.pk),
        "board": reverse("run", args=[run.pk]),
        "vote": reverse("vote", args=[run.queue_id]),
        "join": reverse("join", args=[invite_token(invite)]),
        "pairs": [str(pair.pk) for pair in makers.pairs_of(run)],
    }


def set_state(*, run, state):
    Run.objects.filter(pk=run).update(state=state)


def votes(*, queue):
    """Every vote in a queue, oldest first, taken back or not."""
    rows = Entry.objects.filter(queue=queue, kind="vote").order_by("id")
    fields = ("item", "voter", "choice", "left_side", "retracted", "seq", "elapsed_ms")
    fields += ("value", "category", "comment", "labels")
    return [
        {name: str(value) if hasattr(value, "hex") else value for name, value in row.items()}
        for row in rows.values(*fields)
    ]


def flags(*, queue):
    return list(Flag.objects.filter(item__queue=queue).values("category", "comment"))


def flag(*, item, comment):
    """Another voter flags an item; seal that."""
    item = Item.objects.select_related("queue__project").get(pk=item)
    services.flag(Voter.objects.create(project=item.queue.project), item.pk, "unsafe", comment)
    makers.seal_all(item.queue.project)


def dispute(*, queue):
    """Let three people vote three different things on every item; seal that."""
    queue = Queue.objects.get(pk=queue)
    items = queue.items.order_by("position")
    for choice in ("A", "B", "tie"):
        voter = Voter.objects.create(project=queue.project, name=f"for {choice}")
        for item in items:
            makers.make_vote(voter, item, choice)
    makers.seal_all(queue.project)


def decisions(*, queue):
    entries = Entry.objects.filter(queue=queue, kind="decision").order_by("pk")
    return [[str(e.item_id), e.payload["action"], e.comment] for e in entries]


def set_queue(*, queue, **fields):
    Queue.objects.filter(pk=queue).update(**fields)


def block_voters(*, queue):
    Voter.objects.filter(project__queues=queue).update(blocked_at="2026-01-01T00:00:00Z")


def set_prompts(*, queue, prompt):
    outputs = Item.objects.filter(queue=queue).values("a")
    Inference.objects.filter(pk__in=outputs).update(prompt=prompt)


def set_texts(*, queue, prompt, outputs, reason=""):
    """Give all pairs of a queue the same prompt and outputs, and their verdicts the same reason."""
    for item in Item.objects.filter(queue=queue):
        for inference, output in zip((item.a_id, item.b_id), outputs, strict=True):
            Inference.objects.filter(pk=inference).update(prompt=prompt, output=output)
        item.verdicts.update(feedback=reason)


def set_comparison(*, item, **fields):
    Item.objects.filter(pk=item).update(**fields)


def colleague_votes(*, queue, number, choice="A"):
    """Another voter votes on the first pairs of a queue."""
    pairs = Item.objects.filter(queue=queue).select_related("queue").order_by("position")
    voter = Voter.objects.create(project=Queue.objects.get(pk=queue).project)
    for pair in pairs[:number]:
        makers.make_vote(voter, pair, choice)


def queue_of(*, run):
    return str(Run.objects.get(pk=run).queue_id)


def colleague_opens(*, queue):
    """Another voter is shown everything that is left."""

    found = Queue.objects.get(pk=queue)
    next_pairs(Voter.objects.create(project=found.project), found, [], 1000, timezone.now())


def open_demo(*, name, votes):
    """How many pairs of a demo run are still not open; each will take so many votes."""
    pairs = Item.objects.filter(queue__name=name)
    pairs.update(votes_wanted=votes)
    return pairs.filter(opened_at=None).count()


def drawings_for_a_picture(*, votes):
    """Another run of the demo's drawings, and a voter with so many votes: the same every time.

    All that is drawn by lot follows from identifiers, and these come from one seed. The voter
    chooses what more care went into; returned are the voter's cookies and the left to choose from.
    """
    with patch("os.urandom", Random(2026).randbytes):
        project = makers.make_project("Pictures")
        run = load.make_run(project, "svg", "Drawings", examples=load.examples("svg"))
        voter = makers.make_voter(run)
    while not state.advance(run.pk) or run.queue.items.filter(opened_at=None).exists():
        time.sleep(0.1)
    care = ("doodle-nano", "sketch-mini", "atelier-1")
    better = {
        pair: "AB"[care.index(pair.a.generator) < care.index(pair.b.generator)]
        for pair in run.queue.items.select_related("queue__project", "a", "b").order_by("turn")
    }
    for pair, choice in list(better.items())[:votes]:
        makers.make_vote(voter, pair, choice)
    makers.seal_all(run.queue.project)
    return _addresses(run) | {
        "cookies": {c.key: c.value for c in remember(HttpResponse(), voter).cookies.values()},
        "left_is_better": {
            str(pair.pk): left_side(settings.SECRET_KEY, voter.pk, pair.pk) == choice
            for pair, choice in better.items()
        },
    }


def rows_for_pictures(*, run):
    """Rows of pages that the demo leaves empty; where some of these pages are."""
    run = Run.objects.get(pk=run)
    make_provider(name="local")
    dispute(queue=new_run(pairs=4, judges=3)["queue"])
    draft = make_draft()
    return [reverse("run-draft", args=[draft.pk]), reverse("webhooks", args=[run.queue.project_id])]


def leased(*, queue):
    """How many pairs are leased to somebody."""
    live = Assignment.objects.filter(item__queue=queue, leased_until__gt=timezone.now())
    return live.count()


def every_page():
    """Rows behind every page, where each of them is, and the cookies of who may see them all."""
    world = EveryPage()
    return {"cookies": world.cookies, "pages": list(world.html())}


def new_user(*, name, password=None, staff=False):
    User.objects.create_user(name, password=password, is_staff=staff, is_superuser=True)


def log_in(*, name, staff):
    """Make a user; return the cookie of a session of theirs."""
    new_user(name=name, staff=staff)
    client = Client()
    client.force_login(User.objects.get(username=name))
    name = settings.SESSION_COOKIE_NAME
    return {"name": name, "value": client.cookies[name].value}


ANSWERS = {
    function.__name__: function
    for function in (
        new_run,
        new_mixed_run,
        new_single_run,
        new_study,
        board_names,
        new_board,
        new_workshop,
        votes,
        flag,
        flags,
        dispute,
        decisions,
        set_queue,
        set_comparison,
        set_prompts,
        set_texts,
        set_state,
        block_voters,
        colleague_votes,
        queue_of,
        colleague_opens,
        leased,
        open_demo,
        drawings_for_a_picture,
        rows_for_pictures,
        every_page,
        new_user,
        log_in,
    )
}

if __name__ == "__main__":
    for line in sys.stdin:
        question = json.loads(line)
        answer = ANSWERS[question.pop("do")](**question)
        print(json.dumps(answer), flush=True)

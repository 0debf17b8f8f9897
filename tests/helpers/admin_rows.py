"""So many rows of every table that the admin lists."""

from datetime import timedelta
from hashlib import sha256
from uuid import uuid4

from django.contrib.auth.models import Group, User
from django.utils import timezone

from judge_eval.models import (
    Board,
    Call,
    Findings,
    Import,
    Judge,
    JudgeRating,
    Provider,
    Run,
    RunEvent,
    Verdict,
)
from reports.models import (
    Benchmark,
    CompositeDefinition,
    Delivery,
    Enrollment,
    PublishedHead,
    Quality,
    Review,
    ScoreReport,
    Share,
    Trace,
    TracedModel,
    Webhook,
)
from tests.makers import ALL_CHOICES
from voting.ledger import chain
from voting.models import (
    ApiKey,
    Entry,
    Flag,
    Inference,
    Invite,
    Item,
    Member,
    Picture,
    Project,
    Queue,
    Voter,
    VoterPrompt,
)


def make_rows_of_everything(number):
    """Make so many rows of each table, each row with rows of its own that it refers to."""
    places = range(number)

    def made(model, /, **fields):
        """Rows of a model; a field is what all have, or a function of a row's place."""
        rows = (
            model(**{name: v(n) if callable(v) else v for name, v in fields.items()})
            for n in places
        )
        return model._default_manager.bulk_create(rows)

    def own(rows):
        return lambda place: rows[place]

    batch, now = uuid4().hex[:8], timezone.now()
    users = made(User, username=lambda n: f"user-{batch}-{n}")
    made(Group, name=lambda n: f"group-{batch}-{n}")
    ids = [uuid4() for _ in places]
    projects = made(
        Project,
        id=own(ids),
        name=lambda n: f"Project {n}",
        head_hash=lambda n: chain.genesis(ids[n]),
    )
    made(Member, project=own(projects), user=own(users))
    rubrics = made(VoterPrompt, project=own(projects), text="Which is better?")
    queues = made(
        Queue, project=own(projects), name="Queue", rubric=own(rubrics), ballot=list(ALL_CHOICES)
    )
    pictures = made(Picture, source_sha256=lambda n: sha256(f"{batch}{n}".encode()).hexdigest())
    common = {"project": own(projects), "prompt": "A question", "generator": "generator"}
    first, second = (
        made(Inference, output=output, kind="svg", picture=own(pictures), **common)
        for output in ("An answer", "Another")
    )
    pair = {"a": own(first), "b": own(second), "prompt_key": "key", "turn": 1, "position": 0}
    items = made(Item, queue=own(queues), opened_at=now, **pair)
    keys = made(ApiKey, name="key", prefix=lambda n: f"{batch[:5]}{n}", user=own(users))
    invites = made(Invite, queue=own(queues), label="Ada")
    voters = made(
        Voter,
        project=own(projects),
        invite=own(invites),
        user=own(users),
        api_key=own(keys),
        name="Ada",
    )
    made(Flag, item=own(items), voter=own(voters), category="other")
    of_vote = {"choice": "A", "category": "", "left_side": "A", "comment": "", "salt": ""}
    of_vote |= {"comment_sha256": "", "unblinded": False, "simulated": False, "retracted": False}
    of_vote |= {"excluded": False, "project": own(projects), "queue": own(queues)}
    of_vote |= {"item": own(items), "voter": own(voters), "rubric": own(rubrics)}
    made(Entry, kind="vote", at=now, seq=1, hash=b"\1" * 32, **of_vote)

    runs = made(Run, queue=own(queues), name="Run", spent_nano=5)
    made(Board, run=own(runs))
    judges = made(
        Judge,
        run=own(runs),
        position=0,
        name="judge",
        provider="default",
        fingerprint=lambda n: f"{n:064}",
    )
    made(JudgeRating, judge=own(judges))
    verdicts = made(Verdict, judge=own(judges), item=own(items), state="done", winner="A")
    call = {"provider": "default", "model": "m", "run": own(runs), "order": "AB"}
    made(Call, purpose="judge", verdict=own(verdicts), cost_nano=5, **call)
    made(RunEvent, run=own(runs), kind="started", text="It began.")
    made(Findings, run=own(runs), computed_at=now)
    made(Import, project=own(projects), run=own(runs), user=own(users), api_key=own(keys), form={})
    made(
        Provider,
        name=lambda n: f"provider-{batch}-{n}",
        project=own(projects),
        base_url="https://models.example/v1",
    )

    made(CompositeDefinition, run=own(runs), config="{}", version="1")
    made(ScoreReport, run=own(runs))
    made(Quality, project=own(projects), series="items", score=0.5, standing={})
    made(Review, item=own(items), project=own(projects), waits=True)
    slug = {"slug": lambda n: f"slug-{batch}-{n}", "project": own(projects)}
    benchmarks = made(Benchmark, queue=own(queues), owner=own(users), **slug)
    publishable = {"publishable_key": lambda n: f"gj_pk_{batch}{n}", "api_key": own(keys)}
    models = made(TracedModel, owner=own(users), name="Bot", **slug, **publishable)
    enrolled = made(Enrollment, model=own(models), benchmark=own(benchmarks))
    made(Trace, enrollment=own(enrolled), trace_id="t", item=own(items))
    made(
        Share,
        project=own(projects),
        run=own(runs),
        token_sha256=lambda n: sha256(f"{batch}{n}".encode()).hexdigest(),
        prefix="abcdef",
        made_by=own(users),
        expires_at=now + timedelta(days=1),
    )
    made(PublishedHead, project=own(projects), seq=1, hash=b"\1" * 32, at=now)
    webhooks = made(Webhook, project=own(projects), url="https://example.org/", events=["ping"])
    made(Delivery, webhook=own(webhooks), event="ping", key="ping", payload={})

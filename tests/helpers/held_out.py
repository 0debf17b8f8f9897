"""A run whose judges are tuned on one half of it, with whatever could tell of the other half."""

from itertools import cycle

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db.models import Q

from judge_eval.judging.verdicts import verdicts_entry
from judge_eval.models import Call, Judge, Run, Verdict
from judge_eval.workshop import services
from reports.composite import sources
from reports.grandjury.services import PERSON_SCOPES, TraceIn, create_person_key, ingest
from reports.models import Review, ScoreReport, Share
from reports.report.make import report_of
from reports.report.views.shares import make_share
from reports.scores import views
from tests.helpers.run_findings import compute
from tests.helpers.run_rows import make_calls
from tests.makers import (
    key_client,
    make_judges,
    make_key,
    make_verdict,
    make_vote,
    make_voter,
    seal_all,
    voter_client,
)
from voting.items.choices import MILLION
from voting.items.kinds import VoteDetails
from voting.ledger import ledger
from voting.models import ApiKey, Entry, Item, Queue

HELD_OUT = Q(item__is_held_out=True)
ITEMS = 10
# Who votes, and who has judged: what each says of an item is a draw of its own.
PEOPLE, JUDGES = 5, ("first", "second", "third")
TABLE = {"titles": [], "of_people": [], "judges": [], "people": None, "as_of": None}


class Tuned:
    """A world of `tests.product.test_roles` in which its run, or that of its traces, is tuned."""

    def __init__(self, world, clock, kind):
        self.world, self.clock, self.kind = world, clock, kind
        self.project, self.clients, self.judges = world.project, world.clients, JUDGES
        self.choices = ("A", "B") if kind == "pairs" else ("pass", "flag")
        run = world.run if kind == "pairs" else self._traces()
        self.run = Run.objects.select_related("queue__project", "board").get(pk=run.pk)
        # People divided on an item are a reason to look at it.
        Queue.objects.filter(pk=run.queue_id).update(votes_per_item=PEOPLE)
        self._judge()
        self._vote()
        self._freeze()
        clock.shift(1)
        seal_all(self.project)
        cache.clear()
        compute(self.run)
        frozen = report_of(self.project, self.run).model_dump(mode="json")
        Share.objects.filter(pk=self.shares["frozen"][0].pk).update(frozen=frozen)
        services.open_for_tuning(self.run)
        self._tune()
        self._name()
        self.remake()

    def _traces(self):
        key = self.world.model.api_key
        for n in range(ITEMS):
            ingest(key, TraceIn(f"t-{n}", f"Question {n}", f"Answer {n}"))
        return self.world.benchmark.queue.run

    def _judge(self):
        first = self.run.judges.count()
        for judge in make_judges(self.run, JUDGES, first=first, baselines=()):
            self._give_verdicts(judge)

    def _give_verdicts(self, judge):
        says = cycle([0, 0, 1, judge.position % 2])
        Verdict.objects.bulk_create(
            make_verdict(judge, item, self.choices[next(says)]) for item in self._items()
        )

    def _items(self):
        return list(self.run.queue.items.order_by("position"))

    def _vote(self):
        Item.objects.filter(queue=self.run.queue).update(votes_wanted=PEOPLE + 2)
        self.voters = [make_voter(self.run, name=f"Person {n}") for n in range(PEOPLE)]
        for place, item in enumerate(self._items()):
            for n, voter in enumerate(self.voters):
                self.clock.shift(1)
                choice = self.choices[(place * 7 + n * 3) % 5 % 2]
                value = {"flag": 0, "pass": MILLION}.get(choice)
                make_vote(voter, item, choice, further=VoteDetails(value, "", "A word"))
        self.clients["voter"] = voter_client(self.voters[0])

    def _freeze(self):
        """What was made of both halves before; score files are by `remake` of present votes."""
        source = "win_rate" if self.kind == "pairs" else "pass_rate"
        parts = {"weights": {"people": {"weight": 1, "reason": "They know."}}}
        sources.store(
            self.run, sources.read_config(self.run, parts | {"sources": {"people": source}})
        )
        self.reports = ScoreReport.objects.filter(pk=self.world.names["report_id"])
        self.reports.update(run=self.run)
        owner = User.objects.get(username="owner")
        self.shares = {
            name: make_share(self.project, run, owner, shows_outputs=True)
            for name, run in (("frozen", self.run), ("live", self.run), ("whole", None))
        }

    def _tune(self):
        self.run.refresh_from_db()
        [variant] = make_judges(self.run, ["variant"], first=10, baselines=())
        Judge.objects.filter(pk=variant.pk).update(is_tuned=True)
        self._give_verdicts(variant)
        Call.objects.filter(run=self.run).delete()
        make_calls(self.run, orders=("AB",), reply="What it replied", reason="Why")
        for item in self._items():
            ledger.record(verdicts_entry(item, _verdicts(item)))
        seal_all(self.project)
        self.run = Run.objects.select_related("queue__project", "board").get(pk=self.run.pk)

    def _name(self):
        held = Item.objects.filter(queue=self.run.queue, is_held_out=True)
        divided = Review.objects.filter(item__in=held, is_divided=True)
        votes = Entry.objects.filter(HELD_OUT, kind="vote", voter=self.voters[0])
        variant = Judge.objects.get(run=self.run, name="variant")
        self.world.names |= {
            "run_id": self.run.pk,
            "queue_id": self.run.queue_id,
            "item_id": divided[0].item_id,
            "vote_uid": votes[0].uid,
            "voter_id": self.voters[1].pk,
            "judge_id": variant.pk,
            "call_id": Call.objects.filter(verdict__item__in=held)[0].pk,
        }
        self.world.of |= {
            "shared-report": {"token": self.shares["frozen"][1]},
            "shared-bundle": {"token": self.shares["frozen"][1]},
            "shared-file": {"token": self.shares["frozen"][1], "name": "report.json"},
        }
        self.key = key_client(make_key(*ApiKey.Scope.values, project=self.project)[1])
        owner = User.objects.get(username="owner")
        person = create_person_key(owner, "mine", PERSON_SCOPES, self.project)
        self.person = key_client(person[1])
        User.objects.filter(is_superuser=True).update(is_staff=True)

    # --- other votes -----------------------------------------------------------------------------

    def change(self):
        """Let votes and verdicts on items held out be others, and make anew what follows from them.

        Not all choices are the opposite now: two who agreed do not always agree.
        """
        other = dict(zip(self.choices, reversed(self.choices), strict=True))
        votes = Entry.objects.filter(HELD_OUT, kind="vote", queue=self.run.queue).order_by("pk")
        for place, vote in enumerate(votes):
            choice = other[vote.choice] if place % 3 else vote.choice
            value = {"flag": 0, "pass": MILLION}.get(choice)
            changed = {"choice": choice, "value": value, "comment": "changed", "left_side": ""}
            Entry.objects.filter(pk=vote.pk).update(**changed)
        verdicts = Verdict.objects.filter(HELD_OUT, judge__run=self.run).order_by("pk")
        for place, verdict in enumerate(verdicts):
            winner = other[verdict.winner] if place % 4 else verdict.winner
            Verdict.objects.filter(pk=verdict.pk).update(winner=winner, feedback="changed")
            verdict.calls.update(reply="changed", reason="changed")
        for item in Item.objects.filter(queue=self.run.queue, is_held_out=True):
            payload = verdicts_entry(item, _verdicts(item)).payload
            Entry.objects.filter(item=item, kind="verdicts").update(payload=payload)
        ledger.replay(self.project, write=True)
        self.remake()

    def remake(self):
        """Make all that is made of votes anew: score files that were made before, of both halves.

        Reports are not: they say what they said before the tuning.
        """
        queue = Queue.objects.filter(pk=self.run.queue_id)
        queue.update(is_tuning=False)
        self._compute()
        chosen = Entry.objects.filter(kind="vote", queue=queue[0]).order_by("pk")
        told = " ".join(chosen.values_list("choice", flat=True))
        self.reports.update(table=TABLE | {"columns": [told]})
        views.path_of(self.reports[0]).write_bytes(told.encode())
        queue.update(is_tuning=True)
        self._compute()

    def _compute(self):
        cache.clear()
        run = Run.objects.select_related("queue").get(pk=self.run.pk)
        compute(run)
        compute(run, f"at:{self.project.head_seq}")


def _verdicts(item):
    return list(item.verdicts.select_related("judge").order_by("judge__position"))

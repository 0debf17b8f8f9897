"""Makes rows for the GrandJury client in a running product: a function's name, and arguments.

They are given on the command line, or one call a line on standard input.

It is a process of its own because its settings are the product's, not those of the test run.
"""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
django.setup()

from django.utils import timezone  # noqa: E402

from judge_eval.runs.services import new_item  # noqa: E402
from reports.grandjury import services  # noqa: E402
from reports.models import Benchmark, Trace, TracedModel  # noqa: E402
from tests.helpers.grandjury import Person, vote  # noqa: E402
from tests.makers import make_many_entries, make_project, seal_all  # noqa: E402
from voting.models import Inference, Item, Voter  # noqa: E402


def person(name):
    return {"token": Person(name).token}


def arena(title, owner):
    """A benchmark that is open to enrolment."""
    benchmark = services.benchmark_of(make_project(title), Person(owner).user)
    services.open_to_enrolment(benchmark, True)
    return {
        "id": str(benchmark.project_id),
        "slug": benchmark.slug,
        "evaluation": str(benchmark.queue_id),
    }


def vote_on_all(slug, flagged=()):
    """Pass every trace of a benchmark that nobody has voted on, but flag some outputs."""
    benchmark = Benchmark.objects.get(slug=slug)
    voter, _ = Voter.objects.get_or_create(project=benchmark.project, name="Vera")
    for item in benchmark.queue.items.filter(votes=0).select_related("queue", "a"):
        is_flag = item.a.output in flagged
        vote(
            voter,
            item,
            "flag" if is_flag else "pass",
            category="format" if is_flag else "",
            comment="Too long." if is_flag else "",
        )
    seal_all(benchmark.project)


def many(slug, number):
    """Log and pass so many traces of a model, without a request for each."""
    model = TracedModel.objects.get(slug=slug)
    enrollment = model.enrollments.get()
    queue = enrollment.benchmark.queue
    outputs = Inference.objects.bulk_create(
        Inference(
            project=model.project,
            prompt=f"Question {n}",
            output=f"Answer {n}",
            kind="text",
            generator=model.name,
        )
        for n in range(number)
    )
    items = [new_item(queue, n, output) for n, output in enumerate(outputs)]
    for item in items:
        item.opened_at = timezone.now()
    Item.objects.bulk_create(items)
    Trace.objects.bulk_create(
        Trace(enrollment=enrollment, trace_id=f"t-{n}", item=item) for n, item in enumerate(items)
    )
    voter = Voter.objects.create(project=model.project, name="Otto")
    common = {"voter": voter, "choice": "pass", "value": 1_000_000, "rubric": queue.rubric}
    make_many_entries(queue.run, "vote", [common | {"item": item} for item in items])
    seal_all(model.project)


def made(name, arguments):
    return json.dumps(globals()[name](*arguments))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(made(sys.argv[1], json.loads(sys.argv[2])))
    for line in sys.stdin if len(sys.argv) == 1 else ():
        print(made(*json.loads(line)), flush=True)

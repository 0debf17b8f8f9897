"""Who said what of each item, as a matrix: a row for each item, a column for each person and judge.

That is how tools for Krippendorff's alpha, kappa and latent truth models take labels. Columns are
named so that the file can be imported again: `vote.` and a pseudonym, `verdict.` and a judge.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from judge_eval.models import Run, Verdict
from voting import tuning
from voting.choices import ONE, WRONG
from voting.kinds import SEPARATOR, Options, kind_of, options_of
from voting.models import Entry, Item
from voting.selectors import chunks

# Items whose labels are held at once.
AT_ONCE: Final = 200
Label = str | float | None


def label_rows(run: Run, judges: dict[UUID, str]) -> Iterator[list[Label]]:
    """Yield the names of the columns, then the labels of each item in the order of the run.

    `judges` are the names of their columns. A vote or verdict that is not there, does not count or
    has failed is None; simulated votes are none.
    """
    queue, asks = run.queue, options_of(run.queue)
    votes = Entry.objects.filter(tuning.shown_in(queue), queue=queue.pk, simulated=False)
    voted = votes.order_by("voter__pseudonym").values_list("voter", "voter__pseudonym").distinct()
    people = list(voted)
    yield [
        queue.noun,
        *(f"vote.{pseudonym}" for _, pseudonym in people),
        *(f"verdict.{name}" for name in judges.values()),
    ]
    columns = {who: n for n, who in enumerate([*(pk for pk, _ in people), *judges], start=1)}
    items = Item.objects.filter(queue=queue.pk, unusable="").only("external_id", "position")
    for chunk in chunks(items, "position", AT_ONCE):
        rows: dict[UUID, list[Label]] = {
            item.pk: [item.external_id or str(item.pk), *[None] * len(columns)] for item in chunk
        }
        for who, item, label in _labels(run, asks, votes, list(rows)):
            if who in columns:
                rows[item][columns[who]] = label
        yield from rows.values()


def _label(task: str, choice: str, labels: dict[str, Any] | None) -> Label:
    """Return the answer to what is asked, as the table of a run has it."""
    answer: Any = (labels or {}).get(task, choice)
    if isinstance(answer, list):
        return SEPARATOR.join(answer) or SEPARATOR
    # Two orders that disagree are a tie, whatever they count as.
    return "tie" if answer == WRONG else answer or None


def _labels(
    run: Run, asks: Options, votes: QuerySet[Entry], items: Sequence[UUID]
) -> Iterator[tuple[UUID, UUID, Label]]:
    task = kind_of(run.queue).task(asks)
    answers: Any = votes.filter(item__in=items)
    for who, item, choice, labels, value in answers.values_list(
        "voter", "item", "choice", "labels", "value"
    ):
        grade = value / ONE if asks.takes_grades and value is not None else None
        yield who, item, _label(task, choice, labels) if grade is None else grade
    given: Any = Verdict.objects.filter(judge__run=run, item__in=items, state=Verdict.State.DONE)
    given = given.exclude(tuning.HIDDEN)
    for who, item, choice, labels, score in given.values_list(
        "judge", "item", "winner", "labels", "score_a"
    ):
        grade = score if asks.takes_grades else None
        yield who, item, _label(task, choice, labels) if grade is None else grade

"""The Alt-Test of a run, by each task that people and judges answered: from rows to figures."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from django.db.models import F, QuerySet

from judge_eval.board.filters import Slice
from judge_eval.board.model import AgainstPerson, AltTest, AltTestJudge
from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs.queries import TUNED_ON
from judge_eval.stats import AltTestResult, AltTestSettings, advice, alt_test, epsilon_key, in_words
from voting.items.choices import MILLION, quality_of
from voting.items.kinds import kind_of, options_of
from voting.models import Entry, Queue

ROWS_AT_ONCE = 20_000
# Votes in memory, and votes times judges: more keep a worker for most of a minute.
MOST_VOTES = 200_000
MOST_ANSWERS = 1_200_000
MOST_TASKS = 12
# Everybody is tested; of very many people only some are listed one by one.
MOST_LISTED = 200
TOO_FEW = "too few items that others voted on too"
SAMPLED_ITEMS = (
    "This page compares one of every {} items: all {:,} votes would take too long here. "
    "Score files take all of them."
)
# What each person or judge answered, by name and by the item's position.
Answers = dict[Hashable, object]
Labels = dict[str, Answers]


class TaskAnswers(NamedTuple):
    """What people and judges answered to one task, one of every `sampling_step` items."""

    task: str
    people: Labels
    judges: Labels
    sampling_step: int


def answers_of(
    run: Run, part: Slice, votes: QuerySet[Entry], positions: Collection[int], judges: int
) -> list[TaskAnswers]:
    """Read with three queries what was answered at some positions: first to what was asked."""
    votes = votes.filter(voter__isnull=False)
    most = min(MOST_VOTES, MOST_ANSWERS // max(1, judges))
    sampling_step = max(1, -(-votes.count() // max(1, most)))
    verdicts = Verdict.objects.filter(judge__run=run, state=Verdict.State.DONE)
    verdicts = verdicts.exclude(TUNED_ON)
    if part.kind == "ballot":
        verdicts = verdicts.filter(winner__in=part.verdicts)
    reading, voted_on = _AnswerReader(run.queue), set[int]()
    names = ("voter__pseudonym", "item__position", "choice", "labels", "value")
    for pseudonym, position, choice, labels, value in _rows(votes, sampling_step, *names):
        if position in positions:
            voted_on.add(position)
            worth = None if value is None else value / MILLION
            reading.add_answers(reading.people, (pseudonym, position), choice, labels, worth)
    names = ("judge_id", "item__position", "winner", "labels", "score_a")
    for judge, position, winner, labels, score in _rows(verdicts, sampling_step, *names):
        if position in voted_on:
            reading.add_answers(reading.judges, (str(judge), position), winner, labels, score)
    return list(reading.tasks(sampling_step, judges))


def _rows(rows: QuerySet[Any], sampling_step: int, *names: str) -> Iterator[Any]:
    if sampling_step > 1:
        rows = rows.annotate(turn=F("item__position") % sampling_step).filter(turn=0)
    return rows.values_list(*names).iterator(ROWS_AT_ONCE)


class _AnswerReader:
    def __init__(self, queue: Queue) -> None:
        self._queue, self._asks = queue, options_of(queue)
        self._main = kind_of(queue).task(self._asks)
        self.people: dict[str, Labels] = defaultdict(lambda: defaultdict(dict))
        self.judges: dict[str, Labels] = defaultdict(lambda: defaultdict(dict))

    def add_answers(
        self,
        by_task: dict[str, Labels],
        annotator_item: tuple[str, int],
        choice: str,
        labels: Mapping[str, object] | None,
        worth: float | None,
    ) -> None:
        """Take one statement; the choice outlives labels, which erasing a person empties."""
        answers, (annotator, position) = {**(labels or {})}, annotator_item
        if self._asks.takes_grades:
            answers[self._main] = quality_of(choice, None) if worth is None else worth
        elif choice and self._queue.kind != Queue.Kind.TEXT:
            # As the test compares it: a rating as a number, labels as a set.
            labelled = kind_of(self._queue).labelled(choice, self._asks)
            answers[self._main] = labelled.get(self._main, choice)
        for task, answer in answers.items():
            by_task[task][annotator][position] = (
                tuple(answer) if isinstance(answer, list) else answer
            )

    def tasks(self, sampling_step: int, judges: int) -> Iterator[TaskAnswers]:
        main = self._main
        yield TaskAnswers(main, self.people[main], self.judges[main], sampling_step)
        further_tasks = sorted((self.people.keys() & self.judges.keys()) - {main})[:MOST_TASKS]
        # All further tasks together take no longer than the one.
        answers = judges * sum(
            map(len, chain(*(self.people[task].values() for task in further_tasks)))
        )
        sampling_step *= max(1, -(-answers // MOST_ANSWERS))
        for task in further_tasks:
            people, judged = (
                _sample(by_task[task], sampling_step) for by_task in (self.people, self.judges)
            )
            yield TaskAnswers(task, people, judged, sampling_step)


def _sample(labels: Labels, sampling_step: int) -> Labels:
    def is_sampled(place: Hashable) -> bool:
        return isinstance(place, int) and place % sampling_step == 0

    return {
        annotator: {place: answer for place, answer in answers.items() if is_sampled(place)}
        for annotator, answers in labels.items()
    }


def alt_tests(
    run: Run, judges: Sequence[Judge], tasks: Sequence[TaskAnswers], votes: int
) -> tuple[AltTest | None, str | None, list[AltTest]]:
    """Return the test by the vote, or why there is none, and those by further tasks."""
    settings, (main, *further_tasks) = AltTestSettings(epsilon=run.epsilon), tasks
    tests = [
        _test(answers, judges, votes, settings)
        for answers in further_tasks
        if len(answers.people) >= settings.min_humans
    ]
    if (people := len(main.people)) < settings.min_humans:
        voted = f"{people} {'person' if people == 1 else 'people'}"
        return None, f"The test takes {settings.takes}; {voted} voted.", tests
    return _test(main, judges, votes, settings), None, tests


def _test(
    answers: TaskAnswers, judges: Sequence[Judge], votes: int, settings: AltTestSettings
) -> AltTest:
    people, sampling_step = answers.people, answers.sampling_step
    labels = {str(judge.pk): answers.judges.get(str(judge.pk), {}) for judge in judges}
    results = alt_test(labels, people, settings)
    lines = (line for result in results.values() for line in advice(result, settings))
    return AltTest(
        task=answers.task,
        judges=[_of_judge(judge, results[str(judge.pk)]) for judge in judges],
        advice=list(dict.fromkeys(lines)),
        left_out=[SAMPLED_ITEMS.format(sampling_step, votes)] if sampling_step > 1 else [],
        epsilon=epsilon_key(settings.epsilon),
        humans=len(people),
        choices=len({answer for answers in people.values() for answer in answers.values()}),
        items=max((result.items for result in results.values()), default=0),
    )


def _of_judge(judge: Judge, result: AltTestResult) -> AltTestJudge:
    rates = {key: rate.value for key, rate in result.winning_rate.items()}
    people = [
        AgainstPerson(
            name=name,
            why=None,
            items=against.n,
            judge=against.judge_advantage,
            human=against.human_advantage,
            p=dict(against.p_values),
            rejected=dict(against.rejected),
        )
        for name, against in result.by_human.items()
    ]
    people += [AgainstPerson(name=n, why=TOO_FEW, items=i) for n, i in result.untested.items()]
    # Of very many people those with the most items are listed.
    listed = sorted(people, key=lambda person: -person.items)[:MOST_LISTED]
    return AltTestJudge(
        id=str(judge.pk),
        name=judge.name,
        is_baseline=judge.is_baseline,
        winning_rates=rates if any(rate is not None for rate in rates.values()) else None,
        passes=result.passes,
        advantage=result.advantage_probability.value,
        advantage_interval=result.advantage_probability.interval or None,
        shortfall=result.shortfall,
        words=in_words(result),
        humans=sorted(listed, key=lambda person: person.name),
        tested=len(result.by_human),
        untested=len(result.untested),
        left_out=[
            f"{gap.count:,} {gap.what.removesuffix('s') if gap.count == 1 else gap.what}: {gap.why}"
            for gap in result.left_out
            if gap.what != "humans"
        ],
        items=result.items,
    )

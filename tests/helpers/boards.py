"""Boards as people meet them, each a run with a real ledger and real findings.

Browser tests look at them, and `docs/screenshots.py --every` takes pictures of them.
"""

from collections.abc import Mapping
from random import Random

from judge_eval.models import Call, Judge, Run, Verdict
from judge_eval.workshop.services import open_for_tuning
from tests.helpers.imports import imported
from tests.helpers.run_findings import compute
from tests.helpers.run_rows import make_calls
from tests.makers import make_many_votes, make_run, make_single_run, make_voter, pairs_of, seal_all
from voting.curating.services import exclude_voter
from voting.models import Inference, Voter

BASELINES = {"random": 0.3, "longer-wins": 0.48}
PROMPTS = (
    "My parcel is late by a week. What can I do?",
    "How do I change the language of the app?",
    "I was charged twice for one order.",
    "Can I send back what I bought on sale?",
    "The link to reset my password does not come.",
)
ANSWERS = (
    (
        "I am sorry about that. Please open “My orders”, choose one, and press “What is wrong?”. "
        "If nothing has happened for three days, we send another one at no cost."
    ),
    "Thank you for your message! We are always happy to help. Please consult our help pages.",
)


def nobody_has_voted() -> Run:
    return _finished(_run({"good-judge": 0.85, "flaky-judge": 0.6, "bad-judge": 0.4}, pairs=30))


def three_votes() -> Run:
    """Too few to say anything."""
    run = _run({"good-judge": 0.85, "flaky-judge": 0.6, "bad-judge": 0.4}, pairs=30)
    return _finished(run, people=1, pairs=3)


def only_baselines() -> Run:
    return _finished(_run({}, pairs=30), people=2)


def all_equal() -> Run:
    return _finished(_run({"one": 0.75, "another": 0.75, "a-third": 0.75}, pairs=60), people=2)


def clear_winner() -> Run:
    run = _run({"good-judge": 0.95, "flaky-judge": 0.6, "bad-judge": 0.3}, pairs=70)
    return _finished(run, people=3)


def after_an_exclusion() -> Run:
    """One of two voters was excluded, and claims fell with their votes."""
    run = _finished(_run({"good-judge": 0.95, "bad-judge": 0.3}, pairs=40), people=2)
    curator, hasty = Voter.objects.filter(project=run.queue.project).order_by("pk")
    exclude_voter(hasty.pk, run.queue, curator, "Half a second each.", after=None)
    return _named(run, run.name)


def twelve_judges() -> Run:
    """Some of them alike, as models of a family are; two have never answered."""
    shares: dict[str, float | None] = {
        f"vendor-{n % 3}/judge-{n}-{'large' if n < 5 else 'small'}": 0.9 - 0.05 * n
        for n in range(10)
    }
    run = _run(shares | {"vendor-0/preview": None, "vendor-4/judge-xl": None}, pairs=60)
    return _finished(run, people=2)


def many_judges() -> Run:
    shares = {f"judge-{n:02}": 0.85 if n < 9 else 0.7 - 0.004 * n for n in range(68)}
    return _finished(_run(shares, pairs=80), people=2)


def long_names() -> Run:
    """Judges whose names are long, without a place to break them, or written from right to left."""
    shares = {
        "a-provider-of-many-models/judge-with-a-long-name-2026-11-28": 0.9,
        "judge_without_a_hyphen_in_a_name_that_goes_on": 0.8,
        "قاض حذر ومتأن من بلاد بعيدة": 0.7,
        "שופט מהיר": 0.4,
    }
    run = _run(shares, pairs=60)
    Inference.objects.filter(project=run.queue.project, generator="generator-0").update(
        generator="a-generator-with-a-name-that-goes-on-and-on-and-on/2026-11-28"
    )
    return _finished(run, people=2)


def imported_ties() -> Run:
    """People say tie and both bad, which no judge of the import was asked for."""
    run = _run({"left-or-right": 0.8, "right-or-left": 0.6}, pairs=40, baselines={})
    Judge.objects.filter(run=run).update(provider=Judge.IMPORTED)
    _vote(run, people=2, choices=("A", "B", "tie", "both_bad"))
    for part in ("", "ballot:decided"):
        compute(run, part)
    return run


def flagged_items() -> Run:
    """Single items that people pass or flag."""
    dice = Random(5)
    true = ["flag" if dice.random() < 0.3 else "pass" for _ in range(48)]
    says = [[_mostly(dice, choice, 0.9, ("pass", "flag")), "pass"] for choice in true]
    run = make_single_run(says, names=["careful-judge", "lenient-judge"], votes_per_item=2)
    voters = [make_voter(run) for _ in range(2)]
    chosen = list(zip(pairs_of(run), true, strict=True))
    make_many_votes(run, [(voter, *vote) for voter in voters for vote in chosen])
    return _named(run, "Answers that may go out")


def ratings() -> Run:
    """Two people rate two answers to each prompt, and judges in their order more or less."""
    dice, records = Random(9), []
    for n in range(80):
        prompt, name, true = f"q{n // 2}", f"q{n // 2}.{n % 2}", dice.randint(1, 5)
        records.append({"item": name, "prompt": prompt, "output": name, "generator": f"g{n % 2}"})
        for who, off in (("ann", 0), ("bob", 0), ("close-judge", 1), ("far-judge", 3)):
            said = min(5, max(1, true + dice.randint(-off, off)))
            is_judge = who.endswith("judge")
            told = {"judge": who, "verdict": said} if is_judge else {"voter": who, "vote": said}
            records.append({"item": name} | told)
    return _named(imported(*records, vote_kind="rating", baselines=True), "Answers, rated")


def near_tie() -> Run:
    """Two judges lead all others, and are not told apart."""
    shares = {"one": 0.95, "another": 0.94, "far-judge": 0.4, "bad-judge": 0.3}
    return _finished(_run(shares, pairs=70), people=2)


def one_voter() -> Run:
    run = _run({"good-judge": 0.95, "bad-judge": 0.3}, pairs=70, votes_wanted=1)
    return _finished(run, people=1)


def twelve_prompts() -> Run:
    return _finished(_run({"good-judge": 0.95, "bad-judge": 0.3}, pairs=12), people=2)


def in_tuning() -> Run:
    run = _finished(_run({"good-judge": 0.95, "bad-judge": 0.3}, pairs=70), people=2)
    open_for_tuning(run)
    return _named(run, run.name)


def rare_answers() -> Run:
    """One item in twenty is flagged: a judge that passes all agrees nearly always."""
    says = [["pass" if n % 20 else "flag", "pass"] for n in range(60)]
    run = make_single_run(says, names=["catcher", "nods"], votes_per_item=2)
    for voter in (make_voter(run), make_voter(run)):
        votes = [(voter, item, said[0]) for item, said in zip(pairs_of(run), says, strict=True)]
        make_many_votes(run, votes)
    return _named(run, "Answers that may go out")


BOARDS = {
    board.__name__: board
    for board in (
        *(nobody_has_voted, three_votes, only_baselines, all_equal, clear_winner),
        *(after_an_exclusion, twelve_judges, many_judges, long_names, ratings, imported_ties),
        *(flagged_items, near_tie, one_voter, twelve_prompts, in_tuning, rare_answers),
    )
}


def _mostly(dice: Random, right: str, share: float, choices: tuple[str, ...]) -> str:
    return right if dice.random() < share else dice.choice([c for c in choices if c != right])


def _truth(place: int, choices: tuple[str, ...] = ("A", "B")) -> str:
    return choices[Random(place).randrange(len(choices))]


def _run(
    judges: Mapping[str, float | None],
    *,
    pairs: int,
    baselines: Mapping[str, float] = BASELINES,
    votes_wanted: int = 2,
) -> Run:
    """A run in which judges are right on such shares of its pairs; None answers nothing."""
    dice = Random(11)
    shares = [*judges.values(), *baselines.values()]
    says = [
        [None if s is None else _mostly(dice, _truth(place), s, ("A", "B")) for s in shares]
        for place in range(pairs)
    ]
    names = [*judges, *baselines]
    run = make_run(says=says, names=names, baselines=baselines, votes_wanted=votes_wanted)
    for number, text in enumerate(ANSWERS):
        outputs = Inference.objects.filter(generator=f"generator-{number}")
        outputs.filter(project=run.queue.project).update(output=text)
    for number, text in enumerate(PROMPTS):
        pks = [
            pk for pair in pairs_of(run)[number :: len(PROMPTS)] for pk in (pair.a_id, pair.b_id)
        ]
        Inference.objects.filter(pk__in=pks).update(prompt=text)
    make_calls(run)
    Call.objects.filter(run=run, verdict__judge__provider=Judge.BASELINE).delete()
    asked = Verdict.objects.filter(judge__run=run, winner__gt="")
    asked.exclude(judge__provider=Judge.BASELINE).update(latency_ms=1400.0)
    return run


def _vote(run: Run, *, people: int, choices: tuple[str, ...] = ("A", "B")) -> None:
    dice, items = Random(3), pairs_of(run)
    voters = [make_voter(run) for _ in range(people)]
    make_many_votes(
        run,
        [
            (voter, item, _mostly(dice, _truth(item.position, choices), 0.92, choices))
            for voter in voters
            for item in items
        ],
    )
    run.queue.items.update(votes_wanted=people)
    seal_all(run.queue.project)


def _finished(run: Run, *, people: int = 0, pairs: int | None = None) -> Run:
    if people and pairs is None:
        _vote(run, people=people)
    elif people:
        voter, chosen = make_voter(run), pairs_of(run)[:pairs]
        votes = [(voter, item, _truth(item.position)) for item in chosen]
        make_many_votes(run, votes)
    return _named(run, "Support answers")


def _named(run: Run, name: str) -> Run:
    run.name = name
    run.save()
    seal_all(run.queue.project)
    compute(run)
    return run

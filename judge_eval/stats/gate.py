"""May a judge go on? Conditions on figures with intervals, each passed, failed or not settled.

Pure and without numpy: the figures come from the findings of a run, the answer goes into an exit
code. An interval that is withheld settles nothing. Whoever weighs gives the one that is valid
even if you look every day, or that of a number of votes that was fixed beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal, TypeAlias

from humanjudge.core.text import fixed
from judge_eval.stats.estimate import Estimate

WITHHELD: Final = "there is no interval"
Result: TypeAlias = Literal["passed", "failed", "too few votes to say"]


class Outcome(IntEnum):
    """How a condition ends, as the exit code of the command line; 2 is that it was not weighed."""

    PASSED = 0
    FAILED = 1
    TOO_FEW = 3

    @property
    def in_words(self) -> Result:
        results: dict[int, Result] = {0: "passed", 1: "failed", 3: "too few votes to say"}
        return results[self]


@dataclass(frozen=True, slots=True)
class Check:
    """One condition: how it ended, why in words, and the figure that it was weighed by."""

    name: str
    outcome: Outcome
    words: str
    bound: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None


def overall(outcomes: Sequence[Outcome]) -> Outcome:
    """Return how several conditions end together.

    Examples
    --------
    >>> overall([Outcome.PASSED, Outcome.TOO_FEW]).in_words
    'too few votes to say'
    >>> overall([Outcome.TOO_FEW, Outcome.FAILED, Outcome.PASSED]).in_words
    'failed'
    """
    order = (Outcome.FAILED, Outcome.TOO_FEW, Outcome.PASSED)
    return next(outcome for outcome in order if outcome in outcomes)


def wordings_tried(wordings: int) -> str:
    """Say how many judges one could have chosen from, since the best of many looks better.

    Examples
    --------
    >>> wordings_tried(20), wordings_tried(1)
    ('Best of 20 wordings tried on these votes.', 'The only wording tried on these votes.')
    """
    if wordings < 2:
        return "The only wording tried on these votes."
    return f"Best of {wordings} wordings tried on these votes."


def min_agreement(figure: Estimate, least: float) -> Check:
    """Weigh overall agreement: its whole interval has to be above what is asked for.

    Examples
    --------
    >>> check = min_agreement(Estimate(0.9, 0.84, 0.94), 0.8)
    >>> check.outcome.in_words, check.words
    ('passed', 'overall agreement 90.0 % (84.0 to 94.0) must be above 80 %')
    >>> min_agreement(Estimate(0.9, 0.74, 0.97), 0.8).outcome.in_words
    'too few votes to say'
    """
    words = f"overall agreement {_with_interval(figure)} must be above {_short(least)} %"
    return _weighed("min-agreement", words, figure, least)


def not_worse_than(rival: str, difference: Estimate, margin: float) -> Check:
    """Weigh the paired difference from another judge, which may be below 0 by the margin.

    Examples
    --------
    >>> check = not_worse_than("old", Estimate(-0.01, -0.08, 0.06), 0.05)
    >>> check.outcome.in_words, check.words
    ('too few votes to say', 'agreement less that of old: -1.0 % (-8.0 to 6.0) must be above -5 %')
    """
    bound = f"{_with_interval(difference)} must be above {_short(-margin)} %"
    words = f"agreement less that of {rival}: {bound}"
    return _weighed("not-worse-than", words, difference, -margin)


def beats_floor(is_claimed: bool | None, worse_than: Sequence[str]) -> Check:
    """Weigh what is claimed of a judge and the baselines: it beats all, or is worse than one.

    Examples
    --------
    >>> beats_floor(True, []).outcome.in_words, beats_floor(False, ["longer-wins"]).words
    ('passed', 'it is worse than longer-wins')
    """
    if worse_than:
        outcome, words = Outcome.FAILED, f"it is worse than {', '.join(worse_than)}"
    elif is_claimed:
        outcome, words = Outcome.PASSED, "it beats every baseline"
    elif is_claimed is None:
        outcome, words = Outcome.TOO_FEW, "there is no baseline to compare it with"
    else:
        outcome, words = Outcome.TOO_FEW, "it is not settled whether it beats every baseline"
    return Check("beats-floor", outcome, words)


def like_people(
    winning_rate: float | None, passes_from: float, epsilon: float, shortfall: Estimate
) -> Check:
    """Weigh the Alt-Test, which a judge as good as people often does not pass on few votes.

    So it fails only where it is shown to be worse: by its `shortfall`, see `AltTestResult`. Without
    a winning rate, that says why there is none.

    Examples
    --------
    >>> like_people(2 / 3, 0.5, 0.2, Estimate(0.1, 0.05, 0.15)).words
    'Alt-Test at epsilon 0.20: winning rate 66.7 % must be at least 50 %'
    >>> check = like_people(0.0, 0.5, 0.2, Estimate(0.25, 0.15, 0.35))
    >>> check.outcome.in_words, check.words.partition("; ")[2]
    ('too few votes to say', 'it is behind people by 25.0 % (15.0 to 35.0), 20 % at most allowed')
    >>> like_people(0.0, 0.5, 0.1, Estimate(0.25, 0.15, 0.35)).outcome.in_words
    'failed'
    >>> like_people(None, 0.5, 0.2, Estimate(None, why="2 people voted")).outcome.in_words
    'too few votes to say'
    """
    test = f"Alt-Test at epsilon {epsilon:.2f}"
    if winning_rate is None:
        return Check("like-people", Outcome.TOO_FEW, f"{test}: {shortfall.why}", passes_from)
    words = f"{test}: winning rate {_percent(winning_rate)} % must be at least "
    words += f"{_short(passes_from)} %"
    outcome = Outcome.PASSED
    if winning_rate < passes_from:
        is_shown = shortfall.low is not None and shortfall.low > epsilon
        outcome = Outcome.FAILED if is_shown else Outcome.TOO_FEW
        words += f"; it is behind people by {_with_interval(shortfall)}, "
        words += f"{_short(epsilon)} % at most allowed"
    return Check("like-people", outcome, words, passes_from, winning_rate)


def _weighed(name: str, words: str, figure: Estimate, bound: float) -> Check:
    outcome = Outcome.TOO_FEW
    if figure.low is not None and figure.low > bound:
        outcome = Outcome.PASSED
    elif figure.high is not None and figure.high < bound:
        outcome = Outcome.FAILED
    return Check(name, outcome, words, bound, figure.value, figure.low, figure.high)


def _with_interval(figure: Estimate) -> str:
    if figure.value is None:
        return f"is not known ({figure.why})"
    if figure.interval is None:
        return f"{_percent(figure.value)} % ({figure.why or WITHHELD})"
    low, high = map(_percent, figure.interval)
    return f"{_percent(figure.value)} % ({low} to {high})"


def _percent(share: float) -> str:
    return fixed(100 * share, 1)


def _short(share: float) -> str:
    return f"{100 * share:.6g}"

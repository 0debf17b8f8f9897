"""What an Alt-Test means, in sentences."""

from __future__ import annotations

from typing import Final

from judge_eval.stats.alt_test_parts import (
    ENOUGH_FOR_T,
    PASSES,
    AltTestResult,
    AltTestSettings,
)

EPSILON_GUIDE: Final = {
    0.2: "experts: reliable, and costly or hard to get",
    0.15: "skilled people: trained, less reliable than experts",
    0.1: "crowd workers",
}
_COMFORTABLE = 50


def in_words(result: AltTestResult) -> str:
    """Say whether the judge may take a person's place.

    Examples
    --------
    >>> from judge_eval.stats import alt_test
    >>> people = {name: dict.fromkeys(range(40), "A") for name in ("ann", "ben", "cem")}
    >>> print(in_words(alt_test({"judge": people["ann"]}, people)["judge"]))
    Passes at epsilon 0.20: it wins against 3 of 3 people, and half of them are enough. It agrees \
with the others at least as well as the person left out on 100 % of the items.
    """
    rate, advantage = result.winning_rate[result.epsilon], result.advantage_probability
    if rate.value is None or advantage.value is None:
        return f"Not tested: {rate.reason}."
    verdict = "Passes" if rate.value >= PASSES else "Fails"
    people = len(result.by_human)
    return (
        f"{verdict} at epsilon {result.epsilon}: it wins against {round(rate.value * people)} of "
        f"{people} people, and half of them are enough. It agrees with the others at least as well "
        f"as the person left out on {advantage.value:.0%} of the items."
    ).replace("%", " %")


def advice(result: AltTestResult, settings: AltTestSettings) -> tuple[str, ...]:
    """Say what makes this test weak, if anything does.

    Parameters
    ----------
    result : AltTestResult
    settings : AltTestSettings
        What it was computed with.

    Returns
    -------
    tuple of str
    """
    tested = result.by_human if result.passes is not None else {}
    few = sorted(name for name, against in tested.items() if against.n < ENOUGH_FOR_T)
    most = max((against.n for against in tested.values()), default=0)
    found = []
    if len(tested) == 1:
        found.append("Only one person has enough items to be compared with.")
    if len(tested) == 2:
        found.append(
            "With two people the test asks only whether the judge is closer to one of them than "
            "the other is. Three or more make a consensus to be measured against."
        )
    elif tested and result.items_of_two:
        found.append(
            f"Only two people labelled {result.items_of_two} of the {result.items} items. On those "
            "the judge is compared with a single other person, which says little; labels of a "
            "third person would make the test stronger."
        )
    if few:
        found.append(_few_items(few, settings))
    elif 0 < most < _COMFORTABLE:
        found.append(
            f"At most {most} items per person: 50 to 100 are enough in most cases, and fewer make "
            "it hard for a good judge to pass."
        )
    return tuple(found)


def epsilon_advice() -> str:
    """Say how to choose epsilon.

    Examples
    --------
    >>> print(epsilon_advice().splitlines()[0])
    Epsilon is how much worse a judge may be since it costs less than a person:
    """
    lines = [f"{epsilon:g} for {who}" for epsilon, who in EPSILON_GUIDE.items()]
    end = "The less the people agree with each other, the smaller it should be."
    head = "Epsilon is how much worse a judge may be since it costs less than a person:"
    return "\n".join([head, *lines, end])


def _few_items(names: list[str], settings: AltTestSettings) -> str:
    who = ", ".join(names)
    if settings.wilcoxon:
        return (
            f"Fewer than {ENOUGH_FOR_T} items: {who}. They are tested by Wilcoxon's signed-rank "
            "test, since the t-test takes more items; the best remedy is more items."
        )
    return (
        f"Fewer than {ENOUGH_FOR_T} items: {who}. The t-test assumes more; allow Wilcoxon's "
        "signed-rank test, or better have more items labelled."
    )

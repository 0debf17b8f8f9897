"""Figures computed anew, and set beside those that were given or stored."""

import re
from collections.abc import Collection, Iterator
from math import isclose
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from judge_eval.findings.filters import Slice
from judge_eval.findings.model import Before, RunFindings
from judge_eval.models import Run
from reports.report.not_covered import NOT_COMPARED
from voting.kinds import kind_of

if TYPE_CHECKING:
    from judge_eval.findings.load import RunOutcomes

TOLERANCE: Final = 1e-9
# The value of a name that is not there; JSON has none like it.
ABSENT: Final = ...


class Difference(NamedTuple):
    """A value of a report that does not follow from its ledger, its place, and what does."""

    path: str
    given: object
    computed: object

    def __str__(self) -> str:
        given, computed = ("nothing" if it is ABSENT else repr(it) for it in self[1:])
        return f"{self.path}: the report says {given}, its ledger {computed}"


def computed_again(run: Run, said: RunFindings | None, part: str = "") -> RunFindings:
    """Compute the findings of a run as they were `said`, but for what is not compared.

    Whether judges repeat themselves, and which claims were made before, are sentences' sources that
    no ledger has: they are taken from what was said.
    """
    # Web processes import this module and never compute.
    from judge_eval.findings.compute import findings
    from judge_eval.findings.load import outcomes_of

    outcomes, before = outcomes_of(run, Slice.stored(part, kind_of(run.queue).noun)), None
    if said is not None:
        before = Before([judge.id for judge in said.judges], said.claims, said.as_of.seq)
        outcomes = outcomes._replace(repeats=_repeats_said(outcomes, said))
    return findings(outcomes, before)


def _repeats_said(outcomes: "RunOutcomes", said: RunFindings) -> list[Any]:
    from judge_eval.findings.repeats import Repeats

    of = {judge.id: Repeats(judge.self_agreement, judge.flips) for judge in said.judges}
    return [of.get(str(judge.pk), Repeats()) for judge in outcomes.judges]


def unequal(
    given: Any, computed: Any, path: str = "", *, beside: Collection[str] = NOT_COMPARED
) -> Iterator[Difference]:
    """Yield what is not the same in two values of JSON, but for the places `beside`.

    >>> [each.path for each in unequal({"a": [1, {"b": 2}], "c": 3}, {"a": [1, {"b": 4}]})]
    ['a[1].b', 'c']
    """
    if re.sub(r"\[\d+\]", "[]", path) in beside:
        return
    if isinstance(given, dict) and isinstance(computed, dict):
        for name in sorted({*given, *computed}):
            pair = given.get(name, ABSENT), computed.get(name, ABSENT)
            yield from unequal(*pair, f"{path}.{name}".removeprefix("."), beside=beside)
    elif isinstance(given, list) and isinstance(computed, list) and len(given) == len(computed):
        for place, pair in enumerate(zip(given, computed, strict=True)):
            yield from unequal(*pair, f"{path}[{place}]", beside=beside)
    elif given != computed:
        are_numbers = isinstance(given, float) and isinstance(computed, float)
        if not (are_numbers and isclose(given, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)):
            yield Difference(path, given, computed)

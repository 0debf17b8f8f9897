"""Figures computed anew, and set beside those that were given or stored."""

import re
from collections.abc import Collection, Iterator
from math import isclose
from typing import Any, Final, NamedTuple

from judge_eval.board.filters import Slice
from judge_eval.board.model import FormerClaims, RunFindings
from judge_eval.models import Run
from reports.report.not_covered import NOT_COMPARED
from voting.items.kinds import kind_of

TOLERANCE: Final = 1e-9
# The value of a name that is not there; JSON has none like it.
ABSENT: Final = ...


class Difference(NamedTuple):
    """A value of a report that does not follow from its ledger, its place, and what does."""

    path: str
    reported: object
    computed: object

    def __str__(self) -> str:
        values = ("nothing" if value is ABSENT else repr(value) for value in self[1:])
        return "{}: the report says {}, its ledger {}".format(self.path, *values)


def computed_again(run: Run, reported: RunFindings | None, part: str = "") -> RunFindings:
    """Compute the findings of a run, or of a part of it, with what no ledger has as reported.

    That is whether judges repeat themselves and which claims were made before: sentences tell it.
    """
    # Web processes import this module and never compute.
    from judge_eval.board.claims import REASONS
    from judge_eval.board.compute import findings
    from judge_eval.board.load import outcomes_of
    from judge_eval.board.repeats import Repeats

    outcomes = outcomes_of(run, Slice.stored(part, kind_of(run.queue).noun))
    if reported is None:
        return findings(outcomes)
    judges, seq, claims = reported.judges, reported.as_of.seq, reported.claims
    withdrawn = [claim for claim in claims.withdrawn if claim.why in REASONS]
    repeats_by_judge = {judge.id: Repeats(judge.self_agreement, judge.flips) for judge in judges}
    repeats = [repeats_by_judge.get(str(judge.pk), Repeats()) for judge in outcomes.judges]
    claims = claims.model_copy(update={"withdrawn": withdrawn})
    before = FormerClaims([judge.id for judge in judges], claims, seq)
    return findings(outcomes._replace(repeats=repeats), before)


def unequal(
    reported: Any, computed: Any, path: str = "", *, beside: Collection[str] = NOT_COMPARED
) -> Iterator[Difference]:
    """Yield what is not the same in two values of JSON, but for the places `beside`.

    >>> [each.path for each in unequal({"a": [1, {"b": 2}], "c": 3}, {"a": [1, {"b": 4}]})]
    ['a[1].b', 'c']
    """
    if re.sub(r"\[\d+\]", "[]", path) in beside:
        return
    if isinstance(reported, dict) and isinstance(computed, dict):
        for name in sorted({*reported, *computed}):
            pair = reported.get(name, ABSENT), computed.get(name, ABSENT)
            yield from unequal(*pair, f"{path}.{name}".removeprefix("."), beside=beside)
    elif (
        isinstance(reported, list) and isinstance(computed, list) and len(reported) == len(computed)
    ):
        for place, pair in enumerate(zip(reported, computed, strict=True)):
            yield from unequal(*pair, f"{path}[{place}]", beside=beside)
    elif reported != computed:
        are_numbers = isinstance(reported, float) and isinstance(computed, float)
        if not (are_numbers and isclose(reported, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)):
            yield Difference(path, reported, computed)

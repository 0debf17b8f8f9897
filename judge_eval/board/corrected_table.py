"""Each generator by people, by one judge and corrected: a table, words and rows of files."""

from collections.abc import Sequence
from statistics import median
from typing import Final, TypeAlias

from humanjudge.core.charts.graphs import IntervalRow, Level
from humanjudge.core.charts.plot import lay_out_plot
from humanjudge.core.http import Context
from humanjudge.core.tables import (
    Cell,
    Head,
    Row,
    Table,
    missing,
    name_cell,
    numbered,
    percent,
    signed,
    span,
)
from humanjudge.core.text import fixed, listed, number_of
from judge_eval.board.columns import Value
from judge_eval.board.model import GeneratorRates, JudgeRates, RunFindings
from judge_eval.stats.estimate import FEWEST_FOR_SAVING, Estimate

Rates: TypeAlias = tuple[GeneratorRates, JudgeRates]

# Of less the page says that the judge saves nothing.
LEAST_SAVING: Final = 0.05
MOST_NAMES: Final = 4
OWN_FAMILY: Final = "own family"


def corrected_rates(figures: RunFindings, judge_id: str = "") -> Context | None:
    """Lay out the rates by one judge: that of an identifier, or the one that agrees most.

    None where nobody voted, or where there are no rates.
    """
    judges = [judge for judge in figures.best_first() if not judge.is_baseline]
    if not figures.generators or not figures.as_of.votes or not judges:
        return None
    judge = next((judge for judge in judges if judge.id == judge_id), judges[0])
    rows = [
        (generator, rates)
        for generator in figures.generators
        for rates in generator.judges
        if rates.judge == judge.id
    ]
    rows.sort(key=lambda row: -(row[1].rates.corrected.value or row[0].people.value or 0))
    is_paired = figures.pass_rates is None
    dumbbells = [
        IntervalRow(
            generator.name,
            corrected.value,
            corrected.interval,
            second_level=Level("people alone", generator.people.value),
        )
        for generator, judge_rates in rows
        if _is_left(judge_rates)
        and (corrected := judge_rates.rates.corrected).value is not None
        and generator.people.value is not None
    ]
    return {
        "verb": "win, a tie being half a win" if is_paired else "pass",
        "judge": judge,
        "judges": judges,
        "words": [_errors(judge.name, rows), _saving(judge.name, rows), *_both_bad(rows)],
        "plot": lay_out_plot(dumbbells, title="Corrected rate"),
        "table": _table(judge.name, rows, is_paired=is_paired),
    }


def _is_left(rates: JudgeRates) -> bool:
    return rates.rates.corrected.method != "people"


def _table(judge: str, rows: Sequence[Rates], *, is_paired: bool) -> Table:
    rate, is_left = "% won" if is_paired else "% passed", any(_is_left(rates) for _, rates in rows)
    by_rates = any(rates.rates.by_rates for _, rates in rows)
    heads = [
        Head("Model", css=""),
        Head("People alone", rate),
        Head("This judge alone", rate),
        Head("Its error", "points"),
        *([Head("Corrected", rate)] if is_left else []),
        *([Head("By its error rates", rate)] if by_rates else []),
        *([Head("Votes saved", "%")] if is_left else []),
    ]
    lines = []
    for generator, judge_rates in rows:
        rates = judge_rates.rates
        cells = [
            _share_cell(generator.people),
            _share_cell(rates.judge),
            _error_cell(rates.error),
            *([_share_cell(rates.corrected)] if is_left else []),
            *([_share_cell(rates.by_rates) if rates.by_rates else Cell()] if by_rates else []),
            *([_saving_cell(generator, judge_rates)] if is_left else []),
        ]
        tag = OWN_FAMILY if judge_rates.is_own_family else ""
        lines.append(Row(generator.name, [name_cell(generator.name, tag=tag), *cells]))
    numbered_lines, notes = numbered(lines)
    label = f"Rates of each model by people, by {judge} and corrected"
    return Table(label, heads, numbered_lines, notes=notes)


def _share_cell(estimate: Estimate) -> Cell:
    reason = f"{estimate.why[:1].upper()}{estimate.why[1:]}." if estimate.why else ""
    if estimate.value is None:
        return missing(reason)
    interval = (
        ""
        if estimate.low is None or estimate.high is None
        else span(100 * estimate.low, 100 * estimate.high, 1)
    )
    return Cell(fixed(100 * estimate.value, 1), interval, reason=reason)


def _error_cell(estimate: Estimate) -> Cell:
    cell = _share_cell(estimate)
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return cell
    ends = " to ".join(signed(100 * end) for end in (estimate.low, estimate.high))
    return Cell(
        signed(100 * estimate.value),
        ends,
        css="num strong" if estimate.low > 0 or estimate.high < 0 else "num",
    )


def _saving_cell(generator: GeneratorRates, judge_rates: JudgeRates) -> Cell:
    saving = judge_rates.rates.saving
    if saving is None:
        return Cell()
    if saving < LEAST_SAVING:
        return Cell("nothing")
    return Cell(percent(saving), number_of(votes_saved(generator, judge_rates) or 0, "vote"))


def votes_saved(generator: GeneratorRates, judge_rates: JudgeRates) -> int | None:
    """Return how many more votes would make people's own figure as sure as the corrected one."""
    saving = judge_rates.rates.saving
    if saving is None:
        return None
    return round(generator.votes * saving / (1 - saving)) if LEAST_SAVING <= saving < 1 else 0


def _errors(judge: str, rows: Sequence[Rates]) -> str:
    sure = [
        (generator.name, judge_rates)
        for generator, judge_rates in rows
        if judge_rates.rates.error.interval
    ]
    higher = [_name(*row) for row in sure if (row[1].rates.error.low or 0) > 0]
    lower = [_name(*row) for row in sure if (row[1].rates.error.high or 0) < 0]
    if not sure:
        return f"Too few prompts have votes and verdicts to tell how far {judge} is from people."
    sides = {"higher": higher, "lower": lower}
    parts = [f"{_few(names)} {side}" for side, names in sides.items() if names]
    if not parts:
        return f"{judge} rates no model surely higher or lower than people do."
    return f"{judge} rates {' and '.join(parts)} than people do."


def _name(name: str, judge_rates: JudgeRates) -> str:
    return f"{name} (its own family)" if judge_rates.is_own_family else name


def _few(names: Sequence[str]) -> str:
    return listed(names) if len(names) <= MOST_NAMES else f"{len(names)} models"


def _saving(judge: str, rows: Sequence[Rates]) -> str:
    if not any(_is_left(rates) for _, rates in rows):
        return f"People have voted wherever {judge} has a verdict: nothing is left to correct."
    savings = [
        judge_rates.rates.saving for _, judge_rates in rows if judge_rates.rates.saving is not None
    ]
    if not savings:
        if any(judge_rates.rates.corrected.method == "ppi++" for _, judge_rates in rows):
            return (
                f"How many votes {judge} saves is told from {FEWEST_FOR_SAVING} prompts with "
                "votes on: of fewer, chance may seem to save some."
            )
        return "There are too few votes yet to correct its figures by them."
    # The largest of several would promise by chance.
    saving = median(savings)
    if saving < LEAST_SAVING:
        return f"{judge} saves nothing here: the votes alone are as sure as its verdicts with them."
    median_note = f" (median of {number_of(len(savings), 'model')})" if len(savings) > 1 else ""
    return f"{judge} saves {percent(saving)} of the votes{median_note}: see the last column."


def _both_bad(rows: Sequence[Rates]) -> list[str]:
    both_bad = sum(generator.both_bad for generator, _ in rows)
    voted = both_bad + sum(generator.people.n for generator, _ in rows)
    if not both_bad:
        return []
    share = percent(both_bad / voted)
    return [f"{share} of the pairs were both bad: the rates are those among the others."]


def corrected_file_rows(figures: RunFindings) -> list[dict[str, Value]]:
    names = {judge.id: judge.name for judge in figures.judges}
    rows = []
    for generator in figures.generators:
        for judge_rates in generator.judges:
            rates = judge_rates.rates
            row: dict[str, Value] = {
                "model": generator.name,
                "judge_id": judge_rates.judge,
                "judge": names[judge_rates.judge],
                "own_family": judge_rates.is_own_family,
                "votes": generator.votes,
                "both_bad": generator.both_bad,
                "unvoted": rates.unvoted,
            }
            for name, estimate in {
                "people": generator.people,
                "judge_alone": rates.judge,
                "error": rates.error,
                "corrected": rates.corrected,
                "by_error_rates": rates.by_rates,
            }.items():
                ends = (estimate.value, estimate.low, estimate.high) if estimate else (None,) * 3
                row |= zip((name, f"{name}_low", f"{name}_high"), ends, strict=True)
            rows.append(
                row | {"saving": rates.saving, "votes_saved": votes_saved(generator, judge_rates)}
            )
    return rows

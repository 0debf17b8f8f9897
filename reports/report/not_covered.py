"""What no entry of a ledger covers, so that its head does not vouch for it: the one list.

`verify` leaves out what it says and prints it, reports mark it, docs/sharing.md tells it.
"""

from typing import Final, NamedTuple


class NotCovered(NamedTuple):
    """Something that may be changed with the same head.

    `rows` are the records of a bundle that hold it, or fields of them, `figures` the places in
    report.json that show it; they are compared with the rows, unless a bundle has none.
    """

    subject: str
    rows: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    is_compared: bool = True


NOT_COVERED: Final = (
    NotCovered(
        "when a report was made and with which versions, and since when its heads are told",
        figures=("made_at", "versions", "head.told_since", "since"),
        is_compared=False,
    ),
    NotCovered(
        "the state of a run, its note, its budget and what it has spent",
        rows=("run.state", "run.note", "run.budget_nano", "run.spent_nano"),
        figures=("runs[].source",),
    ),
    NotCovered(
        "whether a run is shared, archived or open for votes, and so which runs a report leaves "
        "out and how many votes are awaited",
        rows=("run.is_open",),
        figures=("runs[].findings.claims.votes_left", "runs[].findings.claims.forecast"),
    ),
    NotCovered("the name of a run on its voting page"),
    NotCovered(
        "the version number of a rubric and when it was written",
        rows=("run.rubric.version", "rubric.created_at"),
    ),
    NotCovered(
        "when the project was made, where its quality score may begin",
        rows=("header.project.created_at",),
        figures=("quality[].begins",),
    ),
    NotCovered(
        "when an item opened, and the order in which items are handed out",
        rows=("comparison.opened_at",),
    ),
    NotCovered(
        "items that are not open, of which there is only a number",
        figures=("runs[].findings.as_of.comparisons", "counted.items"),
    ),
    NotCovered("the places of items that were logged as traces"),
    NotCovered("when a verdict was given", rows=("verdict.decided_at",)),
    NotCovered(
        "how many votes an item wants now",
        rows=("comparison.votes_wanted",),
        figures=("counted.done",),
    ),
    NotCovered("pictures that were rendered from outputs"),
    NotCovered(
        "flags that voters raised, and the present weights of voters",
        rows=("flag", "voter.reputation"),
        figures=("counted.flags",),
    ),
    NotCovered(
        "people who may vote and never have", figures=("counted.population",), is_compared=False
    ),
    NotCovered(
        "single calls to models with their replies, tokens and times, and so whether a judge that "
        "was asked the same again said the same",
        figures=("runs[].findings.judges[].self_agreement", "runs[].findings.judges[].flips"),
        is_compared=False,
    ),
    NotCovered(
        "families of models",
        figures=("runs[].findings.generators[].judges[].is_own_family",),
        is_compared=False,
    ),
    NotCovered(
        "claims that were made before and hold no longer",
        figures=("runs[].findings.claims.withdrawn",),
        is_compared=False,
    ),
    NotCovered("definitions of composites", figures=("runs[].composite",)),
    NotCovered(
        "outputs that stand in no item, which a composite counts",
        figures=("runs[].composite.outputs", "runs[].composite.without"),
        is_compared=False,
    ),
    NotCovered("a category given with a vote on a pair", rows=("vote.category",)),
    NotCovered(
        "when a vote was taken back, as it stands beside the vote: an entry of its own counts",
        rows=("vote.retracted.seq", "vote.retracted.at"),
    ),
    NotCovered(
        "what public bundles leave out: texts of outputs, configs, reasons and comments, and what "
        "the hashes of these are salted with",
        rows=("run.config", "vote.salt", "entry.salt"),
    ),
)

# Places in report.json, of lists each member.
UNCOVERED_FIGURES: Final = {figure for subject in NOT_COVERED for figure in subject.figures}
NOT_COMPARED: Final = {
    figure for subject in NOT_COVERED if not subject.is_compared for figure in subject.figures
}

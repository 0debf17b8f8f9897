"""What findings claim of judges that those before did not, and the other way round, as news."""

from collections.abc import Iterator, Sequence

from django.urls import reverse

from humanjudge.lib.announce import Announcement
from humanjudge.lib.text import odds
from judge_eval.findings.model import Before, Claims, RunFindings
from judge_eval.models import Run


def claims_that_changed(
    run: Run, found: RunFindings, before: Before | None
) -> Iterator[Announcement]:
    """Yield claims that are made, and those of `before` that do not stand any more."""
    judges = [judge.id for judge in found.judges]
    now = _beaten(judges, found.claims)
    then = _beaten(before.judges, before.claims) if before else set()
    page = reverse("run", args=[run.pk])
    for one, other in sorted(now ^ then):
        if not {one, other} <= {*judges}:
            continue  # deleted since
        row, column = judges.index(one), judges.index(other)
        winner, loser = found.judges[row].name, found.judges[column].name
        evidence = found.claims.evidence[row][column]
        if (one, other) in now:
            event, seq = "claim.made", found.claims.since[row][column]
            said = f" (evidence {odds(evidence)})" if evidence is not None else ""
            words = f"{run.name}: {winner} beats {loser}{said}."
        else:
            event, seq = "claim.withdrawn", found.as_of.seq
            words = f"{run.name}: that {winner} beats {loser} does not stand any more."
        yield Announcement(
            event,
            run.queue.project_id,
            f"{event}:{one}:{other}:{seq}",
            words,
            page,
            {
                "run": str(run.pk),
                "name": run.name,
                "judge": one,
                "judge_name": winner,
                "other": other,
                "other_name": loser,
                "evidence": evidence,
                "seq": seq,
            },
        )


def _beaten(judges: Sequence[str], claims: Claims) -> set[tuple[str, str]]:
    """Return who is said to beat whom, by the identifiers of judges."""
    return {
        (one, other)
        for one, row in zip(judges, claims.beats, strict=True)
        for other, is_beaten in zip(judges, row, strict=True)
        if is_beaten
    }

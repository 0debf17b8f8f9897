"""What findings claim of judges that those before did not, and the other way round, as news."""

from collections.abc import Iterator, Sequence

from django.urls import reverse

from humanjudge.lib.domain_events import Announcement
from humanjudge.lib.text import odds
from judge_eval.findings.model import Before, Claims, RunFindings
from judge_eval.models import Run


def claims_that_changed(
    run: Run, findings: RunFindings, before: Before | None
) -> Iterator[Announcement]:
    """Yield claims that are made, and those of `before` that do not stand any more."""
    # Loads numpy, which web servers do without.
    from judge_eval.stats.wording import claim_in_words, difference_in_words

    judges = [judge.id for judge in findings.judges]
    now = _beaten(judges, findings.claims)
    then = _beaten(before.judges, before.claims) if before else {}
    page = reverse("run", args=[run.pk])
    for one, other in sorted(now.keys() ^ then.keys()):
        if not {one, other} <= {*judges}:
            continue  # deleted since
        row, column = judges.index(one), judges.index(other)
        winner, loser = findings.judges[row].name, findings.judges[column].name
        claim = claim_in_words(winner, loser, findings.judges[row].is_baseline)
        evidence = findings.claims.evidence[row][column]
        if (one, other) in now:
            event, seq, ends = "claim.made", now[one, other], ""
            matrices = findings.claims
            ends_of = (matrices.difference, matrices.difference_low, matrices.difference_high)
            difference, low, high = (of[row][column] for of in ends_of)
            points, interval = difference_in_words(difference or 0.0, low, high)
            said = [interval, f"evidence {odds(evidence or 1.0)}"]
            said += ["by one voter's votes alone"] * matrices.by_one[row][column]
            words = f"{run.name}: {claim} by {points} ({'; '.join(filter(None, said))})."
        else:
            event, seq = "claim.withdrawn", findings.as_of.seq
            ends = _key("claim.made", one, other, then[one, other])
            words = f"{run.name}: it is no longer claimed that {claim}."
        yield Announcement(
            event,
            run.queue.project_id,
            _key(event, one, other, seq),
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
            ends,
        )


def _key(event: str, one: str, other: str, seq: int | None) -> str:
    return f"{event}:{one}:{other}:{seq}"


def _beaten(judges: Sequence[str], claims: Claims) -> dict[tuple[str, str], int | None]:
    """Return who is said to beat whom, by the identifiers of judges, and since which entry."""
    return {
        (one, other): claims.since[row][column]
        for row, one in enumerate(judges)
        for column, other in enumerate(judges)
        if claims.beats[row][column]
    }

"""What findings claim of judges that those before did not, and the other way round, as news."""

from collections.abc import Iterator, Sequence

from django.urls import reverse

from humanjudge.core.domain_events import Announcement
from humanjudge.core.text import odds
from judge_eval.board.model import Claims, FormerClaims, RunFindings
from judge_eval.models import Run


def claims_that_changed(
    run: Run, findings: RunFindings, before: FormerClaims | None
) -> Iterator[Announcement]:
    """Yield claims that are made, and those of `before` that do not stand any more."""
    # Loads numpy, which web servers do without.
    from judge_eval.stats.wording import claim_in_words, difference_in_words

    judges = [judge.id for judge in findings.judges]
    current_claims = _claimed_wins(judges, findings.claims)
    former_claims = _claimed_wins(before.judges, before.claims) if before else {}
    page = reverse("run", args=[run.pk])
    for winner_id, loser_id in sorted(current_claims.keys() ^ former_claims.keys()):
        if not {winner_id, loser_id} <= {*judges}:
            continue  # deleted since
        row, column = judges.index(winner_id), judges.index(loser_id)
        winner, loser = findings.judges[row].name, findings.judges[column].name
        claim = claim_in_words(winner, loser, findings.judges[row].is_baseline)
        evidence = findings.claims.evidence[row][column]
        if (winner_id, loser_id) in current_claims:
            event, seq, ends = "claim.made", current_claims[winner_id, loser_id], ""
            matrices = findings.claims
            ends_of = (matrices.difference, matrices.difference_low, matrices.difference_high)
            difference, low, high = (matrix[row][column] for matrix in ends_of)
            points, interval = difference_in_words(difference or 0.0, low, high)
            details = [interval, f"evidence {odds(evidence or 1.0)}"]
            details += ["by one voter's votes alone"] * matrices.by_one[row][column]
            words = f"{run.name}: {claim} by {points} ({'; '.join(filter(None, details))})."
        else:
            event, seq = "claim.withdrawn", findings.as_of.seq
            ends = _event_key("claim.made", winner_id, loser_id, former_claims[winner_id, loser_id])
            words = f"{run.name}: it is no longer claimed that {claim}."
        yield Announcement(
            event,
            run.queue.project_id,
            _event_key(event, winner_id, loser_id, seq),
            words,
            page,
            {
                "run": str(run.pk),
                "name": run.name,
                "judge": winner_id,
                "judge_name": winner,
                "other": loser_id,
                "other_name": loser,
                "evidence": evidence,
                "seq": seq,
            },
            ends,
        )


def _event_key(event: str, winner_id: str, loser_id: str, seq: int | None) -> str:
    return f"{event}:{winner_id}:{loser_id}:{seq}"


def _claimed_wins(judges: Sequence[str], claims: Claims) -> dict[tuple[str, str], int | None]:
    """Return who is said to beat whom, by the identifiers of judges, and since which entry."""
    return {
        (winner_id, loser_id): claims.since[row][column]
        for row, winner_id in enumerate(judges)
        for column, loser_id in enumerate(judges)
        if claims.beats[row][column]
    }

"""What every score must be, worked out from the sealed entries in the plainest way there is."""

from collections import Counter, defaultdict
from uuid import UUID

from judge_eval.models import Board, Checkpoint, Judge, JudgeRating, RatingPoint
from voting.models import Entry, Exposure, Item


def entries_of(run):
    sealed = Entry.objects.filter(queue=run.queue_id, seq__isnull=False)
    return list(sealed.order_by("seq"))


def blind(votes):
    """Return the votes of people who had not seen that pair's verdicts."""
    exposures = Exposure.objects.filter(item__in={vote.item_id for vote in votes})
    seen = {(row.voter_id, row.item_id): row.seen_at for row in exposures}
    return [vote for vote in votes if seen.get((vote.voter_id, vote.item_id), vote.at) >= vote.at]


def taken_back(run):
    """Map votes to the retraction of each."""
    return {entry.target_id: entry for entry in entries_of(run) if entry.kind == "retraction"}


def standing_votes(run):
    return [vote for vote in included_votes(run) if vote.pk not in taken_back(run)]


def judged_votes(run):
    """Return the blind votes but those that their voters took back blindly."""
    back = taken_back(run)
    votes = blind(included_votes(run))
    retractions = [back[vote.pk] for vote in votes if vote.pk in back]
    blindly = {retraction.target_id for retraction in blind(retractions)}
    return [vote for vote in votes if vote.pk not in blindly]


def included_votes(run):
    entries = entries_of(run)
    excluded = {one for one, action in latest_decisions(run).items() if action == "exclude"}
    return [
        entry
        for entry in entries
        if entry.kind == "vote" and not {entry.item_id, entry.voter_id} & excluded
    ]


def latest_decisions(run):
    """Map each item and voter to what was decided last, reversals and notes left aside."""
    decisions = [entry for entry in entries_of(run) if entry.kind == "decision"]
    reversed_ones = {entry.target_id for entry in decisions}
    settling = [e for e in decisions if e.payload["action"] in ("keep", "exclude", "another_round")]
    return {
        entry.item_id or entry.voter_id: entry.payload["action"]
        for entry in settling
        if entry.pk not in reversed_ones
    }


def latest_verdicts(run):
    """Map each comparison to what each judge (by id) said last."""
    return {
        entry.item_id: {said["judge"]: said["winner"] for said in entry.payload["verdicts"]}
        for entry in entries_of(run)
        if entry.kind == "verdicts"
    }


def players_of(run, verdicts):
    """Return the judges that the ledger names, without baselines unless it names nothing else."""
    named = {judge for said in verdicts.values() for judge in said}
    others = Judge.objects.filter(run=run, pk__in=named).exclude(provider=Judge.BASELINE)
    return {str(judge.pk) for judge in others} or named


def votes_wanted(run):
    """Map each item to how many votes it wants, where entries of the ledger say so."""
    first, rounds = {}, {}
    entries = entries_of(run)
    reversed_ones = {entry.target_id for entry in entries if entry.kind == "decision"}
    for entry in entries:
        if entry.kind == "decision" and entry.payload["action"] == "another_round":
            first.setdefault(entry.item_id, entry.payload["instead_of"])
            if entry.pk not in reversed_ones:
                rounds[entry.item_id] = entry.payload["votes_wanted"]
        if entry.kind == "parameters":
            for votes, items in entry.payload.get("votes_wanted", {"items": {}})["items"].items():
                first.update((UUID(item), int(votes)) for item in items)
    return {item: max(votes, rounds.get(item, 0)) for item, votes in first.items()}


def expected(run):
    """Return what `stored` must return."""
    judges = [
        str(pk)
        for pk in Judge.objects.filter(run=run).order_by("position").values_list("pk", flat=True)
    ]
    verdicts = latest_verdicts(run)
    elo = dict.fromkeys(judges, 1000.0)
    players = players_of(run, verdicts)
    agree, disagree = Counter(), Counter()
    histories = {}
    points = {}
    standing, counted = standing_votes(run), judged_votes(run)
    for number, vote in enumerate(counted, start=1):
        said = verdicts.get(vote.item_id, {})
        right = [judge for judge in judges if said.get(judge) == vote.choice]
        wrong = [judge for judge in judges if said.get(judge) not in (None, vote.choice)]
        agree.update(right)
        for winner in [judge for judge in right if judge in players]:
            for loser in [judge for judge in wrong if judge in players]:
                expectation = 1 / (1 + 10 ** ((elo[loser] - elo[winner]) / 400))
                moved = 32 * (1 - expectation)
                elo[winner] += moved
                elo[loser] -= moved
        disagree.update(wrong)
        histories[vote.seq] = (
            number,
            [elo[judge] for judge in judges],
            [agree[judge] for judge in judges],
            [disagree[judge] for judge in judges],
        )
        points[number] = [round(elo[judge], 2) for judge in judges]
    votes = Counter(vote.item_id for vote in counted)
    items = dict(run.queue.items.values_list("pk", "votes_wanted"))
    return {
        "ratings": [
            (
                elo[judge],
                agree[judge],
                disagree[judge],
                sum(judge in said for said in verdicts.values()),
                sum(said.get(judge) is not None for said in verdicts.values()),
            )
            for judge in judges
        ],
        "votes": defaultdict(int, votes),
        "board": (len(counted), len(standing) - len(blind(standing))),
        "histories": histories,
        "points": points,
        "left_out": {
            item
            for item, action in latest_decisions(run).items()
            if action == "exclude" and item in items
        },
        "votes_wanted": items | votes_wanted(run),
    }


def stored(run):
    """Return what the product has made of the same entries."""
    ratings = JudgeRating.objects.filter(judge__run=run).order_by("judge__position")
    board = Board.objects.get(run=run)
    votes = Item.objects.filter(queue=run.queue_id, votes__gt=0)
    checkpoints = Checkpoint.objects.filter(run=run).order_by("seq").values_list("seq", "standings")
    return {
        "ratings": list(ratings.values_list("elo", "agree", "disagree", "requested", "answered")),
        "votes": dict(votes.values_list("pk", "votes")),
        "board": (board.votes, board.unblinded),
        "histories": {
            seq: tuple(standings[name] for name in ("votes", "elo", "agree", "disagree"))
            for seq, standings in checkpoints
        },
        "left_out": set(run.queue.items.exclude(unusable="").values_list("pk", flat=True)),
        "points": dict(RatingPoint.objects.filter(run=run).values_list("votes", "ratings")),
        "votes_wanted": dict(run.queue.items.values_list("pk", "votes_wanted")),
    }


def assert_as_expected(run):
    """Compare to the last bit."""
    found, wanted = stored(run), expected(run)
    # Standings are kept after some votes, and after the last.
    kept = found["histories"]
    assert max(kept, default=0) == max(wanted["histories"], default=0)
    wanted["histories"] = {seq: wanted["histories"].get(seq) for seq in kept}
    for part, value in wanted.items():
        assert found[part] == value, part

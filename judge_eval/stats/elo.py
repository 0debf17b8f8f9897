"""Judge ELO: judges that agree with a human vote beat the judges that do not.

Source: the PathScore judge evaluation; the exact rules stand in docs/scoring.md. For one vote, in
the run's order of judges, every correct judge plays every wrong judge, in place::

    E = 1 / (1 + 10 ** ((R_w - R_c) / 400))
    R_c += K * (1 - E)
    R_w -= K * (1 - E)

The judges of a run play among themselves. Baselines have no ELO, except where there is no other
judge: then they play among themselves.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

K = 32.0
START = 1000.0
Key = TypeVar("Key", bound=Hashable)
BASELINE = "baselines have no ELO: the judges play among themselves"
ALONE = "there is no other judge to play against"
RATINGS = "ratings have no ELO: a single rating is neither right nor wrong"
VOTE_FIRST = "it moves with every vote, so it waits until you have none left to cast here"
SILENT = "it has no verdict on what people voted on"
TUNED_JUDGE = "it was tuned on votes of this run"
TUNED = "while judges are tuned no ELO is shown: it is of votes that are held out, too"


def unrated(
    judges: Mapping[Key, bool],
    left_out: Mapping[Key, str] | None = None,
    *,
    are_ratings: bool = False,
    withheld: str = "",
) -> dict[Key, str]:
    """Return why judges have no ELO, of those that have none; `judges` tells which are baselines.

    Where votes `are_ratings` nobody has one, nor where it is `withheld` for a reason. Those that
    are `left_out`, each with the reason, are no players.

    Examples
    --------
    >>> list(unrated({"a": False, "b": False, "c": True})), unrated({"c": True, "d": True})
    (['c'], {})
    >>> unrated({"a": False})
    {'a': 'there is no other judge to play against'}
    >>> unrated({"a": False, "b": False, "c": False}, {"c": SILENT})
    {'c': 'it has no verdict on what people voted on'}
    """
    if are_ratings or withheld:
        return dict.fromkeys(judges, RATINGS if are_ratings else withheld)
    left_out = left_out or {}
    named = [key for key, is_baseline in judges.items() if not is_baseline]
    players = [key for key in named or judges if key not in left_out]
    reasons = {key: left_out.get(key, BASELINE) for key in judges if key not in players}
    return reasons | ({players[0]: ALONE} if len(players) == 1 else {})


def split(choice: str, verdicts: Sequence[str | None]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tell which judges were right and which were wrong about one vote, in the run's order.

    A judge that failed or was not asked, whose verdict is None, is in neither.

    Examples
    --------
    >>> split("A", ["A", "B", None, "tie"])
    ((0,), (1, 3))
    """
    correct = tuple(i for i, verdict in enumerate(verdicts) if verdict == choice)
    wrong = tuple(
        i for i, verdict in enumerate(verdicts) if verdict is not None and verdict != choice
    )
    return correct, wrong


def rate(ratings: list[float], correct: Sequence[int], wrong: Sequence[int], k: float = K) -> None:
    """Play every correct judge against every wrong judge, in place and in this order.

    Examples
    --------
    >>> ratings = [1000.0, 1000.0, 1000.0]
    >>> rate(ratings, [0], [1, 2])
    >>> [round(rating, 6) for rating in ratings]
    [1031.263693, 984.0, 984.736307]
    """
    for winner in correct:
        for loser in wrong:
            expected = 1 / (1 + 10 ** ((ratings[loser] - ratings[winner]) / 400))
            points = k * (1 - expected)
            ratings[winner] += points
            ratings[loser] -= points


@dataclass
class Standings:
    """Ratings and counts after some votes, all in the run's order of judges.

    `agree` and `disagree` count votes on which a judge was right or wrong; a failed verdict is in
    neither.

    Examples
    --------
    >>> standings = Standings()
    >>> standings.apply([0], [1], judges=2)
    >>> standings.elo, standings.agree, standings.disagree, standings.votes
    ([1016.0, 984.0], [1, 0], [0, 1], 1)
    """

    votes: int = 0
    elo: list[float] = field(default_factory=list)
    agree: list[int] = field(default_factory=list)
    disagree: list[int] = field(default_factory=list)

    def grow(self, judges: int) -> None:
        """Let judges that joined later start at 1000."""
        missing = judges - len(self.elo)
        if missing > 0:
            self.elo += [START] * missing
            self.agree += [0] * missing
            self.disagree += [0] * missing

    def apply(
        self,
        correct: Sequence[int],
        wrong: Sequence[int],
        judges: int,
        unrated: Collection[int] = (),
    ) -> None:
        """Count a vote; judges that are `unrated` play no game."""
        self.grow(judges)
        self.votes += 1
        right, others = ([n for n in side if n not in unrated] for side in (correct, wrong))
        rate(self.elo, right, others)
        for judge in correct:
            self.agree[judge] += 1
        for judge in wrong:
            self.disagree[judge] += 1


def agree_rate(agree: int, disagree: int) -> float | None:
    """Return the agreement in percent with one decimal, None when there is nothing to count.

    Examples
    --------
    >>> agree_rate(2, 1), agree_rate(0, 0)
    (66.7, None)
    """
    total = agree + disagree
    return round(100 * agree / total, 1) if total else None


def graph_stride(votes: int, points: int = 128) -> int:
    """Return the step between points of a rating graph after some votes.

    A graph keeps the point after vote ``n`` when ``n`` is a multiple of the stride that ``n``
    itself calls for. So what is kept depends on ``n`` alone, an undo only cuts points off, and a
    million votes keep about a thousand points.

    Examples
    --------
    >>> graph_stride(1), graph_stride(128), graph_stride(129), graph_stride(1_000_000)
    (1, 1, 2, 8192)
    """
    return 1 << ((votes - 1) // points).bit_length() if votes > 0 else 1

"""What a board says of its judges in plain words, from claims and from nothing else.

`Words.headline` is what a reader must know: which judge agrees most with people and whether one may
stop voting, and who beats the floor. `Words.more` has quieter sentences about everything else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np

from humanjudge.lib.text import listed, number_of, odds
from judge_eval.stats.bradley_terry import tie_group_members
from judge_eval.stats.claims import Claims
from judge_eval.stats.confidence_sequence import MARGIN

# More names than these are no longer plain words, and of more judges one; the table has them all.
MOST_NAMES: Final = 6
# Of more judges than these that may be the best, the headline names the first.
MOST_CANDIDATES: Final = 3
# Sentences about two judges that are not settled, beside those of the headline.
MOST_PAIRS: Final = 6
WELL_COVERED: Final = 0.95


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0):.0f} %"


def _least(evidence: Sequence[float]) -> str:
    least = odds(min(evidence))
    return least if len(evidence) == 1 or least.startswith("over") else f"at least {least}"


@dataclass(frozen=True, eq=False)
class Words:
    """Sentences about the judges at the places of `claims`; `order` has them best first.

    `agreement` and `coverage` are shares, None where there is none; `people` is the share on which
    people agree with each other. `contradicting` has points of agreement that judges lose by
    contradicting themselves, of which less than one is not said. What is voted on is called `noun`.

    Examples
    --------
    >>> from judge_eval.stats.claims import claims
    >>> from judge_eval.stats.entering import Opened, Voted, enter
    >>> said = [Opened(n, n, n, 1, [0, n % 5 > 0, n % 2]) for n in range(40)]
    >>> entered = enter([*said, *(Voted(40 + n, n, 0) for n in range(40))], range(40))
    >>> is_baseline, agreement = np.array([False, False, True]), [0.975, 0.2, 0.5]
    >>> found = claims(entered, is_baseline, np.array(agreement), prompts=40)
    >>> names, about = ["north", "south", "random"], {"votes": 40, "voters": 3, "people": 0.9}
    >>> words = Words(names, found, [0, 2, 1], agreement, [1, 1, 1], **about)
    >>> print(*words.headline())  # doctest: +NORMALIZE_WHITESPACE
    north is the best judge: it agrees with people on 98 % (people among themselves: 90 %) and beats
    south (evidence over 1,000,000 : 1). You may stop voting. Only north beats the floor.
    >>> print(words.more()[0])
    Evidence over random: 99,800 : 1.
    """

    names: Sequence[str]
    claims: Claims
    order: Sequence[int]
    agreement: Sequence[float | None]
    coverage: Sequence[float | None]
    votes: int
    voters: int
    people: float | None = None
    contradicting: Mapping[int, float] = field(default_factory=dict)
    noun: str = "pair"

    @property
    def _room(self) -> int:
        return MOST_NAMES if len(self.judges) <= MOST_NAMES else 1

    @property
    def judges(self) -> list[int]:
        """The places of judges that are no baselines, best first."""
        return [n for n in self.order if not self.claims.is_baseline[n]]

    @property
    def floor(self) -> list[int]:
        return [n for n in self.order if self.claims.is_baseline[n]]

    @property
    def silent(self) -> list[int]:
        """Judges that have given no verdict at all, or none on what people voted on."""
        return [n for n in self.judges if self.agreement[n] is None or not self.coverage[n]]

    def headline(self) -> list[str]:
        """Say which judge is best and whether one may stop voting, and who beats the floor."""
        if not self.order:
            return ["No judge has given a verdict yet."]
        if not self.votes:
            nothing = "There are no votes yet, so nothing can be said about the judges."
            return [nothing, *self._few()]
        if not self.judges:
            return ["There are only baselines on the board, and no judges."]
        if len(self.silent) == len(self.judges):
            return [f"No judge has a verdict on any {self.noun} that people voted on."]
        return [*self._leader(), *self._above_floor(), *self._few()]

    def more(self) -> list[str]:
        """Say what else there is to know, in quieter sentences."""
        if not self.votes or not self.judges:
            return []
        sentences = self._others() if len(self.judges) <= MOST_NAMES else self._in_short()
        return [
            *self._towards_best(),
            *self._floor_in_full(),
            *sentences,
            *self._alike(),
            *self._missing(),
            *self._contradicting(),
            *self._lack(),
        ]

    def withdrawn(self, claims: Sequence[tuple[int, int, str]]) -> list[str]:
        """Name claims of one judge over another that do not stand any more, with the reason."""
        return [
            f"Withdrawn: {self.names[one]} beats {self.names[other]}. The reason: {why}."
            for one, other, why in claims[:MOST_PAIRS]
        ]

    # --- the headline ---------------------------------------------------------------------------

    def _leader(self) -> Iterator[str]:
        first, *others = self.judges
        name, claims = self.names[first], self.claims
        agrees = (
            f"agrees with people on {_percent(self.agreement[first])}{self._beside_people(first)}"
        )
        beats = self._beaten(first)
        so_it_is = f"it {agrees} and {beats}." if beats else f"it {agrees}."
        if not others:
            yield f"{name} is the only judge: {so_it_is}"
        elif claims.best is not None:
            yield f"{name} is the best judge: {so_it_is}"
            yield "You may stop voting."
        elif not claims.entered:
            yield f"Too early to say which is best: {self._after()} no prompt has all its votes."
            yield f"So far {name} {agrees}."
        elif not (rivals := self._rivals):
            yield f"{name} is the only judge with verdicts: {so_it_is}"
        elif len(candidates := self._candidates) > MOST_CANDIDATES:
            yield f"Not settled: {name} {agrees}; {len(candidates) - 1} others may be better."
        else:
            settled = f"{self._names(candidates, 'or')} may be the best judge; {self._forecast}"
            yield self._pair(first, rivals[0]) if len(rivals) == 1 else f"Not settled: {settled}."
            yield f"{name} {agrees}{f' and {beats}' if beats else ''}."
        if (covered := self.coverage[first] or 0) < WELL_COVERED:
            yield f"It has a verdict on only {_percent(covered)} of what it was asked about."

    def _beaten(self, winner: int) -> str:
        beaten = [n for n in self.judges if self.claims.beats[winner, n]]
        return f"beats {self._victims(winner, beaten)}" if beaten else ""

    @property
    def _rivals(self) -> list[int]:
        """Judges with verdicts that the first one is not said to beat."""
        first, *others = self.judges
        return [n for n in others if not self.claims.beats[first, n] and n not in self.silent]

    @property
    def _candidates(self) -> list[int]:
        """The first judge, and its rivals that nobody is said to beat."""
        rivals = self._rivals
        unbeaten = [n for n in rivals if not self.claims.beats[:, n].any()]
        return [self.judges[0], *(unbeaten or rivals)]

    @property
    def _forecast(self) -> str:
        """What it takes to tell the first judge from all its rivals."""
        every = [self.claims.forecast[self.judges[0]][n] for n in self._rivals]
        known = [votes for votes in every if votes is not None]
        return self._outlook(max(known) if len(known) == len(every) else None, len(every))

    def _pair(self, one: int, other: int) -> str:
        """Say how a judge stands to one that agrees no more often, and what would settle it."""
        a, b, claims = self.names[one], self.names[other], self.claims
        standing = claims.standing(one, other)
        if standing == "beats":
            return f"{a} beats {b} (evidence {odds(claims.evidence[one, other])})."
        if standing == "both ways":
            return f"{a} and {b}: not settled, the evidence points both ways."
        if standing in ("per prompt", "behind per prompt"):
            ahead, behind = (a, b) if standing == "per prompt" else (b, a)
            return f"{ahead} and {behind}: not settled, {ahead} is ahead per prompt, not per vote."
        outlook = self._outlook(claims.forecast[one][other])
        if standing == "leads":
            return f"{a} leads {b}, not settled ({self._short_of(one, other)}): {outlook}."
        return f"{a} and {b} cannot be told apart yet: {outlook}."

    def _short_of(self, one: int, other: int) -> str:
        claims = self.claims
        needed = claims.floor_threshold if claims.is_baseline[other] else claims.threshold
        return f"evidence {odds(claims.evidence[one, other])} of {odds(needed or 1)}"

    def _outlook(self, votes: int | None, differences: int = 1) -> str:
        """Say how many more votes it takes."""
        if votes is None:
            return "more votes will not settle this as it stands"
        stay = "the difference stays what it looks like"
        if differences > 1:
            stay = "the differences stay what they look like"
        more = f"some {number_of(votes, 'more vote')}, if {stay}"
        left = self.claims.votes_left
        if votes <= left:
            return more
        only = f"only {number_of(left, 'vote')} {'is' if left == 1 else 'are'}"
        return f"{more}, but {only if left else 'none is'} left"

    @property
    def _above(self) -> list[int]:
        """Judges that beat every baseline."""
        return [n for n in self.judges if self.claims.beats[n, self.floor].all()]

    def _above_floor(self) -> Iterator[str]:
        if self.floor and self._above:
            yield f"{self._subject(self._above)} the floor."
        elif self.floor:
            yield f"{'None beats' if len(self.judges) > 1 else 'It does not beat'} the floor yet."

    def _floor_in_full(self) -> Iterator[str]:
        judges, floor, above = self.judges, self.floor, self._above
        if not floor or len(self.silent) == len(judges):
            return
        if above:
            least = _least([self.claims.evidence[n, low] for n in above for low in floor])
            yield f"Evidence over {self._names(floor)}: {least}."
        others = len(judges) - len(above)
        if above and others and self._room == 1:
            yield f"Nothing shows yet that the other {others} are better than all of these."
            return
        lacking: dict[tuple[int, ...], list[int]] = {}
        for n in judges:
            if low := tuple(low for low in floor if not self.claims.beats[n, low]):
                lacking.setdefault(low, []).append(n)
        for low, some in lacking.items():
            yield self._no_better(some, low)

    def _subject(self, above: Sequence[int]) -> str:
        judges = self.judges
        if len(above) == len(judges) <= 2:
            return "It beats" if len(judges) == 1 else "Both beat"
        if len(above) == len(judges):
            return f"All {len(judges)} judges beat"
        if len(above) > self._room:
            return f"{len(above)} of the {len(judges)} judges beat"
        return f"Only {self._names(above)} {'beats' if len(above) == 1 else 'beat'}"

    def _no_better(self, judges: Sequence[int], low: Sequence[int]) -> str:
        who = f"{self._names(judges[: self._room], 'or')} is"
        if len(judges) == len(self.judges) > 1:
            who = "any judge is"
        elif len(judges) > self._room:
            who = f"{len(judges)} of the {len(self.judges)} judges are"
        better = f"Nothing shows yet that {who} better than {self._names(low, 'or')}"
        if len(judges) == len(low) == 1:
            [one], [other] = judges, low
            outlook = self._outlook(self.claims.forecast[one][other])
            return f"{better} ({self._short_of(one, other)}): {outlook}."
        return f"{better}."

    def _few(self) -> list[str]:
        return [self.claims.too_few_prompts] if self.claims.too_few_prompts else []

    # --- quieter sentences ----------------------------------------------------------------------

    def _towards_best(self) -> Iterator[str]:
        """Say of the first judge what the headline leaves out where many may be the best."""
        claims = self.claims
        if claims.entered and claims.best is None and len(self._candidates) > MOST_CANDIDATES:
            yield f"To tell which is best: {self._forecast}."
            if beats := self._beaten(self.judges[0]):
                yield f"{self.names[self.judges[0]]} {beats}."

    def _others(self) -> Iterator[str]:
        """Say of every two judges what the headline has not said."""
        claims, judges = self.claims, self.judges
        yield from (f"{self.names[n]} {beats}." for n in judges[1:] if (beats := self._beaten(n)))
        speaking = [n for n in judges if n not in self.silent]
        pairs = [pair for pair in combinations(speaking, 2) if claims.standing(*pair) != "beats"]
        of_leader = [pair for pair in pairs if pair[0] == judges[0]]
        if len(of_leader) == 1:
            pairs.remove(of_leader[0])
        unclear = [pair for pair in pairs if claims.standing(*pair)]
        yield from (self._pair(*pair) for pair in unclear[:MOST_PAIRS])
        if len(unclear) > MOST_PAIRS:
            yield f"So it is with {len(unclear) - MOST_PAIRS} further pairs of judges."
        if claims.entered:
            yield from self._undecided([pair for pair in pairs if pair not in unclear])

    def _undecided(self, pairs: Sequence[tuple[int, int]]) -> Iterator[str]:
        """Name those of whom no two can be told apart, in groups as large as can be."""
        judges = self.judges
        distinct = np.ones((len(judges), len(judges)), dtype=bool)
        for one, other in pairs:
            at = judges.index(one), judges.index(other)
            distinct[at] = distinct[at[::-1]] = False
        for group in tie_group_members(distinct):
            if len(group) > 1:
                yield f"{self._names([judges[at] for at in group])} cannot be told apart yet."

    def _in_short(self) -> Iterator[str]:
        judges = self.judges
        n = len(judges)
        said = int(self.claims.beats[np.ix_(judges, judges)].sum())
        yield f"{said:,} of {n * (n - 1) // 2:,} pairs of judges are told apart."

    def _alike(self) -> Iterator[str]:
        judges, same = self.judges, self.claims.same
        groups = [x for x in tie_group_members(~same[np.ix_(judges, judges)]) if len(x) > 1]
        for group in groups[:MOST_PAIRS]:
            within = f"they differ by no more than {100 * MARGIN:.0f} points per prompt"
            some = self._some([judges[at] for at in group])
            yield f"{some} are practically the same: {within}."

    def _missing(self) -> Iterator[str]:
        silent = self.silent
        if silent:
            has = "has" if len(silent) == 1 else "have"
            where = f"any {self.noun} that people voted on"
            yield f"{self._some(silent)} {has} no verdict on {where}."
        rest = [n for n in self.judges[1:] if n not in silent]
        low = [n for n in rest if (self.coverage[n] or 0) < WELL_COVERED]
        if low:
            texts = [f"{self.names[n]} on {_percent(self.coverage[n])}" for n in low]
            more = [f"{len(low) - MOST_NAMES} more on less"] if len(low) > MOST_NAMES else []
            some = listed([*texts[:MOST_NAMES], *more])
            yield f"Not all they were asked about has a verdict: {some}."

    def _contradicting(self) -> Iterator[str]:
        losses = self.contradicting
        losers = sorted((n for n in self.judges if losses.get(n, 0) >= 1), key=lambda n: -losses[n])
        texts = [f"{self.names[n]} loses {losses[n]:.0f}" for n in losers[:MOST_NAMES]]
        if texts:
            texts[0] += " point" if round(losses[losers[0]]) == 1 else " points"
            yield f"By contradicting itself {listed(texts)}."

    def _lack(self) -> Iterator[str]:
        if self.people is None:
            alone = f"No two people have voted on the same {self.noun}"
            yield f"{alone}, so how far people agree is not known."
        if not self.floor:
            yield "No baseline is on the board, so the floor is not known."

    # --- parts of sentences ---------------------------------------------------------------------

    def _after(self) -> str:
        by = f"{self.voters:,} {'person' if self.voters == 1 else 'people'}"
        return f"after {number_of(self.votes, 'vote')} by {by}"

    def _beside_people(self, judge: int) -> str:
        if self.people is None:
            return ""
        share = _percent(self.people)
        if share == _percent(self.agreement[judge]):
            return f", as people do among themselves ({share})"
        return f" (people among themselves: {share})"

    def _victims(self, winner: int, beaten: Sequence[int]) -> str:
        others, whom = len(self.judges) - 1, self._names(beaten)
        if len(beaten) == others > 2:
            whom = f"all {others} other judges"
        elif len(beaten) > self._room:
            whom = f"{len(beaten)} of the {others} other judges"
        return f"{whom} (evidence {_least([self.claims.evidence[winner, n] for n in beaten])})"

    def _some(self, judges: Sequence[int]) -> str:
        if len(judges) <= max(2, self._room):
            return self._names(judges)
        few = [self.names[n] for n in judges[: max(1, self._room - 1)]]
        return listed([*few, f"{len(judges) - len(few)} more"])

    def _names(self, judges: Sequence[int], word: str = "and") -> str:
        *most, last = [self.names[n] for n in judges]
        return f"{', '.join(most)} {word} {last}" if most else last

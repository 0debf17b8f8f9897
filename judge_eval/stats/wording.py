"""What a board says of its judges in plain words, from claims and from nothing else.

`Words.headline` is what a reader must know: which judge agrees most with people and whether one may
stop voting, and who beats the floor. `Words.more` has quieter sentences about everything else.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np

from humanjudge.lib.text import listed, number_of, odds
from judge_eval.stats.bradley_terry import tie_group_members
from judge_eval.stats.claims import MARGIN, Claims
from judge_eval.stats.evidence import FEWEST_FOR_FORECAST, Forecast
from judge_eval.stats.evidence_order import MOST_MEDIANS

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


def claim_in_words(winner: str, loser: str, is_baseline: bool) -> str:
    """Return what is claimed of two judges, or of a judge and a baseline that is better.

    Examples
    --------
    >>> claim_in_words("north", "south", False), claim_in_words("random", "south", True)
    ('north beats south', 'south is worse than random')
    """
    return f"{loser} is worse than {winner}" if is_baseline else f"{winner} beats {loser}"


def _after(outlook: str) -> str:
    return f": {outlook}" if outlook else ""


def _first(texts: Sequence[str], rest: str) -> list[str]:
    """Return as many texts as a sentence has room for, and how many more there are."""
    more = [f"{len(texts) - MOST_NAMES} {rest}"] if len(texts) > MOST_NAMES else []
    return [*texts[:MOST_NAMES], *more]


@dataclass(frozen=True, eq=False)
class Words:
    """Sentences about the judges at the places of `claims`; `order` has them best first.

    `agreement` and `coverage` are shares, None where there is none; `people` is the share on which
    people agree with each other, `people_low` the low end of its interval, and `chance` what it
    would be by chance. `contradicting` has points of agreement that judges lose by contradicting
    themselves, of which less than one is not mentioned; `identical` are groups of judges with the
    same verdict on every item; `impossible` has by choice how often judges gave it although no vote
    can. What is voted on is called `noun`, and `part` the part of a run that this is about.

    Examples
    --------
    >>> from judge_eval.stats.claims import claims
    >>> from judge_eval.stats.evidence_order import Opened, Voted, enter
    >>> opened = [Opened(n, n, n, 1, [0, n % 5 > 0, n % 2]) for n in range(40)]
    >>> entered = enter([*opened, *(Voted(40 + n, n, 0) for n in range(40))], range(40))
    >>> is_baseline, agreement = np.array([False, False, True]), [0.975, 0.2, 0.5]
    >>> claimed = claims(entered, is_baseline, np.array(agreement))
    >>> names, about = ["north", "south", "random"], {"votes": 40, "voters": 3, "people": 0.9}
    >>> words = Words(names, claimed, [0, 2, 1], agreement, [1, 1, 1], **about)
    >>> print(*words.headline())  # doctest: +NORMALIZE_WHITESPACE
    north is the best judge: it agrees with people on 98 % (people among themselves: 90 %) and beats
    south (evidence over 1,000,000 : 1). You may stop voting. Only north beats the baselines.
    >>> print(words.more()[0])
    north beats random (evidence 99,800 : 1).
    """

    names: Sequence[str]
    claims: Claims
    order: Sequence[int]
    agreement: Sequence[float | None]
    coverage: Sequence[float | None]
    votes: int
    voters: int
    people: float | None = None
    people_low: float | None = None
    chance: float | None = None
    contradicting: Mapping[int, float] = field(default_factory=dict)
    identical: Sequence[Sequence[int]] = ()
    impossible: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    noun: str = "pair"
    part: str = ""
    # What the shares are of.
    agrees: str = "agrees with people on"

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
        """Say which judge is best and whether one may stop voting, and who beats the baselines."""
        return [*([f"Only a part: {self.part}."] if self.part else []), *self._headline()]

    def _headline(self) -> list[str]:
        if not self.order:
            return ["No judge has given a verdict yet."]
        if not self.votes:
            nothing = "There are no votes yet, so nothing can be said about the judges."
            return [nothing, *self._few()]
        by_chance = [*self._people_by_chance()]
        if not self.judges:
            return [*by_chance, "There are only baselines on the board, and no judges."]
        if len(self.silent) == len(self.judges):
            return [*by_chance, f"No judge has a verdict on any {self.noun} that people voted on."]
        alike = self._alike_of(self.judges[0])
        return [*by_chance, *alike, *self._leader(), *self._above_floor(), *self._few()]

    def more(self) -> list[str]:
        """Say what else there is to know, in quieter sentences."""
        if not self.votes or not self.judges:
            return []
        sentences = self._others() if len(self.judges) <= MOST_NAMES else self._in_short()
        every = [
            *self._towards_best(),
            *self._floor_in_full(),
            *sentences,
            *self._alike(),
            *self._missing(),
            *self._contradicting(),
            *self._never_right(),
            *self._cut(),
            *self._lack(),
        ]
        return list(self._with_one_hint(every))

    def _with_one_hint(self, sentences: Iterable[str]) -> Iterator[str]:
        """Give the hint to raise the votes wanted once, in the headline where that gives it."""
        hint = self._too_few_planned
        is_given = any(hint in sentence for sentence in self.headline())
        for sentence in sentences:
            if hint not in sentence or is_given:
                yield sentence.replace(hint, "")
                continue
            is_given = True
            before, after = sentence.split(hint, 1)
            yield f"{before}{hint}{after.replace(hint, '')}"

    def withdrawn(self, claims: Sequence[tuple[int, int | None, str]]) -> list[str]:
        """Name claims about one judge and another that hold no longer, by reason.

        Without another, that a judge is the best.
        """
        by_reason: dict[str, list[str]] = {}
        for one, other, why in claims:
            by_reason.setdefault(why, []).append(self._claim(one, other))
        return [
            f"Withdrawn: {why}. No longer claimed: {listed(_first(gone, 'more'))}."
            for why, gone in by_reason.items()
        ]

    def _claim(self, one: int, other: int | None) -> str:
        if other is None:
            return f"{self.names[one]} is the best judge"
        return claim_in_words(
            self.names[one], self.names[other], bool(self.claims.is_baseline[one])
        )

    # --- the headline ---------------------------------------------------------------------------

    def _people_by_chance(self) -> Iterator[str]:
        low, chance = self.people_low, self.chance
        if self.people is None or low is None or chance is None or low > chance:
            return
        agree = f"({_percent(self.people)}, by chance {_percent(chance)})"
        if self.people <= chance:
            yield f"People agree with each other no more than by chance {agree}."
        else:
            yield f"Nothing shows yet that people agree more than by chance {agree}."

    def _leader(self) -> Iterator[str]:
        first, *others = self.judges
        name, claims = self.names[first], self.claims
        share = f"{_percent(self.agreement[first])}{self._beside_people(first)}"
        beats = self._beaten(first)
        agrees = f"{self.agrees} {share}{f' and {beats}' if beats else ''}."
        if not others:
            yield f"{name} is the only judge: it {agrees}"
        elif claims.best is not None:
            yield f"{name} is the best judge: it {agrees}"
            if not self.part:
                yield "You may stop voting."
        elif not claims.entered:
            yield f"Too early to say which is best: {self._votes_by_people()}."
            yield f"So far {name} {agrees}"
        elif len(self.silent) == len(others):
            yield f"{name} is the only judge with verdicts: it {agrees}"
        else:
            yield from self._unsettled()
            yield f"{name} {agrees}"
        if (covered := self.coverage[first] or 0) < WELL_COVERED:
            yield f"{name} left {_percent(1 - covered)} unanswered."

    def _unsettled(self) -> Iterator[str]:
        """Say which judges may be the best, or why the first one is not."""
        first, candidates = self.judges[0], self._candidates
        if len(self._rivals) == 1:
            yield self._pair(*candidates)
        elif len(candidates) > MOST_CANDIDATES:
            name = self.names[first]
            yield f"Not settled: {len(candidates) - 1} others may be better than {name}."
        elif self._rivals:
            outlook = self._forecast((first, n) for n in self._rivals)
            settled = f"{self._names(candidates, 'or')} may be the best judge"
            yield f"Not settled: {settled}{f'; {outlook}' if outlook else ''}."
        elif not self._alike_of(first):
            low = [n for n in self.floor if not self.claims.beats[first, n]]
            better = f"nothing shows that it is better than {self._names(low, 'or')}"
            yield f"{self.names[first]} agrees most, but {better}."

    def _beaten(self, winner: int) -> str:
        """Say which judges one beats; the best one is ahead of all."""
        others = [n for n in self.judges if n != winner]
        beaten = [n for n in others if self.claims.beats[winner, n]]
        if winner == self.claims.best and len(beaten) < len(others):
            return f"is ahead of {self._victims(winner, others)}"
        return f"beats {self._victims(winner, beaten)}" if beaten else ""

    def _is_equal(self, one: int, other: int) -> bool:
        """Whether two are practically the same, or gave the same verdict on every item."""
        is_copy = any(one in group and other in group for group in self.identical)
        return bool(self.claims.same[one, other]) or is_copy

    @property
    def _rivals(self) -> list[int]:
        """Judges with verdicts that may be better than the first one, and are not its equals."""
        first, *others = self.judges
        return [
            n
            for n in others
            if not self.claims.ahead[first, n]
            and n not in self.silent
            and not self._is_equal(first, n)
        ]

    @property
    def _candidates(self) -> list[int]:
        """The first judge, and its rivals that no judge beats."""
        rivals = self._rivals
        unbeaten = [n for n in rivals if not self.claims.beats[self.judges, n].any()]
        return [self.judges[0], *(unbeaten or rivals)]

    def _forecast(self, pairs: Iterable[tuple[int, int]]) -> str:
        """Say what it takes to tell all these pairs apart."""
        every = [self.claims.forecast[one][other] for one, other in pairs]
        forecasts = [votes for votes in every if votes is not None]
        if len(forecasts) < len(every):
            return self._outlook(None)
        highs = [votes.high for votes in forecasts if votes.high is not None]
        high = max(highs) if len(highs) == len(forecasts) else None
        return self._outlook(Forecast(max(votes.low for votes in forecasts), high))

    def _pair(self, one: int, other: int) -> str:
        """Say how a judge compares to one that agrees no more often, and what would settle it."""
        a, b, claims = self.names[one], self.names[other], self.claims
        standing = claims.standing(one, other)
        if standing == "beats":
            return f"{a} beats {b} (evidence {odds(claims.evidence[one, other])})."
        if standing == "both ways":
            return f"{a} and {b}: not settled, the evidence points both ways."
        outlook = _after(self._outlook(claims.forecast[one][other]))
        if standing == "leads":
            short = f"{odds(claims.evidence[one, other])} of {odds(claims.needed[one, other])}"
            of = "" if claims.is_baseline[other] else "evidence "
            return f"{a} leads {b}, not settled ({of}{short}){outlook}."
        return f"{a} and {b} cannot be told apart yet{outlook}."

    def _outlook(self, votes: Forecast | None) -> str:
        """Say how many more votes it takes; nothing where no number of votes would do."""
        if self.claims.too_few_prompts:
            return ""
        if self.claims.entered < FEWEST_FOR_FORECAST:
            return "too early to say how many more votes"
        if votes is None:
            return "more votes will not settle this as it stands"
        low, high = votes.low, votes.high
        more = f"some {low:,} to {high or 0:,} more votes"
        if high is None:
            more = f"at least {number_of(low, 'more vote')}, perhaps far more"
        elif low == high:
            more = f"some {number_of(low, 'more vote')}"
        return more if low <= self.claims.votes_left else more + self._too_few_planned

    @property
    def _too_few_planned(self) -> str:
        left = self.claims.votes_left
        planned = f"only {left:,} {'is' if left == 1 else 'are'}" if left else "none is"
        return f", and {planned} planned: raise the votes wanted"

    @property
    def _above(self) -> list[int]:
        """Judges that beat every baseline."""
        return [n for n in self.judges if self.claims.beats[n, self.floor].all()]

    def _above_floor(self) -> Iterator[str]:
        judges, floor = self.judges, self.floor
        worse = [n for n in judges if self.claims.beats[floor, n].any()]
        if floor and self._above:
            yield f"{self._subject(self._above)} the baselines."
        elif floor and not worse:
            nobody = "No judge beats" if len(judges) > 1 else "It does not beat"
            yield f"{nobody} the baselines yet."
        elif floor:
            low = [low for low in floor if self.claims.beats[low, worse].any()]
            are = "is" if len(worse) == 1 else "are"
            than = f"{self._some(worse)} {are} worse than {self._names(low, 'or')}"
            yield f"No judge beats the baselines, and {than}."

    def _floor_in_full(self) -> Iterator[str]:
        """Say of every judge how it compares to every baseline."""
        speaking = [n for n in self.judges if n not in self.silent]
        if len(self.judges) > self._room:
            yield from (self._beside_baseline(low, speaking) for low in self.floor if speaking)
            return
        groups: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for n in speaking:
            towards = {low: self._towards(n, low) for low in self.floor}
            for standing in dict.fromkeys(towards.values()):
                some = tuple(low for low in self.floor if towards[low] == standing)
                groups.setdefault((standing, some), []).append(n)
        for (standing, baselines), judges in groups.items():
            yield self._towards_baselines(standing, judges, baselines)

    def _towards(self, judge: int, low: int) -> str:
        claims = self.claims
        if claims.beats[judge, low] or claims.beats[low, judge]:
            return "beats" if claims.beats[judge, low] else "worse"
        is_ahead = (self.agreement[judge] or 0) > (self.agreement[low] or 0)
        return "leads" if is_ahead and claims.standing(judge, low) == "leads" else ""

    def _towards_baselines(self, standing: str, judges: Sequence[int], low: Sequence[int]) -> str:
        verbs = {"beats": ("beats", "beat"), "worse": ("is worse than", "are worse than")}
        if standing in verbs:
            evidence = self.claims.evidence if standing == "beats" else self.claims.evidence.T
            least = _least([evidence[n, m] for n in judges for m in low])
            verb = verbs[standing][len(judges) > 1]
            return f"{self._names(judges)} {verb} {self._names(low)} (evidence {least})."
        if standing == "leads":
            return " ".join(self._pair(n, m) for n in judges for m in low)
        who = f"{self._names(judges, 'or')} is"
        if len(judges) == len(self.judges) > 1:
            who = "any judge is"
        return f"Nothing shows yet that {who} better than {self._names(low, 'or')}."

    def _beside_baseline(self, low: int, judges: Sequence[int]) -> str:
        """Count how many of many judges compare in which way to one baseline."""
        texts = {"beats": "beat it", "leads": "lead, not settled", "worse": "are worse"}
        counts = Counter(
            texts.get(self._towards(n, low), "are not shown to be better") for n in judges
        )
        how = listed(f"{number} {text}" for text, number in counts.items())
        return f"{self.names[low]}: of {len(judges)} judges {how}."

    def _subject(self, above: Sequence[int]) -> str:
        judges = self.judges
        if len(above) == len(judges) <= 2:
            return "It beats" if len(judges) == 1 else "Both beat"
        if len(above) == len(judges):
            return f"All {len(judges)} judges beat"
        if len(above) > self._room:
            return f"{len(above)} of the {len(judges)} judges beat"
        return f"Only {self._names(above)} {'beats' if len(above) == 1 else 'beat'}"

    def _few(self) -> list[str]:
        few = self.claims.too_few_prompts
        return [few] if few and self.claims.best is None else []

    # --- quieter sentences ----------------------------------------------------------------------

    def _towards_best(self) -> Iterator[str]:
        """Say of the first judge what the headline leaves out where many may be the best."""
        pairs = [(self.judges[0], n) for n in self._rivals]
        is_open = self.claims.entered and self.claims.best is None
        if is_open and len(self._candidates) > MOST_CANDIDATES and self._forecast(pairs):
            yield f"To tell which is best: {self._forecast(pairs)}."

    def _others(self) -> Iterator[str]:
        """Say of every two judges what the headline leaves out."""
        claims, judges = self.claims, self.judges
        yield from (f"{self.names[n]} {beats}." for n in judges[1:] if (beats := self._beaten(n)))
        speaking = [n for n in judges if n not in self.silent]
        pairs = [
            pair
            for pair in combinations(speaking, 2)
            if not (claims.beats[pair] or self._is_equal(*pair) or claims.best in pair)
        ]
        if len(rivals := self._rivals) == 1 and (judges[0], rivals[0]) in pairs:
            pairs.remove((judges[0], rivals[0]))
        unclear = [pair for pair in pairs if claims.standing(*pair)]
        yield from (self._pair(*pair) for pair in unclear[:MOST_PAIRS])
        if len(unclear) > MOST_PAIRS:
            yield f"{len(unclear) - MOST_PAIRS} further pairs of judges are not settled."
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
            if len(some := [judges[at] for at in group]) > 1:
                outlook = _after(self._forecast(combinations(some, 2)))
                yield f"{self._names(some)} cannot be told apart yet{outlook}."

    def _in_short(self) -> Iterator[str]:
        judges = self.judges
        n = len(judges)
        distinct_pairs = int(self.claims.beats[np.ix_(judges, judges)].sum())
        yield f"{distinct_pairs:,} of {n * (n - 1) // 2:,} pairs of judges are told apart."

    def _equals(self) -> list[tuple[list[int], str]]:
        """Return groups of judges that are alike, with the sentence about each."""
        judges, same = self.judges, self.claims.same
        copies = [[n for n in self.order if n in group] for group in self.identical]
        copied = f"gave the same verdict on every {self.noun}"
        claimed = [(group, f"{self._some(group)} {copied}.") for group in copies]
        alone = [n for n in judges if not any(n in group[1:] for group in copies)]
        within = f"they differ by less than {100 * MARGIN:.0f} points of agreement per vote"
        for members in tie_group_members(~same[np.ix_(alone, alone)]):
            if len(group := [alone[at] for at in members]) > 1:
                sentence = f"{self._some(group)} are practically the same: {within}."
                claimed.append((group, sentence))
        return claimed

    def _alike_of(self, first: int) -> list[str]:
        """Name judges that are equals of the first one, unless it is the best."""
        groups = self._equals() if self.claims.best is None else []
        return [text for group, text in groups if first in group]

    def _alike(self) -> list[str]:
        """Name judges that are equals and that the headline does not name."""
        in_headline = self._alike_of(self.judges[0])
        return [text for _, text in self._equals() if text not in in_headline][:MOST_PAIRS]

    def _missing(self) -> Iterator[str]:
        silent = self.silent
        if silent:
            has = "has" if len(silent) == 1 else "have"
            where = f"any {self.noun} that people voted on"
            yield f"{self._some(silent)} {has} no verdict on {where}."
        rest = [n for n in self.judges[1:] if n not in silent]
        low = [n for n in rest if (self.coverage[n] or 0) < WELL_COVERED]
        if low:
            texts = [f"{self.names[n]} left {_percent(1 - (self.coverage[n] or 0))}" for n in low]
            yield f"{listed(_first(texts, 'others left more'))} unanswered."

    def _contradicting(self) -> Iterator[str]:
        losses = self.contradicting
        losers = sorted((n for n in self.judges if losses.get(n, 0) >= 1), key=lambda n: -losses[n])
        texts = [f"{self.names[n]} {number_of(round(losses[n]), 'point')}" for n in losers]
        if texts:
            yield f"Contradicting itself costs {listed(texts[:MOST_NAMES])}."

    def _never_right(self) -> Iterator[str]:
        """Name judges with answers that no vote can equal."""
        for choice, counts in self.impossible.items():
            judges = [n for n in self.order if counts.get(n)]
            texts = [f"{self.names[n]} (on {number_of(counts[n], self.noun)})" for n in judges]
            if texts:
                who = listed(_first(texts, "more"))
                yield f"No vote can be “{choice}” here, so that answer is never right: {who}."

    def _cut(self) -> Iterator[str]:
        if cut := self.claims.cut:
            have = "prompt has" if cut == 1 else "prompts have"
            many = f"more than {MOST_MEDIANS} times the median of the votes on a prompt"
            yield f"{cut:,} {have} {many}; evidence takes only so many of them."

    def _lack(self) -> Iterator[str]:
        if self.people is None:
            alone = f"No two people have voted on the same {self.noun}"
            yield f"{alone}, so how far people agree is not known."
        if not self.floor:
            yield "No baseline is on the board, so the floor is not known."

    # --- parts of sentences ---------------------------------------------------------------------

    def _votes_by_people(self) -> str:
        by = f"{self.voters:,} {'person' if self.voters == 1 else 'people'}"
        return f"{number_of(self.votes, 'vote')} by {by}"

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

"""What a board says of its judges in plain words, from claims and from nothing else.

`Words.headline` is what a reader must know, in two sentences. `Words.points` are what may need
somebody's hand, the most urgent first, each with a word that leads it. `Words.notes` stand among
the further figures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from humanjudge.lib.text import listed, number_of, odds
from judge_eval.stats.bradley_terry import tie_group_members
from judge_eval.stats.claims import MARGIN, Claims
from judge_eval.stats.estimate import WELL_COVERED
from judge_eval.stats.evidence import FEWEST_FOR_FORECAST, Forecast
from judge_eval.stats.evidence_order import MOST_MEDIANS

MOST_SENTENCES: Final = 2
MOST_POINTS: Final = 3
# More names than these are no longer plain words; the table has them all.
MOST_NAMES: Final = 3
LITTLE: Final = f"less than {100 * MARGIN:.0f} points"
# Judges that agree with themselves less often are named.
NAMED_SELF_AGREEMENT: Final = 0.9


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0):.0f} %"


def claim_in_words(winner: str, loser: str, is_baseline: bool) -> str:
    """Return what is claimed of two judges, or of a judge and a baseline that is better.

    Examples
    --------
    >>> claim_in_words("north", "south", False), claim_in_words("random", "south", True)
    ('north beats south', 'south is worse than random')
    """
    return f"{loser} is worse than {winner}" if is_baseline else f"{winner} beats {loser}"


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
    can. `withdrawn` are claims about one judge and another that hold no longer, with the reason;
    without another, that a judge is the best. What is voted on is called `noun`, and `part` the
    part of a run that this is about. While judges are tuned, `is_tuning`, it is about one half.

    Examples
    --------
    >>> from judge_eval.stats.claims import claims
    >>> from judge_eval.stats.evidence_order import Opened, Voted, enter
    >>> opened = [Opened(n, n, n, 1, [0, n % 5 > 0, n % 2]) for n in range(40)]
    >>> entered = enter([*opened, *(Voted(40 + n, n, 0) for n in range(40))], range(40))
    >>> is_baseline, agreement = np.array([False, False, True]), [0.975, 0.2, 0.5]
    >>> claimed = claims(entered, is_baseline, np.array(agreement))
    >>> names, about = ["north", "south", "random"], {"votes": 40, "people": 0.9}
    >>> words = Words(names, claimed, [0, 2, 1], agreement, [1, 0.8, 1], **about)
    >>> print(*words.headline())  # doctest: +NORMALIZE_WHITESPACE
    north is the best judge: it agrees with people on 98 % (people among themselves: 90 %) and beats
    south (evidence over 1,000,000 : 1). You may stop voting.
    >>> words.points()
    [('Unanswered', 'south left 20 % unanswered.'), ('Floor', 'Only north beats the baselines.')]
    """

    names: Sequence[str]
    claims: Claims
    order: Sequence[int]
    agreement: Sequence[float | None]
    coverage: Sequence[float | None]
    votes: int
    people: float | None = None
    people_low: float | None = None
    chance: float | None = None
    contradicting: Mapping[int, float] = field(default_factory=dict)
    # How often judges that were asked the same again answer the same.
    itself: Mapping[int, float] = field(default_factory=dict)
    identical: Sequence[Sequence[int]] = ()
    impossible: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    withdrawn: Sequence[tuple[int, int | None, str]] = ()
    noun: str = "pair"
    part: str = ""
    is_tuning: bool = False
    # What the shares are of.
    agrees: str = "agrees with people on"

    @cached_property
    def judges(self) -> list[int]:
        """The places of judges that are no baselines, best first."""
        return [n for n in self.order if not self.claims.is_baseline[n]]

    @cached_property
    def floor(self) -> list[int]:
        return [n for n in self.order if self.claims.is_baseline[n]]

    @cached_property
    def silent(self) -> list[int]:
        """Judges that have given no verdict at all, or none on what people voted on."""
        return [n for n in self.judges if self.agreement[n] is None or not self.coverage[n]]

    def headline(self) -> list[str]:
        """Say which judge is best and whether one may stop voting, or what is missing for it."""
        first, *rest = [*self._by_chance(), *self._state()][:MOST_SENTENCES]
        part = f"Only {self.part.removeprefix('only ')}: " if self.part else ""
        part = part or ("On the tuning half: " if self.is_tuning and self.judges else "")
        return [f"{part}{first}", *rest]

    def points(self) -> list[tuple[str, str]]:
        """Return what may need somebody's hand, the most urgent first, each with its lead."""
        headline = self.headline()
        every = [
            ("Unanswered", self._unanswered()),
            ("Changed", self._changed()),
            ("Floor", self._floor()),
            ("Not settled", self._not_settled()),
            ("Same", " ".join(self._equals(headline))),
            ("Lost to contradiction", self._contradicting()),
            ("Self-agreement", self._flipping()),
        ]
        points = [(lead, text) for lead, text in every if text and text not in headline]
        return points[:MOST_POINTS]

    def notes(self) -> list[str]:
        """Say what else one must know to read the figures."""
        if not self.votes or not self.judges:
            return []
        return [*self._no_longer_claimed(), *self._never_right(), *self._cut(), *self._lack()]

    # --- the headline ---------------------------------------------------------------------------

    def _state(self) -> list[str]:
        few = self.claims.too_few_prompts
        if not self.votes:
            nothing = "There are no votes yet, so nothing can be said about the judges."
            return [nothing, *([few] if few else [])]
        if not self.judges and self.is_tuning:
            return ["Judges are being tuned on these votes: their figures are in the workshop."]
        if not self.judges:
            return ["No judge was asked yet.", "Add judges: they answer on the votes you have."]
        if len(self.silent) == len(self.judges):
            return [f"No judge has a verdict on any {self.noun} that people voted on."]
        return self._early() if self._is_early else self._leader()

    @cached_property
    def _tells(self) -> bool:
        """Whether there is enough to compare judges at all."""
        speaks = bool(self.votes) and len(self.silent) < len(self.judges)
        return speaks and not self._is_early

    @property
    def _is_early(self) -> bool:
        claims, is_alone = self.claims, len(self.judges) == 1 and not self.floor
        if claims.best is not None or claims.beats.any() or is_alone:
            return False
        first = claims.first_claim
        return not claims.entered or (first is not None and self.votes < first.votes)

    def _early(self) -> list[str]:
        early, first = f"Too early: {number_of(self.votes, 'vote')}.", self.claims.first_claim
        if self.claims.too_few_prompts or first is None:
            return [early, *filter(None, [self.claims.too_few_prompts])]
        if self.votes < first.votes:
            return [early, f"The first claims need some {first.votes:,}."]
        prompts = number_of(first.prompts, "prompt")
        return [early, f"The first claims need all votes on some {prompts}."]

    def _by_chance(self) -> list[str]:
        low, chance = self.people_low, self.chance
        if self.people is None or low is None or chance is None or low > chance or not self._tells:
            return []
        agree = f"({_percent(self.people)}; chance {_percent(chance)})"
        if self.people <= chance:
            return [f"People agree no more than by chance {agree}."]
        return [f"Nothing shows that people agree beyond chance {agree}."]

    def _leader(self) -> list[str]:
        first, *others = self.judges
        name, agrees = self.names[first], f"{self.agrees} {self._beside_people(first)}"
        if not others:
            return [f"{name} is the only judge: it {agrees}.", *filter(None, [self._floor()])]
        if self.claims.best is not None:
            beats = "" if self._by_chance() else self._beaten(first)
            stop = [] if self.part or self.is_tuning else ["You may stop voting."]
            return [f"{name} is the best judge: it {agrees}{beats}.", *stop]
        if len(self.silent) == len(others):
            return [f"{name} is the only judge with verdicts: it {agrees}."]
        alike = [text for group, text in self._groups if first in group]
        if not alike and not self._open:
            return [f"{name} is ahead of all judges with verdicts: it {agrees}."]
        return [*(alike[:1] or [self._unsettled()]), f"{name} {agrees}."]

    def _beaten(self, best: int) -> str:
        """Say that the best judge is ahead of all others, and of a whole run how surely."""
        others = [n for n in self.judges if n != best]
        beats = "beats" if self.claims.beats[best, others].all() else "is ahead of"
        whom = f"all {len(others)} other judges" if len(others) > 2 else self._names(others)
        least = odds(min(self.claims.evidence[best, n] for n in others))
        at_least = "" if len(others) == 1 or least.startswith("over") else "at least "
        whom += f" by {LITTLE}" if self.claims.same[best, others].all() else ""
        return f" and {beats} {whom}" + ("" if self.part else f" (evidence {at_least}{least})")

    def _unsettled(self) -> str:
        """Say which judges may be the best, or why the first one is not."""
        name, rivals = self.names[self.judges[0]], self._open
        if not self._rivals:
            short = "is worse than" if self._worse else "is not yet shown to beat"
            whom = self._names(self._worse or rivals, "or")
            return f"{name} agrees most, but {short} {whom}{self._outlook()}."
        whom = self._names([self.judges[0], *rivals])
        if len(self.judges) - len(self.silent) == 2:
            whom = "the two"
        elif len(rivals) >= MOST_NAMES:
            whom = f"{name} from {self._names(rivals)}"
        votes = "this vote does" if self.votes == 1 else f"these {self.votes:,} votes do"
        return f"No winner: {votes} not separate {whom}{self._outlook('more')}."

    def _is_equal(self, one: int, other: int) -> bool:
        """Whether two are practically the same, or gave the same verdict on every item."""
        is_copy = any(one in group and other in group for group in self.identical)
        return bool(self.claims.same[one, other]) or is_copy

    @cached_property
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

    @cached_property
    def _open(self) -> list[int]:
        """Rivals that no judge beats; without any, baselines that the first judge does not beat."""
        if rivals := self._rivals:
            unbeaten = [n for n in rivals if not self.claims.beats[self.judges, n].any()]
            return unbeaten or rivals
        first, claims = self.judges[0], self.claims
        return [n for n in self.floor if claims.floor[first, n] and not claims.beats[first, n]]

    @cached_property
    def _worse(self) -> list[int]:
        """Baselines that are claimed to be better than the first judge."""
        return [low for low in self.floor if self.claims.beats[low, self.judges[0]]]

    @cached_property
    def _weakest(self) -> int:
        """Of what is open, that with the least evidence against it."""
        return min(self._open, key=lambda n: (self.claims.evidence[self.judges[0], n], n))

    @property
    def _points_both_ways(self) -> bool:
        return self.claims.standing(self.judges[0], self._weakest) in ("beats", "both ways")

    def _outlook(self, more: str = "more votes") -> str:
        """Say how many more votes settle what is open; nothing where none are to be asked for."""
        claims, first = self.claims, self.judges[0]
        is_hopeless = claims.too_few_prompts or self._worse or self._points_both_ways
        if is_hopeless or self.part or self._by_chance():
            return ""
        if claims.entered < FEWEST_FOR_FORECAST:
            return f"; too early to say how many {more}"
        if (votes := self._forecast(first)) is None:
            return "; more votes will not settle this"
        if votes.high is None:
            return f"; it takes at least {votes.low:,} {more}"
        high = "" if votes.low == votes.high else f" to {votes.high:,}"
        return f"; it takes some {votes.low:,}{high} {more}"

    def _forecast(self, first: int) -> Forecast | None:
        forecasts = [self.claims.forecast[first][n] for n in self._open]
        finite = [votes for votes in forecasts if votes is not None]
        if not finite or len(finite) < len(forecasts):
            return None
        highs = [votes.high for votes in finite if votes.high is not None]
        high = max(highs) if len(highs) == len(finite) else None
        return Forecast(max(votes.low for votes in finite), high)

    # --- the points -----------------------------------------------------------------------------

    def _unanswered(self) -> str:
        silent = self.silent
        if not self.votes or len(silent) == len(self.judges):
            return ""
        low = [n for n in self.judges if n not in silent]
        low = [n for n in low if (self.coverage[n] or 0) < WELL_COVERED]
        low.sort(key=lambda n: self.coverage[n] or 0)
        texts = [f"{self.names[n]} left {_percent(1 - (self.coverage[n] or 0))}" for n in low]
        has = "has" if len(silent) == 1 else "have"
        nothing = f"{has} no verdict on any {self.noun} that people voted on"
        parts = [f"{self._some(silent)} {nothing}"] if silent else []
        parts += [f"{listed(_first(texts, 'others less'))} unanswered"] if texts else []
        return f"{'; '.join(parts)}." if parts else ""

    def _changed(self) -> str:
        reasons = dict.fromkeys(why for *_, why in self.withdrawn)
        counts = {why: sum(why == each for *_, each in self.withdrawn) for why in reasons}
        texts = [f"{why}: {number_of(n, 'claim')} withdrawn" for why, n in counts.items()]
        return f"{'; '.join(texts).capitalize()}." if texts else ""

    def _floor(self) -> str:
        judges, floor, beats = self.judges, self.floor, self.claims.beats
        if not floor or not self._tells:
            return ""
        is_above = self.claims.beats_floor()
        if above := [n for n in judges if is_above[n]]:
            return f"{self._subject(above)} the baselines."
        is_alone, worse = len(judges) == 1, [n for n in judges if beats[floor, n].any()]
        if not worse:
            return f"{'It does not beat' if is_alone else 'No judge beats'} the baselines yet."
        than = self._names([low for low in floor if beats[low, worse].any()], "or")
        if is_alone:
            return f"It is worse than {than}."
        are = "is" if len(worse) == 1 else "are"
        return f"No judge beats the baselines, and {self._some(worse)} {are} worse than {than}."

    def _subject(self, above: Sequence[int]) -> str:
        judges = self.judges
        if len(above) == len(judges) <= 2:
            return "It beats" if len(judges) == 1 else "Both beat"
        if len(above) == len(judges):
            return f"All {len(judges)} judges beat"
        if len(above) > MOST_NAMES:
            return f"{len(above)} of the {len(judges)} judges beat"
        return f"Only {self._names(above)} {'beats' if len(above) == 1 else 'beat'}"

    def _not_settled(self) -> str:
        """Say by how much the evidence is short, and what to do about it."""
        first, claims = self.judges[0] if self.judges else 0, self.claims
        if not self._tells or claims.best is not None:
            return ""
        is_alike = any(first in group for group, _ in self._groups)
        if claims.too_few_prompts or not self._open or (is_alike and not self._rivals):
            return claims.too_few_prompts or ""
        if self._worse:
            return ""
        name, weakest = self.names[first], self._weakest
        if self._points_both_ways:
            return f"The evidence on {name} and {self.names[weakest]} points both ways."
        short = "; needs ".join(odds(of[first, weakest]) for of in (claims.evidence, claims.needed))
        text = f"{name} is not yet shown to beat {self._names(self._open, 'or')} ({short})"
        if len(self.judges) == 1:
            text += self._outlook()
        votes, left = self._forecast(first), claims.votes_left
        if votes and votes.low > left:
            more = f"only {number_of(left, 'more vote')}" if left else "no more votes"
            text += f"; {more} {'is' if left == 1 else 'are'} planned: raise the votes wanted"
        return f"{text}."

    @cached_property
    def _groups(self) -> list[tuple[list[int], str]]:
        """Return groups of judges that are alike, with the sentence about each."""
        judges, same = self.judges, self.claims.same
        copies = [[n for n in self.order if n in group] for group in self.identical]
        copied = f"gave the same verdict on every {self.noun}"
        groups = [(group, f"{self._some(group)} {copied}.") for group in copies]
        alone = [n for n in judges if not any(n in group[1:] for group in copies)]
        members = tie_group_members(~same[np.ix_(alone, alone)])
        near = [[alone[at] for at in group] for group in members if len(group) > 1]
        return [*groups, *((group, self._alike(group)) for group in near)]

    def _alike(self, group: list[int]) -> str:
        """Say of judges that they hardly differ; alike they are where none beats another."""
        one_beats = self.claims.beats[np.ix_(group, group)].any()
        alike = "differ" if one_beats else "are practically the same: they differ"
        return f"{self._some(group)} {alike} by {LITTLE} of agreement per vote."

    def _equals(self, headline: Sequence[str]) -> list[str]:
        if not self._tells:
            return []
        # Of the best judge the headline says by how little it beats the others.
        best = self.claims.best if LITTLE in headline[0] else None
        groups = [text for group, text in self._groups if best not in group]
        return [text for text in groups if text not in headline][:MOST_SENTENCES]

    def _contradicting(self) -> str:
        losses = self.contradicting
        losers = sorted((n for n in self.judges if losses.get(n, 0) >= 1), key=lambda n: -losses[n])
        texts = [f"{self.names[n]} {number_of(round(losses[n]), 'point')}" for n in losers]
        costs = listed(_first(texts, "others less"))
        return f"Contradicting itself costs {costs}." if texts else ""

    def _flipping(self) -> str:
        flip = [n for n in self.judges if self.itself.get(n, 1) < NAMED_SELF_AGREEMENT]
        texts = [f"{self.names[n]} on {_percent(self.itself[n])}" for n in flip]
        return f"Asked again, they answer alike: {listed(_first(texts, 'more'))}." if texts else ""

    # --- the notes ------------------------------------------------------------------------------

    def _no_longer_claimed(self) -> Iterator[str]:
        gone = [self._claim(one, other) for one, other, _ in self.withdrawn]
        if gone:
            yield f"No longer claimed: {listed(_first(gone, 'more'))}."

    def _claim(self, one: int, other: int | None) -> str:
        if other is None:
            return f"{self.names[one]} is the best judge"
        is_baseline = bool(self.claims.is_baseline[one])
        return claim_in_words(self.names[one], self.names[other], is_baseline)

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
        without = [n for n in self.judges if self.floor and not self.claims.floor[n].any()]
        if without:
            orders = "answered in the orders in which they were asked"
            yield f"No baseline {orders}, so their floor is not known: {self._some(without)}."

    # --- parts of sentences ---------------------------------------------------------------------

    def _beside_people(self, judge: int) -> str:
        own, people = _percent(self.agreement[judge]), _percent(self.people)
        if self.people is None or self._by_chance():
            return own
        if own == people:
            return f"{own}, as people do among themselves ({people})"
        return f"{own} (people among themselves: {people})"

    def _some(self, judges: Sequence[int]) -> str:
        return listed(_first([self.names[n] for n in judges], "more"))

    def _names(self, judges: Sequence[int], word: str = "and") -> str:
        if len(judges) > MOST_NAMES:
            are_low = all(self.claims.is_baseline[judges])
            return f"{len(judges)} {'baselines' if are_low else 'others'}"
        return listed([self.names[n] for n in judges], word)

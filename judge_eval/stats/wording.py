"""What a board says of its judges in plain words, from claims and from nothing else.

`Words.headline` is what a reader must know, in two sentences. `Words.points` are what may need
somebody's hand, the most urgent first, each with a word that leads it. `Words.notes` stand among
the further figures.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from humanjudge.core.text import fixed, listed, number_of, odds
from judge_eval.stats.bootstrap import FloatArray
from judge_eval.stats.bradley_terry import tie_group_members
from judge_eval.stats.claims import JudgeClaims
from judge_eval.stats.estimate import LEADS, WELL_COVERED
from judge_eval.stats.evidence import FEWEST_FOR_FORECAST, Forecast
from judge_eval.stats.evidence_order import MOST_MEDIANS
from judge_eval.stats.points import CONTRADICTION, FLOOR, MOST_POINTS, MOST_WORDS, SELF_AGREEMENT

MOST_SENTENCES: Final = 2
# More names than these are no longer plain words; the table has them all.
MOST_NAMES: Final = 3
# "you may stop voting" may come behind it.
WORDS_OF_STOP: Final = 4
# With fewer people nobody is told to stop voting.
FEWEST_PEOPLE: Final = 2
# A forecast whose upper end is more than so many times the lower one has no upper end in words.
FARTHEST: Final = 10
# Judges that agree with themselves less often are named.
NAMED_SELF_AGREEMENT: Final = 0.9


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0):.0f} %"


def _are(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def claim_in_words(winner: str, loser: str, is_baseline: bool) -> str:
    """Return what is claimed of two judges, or of a judge and a baseline that is better.

    Examples
    --------
    >>> claim_in_words("north", "south", False), claim_in_words("random", "south", True)
    ('north beats south', 'south is worse than random')
    """
    return f"{loser} is worse than {winner}" if is_baseline else f"{winner} beats {loser}"


def difference_in_words(
    difference: float, low: float | None, high: float | None
) -> tuple[str, str]:
    """Return a difference of two shares in points, and its interval.

    Examples
    --------
    >>> difference_in_words(0.0412, 0.021, 0.0603), difference_in_words(0.0044, None, None)
    (('4 points', '2 to 6'), ('0.4 points', ''))
    >>> difference_in_words(0.01, -0.004, 0.02)
    ('1 point', '-0.4 to 2')
    """
    ends = [end for end in (low, high) if end is not None and end == end]
    # As many decimals as the smallest of them needs to be told from nothing.
    points, *interval = (
        fixed(100 * number, 0 if abs(number) >= 0.0095 or not number else 1)
        for number in (difference, *ends)
    )
    unit = "point" if points in ("1", "-1") else "points"
    return f"{points} {unit}", " to ".join(interval)


def _first(texts: Sequence[str], rest: str) -> list[str]:
    """Return as many texts as a sentence has room for, and how many more there are."""
    more = [f"{len(texts) - MOST_NAMES} {rest}"] if len(texts) > MOST_NAMES else []
    return [*texts[:MOST_NAMES], *more]


@dataclass(frozen=True, eq=False)
class Words:
    """Sentences about the judges at the places of `claims`; `order` has them best first.

    `agreement` and `coverage` are shares, None where there is none, and `differences`, of shape (3,
    J, J), by how much rows agree more than columns, with the ends of its interval. So many people
    (`voters`) cast the `votes` on so many `prompts`, besides whom some are `labels` of no single
    person. `people` is the share on which people agree with each other, `people_low` the low end of
    its interval, and `chance` what it would be by chance. `contradicting` has points of agreement
    that judges lose by contradicting themselves, of which less than one is not mentioned;
    `identical` are groups of judges with the same verdict on every item; `impossible` has by choice
    how often judges gave it although no vote can. `withdrawn` are claims about one judge and
    another that hold no longer, with the reason; without another, that a judge is the best. What is
    voted on is called `noun`, and `part` the part of a run that this is about. While judges are
    tuned, `is_tuning`, it is about one half.

    Examples
    --------
    >>> from judge_eval.stats.claims import claims
    >>> from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
    >>> opened = [ItemOpened(n, n, n, 1, [0, n % 5 > 0, n % 2]) for n in range(40)]
    >>> voted = (VoteCast(40 + n, n, 0, voter=n // 20) for n in range(40))
    >>> entered = enter([*opened, *voted], range(40))
    >>> is_baseline, agreement = np.array([False, False, True]), [1.0, 0.2, 0.5]
    >>> claimed = claims(entered, is_baseline, np.array(agreement))
    >>> names, about = ["north", "south", "random"], {"votes": 40, "voters": 2, "prompts": 40}
    >>> words = Words(names, claimed, [0, 2, 1], agreement, [1, 0.8, 1], **about)
    >>> print(*words.headline())  # doctest: +NORMALIZE_WHITESPACE
    north agrees with people on 100 %, south on 20 %: 80 points more (evidence over 1,000,000 : 1).
    Best of 2 judges: 40 votes of 2 people on 40 prompts.
    >>> words.may_stop
    True
    >>> words.points()[0]
    ('Unanswered', 'south left 20 % unanswered.')
    """

    names: Sequence[str]
    claims: JudgeClaims
    order: Sequence[int]
    agreement: Sequence[float | None]
    coverage: Sequence[float | None]
    votes: int
    voters: int = 0
    labels: bool = False
    prompts: int = 0
    differences: FloatArray | None = None
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
    # What judges are, in a few words, of those that somebody described.
    descriptions: Mapping[int, str] = field(default_factory=dict)
    # Of judges that were asked about part of the items alone, how many of how many that is.
    asked_about: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    is_tuning: bool = False
    # Whether the shares are of people's order of ratings.
    by_order: bool = False

    @property
    def agrees(self) -> str:
        return "agrees with people's order on" if self.by_order else "agrees with people on"

    @cached_property
    def judges(self) -> list[int]:
        """The places of judges that are no baselines and gave some verdict, best first."""
        silent = self.claims.silent
        return [n for n in self.order if not self.claims.is_baseline[n] and not silent[n]]

    @cached_property
    def floor(self) -> list[int]:
        silent = self.claims.silent
        return [n for n in self.order if self.claims.is_baseline[n] and not silent[n]]

    @cached_property
    def silent(self) -> list[int]:
        """Judges that have given no verdict on what people voted on."""
        silent = self.claims.silent
        return [n for n in self.order if silent[n] and not self.claims.is_baseline[n]]

    @cached_property
    def may_stop(self) -> bool:
        """Whether whoever runs or votes in this run, while it is open, may be told to stop."""
        is_whole = not self.part and not self.is_tuning and not self._by_chance()
        is_best = self.claims.best is not None and self.carried is None
        return is_whole and is_best and self.voters >= FEWEST_PEOPLE

    @cached_property
    def carried(self) -> tuple[int, int] | None:
        """The judge that leads by one voter's votes alone, and the one it leads; None if none."""
        first, *others = self.judges or [0]
        rivals = [*others, *self._floor_of(first)] if self.claims.best == first else others[:1]
        carried_rivals = (n for n in rivals if self.claims.by_one[first, n])
        return next(((first, n) for n in carried_rivals), None)

    def headline(self) -> list[str]:
        """Say who leads and by how much, and by which votes, or what is missing for it.

        Judges are called what they are where there is room for it, or else by their names, of
        which long ones are cut where they must be.
        """
        number = Counter(self.descriptions.values())
        described = {n: text for n, text in self.descriptions.items() if number[text] == 1}
        called = [described.get(n, name) for n, name in enumerate(self.names)]
        first, *rest = replace(self, names=called)._sentences()
        words = " ".join([first, *rest])
        if len(words.split()) <= MOST_WORDS and words.count(". ") < MOST_SENTENCES:
            is_first = first.startswith(tuple(described.values()))
            return [f"{first[:1].upper()}{first[1:]}" if is_first else first, *rest]
        sentences = self._sentences()
        if len(" ".join(sentences).split()) > MOST_WORDS - WORDS_OF_STOP:
            # The first word of each name and its last, which tells it from others.
            cut = [re.sub(r"\s+(.*\s)?", "…", name, count=1) for name in self.names]
            return replace(self, names=cut)._sentences()
        return sentences

    def _sentences(self) -> list[str]:
        first, *rest = [*self._by_chance(), *self._state()][:MOST_SENTENCES]
        return [f"{self._about}{first}", *rest]

    @property
    def _about(self) -> str:
        if self.part:
            return f"Only {self.part.removeprefix('only ')}: "
        return "On the tuning half: " if self.is_tuning and self.judges else ""

    def points(self) -> list[tuple[str, str]]:
        """Return what may need somebody's hand, the most urgent first, each with its lead."""
        headline, people = self._sentences(), ""
        if self.people is not None:
            people = f"Among themselves they agree on {_percent(self.people)}."
        candidates = [
            ("Asked", self._partly_asked()),
            ("Unanswered", self._unanswered()),
            ("Changed", self._changed()),
            (FLOOR, self._floor()),
            ("Not settled", self._not_settled()),
            ("Same", " ".join(self._equals(headline))),
            (CONTRADICTION, self._contradicting()),
            (SELF_AGREEMENT, self._flipping()),
            ("People", people if self._tells and not self._by_chance() else ""),
        ]
        points = [(lead, text) for lead, text in candidates if text and text not in headline]
        return points[:MOST_POINTS]

    def notes(self) -> list[str]:
        """Say what else one must know to read the figures."""
        if not self.votes or not self.judges:
            return []
        gone = [self._claim(winner, loser) for winner, loser, _ in self.withdrawn]
        lost = [f"No longer claimed: {listed(_first(gone, 'more'))}."] if gone else []
        return [*lost, *self._never_right(), *self._cut(), *self._lack()]

    # --- the headline ---------------------------------------------------------------------------

    def _state(self) -> list[str]:
        few = self.claims.too_few_prompts
        if not self.votes:
            nothing = "There are no votes yet, so nothing can be said about the judges."
            return [nothing, *([few] if few else [])]
        if self.silent and not self.judges:
            return [f"No judge has a verdict on any {self.noun} that people voted on."]
        if not self.judges and self.is_tuning:
            return ["Judges are being tuned on these votes: their figures are in the workshop."]
        if not self.judges:
            return ["No judge was asked yet.", "Add judges: they answer on the votes you have."]
        if self._is_early:
            return self._early()
        if self.claims.best is not None or (len(self.judges) == 1 and not self._open):
            return self._best()
        return self._leaders()

    @cached_property
    def _tells(self) -> bool:
        return bool(self.votes) and bool(self.judges) and not self._is_early

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

    def _best(self) -> list[str]:
        first, *others = self.judges
        against = [*others] or self._floor_of(first)
        rank = f"Best of {len(self.judges)} judges" if others else "It is the only judge"
        rank += ", by one voter's votes alone" if self.carried and not self._one_voted else ""
        sentence = self._share_of(first)
        if against:
            sentence = self._effect(first, self._weakest_of([first], against)[1])
        ending = f"{rank}: {self._basis}{self._one_voted}."
        if self._is_long(sentence, ending):
            ending = f"{rank}: {number_of(self.votes, 'vote')}."
        return [f"{sentence}.", ending]

    def _is_long(self, *sentences: str) -> bool:
        first, second = [*self._by_chance(), *sentences][:MOST_SENTENCES]
        return len(f"{self._about} {first} {second}".split()) > MOST_WORDS

    def _share_of(self, judge: int) -> str:
        few, _ = self.asked_about.get(judge, (0, 0))
        of_these = f" of the {few:,} {self.noun}s it was asked about" if few else ""
        return f"{self.names[judge]} {self.agrees} {_percent(self.agreement[judge])}{of_these}"

    def _effect(self, winner: int, loser: int) -> str:
        points, interval = self._difference(winner, loser)
        evidence = f"evidence {odds(self.claims.evidence[winner, loser])}"
        beside = f"{interval}; {evidence}" if interval else evidence
        against = f"{self.names[loser]} on {_percent(self.agreement[loser])}"
        return f"{self._share_of(winner)}, {against}: {points} more ({beside})"

    def _difference(self, judge: int, rival: int) -> tuple[str, str]:
        if self.differences is not None:
            return difference_in_words(*self.differences[:, judge, rival].tolist())
        value = (self.agreement[judge] or 0) - (self.agreement[rival] or 0)
        return difference_in_words(value, None, None)

    @cached_property
    def _basis(self) -> str:
        votes = number_of(self.votes, "vote")
        on_prompts = f" on {number_of(self.prompts, 'prompt')}"
        people = f"{self.voters:,} {'person' if self.voters == 1 else 'people'}"
        if self.labels:
            labels = "labels of the file"
            return (
                f"{votes} of {people} and {labels}{on_prompts}"
                if self.voters
                else f"{votes}{on_prompts}, {labels}"
            )
        return f"{votes} of {people}{on_prompts}" if self.voters > 1 else f"{votes}{on_prompts}"

    @property
    def _one_voted(self) -> str:
        return "; one person voted" if self.voters == 1 and not self.labels else ""

    @cached_property
    def _tiers(self) -> list[list[int]]:
        """Judges in groups: the first, with those that its evidence does not tell apart, and so on.

        What is practically the same is told apart by no evidence.
        """
        tiers, left = [], [*self.judges]
        while left:
            top = left[0]
            now = self.claims.evidence_now[top]
            tier = [n for n in left if n == top or now[n] < LEADS or self._is_equal(top, n)]
            tiers.append(tier)
            left = [n for n in left if n not in tier]
        return tiers

    def _weakest_of(self, leaders: Sequence[int], rivals: Sequence[int]) -> tuple[int, int]:
        """Of those and the others, the two with the least evidence between them."""
        pairs = ((leader, rival) for leader in leaders for rival in rivals)
        return min(pairs, key=lambda pair: (self.claims.evidence[pair], pair))

    @cached_property
    def _compared(self) -> tuple[int, int]:
        """The two on whom it depends what else is to be learnt: of groups, the nearest of each.

        Where these are settled it is the first one and the nearest rival, or the floor.
        """
        if self._rivals and len(self._tiers) > 1:
            nearest = self._weakest_of(*self._tiers[:2])
            if not self.claims.ahead[nearest] and not self.claims.beats[nearest]:
                return nearest
        return self._weakest_of(self.judges[:1], self._open)

    def _leaders(self) -> list[str]:
        """Say who leads, not settled, or who cannot be told apart, and what would settle it."""
        first = self.judges[0]
        alike = [text for group, text in self._groups if first in group]
        # More votes are never asked for to tell those apart that hardly differ.
        is_settled = bool(alike) or not self._open
        outlook = "" if is_settled else self._outlook()
        ending = f"{self._basis}{self._one_voted}{outlook}."
        if is_settled:
            return [*(alike[:1] or [f"{self._share_of(first)}."]), ending]
        sentence = self._order_sentence(has_shares=True)
        if self._is_long(sentence, ending):
            sentence = self._order_sentence(has_shares=False)
        for shorter in (outlook, ""):
            if self._is_long(sentence, ending):
                ending = f"{number_of(self.votes, 'vote')}{shorter}."
        if self._is_long(sentence, ending):
            sentence = f"{self._share_of(first)}, not settled"
        return [f"{sentence}.", ending]

    def _order_sentence(self, *, has_shares: bool) -> str:
        (first, *_), (judge, rival) = self.judges, self._compared
        name = self._with_shares if has_shares else self._so_many
        if self._worse:
            return f"{self._share_of(first)}, but is worse than {self._names(self._worse, 'or')}"
        if self._points_both_ways:
            both = f"{name([first])} agrees most, but the evidence points both ways."
            return (self._turned() or both).removesuffix(".")
        if not self._rivals and self.claims.evidence_now[judge, rival] < LEADS:
            than = f"nothing shows that it is better than {self.names[rival]}"
            is_alone = len(self.judges) == 1
            most = self._share_of(first) if is_alone else f"{name([first])} agrees most"
            return f"{most}, but {than}"
        order = "By people's order, " if self.by_order else ""
        return order + self._by_groups(name, self._tiers if self._rivals else [[first], [rival]])

    def _by_groups(self, name: Callable[[Sequence[int]], str], groups: Sequence[list[int]]) -> str:
        """Say who of the first group leads the next one, by the nearest two of them."""
        top, *rest = groups
        if not rest:
            return f"{name(top)} cannot be told apart yet"
        judge, rival = self._weakest_of(top, rest[0])
        if self.claims.evidence_now[judge, rival] < LEADS:
            # Of the first one alone it is known that it leads them all.
            judge, rival = self._weakest_of(top[:1], rest[0])
            leading = f"{self.names[top[0]]} leads"
        else:
            leading = "both lead" if len(top) == 2 else "all lead"
        points, interval = self._difference(judge, rival)
        lead = f"by {points}" + (f" ({interval})" if interval else "")
        is_claimed = self.claims.beats[judge, rival] or self.claims.ahead[judge, rival]
        strength = f"evidence {odds(self.claims.evidence[judge, rival])}"
        if len(top) == 1:
            verb = "beats" if is_claimed else "leads"
            strength = strength if is_claimed else f"not settled ({self._enough(judge, rival)})"
            return f"{name(top)} {verb} {name(rest[0])} {lead}, {strength}"
        if is_claimed:
            leading, strength = (
                leading.replace("lead", "beat"),
                f"{self.names[judge]} {lead}; {strength}",
            )
        else:
            strength = self._enough(judge, rival)
        apart = f"{name(top)} cannot be told apart yet"
        return f"{apart}; {leading} {self._names(rest[0])} ({strength})"

    def _enough(self, judge: int, rival: int) -> str:
        return " of ".join(
            odds(matrix[judge, rival]) for matrix in (self.claims.evidence, self.claims.needed)
        )

    def _with_shares(self, judges: Sequence[int]) -> str:
        if len(judges) > MOST_NAMES:
            return self._so_many(judges)
        return listed(f"{self.names[n]} ({_percent(self.agreement[n])})" for n in judges)

    def _is_equal(self, first: int, second: int) -> bool:
        """Whether two are practically the same, or gave the same verdict on every item."""
        is_copy = any(first in group and second in group for group in self.identical)
        return bool(self.claims.same[first, second]) or is_copy

    @cached_property
    def _rivals(self) -> list[int]:
        """Judges with verdicts that may be better than the first one, and are not its equals."""
        first, *others = self.judges
        return [
            n for n in others if not self.claims.ahead[first, n] and not self._is_equal(first, n)
        ]

    @cached_property
    def _open(self) -> list[int]:
        """Rivals that no judge beats; without any, baselines that the first judge does not beat."""
        if rivals := self._rivals:
            unbeaten = [n for n in rivals if not self.claims.beats[self.judges, n].any()]
            return unbeaten or rivals
        first = self.judges[0]
        return [n for n in self._floor_of(first) if not self.claims.beats[first, n]]

    def _floor_of(self, judge: int) -> list[int]:
        """Return the baselines that were asked as a judge was, and that it is held against."""
        return [low for low in self.floor if self.claims.floor[judge, low]]

    @cached_property
    def _worse(self) -> list[int]:
        return [low for low in self.floor if self.claims.beats[low, self.judges[0]]]

    @property
    def _points_both_ways(self) -> bool:
        judge, rival = self._compared
        return self.claims.pair_state(judge, rival) in ("beats", "was ahead", "both ways")

    def _outlook(self) -> str:
        """Say how many more votes settle what is open; nothing where none are to be asked for."""
        claims, pair = self.claims, self._compared
        is_hopeless = claims.too_few_prompts or self._worse or self._points_both_ways
        if is_hopeless or self.part or self._by_chance():
            return ""
        if claims.entered < FEWEST_FOR_FORECAST:
            is_over = claims.has_all_prompts
            return "; add prompts" if is_over else "; too early to say how many more votes"
        votes = claims.forecast[pair[0]][pair[1]]
        if votes is None:
            return "; more votes will not settle this"
        far_note = ", perhaps far more" if votes.high is None else ""
        if not claims.can_reach[pair]:
            return f"; add prompts: {self._range(votes)} votes on new ones{far_note}"
        left = claims.votes_left
        planned = f"only {left:,} {'is' if left == 1 else 'are'}" if left else "no more are"
        short = f", and {planned} planned: raise the votes wanted" if votes.low > left else ""
        return f"; {self._range(votes)} more votes{short or far_note}"

    @staticmethod
    def _range(votes: Forecast) -> str:
        if votes.high is not None and votes.high <= FARTHEST * votes.low:
            high = "" if votes.low == votes.high else f" to {votes.high:,}"
            return f"some {votes.low:,}{high}"
        return f"at least {votes.low:,}"

    # --- the points -----------------------------------------------------------------------------

    def _partly_asked(self) -> str:
        parts = [
            f"{self.names[n]} was asked about {few:,} of {number_of(most, self.noun)}"
            for n, (few, most) in self.asked_about.items()
        ]
        subset = "these" if len(parts) == 1 else "those of each"
        ending = f": what is said here of it is about {subset}, and makes it no best judge."
        return f"{listed(parts)}{ending}" if parts else ""

    def _unanswered(self) -> str:
        if not self.votes or not self.judges:
            return ""
        low = [n for n in self.judges if (self.coverage[n] or 0) < WELL_COVERED]
        low.sort(key=lambda n: self.coverage[n] or 0)
        texts = [f"{self.names[n]} left {_percent(1 - (self.coverage[n] or 0))}" for n in low]
        parts = [f"{self._list_names(self.silent)} answered nothing"] if self.silent else []
        parts += [f"{listed(_first(texts, 'others less'))} unanswered"] if texts else []
        return f"{'; '.join(parts)}." if parts else ""

    def _changed(self) -> str:
        reasons = dict.fromkeys(reason for *_, reason in self.withdrawn)
        counts = {
            reason: sum(reason == withdrawal_reason for *_, withdrawal_reason in self.withdrawn)
            for reason in reasons
        }
        texts = [f"{reason}: {number_of(n, 'claim')} withdrawn" for reason, n in counts.items()]
        return f"{'; '.join(texts).capitalize()}." if texts else ""

    def _floor(self) -> str:
        if not self.floor or not self._tells:
            return ""
        beats, floor = self.claims.beats, self.floor
        is_above = self.claims.beats_floor()
        compared = [n for n in self.judges if is_above[n] is not None]
        above = [n for n in compared if is_above[n]]
        worse = [n for n in compared if beats[floor, n].any()]
        parts = [f"{self._subject(above)} the baselines"] if above else []
        parts += self._unsure([n for n in compared if n not in above and n not in worse])
        if worse:
            than = self._names([low for low in floor if beats[low, worse].any()], "or")
            parts.append(f"{self._so_many(worse)} {_are(worse)} worse than {than}")
        sentence = "; ".join(parts)
        if not sentence:
            return ""
        # What begins with a name is written as that is.
        return (
            f"Nothing{sentence.removeprefix('nothing')}."
            if sentence.startswith("nothing ")
            else f"{sentence}."
        )

    def _unsure(self, judges: Sequence[int]) -> Iterator[str]:
        """Say of judges that neither beat all baselines nor are worse than one what is known."""
        near: dict[int, int] = {}
        for n in judges:
            left = [low for low in self._floor_of(n) if not self.claims.beats[n, low]]
            near[n] = self._weakest_of([n], left)[1]
        leading = [n for n in judges if self.claims.evidence_now[n, near[n]] >= LEADS]
        if leading:
            least = min(leading, key=lambda n: self.claims.evidence[n, near[n]])
            enough = f"not settled ({self._enough(least, near[least])})"
            lead = "leads" if len(leading) == 1 else "lead"
            yield f"{self._so_many(leading)} {lead} {self.names[near[least]]}, {enough}"
        if rest := [n for n in judges if n not in leading]:
            than = self._names([low for low in self.floor if low in {near[n] for n in rest}], "or")
            yield f"nothing shows yet that {self._so_many(rest)} {_are(rest)} better than {than}"

    def _so_many(self, judges: Sequence[int]) -> str:
        return self._names(judges) if len(judges) <= MOST_NAMES else f"{len(judges)} judges"

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
        """Say what the headline has no room for: what has turned, and what to do about prompts."""
        claims = self.claims
        if not self._tells or claims.best is not None:
            return ""
        if turned := self._turned():
            return turned
        is_alike = any(self.judges[0] in group for group, _ in self._groups)
        if claims.too_few_prompts or not self._open or is_alike or self._worse:
            return claims.too_few_prompts or ""
        judge, rival = self._compared
        if self._points_both_ways:
            return f"The evidence on {self.names[judge]} and {self.names[rival]} points both ways."
        if claims.has_all_prompts and claims.entered < FEWEST_FOR_FORECAST:
            few = f"{number_of(claims.prompts, 'prompt')} {_are(range(claims.prompts))} few"
            count = f": {self.votes:,} votes on them count as {claims.prompts}"
            return f"{few}{count if self.votes > claims.prompts else ''}. Add prompts."
        return ""

    def _turned(self) -> str:
        """Name a judge that was ahead, of the first or the first itself, until later votes."""
        first, *others = self.judges
        for low in [*others, *self._floor_of(first)]:
            for judge, rival in ((first, low), (low, first)):
                if self.claims.pair_state(judge, rival) == "was ahead":
                    beside = f"Beside {self.names[rival]}, " if len(self.judges) > 2 else ""
                    until = f"until vote {self.claims.until[judge][rival]:,}"
                    ahead = f"{beside}{self.names[judge]} was ahead {until}"
                    return f"{ahead}; the later votes speak against it."
        return ""

    @cached_property
    def _groups(self) -> list[tuple[list[int], str]]:
        judges, same = self.judges, self.claims.same
        copies = [[n for n in self.order if n in group] for group in self.identical]
        copied = f"gave the same verdict on every {self.noun}"
        groups = [(group, f"{self._list_names(group)} {copied}.") for group in copies]
        alone = [n for n in judges if not any(n in group[1:] for group in copies)]
        members = tie_group_members(~same[np.ix_(alone, alone)])
        near = [[alone[place] for place in group] for group in members if len(group) > 1]
        return [*groups, *((group, self._alike(group)) for group in near)]

    @property
    def little(self) -> str:
        return f"less than {100 * self.claims.margin:.3g} points"

    def _alike(self, group: list[int]) -> str:
        """Say of judges that they hardly differ; alike they are where none beats another."""
        one_beats = self.claims.beats[np.ix_(group, group)].any()
        alike = "differ" if one_beats else "are practically the same: they differ"
        return f"{self._list_names(group)} {alike} by {self.little} of agreement per vote."

    def _equals(self, headline: Sequence[str]) -> list[str]:
        if not self._tells:
            return []
        # Of the best judge the headline says by how little it beats the others.
        groups = [text for group, text in self._groups if self.claims.best not in group]
        return [text for text in groups if text not in headline][:MOST_SENTENCES]

    def _contradicting(self) -> str:
        losses = self.contradicting
        losers = sorted((n for n in self.judges if losses.get(n, 0) >= 1), key=lambda n: -losses[n])
        texts = [f"{self.names[n]} {number_of(round(losses[n]), 'point')}" for n in losers]
        costs = listed(_first(texts, "others less"))
        return f"With the sides swapped the answer changes, which costs {costs}." if texts else ""

    def _flipping(self) -> str:
        flip = [n for n in self.judges if self.itself.get(n, 1) < NAMED_SELF_AGREEMENT]
        texts = [f"{self.names[n]} on {_percent(self.itself[n])}" for n in flip]
        return f"Asked again, they answer alike: {listed(_first(texts, 'more'))}." if texts else ""

    # --- the notes ------------------------------------------------------------------------------

    def _claim(self, winner: int, loser: int | None) -> str:
        if loser is None:
            return f"{self.names[winner]} is the best judge"
        is_baseline = bool(self.claims.is_baseline[winner])
        return claim_in_words(self.names[winner], self.names[loser], is_baseline)

    def _never_right(self) -> Iterator[str]:
        for choice, counts in self.impossible.items():
            judges = [n for n in self.order if counts.get(n)]
            texts = [f"{self.names[n]} (on {number_of(counts[n], self.noun)})" for n in judges]
            if texts:
                names = listed(_first(texts, "more"))
                yield f"No vote can be “{choice}” here, so that answer is never right: {names}."

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
            yield f"No baseline {orders}, so their floor is not known: {self._list_names(without)}."

    # --- parts of sentences ---------------------------------------------------------------------

    def _list_names(self, judges: Sequence[int]) -> str:
        return listed(_first([self.names[n] for n in judges], "more"))

    def _names(self, judges: Sequence[int], word: str = "and") -> str:
        if len(judges) > MOST_NAMES:
            are_low = all(self.claims.is_baseline[judges])
            return f"{len(judges)} {'baselines' if are_low else 'others'}"
        return listed([self.names[n] for n in judges], word)

"""`humanjudge verify` with the genuine head finds what was changed beside the ledger."""

import json
import re
from copy import deepcopy
from functools import partial
from itertools import chain
from uuid import uuid4

import pytest
from django.core.cache import cache

from judge_eval.exports.export import export_run
from judge_eval.ledger.objects import UNASKED, config_hash
from judge_eval.models import Findings, Run, Verdict
from judge_eval.runs import lifecycle
from reports.report.bundle import LEDGER, REPORT, NotVerified, verify
from reports.report.compare import unequal
from reports.report.make import report_of
from reports.report.not_covered import NOT_COMPARED, NOT_COVERED
from tests.helpers.bundles import empty_the_instance, restored
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.run_rows import make_config
from tests.makers import forget_hashes, make_vote, make_voter, pairs_of, restate, seal_all
from tests.reports.report.test_verify import (
    bundle_behind,
    bundle_of,
    bundle_refused,
    link_of,
    members_of,
    zipped,
)
from voting.ledger import ledger
from voting.models import Entry
from voting.people.voters import erase

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
TURNED = {"A": "B", "B": "A"}
NO_CONFIG = "configs of 1 run, which are not stored here"
CONFIG = {"judges": [{"id": "jury", "options": {"instructions": "Be strict"}}]}


@pytest.fixture(scope="module")
def made_once(module_db):
    cache.clear()
    run = voted_run(pairs=4)
    Verdict.objects.filter(judge__run=run).update(latency_ms=1250.5, cost_nano=3_000)
    restate(run)
    compute(run)
    return run


@pytest.fixture
def run(made_once):
    cache.clear()
    return deepcopy(made_once)


@pytest.fixture(scope="module")
def genuine(made_once):
    return opened(made_once)


@pytest.fixture
def bundle(genuine, tmp_path):
    empty_the_instance()
    return tmp_path / "bundle.zip", *genuine


def opened(run):
    """Return the files of a genuine bundle, and the head of its ledger."""
    return members_of(bundle_of(run)), run.queue.project.ledger_head


def records_of(members):
    return [json.loads(line) for line in members[LEDGER].splitlines()]


def write(path, members, records):
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    zipped(members | {LEDGER: lines.encode()}, path)


def every(kind, *, most=None, **changes):
    def forge(records):
        for record in [record for record in records if record["type"] == kind][:most]:
            record |= {k: v(record) if callable(v) else v for k, v in changes.items()}

    return forge


def exchanged(kind, *names):
    def forge(records):
        first, second = [record for record in records if record["type"] == kind][:2]
        for name in names:
            first[name], second[name] = second[name], first[name]

    return forge


first = partial(every, most=1)
FORGED = {
    "all verdicts turned round": every("verdict", winner=lambda it: TURNED.get(it["winner"], "A")),
    "one verdict": first("verdict", winner=lambda it: TURNED.get(it["winner"], "A")),
    "names of judges exchanged": exchanged("judge", "name"),
    "judges exchanged": exchanged("judge", "id"),
    "another model": first("judge", model="gpt-5"),
    "another provider": first("judge", provider="openai"),
    "generators exchanged": every(
        "inference", generator=lambda it: f"generator-{1 - int(it['generator'][-1])}"
    ),
    "cheaper": every("verdict", cost_nano=1),
    "quicker": every("verdict", latency_ms=1.0),
    "picks of both orders": every("verdict", order="both", picks=["A", "A"], consistent=False),
    "what stood first": every("verdict", first_picks=1),
    "scores": every("verdict", score_a=9.0, score_b=1.0),
    "a failure in place of a verdict": first("verdict", state="failed", winner="", error="timeout"),
    "a verdict that has not come": first("verdict", state="waiting", winner=""),
    "the title": first("run", name="Another study"),
    "the project": first("header", project=lambda it: it["project"] | {"name": "Another"}),
    "the rubric": first("rubric", text="Which is longer?"),
    "epsilon": first("run", epsilon=0.4),
    "prompts": every("inference", prompt="Another question"),
    "tags": every("inference", tags=["hard"]),
    "prompts counted as one": every("comparison", prompt_key="one"),
    "sides exchanged": exchanged("comparison", "a", "b"),
    "items left out": first("comparison", unusable="A could not be drawn"),
    "an item that is closed": first("comparison", opened_at=None),
    "places exchanged": exchanged("comparison", "position"),
    "another hash of an entry": first("entry", hash="0" * 64),
    "another salt": first("run", salt="0" * 32),
    "no salt": first("run", salt=""),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_bundle_is_refused_with_the_genuine_head(bundle, kind):
    path, members, head = bundle
    records = records_of(members)
    FORGED[kind](records)
    write(path, members, records)
    with pytest.raises(NotVerified) as wrong:
        verify(path, head)
    assert ": the report says" not in str(wrong.value), "found by its figures alone"


def renamed(records, *, report):
    """Let a decoy have the run's number, so that its queue, items and votes are another run's."""
    [run] = [record for record in records if record["type"] == "run"]
    first, second = [record for record in records if record["type"] == "judge"][:2]
    genuine, other = run["id"], str(uuid4())
    for record in records:
        if record.get("run") == genuine:
            record["run"] = other
    decoy = run | {"queue": str(uuid4()), "state": "voting"}
    run |= {"id": other, "name": "Independent audit by NIST"}
    first["name"], second["name"] = second["name"], first["name"]
    records[0]["runs"].append(other)
    records.insert(records.index(run), decoy)
    records[-1]["lines"] += 1
    return with_own_report(records, report, "Independent audit by NIST")


def with_own_report(records, report, title=""):
    """Return the report that follows from forged records, if they can be restored at all."""
    empty_the_instance()
    try:
        runs = restored([json.dumps(record) for record in records])
    except AssertionError:
        return report
    of = [run for run in runs if run.name == title] or runs
    for run in runs:
        compute(run)
    forged = report_of(of[0].queue.project, of[0])
    empty_the_instance()
    return forged.as_json().encode()


def test_a_bundle_whose_run_was_exchanged_is_refused(bundle):
    path, members, head = bundle
    records = records_of(members)
    members = members | {REPORT: renamed(records, report=members[REPORT])}
    write(path, members, records)
    with pytest.raises(NotVerified, match=r"is another run than|is no run of"):
        verify(path, head)


def extra_run(records, *, state="voting"):
    """Add a run of which no entry tells, with a judge."""
    run = next(record for record in records if record["type"] == "run")
    judge = next(record for record in records if record["type"] == "judge")
    other = run | {"id": str(uuid4()), "queue": str(uuid4()), "name": "Our study", "state": state}
    records[0]["runs"].append(other["id"])
    records[-1]["lines"] += 2
    add = [other, judge | {"id": str(uuid4()), "run": other["id"], "position": 0}]
    records[records.index(run) : records.index(run)] = add


def free_verdicts(records, *, opened=None):
    """Add an item of which no entry tells, with a verdict that cost nothing."""
    pairs = [record for record in records if record["type"] == "comparison"]
    judge = next(record for record in records if record["type"] == "judge")
    verdict = next(record for record in records if record["type"] == "verdict")
    item = pairs[-1] | {"id": str(uuid4()), "position": len(pairs), "opened_at": opened}
    free = verdict | {"comparison": item["id"], "judge": judge["id"], "cost_nano": 0}
    place = max(n for n, record in enumerate(records) if record["type"] == "verdict") + 1
    records[place:place] = [item, free]
    records[-1]["lines"] += 2


UNKNOWN = {
    "a run": (extra_run, "run Our study: no ledger entry is about it"),
    "a draft": (
        partial(extra_run, state="draft"),
        "draft",
    ),
    "a closed item with a verdict": (free_verdicts, "no ledger entry is about a verdict of"),
    "an open item with a verdict": (
        partial(free_verdicts, opened="2026-01-01T00:00:00Z"),
        "pair 5 of .* is open: no ledger entry is about it",
    ),
    "a verdict still to come": (
        lambda records: first("verdict", state="failed", winner="", error=UNASKED)(records),
        "verdict",
    ),
    "a run given twice": (
        lambda records: records[0]["runs"].append(records[0]["runs"][0]),
        "names runs that the file does not hold",
    ),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_no_entry_is_about_is_refused(bundle, what):
    path, members, head = bundle
    forge, why = UNKNOWN[what]
    records = records_of(members)
    forge(records)
    write(path, members, records)
    with pytest.raises(NotVerified, match=why):
        verify(path, head)


def test_answers_are_empty_only_where_their_voter_was_erased(run, tmp_path):
    said, voters = {"why": "It is right."}, [make_voter(run) for _ in range(2)]
    for voter in voters:
        vote = make_vote(voter, pairs_of(run)[0], "A")
        Entry.objects.filter(uid=vote.uid).update(labels=said, **ledger.hidden("", said))
    erase(voters[0])
    seal_all(run.queue.project)
    compute(run)
    path, (members, head) = tmp_path / "bundle.zip", opened(run)
    empty_the_instance()
    records = records_of(members)
    write(path, members, records)
    verify(path, head)
    [answered] = [record for record in records if record.get("labels")]
    for labels in (None, {}):
        answered["labels"] = labels
        write(path, members, records)
        empty_the_instance()
        with pytest.raises(NotVerified, match="the answers of entry"):
            verify(path, head)


def test_a_frozen_report_has_no_bundle_once_answers_in_it_were_erased(run):
    said, voter = {"why": "It is right."}, make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0], "A")
    Entry.objects.filter(uid=vote.uid).update(labels=said, **ledger.hidden("", said))
    seal_all(run.queue.project)
    compute(run)
    link = link_of(run, is_frozen=True)
    bundle_behind(link)
    erase(voter)
    bundle_refused(link, "Answers of a person who was erased since are gone")


def test_a_public_bundle_has_no_config_and_nothing_to_test_guesses_of_one_with(run, tmp_path):
    run.config = CONFIG
    run.save(update_fields=["config"])
    lifecycle.create(run.queue.project, make_config())  # a draft, which nothing was asked of
    restate(run)
    compute(run)
    path, (members, head) = tmp_path / "private.zip", opened(run)
    empty_the_instance()
    assert b"Be strict" not in b"".join(members.values())
    write(path, members, records_of(members))
    assert verify(path, head).gaps == [NO_CONFIG]
    lines = members[LEDGER].decode()
    [*_, sealed] = re.findall(r'"config":"([0-9a-f]{64})"', lines)
    guess = Run(config=CONFIG, private_salt=run.private_salt)
    assert config_hash(guess) == sealed
    for salt in {"", *re.findall(r'"([^"]*)"', lines)}:
        guess.private_salt = salt
        assert config_hash(guess) != sealed


def test_a_report_of_a_run_that_a_bundle_brought_is_verified(run, tmp_path):
    run.config = CONFIG
    run.save(update_fields=["config"])
    restate(run)
    lines = list(export_run(run))
    empty_the_instance()
    [back] = restored(lines, None)
    compute(back)
    path, (members, head) = tmp_path / "again.zip", opened(back)
    empty_the_instance()
    write(path, members, records_of(members))
    assert verify(path, head).gaps == [NO_CONFIG]


def leaves(value, path=()):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return [*value, *value[:1]] or ["x"]
    if value is None:
        return 1
    if re.fullmatch("[0-9a-f]{32,}", value):
        return value[::-1]  # a hash still
    is_time = value[:2] == "20" and value.endswith("Z")
    return value.replace("20", "19", 1) if is_time else f"{value}x"


EVERY_FIFTH = pytest.mark.parametrize("step", [5, pytest.param(1, marks=[pytest.mark.thorough])])


@EVERY_FIFTH
def test_any_value_that_is_changed_in_a_bundle_is_found_or_listed(bundle, step):
    """Of each kind of record the first value and every fifth, or all."""
    path, members, head = bundle
    not_found = changed_and_not_found(path, members, head, step=step, least=100)
    assert not_found <= rows_not_covered(not_found)


def rows_not_covered(fields):
    """Those of some fields that the list names, by themselves or with all of their record."""
    rows = {row for each in NOT_COVERED for row in each.rows}
    return {field for field in fields if {field, field.partition(".")[0]} & rows}


def changed_and_not_found(path, members, head, *, step=1, least=1):
    """Change one value after the other, and return those that no ledger tells.

    What only figures tell does not count: whoever forges a bundle computes these anew.
    """
    records = records_of(members)
    not_found, places = set(), {}
    for number, record in enumerate(records):
        for leaf in leaves(record):
            if leaf != ("type",):
                places.setdefault((record["type"], *leaf), (number, leaf))
    assert len(places) > least
    kinds = {kind: [place for place in places if place[0] == kind] for kind, *_ in places}
    for place in chain.from_iterable(of[::step] for of in kinds.values()):
        kind, (number, leaf) = place[0], places[place]
        forged = deepcopy(records[number])
        alter(forged, leaf)
        write(path, members, [*records[:number], forged, *records[number + 1 :]])
        empty_the_instance()
        if not is_found_by_its_ledger(path, head):
            not_found.add(".".join((kind, *leaf)))
    return not_found


def alter(holder, leaf):
    for name in leaf[:-1]:
        holder = holder[name]
    holder[leaf[-1]] = changed(holder[leaf[-1]])


def is_found_by_its_ledger(path, head):
    try:
        verify(path, head)
    except NotVerified as wrong:
        return ": the report says" not in str(wrong)
    return False


def places_of(value, path=()):
    """The places of all values in JSON, those of lists by their first member."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places_of(inner, (*path, name))
    elif isinstance(value, list) and value:
        yield from places_of(value[0], (*path, 0))
    else:
        yield path


def test_any_value_that_is_changed_in_a_report_is_found_or_listed(bundle):
    """One file is restored, its figures computed once, and each value of its report compared."""
    path, members, head = bundle
    write(path, members, records_of(members))
    report = verify(path, head).report.model_dump(mode="json")
    not_found = set()
    for place in places_of(report):
        forged = deepcopy(report)
        alter(forged, place)
        if not [*unequal(forged, report)]:
            not_found.add(".".join(map(str, place)).replace(".0", "[]"))
    listed = [each.replace("[].", r"[].") for each in NOT_COMPARED]
    assert not_found
    assert not [each for each in not_found if not each.startswith(tuple(listed))]


@pytest.mark.parametrize("where", ["report.json", "manifest.json"])
@pytest.mark.parametrize("holder", ["", "head"])
def test_what_no_report_says_is_refused(bundle, where, holder):
    path, members, head = bundle
    said = json.loads(members[where])
    (said[holder] if holder else said)["audited_by"] = None
    members = members | {where: json.dumps(said).encode()}
    write(path, members, records_of(members))
    with pytest.raises(NotVerified, match=r"nothing that a report says|says something else"):
        verify(path, head)


def test_a_bundle_of_before_rows_were_covered_verifies_as_far_as_it_goes(run, tmp_path):
    forget_hashes(run.queue.project)
    Findings.objects.all().delete()
    compute(run)
    path, (members, head) = tmp_path / "old.zip", opened(run)
    empty_the_instance()
    records = records_of(members)
    for record in records:
        for name in {"run": ("salt", "private_salt"), "judge": ("recipe",)}.get(record["type"], ()):
            record.pop(name, None)
    write(path, members, records)
    assert verify(path, head).gaps == [
        "settings and names of judges of 1 run, made before the ledger covered them",
        "outputs of 4 items and details of verdicts on them, made before the ledger covered them",
    ]
    removed = [record for record in records if record["type"] != "verdict"]
    removed[-1] = removed[-1] | {"lines": len(removed) - 1}
    FORGED["all verdicts turned round"](records)
    for forged, found in ((records, "of near-judge on pair 1"), (removed, "of judge .* on pair 1")):
        write(path, members, forged)
        empty_the_instance()
        with pytest.raises(NotVerified, match=f"verdict {found}"):
            verify(path, head)

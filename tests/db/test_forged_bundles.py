"""`humanjudge verify` with the genuine head finds what was changed beside the ledger."""

import json
import re
from copy import deepcopy
from functools import partial
from itertools import chain

import pytest
from django.core.cache import cache

from judge_eval.exchange.export import export_run
from judge_eval.models import Findings, Run, Verdict
from judge_eval.objects import config_hash
from judge_eval.runs import lifecycle
from reports.report.bundle import LEDGER, NotVerified, verify
from tests.db.test_verify import bundle_of, members_of, zipped
from tests.helpers.bundles import empty_the_instance, restored
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.run_rows import make_config
from tests.makers import forget_hashes, restate

pytestmark = pytest.mark.django_db
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


# Fields of a public bundle that are not shown, or are named as not covered.
NOT_FOUND = {
    *("run.note", "run.is_open", "run.budget_nano", "run.spent_nano", "run.private_salt"),
    # No public bundle holds one, and none is taken from it.
    "run.config",
    *("rubric.created_at", "comparison.opened_at", "comparison.votes_wanted"),
    "vote.category",
    *("voter.reputation", "vote.salt", "entry.salt", "flag.created_at"),
    # What the report prints is the head, and how many entries there are is counted.
    *("header.project.head", "header.project.head_seq"),
    # Quality scores begin then: a project's report shows these, and is found out by them.
    "header.project.created_at",
}


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


@pytest.mark.parametrize(
    "step", [5, pytest.param(1, marks=[pytest.mark.thorough, pytest.mark.timeout(400)])]
)
def test_any_value_that_is_changed_in_a_bundle_is_found(bundle, step):
    """Of each kind of record the first value and every fifth, or all."""
    path, members, head = bundle
    records = records_of(members)
    not_found, places = set(), {}
    for number, record in enumerate(records):
        for leaf in leaves(record):
            if leaf != ("type",):
                places.setdefault((record["type"], *leaf), (number, leaf))
    assert len(places) > 100
    kinds = {kind: [place for place in places if place[0] == kind] for kind, *_ in places}
    for place in chain.from_iterable(of[::step] for of in kinds.values()):
        kind, (number, leaf) = place[0], places[place]
        forged = holder = deepcopy(records[number])
        for name in leaf[:-1]:
            holder = holder[name]
        holder[leaf[-1]] = changed(holder[leaf[-1]])
        write(path, members, [*records[:number], forged, *records[number + 1 :]])
        empty_the_instance()
        try:
            verify(path, head)
        except NotVerified:
            continue
        not_found.add(".".join((kind, *leaf)))
    assert not_found <= NOT_FOUND


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
    FORGED["all verdicts turned round"](records)
    write(path, members, records)
    empty_the_instance()
    with pytest.raises(NotVerified, match="verdict of near-judge on pair 1"):
        verify(path, head)

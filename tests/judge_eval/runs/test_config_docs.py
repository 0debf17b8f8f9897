"""docs/config.md says of every key what the parser does: its type, its default, that it exists."""

import json
import re
from pathlib import Path

import pytest

from judge_eval.judging.baselines import BASELINES
from judge_eval.judging.config.run_config import ConfigInvalid, parse

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "config.md").read_text("utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
KEYS = {
    key: {"type": kind, "default": default, "why": why}
    for key, kind, default, why in ROW.findall(PAGE)
}
DEFAULTS = {
    key: json.loads(row["default"].strip("`"))
    for key, row in KEYS.items()
    if re.fullmatch(r"`[^`]+`", row["default"])
}
REQUIRED = [key for key, row in KEYS.items() if row["default"] == "required"]
EXAMPLE = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])
LISTS = ("models", "judges", "prompts")


def least():
    """The example with nothing but what must be there, each entry of a list an object."""
    config = {key: EXAMPLE[key] for key in EXAMPLE if key in REQUIRED}
    alone = {"models": "id", "judges": "id", "prompts": "text"}
    for key, name in alone.items():
        config[key] = [{name: text} for text in config[key]]
    return config


def written(config):
    """What is written into a run, with what only variants and judges of other types have."""
    parsed = parse(config)
    judge = parsed.judges[0]
    more = {"type": judge.type, "parts": list(judge.parts), "options": judge.options}
    of_variants = ("model", "instructions", "orders", "samples", "repeats")
    more |= {"examples": list(judge.examples)} | {n: getattr(judge, n) for n in of_variants}
    complete = parsed.as_dict()
    complete["judges"][0] |= more
    return complete


def paths(config, prefix=""):
    """Every key of a complete config as the page writes it, with its value."""
    for key, value in config.items():
        yield f"{prefix}{key}", value
        if isinstance(value, dict):
            yield from paths(value, f"{prefix}{key}.")
        elif key in LISTS:
            yield from paths(value[0], f"{prefix}{key}[].")


def place(config, key, value):
    """Put a value where a key of the page says, into the first entry of a list."""
    *ways, last = key.split(".")
    for way in ways:
        config = config[way[:-2]][0] if way.endswith("[]") else config.setdefault(way, {})
    config[last] = value


def complaints(config):
    with pytest.raises(ConfigInvalid) as refused:
        parse(config)
    return {error.path.replace("[0]", "[]"): error.message for error in refused.value.errors}


def test_the_example_is_a_config():
    assert parse(EXAMPLE).name == EXAMPLE["name"]
    assert parse(least()).kind == "svg"


def test_the_page_has_every_key_and_no_other():
    assert KEYS
    assert set(KEYS) == {key for key, _ in paths(written(least()))}


@pytest.mark.parametrize("key", DEFAULTS)
def test_a_default_is_what_the_page_says(key):
    assert dict(paths(written(least())))[key] == DEFAULTS[key]


@pytest.mark.parametrize("key", KEYS)
def test_a_type_is_what_the_page_says(key):
    config = least()
    place(config, key, True)
    assert complaints(config)[key] == f"must be {KEYS[key]['type']}, not true or false"


@pytest.mark.parametrize("key", REQUIRED)
def test_what_the_page_calls_required_must_be_there(key):
    config = least()
    *_, last = key.split(".")
    holder = config if last == key else config[key.split("[")[0]][0]
    del holder[last]
    assert complaints(config)[key] == "is missing"


def test_the_page_names_every_baseline():
    assert [name for name in BASELINES if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize(
    "key", [key for key, row in KEYS.items() if row["type"] == "a whole number"]
)
def test_a_bound_is_what_the_page_says(key):
    low, high = re.search(r"([\d,]+) to ([\d,]+)", KEYS[key]["why"]).groups()
    config = least()
    place(config, key, 0)
    assert complaints(config)[key] == f"must be at least {low}"
    place(config, key, int(high.replace(",", "")) + 1)
    assert complaints(config)[key] == f"must be at most {high}"


@pytest.mark.parametrize("key", ["kind", "reveal", "verdict_orders"])
def test_the_options_are_what_the_page_says(key):
    offered = complaints(least() | {key: "nonsense"})[key].split(" must be one of ")[1]
    assert offered.split(", ") == re.findall(r'`"(\w+)"`', KEYS[key]["why"])

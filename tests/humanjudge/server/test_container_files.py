"""Dockerfile and compose.yaml: rules that a container of this product keeps."""

import json
import re
from pathlib import Path

import pytest
import yaml

from humanjudge.server.launcher.programs import WORKERS

ROOT = Path(__file__).resolve().parents[3]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
OWN = {name: each for name, each in SERVICES.items() if each["image"].startswith("humanjudge")}
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
SECRET = re.compile(r"(secret|password|token|_key)", re.IGNORECASE)


def test_the_image_is_made_of_known_versions_and_leaves_nothing_behind():
    assert all(":" in image for image in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    assert ":latest" not in DOCKERFILE
    assert "sudo" not in DOCKERFILE
    assert not re.search(r"^(ADD|MAINTAINER|SHELL) ", DOCKERFILE, re.MULTILINE)
    for command in re.findall(r"^RUN (.*apt-get install.*)$", DOCKERFILE, re.MULTILINE):
        assert "--no-install-recommends" in command
        assert "apt-get update" in command
        assert "rm -rf /var/lib/apt/lists/*" in command


def test_the_image_runs_as_nobody_in_particular_and_says_whether_it_is_well():
    *_, last = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "libcairo2" in last
    assert "pip install" not in last, "what builds stays in the stage that builds"
    assert json.loads(re.search(r"^ENTRYPOINT (.*)$", last, re.MULTILINE)[1]) == ["humanjudge"]


def test_the_image_holds_only_what_the_wheel_is_built_from():
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    assert ignored[0] == "*"
    kept = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        word
        for line in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE)
        for word in line.split()[:-1]
    }
    assert copied == kept
    assert all(ROOT.joinpath(name).exists() for name in kept)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_container_may_do_little_and_comes_back(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["logging"]["options"]["max-size"]
    assert not service.get("privileged")
    if name == "migrate":
        assert service["restart"] == "no"
    else:
        assert service["restart"] == "unless-stopped"
        assert name == "web" or service["healthcheck"]["test"]
    # The latest of today is another one tomorrow.
    assert not service["image"].endswith(":latest")
    assert ":" in service["image"]


def test_only_the_proxy_can_be_reached_and_database_and_broker_reach_nothing():
    assert [name for name, each in SERVICES.items() if "ports" in each] == ["proxy"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    for name in ("database", "broker"):
        assert SERVICES[name]["networks"] == ["inside"]
    assert SERVICES["proxy"]["networks"] == ["outside"]


def test_every_program_runs_and_one_beat():
    commands = {name: each["command"] for name, each in OWN.items()}
    assert commands.pop("migrate") == ["manage", "migrate"]
    assert commands == {
        name: ["serve", name] for name in ("web", "beat", *WORKERS) if name != "worker"
    }
    for name, service in OWN.items():
        if name not in ("web", "migrate"):
            assert service["healthcheck"]["test"] == ["CMD", "humanjudge", "alive", name]


def test_no_secret_stands_in_the_file():
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if SECRET.search(name):
                assert name.endswith("_FILE"), name
                assert value.removeprefix("/run/secrets/") in service["secrets"]
    assert all(each["file"].startswith("./secrets/") for each in COMPOSE["secrets"].values())
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_volumes_and_secrets_that_are_used_are_there():
    for service in SERVICES.values():
        named = {each.partition(":")[0] for each in service.get("volumes", ())}
        files = {name for name in named if name.startswith("./")}
        assert named - files <= set(COMPOSE["volumes"])
        assert all(ROOT.joinpath(name).is_file() for name in files)
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        assert set(service.get("depends_on", ())) <= set(SERVICES)


def test_the_proxy_waits_for_bodies_and_leaves_compression_to_the_server():
    text = (ROOT / "Caddyfile").read_text()
    assert "request_buffers" in text
    assert "encode" not in text, "what is compressed can tell a secret by its length"


def test_nothing_is_written_into_a_container_that_cannot_be_written_and_no_registry_is_asked():
    # An engine writes the content of a config into the container, and asks for a named syntax.
    assert "configs" not in COMPOSE
    assert "syntax=" not in DOCKERFILE


def test_programs_have_time_to_end_and_the_database_ends_at_once():
    assert SERVICES["database"]["stop_signal"] == "SIGINT"
    assert all("stop_grace_period" in each for each in [*OWN.values(), SERVICES["database"]])

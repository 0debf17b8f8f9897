"""docs/operations.md, "Without containers", as it stands there: its commands, unit and proxy."""

import os
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.helpers.waiting import eventually
from tests.process.documents import Terminal, text_of
from tests.process.up import ROOT, START_SECONDS, environment, free_port
from tests.servers import postgres_server, valkey_server

pytestmark = [pytest.mark.process, pytest.mark.slow]

SECTION = text_of("operations").partition("## Without containers\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
VARIABLES, UNIT = (text for language, text in BLOCKS if language == "ini")
INSTALL, PREPARE, ENABLE = (text for language, text in BLOCKS if language == "sh")
[NGINX] = (text for language, text in BLOCKS if language == "nginx")
HOST = "judge.example.org"
PROGRAM = "/opt/humanjudge/bin/humanjudge"


def changed(text, **places):
    """A text of the page with this machine's paths and ports in the place of its own."""
    for before, after in places.items():
        assert before in text, before
        text = text.replace(before, str(after))
    return text


def started(unit):
    """The words that systemd starts for a unit, of each that is enabled."""
    [line] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    names = re.findall(r"humanjudge@(\w+)", ENABLE)
    return {name: line.replace("%i", name).split() for name in names}


def test_what_stands_there_is_one_installation():
    assert {*started(UNIT)} == {"web", "sealer", "worker", "beat"}
    user = re.search(r"useradd .* (\w+)$", INSTALL, re.MULTILINE)[1]
    assert f"User={user}\n" in UNIT
    [folder] = {*re.findall(r"^HUMANJUDGE_DATA=(.*)$", VARIABLES, re.MULTILINE)}
    assert f"--owner={user} --group={user} --mode=700 {folder}\n" in INSTALL
    assert f"ReadWritePaths={folder}\n" in UNIT
    assert all(
        line.startswith(("set -a", f"runuser -u {user} -- ")) for line in PREPARE.splitlines()
    )
    assert f"python3 -m venv {Path(PROGRAM).parents[1]}\n" in INSTALL
    assert "EnvironmentFile=/etc/humanjudge.env\n" in UNIT


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_takes_the_unit(tmp_path):
    # It looks for the program and for the user.
    unit = changed(UNIT, **{PROGRAM: "/bin/true", "User=humanjudge": "User=daemon"})
    (tmp_path / "humanjudge@.service").write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "humanjudge@web.service")],
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    assert "humanjudge" not in done.stderr, done.stderr


def test_its_commands_make_an_installation_that_its_proxy_answers_for(tmp_path):
    port, data = free_port(), tmp_path / "data"
    program = tmp_path / "humanjudge"
    program.write_text(f'#!/bin/sh\ncd "{ROOT}"\nexec "{sys.executable}" -m humanjudge "$@"\n')
    program.chmod(0o755)
    with postgres_server() as database, valkey_server() as broker:
        given = {
            r"postgres://humanjudge:…@127.0.0.1/humanjudge": database.url,
            "redis://127.0.0.1:6379/0": broker.url,
            "SECRET_KEY=…": f"SECRET_KEY={secrets.token_urlsafe(64)}",
            "/var/lib/humanjudge": data,
        }
        path = tmp_path / "humanjudge.env"
        path.write_text(changed(VARIABLES, **given))
        answers = {"USERNAME": "ada", "EMAIL": "ada@example.org", "PASSWORD": "difference engine"}
        env = {
            name: value
            for name, value in environment(data, PORT=str(port)).items()
            if name not in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "HOST", "HTTPS")
        } | {f"DJANGO_SUPERUSER_{name}": value for name, value in answers.items()}
        # As whoever runs the tests, and without questions.
        prepare = changed(
            PREPARE,
            **{
                "/etc/humanjudge.env": path,
                f"runuser -u humanjudge -- {PROGRAM}": program,
                "manage createsuperuser": "manage createsuperuser --noinput",
            },
        )
        terminal = Terminal(tmp_path, env)
        for command in prepare.splitlines():
            terminal.run(command)
        unit = changed(UNIT, **{PROGRAM: program})
        variables = dict(
            line.split("=", 1) for line in path.read_text().splitlines() if "=" in line[1:]
        )
        running = [
            subprocess.Popen(words, env=env | variables, cwd=tmp_path)
            for words in started(unit).values()
        ]
        try:
            url = f"http://127.0.0.1:{port}"
            forwarded = {"Host": HOST, "X-Forwarded-Proto": "https"}
            eventually(lambda: is_well(url, forwarded), 2 * START_SECONDS)
            page = httpx.get(f"{url}/login/", headers=forwarded)
            assert page.status_code == 200
            style = re.search(r'href="(/static/[^"]+\.css)"', page.text)[1]
            assert httpx.get(url + style, headers=forwarded).status_code == 200
            runs = terminal.run(
                f"{program} manage shell --no-imports -c "
                "'from judge_eval.models import Run; print(Run.objects.count())'"
            )
            assert int(runs) > 0
            if shutil.which("nginx"):
                answer_by_nginx(tmp_path, port)
            terminal.end()
        finally:
            for process in running:
                process.send_signal(signal.SIGTERM)
            for process in running:
                process.wait(60)


def is_well(url, headers):
    try:
        return httpx.get(f"{url}/healthz", headers=headers).json()["status"] == "ok"
    except httpx.HTTPError:
        return False


@pytest.mark.skipif(not shutil.which("nginx"), reason="no nginx here")
def test_nginx_takes_the_proxys_block(tmp_path):
    done = subprocess.run([*nginx(tmp_path, 8000)[0], "-t"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_proxys_block_says_what_the_page_asks_of_a_proxy():
    assert NGINX.count("{") == NGINX.count("}")
    lines = [line.strip() for line in NGINX.splitlines()]
    assert all(not line or line.startswith("#") or line[-1] in ";{}" for line in lines)
    for line in (
        "proxy_set_header X-Forwarded-Proto $scheme;",
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "proxy_set_header Host $host;",
        "client_max_body_size 258m;",
        "gzip off;",
        "proxy_buffering off;",
    ):
        assert lines.count(line) == 1


def nginx(folder, port):
    """The command that starts nginx with the block of the page, and where it then answers."""
    certificate, key, plain, secure = folder / "pem", folder / "key", free_port(), free_port()
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={HOST}"]
    more = ["-keyout", str(key), "-out", str(certificate), "-addext", f"subjectAltName=DNS:{HOST}"]
    subprocess.run([*make, *more], check=True, capture_output=True)
    block = changed(
        NGINX,
        **{
            f"/etc/ssl/certs/{HOST}.pem": certificate,
            f"/etc/ssl/private/{HOST}.key": key,
            "listen 80;": f"listen 127.0.0.1:{plain};",
            "listen 443 ssl;": f"listen 127.0.0.1:{secure} ssl;",
            "127.0.0.1:8000": f"127.0.0.1:{port}",
        },
    )
    paths = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = folder / "nginx.conf"
    conf.write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}{block}}}\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(conf), "-e", f"{folder}/error.log"], secure


def answer_by_nginx(folder, port):
    command, secure = nginx(folder, port)
    trust = ssl.create_default_context(cafile=folder / "pem")
    with subprocess.Popen(command) as proxy:
        try:
            with httpx.Client(
                base_url=f"https://127.0.0.1:{secure}", headers={"Host": HOST}, verify=trust
            ) as client:

                def page():
                    try:
                        extensions = {"sni_hostname": HOST}
                        return client.get("/login/", extensions=extensions)
                    except httpx.HTTPError:
                        return None

                assert eventually(page).status_code == 200
        finally:
            proxy.terminate()

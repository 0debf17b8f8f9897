"""Calls to a model: who learns the key (the provider alone), and what the environment changes."""

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import sys
from dataclasses import replace

import pytest
from django.utils.log import configure_logging

from judge_eval.judging.providers import transport as endpoint_transport
from judge_eval.judging.providers.chat import Endpoint, chat
from tests.helpers import model_calls
from tests.helpers.model_calls import KEY, completion, failure, question
from tests.process.processes import ROOT, free_port
from tests.provider import provider

server = pytest.fixture(model_calls.server, scope="module")
model = pytest.fixture(model_calls.model)
endpoint = pytest.fixture(model_calls.endpoint)


class TestSecrecy:
    @pytest.fixture(autouse=True)
    def everything_logged(self, caplog, monkeypatch):
        caplog.set_level("DEBUG")
        for name in ("httpcore2", "httpcore2.connection", "httpcore2.http11"):
            caplog.set_level("DEBUG", logger=name)

    def texts_of(self, failed, caplog):
        chain = [failed, failed.__cause__, failed.__context__]
        return "\n".join(
            [*(repr(link) + str(link) for link in chain), str(vars(failed)), caplog.text]
        )

    def test_not_in_the_endpoint_s_repr(self, endpoint):
        assert KEY not in repr(endpoint)
        assert "local" in repr(endpoint)

    def test_not_where_a_provider_sends_it_back(self, endpoint, model, caplog):
        model.control(mode="echo_key")
        failed = failure(endpoint)
        assert KEY not in self.texts_of(failed, caplog)
        assert failed.reason == (
            "401 Unauthorized: the key was refused (Not allowed with Authorization: Bearer [key])"
        )

    @pytest.mark.parametrize("mode", ["disconnect", "malformed", "500", "slow"])
    def test_not_in_any_failure(self, endpoint, model, caplog, mode):
        model.control(mode=mode)
        failed = failure(replace(endpoint, timeout_s=0.5))
        assert KEY not in self.texts_of(failed, caplog)

    @pytest.mark.parametrize("escape", [str, lambda key: key.replace("-", "\\u002d")])
    def test_not_in_a_reply(self, endpoint, model, caplog, escape):
        model.answers(escape(json.dumps(completion(f"You sent {KEY}.", id=KEY))))
        reply = chat(endpoint, question())
        assert reply.text == "You sent [key]."
        assert KEY not in repr(reply) + caplog.text

    def test_not_where_a_key_cannot_be_sent(self, endpoint, caplog):
        for key in (f"{KEY}\n", f"{KEY}\u00e9"):
            failed = failure(replace(endpoint, api_key=key))
            assert KEY not in self.texts_of(failed, caplog)
            assert "the key of local" in failed.reason

    @pytest.mark.parametrize("configured", ["before", "after"])
    def test_nothing_is_logged(self, endpoint, caplog, settings, configured):
        if configured == "after":
            # This enables every logger that the settings do not name.
            configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
        chat(endpoint, question())
        assert not [record for record in caplog.records if record.name.split(".")[0] != "asyncio"]

    @pytest.mark.parametrize("status", [301, 307, 308])
    def test_no_redirect_is_followed(self, endpoint, model, status):
        with provider() as elsewhere:
            model.answers("", status=status, headers={"Location": elsewhere.base_url})
            assert failure(endpoint).status == status
            assert not elsewhere.requests
        assert len(model.requests) == 1


class TestSurroundings:
    def test_the_environment_does_not_leak_in(self, endpoint, model, monkeypatch):
        nowhere = f"http://127.0.0.1:{free_port()}"
        for name, value in {
            "OPENAI_BASE_URL": nowhere,
            "OPENAI_API_KEY": "sk-of-somebody-else",
            "OPENAI_ADMIN_KEY": "sk-of-an-admin",
            "OPENAI_ORG_ID": "org-of-somebody",
            "OPENAI_PROJECT_ID": "project-of-somebody",
            "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer other\nX-Spy: 1",
            "HTTP_PROXY": nowhere,
            "ALL_PROXY": nowhere,
            "SSL_CERT_FILE": "/nowhere",
        }.items():
            monkeypatch.setenv(name, value)
        # A client of its own: the others were made before the environment was this bad.
        other = replace(endpoint, base_url=f"{endpoint.base_url}/")

        chat(other, question())

        (sent,) = model.requests
        assert sent["authorized"]
        assert sent["headers"].keys() == {
            *("host", "accept", "accept-encoding", "content-type", "content-length", "user-agent")
        }
        assert sent["headers"]["user-agent"] == "HumanJudge"

    def test_nothing_is_loaded_before_the_first_call(self):
        code = (
            "import sys, judge_eval.judging.providers.chat;"
            "sys.exit(bool({'httpcore2', 'django'} & sys.modules.keys()))"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ)
        assert done.returncode == 0

    @pytest.mark.parametrize(
        "url", ["", "nowhere", "ftp://127.0.0.1/v1", "http://", "http://[", "file:///etc/passwd"]
    )
    def test_what_is_no_web_address(self, url):
        failed = failure(Endpoint("odd", url, KEY))
        assert not failed.retryable
        assert failed.reason == "the base URL of odd is not an http or https address"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of localhost that nobody vouches for."""
    if not shutil.which("openssl"):
        pytest.skip("not run: no openssl to make a certificate with")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", path, "-out", f"{path}.crt", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + path.with_name("both.pem.crt").read_text())
    return path


class TestTls:
    @pytest.fixture
    def secure(self, certificate):
        """Run a provider behind TLS and return its endpoint."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        with contextlib.ExitStack() as stack:

            def start(**conduct):
                running = stack.enter_context(provider(tls=context, **conduct))
                return Endpoint("secure", f"https://localhost:{running.port}/v1", KEY)

            yield start

    @pytest.fixture
    def trusted(self, certificate, monkeypatch):
        context = ssl.create_default_context(cafile=certificate)
        monkeypatch.setattr(endpoint_transport, "trust", lambda: context)

    def test_a_stranger_s_certificate_is_refused(self, secure):
        assert "CERTIFICATE_VERIFY_FAILED" in failure(secure()).reason

    def test_a_call(self, secure, trusted):
        assert chat(secure(), question()).text

    @pytest.mark.parametrize("mode", ["drip", "drip_head"])
    def test_a_call_ends_here_too(self, secure, trusted, mode):
        failed = failure(replace(secure(mode=mode), timeout_s=1))
        assert failed.reason == "no complete reply within 1 s"

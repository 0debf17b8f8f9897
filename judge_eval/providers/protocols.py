"""How providers are spoken to: OpenAI's protocol, or one that an extension brings."""

from typing import Final

from humanjudge.lib.extensions import Extension, Registry, calling
from judge_eval.providers.chat import ChatReply, ChatRequest, Endpoint, chat
from judge_eval.providers.errors import CallFailed

OPENAI_COMPATIBLE: Final = "openai-compatible"


class Provider(Extension):
    """How to ask a model at an endpoint, once: leases, limits, budget and retries are not its own.

    It runs in a thread of a worker, which does not touch the database.
    """

    kind = "provider"

    def chat(self, endpoint: Endpoint, request: ChatRequest) -> ChatReply:
        """Ask and return the reply within `endpoint.timeout_s`, or raise CallFailed."""
        raise NotImplementedError(f"{type(self).__name__} must define chat")


class OpenAICompatible(Provider):
    id = OPENAI_COMPATIBLE
    title = "OpenAI-compatible"
    version = "1"
    description = "Speaks to any endpoint that has /chat/completions."

    def chat(self, endpoint: Endpoint, request: ChatRequest) -> ChatReply:
        return chat(endpoint, request)


PROTOCOLS: Final = Registry[Provider](Provider, OpenAICompatible())


def ask(protocol: str, endpoint: Endpoint, request: ChatRequest) -> ChatReply:
    if protocol not in PROTOCOLS:
        raise CallFailed(f"no provider type is called {protocol}", was_sent=False)
    provider = PROTOCOLS[protocol]
    with calling(provider, "chat", CallFailed):
        return provider.chat(endpoint, request)

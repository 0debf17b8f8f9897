"""How providers are spoken to: OpenAI's protocol, or one that an extension brings."""

from dataclasses import replace
from typing import Final

from humanjudge.core.extensions import OWN_PACKAGE, Extension, HookFailed, Registry, calling
from judge_eval.judging.providers.chat import NO_KEY, ChatReply, ChatRequest, Endpoint, chat
from judge_eval.judging.providers.errors import CallFailed

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
    """Ask as a protocol does; what an extension says or raises tells no key."""
    if protocol not in PROTOCOLS:
        raise CallFailed(f"no provider type is called {protocol}", was_sent=False)
    provider = PROTOCOLS[protocol]
    if provider.package == OWN_PACKAGE:
        return provider.chat(endpoint, request)

    def without_key(text: str) -> str:
        return text.replace(endpoint.api_key, "[key]") if endpoint.api_key != NO_KEY else text

    try:
        with calling(provider, "chat", CallFailed):
            reply = provider.chat(endpoint, request)
            return replace(reply, text=without_key(reply.text), raw=without_key(reply.raw))
    except CallFailed as failed:
        failed.reason, failed.raw = without_key(failed.reason), without_key(failed.raw)
        raise
    except HookFailed as failed:
        raise CallFailed(without_key(str(failed))) from failed

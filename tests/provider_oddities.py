"""Odd, but real, ways in which model servers answer: modes of the local provider.

Each is what some server of the field does; the test that reads them says what comes of it.
"""

import gzip
import json
import zlib
from collections.abc import Callable

from tests.provider_models import Answer, Request, chat, error, reply, verdict

Make = Callable[[Request], Answer]
Mode = Callable[[Request, object, Make], Answer]


def _message(change: Callable[[dict, str], None], finish: str = "stop") -> Mode:
    """Change the message of a good answer, which is given its text."""

    def mode(request: Request, conduct: object, make: Make) -> Answer:
        data = json.loads(make(request).content)
        choice = data["choices"][0]
        change(choice["message"], choice["message"]["content"])
        choice["finish_reason"] = finish
        return reply(data)

    return mode


def _wrote(text: str) -> Mode:
    """Answer with a text; WINNER stands for a verdict on A, as the protocol would have it."""

    def mode(request: Request, conduct: object, make: Make) -> Answer:
        return chat(request, text.replace("WINNER", verdict(request, "A", 8, 5)))

    return mode


def _refuses(status: int, message: object, *fields: str) -> Mode:
    """Refuse a request that has any of these fields, naming the first of them."""

    def mode(request: Request, conduct: object, make: Make) -> Answer:
        present = [name for name in fields if name in request.body]
        if not present:
            return make(request)
        if isinstance(message, str):
            return error(status, message.format(present[0]))
        return reply(message, status)

    return mode


def _by_parameter(request: Request, conduct: object, make: Make) -> Answer:
    """As OpenAI's reasoning models: one parameter at a time, named in `param`."""
    for name in ("max_tokens", "temperature", "response_format"):
        if name in request.body:
            told = {"message": "Unsupported value.", "code": "unsupported_value", "param": name}
            return reply({"error": told}, 400)
    return make(request)


def _no_system(message: str) -> Mode:
    def mode(request: Request, conduct: object, make: Make) -> Answer:
        if any(each["role"] == "system" for each in request.body["messages"]):
            return error(400, message)
        return make(request)

    return mode


def _chunks(request: Request, make: Make, *, is_whole: bool = True) -> Answer:
    data = json.loads(make(request).content)
    text = data["choices"][0]["message"]["content"]
    about = {"id": "1", "object": "chat.completion.chunk", "model": data["model"]}
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + 7]} for at in range(0, len(text), 7)]
    lines = [": keep-alive"]
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        lines.append("data: " + json.dumps(about | {"choices": [choice]}))
    if is_whole:
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        lines.append("data: " + json.dumps(about | {"choices": [end]}))
        lines.append("data: " + json.dumps(about | {"choices": [], "usage": data["usage"]}))
        lines.append("data: [DONE]")
    return Answer(200, "\n\n".join(lines).encode(), {"Content-Type": "text/event-stream"})


def _streams_only(request: Request, conduct: object, make: Make) -> Answer:
    if request.body.get("stream") is not True:
        return error(400, "This model only supports stream=true.")
    return _chunks(request, make)


def _azure(request: Request, conduct: object, make: Make) -> Answer:
    if not request.path.endswith("?api-version=2024-06-01"):
        return error(404, "Resource not found")
    return make(request)


def _parts(message: dict, text: str) -> None:
    half = len(text) // 2
    message["content"] = [{"type": "text", "text": part} for part in (text[:half], text[half:])]


def _thinks(message: dict, text: str) -> None:
    message["content"] = f'<think>{{"winner": "B"}} no.</think>\n{text}'


def _reasons_beside(message: dict, text: str) -> None:
    message["reasoning_content"] = "A is fuller."


def _only_reasons(message: dict, text: str) -> None:
    message |= {"content": "", "reasoning_content": text}


def _only_reasons_newer(message: dict, text: str) -> None:
    message |= {"content": None, "reasoning": text}


def _calls_a_tool(message: dict, text: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "verdict", "arguments": text}}
    message |= {"content": None, "tool_calls": [call]}


def _refusal(message: dict, text: str) -> None:
    message |= {"content": None, "refusal": "I cannot compare these."}


def _packed(encoding: str, pack: Callable[[bytes], bytes]) -> Mode:
    """Send a good answer packed, whatever the request accepts."""

    def mode(request: Request, conduct: object, make: Make) -> Answer:
        made = make(request)
        made.content = pack(made.content)
        made.headers["Content-Encoding"] = encoding
        return made

    return mode


# What judges write in place of the object that they were asked for: A by all of them.
PLAIN_VERDICTS = {
    "score above ten": '{"winner": "A", "score_a": 85, "score_b": 40}',
    "score below zero": '{"winner": "A", "score_a": -1, "score_b": 3}',
    "score in words": '{"winner": "A", "score_a": "high", "score_b": "low"}',
    "winner as a number": '{"winner": 1}',
    "winner as a digit": '{"winner": "1"}',
    "winner as first": '{"winner": "first"}',
    "winner as the first": '{"winner": "The first"}',
    "winner as Response A": '{"winner": "Response A"}',
    "winner as Assistant A": '{"winner": "Assistant A"}',
    "winner as model 1": '{"winner": "model 1"}',
    "winner as first response": '{"winner": "first response"}',
    "winner in brackets": '{"winner": "[[A]]"}',
    "winner by a sign": '{"winner": "A > B"}',
    "winner by two signs": '{"winner": "B<<A"}',
    "key Winner": '{"Winner": "A"}',
    "key Verdict": '{"Verdict": "a"}',
    "key verdict": '{"verdict": "A", "reason": "Fuller."}',
    "key choice": '{"choice": "A"}',
    "key decision": '{"decision": "Output A"}',
    "verdict in words beside the winner": '{"winner": "A", "verdict": "It is fuller."}',
    "nested": '{"evaluation": {"winner": "A", "score_a": 8}}',
    "nested under the key": '{"winner": {"verdict": "A"}}',
    "nested twice": '{"result": {"final": {"winner": "A"}}}',
    "list of one": '[{"winner": "A"}]',
    "encoded twice": json.dumps('{"winner": "A"}'),
    "encoded twice, in a fence": f"```json\n{json.dumps(json.dumps({'winner': 'A'}))}\n```",
    "encoded within": json.dumps({"output": json.dumps({"winner": "A"})}),
    "brackets": "[[A]]",
    "brackets behind reasons": "The first is fuller.\n\n[[A]]",
    "brackets behind a sentence": "The first is fuller. [[A]]",
    "brackets in bold": "**[[A]]**",
    "brackets behind a label": "It is fuller. My final verdict is: [[A]]",
    "brackets with a sign": "[[A>B]]",
    "brackets with two signs": "My final verdict is: [[A>>B]]",
    "bare letter": "A",
    "bare letter in bold": "**A**",
    "bare letter with a stop": "A.",
    "bare letter as JSON": '"A"',
    "bare letter in a fence": "```\nA\n```",
    "bare output": "Output A",
    "labelled": "Winner: A",
    "labelled behind reasons": "It is fuller.\n\n**Final verdict:** Output A",
    "labelled with is": "Both try.\nThe winner is A.",
}
# What is no verdict of the judge's own, or not the only one.
UNCLEAR_VERDICTS = {
    "quotes brackets": "Output A says '[[A]]'",
    "quotes brackets on a line": "Output A ends so:\n[[A]]",
    "two brackets": "The output says [[A]]. I say [[B]]",
    "letter in prose": "A is better than B in some ways.",
    "two keys apart": '{"winner": "A", "verdict": "B"}',
    "two objects apart": '{"one": {"winner": "A"}, "two": {"winner": "B"}}',
    "brackets against its object": '{"winner": "A"}\n\n[[B]]',
    "winner as both": '{"winner": "both"}',
    "winner as a list": '{"winner": ["A"]}',
    "winner in a sentence": '{"winner": "A, by a little"}',
}
VALIDATOR = {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]}
ODD: dict[str, Mode] = {
    "content parts": _message(_parts),
    "thinking in the content": _message(_thinks),
    "reasoning beside the content": _message(_reasons_beside),
    "answer in reasoning_content": _message(_only_reasons, "length"),
    "answer in reasoning": _message(_only_reasons_newer),
    "tool call": _message(_calls_a_tool, "tool_calls"),
    "refusal": _message(_refusal),
    "refuses temperature": _refuses(400, "'{}' does not support 0.5 here.", "temperature"),
    "refuses temperature, as a validator": _refuses(422, VALIDATOR, "temperature"),
    "refuses response_format": _refuses(400, "{} is not supported here.", "response_format"),
    "refuses json_schema": _refuses(400, "json_schema is not supported.", "response_format"),
    "refuses reasoning_effort": _refuses(400, "Unrecognized argument: {}", "reasoning_effort"),
    "renames max_tokens": _refuses(
        400, "Unsupported parameter: '{}'. Use 'max_completion_tokens' instead.", "max_tokens"
    ),
    "refuses every limit of tokens": _refuses(
        400, "{} is not permitted", "max_tokens", "max_completion_tokens"
    ),
    "refuses all, one by one": _by_parameter,
    "refuses all at once": _refuses(
        400,
        "temperature, max_tokens, max_completion_tokens and response_format are unknown.",
        *("temperature", "max_tokens", "max_completion_tokens", "response_format"),
    ),
    "refuses a system role": _no_system("System role not supported"),
    "refuses developer instructions": _no_system("Developer instruction is not enabled"),
    "wants roles to alternate": _no_system("Conversation roles must alternate user/assistant"),
    "streams only": _streams_only,
    "streams unasked": lambda request, conduct, make: _chunks(request, make),
    "stream that ends early": lambda request, _, make: _chunks(request, make, is_whole=False),
    "Azure's classic address": _azure,
    "cut by its length": lambda request, *_: chat(request, '{"winner": "A", "score_a"'),
    "HTML with 200": lambda *_: Answer(200, b"<!doctype html><p>Sign in"),
    "HTML with 502": lambda *_: Answer(502, b"<html><h1>Bad gateway</h1></html>"),
    "error in a 200": lambda *_: reply({"error": {"code": 502, "message": "Upstream failed."}}),
    "error in the choice": lambda *_: reply(
        {"choices": [{"error": {"code": 503, "message": "Busy."}, "message": {"content": ""}}]}
    ),
    "no choices": lambda *_: reply({"id": "1", "object": "chat.completion"}),
    "empty": _wrote(""),
    "prose": _wrote("Both have their merits."),
    "fenced": _wrote("Here it is:\n```json\nWINNER\n```"),
    "scores as text": _wrote('{"winner": "A", "score_a": "8", "score_b": " 5.0 "}'),
    "scores of ten": _wrote('{"winner": "A", "score_a": "8/10", "score_b": "5/10"}'),
    "winner as Output A": _wrote('{"winner": "Output A", "score_a": 8, "score_b": 5}'),
    "winner without scores": _wrote('{"winner": "A"}'),
    "line breaks inside strings": _wrote('{"winner": "A", "reason": "It is\nfuller."}'),
    "trailing commas": _wrote('{"winner": "A", "score_a": 8, "score_b": 5,\n}'),
    "commas inside strings": _wrote('{"reason": "A,} then ,]", "winner": "A",}'),
    "broken": _wrote('{"winner": A}'),
    "refuses a word of the schema": _refuses(
        400, "'additionalProperties' is not supported in this position", "response_format"
    ),
    "refuses the schema": _refuses(400, "Failed to parse the JSON schema.", "response_format"),
    "refuses guided decoding": _refuses(
        400, "guided_json needs another backend", "response_format"
    ),
    "refuses strict": _refuses(422, "Unknown keyword: `strict`", "response_format"),
    "gzip unasked": _packed("gzip", gzip.compress),
    "deflate unasked": _packed("deflate", zlib.compress),
    "gzip that is none": _packed("gzip", bytes),
    "gzip that ends early": _packed("gzip", lambda content: gzip.compress(content)[:-9]),
    "gzip bomb": _packed("gzip", lambda _: gzip.compress(b" " * (11 << 20))),
    "brotli unasked": _packed("br", bytes),
    **{name: _wrote(text) for name, text in {**PLAIN_VERDICTS, **UNCLEAR_VERDICTS}.items()},
}

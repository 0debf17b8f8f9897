"""What the models behind the local provider say: a pure function of the request.

Standard library only: a bench must not measure this side. Models are deterministic:

- `judge-first` and `judge-second` always pick that position, `judge-long` the longer output,
  `judge-tie` and `judge-bad` always say so; any other name decides by a hash of its own name and
  of the two contents, whatever their order (for pictures: of their bytes); `judge-worded`
  takes the output with more steps if its instructions name steps; if not, about every second time
  it goes by the place;
- of a single output `judge-first` and `judge-second` give the first and second choice that they are
  offered, any other name one that a hash of its name and the content draws; `judge-careful` the
  last one where the content has an even number of characters, otherwise the first;
- a request that shows no output is one to generate: an SVG in a fence with prose around it
  where the word SVG stands in it, otherwise a few sentences. Both differ from model to model.

The two outputs are the two pictures of a request, or what stands between the marked lines of the
judges' prompt, or between tags as `<output_a>` and `<output_b>`. A single one is the only picture,
or what stands between marked lines as "the output".
"""

import base64
import hashlib
import json
import re
import struct
from dataclasses import dataclass, field
from random import Random

DIMENSIONS = 64


@dataclass
class Request:
    path: str
    content: bytes
    authorization: str
    headers: dict = field(default_factory=dict)
    body: dict = field(default_factory=dict)

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))


@dataclass
class Answer:
    """`how` it is sent: whole, drip or drip_head (byte by byte), cut (closed in mid-body)."""

    status: int
    content: bytes
    headers: dict = field(default_factory=dict)
    how: str = "whole"
    wait_ms: float | None = None
    phrase: str = "Reply"


def reply(data: object, status: int = 200, **more) -> Answer:
    return Answer(status, json.dumps(data).encode(), **more)


def error(status: int, message: str, code: str | None = None, **more) -> Answer:
    told = {"message": message, "type": code, "code": code, "param": None}
    return reply({"error": told}, status, **more)


def completion(request: Request) -> Answer:
    outputs = outputs_shown(request.body.get("messages", []))
    if outputs:
        return chat(request, verdict(request, *_opinion(request, *outputs)))
    if single := single_shown(request.body.get("messages", [])):
        return chat(request, _answer(request, *single))
    if "response_format" in request.body:
        return error(400, "A verdict is asked for, but the messages show no two outputs.")
    return chat(request, _generated(request.model, _prompt(request)))


def chat(request: Request, text: str | None, refusal: str | None = None) -> Answer:
    said = {"role": "assistant", "content": text, "refusal": refusal}
    tokens = {"prompt_tokens": len(request.content) // 4, "completion_tokens": len(text or "") // 4}
    tokens["total_tokens"] = sum(tokens.values())
    return reply(
        {
            "id": f"chatcmpl-{hashlib.sha256(request.content).hexdigest()[:12]}",
            "object": "chat.completion",
            "created": 1,
            "model": request.model,
            "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
            "usage": tokens,
        }
    )


_SCORES = {"A": (8, 5), "B": (5, 8), "tie": (6, 6), "both_bad": (2, 2)}
_SET_IN_ITS_WAYS = {
    "judge-first": "A",
    "judge-second": "B",
    "judge-tie": "tie",
    "judge-bad": "both_bad",
}


def _opinion(request: Request, a: bytes, b: bytes) -> tuple[str, int, int]:
    model = request.model
    always = [winner for name, winner in _SET_IN_ITS_WAYS.items() if name in model]
    if always:
        winner = always[0]
    elif "judge-worded" in model:
        winner = _by_wording(request, a, b)
    elif "judge-long" in model:
        winner = _larger(len(a), len(b))
    else:
        winner = _larger(_draw(model, a), _draw(model, b))
    return winner, *_SCORES[winner]


def _by_wording(request: Request, a: bytes, b: bytes) -> str:
    told = str(_parts(request.body["messages"][0])[0].get("text", ""))
    goes_by_place = min(_draw(request.model, output)[0] for output in (a, b)) % 2
    if goes_by_place and "steps" not in told:
        return "A"
    return _larger(a.count(b"step"), b.count(b"step"))


def _larger(of_a, of_b) -> str:
    return "tie" if of_a == of_b else "A" if of_a > of_b else "B"


def _draw(model: str, content: bytes) -> bytes:
    return hashlib.sha256(model.encode() + b"\0" + content).digest()


def verdict(request: Request, winner: str, of_a: int, of_b: int) -> str:
    said = {"winner": winner, "score_a": of_a, "score_b": of_b}
    return json.dumps(said | {"reason": f"By the rule of {request.model}."})


# As the judges' prompt encloses a text; and as many others do.
_ENCLOSED = re.compile(
    r"^(?P<mark>\S+ \w+) begin Output (?P<label>[AB])\n(?P<text>.*?)\n(?P=mark) end Output",
    re.MULTILINE | re.DOTALL,
)
_TAGGED = re.compile(
    r"<(?P<tag>\w{3,})_(?P<label>[ab])>(?P<text>.*?)</(?P=tag)_(?P=label)>",
    re.IGNORECASE | re.DOTALL,
)


def outputs_shown(messages: list) -> tuple[bytes, bytes] | None:
    """Return the two outputs that a request asks to compare, in the order shown, or None."""
    parts = [part for message in messages for part in _parts(message)]
    pictures = [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]
    if len(pictures) == 2:
        a, b = (base64.b64decode(url.partition(",")[2]) for url in pictures)
        return a, b
    text = "\n".join(str(part.get("text", "")) for part in parts)
    for pattern in (_ENCLOSED, _TAGGED):
        found = {each["label"].upper(): each["text"] for each in pattern.finditer(text)}
        if found.keys() == {"A", "B"}:
            return found["A"].encode(), found["B"].encode()
    return None


_SINGLE = re.compile(
    r"^(?P<mark>\S+ \w+) begin the output\n(?P<text>.*?)\n(?P=mark) end the output",
    re.MULTILINE | re.DOTALL,
)


def single_shown(messages: list) -> tuple[bytes, str] | None:
    """Return the one output that a request asks to judge, and what it is told first, or None."""
    parts = [part for message in messages for part in _parts(message)]
    told = str(parts[0].get("text", "")) if parts else ""
    pictures = [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]
    if len(pictures) == 1:
        return base64.b64decode(pictures[0].partition(",")[2]), told
    found = _SINGLE.search("\n".join(str(part.get("text", "")) for part in parts))
    return (found["text"].encode(), told) if found else None


def _answer(request: Request, content: bytes, told: str) -> str:
    offered = re.findall(r'^- "(.*?)"', told, re.MULTILINE)
    number = int.from_bytes(_draw(request.model, content)[:4], "big")
    place = number % len(offered)
    if "judge-first" in request.model or "judge-second" in request.model:
        place = int("judge-second" in request.model)
    elif "judge-careful" in request.model:
        place = 0 if len(content) % 2 else len(offered) - 1
    answer: object = offered[place]
    if '"answer": a list' in told:
        answer = [word for at, word in enumerate(offered) if number >> at & 1]
    said = {"answer": answer, "reason": f"By the rule of {request.model}."}
    return json.dumps(said | ({"score": 0.75 - place / 2} if '"score": ' in told else {}))


def _parts(message: dict) -> list[dict]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _prompt(request: Request) -> str:
    parts = [part for message in request.body.get("messages", []) for part in _parts(message)]
    return "\n".join(str(part.get("text", "")) for part in parts)


_WORDS = "river stone lantern quiet amber forest signal paper winter orbit harbour copper".split()


def _generated(model: str, prompt: str) -> str:
    chance = Random(f"{model} {prompt}")
    if "svg" in prompt.lower():
        return f"Here is the picture.\n\n```svg\n{_svg(chance)}\n```\n\nIt is drawn to be simple."
    sentences = [" ".join(chance.sample(_WORDS, 6)) for _ in range(chance.randint(2, 6))]
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)


def _svg(chance: Random) -> str:
    shapes = [
        f'<circle cx="{chance.randint(10, 90)}" cy="{chance.randint(10, 90)}" '
        f'r="{chance.randint(3, 20)}" fill="#{chance.randrange(16**6):06x}"/>'
        for _ in range(chance.randint(2, 8))
    ]
    inside = "\n  ".join(shapes)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">\n  {inside}\n</svg>'


def embeddings(request: Request) -> Answer:
    """Return a vector per text; texts that share words point in similar directions."""
    given = request.body.get("input", "")
    texts = given if isinstance(given, list) else [given]
    size = int(request.body.get("dimensions") or DIMENSIONS)
    vectors: list = [embedding(str(text), size) for text in texts]
    if request.body.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack(f"<{size}f", *v)).decode() for v in vectors]
    tokens = len(request.content) // 4
    return reply(
        {
            "object": "list",
            "model": request.model,
            "data": [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def embedding(text: str, size: int = DIMENSIONS) -> list[float]:
    """Return the vector of a text: its words, each hashed to a place and a sign; length 1."""
    vector = [0.0] * size
    for word in re.findall(r"\w+", text.lower()) or [""]:
        number = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        vector[number % size] += 1.0 if number >> 32 & 1 else -1.0
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    return [value / length for value in vector]

"""A provider that needs no network: it says what it is asked to say by its address."""

from judge_eval.extensions import CallFailed, ChatReply, ChatRequest, Endpoint, Provider


class Parrot(Provider):
    id = "parrot"
    title = "Parrot"
    version = "1.0"
    description = "Answers every request with the same words."

    def chat(self, endpoint: Endpoint, request: ChatRequest) -> ChatReply:
        if request.model == "silent":
            raise CallFailed("the parrot is asleep")
        text = '{"winner": "A", "score_a": 8, "score_b": 2, "reason": "Pretty."}'
        said = text if request.schema else f"{request.model} says hello."
        return ChatReply(said, request.model, prompt_tokens=3, completion_tokens=5)

"""Embeddings over a real connection, and what they come to in a figure; embedders from a config."""

import numpy as np
import pytest

from humanjudge.core.validation import ConfigInvalid
from judge_eval.judging.provider_access import make_embedder
from judge_eval.judging.providers import embeddings as module
from judge_eval.judging.providers.chat import Endpoint
from judge_eval.judging.providers.embeddings import EmbeddingClient, embeddings
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.models import Provider
from judge_eval.stats import SemanticSimilarityScorer, make_scorer, semantic_similarity
from judge_eval.stats.similarity import EmbeddingFailed
from tests.helpers import model_calls
from tests.helpers.model_calls import KEY
from tests.provider import provider

server = pytest.fixture(model_calls.server, scope="module")
model = pytest.fixture(model_calls.model)
endpoint = pytest.fixture(model_calls.endpoint)

TEXTS = ["a red fox", "the red fox", "tax return form"]
JUDGE = {"q1": "a red fox", "q2": "a blue whale"}
PEOPLE = {"ann": {"q1": "the red fox", "q2": "a tax return"}}


def client(endpoint):
    return EmbeddingClient(endpoint, "embed-1")


def reasons(rows):
    return [str(row) if isinstance(row, EmbeddingFailed) else "" for row in rows]


class TestReply:
    def test_what_is_sent_and_what_comes_back(self, endpoint, model):
        named, (fox, also, tax) = embeddings(endpoint, "embed-1", TEXTS)
        (sent,) = model.requests
        assert (sent["path"], sent["authorized"]) == ("/v1/embeddings", True)
        assert sent["body"] == {"model": "embed-1", "input": TEXTS}
        assert named == "embed-1"
        assert np.linalg.norm(fox) == pytest.approx(1)
        assert fox @ also > fox @ tax

    def test_vectors_are_ordered_by_their_index(self, endpoint, model):
        _, straight = embeddings(endpoint, "embed-1", TEXTS)
        model.control(mode="turned_vectors")
        assert np.array_equal(embeddings(endpoint, "embed-1", TEXTS)[1], straight)

    @pytest.mark.parametrize(
        "mode,why",
        [
            ("too_few_vectors", "2 embeddings came for 3 texts"),
            ("same_index", "it cannot be told which embedding is of which text"),
            ("500", "The server had an error."),
            ("error_200", "502"),
            ("malformed", "the reply holds no embeddings"),
            ("insufficient_quota", "the account has no credit"),
        ],
    )
    def test_a_reply_that_is_of_no_use_fails(self, endpoint, model, mode, why):
        model.control(mode=mode)
        with pytest.raises(CallFailed, match=why):
            embeddings(endpoint, "embed-1", TEXTS)

    @pytest.mark.parametrize("mode", ["nan_vector", "no_vector"])
    def test_one_bad_vector_is_one_text_s_error(self, endpoint, model, mode):
        model.control(mode=mode)
        rows = client(endpoint)(TEXTS)
        assert reasons(rows) == ["the embedding is no list of numbers", "", ""]

    @pytest.mark.parametrize(
        "mode, why",
        [
            ("zero_vector", "embed-1 gave an embedding of length zero, which has no direction"),
            ("nan_vector", "embed-1: the embedding is no list of numbers"),
        ],
    )
    def test_one_without_a_direction_is_no_similarity(self, endpoint, model, mode, why):
        model.control(mode=mode)
        found = semantic_similarity(JUDGE, PEOPLE, client(endpoint))
        assert why in [gap.why for gap in found.figure.left_out]

    @pytest.mark.parametrize("vector", [[True, 1.0], ["1"], [[1.0]], [10**400], {}, []])
    def test_no_vector_of_numbers_is_an_error(self, endpoint, model, vector):
        model.answers({"data": [{"index": 0, "embedding": vector}]})
        (row,) = client(endpoint)(["fox"])
        assert isinstance(row, EmbeddingFailed)

    def test_the_key_is_nowhere(self, endpoint, model, caplog):
        caplog.set_level("DEBUG")
        model.control(mode="echo_key")
        (row,) = client(endpoint)(["fox"])
        assert "the key was refused" in str(row)
        assert KEY not in str(row) + caplog.text + repr(endpoint)


class TestBatches:
    def test_many_texts_are_several_requests_in_order(self, endpoint, model):
        people = {"ann": {f"q{n}": f"text number {n}" for n in range(150)}}
        found = semantic_similarity(people["ann"], people, client(endpoint))
        sent = [request["body"]["input"] for request in model.requests]
        assert [len(texts) for texts in sent] == [100, 50]
        assert [text for texts in sent for text in texts] == sorted(people["ann"].values())
        assert found.figure.value == pytest.approx(1)

    def test_no_text_is_no_request(self, endpoint, model):
        assert client(endpoint)([]) == []
        assert model.requests == []

    @pytest.mark.parametrize("mode", ["429", "500", "503", "too_few_vectors", "disconnect"])
    def test_what_may_pass_is_asked_again(self, endpoint, model, mode, monkeypatch):
        monkeypatch.setattr(module, "WAITS_S", (0, 0, 0))
        model.control(mode=mode, times=2, retry_after=0)
        assert reasons(client(endpoint)(TEXTS)) == [""] * 3
        assert len(model.requests) == 3

    def test_but_not_for_ever(self, endpoint, model):
        model.control(mode="429", retry_after=0)
        rows = client(endpoint)(TEXTS)
        assert len(model.requests) == 4
        assert all(why.startswith("429 Too Many Requests") for why in reasons(rows))

    def test_nor_longer_than_its_patience(self, endpoint, model, monkeypatch):
        monkeypatch.setattr(module, "PATIENCE_S", 1)
        model.control(mode="429", retry_after=30)
        rows = client(endpoint)(TEXTS)
        assert len(model.requests) == 1
        assert "asked to wait 30 s" in reasons(rows)[0]

    def test_a_refused_key_is_not_asked_again(self, endpoint, model):
        model.control(mode="insufficient_quota")
        client(endpoint)(TEXTS)
        assert len(model.requests) == 1

    def test_one_refused_text_does_not_cost_the_others_theirs(self, endpoint, model):
        model.control(mode="one_text_refused")
        texts = [*TEXTS, "unembeddable", "a cat"]
        failed = [bool(why) for why in reasons(client(endpoint)(texts))]
        assert failed == [False, False, False, True, False]

    def test_vectors_of_another_size_are_not_compared(self, endpoint, model):
        model.control(mode="short_vector")
        found = semantic_similarity(JUDGE, PEOPLE, client(endpoint))
        gaps = [gap.why for gap in found.figure.left_out]
        assert "embed-1 gave an embedding of another shape than those before" in gaps

    def test_nor_are_those_of_another_model(self, endpoint, model):
        asker = client(endpoint)
        for name in ("embed-1-may", "embed-1-june"):
            model.answers({"model": name, "data": [{"index": 0, "embedding": [1, 0]}]})
            rows = asker(["fox"])
        assert reasons(rows) == ["the model called itself embed-1-june, and embed-1-may before"]
        assert asker.model == "embed-1-may"


class TestFigure:
    def test_the_model_as_reported_stands_in_the_result(self, endpoint, model):
        model.answers({"model": "embed-may", "data": [{"embedding": [3, 4]}]})
        embed = client(endpoint)
        found = semantic_similarity({"q": "x"}, {"ann": {"q": "x"}}, embed)
        assert (found.model, found.figure.value) == ("embed-may", pytest.approx(1))

    def test_a_failed_call_is_an_error_of_its_items_and_no_similarity_of_0(self, endpoint, model):
        model.control(mode="one_text_refused")
        people = {"ann": {"q1": "the red fox", "q2": "unembeddable"}}
        found = semantic_similarity(JUDGE, people, client(endpoint))
        alone = semantic_similarity({"q1": JUDGE["q1"]}, people, client(endpoint))
        assert found.figure.value == alone.figure.value > 0
        (gap,) = found.figure.left_out
        assert gap.names == ("q2",)
        assert gap.why.startswith("embed-1: 400 Bad Request: the request was refused")

    def test_where_every_call_fails_there_is_no_figure_and_the_error_is_said(self, endpoint, model):
        model.control(mode="insufficient_quota")
        found = semantic_similarity(JUDGE, PEOPLE, client(endpoint))
        assert found.figure.value is None
        assert found.figure.why == "embed-1 could embed no pair of texts"
        assert "the account has no credit" in found.figure.left_out[0].why
        assert found.figure.left_out[0].count == 2


class TestMakeEmbedder:
    @pytest.fixture
    def row(self, db, model, monkeypatch):
        monkeypatch.setenv("LOCAL_API_KEY", KEY)
        return Provider.objects.create(
            name="local", base_url=model.base_url, key_variable="LOCAL_API_KEY"
        )

    def test_of_a_provider(self, row, model):
        embed = make_embedder({"provider": "local", "model": "embed-1"})
        scorer = make_scorer("semantic_similarity", embed=embed)
        assert isinstance(scorer, SemanticSimilarityScorer)
        assert 0 < semantic_similarity(JUDGE, PEOPLE, embed).figure.value < 1
        assert model.requests[0]["authorized"]

    def test_of_an_address(self, db, model, monkeypatch):
        monkeypatch.setenv("OTHER_API_KEY", KEY)
        options = {"base_url": model.base_url, "key_variable": "OTHER_API_KEY", "model": "e"}
        assert len(make_embedder(options, is_trusted=True)(["fox"])[0]) == 64

    def test_an_address_needs_no_key(self, db):
        with provider() as open_to_all:
            options = {"base_url": open_to_all.base_url, "model": "e"}
            assert len(make_embedder(options, is_trusted=True)(["fox"])[0]) == 64

    @pytest.mark.parametrize(
        "options", [{"base_url": "http://169.254.169.254/v1", "model": "e"}, {"local": "/etc"}]
    )
    def test_places_are_taken_only_from_whom_is_trusted(self, db, options):
        with pytest.raises(ConfigInvalid, match="is taken from the command line only"):
            make_embedder(options)

    @pytest.mark.parametrize(
        "options,path,why",
        [
            ({}, "embedder", "must name exactly one of provider, base_url, local"),
            ({"provider": "p", "local": "x"}, "embedder", "must name exactly one"),
            ({"provider": "nobody", "model": "e"}, "embedder.provider", "no provider is called"),
            ({"provider": "local"}, "embedder.model", "is missing"),
            ({"provider": "local", "model": "e", "modle": 1}, "embedder.modle", "unknown"),
            ({"base_url": "file:///x", "model": "e"}, "embedder.base_url", "An http or https"),
            (
                {"base_url": "http://x/v1", "model": "e", "key_variable": "SECRET_KEY"},
                "embedder.key_variable",
                "ends in _API_KEY",
            ),
            (
                {"base_url": "http://x/v1", "model": "e", "key_variable": "UNSET_API_KEY"},
                "embedder.key_variable",
                "no such variable",
            ),
            ({"local": "/nowhere/at/all"}, "embedder.local", "is no folder"),
        ],
    )
    def test_mistakes_are_named_by_their_path(self, row, options, path, why):
        with pytest.raises(ConfigInvalid) as caught:
            make_embedder(options, is_trusted=True)
        assert any(e.path == path and why in e.message for e in caught.value.errors), caught.value

    def test_a_missing_key_is_named_and_not_shown(self, row, monkeypatch):
        monkeypatch.delenv("LOCAL_API_KEY")
        with pytest.raises(ConfigInvalid, match="set LOCAL_API_KEY"):
            make_embedder({"provider": "local", "model": "e"})


def test_an_endpoint_that_is_none():
    rows = client(Endpoint("x", "ftp://x", ""))(["fox"])
    assert reasons(rows) == ["the base URL of x is not an http or https address"]

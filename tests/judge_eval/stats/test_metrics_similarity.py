"""How alike texts are, by their letters and by embeddings that may fail."""

from difflib import SequenceMatcher

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import (
    EmbeddingFailed,
    Resampling,
    Vector,
    semantic_similarity,
    text_similarity,
)

FEW = Resampling(20)
texts = st.text("abC ", max_size=6)
said = st.dictionaries(st.integers(0, 5), texts, min_size=1)
people = st.dictionaries(st.sampled_from(["ann", "ben", "cem"]), said, min_size=1)


class Embedder:
    """Embeds the texts that it knows, and notes what it was asked."""

    model = "stub"

    def __init__(self, **vectors):
        self.vectors, self.asked = vectors, []

    def __call__(self, batch):
        self.asked.append(list(batch))
        return [self.vectors.get(text) for text in batch]


class Broken(Embedder):
    def __call__(self, batch):
        raise EmbeddingFailed("503 from the endpoint")


ANIMALS = {"cat": [1, 0, 0], "dog": [0.8, 0.6, 0], "car": [0, 0, 1], "truck": [0, 0.28, 0.96]}


# --- letters ------------------------------------------------------------------------------------


def ratio(judge, human):
    return SequenceMatcher(None, judge.lower().strip(), human.lower().strip()).ratio()


@given(said, people)
def test_it_is_difflib_s_ratio_of_each_person_and_then_the_mean(judge, humans):
    ratios = {
        name: [ratio(judge[item], text) for item, text in given.items() if item in judge]
        for name, given in humans.items()
    }
    means = {name: np.mean(values) for name, values in ratios.items() if values}
    found = text_similarity(judge, humans, resampling=FEW)
    if not means:
        assert found.figure.why
        return
    assert found.figure.value == pytest.approx(np.mean(list(means.values())))
    every = [value for values in ratios.values() for value in values]
    assert found.spread.mean == pytest.approx(np.mean(every))
    assert found.spread.median == pytest.approx(np.median(every))
    assert found.spread.std == pytest.approx(np.std(every))
    assert found.spread.count == found.figure.n == len(every)


@given(said, people)
def test_the_best_match_of_an_item_is_the_person_most_alike(judge, humans):
    best = {}
    for given_texts in humans.values():
        for item, text in given_texts.items():
            if item in judge:
                best[item] = max(best.get(item, 0), ratio(judge[item], text))
    found = text_similarity(judge, humans, best_match=True, resampling=FEW)
    if best:
        assert found.figure.value == pytest.approx(np.mean(list(best.values())))
        assert found.figure.n == len(best)
    else:
        assert found.figure.why


def test_vectors_of_texts_are_compared_by_position():
    judge, human = Vector(["abcd", "same"]), Vector(["bcde", "same"])
    assert text_similarity({"q": judge}, {"ann": {"q": human}}).figure.value == 0.875


@pytest.mark.parametrize("label", [4, True, ()])
def test_what_is_no_text_is_refused(label):
    with pytest.raises(ValueError, match="is no text"):
        text_similarity({"q": label}, {"ann": {"q": "x"}})


def test_vectors_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="2 texts cannot be compared with 1"):
        text_similarity({"q": ("a", "b")}, {"ann": {"q": ("a",)}})


# --- meaning ------------------------------------------------------------------------------------


def test_it_is_the_cosine():
    judge, humans = {"q": "cat", "r": "car"}, {"ann": {"q": "dog", "r": "truck"}}
    found = semantic_similarity(judge, humans, Embedder(**ANIMALS))
    assert found.figure.value == pytest.approx((0.8 + 0.96) / 2)
    assert found.model == "stub"
    assert found.spread.count == 2


def test_the_length_of_an_embedding_makes_no_difference():
    short, long = Embedder(a=[1, 2], b=[2, 1]), Embedder(a=[10, 20], b=[0.2, 0.1])
    for embed in (short, long):
        found = semantic_similarity({"q": "a"}, {"ann": {"q": "b"}}, embed)
        assert found.figure.value == pytest.approx(0.8)


def test_opposite_meanings_are_minus_one():
    found = semantic_similarity({"q": "a"}, {"ann": {"q": "b"}}, Embedder(a=[1], b=[-3]))
    assert found.figure.value == -1


def test_every_text_is_asked_for_once_in_batches():
    embed = Embedder(**ANIMALS)
    humans = {"ann": {"q": "dog", "r": "cat"}, "ben": {"q": "truck", "r": "cat"}}
    semantic_similarity({"q": "cat", "r": "car"}, humans, embed, batch_size=3)
    assert embed.asked == [["car", "cat", "dog"], ["truck"]]


def test_only_texts_that_are_compared_are_asked_for():
    embed = Embedder(**ANIMALS)
    semantic_similarity({"q": "cat", "z": "car"}, {"ann": {"q": "dog", "y": "x"}}, embed)
    assert embed.asked == [["cat", "dog"]]


@pytest.mark.parametrize(
    "vector, why",
    [
        (None, "stub gave no embedding"),
        ([float("nan"), 1.0, 0.0], "stub gave an embedding that is no number"),
        ([0.0, 0.0, 0.0], "stub gave an embedding of length zero, which has no direction"),
    ],
)
def test_what_cannot_be_embedded_is_an_error_of_its_items_and_never_zero(vector, why):
    embed = Embedder(**ANIMALS, cow=vector)
    humans = {"ann": {"q": "dog", "r": "cow", "s": "cow"}}
    found = semantic_similarity({"q": "cat", "r": "cat", "s": "car"}, humans, embed)
    assert found.figure.value == 0.8
    assert found.figure.n == 1
    [gap] = found.figure.left_out
    assert (gap.what, gap.count, gap.why, gap.names) == ("labels", 2, why, ("r", "s"))


def test_with_the_best_match_an_item_with_an_error_is_left_out():
    """The text that could not be embedded may have been the best match."""
    humans = {"ann": {"q": "dog", "r": "car"}, "ben": {"q": "cow"}}
    judge = {"q": "cat", "r": "truck"}
    found = semantic_similarity(judge, humans, Embedder(**ANIMALS), best_match=True)
    assert (found.figure.value, found.figure.n) == (pytest.approx(0.96), 1)
    assert found.figure.left_out[0].names == ("q",)


def test_a_call_that_failed_is_named_as_the_reason():
    found = semantic_similarity({"q": "cat"}, {"ann": {"q": "dog"}}, Broken())
    assert found.figure.value is None
    assert found.figure.why == "stub could embed no pair of texts"
    assert found.figure.left_out[0].why == "stub: 503 from the endpoint"


def test_an_embedder_that_loses_texts_is_refused():
    class Forgetful(Embedder):
        def __call__(self, batch):
            return [[1.0]]

    with pytest.raises(ValueError, match="stub gave 1 embeddings of 2 texts"):
        semantic_similarity({"q": "cat"}, {"ann": {"q": "dog"}}, Forgetful())


def test_an_embedder_may_return_an_array():
    class Arrays(Embedder):
        def __call__(self, batch):
            return np.array([ANIMALS[text] for text in batch])

    found = semantic_similarity({"q": "cat"}, {"ann": {"q": "dog"}}, Arrays())
    assert found.figure.value == pytest.approx(0.8)

"""A sentence encoder in a local folder: a tiny one, built here, and no connection is made."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from judge_eval.stats import semantic_similarity
from judge_eval.stats.similarity import EncoderMissing, LocalEncoder
from tests.helpers.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
NOT_INSTALLED = "not run: model2vec is not installed (requirements-local-embeddings.txt)"
needs_extra = pytest.mark.skipif(
    importlib.util.find_spec("model2vec") is None, reason=NOT_INSTALLED
)
VECTORS = {"[UNK]": (0, 0), "cat": (1, 0), "dog": (0.8, 0.6), "truck": (0, 1)}


@pytest.fixture
def folder(tmp_path):
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = {word: n for n, word in enumerate(VECTORS)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    model = StaticModel(np.array([*VECTORS.values()], np.float32), tokenizer)
    model.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


@needs_extra
class TestEncoder:
    def test_similarities_are_those_of_its_vectors(self, folder):
        judge = {"a": "cat", "b": "cat", "c": "cat dog"}
        people = {"ann": {"a": "dog", "b": "truck", "c": "cat dog"}}
        found = semantic_similarity(judge, people, LocalEncoder(folder))
        assert found.figure.value == pytest.approx((0.8 + 0 + 1) / 3, abs=1e-6)

    def test_the_model_is_named_by_its_folder_and_its_weights(self, folder):
        first = LocalEncoder(folder).model
        assert first.startswith("tiny (")
        moved = folder.rename(folder.parent / "moved")
        assert LocalEncoder(moved).model == first.replace("tiny", "moved")
        weights = moved / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-4] + np.float32(0.5).tobytes())
        assert LocalEncoder(moved).model != first.replace("tiny", "moved")

    def test_a_text_without_known_words_is_an_error_and_not_unlike_everything(self, folder):
        encoder = LocalEncoder(folder)
        people = {"ann": {"a": "dog", "b": "qwxz"}}
        found = semantic_similarity({"a": "cat", "b": "cat"}, people, encoder)
        assert found.figure.value == pytest.approx(0.8, abs=1e-6)
        (gap,) = found.figure.left_out
        assert (gap.names, gap.why) == (("b",), f"{encoder.model}: it knows no word of this text")
        assert encoder([]) == []

    def test_no_connection_is_made(self, folder):
        watched = f"""
import sys

def watch(event, args):
    if event in {{"socket.connect", "socket.getaddrinfo", "socket.gethostbyname"}}:
        raise SystemExit(f"{{event}} {{args}}")

sys.addaudithook(watch)
from judge_eval.stats.similarity import LocalEncoder
print(len(LocalEncoder({str(folder)!r})(["cat"])[0]))
assert "django" not in sys.modules
"""
        done = subprocess.run(
            [sys.executable, "-c", watched],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert (done.stdout, done.stderr) == ("2\n", "")

    @pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
    def test_half_a_model_is_refused(self, folder, name):
        folder.joinpath(name).unlink()
        with pytest.raises(EncoderMissing, match="holds no model that can be read"):
            LocalEncoder(folder)

    def test_a_broken_model_is_refused(self, folder):
        folder.joinpath("tokenizer.json").write_text(json.dumps({"version": "1.0"}))
        with pytest.raises(EncoderMissing, match="holds no model that can be read"):
            LocalEncoder(folder)


def test_a_name_is_never_fetched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EncoderMissing, match="is no folder"):
        LocalEncoder("minishlab/potion-base-8M")
    with pytest.raises(EncoderMissing, match=r"holds no model\.safetensors"):
        LocalEncoder(tmp_path)


def test_without_the_library_it_is_said_what_to_install(tmp_path, monkeypatch):
    tmp_path.joinpath("model.safetensors").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(EncoderMissing, match=r"pip install -r requirements-local-embeddings\.txt"):
        LocalEncoder(tmp_path)

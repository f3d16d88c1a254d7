"""Embedding: parity with PyTorch, bits that do not depend on company, windows, odd input."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from surefoot.errors import ConfigurationError, InputError, ModelError, ModelNotFoundError
from surefoot.inference.embedding import Embedder
from surefoot.models.manifest import load_manifest

FIXTURE = Path(__file__).parent / "fixtures" / "models" / "bert-embed"
TEXTS = [
    "The store opens at nine on Monday.",
    "Our refund policy allows returns within thirty days of delivery.",
    "She was born in Lyon in 1984 and moved to Paris.",
    "A dog.",
    "",
    "revenue " * 30,
]


@pytest.fixture(scope="module")
def tiny() -> Embedder:
    return Embedder(FIXTURE, pooling="mean", threads=1)


@pytest.fixture(scope="module")
def bundled() -> Embedder:
    return Embedder(threads=2)


def test_rows_are_unit_vectors(tiny: Embedder) -> None:
    vectors = tiny.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 16) == (len(TEXTS), tiny.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_equals_pooling_of_what_pytorch_gave(pooling: str) -> None:
    """``expected.json`` holds PyTorch's hidden states for given ids; here the ids come from a text."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("onnx")
    from surefoot.models.convert import convert_folder  # the safetensors fixture has a whole checkpoint

    source = FIXTURE.parent / "bert-nli-safetensors"
    model = transformers.AutoModel.from_pretrained(source, local_files_only=True).eval()
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    text = TEXTS[0]
    with torch.no_grad():
        hidden = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0].numpy()
    pooled = hidden.mean(axis=0) if pooling == "mean" else hidden[0]
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        convert_folder(source, Path(folder) / "made", name="made", task="embed")
        got = Embedder(Path(folder) / "made", pooling=pooling).embed([text])[0]  # type: ignore[arg-type]
    assert np.allclose(got, pooled / np.linalg.norm(pooled), atol=1e-5)


def test_bits_do_not_depend_on_batch_order_or_threads(bundled: Embedder) -> None:
    texts = [*TEXTS, *(f"passage {n} about " + "rain and wind " * (n % 9) for n in range(40))]
    alone = np.stack([bundled.embed([text])[0] for text in texts])
    order = list(range(len(texts)))
    random.Random(1).shuffle(order)
    for threads in (1, 3):
        other = Embedder(threads=threads)
        assert np.array_equal(other.embed([texts[at] for at in order]), alone[order])


def test_the_same_from_many_threads_at_once(tiny: Embedder) -> None:
    expected = tiny.embed(TEXTS)
    failures: list[object] = []

    def work() -> None:
        try:
            for _ in range(5):
                if not np.array_equal(tiny.embed(TEXTS), expected):
                    failures.append("different")
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_duplicates_are_computed_once(tiny: Embedder) -> None:
    seen: list[tuple[int, int]] = []
    vectors = tiny.embed(
        ["a dog", "a store", "a dog", "a dog"], progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(2, 2)]
    assert np.array_equal(vectors[0], vectors[2])
    assert np.array_equal(vectors[0], vectors[3])
    assert not np.array_equal(vectors[0], vectors[1])


def test_a_long_text_is_read_to_its_end(tiny: Embedder) -> None:
    """Nothing is cut: what stands behind the last position of the model still moves the vector."""
    head = "the store opens on monday " * 40
    first, second = tiny.embed([head + "revenue revenue revenue", head + "dog dog dog"])
    assert not np.array_equal(first, second)


def test_a_long_text_is_the_mean_of_its_windows() -> None:
    """Against windows made by hand from the tokenizer and the raw graph."""
    embedder = Embedder(FIXTURE, pooling="mean", max_length=12, threads=1)
    import onnxruntime

    session = onnxruntime.InferenceSession(str(FIXTURE / "onnx" / "model.onnx"))
    text = "a dog ran along the river while two men were fishing on monday"
    ids = Tokenizer.from_file(str(FIXTURE / "tokenizer.json")).encode(text).ids
    first, body, last = ids[0], ids[1:-1], ids[-1]
    assert len(body) > 10
    parts = -(-len(body) // 10)
    edges = [len(body) * part // parts for part in range(parts + 1)]
    total, count = np.zeros(16), 0
    for start, end in itertools.pairwise(edges):
        window = np.array([[first, *body[start:end], last]])
        hidden = session.run(
            None,
            {
                "input_ids": window,
                "attention_mask": np.ones_like(window),
                "token_type_ids": np.zeros_like(window),
            },
        )[0][0]
        total += hidden.sum(axis=0)
        count += window.shape[1]
    mean = total / count
    assert np.allclose(embedder.embed([text])[0], mean / np.linalg.norm(mean), atol=1e-5)


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(exclude_categories=[])), max_size=4))
def test_any_text_has_a_vector(texts: list[str]) -> None:
    embedder = Embedder(FIXTURE, pooling="mean", threads=1)
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), 16)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("text", ["\ud800", "\0", "x" * 1_000_000, "\u0301" * 1000, " \n"])
def test_hostile_texts(tiny: Embedder, text: str) -> None:
    assert np.isfinite(tiny.embed([text])).all()


@pytest.mark.parametrize(
    ("texts", "message"),
    [("one text", "not one str"), ([b"x"], r"texts\[0\]"), (["a", None], r"texts\[1\]"), (None, "not one")],
)
def test_wrong_input_is_named(tiny: Embedder, texts: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tiny.embed(texts)  # type: ignore[arg-type]


def test_nothing_in_nothing_out(tiny: Embedder) -> None:
    assert tiny.embed([]).shape == (0, 16)


def test_prefixes_are_what_they_say() -> None:
    plain = Embedder(FIXTURE, pooling="mean")
    prefixed = Embedder(FIXTURE, pooling="mean", query_prefix="dog ", passage_prefix="store ")
    assert np.array_equal(prefixed.embed(["a"], query=True), plain.embed(["dog a"]))
    assert np.array_equal(prefixed.embed(["a"]), plain.embed(["store a"]))
    assert prefixed.settings != plain.settings


def test_pooling_is_read_and_never_guessed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="how to pool"):
        Embedder(FIXTURE).load()
    folder = tmp_path / "model"
    shutil.copytree(FIXTURE, folder)
    (folder / "1_Pooling").mkdir()
    config = folder / "1_Pooling" / "config.json"
    config.write_text(json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))
    assert np.array_equal(Embedder(folder).embed(TEXTS), Embedder(FIXTURE, pooling="cls").embed(TEXTS))
    config.write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(ConfigurationError, match="pooling_mode_max_tokens"):
        Embedder(folder).load()


def test_options_are_checked() -> None:
    for options in ({"threads": 0}, {"max_length": 2}, {"pooling": "max"}):
        with pytest.raises(ConfigurationError):
            Embedder(FIXTURE, **options)  # type: ignore[arg-type]


def test_another_kind_of_model_is_refused() -> None:
    with pytest.raises(ModelError, match="no encoder"):
        Embedder(FIXTURE.parent / "bert-relevance", pooling="mean").load()
    with pytest.raises(ModelNotFoundError):
        Embedder("no-such-model").load()
    with pytest.raises(ConfigurationError, match="model for nli"):
        Embedder("verify").load()


def test_loading_is_lazy() -> None:
    embedder = Embedder(FIXTURE, pooling="mean")
    assert not embedder.is_loaded
    embedder.load()
    assert embedder.is_loaded


def test_the_bundled_model_knows_what_is_alike(bundled: Embedder) -> None:
    vectors = bundled.embed(
        [
            "How do I get my money back?",
            "Refunds are paid within thirty days.",
            "The Eiffel Tower is 330 metres tall.",
        ]
    )
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


def test_what_int8_cost_is_recorded_and_small() -> None:
    record = load_manifest()["embed"]
    cost = record.export["int8_against_float32"]
    assert cost["min_cosine"] > 0.998
    points = record.export["ndcg_at_10_points_lost_or_gained_by_int8"]
    assert len(points) > 2
    assert all(abs(value) <= 0.3 for value in points.values())
    assert record.max_length == 256

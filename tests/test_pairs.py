"""Sessions, batches, threads and the cache, on the bundled model."""

from __future__ import annotations

import multiprocessing
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import ConfigurationError, ModelError, ModelIntegrityError
from surefoot.inference.cache import ScoreCache
from surefoot.inference.pairs import PairModel, equal_length_runs
from surefoot.inference.session import available_threads
from surefoot.inference.text import TextEncoder, clean
from surefoot.models.manifest import bundled

WORDS = (
    "the refund period is ten days after delivery of goods and a fee of five percent applies to each".split()
)


def make_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    return [
        (
            " ".join(rng.choices(WORDS, k=rng.randint(1, 120))),
            " ".join(rng.choices(WORDS, k=rng.randint(1, 30))),
        )
        for _ in range(count)
    ]


def make_model(threads: int = 2, cache: int = 0) -> PairModel:
    found = bundled("verify")
    return PairModel(
        found.model_path,
        found.tokenizer_path,
        fingerprint=found.fingerprint,
        max_length=found.record.max_length,
        threads=threads,
        cache=ScoreCache(cache),
    )


@pytest.fixture(scope="module")
def model() -> PairModel:
    return make_model()


def test_scores_are_bit_identical_whatever_the_batch(model: PairModel) -> None:
    pairs = make_pairs(24)
    alone = np.concatenate([model.logits([pair]) for pair in pairs])
    assert (model.logits(pairs) == alone).all()
    assert (model.logits(pairs[::-1])[::-1] == alone).all()
    assert (np.concatenate([model.logits(pairs[:5]), model.logits(pairs[5:])]) == alone).all()


def test_equal_lengths_share_a_run_and_still_agree(model: PairModel) -> None:
    # Short pairs of one length: these really are computed side by side in one run.
    pairs = [(f"the fee is {word}", "the fee is due") for word in ("ten", "two", "six", "low", "new", "old")]
    assert any(len(members) > 1 for members, _ in equal_length_runs([12] * 6, 512))
    alone = np.concatenate([model.logits([pair]) for pair in pairs])
    assert (model.logits(pairs) == alone).all()


def test_scores_are_bit_identical_whatever_the_threads(model: PairModel) -> None:
    pairs = make_pairs(12, seed=1)
    assert (make_model(threads=1).logits(pairs) == model.logits(pairs)).all()
    assert (make_model(threads=4).logits(pairs) == model.logits(pairs)).all()


def test_64_threads_share_one_model(model: PairModel) -> None:
    pairs = make_pairs(64, seed=2)
    expected = model.logits(pairs)
    with ThreadPoolExecutor(64) as pool:
        rows = list(pool.map(lambda pair: model.logits([pair])[0], pairs))
    assert (np.stack(rows) == expected).all()


def test_duplicates_are_scored_once_and_keep_their_places(model: PairModel) -> None:
    first, second = make_pairs(2, seed=3)
    done: list[tuple[int, int]] = []
    rows = model.logits([first, second, first, first], progress=lambda *step: done.append(step))
    assert (rows[0] == rows[2]).all()
    assert (rows[0] == rows[3]).all()
    assert (rows[0] != rows[1]).any()
    assert done[-1] == (2, 2)


def test_no_pairs_give_an_empty_array(model: PairModel) -> None:
    assert model.logits([]).shape == (0, 3)


def test_an_overlong_pair_is_refused_not_cut(model: PairModel) -> None:
    with pytest.raises(ModelError, match="tokens, and the model reads 512"):
        model.logits([("word " * 600, "a claim")])


def test_room_is_what_a_premise_may_have(model: PairModel) -> None:
    room = model.room("the fee is ten percent")
    assert room == 512 - 3 - 5
    assert model.logits([("word " * room, "the fee is ten percent")]).shape == (1, 3)
    with pytest.raises(ModelError):
        model.logits([("word " * (room + 1), "the fee is ten percent")])


def test_segment_ids_matter(model: PairModel) -> None:
    # With the second segment's ids missing the model would see one long text: swapping changes the scores.
    forward = model.logits([("The office opens on Monday.", "It opens on Friday.")])
    backward = model.logits([("It opens on Friday.", "The office opens on Monday.")])
    assert (forward != backward).any()
    assert 1 in model.encoder.encode_pairs([("a", "b")])[0].type_ids


@pytest.mark.parametrize(
    "text", ["\ud800", "a\0b", "\u202eabc", "e\u0301\u0327", "\U0001f600" * 5, "", " \t\n"]
)
def test_odd_texts_are_scored(model: PairModel, text: str) -> None:
    assert np.isfinite(model.logits([(text, text)])).all()


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_clean_keeps_positions(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) == len(text)
    cleaned.encode("utf-8")
    assert all(a == b or 0xD800 <= ord(a) < 0xE000 for a, b in zip(text, cleaned, strict=True))


def test_cache_is_bounded_and_forgets_the_oldest() -> None:
    cache = ScoreCache(2)
    keys = [cache.key("m", (text, "claim")) for text in "abc"]
    for value, key in enumerate(keys):
        cache.put(key, np.array([value], dtype=np.float32))
    assert len(cache) == 2
    assert cache.get(keys[0]) is None
    cache.get(keys[1])
    cache.put(keys[0], np.array([9], dtype=np.float32))
    assert cache.get(keys[2]) is None, "the least recently used entry should go"
    assert cache.get(keys[1]) is not None


def test_cache_keys_tell_models_and_texts_apart() -> None:
    keys = {
        ScoreCache.key(*args)
        for args in [
            ("m", ("ab", "c")),
            ("m", ("a", "bc")),
            ("n", ("ab", "c")),
            ("m", ("c", "ab")),
            ("m", ("", "abc")),
        ]
    }
    assert len(keys) == 5


def test_cached_scores_are_the_same_bits() -> None:
    model = make_model(cache=100)
    pairs = make_pairs(3, seed=4)
    first = model.logits(pairs)
    assert len(model.cache) == 3
    done: list[tuple[int, int]] = []
    assert (model.logits(pairs, progress=lambda *step: done.append(step)) == first).all()
    assert done == [], "nothing should have been computed"


def _score_in_child(queue: multiprocessing.Queue[list[float]]) -> None:
    queue.put([float(x) for x in _FORKED.logits(make_pairs(4, seed=5))[0]])


_FORKED: PairModel


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_after_use_does_not_hang() -> None:
    global _FORKED
    _FORKED = make_model(threads=2)
    expected = [float(x) for x in _FORKED.logits(make_pairs(4, seed=5))[0]]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_score_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=60) == expected
    finally:
        child.join(timeout=10)
        child.kill()


def test_bad_options_and_files_are_refused(tmp_path: Path) -> None:
    found = bundled("verify")
    with pytest.raises(ConfigurationError, match="threads"):
        PairModel(found.model_path, found.tokenizer_path, fingerprint="x", threads=0)
    with pytest.raises(ConfigurationError, match="cache size"):
        ScoreCache(-1)
    damaged = tmp_path / "model.onnx"
    damaged.write_bytes(b"not a model")
    with pytest.raises(ModelIntegrityError, match=r"model\.onnx"):
        PairModel(damaged, found.tokenizer_path, fingerprint="x")
    damaged = tmp_path / "tokenizer.json"
    damaged.write_text("{}")
    with pytest.raises(ModelIntegrityError, match=r"tokenizer\.json"):
        TextEncoder(damaged)


def test_threads_come_from_the_affinity_mask() -> None:
    assert 1 <= available_threads() <= (os.cpu_count() or 1)
    if hasattr(os, "sched_setaffinity"):
        before = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(before)})
            assert available_threads() == 1
        finally:
            os.sched_setaffinity(0, before)


@settings(max_examples=60)
@given(st.lists(st.integers(min_value=2, max_value=512), max_size=80))
def test_runs_cover_every_pair_once_with_lengths_of_their_own(lengths: list[int]) -> None:
    runs = equal_length_runs(lengths, 512)
    assert sorted(member for members, _ in runs for member in members) == list(range(len(lengths)))
    for members, length in runs:
        for member in members:
            assert lengths[member] <= length <= lengths[member] + 7
            # The padded length of a pair is the same as when it is alone.
            assert equal_length_runs([lengths[member]], 512)[0][1] == length

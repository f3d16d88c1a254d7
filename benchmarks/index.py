"""What an index of many passages costs: time to build, search, save and load, and memory.

The passages are real: documents of ``DIR/retrieval`` (and ``--corpora``), cut as an index cuts them. If there
are fewer than asked for, they are repeated, each copy with every seventh word taken from another passage;
``distinct_passages`` says how many there were.

Embedding 100,000 passages takes most of an hour on a few cores, so its speed is measured on a sample. The
index holds other vectors: sums of the **static token vectors** of the same passages (the bundled table that
ranks evidence, 128 numbers), turned into the embedder's width by a map that keeps angles. Times and memory do
not depend on what vectors mean. ``hnsw.recall_10``, the share of the exact ten that the graph finds, does: it
is that of real texts under a simpler model. ``--embedded 0`` embeds everything instead.

Figures are in seconds, milliseconds (p50 and p95) and megabytes of 10^6 bytes. ``bm25.rebuild_seconds``
computes the scores again, as after an update. ``rss_mb`` is that of a fresh process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import table
from benchmarks.retrieval_sets import load_collections
from surefoot.inference.embedding import Embedder
from surefoot.retrieve import Index, PassageChunker, whole
from surefoot.schema import Source

__all__ = ["measure", "options", "show"]

DATA = "retrieval/"
QUERIES = 200


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--embedded", type=int, default=512, help="embed so many (%(default)s); 0 for all")
    parser.add_argument("--embedder", help="another embedder than the bundled one")
    parser.add_argument("--pooling", choices=["mean", "cls"], help="of --embedder")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Build, search, save and load."""
    from surefoot.retrieve.dense import DenseStore
    from surefoot.retrieve.lexical import LexicalStore

    passages, queries, distinct = _passages(options)
    result: dict[str, Any] = {
        "passages": len(passages),
        "distinct_passages": distinct,
        "mean_characters": round(sum(map(len, passages)) / len(passages), 1),
        "vectors": "static" if options.embedded else "embedded",
    }
    vectors, asked, embedding = _vectors(passages, queries, options)
    result |= embedding
    alive = np.ones(len(passages), dtype=np.bool_)
    lexical = LexicalStore()
    began = time.perf_counter()
    lexical.add(passages)
    lexical.prepare(alive)
    result["bm25.build_seconds"] = _seconds(began)
    lexical.changed()
    began = time.perf_counter()
    lexical.prepare(alive)
    result["bm25.rebuild_seconds"] = _seconds(began)
    result["bm25.search_ms"] = _each(queries, lambda at: lexical.search(queries[at], 100, None, alive))
    nearest: dict[str, list[set[int]]] = {}
    for kind in ("flat", "hnsw"):
        store = DenseStore(vectors.shape[1], kind=kind)
        began = time.perf_counter()
        store.add(vectors)
        result[f"{kind}.add_seconds"] = _seconds(began)
        result[f"{kind}.search_ms"] = _each(queries, lambda at, s=store: s.search(asked[at], 100, None))
        nearest[kind] = [{row for row, _ in store.search(vector, 10, None)} for vector in asked]
        del store
    shares = [len(a & b) / 10 for a, b in zip(nearest["flat"], nearest["hnsw"], strict=True)]
    result["hnsw.recall_10"] = round(sum(shares) / len(shares), 4)
    return result | _whole(passages, queries, vectors, options)


def _passages(options: argparse.Namespace) -> tuple[list[str], list[str], int]:
    """Passages, queries, and how many of the passages are as somebody wrote them."""
    chunker = PassageChunker()
    found: dict[str, None] = {}
    queries: list[str] = []
    for collection in load_collections([options.data, *options.corpora], only=[], limit=0, seed=0):
        queries += [text for _, text in collection.queries]
        for _, title, text in collection.documents:
            for span in chunker(Source("", text)):
                found[f"{title}\n{span.of(text)}" if title else span.of(text)] = None
    rng = random.Random(options.seed)
    passages = list(found)
    rng.shuffle(passages)
    passages = passages[: options.passages]
    distinct = len(passages)
    while len(passages) < options.passages:
        words = passages[len(passages) % distinct].split(" ")
        other = passages[rng.randrange(distinct)].split(" ")
        words[::7] = [other[rng.randrange(len(other))] for _ in words[::7]]
        passages.append(" ".join(words))
    return passages, rng.sample(queries, min(QUERIES, len(queries))), distinct


def _vectors(
    passages: list[str], queries: list[str], options: argparse.Namespace
) -> tuple[Any, Any, dict[str, Any]]:
    """Unit vectors of passages and of queries, and how long embedding took."""
    embedder = _embedder(options)
    embedder.load()
    wanted = options.embedded or len(passages)
    began = time.perf_counter()
    real = embedder.embed(passages[:wanted])
    seconds = time.perf_counter() - began
    if options.embedded:
        vectors = _static([*passages, *queries], embedder.dimension, seed=options.seed)
        vectors, asked = vectors[: len(passages)], vectors[len(passages) :]
    else:
        vectors, asked = real, np.stack([embedder.embed([query], query=True)[0] for query in queries])
    return (
        vectors,
        asked,
        {
            "embed.sample": len(real),
            "embed.passages_per_second": round(len(real) / seconds, 1),
            "embed.extrapolated_seconds": round(len(passages) * seconds / len(real), 1),
            "query_embed_ms": _each(queries, lambda at: embedder.embed([queries[at]], query=True)),
        },
    )


def _static(texts: list[str], width: int, *, seed: int) -> Any:
    """Unit vectors of texts from the static table, in ``width`` dimensions."""
    from surefoot.evidence.lexicon import load_lexicon

    lexicon = load_lexicon()
    parts = [lexicon.tokens(texts[at : at + 1000]) for at in range(0, len(texts), 1000)]
    narrow = np.stack([tokens.vector for part in parts for tokens in part])
    axes = np.random.default_rng(seed).standard_normal((max(width, narrow.shape[1]), narrow.shape[1]))
    vectors = (narrow @ np.linalg.qr(axes)[0].T.astype(np.float32))[:, :width]
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)


def _whole(
    passages: list[str], queries: list[str], vectors: Any, options: argparse.Namespace
) -> dict[str, Any]:
    """Save the index, and search it in a fresh process."""

    class Ready:
        """Hands out vectors that exist already, under the name of the real embedder."""

        def __init__(self) -> None:
            self._real = _embedder(options)
            self._known = dict(zip(passages, vectors, strict=True))
            self.dimension, self.name = self._real.dimension, self._real.name
            self.settings = self._real.settings

        def embed(self, texts: Sequence[str], *, query: bool = False) -> Any:
            return self._real.embed(texts, query=True) if query else np.stack([self._known[t] for t in texts])

    began = time.perf_counter()
    index = Index.build(passages, embedder=Ready(), chunker=whole)  # type: ignore[arg-type]
    index.search(queries[0])
    result: dict[str, Any] = {
        "build_without_embedding_seconds": _seconds(began),
        "dense": index.describe()["dense"]["kind"],
    }
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        index.save(folder)
        result["save_seconds"] = _seconds(began)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        result["disk_mb"] = round(size / 1e6, 1)
        del index
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return result | pool.submit(_loaded, folder, queries, options).result()


def _loaded(folder: str, queries: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """In a fresh process: load, search, and how much memory that takes."""
    import psutil

    embedder = _embedder(options)
    embedder.embed(["x"])
    process = psutil.Process()
    memory = {"with_embedder": process.memory_info().rss}
    began = time.perf_counter()
    index = Index.load(folder, embedder=embedder)
    seconds = _seconds(began)
    memory["loaded"] = process.memory_info().rss
    times = _each(queries, lambda at: index.search(queries[at]))
    memory["searched"] = process.memory_info().rss
    return {
        "load_seconds": seconds,
        "search_with_embedding_ms": times,
        "rss_mb": {name: round(value / 1e6, 1) for name, value in memory.items()},
    }


def _embedder(options: argparse.Namespace) -> Embedder:
    return Embedder(options.embedder, pooling=options.pooling, threads=options.threads)


def _each(items: Sequence[Any], call: Callable[[int], Any]) -> dict[str, float]:
    """p50 and p95 of one call an item, in milliseconds, after one that does not count."""
    call(0)
    times = []
    for at in range(len(items)):
        began = time.perf_counter()
        call(at)
        times.append(1000 * (time.perf_counter() - began))
    return {"p50": round(float(np.quantile(times, 0.5)), 2), "p95": round(float(np.quantile(times, 0.95)), 2)}


def _seconds(began: float) -> float:
    return round(time.perf_counter() - began, 3)


def show(result: Mapping[str, Any]) -> str:
    """All figures of the index."""
    rows = []
    for name, value in result.items():
        if name not in ("settings", "hardware", "weights"):
            shown = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
            rows.append([name, shown])
    return table(["figure", ""], rows)

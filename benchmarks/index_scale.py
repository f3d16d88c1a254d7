"""What an index of many passages costs: time to build, to search, to save and to load, and memory.

    python benchmarks/index_scale.py --data DIR [--passages 100000] [--embedded 512] [--json out.json]

The passages are real: documents and passages of ``DIR/retrieval`` (and ``--corpora``), cut as an index cuts
them. Where there are fewer than asked for, they are repeated, each copy with every seventh word taken from
another passage; ``distinct_passages`` says how many there were.

Embedding 100,000 passages takes most of an hour on a few cores, so it is measured on a sample (``--embedded``
passages): ``embed.passages_per_second``, and ``embed.extrapolated_seconds`` for all. The index holds other
vectors: the sums of **static token vectors** of the same passages and queries (the bundled table that ranks
evidence, 128 numbers), turned into the embedder's width by a map that keeps angles. Times and memory do not
depend on what vectors mean; ``hnsw.recall_10``, the share of the exact ten that the graph finds, does: it is
that of neighbours among real texts, but under a simpler model. ``--embedded 0`` embeds everything instead.

Figures, in seconds, milliseconds and megabytes (10^6 bytes): ``bm25.build_seconds`` (words to scores, all
passages), ``bm25.rebuild_seconds`` (scores alone, as after an update), ``KIND.add_seconds``,
``KIND.search_ms`` and ``bm25.search_ms`` (p50 and p95, 100 passages), ``query_embed_ms``, and for the whole
index ``save_seconds``, ``load_seconds`` (mapped, checksums compared), ``disk_mb``, ``rss_mb`` of a fresh
process before loading, after loading, and after the searches.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    # Run as a script. Its own folder must not stay on the path: its modules would hide others of their name.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np

from benchmarks import hardware
from benchmarks.retrieval_sets import load_collections
from benchmarks.runs import write_json

__all__ = ["main"]

QUERIES = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with retrieval/")
    parser.add_argument("--corpora", type=Path, action="append", default=[])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--embedded", type=int, default=512, help="embed so many; 0 for all")
    parser.add_argument("--kinds", default="flat,hnsw", help="flat, hnsw or both")
    parser.add_argument("--embedder", help="another embedder than the bundled one")
    parser.add_argument("--pooling", choices=["mean", "cls"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--probe", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.probe:
        print(json.dumps(_probe(options)))
        return 0

    from surefoot.retrieve.dense import DenseStore
    from surefoot.retrieve.lexical import LexicalStore

    passages, queries, distinct = _passages(options)
    result: dict[str, Any] = {
        "hardware": hardware.describe(threads=options.threads),
        "passages": len(passages),
        "distinct_passages": distinct,
        "mean_characters": round(sum(map(len, passages)) / len(passages), 1),
        "vectors": "static" if options.embedded else "embedded",
    }
    vectors, embedding = _vectors(passages, queries, options)
    result |= embedding
    asked = vectors[len(passages) :]
    vectors = vectors[: len(passages)]
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
    exact: list[set[int]] = []
    for kind in options.kinds.split(","):
        store = DenseStore(vectors.shape[1], kind=kind)
        began = time.perf_counter()
        store.add(vectors)
        result[f"{kind}.add_seconds"] = _seconds(began)
        result[f"{kind}.search_ms"] = _each(queries, lambda at, s=store: s.search(asked[at], 100, None))
        found = [{row for row, _ in store.search(vector, 10, None)} for vector in asked]
        exact = exact or found
        if kind == "hnsw" and "flat" in options.kinds:
            shares = [len(a & b) / 10 for a, b in zip(exact, found, strict=True)]
            result["hnsw.recall_10"] = round(sum(shares) / len(shares), 4)
        del store
    result |= _whole(passages, queries, vectors, options)
    if options.json:
        write_json(options.json, result)
    print(json.dumps({key: value for key, value in result.items() if key != "hardware"}, indent=1))
    return 0


def _passages(options: argparse.Namespace) -> tuple[list[str], list[str], int]:
    """Passages, queries, and how many of the passages are as somebody wrote them."""
    from surefoot.retrieve import PassageChunker
    from surefoot.schema import Source

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
) -> tuple[Any, dict[str, Any]]:
    """Unit vectors of passages, then of queries; and how long embedding took."""
    embedder = _embedder(options)
    embedder.load()
    wanted = options.embedded or len(passages)
    began = time.perf_counter()
    real = embedder.embed(passages[:wanted])
    seconds = time.perf_counter() - began
    if options.embedded:
        vectors = _static([*passages, *queries], embedder.dimension, seed=options.seed)
    else:
        asked = np.stack([embedder.embed([query], query=True)[0] for query in queries])
        vectors = np.concatenate([real, asked])
    return vectors, {
        "embed.sample": len(real),
        "embed.passages_per_second": round(len(real) / seconds, 1),
        "embed.extrapolated_seconds": round(len(passages) * seconds / len(real), 1),
        "query_embed_ms": _each(queries, lambda at: embedder.embed([queries[at]], query=True)),
    }


def _static(texts: list[str], width: int, *, seed: int) -> Any:
    """Unit vectors of texts from the static table, in ``width`` dimensions."""
    from surefoot.evidence.lexicon import load_lexicon

    lexicon = load_lexicon()
    narrow = np.concatenate(
        [
            np.stack([tokens.vector for tokens in lexicon.tokens(texts[at : at + 1000])])
            for at in range(0, len(texts), 1000)
        ]
    )
    axes = np.random.default_rng(seed).standard_normal((max(width, narrow.shape[1]), narrow.shape[1]))
    vectors = (narrow @ np.linalg.qr(axes)[0].T.astype(np.float32))[:, :width]
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)


def _whole(
    passages: list[str], queries: list[str], vectors: Any, options: argparse.Namespace
) -> dict[str, Any]:
    """Save the index, and search it in a fresh process."""
    from surefoot.retrieve import Index, whole

    class Ready:
        """Hands out the vectors that there are already, under the name of the real embedder."""

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
        result["disk_mb"] = round(
            sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file()) / 1e6, 1
        )
        del index
        done = subprocess.run(
            [sys.executable, __file__, "--data", ".", "--probe", folder, *_model_options(options)],
            input=json.dumps(queries),
            capture_output=True,
            text=True,
            check=True,
        )
        result |= json.loads(done.stdout)
    return result


def _probe(options: argparse.Namespace) -> dict[str, Any]:
    """In a fresh process: load, search, and how much memory that takes."""
    import psutil

    from surefoot.retrieve import Index

    queries = json.load(sys.stdin)
    embedder = _embedder(options)
    embedder.embed(["x"])
    process = psutil.Process()
    memory = {"with_embedder": process.memory_info().rss}
    began = time.perf_counter()
    index = Index.load(options.probe, embedder=embedder)
    seconds = _seconds(began)
    memory["loaded"] = process.memory_info().rss
    times = _each(queries, lambda at: index.search(queries[at]))
    memory["searched"] = process.memory_info().rss
    return {
        "load_seconds": seconds,
        "search_with_embedding_ms": times,
        "rss_mb": {name: round(value / 1e6, 1) for name, value in memory.items()},
    }


def _embedder(options: argparse.Namespace) -> Any:
    from surefoot.inference.embedding import Embedder

    return Embedder(options.embedder, pooling=options.pooling, threads=options.threads)


def _model_options(options: argparse.Namespace) -> list[str]:
    chosen = ["--threads", str(options.threads)]
    if options.embedder:
        chosen += ["--embedder", options.embedder]
    return chosen + (["--pooling", options.pooling] if options.pooling else [])


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


if __name__ == "__main__":
    sys.exit(main())

"""How well passages are found: by words, by vectors, by both, and each list reranked.

``--data`` is a folder with ``retrieval/``; benchmarks/retrieval_sets.py says what is in it. The result has
flat keys ``SYSTEM/SET.ndcg_10``, ``.mrr`` (to rank 100) and ``.recall_15`` with the 95% interval under
``KEY.ci`` (bootstrap of queries, the same draws for every system), the difference to ``bm25`` under
``KEY.over_bm25``, and the mean over the collections. All are in percent.

Systems
    bm25, dense (the embedder's cosine), rrf (joined by ranks, the default), rrf_even (both lists count the
    same), weighted (joined by scores). With ``--rerank`` also the first 100 of each, reranked.
Passages
    A document is one passage, title included. A long one is embedded as the mean of its windows.
Gains are linear, the discount is logarithmic, and the ideal order is that of everything judged, as in
trec_eval. The vectors are kept in ``--work``, so a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.record import progress, table
from benchmarks.retrieval_sets import Collection, load_collections
from surefoot import Index, Reranker
from surefoot.inference.embedding import Embedder
from surefoot.metrics import mrr, ndcg, recall_at_k
from surefoot.metrics.resampling import estimate, group_weights, mean_of, ratio
from surefoot.retrieve import whole

__all__ = ["measure", "options", "reranked", "show"]

DATA = "retrieval/"
FIGURES = {"ndcg_10": "nDCG@10", "mrr": "MRR", "recall_15": "recall@15"}
FIRST_STAGE: dict[str, dict[str, Any]] = {
    "bm25": {"mode": "bm25"},
    "dense": {"mode": "dense"},
    "rrf": {"mode": "fusion", "fusion": "rrf", "dense_weight": 0.7},  # the default
    "rrf_even": {"mode": "fusion", "fusion": "rrf", "dense_weight": 0.5},
    "weighted": {"mode": "fusion", "fusion": "weighted", "dense_weight": 0.7},
}
DEPTH = 100
Orders = dict[str, list[list[str]]]
"""System -> for each query, ids of documents, best first."""


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument(
        "--only", default="", help="names of collections, separated by commas; all by default"
    )
    parser.add_argument("--limit", type=int, default=0, help="most queries of a collection; 0 for all")
    parser.add_argument(
        "--rerank", nargs="?", const="bundled", help="also rerank, by the bundled or this model"
    )
    parser.add_argument("--int8", action="store_true", help="rerank in int8 arithmetic")
    parser.add_argument("--embedder", help="another embedder than the bundled one")
    parser.add_argument("--pooling", choices=["mean", "cls"], help="of --embedder")
    parser.add_argument(
        "--work", type=Path, default=Path("out/retrieval"), help="keeps vectors (%(default)s)"
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Search, and rerank if asked.

    Raises:
        ValueError: data are missing or malformed, or the processor or model does not do int8 arithmetic.
    """
    only = [name for name in options.only.split(",") if name]
    found = load_collections(
        [options.data, *options.corpora], only=only, limit=options.limit, seed=options.seed
    )
    result: dict[str, Any] = {"sets": {}}
    figures: dict[tuple[str, str, str], NDArray[np.float64]] = {}
    for collection in found:
        orders, facts = _first_stage(collection, options)
        if options.rerank:
            orders |= reranked(collection, orders, _reranker(options))
        result["sets"][collection.name] = {
            "documents": len(collection.documents),
            "queries": len(collection.queries),
            "queries_with_relevant": collection.total,
            "digest": collection.digest,
            **facts,
        }
        queries = [str(at) for at in range(len(collection.queries))]
        weights = group_weights(queries, seed=options.seed, name=collection.name)
        for system, lists in orders.items():
            for key in FIGURES:
                each = np.array([_figure(key, *one) for one in _judged(collection, lists)])
                figures[system, collection.name, key] = ratio(weights @ each, weights.sum(axis=1))
    names = [collection.name for collection in found]
    for system in dict.fromkeys(system for system, _, _ in figures):
        for key in FIGURES:
            figures[system, "mean", key] = mean_of([figures[system, name, key] for name in names])
    for (system, name, key), values in figures.items():
        for ending, figure in (("", values), (".over_bm25", values - figures["bm25", name, key])):
            value, ends = estimate(100 * figure)
            full = f"{system}/{name}.{key}{ending}"
            result[full] = None if value is None else round(value, 2)
            result[f"{full}.ci"] = None if ends is None else [round(end, 2) for end in ends]
    return result


def _first_stage(collection: Collection, options: argparse.Namespace) -> tuple[Orders, dict[str, Any]]:
    """What each system finds, and how the index was made."""
    embedder = Embedder(options.embedder, pooling=options.pooling, threads=options.threads)
    sources = [
        {"id": name, "title": title, "text": text} for name, title, text in collection.documents if text
    ]
    options.work.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    index = Index.build(
        sources,
        embedder=embedder,
        chunker=whole,
        checkpoint=options.work / f"{collection.name}.{collection.digest[:8]}.journal",
    )
    facts = {"seconds_to_index": time.perf_counter() - began, "dense": index.describe()["dense"]["kind"]}
    orders: Orders = {system: [] for system in FIRST_STAGE}
    for _, query in progress(collection.queries, f"{collection.name}: searching"):
        for system, settings in FIRST_STAGE.items():
            orders[system].append([hit.source_id for hit in index.search(query, DEPTH, **settings)])
    return orders, facts


def _reranker(options: argparse.Namespace) -> Reranker:
    reranker = Reranker(
        None if options.rerank == "bundled" else options.rerank,
        threads=options.threads,
        arithmetic="int8" if options.int8 else "float32",
    )
    reranker.load()
    if options.int8 and not (reranker.rerank("a", ["b"]).model or "").endswith("(int8)"):
        raise ValueError("this processor or model does not do int8 arithmetic")
    return reranker


def reranked(collection: Collection, orders: Mapping[str, list[list[str]]], reranker: Reranker) -> Orders:
    """Every list in the order of the reranker; a pair is scored once, whatever lists have it.

    A query that is too long for the model leaves its lists as they are, as it does in use.
    """
    texts = {name: f"{title}\n{text}" if title else text for name, title, text in collection.documents}
    made: Orders = {f"{system}+rerank": [] for system in orders}
    for at, (_, query) in enumerate(progress(collection.queries, f"{collection.name}: reranking")):
        names = list(dict.fromkeys(name for lists in orders.values() for name in lists[at]))
        ranking = reranker.rerank(query, [texts[name] for name in names], top_k=None)
        # What the reranker orders by: the logit, or what its manifest joins with it; None without a score.
        scores = {
            names[i.index]: i.reranker_score if i.fused_score is None else i.fused_score for i in ranking
        }
        for system, lists in orders.items():
            made[f"{system}+rerank"].append(
                sorted(lists[at], key=lambda name: float("inf") if scores[name] is None else -scores[name])
            )
    return made


def _judged(collection: Collection, orders: Sequence[Sequence[str]]) -> list[tuple[list[float], list[float]]]:
    """For each query, the grades in the order found, and all grades."""
    grades = [collection.grades[number] for number, _ in collection.queries]
    return [
        ([judged.get(name, 0.0) for name in order], list(judged.values()))
        for judged, order in zip(grades, orders, strict=True)
    ]


def _figure(key: str, grades: list[float], judged: list[float]) -> float:
    if key == "ndcg_10":
        return ndcg(grades, k=10, judged=judged) or 0.0
    if key == "mrr":
        return mrr([grades], k=DEPTH) or 0.0
    return recall_at_k(grades, k=15, relevant=len(judged)) or 0.0


def show(result: Mapping[str, Any]) -> str:
    """One table a collection, one row a system."""
    parts = []
    systems = list(dict.fromkeys(key.split("/")[0] for key in result if "/" in key))
    for name in [*result["sets"], "mean"]:
        facts = result["sets"].get(name)
        rows = []
        for system in systems:
            ends = [
                (result[f"{system}/{name}.{key}"], result[f"{system}/{name}.{key}.ci"]) for key in FIGURES
            ]
            cells = [f"{value:.1f} [{low:.1f}, {high:.1f}]" for value, (low, high) in ends]
            rows.append([system, *cells])
        title = f"{name}: {facts['documents']} documents, {facts['queries']} queries" if facts else name
        parts.append(f"{title}\n\n{table(['system', *FIGURES.values()], rows)}")
    return "\n\n".join(parts)

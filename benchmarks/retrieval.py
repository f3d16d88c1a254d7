"""How well passages are found: words, vectors, both, and each of them reranked.

    python benchmarks/retrieval.py --data DIR [--corpora DIR] [--json out.json] [--rerank MODEL]

Prints, and writes under flat keys, ``SYSTEM/SET.ndcg_10``, ``.mrr`` (to rank 100) and ``.recall_15`` in
percent, each with its 95% interval under ``KEY.ci`` (bootstrap of queries, the same draws for every system),
the difference to ``bm25`` with its interval under ``KEY.over_bm25``, and the mean over the collections. The
data are described in ``benchmarks/retrieval_sets.py``.

Systems
    bm25, dense (the embedder's cosine), rrf (fused by ranks, the default), rrf_even (both lists count the
    same), weighted (fused by scores); and the first 100 of each reranked, with ``--rerank``: the name or
    folder of a cross-encoder, or ``bundled``.
Passages
    A document is one passage, title included. Its embedding is the mean of its windows where it is long.
Gains are linear, the discount logarithmic, and the ideal order is that of everything judged, as in trec_eval.

A run can be stopped and started again: vectors, lists and reranker scores are kept in ``--work``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    # Run as a script. Its own folder must not stay on the path: its modules would hide others of their name.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
from numpy.typing import NDArray

from benchmarks import hardware
from benchmarks.resampling import RESAMPLES, draw, interval, ratio
from benchmarks.retrieval_sets import Collection, load_collections
from benchmarks.runs import Progress, write_json

__all__ = ["main"]

FIGURES = ("ndcg_10", "mrr", "recall_15")
FIRST_STAGE: dict[str, dict[str, Any]] = {
    "bm25": {"mode": "bm25"},
    "dense": {"mode": "dense"},
    "rrf": {"mode": "fusion", "fusion": "rrf", "dense_weight": 0.7},  # the default
    "rrf_even": {"mode": "fusion", "fusion": "rrf", "dense_weight": 0.5},
    "weighted": {"mode": "fusion", "fusion": "weighted", "dense_weight": 0.7},
}
DEPTH = 100
Values = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 0 if everything was measured, 2 if asked wrongly."""
    options = _parser().parse_args(arguments)
    try:
        collections = load_collections(
            [options.data, *options.corpora],
            only=[name for name in (options.only or "").split(",") if name],
            limit=options.limit,
            seed=options.seed,
        )
    except (OSError, ValueError) as error:
        print(f"retrieval.py: {error}", file=sys.stderr)
        return 2
    options.work.mkdir(parents=True, exist_ok=True)
    progress = Progress(len(collections) * (2 if options.rerank else 1))
    result: dict[str, Any] = {"hardware": hardware.describe(threads=options.threads), "sets": {}}
    result["settings"] = {
        "limit": options.limit,
        "seed": options.seed,
        "depth": DEPTH,
        "rerank": options.rerank,
        "arithmetic": "int8" if options.int8 else "float32",
        "resamples": RESAMPLES,
    }
    values: dict[str, dict[str, dict[str, Values]]] = {}
    for collection in collections:
        orders, facts = _first_stage(collection, options, progress)
        if options.rerank:
            orders |= _reranked(collection, orders, options, progress)
        values[collection.name] = {
            system: {figure: _figure(figure, ranked, collection) for figure in FIGURES}
            for system, ranked in orders.items()
        }
        result["sets"][collection.name] = {
            "kind": collection.kind,
            "documents": len(collection.documents),
            "queries": len(collection.queries),
            "queries_with_relevant": collection.total,
            "queries_without_relevant": collection.without,
            "digest": collection.digest,
            **facts,
        }
        result |= _summed_up(values, seed=options.seed)
        if options.json:  # after each collection: what is measured is not lost with a later one
            write_json(options.json, result)
    for line in _table(result, list(values)):
        print(line)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with retrieval/")
    parser.add_argument(
        "--corpora", type=Path, action="append", default=[], help="where else a corpus may lie"
    )
    parser.add_argument("--only", help="names of collections, with commas")
    parser.add_argument("--limit", type=int, default=0, help="most queries of a collection; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rerank", help="a cross-encoder, or 'bundled'; none by default: it takes long")
    parser.add_argument(
        "--int8", action="store_true", help="rerank in int8 arithmetic; refused where the processor has none"
    )
    parser.add_argument("--embedder", help="another embedder than the bundled one")
    parser.add_argument("--pooling", choices=["mean", "cls"], help="for --embedder")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", type=Path, default=Path("out/retrieval"), help="what survives a restart")
    return parser


def _first_stage(
    collection: Collection, options: argparse.Namespace, progress: Progress
) -> tuple[dict[str, list[list[str]]], dict[str, Any]]:
    """The ids that each system finds for each query, best first."""
    from surefoot.inference.embedding import Embedder
    from surefoot.retrieve import Index, whole

    embedder = Embedder(options.embedder, pooling=options.pooling, threads=options.threads)
    sources = [
        {"id": name, "title": title, "text": text} for name, title, text in collection.documents if text
    ]
    key = _digest(collection.digest, embedder.settings, FIRST_STAGE, DEPTH)
    path = options.work / f"{collection.name}.{key[:16]}.lists.json"
    if path.is_file():
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        progress.start(collection.name, 1)
        progress.note("kept from an earlier run")
        return kept["orders"], kept["facts"]
    progress.start(f"{collection.name}: documents", len(sources))
    began = time.perf_counter()
    index = Index.build(
        sources,
        embedder=embedder,
        chunker=whole,
        checkpoint=options.work / f"{collection.name}.{_digest(embedder.settings)[:16]}.journal",
        progress=lambda done, _: progress.update(done),
    )
    facts = {"seconds_to_index": time.perf_counter() - began, "dense": index.describe()["dense"]["kind"]}
    orders: dict[str, list[list[str]]] = {}
    for system, settings in FIRST_STAGE.items():
        orders[system] = [
            [hit.source_id for hit in index.search(query, DEPTH, **settings)]
            for _, query in collection.queries
        ]
    write_json(path, {"orders": orders, "facts": facts})
    return orders, facts


def _reranked(
    collection: Collection,
    orders: Mapping[str, list[list[str]]],
    options: argparse.Namespace,
    progress: Progress,
) -> dict[str, list[list[str]]]:
    """Every list in the order of the cross-encoder; a pair is scored once, whatever lists have it.

    A query that is too long for the model leaves its lists as they are, as it does in use.
    """
    from surefoot.models.manifest import resolve_model
    from surefoot.rerank import Reranker

    reranker = Reranker(
        None if options.rerank == "bundled" else options.rerank,
        threads=options.threads,
        arithmetic="int8" if options.int8 else "float32",
    )
    reranker.load()
    resolved = resolve_model(None if options.rerank == "bundled" else options.rerank, task="relevance")
    scored_by: tuple[object, ...] = (resolved.fingerprint, resolved.record.to_dict()["fusion"])
    if options.int8:
        scored_by += ("int8",)
    texts = {name: f"{title}\n{text}" if title else text for name, title, text in collection.documents}
    path = options.work / f"{collection.name}.{_digest(collection.digest, scored_by)[:16]}.scores.jsonl"
    known: dict[str, dict[str, float]] = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                break  # the line that was being written when the run was stopped
            known.setdefault(row["query"], {}).update(row["scores"])
    progress.start(f"{collection.name}: reranking", len(collection.queries))
    made: dict[str, list[list[str]]] = {f"{system}+rerank": [] for system in orders}
    with path.open("a", encoding="utf-8") as stream:
        for at, (number, query) in enumerate(collection.queries):
            wanted = dict.fromkeys(name for lists in orders.values() for name in lists[at])
            scores = known.setdefault(number, {})
            missing = [name for name in wanted if name not in scores]
            if missing:
                ranking = reranker.rerank(query, [texts[name] for name in missing], top_k=None)
                if options.int8 and ranking.model is not None and not ranking.model.endswith("(int8)"):
                    raise SystemExit("retrieval.py: this processor or model does not do int8 arithmetic")
                for item in ranking:
                    # What the reranker orders by: the logit, or what its manifest joins with it.
                    score = item.reranker_score if item.fused_score is None else item.fused_score
                    scores[missing[item.index]] = float("-inf") if score is None else score
                stream.write("\n" if not at and stream.tell() else "")
                plain = {name: scores[name] for name in missing if scores[name] > float("-inf")}
                stream.write(json.dumps({"query": number, "scores": plain}) + "\n")
                stream.flush()
            for system, lists in orders.items():
                made[f"{system}+rerank"].append(
                    sorted(lists[at], key=lambda name: -scores.get(name, float("-inf")))
                )
            progress.update(at + 1)
    return made


def _figure(figure: str, orders: Sequence[Sequence[str]], collection: Collection) -> Values:
    """The figure of every query, 0 to 1."""
    from surefoot.metrics import mrr, ndcg, recall_at_k

    values: list[float] = []
    for (number, _), order in zip(collection.queries, orders, strict=True):
        judged = collection.grades[number]
        grades = [judged.get(name, 0.0) for name in order]
        if figure == "ndcg_10":
            value = ndcg(grades, k=10, judged=list(judged.values()))
        elif figure == "mrr":
            value = mrr([grades], k=DEPTH)
        else:
            value = recall_at_k(grades, k=15, relevant=len(judged))
        values.append(0.0 if value is None else value)
    return np.array(values, dtype=np.float64)


def _summed_up(values: Mapping[str, Mapping[str, Mapping[str, Values]]], *, seed: int) -> dict[str, Any]:
    """Percentages with intervals, of each set and of the mean over the sets."""
    result: dict[str, Any] = {}
    resampled: dict[tuple[str, str], list[Values]] = {}
    exact: dict[tuple[str, str], list[float]] = {}
    for name, systems in values.items():
        count = len(next(iter(next(iter(systems.values())).values())))
        weights = draw([str(at) for at in range(count)], seed=seed, name=name)
        for system, figures in systems.items():
            for figure, each in figures.items():
                means = ratio(weights @ each, weights.sum(axis=1))
                resampled.setdefault((system, figure), []).append(means)
                exact.setdefault((system, figure), []).append(float(each.mean()))
                base = systems["bm25"][figure]
                result |= _keys(
                    f"{system}/{name}.{figure}",
                    float(each.mean()),
                    means,
                    float(base.mean()),
                    ratio(weights @ base, weights.sum(axis=1)),
                )
    for (system, figure), parts in resampled.items():
        if len(parts) == len(values):
            result |= _keys(
                f"{system}/mean.{figure}",
                float(np.mean(exact[system, figure])),
                np.mean(parts, axis=0),
                float(np.mean(exact["bm25", figure])),
                np.mean(resampled["bm25", figure], axis=0),
            )
    return result


def _keys(key: str, value: float, means: Values, base: float, base_means: Values) -> dict[str, Any]:
    return {
        key: round(100 * value, 2),
        f"{key}.ci": _percent(interval(means)),
        f"{key}.over_bm25": round(100 * (value - base), 2),
        f"{key}.over_bm25.ci": _percent(interval(means - base_means)),
    }


def _percent(ends: list[float] | None) -> list[float] | None:
    return None if ends is None else [round(100 * end, 2) for end in ends]


def _table(result: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Markdown, one row a system."""
    lines = []
    systems = list(dict.fromkeys(key.split("/")[0] for key in result if "/" in key))
    for name in [*names, "mean"]:
        facts = result["sets"].get(name)
        title = f"{name}: {facts['documents']} documents, {facts['queries']} queries" if facts else "mean"
        lines += ["", title, "", "| system | nDCG@10 | MRR | recall@15 |", "|---|---|---|---|"]
        for system in systems:
            cells = []
            for figure in FIGURES:
                ends = result[f"{system}/{name}.{figure}.ci"]
                shown = f" [{ends[0]:.1f}, {ends[1]:.1f}]" if ends else ""
                cells.append(f"{result[f'{system}/{name}.{figure}']:.1f}{shown}")
            lines.append(f"| {system} | {' | '.join(cells)} |")
    return lines


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())

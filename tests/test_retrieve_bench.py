"""The benchmarks of retrieval, on collections small enough to count by hand."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks import index_scale, retrieval
from benchmarks.retrieval_sets import load_collections
from benchmarks.runs import Progress

from surefoot import Reranker
from surefoot.inference import pairs as pairs_module
from surefoot.inference.processor import INT8, processor

FIXTURE = Path(__file__).parent / "fixtures" / "models" / "bert-embed"
MODEL = ["--embedder", str(FIXTURE), "--pooling", "mean", "--threads", "1"]


def lines(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path]:
    """A collection whose corpus lies elsewhere, and a pair file."""
    dev, train = tmp_path / "dev", tmp_path / "train"
    lines(
        train / "retrieval" / "pets.corpus.jsonl.gz",
        [
            {"pid": "1", "title": "", "text": "a dog ran along the river"},
            {"pid": "2", "title": "Dogs", "text": "two of them were fishing"},
            {"pid": "3", "title": None, "text": "the store opens on monday"},
            {"pid": "4", "title": "", "text": ""},
        ],
    )
    lines(
        dev / "retrieval" / "pets_dev.queries.jsonl.gz",
        [
            {"qid": "a", "query": "dogs by the river"},
            {"qid": "b", "query": "monday"},
            {"qid": "c", "query": "x"},
        ],
    )
    (dev / "retrieval" / "pets_dev.qrels.tsv").write_text("a\t2\t2\na\t1\t1\nb\t4\t1\nc\t3\t0\n")
    lines(
        dev / "retrieval" / "pairs.jsonl",
        [
            {"query": "when", "passage": "the store opens when it opens", "relevance": 1},
            {"query": "when", "passage": "a dog", "relevance": 0},
            {"query": "what", "passage": "a dog", "relevance": 0.5},
        ],
    )
    return dev, train


def measure(data: tuple[Path, Path], tmp_path: Path, *more: str) -> dict[str, Any]:
    out = tmp_path / "out.json"
    code = retrieval.main(
        [
            *("--data", str(data[0]), "--corpora", str(data[1]), "--json", str(out)),
            *("--work", str(tmp_path / "work"), *MODEL, *more),
        ]
    )
    assert code == 0
    parsed: dict[str, Any] = json.loads(out.read_text())
    return parsed


def test_figures_by_hand(data: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = measure(data, tmp_path)
    # "dogs by the river" finds 1 (dog, river) before 2 (dog); "monday" finds 3, and the relevant 4 is empty
    query = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    assert result["bm25/pets_dev.ndcg_10"] == pytest.approx(100 * query / 2, abs=0.01)
    assert result["bm25/pets_dev.mrr"] == 50.0
    assert result["bm25/pets_dev.recall_15"] == 50.0
    low, high = result["bm25/pets_dev.ndcg_10.ci"]
    assert low == 0 < high <= 100 * query + 0.01
    assert result["bm25/pets_dev.ndcg_10.over_bm25"] == 0
    assert result["bm25/pairs.ndcg_10"] == 100.0
    assert result["bm25/mean.mrr"] == 75.0
    for system in ("dense", "rrf", "weighted"):
        assert 0 <= result[f"{system}/mean.ndcg_10"] <= 100
    facts = result["sets"]["pets_dev"]
    assert (facts["documents"], facts["queries"], facts["queries_without_relevant"]) == (4, 2, 1)
    assert "| bm25 | " in capsys.readouterr().out


def test_every_list_is_reranked_in_the_order_of_the_bundled_reranker(
    data: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = measure(data, tmp_path, "--rerank", "bundled")
    for system in ("bm25", "dense", "rrf", "weighted"):
        for name in ("pets_dev", "pairs", "mean"):
            low, high = result[f"{system}+rerank/{name}.ndcg_10.ci"]
            assert low <= result[f"{system}+rerank/{name}.ndcg_10"] <= high
            assert f"{system}+rerank/{name}.ndcg_10.over_bm25.ci" in result
    (collection,) = load_collections(data, only=["pets_dev"], limit=0, seed=0)
    texts = {name: f"{title}\n{text}" if title else text for name, title, text in collection.documents}
    options = retrieval._parser().parse_args(
        ["--data", str(data[0]), "--work", str(tmp_path / "again"), "--rerank", "bundled", "--threads", "1"]
    )
    options.work.mkdir()
    lists = {"all": [["1", "2", "3"] for _ in collection.queries]}
    made = retrieval._reranked(collection, lists, options, Progress(1))
    for (_, query), order in zip(collection.queries, made["all+rerank"], strict=True):
        ranking = Reranker(threads=1).rerank(query, [texts[name] for name in ("1", "2", "3")], top_k=None)
        assert order == ["123"[item.index] for item in ranking]

    number = collection.queries[0][0]
    long = replace(collection, name="long", queries=[(number, "dogs by the river " * 100)])
    kept = retrieval._reranked(long, {"all": [["2", "3", "1"]]}, options, Progress(1))
    assert kept["all+rerank"] == [["2", "3", "1"]], (
        "a query that the model cannot read leaves the list as it is"
    )

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing has to be scored")

    monkeypatch.setattr("surefoot.rerank.Reranker.rerank", refuse)
    assert retrieval._reranked(collection, lists, options, Progress(1)) == made


def test_int8_scores_are_kept_apart_and_never_taken_from_float32(
    data: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(data, tmp_path, "--rerank", "bundled")
    kept = {path: path.read_bytes() for path in (tmp_path / "work").glob("*.scores.jsonl")}
    assert kept

    def on(feature: str) -> None:
        """As if a process began on such a processor."""
        monkeypatch.setattr(pairs_module, "processor", lambda: ("some processor", [feature]))
        monkeypatch.setattr("surefoot.rerank.reranker._models", {})

    on("avx2")
    with pytest.raises(SystemExit, match="does not do int8"):
        measure(data, tmp_path, "--rerank", "bundled", "--int8")
    on("avx-vnni")
    if not INT8 & set(processor()[1]):
        monkeypatch.setattr(pairs_module, "_LARGEST_GAP", float("inf"))
    measure(data, tmp_path, "--rerank", "bundled", "--int8")
    fresh = set((tmp_path / "work").glob("*.scores.jsonl")) - set(kept)
    assert len(fresh) == len(kept)
    assert {path: path.read_bytes() for path in kept} == kept
    assert not {path.read_bytes() for path in fresh} & set(kept.values())


def test_a_second_run_takes_what_there_is(
    data: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measure(data, tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing has to be embedded")

    monkeypatch.setattr("surefoot.inference.embedding.Embedder.embed", refuse)
    again = measure(data, tmp_path)
    assert {key: value for key, value in again.items() if "/" in key} == {
        key: value for key, value in first.items() if "/" in key
    }


def test_a_limit_draws_the_same_queries(data: tuple[Path, Path]) -> None:
    drawn = [load_collections(data, only=["pets_dev"], limit=1, seed=3)[0].queries for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 1


def test_wrong_data_are_named(data: tuple[Path, Path], tmp_path: Path) -> None:
    assert retrieval.main(["--data", str(data[0]), "--work", str(tmp_path / "w")]) == 2  # no corpus
    assert retrieval.main(["--data", str(tmp_path), "--work", str(tmp_path / "w")]) == 2
    with pytest.raises(ValueError, match="no collection other"):
        load_collections(data, only=["other"], limit=0, seed=0)
    with (data[0] / "retrieval" / "pets_dev.qrels.tsv").open("a") as stream:
        stream.write("a\tnowhere\t1\n")
    with pytest.raises(ValueError, match="nowhere"):
        load_collections(data, only=["pets_dev"], limit=0, seed=0)


def test_the_scale_of_a_small_index(data: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "scale.json"
    arguments = ["--data", str(data[0]), "--corpora", str(data[1]), "--passages", "300", "--embedded", "20"]
    assert index_scale.main([*arguments, "--json", str(out), *MODEL]) == 0
    result = json.loads(out.read_text())
    assert result["passages"] == 300
    assert result["distinct_passages"] == 5
    assert result["vectors"] == "static"
    assert 0.5 < result["hnsw.recall_10"] <= 1
    assert result["rss_mb"]["searched"] >= result["rss_mb"]["with_embedder"] > 0
    for name in ("bm25.search_ms", "flat.search_ms", "hnsw.search_ms", "search_with_embedding_ms"):
        assert 0 < result[name]["p50"] <= result[name]["p95"]

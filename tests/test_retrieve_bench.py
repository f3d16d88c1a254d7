"""The benchmarks of retrieval, on collections small enough to count by hand."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks import retrieval
from benchmarks.__main__ import main
from benchmarks.retrieval_sets import load_collections

from surefoot import Reranker
from surefoot.inference import pairs as pairs_module
from surefoot.inference.embedding import Embedder

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


def measure(data: tuple[Path, Path], tmp_path: Path, *more: str, name: str = "retrieval") -> dict[str, Any]:
    out = tmp_path / "out.json"
    folders = ["--data", str(data[0]), "--corpora", str(data[1]), "--only", ""]
    assert main([name, *folders, "--json", str(out), "--work", str(tmp_path / "work"), *MODEL, *more]) == 0
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
    assert (facts["documents"], facts["queries"], facts["queries_with_relevant"]) == (4, 2, 2)
    assert "| bm25 | " in capsys.readouterr().out


def test_every_list_is_reranked_in_the_order_of_the_bundled_reranker(
    data: tuple[Path, Path], tmp_path: Path
) -> None:
    result = measure(data, tmp_path, name="reranked")
    for system in ("bm25", "dense", "rrf", "weighted"):
        for name in ("pets_dev", "pairs", "mean"):
            low, high = result[f"{system}+rerank/{name}.ndcg_10.ci"]
            assert low <= result[f"{system}+rerank/{name}.ndcg_10"] <= high
            assert f"{system}+rerank/{name}.ndcg_10.over_bm25.ci" in result
    (collection,) = load_collections(data, only=["pets_dev"], limit=0, seed=0)
    texts = {name: f"{title}\n{text}" if title else text for name, title, text in collection.documents}
    reranker = Reranker(threads=1)
    lists = {"one": [["1", "2", "3"]] * 2, "other": [["3", "1"]] * 2}
    made = retrieval.reranked(collection, lists, reranker)
    for (_, query), one, other in zip(
        collection.queries, made["one+rerank"], made["other+rerank"], strict=True
    ):
        ranking = reranker.rerank(query, [texts[name] for name in ("1", "2", "3")], top_k=None)
        assert one == ["123"[item.index] for item in ranking]
        assert other == [name for name in one if name != "2"]

    number = collection.queries[0][0]
    long = replace(collection, queries=[(number, "dogs by the river " * 100)])
    kept = retrieval.reranked(long, {"all": [["2", "3", "1"]]}, reranker)
    assert kept["all+rerank"] == [["2", "3", "1"]], "a query that is too long leaves the list as it is"


def test_int8_is_refused_where_it_is_not_done(
    data: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(pairs_module, "processor", lambda: ("some processor", ["avx2"]))
    monkeypatch.setattr("surefoot.rerank.reranker._models", {})
    arguments = ["--data", str(data[0]), "--corpora", str(data[1]), "--only", "", "--work", str(tmp_path)]
    assert main(["reranked-int8", *arguments, *MODEL, "--json", str(tmp_path / "out.json")]) == 2
    assert "does not do int8" in capsys.readouterr().err


def test_a_second_run_takes_what_there_is(
    data: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measure(data, tmp_path)

    embed = Embedder.embed

    def queries_only(self: Embedder, texts: Any, *, query: bool = False, **more: Any) -> Any:
        assert query, "no document has to be embedded again"
        return embed(self, texts, query=query, **more)

    monkeypatch.setattr(Embedder, "embed", queries_only)
    again = measure(data, tmp_path)
    assert {key: value for key, value in again.items() if "/" in key} == {
        key: value for key, value in first.items() if "/" in key
    }


def test_a_limit_draws_the_same_queries(data: tuple[Path, Path]) -> None:
    drawn = [load_collections(data, only=["pets_dev"], limit=1, seed=3)[0].queries for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 1


def test_wrong_data_are_named(data: tuple[Path, Path], tmp_path: Path) -> None:
    out = ["--json", str(tmp_path / "out.json"), "--work", str(tmp_path / "w")]
    assert main(["retrieval", "--data", str(data[0]), *out]) == 2  # no corpus
    assert main(["retrieval", "--data", str(tmp_path), *out]) == 2
    with pytest.raises(ValueError, match="no collection other"):
        load_collections(data, only=["other"], limit=0, seed=0)
    with (data[0] / "retrieval" / "pets_dev.qrels.tsv").open("a") as stream:
        stream.write("a\tnowhere\t1\n")
    with pytest.raises(ValueError, match="nowhere"):
        load_collections(data, only=["pets_dev"], limit=0, seed=0)


def test_the_scale_of_a_small_index(data: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "index.json"
    arguments = ["--data", str(data[0]), "--corpora", str(data[1]), "--passages", "300", "--embedded", "20"]
    assert main(["index", *arguments, "--json", str(out), *MODEL]) == 0
    result = json.loads(out.read_text())
    assert result["passages"] == 300
    assert result["distinct_passages"] == 5
    assert result["vectors"] == "static"
    assert 0.5 < result["hnsw.recall_10"] <= 1
    assert result["rss_mb"]["searched"] >= result["rss_mb"]["with_embedder"] > 0
    for name in ("bm25.search_ms", "flat.search_ms", "hnsw.search_ms", "search_with_embedding_ms"):
        assert 0 < result[name]["p50"] <= result[name]["p95"]

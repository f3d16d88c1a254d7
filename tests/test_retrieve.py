"""The index: what is found, what an update changes, what a filter lets through."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Source
from surefoot.errors import ConfigurationError, InputError
from surefoot.inference.embedding import Embedder
from surefoot.retrieve import Index, PassageChunker, SourceInfo, whole
from surefoot.retrieve.dense import DenseStore

FIXTURE = Path(__file__).parent / "fixtures" / "models" / "bert-embed"
DOCUMENTS = [
    {"id": "refund", "title": "Refunds", "text": "Our refund policy allows returns within thirty days."},
    {
        "id": "hours",
        "text": "The store opens at nine on Monday and closes at six.",
        "lang": "en",
        "year": 2020,
    },
    {"id": "lyon", "text": "Elle est née à Lyon en 1984.", "lang": "fr", "tags": ["life", "city"]},
    {
        "id": "dog",
        "text": "A dog ran along the river while two men were fishing.",
        "lang": "en",
        "year": 2021,
    },
]


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(FIXTURE, pooling="mean", threads=1)


@pytest.fixture
def build(embedder: Embedder) -> Callable[..., Index]:
    return lambda sources=DOCUMENTS, **options: Index.build(sources, embedder=embedder, **options)


class Counting(Embedder):
    """Counts what it embeds; everything else is the real thing."""

    def __init__(self) -> None:
        super().__init__(FIXTURE, pooling="mean", threads=1)
        self.passages: list[str] = []
        self.fail_at: int | None = None

    def embed(self, texts: Any, *, query: bool = False, progress: Any = None) -> Any:
        texts = list(texts)
        if not query:
            if self.fail_at is not None and len(self.passages) >= self.fail_at:
                raise KeyboardInterrupt
            self.passages.extend(texts)
        return super().embed(texts, query=query, progress=progress)


# --- searching -----------------------------------------------------------------------------------


def test_by_words(build: Callable[..., Index]) -> None:
    hits = build().search("returned refunds", mode="bm25")
    assert [hit.source_id for hit in hits] == ["refund"]  # stemmed; and nothing that shares no word
    hit = hits[0]
    assert hit.bm25 is not None
    assert (hit.rank, hit.bm25.rank, hit.dense) == (1, 1, None)
    assert hit.score == hit.bm25.score > 0


def test_by_vector_is_the_cosine(build: Callable[..., Index], embedder: Embedder) -> None:
    index = build()
    query = "when does the store open"
    expected = {
        item["id"]: float(
            embedder.embed([f"{item['title']}\n{item['text']}" if "title" in item else item["text"]])[0]
            @ embedder.embed([query])[0]
        )
        for item in DOCUMENTS
    }
    hits = index.search(query, mode="dense")
    assert [hit.source_id for hit in hits] == sorted(expected, key=lambda name: -expected[name])
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.source_id], abs=1e-5)


def test_fusion_shows_both_places(build: Callable[..., Index]) -> None:
    hits = build().search("refund policy", k=4)
    assert len(hits) == 4
    best = next(hit for hit in hits if hit.source_id == "refund")
    assert best.dense is not None
    assert best.bm25 is not None
    assert best.score == pytest.approx(0.7 / (60 + best.dense.rank) + 0.3 / (60 + best.bm25.rank))
    assert [hit.rank for hit in hits] == [1, 2, 3, 4]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    only = build().search("refund policy", k=4, dense_weight=0.0)
    assert [hit.source_id for hit in only] == ["refund"]


def test_weighted_fusion_keeps_a_lone_document(build: Callable[..., Index]) -> None:
    """Scaling between the least and the best score of a list would make it 0."""
    hits = build(DOCUMENTS[:1]).search("refund", fusion="weighted")
    assert [hit.score for hit in hits] == [pytest.approx(1.0)]


def test_default_depth_is_fifteen(build: Callable[..., Index]) -> None:
    index = build([f"store number {n}" for n in range(40)])
    assert len(index.search("store")) == 15
    assert len(index.search("store", 40)) == 40
    assert len(index.search("store", 1000)) == 40


@pytest.mark.parametrize("query", ["", " \n\t"])
def test_an_empty_query_finds_nothing(build: Callable[..., Index], query: str) -> None:
    assert build().search(query) == []


@pytest.mark.parametrize("sources", [[], [""], [None, "  "]])
def test_an_empty_index(
    build: Callable[..., Index], sources: list[Any], tmp_path: Path, embedder: Any
) -> None:
    index = build(sources)
    assert len(index) == 0
    assert len(index.source_ids) == len(sources)
    assert index.search("anything") == []
    index.save(tmp_path / "index")
    again = Index.load(tmp_path / "index", embedder=embedder)
    assert again.search("anything") == []
    assert again.source_ids == index.source_ids
    again.add(["a dog"])
    assert len(again.search("dog")) == 1


def test_a_query_word_that_nothing_has(build: Callable[..., Index]) -> None:
    assert build().search("zzzz qqqq", mode="bm25") == []
    assert len(build().search("zzzz qqqq")) == 4  # by vector


@pytest.mark.parametrize(
    "options",
    [
        {"k": 0},
        {"k": True},
        {"k": 1.5},
        {"mode": "magic"},
        {"fusion": "sum"},
        {"dense_weight": 1.1},
        {"dense_weight": float("nan")},
        {"depth": 0},
    ],
)
def test_options_out_of_range(build: Callable[..., Index], options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        build().search("dog", **options)


def test_a_query_must_be_a_string(build: Callable[..., Index]) -> None:
    with pytest.raises(InputError, match="string"):
        build().search(None)  # type: ignore[arg-type]


def test_hits_are_plain_json(build: Callable[..., Index]) -> None:
    hit = build().search("lyon \ud800")[0]
    parsed = json.loads(hit.to_json())
    assert parsed == hit.to_dict()
    for name in ("rank", "start", "end"):
        assert type(getattr(hit, name)) is int
    assert type(hit.score) is float


def test_a_hit_as_a_source_points_into_the_document(build: Callable[..., Index]) -> None:
    text = "Été à Lyon. " * 80 + "The refund policy allows returns."
    index = build([{"id": "long", "text": text, "page": 3}])
    hit = index.search("refund policy returns", mode="bm25")[0]
    source = hit.to_source()
    assert source.text == text[hit.start : hit.end]
    assert source.metadata == {"page": 3, "source_id": "long", "start": hit.start, "end": hit.end}
    assert hit.id == source.id == f"long@{hit.start}-{hit.end}"
    found = source.text.index("refund")
    assert text[hit.start + found :].startswith("refund")


@settings(max_examples=25)
@given(
    st.lists(st.text(st.characters(exclude_categories=[]), max_size=60), max_size=5),
    st.text(st.characters(exclude_categories=[]), max_size=20),
)
def test_any_text_goes_in_and_comes_out_as_it_was(texts: list[str], query: str) -> None:
    import tempfile

    embedder = Embedder(FIXTURE, pooling="mean", threads=1)
    index = Index.build(texts, embedder=embedder)
    assert [index.source(name).text for name in index.source_ids] == texts
    with tempfile.TemporaryDirectory() as folder:
        index.save(folder)
        again = Index.load(folder, embedder=embedder)
        assert [again.source(name).text for name in again.source_ids] == texts
        hits = index.search(query)
        assert again.search(query) == hits
        for hit in hits:
            assert hit.text == index.source(hit.source_id).text[hit.start : hit.end]


def test_searches_from_many_threads_while_it_changes(build: Callable[..., Index]) -> None:
    index = build()
    failures: list[object] = []

    def search() -> None:
        try:
            for _ in range(20):
                hits = index.search("store dog refund")
                if not hits or any(hit.text not in index_texts for hit in hits):
                    failures.append(hits)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    index_texts = {item["text"] for item in DOCUMENTS} | {f"a dog {n}" for n in range(10)}
    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(10):
        index.add([{"id": f"new{n}", "text": f"a dog {n}"}])
        index.remove([f"new{n}"])
    for thread in threads:
        thread.join()
    assert failures == []


# --- filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"lang": "en"}, {"hours", "dog"}),
        ({"lang": ["fr", "de"]}, {"lyon"}),
        ({"lang": "en", "year": 2021}, {"dog"}),
        ({"tags": "city"}, {"lyon"}),
        ({"id": ["dog", "refund"]}, {"dog", "refund"}),
        ({"title": "Refunds"}, {"refund"}),
        ({"missing": 1}, set()),
        ({}, {"refund", "hours", "lyon", "dog"}),
        (lambda info: info.metadata.get("year", 0) > 2020, {"dog"}),
        (lambda info: isinstance(info, SourceInfo) and info.characters > 50, {"hours", "dog", "refund"}),
    ],
)
@pytest.mark.parametrize("dense", ["flat", "hnsw"])
def test_filters(build: Callable[..., Index], wanted: Any, expected: set[str], dense: str) -> None:
    index = build(dense=dense)
    assert {hit.source_id for hit in index.search("store dog lyon refund", filter=wanted)} == expected


def test_a_filter_comes_before_the_ranking(build: Callable[..., Index]) -> None:
    """k passages are found though hundreds of better ones are filtered away."""
    many = [{"id": f"a{n}", "text": f"refund policy {n}", "keep": False} for n in range(300)]
    few = [{"id": f"b{n}", "text": f"policy {n} of a dog", "keep": True} for n in range(5)]
    hits = build([*many, *few]).search("refund policy", 5, filter={"keep": True}, depth=5)
    assert {hit.source_id for hit in hits} == {item["id"] for item in few}


# --- updates -------------------------------------------------------------------------------------


def test_adding_is_the_same_as_building_at_once(build: Callable[..., Index]) -> None:
    at_once = build()
    grown = build(DOCUMENTS[:2])
    grown.search("store")  # so that scores exist that the update has to change
    grown.add(DOCUMENTS[2:])
    for mode in ("fusion", "dense", "bm25"):
        assert grown.search("store dog refund lyon", mode=mode) == at_once.search(
            "store dog refund lyon", mode=mode
        )


def test_removing_is_the_same_as_never_adding(build: Callable[..., Index]) -> None:
    index = build([*DOCUMENTS, {"id": "gone", "text": "refund refund refund dog"}])
    assert index.remove(["gone"]).removed == 1
    assert "gone" not in index.source_ids
    for mode in ("fusion", "dense", "bm25"):
        assert index.search("refund dog", mode=mode) == build().search("refund dog", mode=mode)
    with pytest.raises(InputError, match="gone"):
        index.remove(["dog", "gone"])
    assert "dog" in index.source_ids  # nothing was taken out
    assert index.remove(["gone"], missing_ok=True).removed == 0
    with pytest.raises(InputError, match="list of ids"):
        index.remove("dog")
    with pytest.raises(InputError, match="gone"):
        index.source("gone")


def test_the_same_again_is_not_embedded_again() -> None:
    embedder = Counting()
    index = Index.build(DOCUMENTS, embedder=embedder)
    before = len(embedder.passages)
    changes = index.add([*DOCUMENTS[:3], {**DOCUMENTS[3], "year": 1999}])
    assert (changes.unchanged, changes.added, changes.passages) == (4, 0, 0)
    assert len(embedder.passages) == before
    assert index.source("dog").metadata["year"] == 1999
    assert [hit.source_id for hit in index.search("dog", filter={"year": 1999})] == ["dog"]


def test_of_a_changed_document_only_what_changed_is_embedded() -> None:
    embedder = Counting()
    paragraphs = [f"Paragraph {n}. " + "The store opens on monday. " * 3 for n in range(6)]
    chunker = PassageChunker(size=100)
    index = Index.build([{"id": "a", "text": "\n\n".join(paragraphs)}], embedder=embedder, chunker=chunker)
    before = len(embedder.passages)
    assert before >= 6
    paragraphs[2] = "Something else about a dog."
    changes = index.add([{"id": "a", "text": "\n\n".join(paragraphs)}])
    assert (changes.replaced, changes.added) == (1, 0)
    assert 1 <= changes.embedded == len(embedder.passages) - before <= 3
    assert changes.passages > changes.embedded
    assert index.search("dog", mode="bm25")[0].text == paragraphs[2]
    anew = Index.build([{"id": "a", "text": "\n\n".join(paragraphs)}], embedder=embedder, chunker=chunker)
    assert index.search("monday dog") == anew.search("monday dog")


def test_unnamed_sources_never_replace_each_other(build: Callable[..., Index]) -> None:
    index = build(["one dog", {"text": "two dogs"}])
    index.add(["three dogs", {"id": "4", "text": "four"}, "five"])
    index.add(["six"])
    assert len(set(index.source_ids)) == 6
    assert sorted(index.source(name).text for name in index.source_ids) == sorted(
        ["one dog", "two dogs", "three dogs", "four", "five", "six"]
    )


def test_an_id_twice_in_one_call(build: Callable[..., Index]) -> None:
    assert build([{"id": "a", "text": "x y"}, {"id": "a", "text": "z w"}]).source_ids == ["a", "a#2"]


def test_a_failed_update_changes_nothing() -> None:
    embedder = Counting()
    index = Index.build(DOCUMENTS, embedder=embedder)
    expected = index.search("dog refund")
    embedder.fail_at = 0
    with pytest.raises(KeyboardInterrupt):
        index.add([{"id": "dog", "text": "changed"}, "new"])
    assert index.search("dog refund") == expected
    assert index.source_ids == [item["id"] for item in DOCUMENTS]


def test_inputs_are_not_changed_and_not_kept(build: Callable[..., Index]) -> None:
    metadata = {"tags": ["a"]}
    source = Source("s", "a dog", None, metadata)
    index = build([source])
    assert metadata == {"tags": ["a"]}
    metadata["tags"].append("b")
    assert index.source("s").metadata == {"tags": ["a"]}


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_metadata_must_be_json(build: Callable[..., Index], value: object) -> None:
    with pytest.raises(InputError, match="'s'"):
        build([{"id": "s", "text": "a dog", "value": value}])


@pytest.mark.parametrize("sources", ["text", {"text": "a"}, None, [1]])
def test_sources_of_the_wrong_type(build: Callable[..., Index], sources: object) -> None:
    with pytest.raises(InputError):
        build(sources)


def test_a_generator_will_do(build: Callable[..., Index]) -> None:
    assert len(build(text for text in ("a dog", "a store"))) == 2


def test_progress_counts_passages(build: Callable[..., Index]) -> None:
    seen: list[tuple[int, int]] = []
    build([f"store {n}" for n in range(600)], progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 600)
    assert seen[-1] == (600, 600)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) >= 3


def test_describe_says_what_is_searched(build: Callable[..., Index]) -> None:
    index = build()
    index.remove(["dog"])
    said = index.describe()
    json.dumps(said, allow_nan=False)
    assert (said["sources"], said["passages"], said["removed_passages"]) == (3, 3, 1)
    assert said["dense"]["kind"] == "flat"
    assert build(dense="hnsw").describe()["dense"]["kind"] == "hnsw"
    assert "walk" not in said["dense"]["why"]
    with pytest.raises(ConfigurationError, match="dense"):
        build(dense="tree")


def test_a_chunker_of_the_callers(build: Callable[..., Index]) -> None:
    index = build(["first second"], chunker=lambda source: [(0, 5), (6, 12)])
    assert {hit.text for hit in index.search("first second")} == {"first", "second"}
    assert {hit.text for hit in build(["first second"], chunker=whole).search("first")} == {"first second"}
    for bad in ([(0, 100)], [(3, 1)], ["text"], [(0, 1.5)]):
        with pytest.raises(InputError, match="chunker"):
            build(["first second"], chunker=lambda source, bad=bad: bad)


# --- the vectors by themselves -------------------------------------------------------------------


def unit(count: int, width: int = 24, seed: int = 0) -> Any:
    made = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_the_graph_takes_over_beyond_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("surefoot.retrieve.dense.FLAT_LIMIT", 50)
    vectors = unit(200)
    store = DenseStore(24)
    store.add(vectors[:50])
    assert store.kind == "flat"
    store.add(vectors[50:])
    assert store.kind == "hnsw"
    assert np.array_equal(store.vectors(), vectors)
    exact = np.argsort(-(vectors @ vectors[7]), kind="stable")[:10]
    assert [row for row, _ in store.search(vectors[7], 10, None)] == exact.tolist()
    allowed = np.zeros(200, dtype=np.bool_)
    allowed[[3, 150]] = True
    assert {row for row, _ in store.search(vectors[7], 10, allowed)} == {3, 150}
    allowed[20:120] = True
    assert all(allowed[row] for row, _ in store.search(vectors[7], 10, allowed))
    store.save(tmp_path / "vectors")
    for mapped in (True, False):
        again = DenseStore.load(tmp_path / "vectors", 24, mapped=mapped)
        assert (again.kind, again.mapped) == ("hnsw", mapped)
        assert again.search(vectors[7], 10, None) == store.search(vectors[7], 10, None)
        again.add(vectors[:1])
        assert len(again) == 201
        assert not again.mapped
    store.keep(np.arange(40))
    assert store.kind == "flat"
    assert np.array_equal(store.vectors(), vectors[:40])


def test_adding_to_a_graph_does_not_build_it_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded or not: building takes a minute for 100,000 vectors."""
    vectors = unit(301)
    store = DenseStore(24, kind="hnsw")
    store.add(vectors[:300])
    store.save(tmp_path / "vectors")
    store.add(vectors[300:])
    again = DenseStore.load(tmp_path / "vectors", 24, kind="hnsw", mapped=True)

    def refuse(*_: object) -> None:
        raise AssertionError("built anew")

    monkeypatch.setattr(DenseStore, "_rebuild", refuse)
    again.add(vectors[300:])
    assert np.array_equal(again.vectors(), vectors)
    (tmp_path / "vectors").unlink()
    assert again.search(vectors[7], 10, None)[0][0] == store.search(vectors[7], 10, None)[0][0] == 7
    assert again.search(vectors[300], 1, None)[0][0] == 300


def test_the_same_vectors_make_the_same_graph(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        store = DenseStore(24, kind="hnsw")
        store.add(unit(300))
        store.save(tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]

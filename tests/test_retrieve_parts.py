"""Chunking, words and BM25, fusion: the parts of retrieval that need no model."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections import Counter
from typing import Any

import numpy as np
import pytest
import semantic_text_splitter
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import ConfigurationError
from surefoot.retrieve import PassageChunker, reciprocal_rank, weighted_scores, whole
from surefoot.retrieve.chunking import describe_chunker, restore_chunker, spans_of
from surefoot.retrieve.lexical import LexicalStore, words
from surefoot.schema import Source, Span

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=3000)


def cut(text: str, **options: Any) -> list[str]:
    source = Source("s", text)
    return [span.of(text) for span in spans_of(source, PassageChunker(**options))]


# --- chunking ------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(ANY_TEXT, st.integers(50, 300), st.booleans())
def test_every_character_that_is_no_space_is_in_a_passage(text: str, size: int, markdown: bool) -> None:
    """Positions are in code points of the original, for any text, and nothing falls between two passages."""
    spans = spans_of(Source("s", text), PassageChunker(size=size, markdown=markdown))
    covered = set()
    for span in spans:
        assert len(span) <= size
        covered.update(range(span.start, span.end))
    assert [span.start for span in spans] == sorted(span.start for span in spans)
    # what the splitter trims is white space as Unicode counts it, and one or two invisible marks
    missing = {text[at] for at in range(len(text)) if at not in covered}
    assert not any(character.isalnum() for character in missing)


def test_positions_behind_characters_of_many_bytes() -> None:
    text = "Größe 👩‍👩‍👧 naïve \ud800 日本語。\n\n" * 30 + "The refund policy allows returns."
    last = spans_of(Source("s", text), PassageChunker(size=100))[-1]
    assert last.of(text).endswith("The refund policy allows returns.")
    assert last.end == len(text)


def test_passages_end_where_sentences_end() -> None:
    sentences = [f"Sentence number {n} says something about the weather." for n in range(40)]
    passages = cut(" ".join(sentences), size=200)
    assert len(passages) > 8
    assert all(passage.endswith("weather.") for passage in passages)


def test_a_heading_starts_a_passage() -> None:
    text = "\n\n".join(f"# Part {n}\n\n" + f"Words about part {n}. " * 8 for n in range(5))
    assert all(passage.startswith("# Part") for passage in cut(text, size=250))


def test_overlap_repeats_the_end_of_the_passage_before() -> None:
    text = " ".join(f"Sentence {n} is here." for n in range(100))
    spans = spans_of(Source("s", text), PassageChunker(size=200, overlap=60))
    assert any(after.start < before.end for before, after in itertools.pairwise(spans))
    apart = spans_of(Source("s", text), PassageChunker(size=200))
    assert all(after.start >= before.end for before, after in itertools.pairwise(apart))


def test_chinese_passages_are_shorter() -> None:
    """A character of Chinese is a token or two, so that 800 of them would be several windows of the model."""
    longest = max(len(passage) for passage in cut("今天天气很好。" * 1000, size=600))
    assert longest <= 200


@pytest.mark.parametrize(
    "unit", ["x", "日", " ", "\n", "a ", "\0", "👩\u200d", "> ", "[", "| a ", "# a\n", "a\u0301", "**", "A. "]
)
def test_the_splitter_never_sees_a_long_text(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time grows with the square of a text without boundaries: a megabyte takes minutes."""
    seen: list[int] = []
    real = semantic_text_splitter.MarkdownSplitter

    class Watched:
        def __init__(self, size: int, overlap: int) -> None:
            self.splitter = real(size, overlap=overlap)

        def chunk_indices(self, text: str) -> list[tuple[int, str]]:
            seen.append(len(text.encode("utf-8")))
            return list(self.splitter.chunk_indices(text))

    monkeypatch.setattr(semantic_text_splitter, "MarkdownSplitter", Watched)
    text = unit * (60_000 // len(unit))
    passages = cut(text)
    assert max(seen) <= 10_010
    assert len(seen) < 40
    assert all(passage in text for passage in passages[:3])


def test_sizes_are_checked() -> None:
    for options in ({"size": 49}, {"size": 10_001}, {"overlap": -1}, {"size": 100, "overlap": 51}):
        with pytest.raises(ConfigurationError):
            PassageChunker(**options)


def test_the_record_of_a_chunker_restores_it() -> None:
    for chunker in (PassageChunker(size=123, overlap=7, markdown=False), whole):
        assert restore_chunker(describe_chunker(chunker)) == chunker
    assert restore_chunker(describe_chunker(lambda source: [])) is None
    assert list(whole(Source("s", "abc"))) == [Span(0, 3)]


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Returned REFUNDS", ["return", "refund"]),
        ("the store", ["store"]),
        ("to be or not to be", ["to", "be", "or", "not", "to", "be"]),  # nothing else to go by
        ("Größe GRÖSSE", ["grösse", "grösse"]),
        ("Ｆｕｌｌ ①", ["full", "1"]),
        ("section 4.4(2) of COVID-19", ["section", "4", "4", "2", "covid", "19"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("第3章", ["第", "3", "章"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("한국어 문서", ["한국어", "문서"]),
        ("", []),
        ("\ud800 \0", []),
        ("... --- !!!", []),
        ("x" * 1000, ["x" * 100]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_many_marks_on_one_character(monkeypatch: pytest.MonkeyPatch) -> None:
    """Normalising them takes the square of their number: a megabyte takes hours."""
    seen: list[int] = []
    real = unicodedata.normalize

    def watched(form: Any, text: str) -> str:
        runs = "".join("x" if unicodedata.combining(character) else " " for character in text).split()
        seen.append(max(map(len, runs), default=0))
        return real(form, text)

    monkeypatch.setattr("surefoot.retrieve.lexical.unicodedata.normalize", watched)
    assert words("Café naïve") == ["café", "naïv"]
    assert words("x" + "\u0301\u0316" * 5_000 + " dog")[-1] == "dog"
    assert 0 < max(seen) <= 30


@given(st.text(st.characters(exclude_categories=[]), max_size=300))
def test_words_of_any_text(text: str) -> None:
    assert all(word and len(word) <= 100 for word in words(text))


# --- BM25 ----------------------------------------------------------------------------------------

PASSAGES = [
    "refund policy returns within thirty days",
    "the store opens at nine and the store closes at six",
    "a dog and another dog by the river",
    "refund of a dog",
    "",
    "returns returns returns policy of the store for refund days river nine six",
]


def store_of(passages: list[str]) -> LexicalStore:
    store = LexicalStore()
    store.add(passages)
    return store


def by_hand(passages: list[str], query: str) -> list[float]:
    """BM25 as Lucene counts it, straight from the formula."""
    documents = [Counter(words(passage)) for passage in passages]
    mean = sum(map(sum, (document.values() for document in documents))) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for word in words(query):
            having = sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            count = document[word]
            score += idf * count / (count + 1.2 * (0.25 + 0.75 * sum(document.values()) / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize("query", ["refund", "dog river", "store store policy", "nothing here dog"])
def test_scores_are_the_formula(query: str) -> None:
    alive = np.ones(len(PASSAGES), dtype=np.bool_)
    found = dict(store_of(PASSAGES).search(query, 100, None, alive))
    for row, score in enumerate(by_hand(PASSAGES, query)):
        assert found.get(row, 0.0) == pytest.approx(score, abs=1e-5)


def test_scores_are_those_of_the_library() -> None:
    """bm25s builds with a loop what is built by sorting here."""
    bm25s = pytest.importorskip("bm25s")
    random = np.random.default_rng(0)
    passages = [" ".join(f"w{n}" for n in random.zipf(1.5, 30).clip(1, 200)) for _ in range(300)]
    theirs = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    theirs.index([words(passage) for passage in passages], show_progress=False)
    alive = np.ones(300, dtype=np.bool_)
    for query in ("w1", "w2 w3 w40", "w199 w7"):
        expected = theirs.get_scores(words(query))
        found = dict(store_of(passages).search(query, 300, None, alive))
        assert np.allclose([found.get(row, 0.0) for row in range(300)], expected, atol=1e-5)


def test_removed_rows_do_not_count() -> None:
    """Neither are they found, nor do they change how rare a word is or how long a passage is on average."""
    alive = np.ones(len(PASSAGES), dtype=np.bool_)
    alive[[2, 5]] = False
    store = store_of(PASSAGES)
    store.search("dog", 5, None, np.ones(len(PASSAGES), dtype=np.bool_))
    store.changed()
    found = dict(store.search("dog refund", 5, alive, alive))
    kept = [passage for passage, counts in zip(PASSAGES, alive, strict=True) if counts]
    for row, score in zip(np.flatnonzero(alive), by_hand(kept, "dog refund"), strict=True):
        assert found.get(int(row), 0.0) == pytest.approx(score, abs=1e-5)
    assert not {2, 5} & set(found)
    store.keep(np.flatnonzero(alive))
    assert [score for _, score in store.search("dog refund", 5, None, np.ones(4, dtype=np.bool_))] == list(
        found.values()
    )


def test_equal_scores_come_by_row_and_are_not_cut_at_random() -> None:
    store = store_of(["a dog"] * 50 + ["a dog dog"])
    found = store.search("dog", 10, None, np.ones(51, dtype=np.bool_))
    assert [row for row, _ in found] == [50, *range(9)]


def test_a_store_of_nothing() -> None:
    store = LexicalStore()
    assert store.search("dog", 5, None, np.zeros(0, dtype=np.bool_)) == []
    store.add(["", "..."])
    assert store.search("dog", 5, None, np.ones(2, dtype=np.bool_)) == []


# --- fusion --------------------------------------------------------------------------------------


def test_reciprocal_rank_by_hand() -> None:
    fused = dict(reciprocal_rank([["a", "b", "c"], ["b", "d"]], constant=60))
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 63, "d": 1 / 62})


def test_a_duplicate_in_a_list_counts_once() -> None:
    """Chunks of one document under one id gathered a share for each occurrence elsewhere."""
    once = reciprocal_rank([["a", "b"], ["b", "a"]])
    assert reciprocal_rank([["a", "a", "b", "a"], ["b", "a", "b"]]) == once
    assert once[0][1] == pytest.approx(1 / 61 + 1 / 62)
    scored = weighted_scores([[("a", 2.0), ("a", 1.0)], [("b", 1.0)]], minima=[0, 0])
    assert dict(scored) == {"a": 0.5, "b": 0.5}


def test_ties_keep_the_order_of_appearance() -> None:
    assert [key for key, _ in reciprocal_rank([["x", "y"], ["y", "x"]])] == ["x", "y"]
    assert [key for key, _ in reciprocal_rank([["x"], ["y"], ["z"]])] == ["x", "y", "z"]


def test_weighted_scores_by_hand() -> None:
    fused = dict(
        weighted_scores([[("a", 0.8), ("b", 0.5)], [("b", 10.0), ("c", 5.0)]], minima=[-1, 0], weights=[3, 1])
    )
    assert fused == pytest.approx({"a": 0.75, "b": 0.75 * 1.5 / 1.8 + 0.25, "c": 0.125})


def test_a_lone_passage_is_not_zeroed() -> None:
    assert weighted_scores([[("a", 0.3)], []], minima=[-1, 0]) == [("a", 0.5)]
    assert weighted_scores([[("a", 0.0)]], minima=[0]) == [("a", 0.0)]  # it is at the minimum
    assert reciprocal_rank([["a"]]) == [("a", 1 / 61)]


def test_nothing_to_fuse() -> None:
    assert reciprocal_rank([]) == []
    assert reciprocal_rank([[], []]) == []
    assert weighted_scores([[], []], minima=[0, 0]) == []


def test_odd_weights_are_refused() -> None:
    for weights in ([1.0], [-1.0, 2.0], [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]):
        with pytest.raises(ConfigurationError):
            reciprocal_rank([["a"], ["b"]], weights=weights)
    with pytest.raises(ConfigurationError):
        weighted_scores([[("a", 1.0)]], minima=[])
    with pytest.raises(ConfigurationError):
        reciprocal_rank([["a"]], constant=-1)

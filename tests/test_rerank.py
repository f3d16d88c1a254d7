"""The reranker on tiny models with random weights: order, records, reasons, deadlines, threads."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Source
from surefoot.errors import ConfigurationError, InputError, ModelError, ModelNotFoundError
from surefoot.inference.cache import ScoreCache
from surefoot.inference.pairs import PairModel
from surefoot.inference.relevance import RelevanceModel, _columns
from surefoot.models.manifest import resolve_model
from surefoot.models.safefiles import hash_file
from surefoot.rerank import Ranking, RankingReason, Reranker
from surefoot.schema import Span

MODELS = Path(__file__).parent / "fixtures" / "models"
ONE, TWO = MODELS / "bert-relevance", MODELS / "bert-relevance-two-labels"
QUERY = "when does the store open"
PASSAGES = [
    "The store opens at nine on Monday.",
    "Our refund policy allows returns.",
    "She was born in Lyon in 1984.",
    "A dog ran along the river.",
    "Revenue rose to 150 million euros.",
    "Two men were fishing.",
]
LONG = "Revenue rose to 150 million euros, up from 120 million in 2021. " * 12


def make(model: Path | str | None = ONE, **options: Any) -> Reranker:
    return Reranker(model, self_test=False, **options)


@pytest.fixture(scope="module")
def reranker() -> Reranker:
    return make()


def raw(query: str, passages: list[str], folder: Path = ONE) -> np.ndarray:
    """Logits by the runtime itself."""
    found = resolve_model(folder, task="relevance")
    model = PairModel(
        found.model_path, found.tokenizer_path, fingerprint="x", max_length=64, cache=ScoreCache(0)
    )
    return model.logits([(query, passage) for passage in passages])


def indices(ranking: Ranking) -> list[int]:
    return [source.index for source in ranking]


# --- order and records ---


def test_passages_come_in_the_order_of_their_logits(reranker: Reranker) -> None:
    logits = raw(QUERY, PASSAGES)[:, 0].astype(np.float64)
    ranking = reranker.rerank(QUERY, PASSAGES, top_k=None)
    assert indices(ranking) == sorted(range(len(PASSAGES)), key=lambda i: -logits[i])
    for rank, source in enumerate(ranking, 1):
        assert source.rank == rank
        assert source.first_stage_rank == source.index + 1
        assert source.reranker_score == logits[source.index]  # bit for bit
        assert source.relevance == pytest.approx(1 / (1 + math.exp(-logits[source.index])), abs=1e-15)
        assert source.item == source.text == PASSAGES[source.index]
        assert source.window == Span(0, len(source.text))
        assert source.windows == 1
    assert not ranking.degraded
    assert ranking.reason is ranking.detail is None
    assert (ranking.passages, ranking.scored, ranking.model) == (6, 6, "bert-relevance")
    assert ranking.calibrated is False


def test_a_ranking_is_a_sequence(reranker: Reranker) -> None:
    ranking = reranker.rerank(QUERY, PASSAGES)
    assert len(ranking) == 5  # the default
    assert ranking[0].rank == 1
    assert [source.rank for source in ranking[1:3]] == [2, 3]
    assert list(ranking) == list(ranking.sources)
    assert next(reversed(ranking)) is ranking[-1]
    assert ranking[2] in ranking
    assert ranking.items == [PASSAGES[source.index] for source in ranking]
    with pytest.raises(IndexError):
        ranking[5]
    with pytest.raises(AttributeError):
        ranking.degraded = True  # type: ignore[misc]


@pytest.mark.parametrize(("top_k", "size"), [(1, 1), (3, 3), (6, 6), (100, 6), (None, 6)])
def test_top_k(reranker: Reranker, top_k: int | None, size: int) -> None:
    everything = reranker.rerank(QUERY, PASSAGES, top_k=None)
    ranking = reranker.rerank(QUERY, PASSAGES, top_k=top_k)
    assert list(ranking) == list(everything)[:size]  # all are scored, whatever is returned
    assert ranking.scored == 6


def test_no_passages_need_no_model() -> None:
    lost = make("no-such/model")
    ranking = lost.rerank(QUERY, [])
    assert list(ranking) == []
    assert not ranking.degraded
    assert not lost.is_loaded


def test_one_passage_is_a_ranking_too(reranker: Reranker) -> None:
    ranking = reranker.rerank(QUERY, [PASSAGES[0]])
    assert isinstance(ranking, Ranking)
    assert [source.text for source in ranking] == [PASSAGES[0]]
    assert ranking[0].relevance not in (0.0, 1.0)  # not scaled to the list


def test_strings_mappings_and_records_give_the_same(reranker: Reranker) -> None:
    text, other = PASSAGES[:2]
    shapes: list[Any] = [
        text,
        {"text": text},
        {"chunk_text": text, "text": other},
        {"expanded_context": text, "chunk_text": other, "text": other},
        {"expanded_context": "", "chunk_text": None, "text": text},
        {"expanded_context": " \n", "text": text},
        MappingProxyType({"text": text}),
        Source("a", text, "Title", {"page": 3}),
    ]
    ranking = reranker.rerank(QUERY, shapes, top_k=None)
    assert indices(ranking) == list(range(len(shapes)))  # ties keep their order
    assert {source.reranker_score for source in ranking} == {float(raw(QUERY, [text])[0, 0])}
    assert all(source.text == text for source in ranking)
    assert all(source.item is shapes[source.index] for source in ranking)


def test_the_fields_can_be_chosen(reranker: Reranker) -> None:
    item = {"page_content": PASSAGES[0], "text": PASSAGES[1], "body": ""}
    ranking = reranker.rerank(QUERY, [item], text_fields=("body", "page_content"))
    assert ranking[0].text == PASSAGES[0]
    for wrong in ("text", (), (1,)):
        with pytest.raises(ConfigurationError, match="text_fields"):
            reranker.rerank(QUERY, [item], text_fields=wrong)  # type: ignore[arg-type]


def test_nothing_handed_in_is_changed(reranker: Reranker) -> None:
    items = [{"text": text, "metadata": {"page": index}, "score": 0.5} for index, text in enumerate(PASSAGES)]
    before = copy.deepcopy(items)
    ranking = reranker.rerank(QUERY, items)
    assert items == before
    assert all(source.item is items[source.index] for source in ranking)
    assert all("reranker_score" not in item for item in items)


def test_a_generator_is_read_once(reranker: Reranker) -> None:
    taken = []

    def passages() -> Iterator[str]:
        for text in PASSAGES:
            taken.append(text)
            yield text

    assert list(reranker.rerank(QUERY, passages())) == list(reranker.rerank(QUERY, PASSAGES))
    assert taken == PASSAGES


def test_equal_texts_are_scored_once_and_all_are_ranked(
    reranker: Reranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    score = RelevanceModel.score
    monkeypatch.setattr(
        RelevanceModel,
        "score",
        lambda self, pairs, **options: asked.extend(pairs) or score(self, pairs, **options),  # type: ignore[func-returns-value]
    )
    a, b = PASSAGES[:2]
    ranking = reranker.rerank(QUERY, [a, b, {"text": a}, a, b], top_k=None)
    assert sorted(asked) == sorted([(QUERY, a), (QUERY, b)])
    by_index = {source.index: source for source in ranking}
    assert [by_index[i].duplicate_of for i in range(5)] == [None, None, 0, 0, 1]
    assert by_index[0].reranker_score == by_index[2].reranker_score == by_index[3].reranker_score
    assert ranking.scored == 5
    ranks = [by_index[i].rank for i in (0, 2, 3)]
    assert ranks == sorted(ranks)


def test_empty_passages_come_last_in_their_order(reranker: Reranker) -> None:
    items: list[Any] = [None, PASSAGES[0], "", {"text": None}, PASSAGES[1], " \t\n", "\u200b\x00"]
    ranking = reranker.rerank(QUERY, items, top_k=None)
    assert sorted(indices(ranking)[:2]) == [1, 4]
    assert indices(ranking)[2:] == [0, 2, 3, 5, 6]
    for source in ranking[2:]:
        assert source.reranker_score is source.relevance is source.window is None
        assert source.windows == 0
        assert source.duplicate_of is None
    assert not ranking.degraded
    assert indices(reranker.rerank(QUERY, [None, ""])) == [0, 1]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "0.9", True, 10**400, [1]])
def test_first_stage_scores_that_are_no_numbers(reranker: Reranker, value: object) -> None:
    items = [{"text": text, "score": value} for text in PASSAGES]
    ranking = reranker.rerank(QUERY, items)
    assert indices(ranking) == indices(reranker.rerank(QUERY, PASSAGES))
    assert all(source.first_stage_score is None for source in ranking)
    json.loads(ranking.to_json(), parse_constant=lambda name: pytest.fail(name))


def test_first_stage_scores_are_shown_and_not_used(reranker: Reranker) -> None:
    items = [{"text": text, "score": np.float32(index)} for index, text in enumerate(PASSAGES)]
    ranking = reranker.rerank(QUERY, items)
    assert indices(ranking) == indices(reranker.rerank(QUERY, PASSAGES))
    assert all(source.first_stage_score == source.index for source in ranking)
    records = reranker.rerank(QUERY, [Source("a", "The store.", metadata={"score": 0.25})])
    assert records[0].first_stage_score == 0.25


def test_json_holds_plain_values(reranker: Reranker) -> None:
    strange: dict[str, Any] = {
        "text": "The store \ud800 opens.",
        "score": np.float64(0.5),
        "hits": np.int64(3),
        "vector": (np.float32(1.5), math.nan),
        "where": Path("a") / "b",
    }
    strange["self"] = strange
    ranking = reranker.rerank(QUERY, [strange, Source("a", "The store.", None, {"n": np.float32(2)})])
    text = ranking.to_json()
    assert text.isascii()
    data = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert {type(source["reranker_score"]) for source in data["sources"]} == {float}
    assert data["degraded"] is False
    assert data["sources"][0].keys() >= {"rank", "first_stage_rank", "relevance", "window", "item"}
    item = next(source["item"] for source in data["sources"] if source["index"] == 0)
    assert item["hits"] == 3
    assert item["vector"] == [1.5, "nan"]
    assert item["where"] == str(Path("a") / "b")
    assert type(ranking[0].reranker_score) is float
    assert type(ranking[0].relevance) is float


# --- threshold ---


def test_the_threshold_is_on_relevance(reranker: Reranker) -> None:
    everything = reranker.rerank(QUERY, [*PASSAGES, None], top_k=None)
    third = everything[2].relevance
    kept = reranker.rerank(QUERY, [*PASSAGES, None], top_k=None, threshold=third)
    assert list(kept) == list(everything)[:3]  # at the threshold is enough; an empty one has no relevance
    assert list(reranker.rerank(QUERY, PASSAGES, threshold=1.0)) == []
    assert len(reranker.rerank(QUERY, PASSAGES, threshold=0, top_k=None)) == 6


@pytest.mark.parametrize("threshold", [-3.5, 1.5, math.nan, math.inf, "0.5"])
def test_a_logit_is_no_threshold(reranker: Reranker, threshold: Any) -> None:
    with pytest.raises(ConfigurationError, match="threshold"):
        reranker.rerank(QUERY, PASSAGES, threshold=threshold)


def test_logits_order_where_the_sigmoid_has_rounded(
    reranker: Reranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        RelevanceModel, "score", lambda self, pairs, **_: [40.0 + len(text) for _, text in pairs]
    )
    ranking = reranker.rerank(QUERY, PASSAGES, top_k=None)
    assert {source.relevance for source in ranking} == {1.0}
    lengths = [len(source.text) for source in ranking]
    assert lengths == sorted(lengths, reverse=True)


def test_a_calibration_of_the_manifest_is_applied(tmp_path: Path) -> None:
    folder = recorded(tmp_path, a=0.5, b=-1.0)
    ranking = make(folder).rerank(QUERY, PASSAGES)
    assert ranking.calibrated
    plain = make().rerank(QUERY, PASSAGES)
    assert indices(ranking) == indices(plain)
    for source in ranking:
        assert source.reranker_score is not None
        assert source.relevance == pytest.approx(1 / (1 + math.exp(-(0.5 * source.reranker_score - 1))))


def recorded(tmp_path: Path, *, a: float, b: float, **more: Any) -> Path:
    """The tiny model as a folder of surefoot's own, with a calibration."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    shutil.copy(ONE / "onnx" / "model.onnx", folder)
    shutil.copy(ONE / "tokenizer.json", folder)
    files = [
        {
            "path": name,
            "sha256": hash_file(folder / name),
            "bytes": (folder / name).stat().st_size,
        }
        for name in ("model.onnx", "tokenizer.json")
    ]
    calibration = {"kind": "platt", "a": a, "b": b}
    record = {
        "name": "recorded",
        "task": "relevance",
        "files": files,
        "architecture": "BertForSequenceClassification",
        "parameters": 0,
        "max_length": 64,
        "labels": ["LABEL_0"],
        "calibration": calibration,
        **more,
    }
    (folder / "surefoot.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


# --- fusion ---


def test_the_logit_is_joined_with_what_the_manifest_says(tmp_path: Path) -> None:
    fusion = {"logit": 0.5, "lexical": 4.0, "a": 2.0, "b": -1.0}
    folder = recorded(tmp_path, a=1.0, b=0.0, fusion=fusion)
    passages = [*PASSAGES, PASSAGES[0], None]
    ranking = make(folder).rerank(QUERY, passages, top_k=None)
    plain = {source.index: source for source in make().rerank(QUERY, passages, top_k=None)}
    assert ranking.calibrated
    scores = []
    for source in ranking[:-1]:
        assert source.reranker_score == plain[source.index].reranker_score
        assert source.reranker_score is not None
        assert source.fused_score is not None
        share = (source.fused_score - 0.5 * source.reranker_score) / 4
        assert -1e-9 < share < 1
        assert (share > 1e-9) == bool(set(QUERY.split()) & set(source.text.lower().split()))
        assert source.relevance == pytest.approx(1 / (1 + math.exp(-(2 * source.fused_score - 1))))
        scores.append(source.fused_score)
    assert scores == sorted(scores, reverse=True)
    assert ranking[0].text == PASSAGES[0]
    assert ranking[-1].fused_score is None
    alone = make(folder, fusion=False).rerank(QUERY, passages, top_k=None)
    assert indices(alone) == [source.index for source in make().rerank(QUERY, passages, top_k=None)]
    assert all(source.fused_score is None for source in alone)


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory) -> Reranker:
    folder = tmp_path_factory.mktemp("fused")
    return make(recorded(folder, a=1.0, b=0.0, fusion={"logit": 0.5, "lexical": 4.0, "a": 2.0, "b": -1.0}))


@given(company=st.lists(st.text(max_size=80) | st.sampled_from(["a dog", "word " * 300]), max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_fused_score_does_not_depend_on_the_company(fused: Reranker, company: list[str]) -> None:
    (alone,) = fused.rerank(QUERY, [PASSAGES[0]])
    ranking = fused.rerank(QUERY, [*company, PASSAGES[0]], top_k=None)
    (beside,) = (source for source in ranking if source.index == len(company))
    assert beside.fused_score == alone.fused_score
    assert beside.relevance == alone.relevance


def test_cosines_are_joined_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = recorded(tmp_path, a=1.0, b=0.0, fusion={"logit": 1.0, "cosine": 100.0})

    def embed(self: object, texts: list[str]) -> np.ndarray:
        return np.array([[1.0, 0.0] if text in (QUERY, PASSAGES[4]) else [0.0, 1.0] for text in texts])

    monkeypatch.setattr("surefoot.inference.embedding.Embedder.embed", embed)
    ranking = make(folder).rerank(QUERY, PASSAGES, top_k=None)
    assert indices(ranking)[0] == 4
    assert ranking[0].fused_score == pytest.approx(ranking[0].reranker_score + 100)
    assert ranking[1].fused_score == ranking[1].reranker_score


def test_a_signal_that_fails_degrades(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = recorded(tmp_path, a=1.0, b=0.0, fusion={"logit": 1.0, "cosine": 1.0})

    def embed(self: object, texts: list[str]) -> np.ndarray:
        raise ModelError("the embedder is damaged")

    monkeypatch.setattr("surefoot.inference.embedding.Embedder.embed", embed)
    ranking = make(folder).rerank(QUERY, PASSAGES)
    assert (ranking.reason, ranking.detail, ranking.scored) == ("model_failed", "the embedder is damaged", 0)
    assert indices(ranking) == [0, 1, 2, 3, 4]


# --- two labels ---


def test_two_labels_make_a_difference_of_logits() -> None:
    logits = raw(QUERY, PASSAGES, TWO).astype(np.float64)
    ranking = make(TWO).rerank(QUERY, PASSAGES, top_k=None)
    for source in ranking:
        relevant, irrelevant = logits[source.index]  # in the order of this model's config
        assert source.reranker_score == relevant - irrelevant
        assert source.relevance == pytest.approx(
            math.exp(relevant) / (math.exp(relevant) + math.exp(irrelevant))
        )


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (["LABEL_0"], (0, None)),
        (["anything"], (0, None)),
        (["LABEL_0", "LABEL_1"], (1, 0)),
        (["relevant", "irrelevant"], (0, 1)),
        (["Not-Relevant", "Relevant"], (1, 0)),
        (["yes", "no"], (0, 1)),
    ],
)
def test_the_relevant_label_is_found(labels: list[str], columns: tuple[int, int | None]) -> None:
    assert _columns(labels, "m") == columns


@pytest.mark.parametrize(
    "labels", [[], ["a", "b"], ["relevant", "yes"], ["relevant", "irrelevant", "no"], ["cat", "no"]]
)
def test_unknown_labels_are_refused(labels: list[str]) -> None:
    with pytest.raises(ModelError, match="no relevance model"):
        _columns(labels, "m")


def test_a_model_that_was_not_trained_is_refused() -> None:
    with pytest.raises(ModelError, match="self-test"):
        Reranker(ONE).load()
    ranking = Reranker(ONE).rerank(QUERY, PASSAGES)
    assert ranking.degraded
    assert ranking.reason is RankingReason.NO_MODEL


def test_the_self_test_wants_each_answer_first(monkeypatch: pytest.MonkeyPatch) -> None:
    model = RelevanceModel(resolve_model(ONE, task="relevance"), self_test=False)

    def overlap(pairs: list[tuple[str, str]], sign: int = 1) -> list[float]:
        return [float(sign * len(set(a.lower().split()) & set(b.lower().split()))) for a, b in pairs]

    monkeypatch.setattr(RelevanceModel, "score", lambda self, pairs: overlap(pairs))
    model.self_test()
    monkeypatch.setattr(RelevanceModel, "score", lambda self, pairs: overlap(pairs, -1))
    with pytest.raises(ModelError, match="self-test"):
        model.self_test()
    monkeypatch.setattr(RelevanceModel, "score", lambda self, pairs: [1.0] * len(pairs))
    with pytest.raises(ModelError, match="self-test"):  # says the same of everything
        model.self_test()


# --- what cannot be ranked ---


def test_without_a_model_the_order_is_kept_and_said_to_be() -> None:
    lost = make("no-such-model")
    ranking = lost.rerank(QUERY, PASSAGES, top_k=4, threshold=0.99)
    assert indices(ranking) == [0, 1, 2, 3]
    assert ranking.degraded
    assert not ranking.partial
    assert ranking.reason == "no_model"
    assert "no-such-model" in str(ranking.detail)
    assert ranking.model is None
    assert ranking.scored == 0
    assert all(source.reranker_score is source.relevance is None for source in ranking)
    assert not lost.is_loaded
    assert json.loads(ranking.to_json())["reason"] == "no_model"
    with pytest.raises(ModelNotFoundError):
        lost.load()
    with pytest.raises(ModelNotFoundError):
        make("no-such-model", strict=True).rerank(QUERY, PASSAGES)


def test_a_failure_is_remembered_until_load(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    late = make(str(folder))
    assert late.rerank(QUERY, PASSAGES).reason == "no_model"
    shutil.copytree(ONE, folder)
    assert late.rerank(QUERY, PASSAGES).reason == "no_model"  # not looked for at every call
    late.load()
    assert late.is_loaded
    assert not late.rerank(QUERY, PASSAGES).degraded


def test_a_damaged_model_degrades(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ONE, tmp_path / "damaged"))
    (folder / "onnx" / "model.onnx").write_bytes(b"not a model")
    ranking = make(folder).rerank(QUERY, PASSAGES)
    assert ranking.reason == "no_model"
    assert indices(ranking) == [0, 1, 2, 3, 4]


def test_a_mistake_is_not_degraded() -> None:
    with pytest.raises(ConfigurationError, match="is a model for"):
        make("verify").rerank(QUERY, PASSAGES)


@pytest.mark.parametrize("outputs", [[math.nan, 1.0], [math.inf, 1.0]])
def test_scores_that_are_no_numbers_degrade(outputs: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        PairModel, "logits", lambda self, pairs, **_: np.array([outputs[:1]] * len(pairs), dtype=np.float32)
    )
    ranking = make().rerank(QUERY, PASSAGES)
    assert ranking.reason == "model_failed"
    assert indices(ranking) == [0, 1, 2, 3, 4]
    assert ranking.scored == 0
    with pytest.raises(ModelError, match="not a number"):
        make(strict=True).rerank(QUERY, PASSAGES)


@pytest.mark.parametrize("query", ["", " \n\t"])
def test_an_empty_query(reranker: Reranker, query: str) -> None:
    ranking = reranker.rerank(query, PASSAGES)
    assert (ranking.degraded, ranking.reason) == (True, "empty_query")
    assert indices(ranking) == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="empty"):
        make(strict=True).rerank(query, PASSAGES)


def test_a_query_is_never_cut(reranker: Reranker) -> None:
    fits = "a " * 53  # of 64 tokens with 3 special ones, 8 are left: one in eight
    assert not reranker.rerank(fits, PASSAGES).degraded
    ranking = reranker.rerank("a " * 54, PASSAGES)
    assert (ranking.degraded, ranking.reason) == (True, "query_too_long")
    assert indices(ranking) == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="leaves 7"):
        make(strict=True).rerank("a " * 54, PASSAGES)
    assert reranker.rerank("store " * 100_000, PASSAGES).reason == "query_too_long"


def test_what_does_not_fit_is_the_passage_and_not_the_query(reranker: Reranker) -> None:
    query, long = "a " * 40, LONG + PASSAGES[0]
    ranking = reranker.rerank(query, [long])
    window = ranking[0].window
    assert window is not None
    assert ranking[0].windows > 1
    assert ranking[0].reranker_score == raw(query, [window.of(long)])[0, 0]


@pytest.mark.parametrize("query", [None, 3, b"store", ["store"]])
def test_a_query_is_a_string(reranker: Reranker, query: Any) -> None:
    with pytest.raises(InputError, match="query must be a string"):
        reranker.rerank(query, PASSAGES)


@pytest.mark.parametrize(
    ("passages", "message"),
    [
        ("one text", "not one str"),
        (b"one text", "not one bytes"),
        ({"text": "x"}, "not one dict"),
        (None, "not one NoneType"),
        (5, "not one int"),
        (["fine", 5], r"passages\[1\] must be a string"),
        (["fine", ["x"]], r"passages\[1\] must be a string"),
        ([{"body": "x"}], r"passages\[0\] has no text"),
        ([{"text": 7}], r"passages\[0\]\.text must be a string"),
    ],
)
def test_wrong_passages_are_named(reranker: Reranker, passages: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reranker.rerank(QUERY, passages)


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 0},
        {"top_k": -1},
        {"top_k": True},
        {"top_k": 2.5},
        {"deadline_ms": 0},
        {"deadline_ms": -1},
        {"deadline_ms": math.nan},
        {"deadline_ms": "10"},
    ],
)
def test_options_are_checked(reranker: Reranker, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        reranker.rerank(QUERY, PASSAGES, **options)


def test_constructor_options_are_checked() -> None:
    for options in ({"max_length": 15}, {"threads": 0}):
        with pytest.raises(ConfigurationError):
            Reranker(ONE, **options)


# --- deadline ---


def test_time_up_at_once_keeps_the_order(reranker: Reranker) -> None:
    reranker.load()
    ranking = reranker.rerank("a new query", [*PASSAGES, None], top_k=None, deadline_ms=1e-6)
    assert (ranking.degraded, ranking.partial, ranking.reason) == (True, True, "deadline")
    assert indices(ranking) == list(range(7))
    assert ranking.scored == 0
    assert ranking.model == "bert-relevance"
    assert not make(strict=True).rerank("x", PASSAGES, deadline_ms=1e9).degraded
    assert make(strict=True).rerank("x", PASSAGES, deadline_ms=1e-6).partial  # asked for: no error


def test_what_was_scored_in_time_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = make(threads=1)
    texts = [f"{text} " * 6 for text in PASSAGES]
    complete = reranker.rerank(QUERY, texts, top_k=None)
    clock = Clock()
    monkeypatch.setattr("surefoot.rerank.scoring.time.monotonic", clock)
    score = RelevanceModel.score
    monkeypatch.setattr("surefoot.rerank.scoring._TIMED", 1)  # one text at a time

    def slow(self: RelevanceModel, pairs: list[tuple[str, str]], **options: Any) -> list[float]:
        clock.now += 1.0
        return score(self, pairs, **options)

    monkeypatch.setattr(RelevanceModel, "score", slow)
    windows = [source.windows for source in sorted(complete, key=lambda source: source.index)]
    assert min(windows) > 1
    # Two texts and one window of the third: half a text has no score.
    budget = windows[0] + windows[1] + 1
    steps: list[tuple[int, int]] = []
    ranking = reranker.rerank(
        QUERY, texts, top_k=None, deadline_ms=1000 * (budget + 0.5), progress=lambda *s: steps.append(s)
    )
    assert ranking.partial
    assert ranking.scored == 2
    first_two = sorted(indices(ranking)[:2], key=lambda index: indices(complete).index(index))
    assert indices(ranking) == [*first_two, 2, 3, 4, 5]
    by_index = {source.index: source.reranker_score for source in complete}
    assert [source.reranker_score for source in ranking[:2]] == [by_index[index] for index in first_two]
    assert all(source.reranker_score is None for source in ranking[2:])
    assert ranking.detail == f"2 of 6 texts were scored within {1000 * (budget + 0.5):g} ms"
    # The threshold drops what is known to be irrelevant, not what is unknown.
    kept = reranker.rerank(QUERY, texts, top_k=None, deadline_ms=1000 * (budget + 0.5), threshold=1.0)
    assert indices(kept) == [2, 3, 4, 5]
    assert (0, 6) not in steps
    assert all(done < total == 6 for done, total in steps)


class Clock:
    """Seconds since it was made, in steps that the test decides about."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_deadline_that_is_kept_changes_nothing(reranker: Reranker) -> None:
    timed = reranker.rerank(QUERY, [*PASSAGES, LONG], top_k=None, deadline_ms=600_000)
    assert list(timed) == list(reranker.rerank(QUERY, [*PASSAGES, LONG], top_k=None))
    assert not timed.partial


# --- same bits, threads, loading ---


def test_a_score_does_not_depend_on_its_company(reranker: Reranker) -> None:
    passages = [*PASSAGES, LONG]
    together = {s.text: s.reranker_score for s in reranker.rerank(QUERY, passages, top_k=None)}
    for text in passages:
        fresh = make(threads=3)
        fresh.load()
        fresh._loaded().pairs.cache = ScoreCache(0)
        assert fresh.rerank(QUERY, [text])[0].reranker_score == together[text]
    assert {s.text: s.reranker_score for s in reranker.rerank(QUERY, passages[::-1], top_k=None)} == together


def test_many_threads_share_one_lazy_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ONE, tmp_path / "shared"))
    loads = []
    original = RelevanceModel.__init__

    def counted(self: RelevanceModel, *args: Any, **options: Any) -> None:
        loads.append(threading.get_ident())
        original(self, *args, **options)

    monkeypatch.setattr(RelevanceModel, "__init__", counted)
    shared, other = make(folder), make(folder)
    assert not shared.is_loaded
    expected = [source.reranker_score for source in make().rerank(QUERY, PASSAGES)]
    loads.clear()
    with ThreadPoolExecutor(32) as pool:
        results = list(pool.map(lambda i: (shared, other)[i % 2].rerank(QUERY, PASSAGES), range(64)))
    assert len(loads) == 1
    assert shared.is_loaded
    assert other.is_loaded
    assert all([source.reranker_score for source in result] == expected for result in results)


def test_load_at_start_up() -> None:
    fresh = make()
    assert not fresh.is_loaded
    fresh.load()
    assert fresh.is_loaded
    fresh.load()


def test_the_async_twin_gives_the_same(reranker: Reranker) -> None:
    async def both() -> list[Ranking]:
        calls = [reranker.arerank(QUERY, iter(PASSAGES), top_k=3, threshold=0.1) for _ in range(2)]
        return await asyncio.gather(*calls)

    first, second = asyncio.run(both())
    expected = reranker.rerank(QUERY, PASSAGES, top_k=3, threshold=0.1)
    assert list(first) == list(second) == list(expected)

    async def wrong() -> Ranking:
        return await reranker.arerank(QUERY, "text")

    with pytest.raises(InputError):
        asyncio.run(wrong())


def test_the_async_twin_leaves_the_loop_free(reranker: Reranker, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(
        RelevanceModel, "score", lambda self, pairs, **_: [float(gate.wait(30)) for _ in pairs]
    )

    async def run() -> Ranking:
        pending = asyncio.create_task(reranker.arerank(QUERY, PASSAGES))
        await asyncio.sleep(0.01)
        assert not pending.done()
        gate.set()  # could not happen if the loop were blocked
        return await pending

    assert asyncio.run(run()).scored == 6


def test_progress_ends_at_the_total(reranker: Reranker) -> None:
    steps: list[tuple[int, int]] = []
    reranker.rerank(QUERY, [*PASSAGES, PASSAGES[0], None], progress=lambda *step: steps.append(step))
    assert steps[-1] == (6, 6)
    assert steps == sorted(steps)


# --- explain ---


def test_each_sentence_is_left_out_and_read_alone(reranker: Reranker) -> None:
    text = "The store opens at nine. She was born in Lyon. A dog ran along."
    explanation = reranker.explain(QUERY, {"text": text})
    assert [s.text for s in explanation.sentences] == [
        "The store opens at nine.",
        "She was born in Lyon.",
        "A dog ran along.",
    ]
    whole = float(raw(QUERY, [text])[0, 0])
    assert explanation.reranker_score == whole
    for sentence in explanation.sentences:
        assert text[sentence.start : sentence.end] == sentence.text
        rest = text[: sentence.start] + text[sentence.end :]
        assert sentence.contribution == whole - float(raw(QUERY, [rest])[0, 0])
        assert sentence.alone == float(raw(QUERY, [sentence.text])[0, 0])
    json.dumps(explanation.to_dict(), allow_nan=False)


def test_a_single_sentence_has_no_rest(reranker: Reranker) -> None:
    explanation = reranker.explain(QUERY, PASSAGES[0])
    assert len(explanation.sentences) == 1
    assert explanation.sentences[0].contribution is None
    assert explanation.sentences[0].alone == explanation.reranker_score


def test_of_a_long_passage_the_winning_window_is_explained(reranker: Reranker) -> None:
    text = LONG + PASSAGES[0]
    explanation = reranker.explain(QUERY, text)
    ranked = reranker.rerank(QUERY, [text])[0]
    assert (explanation.reranker_score, explanation.window) == (ranked.reranker_score, ranked.window)
    assert explanation.sentences
    for sentence in explanation.sentences:
        assert text[sentence.start : sentence.end] == sentence.text
        assert explanation.window.start <= sentence.start < sentence.end <= explanation.window.end


def test_there_is_no_degraded_explanation(reranker: Reranker) -> None:
    for query, passage in (("", "x"), (QUERY, ""), (QUERY, None), ("store " * 60, "x")):
        with pytest.raises(InputError):
            reranker.explain(query, passage)
    with pytest.raises(ModelNotFoundError):
        make("no-such-model").explain(QUERY, "x")


# --- any text ---


@settings(max_examples=60)
@given(
    st.text(st.characters(codec=None), min_size=1, max_size=40),
    st.lists(st.none() | st.text(st.characters(codec=None), max_size=300), max_size=6),
)
def test_any_text_is_ranked(query: str, passages: list[str | None]) -> None:
    ranking = make().rerank(query, passages, top_k=None)
    assert sorted(indices(ranking)) == list(range(len(passages)))
    assert ranking.reason in (None, "empty_query", "query_too_long")
    json.loads(ranking.to_json())

"""The pipeline without a language model: stages, their failures, quotes, weak evidence."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Pipeline, Source, TruthfulnessReport, Verdict, Verifier
from surefoot.errors import ConfigurationError, InputError, ModelError
from surefoot.inference.embedding import Embedder
from surefoot.judge import Judgement
from surefoot.pipeline import (
    MIN_EVIDENCE,
    REFUSAL,
    ExtractiveAnswerer,
    PipelineResult,
    Stage,
    StageCode,
    StageError,
    evidence_strength,
)
from surefoot.rerank import RankedSource, Ranking, Reranker
from surefoot.retrieve import Index
from surefoot.schema import ClaimKind, RiskLevel
from surefoot.segment import plain_text

FIXTURES = Path(__file__).parent / "fixtures" / "models"
SOURCES = [
    Source(
        "returns",
        "# Returns\n\nYou may return any item within **10 days** of delivery. Items have to be unworn [3] "
        "and complete, with all\ntags attached. Can I return swimwear?",
        "Returns of online orders",
    ),
    Source("labels", "The return label costs 4.50 euros. We deduct this amount from the refund.", "2"),
    Source("gold", "Gold membership costs 29 euros a year and renews itself unless it is cancelled."),
]
QUESTION = "How much does the return label cost?"


def retrieve(question: str, k: int) -> list[Source]:
    return SOURCES[:k]


def in_order(question: str, sources: Sequence[Source], top_k: int) -> Sequence[Source]:
    return sources[:top_k]


def unchecked(answer: str, sources: Sequence[Source], question: str) -> TruthfulnessReport:
    """A report at no cost, for tests of something else."""
    return replace(Verifier().verify("", []), answer=answer, question=question, degraded=False)


def quick(**options: Any) -> Pipeline:
    return Pipeline(
        options.pop("retriever", retrieve), **{"reranker": in_order, "verifier": unchecked, **options}
    )


@pytest.fixture(scope="module")
def checked() -> PipelineResult:
    """One run with the real models that need no other."""
    return Pipeline(retrieve, reranker=in_order).ask(QUESTION)


# --- quotes and their check -----------------------------------------------------------------------


def test_the_answer_quotes_and_cites_and_the_check_finds_it_word_for_word(checked: PipelineResult) -> None:
    assert checked.answer is not None
    assert checked.answer.startswith("The return label costs 4.50 euros. [Doc 2]")
    assert checked.report is not None
    claims = [claim for claim in checked.report.claims if claim.kind is ClaimKind.CLAIM]
    assert claims
    assert {claim.verdict for claim in claims} == {Verdict.SUPPORTED}
    assert claims[0].citations[0].source_id == "labels"
    assert not checked.cannot_answer
    assert not checked.degraded


def test_doc_numbers_are_positions_whatever_ids_and_titles_say() -> None:
    sources = [Source("2", SOURCES[2].text, "1"), Source("1", SOURCES[1].text, "3.txt")]
    result = Pipeline(lambda question, k: sources, reranker=in_order).ask(QUESTION)
    assert result.answer is not None
    assert result.answer.startswith("The return label costs 4.50 euros. [Doc 2]")
    assert result.report is not None
    assert result.report.claims[0].verdict is Verdict.SUPPORTED
    assert result.report.citations[0].source_id == "1"
    assert result.report.claims[0].evidence[0].source_id == "1"
    assert result.report.sources == tuple(sources)


def test_a_number_beyond_the_passages_is_unresolved() -> None:
    answer = "The return label costs 4.50 euros. [Doc 7] You may return any item within 10 days. [Doc 1]"
    sources = [SOURCES[0], replace(SOURCES[1], title="7"), SOURCES[2]]
    result = Pipeline(
        lambda question, k: sources, reranker=in_order, generator=lambda question, passages: answer
    ).ask(QUESTION)
    assert result.report is not None
    assert [(c.key, c.source_id, str(c.status)) for c in result.report.citations] == [
        ("7", None, "unresolved"),
        ("1", "returns", "supporting"),
    ]


def test_quotes_say_where_they_stand(checked: PipelineResult) -> None:
    assert checked.draft is not None
    for quote in checked.draft.quotes:
        source = checked.sources[quote.number - 1]
        assert source.id == quote.source_id
        assert plain_text(source.text[quote.start : quote.end]) == quote.text


def test_quotes_leave_out_headings_questions_markup_and_markers_of_the_source() -> None:
    draft = ExtractiveAnswerer(max_sentences=9, margin=0)("May I return any item within 10 days?", SOURCES)
    texts = [quote.text for quote in draft.quotes]
    assert "You may return any item within 10 days of delivery." in texts
    assert "Items have to be unworn and complete, with all tags attached." in texts
    assert not any("swimwear" in text or text.startswith(("#", "Returns")) for text in texts)


def test_the_same_is_quoted_once() -> None:
    copies = [Source("a", SOURCES[1].text), Source("b", SOURCES[1].text.replace("4.50 euros", "4.50 EUROS"))]
    draft = ExtractiveAnswerer(max_sentences=5, margin=0)(QUESTION, copies)
    assert len(draft.quotes) == 2
    assert len({quote.text.lower() for quote in draft.quotes}) == 2


def test_a_reranker_orders_the_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    from surefoot.inference.relevance import RelevanceModel

    monkeypatch.setattr(RelevanceModel, "self_test", lambda self: None)  # random weights
    reranker = Reranker(FIXTURES / "bert-relevance", threads=1)
    quotes = ExtractiveAnswerer(reranker, max_sentences=9, margin=0)(QUESTION, SOURCES).quotes
    relevance = {
        found.text: found.relevance
        for found in reranker.rerank(QUESTION, [quote.text for quote in quotes], top_k=None)
    }
    assert [quote.relevance for quote in quotes] == pytest.approx([relevance[quote.text] for quote in quotes])
    assert [quote.relevance for quote in quotes] == sorted((q.relevance for q in quotes), reverse=True)


@pytest.mark.parametrize("options", [{"max_sentences": 0}, {"max_sentences": True}, {"margin": 1.1}])
def test_options_of_the_answerer_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ExtractiveAnswerer(**options)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=200), st.lists(st.text(max_size=300), max_size=4))
def test_any_text_can_be_quoted(question: str, texts: list[str]) -> None:
    sources = [Source(str(number), text) for number, text in enumerate(texts)]
    draft = ExtractiveAnswerer()(question, sources)
    assert draft.text
    assert 0 <= evidence_strength(question, sources) <= 1
    for quote in draft.quotes:
        assert 0 <= quote.start <= quote.end <= len(sources[quote.number - 1].text)


# --- no answer in the documents -------------------------------------------------------------------


def test_weak_evidence_is_answered_with_a_refusal_that_the_check_knows() -> None:
    asked: list[str] = []
    pipeline = Pipeline(
        retrieve, reranker=in_order, generator=lambda question, sources: asked.append(question)
    )
    result = pipeline.ask("Who won the battle of Hastings in 1066?")
    assert asked == []
    assert result.answer == REFUSAL
    assert result.cannot_answer
    assert result.evidence is not None
    assert result.evidence < MIN_EVIDENCE
    assert result.reasons == (StageCode.WEAK_EVIDENCE,)
    assert not result.degraded
    assert result.report is not None
    assert [(claim.kind, claim.verdict) for claim in result.report.claims] == [
        (ClaimKind.REFUSAL, Verdict.NOT_CHECKABLE)
    ]
    assert result.report.score is None


def test_the_threshold_can_be_set() -> None:
    strength = evidence_strength(QUESTION, SOURCES)
    assert quick(min_evidence=strength).ask(QUESTION).cannot_answer is False
    assert quick(min_evidence=min(1.0, strength + 0.01)).ask(QUESTION).cannot_answer is True
    off = quick(min_evidence=0).ask("Who won the battle of Hastings in 1066?")
    assert not off.cannot_answer
    assert off.evidence is None


@pytest.mark.parametrize("found", [[], [None, "", "  \n"]])
def test_no_passages(found: list[Any]) -> None:
    result = Pipeline(lambda question, k: found).ask(QUESTION)
    assert (result.answer, result.cannot_answer) == (REFUSAL, True)
    assert StageCode.NO_PASSAGES in result.reasons
    assert len(result.retrieved) == len(found)
    assert result.report is not None
    assert result.report.score is None


@pytest.mark.parametrize(
    ("answer", "cannot"),
    [
        ("The documents do not mention the price of the label.", True),
        (REFUSAL, True),
        ("The documents do not mention the price. The label is free for gold members. [Doc 3]", False),
        ("The label costs 4.50 euros. [Doc 2]", False),
    ],
)
def test_a_generator_that_refuses_in_words(answer: str, cannot: bool) -> None:
    assert quick(generator=lambda question, sources: answer).ask(QUESTION).cannot_answer is cannot


# --- stages that are the caller's own -------------------------------------------------------------


def test_an_index_is_searched(tmp_path: Path) -> None:
    index = Index.build(SOURCES, embedder=Embedder(FIXTURES / "bert-embed", pooling="mean", threads=1))
    result = quick(retriever=index, k=2, top_k=1).ask(QUESTION)
    hits = index.search(QUESTION, 2)
    assert [source.id for source in result.retrieved] == [hit.id for hit in hits]
    assert [source.metadata["score"] for source in result.retrieved] == [hit.score for hit in hits]
    assert len(result.ranked) == 1
    place = result.sources[0].metadata
    whole = index.source(place["source_id"]).text
    assert whole[place["start"] : place["end"]] == result.sources[0].text


def test_every_stage_can_be_a_callable_and_gets_what_the_docs_say() -> None:
    calls: list[tuple[Any, ...]] = []
    judgement = Judgement(0.1, RiskLevel.LOW)

    def called(name: str, value: Any) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            calls.append((name, *arguments))
            return value(*arguments) if callable(value) else value

        return call

    result = Pipeline(
        called("retrieve", retrieve),
        reranker=called("rerank", lambda question, sources, top_k: [sources[1], sources[0]]),
        generator=called("generate", "The label costs 4.50 euros. [Doc 1]"),
        verifier=called("verify", unchecked),
        judge=called("judge", judgement),
    ).ask(QUESTION)
    ranked = (SOURCES[1], SOURCES[0])
    assert calls == [
        ("retrieve", QUESTION, 15),
        ("rerank", QUESTION, tuple(SOURCES), 5),
        ("generate", QUESTION, ranked),
        ("verify", result.answer, ranked, QUESTION),
        ("judge", ranked, result.answer, QUESTION),
    ]
    assert result.sources == ranked
    assert [found.first_stage_rank for found in result.ranked] == [2, 1]
    assert result.judgement is judgement
    assert result.report is not None


def test_objects_with_the_method_will_do() -> None:
    class Own:
        def search(self, question: str, k: int) -> list[Source]:
            return SOURCES

        def rerank(self, question: str, sources: Sequence[Source], *, top_k: int) -> Ranking:
            return Ranking(
                question, tuple(RankedSource(s, s.text, i, i + 1, i + 1) for i, s in enumerate(sources))
            )

        def verify(self, answer: str, sources: Any, *, question: str) -> TruthfulnessReport:
            return unchecked(answer, sources, question)

        def judge(self, context: Any, response: str, *, question: str) -> Judgement:
            return Judgement(0.5, RiskLevel.MEDIUM)

    own = Own()
    result = Pipeline(own, reranker=own, verifier=own, judge=own, top_k=2).ask(QUESTION)
    assert len(result.ranked) == 2
    assert result.judgement is not None
    assert not result.degraded


def test_coroutine_functions_are_awaited_in_both_ways() -> None:
    async def aretrieve(question: str, k: int) -> list[Source]:
        await asyncio.sleep(0)
        return SOURCES

    async def agenerate(question: str, sources: Sequence[Source]) -> str:
        await asyncio.sleep(0)
        return "The label costs 4.50 euros. [Doc 2]"

    async def afails(sources: Any, answer: str, question: str) -> Judgement:
        await asyncio.sleep(0)
        raise OSError("down")

    pipeline = quick(retriever=aretrieve, generator=agenerate, judge=afails)
    here = pipeline.ask(QUESTION)
    there = asyncio.run(pipeline.aask(QUESTION))
    assert here.answer == there.answer == "The label costs 4.50 euros. [Doc 2]"
    assert here.reasons == there.reasons == (StageCode.JUDGE_FAILED,)


def test_ask_works_inside_a_running_loop() -> None:
    async def main() -> PipelineResult:
        return quick().ask(QUESTION)

    assert asyncio.run(main()).answer


def test_the_loop_is_free_while_a_stage_computes() -> None:
    async def main() -> bool:
        reached = asyncio.Event()
        loop = asyncio.get_running_loop()

        def blocks(question: str, k: int) -> list[Source]:
            # Returns only because the loop runs what it is handed meanwhile.
            asyncio.run_coroutine_threadsafe(_set(reached), loop).result(timeout=60)
            return SOURCES

        await quick(retriever=blocks).aask(QUESTION)
        return reached.is_set()

    async def _set(event: asyncio.Event) -> None:
        event.set()

    assert asyncio.run(main())


def test_generators_are_read_as_far_as_needed() -> None:
    read: list[int] = []

    def endless(question: str, k: int) -> Iterator[str]:
        number = 0
        while True:
            read.append(number)
            yield f"The return label costs {number} euros."
            number += 1

    result = quick(retriever=endless, k=4, top_k=2).ask(QUESTION)
    assert len(result.retrieved) == 4
    assert read == [0, 1, 2, 3]


def test_nothing_of_the_callers_is_changed() -> None:
    passages = [{"text": "The return label costs 4.50 euros.", "score": 0.5, "page": [1]}]
    before = json.dumps(passages)
    result = quick(retriever=lambda question, k: passages).ask(QUESTION)
    assert json.dumps(passages) == before
    assert result.sources[0].metadata == {"score": 0.5, "page": [1]}


# --- failures -------------------------------------------------------------------------------------


def broken(*arguments: Any, **options: Any) -> Any:
    raise RuntimeError("the disk is full")


@pytest.mark.parametrize("how", ["ask", "aask"])
@pytest.mark.parametrize(
    "options", [{"retriever": broken}, {"generator": broken}], ids=["retrieve", "generate"]
)
def test_a_stage_without_which_there_is_nothing_is_named(options: dict[str, Any], how: str) -> None:
    pipeline = quick(**options)
    stage = {"retriever": "retrieve", "generator": "generate"}[next(iter(options))]
    with pytest.raises(StageError, match=rf"^{stage}: RuntimeError: the disk is full$") as caught:
        pipeline.ask(QUESTION) if how == "ask" else asyncio.run(pipeline.aask(QUESTION))
    assert caught.value.stage == stage
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_error_of_ours_keeps_its_words() -> None:
    def fails(question: str, k: int) -> list[Source]:
        raise ModelError("model.onnx is damaged")

    with pytest.raises(StageError, match=r"^retrieve: model\.onnx is damaged$"):
        quick(retriever=fails).ask(QUESTION)


@pytest.mark.parametrize("how", ["ask", "aask"])
def test_stop_iteration_does_not_end_the_plan(how: str) -> None:
    pipeline = quick(retriever=lambda question, k: next(iter([])))
    with pytest.raises(StageError, match="retrieve: StopIteration"):
        pipeline.ask(QUESTION) if how == "ask" else asyncio.run(pipeline.aask(QUESTION))


@pytest.mark.parametrize(
    "reranker",
    [
        broken,
        lambda question, sources, top_k: [Source("new", "made up")],
        lambda question, sources, top_k: [sources[0], sources[0]],
        lambda question, sources, top_k: "text",
        Reranker("no-such-model"),
    ],
    ids=["raises", "stranger", "twice", "no list", "no model"],
)
def test_a_reranker_that_fails_leaves_the_order_and_is_told(reranker: Any) -> None:
    result = quick(reranker=reranker).ask(QUESTION)
    assert result.sources == tuple(SOURCES)
    assert result.ranked.degraded
    assert result.degraded
    assert result.reasons == (StageCode.NOT_RERANKED,)
    assert result.notes[0].detail
    assert result.answer


@pytest.mark.parametrize("verifier", [broken, lambda answer, sources, question: {"score": 1.0}])
def test_a_check_that_fails_leaves_no_figure(verifier: Any) -> None:
    result = quick(verifier=verifier, judge=lambda *_: Judgement(0.0, RiskLevel.LOW)).ask(QUESTION)
    assert result.report is None
    assert result.answer
    assert result.degraded
    assert result.reasons == (StageCode.VERIFIER_FAILED,)


def test_half_a_check_is_told() -> None:
    result = Pipeline(retrieve, reranker=in_order, verifier=Verifier(max_claims=0), min_evidence=0).ask(
        QUESTION
    )
    assert result.reasons == (StageCode.CHECK_INCOMPLETE,)
    assert result.degraded


@pytest.mark.parametrize(
    "judge", [broken, lambda *_: 0.2, lambda *_: Judgement(None, RiskLevel.UNKNOWN, detail="no reply")]
)
def test_a_judge_that_fails_gives_no_score(judge: Any) -> None:
    result = quick(judge=judge).ask(QUESTION)
    assert result.reasons == (StageCode.JUDGE_FAILED,)
    assert result.judgement is None or result.judgement.score is None
    assert result.degraded


def test_a_refusal_is_not_judged() -> None:
    judged: list[str] = []
    quick(judge=lambda *_: judged.append("x")).ask("Who won the battle of Hastings in 1066?")
    assert judged == []


@pytest.mark.parametrize("options", [{"reranker": broken}, {"verifier": broken}, {"judge": broken}])
def test_strict_raises_instead(options: dict[str, Any]) -> None:
    with pytest.raises(StageError, match="the disk is full"):
        quick(strict=True, **options).ask(QUESTION)


@pytest.mark.parametrize(
    "options",
    [
        {"k": 0},
        {"k": True},
        {"top_k": 16},
        {"min_evidence": 1.5},
        {"min_evidence": math.nan},
        {"max_answer_tokens": 0},
        {"base_url": "http://localhost:1/v1"},
        {"generator": 3},
        {"reranker": "cross-encoder"},
        {"verifier": "verify"},
        {"judge": 3},
        {"retriever": "index"},
        {"retriever": Index},
    ],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        quick(**options)


@pytest.mark.parametrize("question", [None, 3, b"what", "", " \n"])
@pytest.mark.parametrize("method", ["ask", "stream", "astream"])
def test_a_question_is_needed(question: Any, method: str) -> None:
    with pytest.raises(InputError, match="question"):
        getattr(quick(), method)(question)


# --- events and records ---------------------------------------------------------------------------


def test_stages_are_told_as_they_end() -> None:
    seen: list[str] = []

    def judge(sources: Any, answer: str, question: str) -> Judgement:
        seen.append("judging")
        return Judgement(0.1, RiskLevel.LOW)

    events = []
    for event in quick(judge=judge).stream(QUESTION):
        seen.append(str(event.stage))
        events.append(event)
    assert seen == ["retrieve", "rerank", "generate", "verify", "judging", "judge", "done"]
    last = events[-1].result
    assert list(last.timings) == ["retrieve", "rerank", "generate", "verify", "judge"]
    assert [event.seconds for event in events[:-1]] == list(last.timings.values())
    assert all(seconds >= 0 for seconds in last.timings.values())
    assert sum(last.timings.values()) <= last.seconds == events[-1].seconds
    assert events[0].result.retrieved == tuple(SOURCES)
    assert events[0].result.answer is None
    assert events[2].result.report is None


def test_a_stream_that_is_left_runs_no_further() -> None:
    called: list[str] = []
    stream = quick(generator=lambda question, sources: called.append("generate")).stream(QUESTION)
    next(stream)
    stream.close()
    assert called == []


def test_events_of_the_async_twin() -> None:
    async def main() -> list[str]:
        return [str(event.stage) async for event in quick().astream(QUESTION)]

    assert asyncio.run(main()) == ["retrieve", "rerank", "generate", "verify", "done"]


def test_the_same_question_gives_the_same_answer(checked: PipelineResult) -> None:
    again = asyncio.run(Pipeline(retrieve, reranker=in_order).aask(QUESTION))
    assert again.answer == checked.answer
    assert again.report is not None
    assert checked.report is not None
    assert again.report.claims == checked.report.claims


def test_json_holds_plain_values(checked: PipelineResult) -> None:
    table = json.loads(checked.to_json())
    assert table["question"] == QUESTION
    assert table["degraded"] is False
    assert table["reasons"] == []
    assert table["report"]["score"] == checked.report.score  # type: ignore[union-attr]
    assert table["ranked"]["sources"][0]["item"]["id"] == "returns"
    assert table["draft"]["quotes"][0]["source_id"] == "labels"
    assert set(table["timings"]) == {"retrieve", "rerank", "generate", "verify"}


def test_json_of_odd_metadata_and_text() -> None:
    loop: dict[str, Any] = {"nan": math.nan, "object": object()}
    loop["self"] = loop
    source = Source("a\ud800", "The return label costs \ud800 4.50 euros.\x00", metadata=loop)
    result = quick(retriever=lambda question, k: [source]).ask("How much \udfff is the return label?")
    assert result.to_json().isascii()
    assert re.search(r'"nan": "nan"', result.to_json())


def test_load_loads_what_can_be_loaded() -> None:
    verifier = Verifier()
    quick(verifier=verifier).load()
    assert verifier.is_loaded
    with pytest.raises(ModelError):
        quick(reranker=Reranker("no-such-model")).load()


def test_the_stage_names_are_the_timings() -> None:
    assert [str(stage) for stage in Stage] == ["retrieve", "rerank", "generate", "verify", "judge", "done"]

"""The pipeline: a question in; passages, an answer from them and a check of that answer out."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from surefoot.endpoints import Budget, ChatEndpoint, ChatLike, as_chat
from surefoot.errors import ConfigurationError, EndpointError, InputError, SurefootError
from surefoot.pipeline.driving import Plan, Work, drive, drive_async
from surefoot.pipeline.extract import ExtractiveAnswerer, evidence_strength
from surefoot.pipeline.prompt import REFUSAL
from surefoot.pipeline.records import (
    Draft,
    PipelineResult,
    Stage,
    StageCode,
    StageError,
    StageEvent,
    StageNote,
)
from surefoot.pipeline.stages import (
    ChatGenerator,
    GeneratorCall,
    JudgeCall,
    RerankerCall,
    RetrieverCall,
    VerifierCall,
    VerifierLike,
    failed_draft,
    first_stage_order,
    numbered,
    read_draft,
    read_ranking,
    read_retrieved,
    renamed,
)
from surefoot.rerank import Ranking, Reranker
from surefoot.schema import ClaimKind, Source, TruthfulnessReport
from surefoot.segment import segment_answer
from surefoot.verify import Verifier

if TYPE_CHECKING:
    from surefoot.judge import Judge, Judgement
    from surefoot.retrieve import Index

__all__ = ["MIN_EVIDENCE", "Pipeline"]

MIN_EVIDENCE: Final = 0.42
"""Below this evidence strength nothing is generated; docs/pipeline.md says how it was chosen."""


class Pipeline:
    """Retrieve, rerank, generate, verify, and judge where there is a judge.

    With the defaults everything runs on this machine, without a network: the answer then quotes the passages.
    Every stage may be a callable of your own instead; coroutine functions are awaited. A pipeline has no
    state of its own and may be used from many threads and event loops at once.

    What happens where a stage fails: retrieval raises :class:`StageError`. Reranking keeps the order of the
    first stage. An endpoint that fails leaves the result without an answer; any other exception of a
    generator is a :class:`StageError`. A check that fails leaves the answer without a report, a judge that
    fails without a score. All of it is in ``result.notes``, and ``result.degraded`` is true.

    Args:
        retriever: an :class:`~surefoot.Index`, or a callable: (question, k) -> passages.
        reranker: a :class:`~surefoot.Reranker`; the bundled model by default; or a callable: (question,
            passages, top_k) -> the best of them.
        generator: ``None`` quotes the best sentences. The name of a model, an endpoint or a LangChain chat
            model is asked with a prompt of ours; so is a function of a prompt wrapped by
            :func:`~surefoot.endpoints.as_chat`. Any other callable: (question, passages) -> answer.
        verifier: a :class:`~surefoot.Verifier`, the bundled model by default; what has a method ``verify``
            like it; or a callable: (answer, passages, question) -> report.
        judge: a :class:`~surefoot.judge.Judge`, or a callable: (passages, answer, question) -> judgement.
        k: passages to retrieve.
        top_k: passages to write the answer from.
        min_evidence: answer that the documents do not say, without asking the generator, where no sentence
            of the passages shares this much with the question, 0 (never) to 1. See
            :func:`~surefoot.pipeline.evidence_strength`.
        base_url: of an OpenAI-compatible server, for a generator given by name.
        budget: for a generator given by name.
        timeout: seconds for one attempt, for a generator given by name.
        max_context_tokens: of the passages in the prompt; passages that do not fit are left out and said.
        max_answer_tokens: of an answer.
        strict: raise :class:`StageError` where a result would be degraded.

    Raises:
        ConfigurationError: an option cannot work.
        MissingExtraError: a generator is given by name and the ``openai`` package is not installed.
    """

    def __init__(
        self,
        retriever: Index | RetrieverCall,
        *,
        reranker: Reranker | RerankerCall | None = None,
        generator: str | ChatLike | GeneratorCall | None = None,
        verifier: VerifierLike | VerifierCall | None = None,
        judge: Judge | JudgeCall | None = None,
        k: int = 15,
        top_k: int = 5,
        min_evidence: float = MIN_EVIDENCE,
        base_url: str | None = None,
        budget: Budget | None = None,
        timeout: float = 60.0,
        max_context_tokens: int = 8_000,
        max_answer_tokens: int = 512,
        strict: bool = False,
    ) -> None:
        for name, value in (
            ("k", k),
            ("top_k", top_k),
            ("max_context_tokens", max_context_tokens),
            ("max_answer_tokens", max_answer_tokens),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name} must be a whole number of at least 1, not {value!r}")
        if top_k > k:
            raise ConfigurationError(f"top_k must be at most k: {top_k} of {k} passages")
        if not isinstance(min_evidence, int | float) or not 0 <= min_evidence <= 1:
            raise ConfigurationError(f"min_evidence must be between 0 and 1, not {min_evidence!r}")
        self._retrieve: Callable[[str, int], Any] = _method(retriever, "search", "retriever")
        self._reranker = Reranker() if reranker is None else reranker
        self._rerank = _reranking(self._reranker)
        self._verify_call = verifier if callable(verifier) and not hasattr(verifier, "verify") else None
        self._verifier: Any = Verifier() if verifier is None else verifier
        if self._verify_call is None:
            _method(self._verifier, "verify", "verifier")
        if judge is not None:
            _method(judge, "judge", "judge")
        self._judge: Any = judge
        if isinstance(generator, str):
            generator = ChatEndpoint(generator, base_url=base_url, budget=budget, timeout=timeout)
        elif base_url is not None or budget is not None:
            raise ConfigurationError("base_url and budget go with the name of a model as generator")
        self._generator = self._generating(generator, max_context_tokens, max_answer_tokens)
        self._k = k
        self._top_k = top_k
        self._min_evidence = float(min_evidence)
        self._strict = strict

    def ask(self, question: str) -> PipelineResult:
        """Answer ``question``.

        Raises:
            InputError: the question is no string, or blank.
            StageError: a stage failed, see :class:`Pipeline`.
        """
        result = PipelineResult(question)
        for event in self.stream(question):
            result = event.result
        return result

    async def aask(self, question: str) -> PipelineResult:
        """:meth:`ask` off the event loop: models compute in threads, endpoints and coroutines are awaited."""
        result = PipelineResult(question)
        async for event in self.astream(question):
            result = event.result
        return result

    def stream(self, question: str) -> Iterator[StageEvent]:
        """The stages as they end, each with what is known by then; the last event has the whole result.

        Raises:
            InputError, StageError: as :meth:`ask`; StageError while iterating.
        """
        return drive(self._plan(_checked(question)))

    def astream(self, question: str) -> AsyncIterator[StageEvent]:
        """:meth:`stream`, off the event loop."""
        return drive_async(self._plan(_checked(question)))

    def load(self) -> None:
        """Load the models of the reranker and the verifier now rather than at the first question.

        Raises:
            ModelError, MissingExtraError: one cannot be loaded.
        """
        for stage in (self._reranker, self._verifier):
            load = getattr(stage, "load", None)
            if callable(load):
                load()

    def _plan(self, question: str) -> Plan:
        """The stages: yields what is to be called, takes what it returns or raises, and yields events."""
        started = time.perf_counter()
        result = PipelineResult(question)
        for stage, steps in (
            (Stage.RETRIEVE, self._retrieving),
            (Stage.RERANK, self._ordering),
            (Stage.GENERATE, self._writing),
            (Stage.VERIFY, self._checking),
            (Stage.JUDGE, self._judging),
        ):
            if (stage is Stage.VERIFY and result.answer is None) or (
                stage is Stage.JUDGE
                and (self._judge is None or result.answer is None or result.cannot_answer)
            ):
                continue
            began = time.perf_counter()
            before = len(result.notes)
            result = yield from steps(result)
            seconds = time.perf_counter() - began
            result = replace(result, timings={**result.timings, str(stage): seconds})
            notes = result.notes[before:]
            failures = [note for note in notes if note.degrades]
            if failures and self._strict:
                raise StageError(stage, failures[0].detail or str(failures[0].code))
            yield StageEvent(stage, seconds, result, notes)
        seconds = time.perf_counter() - started
        result = replace(result, seconds=seconds)
        yield StageEvent(Stage.DONE, seconds, result, result.notes)

    def _retrieving(self, result: PipelineResult) -> Generator[Work, Any, PipelineResult]:
        try:
            found = yield Work(lambda: _listed(self._retrieve(result.question, self._k), self._k))
            retrieved = read_retrieved(found, self._k)
        except Exception as error:
            raise StageError(Stage.RETRIEVE, _said(error)) from error
        if any(source.text.strip() for source in retrieved):
            return replace(result, retrieved=retrieved)
        what = "every passage is empty" if retrieved else "no passage was found"
        return _noted(replace(result, retrieved=retrieved), Stage.RETRIEVE, StageCode.NO_PASSAGES, what)

    def _ordering(self, result: PipelineResult) -> Generator[Work, Any, PipelineResult]:
        question, sources = result.question, result.retrieved
        if not sources:
            return replace(result, ranked=Ranking(question, ()))
        try:
            found = yield Work(lambda: self._rerank(question, sources, self._top_k))
            ranked = read_ranking(found, question, sources, self._top_k)
        except Exception as error:  # noqa: BLE001 - an order that is the first stage's beats none; it is said
            ranked = first_stage_order(question, sources, self._top_k)
            ranked = replace(ranked, degraded=True, detail=_said(error))
        result = replace(result, ranked=ranked)
        if not ranked.degraded:
            return result
        return _noted(result, Stage.RERANK, StageCode.NOT_RERANKED, ranked.detail or "the order is partial")

    def _writing(self, result: PipelineResult) -> Generator[Work, Any, PipelineResult]:
        question, sources = result.question, result.sources
        if not any(source.text.strip() for source in sources):
            return replace(result, answer=REFUSAL, cannot_answer=True, draft=Draft(REFUSAL, "none"))
        if self._min_evidence > 0:
            strength = yield Work(lambda: evidence_strength(question, sources))
            result = replace(result, evidence=strength)
            if strength < self._min_evidence:
                said = f"evidence {strength:.2f} is below {self._min_evidence:.2f}"
                result = replace(result, answer=REFUSAL, cannot_answer=True, draft=Draft(REFUSAL, "none"))
                return _noted(result, Stage.GENERATE, StageCode.WEAK_EVIDENCE, said)
        generator = self._generator
        name = _name(generator)
        acall = generator.acall if isinstance(generator, ChatGenerator) else None
        try:
            made = yield Work(
                lambda: generator(question, sources),
                None if acall is None else lambda: acall(question, sources),
            )
            draft = read_draft(made, name)
        except EndpointError as error:
            draft = failed_draft(error, name)
        except Exception as error:
            raise StageError(Stage.GENERATE, _said(error)) from error
        cannot = draft.text is not None and _refuses(draft.text)
        notes = (*result.notes, *draft.notes)
        return replace(result, answer=draft.text, cannot_answer=cannot, draft=draft, notes=notes)

    def _checking(self, result: PipelineResult) -> Generator[Work, Any, PipelineResult]:
        answer, sources, question = result.answer, result.sources, result.question
        try:
            if self._verify_call is not None:
                call = self._verify_call
                report = yield Work(lambda: call(answer or "", sources, question))
            else:
                verifier, copies = self._verifier, numbered(sources)
                report = yield Work(lambda: verifier.verify(answer, copies, question=question))
                report = renamed(report, sources)
            if not isinstance(report, TruthfulnessReport):
                raise InputError(f"expected a report, got {type(report).__name__}")
        except Exception as error:  # noqa: BLE001 - fail closed: the answer stays, marked as unchecked
            return _noted(result, Stage.VERIFY, StageCode.VERIFIER_FAILED, _said(error))
        result = replace(result, report=report)
        if not report.degraded:
            return result
        why = ", ".join(dict.fromkeys(map(str, report.reasons))) or "part of the check was not carried out"
        return _noted(result, Stage.VERIFY, StageCode.CHECK_INCOMPLETE, why)

    def _judging(self, result: PipelineResult) -> Generator[Work, Any, PipelineResult]:
        from surefoot.judge import Judgement

        judge, answer, sources, question = self._judge, result.answer, result.sources, result.question
        acall: Callable[[], Any] | None = None
        if hasattr(judge, "judge"):
            ajudge = getattr(judge, "ajudge", None)
            call = lambda: judge.judge(sources, answer, question=question)  # noqa: E731
            if callable(ajudge):
                acall = lambda: ajudge(sources, answer, question=question)  # noqa: E731
        else:
            call = lambda: judge(sources, answer, question)  # noqa: E731
        try:
            judgement: Judgement = yield Work(call, acall)
            if not isinstance(judgement, Judgement):
                raise InputError(f"expected a judgement, got {type(judgement).__name__}")
        except Exception as error:  # noqa: BLE001 - fail closed: there is no score
            return _noted(result, Stage.JUDGE, StageCode.JUDGE_FAILED, _said(error))
        result = replace(result, judgement=judgement)
        if judgement.score is not None:
            return result
        why = judgement.detail or ", ".join(map(str, judgement.reasons)) or "no score"
        return _noted(result, Stage.JUDGE, StageCode.JUDGE_FAILED, why)

    def _generating(
        self, generator: ChatLike | GeneratorCall | None, max_context: int, max_answer: int
    ) -> Callable[..., Any]:
        if generator is None:
            return ExtractiveAnswerer(self._reranker if isinstance(self._reranker, Reranker) else None)
        if any(hasattr(generator, name) for name in ("complete", "invoke", "ainvoke")):
            return ChatGenerator(as_chat(generator), max_context, max_answer)
        if not callable(generator) or isinstance(generator, type):
            raise ConfigurationError(f"generator cannot be a {type(generator).__name__}")
        return generator


def _reranking(reranker: Any) -> Callable[[str, tuple[Source, ...], int], Any]:
    if hasattr(reranker, "rerank"):
        return lambda question, sources, top_k: reranker.rerank(question, sources, top_k=top_k)
    call = _method(reranker, "rerank", "reranker")
    return lambda question, sources, top_k: _listed(call(question, sources, top_k), top_k)


def _method(stage: Any, name: str, role: str) -> Callable[..., Any]:
    """The method of a stage of ours, or the callable of the caller's."""
    method = getattr(stage, name, stage)
    if not callable(method) or isinstance(stage, type):
        raise ConfigurationError(
            f"{role} cannot be a {type(stage).__name__}: it needs {name}(), or to be called"
        )
    return method  # type: ignore[no-any-return]


def _checked(question: object) -> str:
    if not isinstance(question, str):
        raise InputError(f"the question must be a string, not {type(question).__name__}")
    if not question.strip():
        raise InputError("the question is empty")
    return question


def _listed(found: Any, most: int) -> Any:
    """A generator is read here, where the stage runs, so that what it raises belongs to the stage."""
    if isinstance(found, Iterator):
        return [item for _, item in zip(range(most), found, strict=False)]
    return found


def _refuses(answer: str) -> bool:
    """Whether an answer says that there is none, and nothing that could be checked besides."""
    kinds = {segment.kind for segment in segment_answer(answer)}
    return ClaimKind.REFUSAL in kinds and ClaimKind.CLAIM not in kinds


def _noted(result: PipelineResult, stage: Stage, code: StageCode, detail: str) -> PipelineResult:
    return replace(result, notes=(*result.notes, StageNote(stage, code, detail)))


def _said(error: Exception) -> str:
    """What an error says, with its type where that is not one of ours."""
    text = str(error)[:1_000]
    return text if isinstance(error, SurefootError) else f"{type(error).__name__}: {text}".rstrip(": ")


def _name(generator: Any) -> str:
    if isinstance(generator, ChatGenerator):
        return generator.chat.model
    for key in ("model", "__name__"):
        if isinstance(name := getattr(generator, key, None), str):
            return name
    return type(generator).__name__

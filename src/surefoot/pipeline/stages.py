"""The stages of a pipeline, whatever they are: what is called, and what is made of what comes back."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from surefoot.endpoints.records import ChatLike, ChatReply
from surefoot.errors import (
    BudgetExceededError,
    EndpointError,
    EndpointTimeoutError,
    InputError,
)
from surefoot.pipeline.prompt import PROMPT_VERSION, build_prompt
from surefoot.pipeline.records import Draft, Stage, StageCode, StageNote
from surefoot.rerank.records import RankedSource, Ranking
from surefoot.schema import Claim, Source, TruthfulnessReport
from surefoot.sources import SourceLike, coerce_sources

if TYPE_CHECKING:
    from surefoot.judge import Judgement

__all__ = [
    "ChatGenerator",
    "GeneratorCall",
    "JudgeCall",
    "RerankerCall",
    "RetrieverCall",
    "VerifierCall",
    "VerifierLike",
    "failed_draft",
    "first_stage_order",
    "numbered",
    "read_draft",
    "read_ranking",
    "read_retrieved",
    "renamed",
]

RetrieverCall = Callable[[str, int], Iterable[SourceLike]]
"""(question, k) -> passages, best first: strings, mappings, sources, or hits of an index."""

RerankerCall = Callable[[str, Sequence[Source], int], Iterable[Source | RankedSource]]
"""(question, passages, top_k) -> the best of the passages, best first; or a whole ``Ranking``."""

GeneratorCall = Callable[[str, Sequence[Source]], str | Draft | Awaitable[str | Draft | None] | None]
"""(question, passages) -> an answer that cites ``passages[n - 1]`` as ``[Doc n]``."""

VerifierCall = Callable[[str, Sequence[Source], str], TruthfulnessReport]
"""(answer, passages, question) -> a report."""

JudgeCall = Callable[[Sequence[Source], str, str], "Judgement | Awaitable[Judgement]"]
"""(passages, answer, question) -> a judgement."""

_NUMBER_TITLE: Final = re.compile(r"\s*\d{1,9}(?:\.\w{1,5})?\s*")


class VerifierLike(Protocol):
    """A :class:`surefoot.Verifier`, or what has a method like its."""

    def verify(
        self, answer: str | None, sources: Iterable[SourceLike], *, question: str | None = None
    ) -> TruthfulnessReport:
        """The report on an answer."""
        ...


def read_retrieved(found: object, k: int) -> tuple[Source, ...]:
    """At most ``k`` passages as sources with distinct ids; a hit becomes the source of its passage.

    Raises:
        InputError: it is no list of passages.
    """
    from surefoot.retrieve.records import Hit

    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise InputError(f"expected a list of passages, got {type(found).__name__}")
    items: list[Any] = []
    for item in found:
        if len(items) == k:
            break
        if isinstance(item, Hit):
            source = item.to_source()
            items.append(replace(source, metadata={"score": item.score, **source.metadata}))
        else:
            items.append(item)
    return coerce_sources(items)[0]


def read_ranking(found: object, question: str, sources: Sequence[Source], top_k: int) -> Ranking:
    """What a reranker of the caller's returns, as a ranking of at most ``top_k`` passages.

    Raises:
        InputError: it holds something that is none of the passages, or one of them twice.
    """
    if isinstance(found, Ranking):
        return replace(found, sources=found.sources[:top_k])
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise InputError(f"expected a list of passages, got {type(found).__name__}")
    position = {source.id: index for index, source in enumerate(sources)}
    ranked: dict[int, RankedSource] = {}
    for item in found:
        if len(ranked) == top_k:
            break
        source = item.item if isinstance(item, RankedSource) else item
        index = position.get(source.id) if isinstance(source, Source) else None
        if index is None or index in ranked:
            raise InputError("it returned something that is none of the passages, or one of them twice")
        if isinstance(item, RankedSource):
            ranked[index] = replace(item, rank=len(ranked) + 1)
        else:
            ranked[index] = RankedSource(source, source.text, index, index + 1, len(ranked) + 1)
    return Ranking(question, tuple(ranked.values()), passages=len(sources))


def first_stage_order(question: str, sources: Sequence[Source], top_k: int) -> Ranking:
    """The passages as they came."""
    return read_ranking(sources, question, sources, top_k)


@dataclass(frozen=True, slots=True)
class ChatGenerator:
    """A chat model as a generator.

    Attributes:
        chat: the model.
        max_context_tokens: of the passages, see :func:`~surefoot.pipeline.prompt.build_prompt`.
        max_answer_tokens: of the answer.
    """

    chat: ChatLike
    max_context_tokens: int
    max_answer_tokens: int

    def __call__(self, question: str, sources: Sequence[Source]) -> Draft:
        """Ask the model; what its endpoint does wrong is in the notes."""
        messages, notes = self._asked(question, sources)
        if messages is None:
            return Draft(None, self.chat.model, PROMPT_VERSION, notes=notes)
        try:
            reply = self.chat.complete_sync(messages, max_tokens=self.max_answer_tokens)
        except EndpointError as error:
            return self._failed(error, notes)
        return self._read(reply, notes)

    async def acall(self, question: str, sources: Sequence[Source]) -> Draft:
        """The same without blocking."""
        messages, notes = self._asked(question, sources)
        if messages is None:
            return Draft(None, self.chat.model, PROMPT_VERSION, notes=notes)
        try:
            reply = await self.chat.complete(messages, max_tokens=self.max_answer_tokens)
        except EndpointError as error:
            return self._failed(error, notes)
        return self._read(reply, notes)

    def _asked(
        self, question: str, sources: Sequence[Source]
    ) -> tuple[tuple[dict[str, str], ...] | None, tuple[StageNote, ...]]:
        prompt = build_prompt(question, sources, max_tokens=self.max_context_tokens)
        if not prompt.left_out:
            return prompt.messages, ()
        numbers = ", ".join(map(str, prompt.left_out))
        detail = f"[Doc {numbers}] did not fit into {self.max_context_tokens} tokens"
        note = StageNote(Stage.GENERATE, StageCode.SOURCES_LEFT_OUT, detail)
        return prompt.messages if prompt.shown else None, (note,)

    def _failed(self, error: EndpointError, notes: tuple[StageNote, ...]) -> Draft:
        draft = failed_draft(error, self.chat.model)
        return replace(draft, prompt_version=PROMPT_VERSION, notes=(*notes, *draft.notes))

    def _read(self, reply: ChatReply, notes: tuple[StageNote, ...]) -> Draft:
        code: StageCode | None = None
        detail = ""
        text: str | None = reply.text
        if reply.refusal is not None or reply.finish_reason == "content_filter":
            # What was written before the filter stepped in is no answer.
            code, detail, text = StageCode.GENERATOR_REFUSED, (reply.refusal or "content_filter")[:300], None
        elif not reply.text.strip():
            code, detail, text = StageCode.EMPTY_ANSWER, "the model wrote nothing", None
        elif reply.finish_reason == "length":
            code, detail = StageCode.ANSWER_CUT, f"the answer ends at {self.max_answer_tokens} tokens"
        if code is not None:
            notes = (*notes, StageNote(Stage.GENERATE, code, detail))
        return Draft(text, reply.model, PROMPT_VERSION, usage=reply.usage, notes=notes)


def failed_draft(error: EndpointError, model: str) -> Draft:
    """No answer, and why."""
    if isinstance(error, EndpointTimeoutError):
        code = StageCode.GENERATOR_TIMEOUT
    elif isinstance(error, BudgetExceededError):
        code = StageCode.BUDGET_EXHAUSTED
    else:
        code = StageCode.GENERATOR_FAILED
    return Draft(None, model, usage=error.usage, notes=(StageNote(Stage.GENERATE, code, str(error)),))


def read_draft(made: object, model: str) -> Draft:
    """What a generator returns, as a draft.

    Raises:
        InputError: it is neither text nor a draft.
    """
    if isinstance(made, Draft):
        return made
    if made is not None and not isinstance(made, str):
        raise InputError(f"expected the answer as a string, got {type(made).__name__}")
    if made is None or not made.strip():
        note = StageNote(Stage.GENERATE, StageCode.EMPTY_ANSWER, "the generator returned nothing")
        return Draft(None, model, notes=(note,))
    return Draft(made, model)


def numbered(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources under the numbers that the answer knows them by.

    A check reads ``[Doc 2]`` as the source whose *id* is "2", where there is one: here it is the second.
    Titles that are numbers are left out for the same reason.
    """
    return tuple(
        Source(
            str(number),
            source.text,
            None if source.title is None or _NUMBER_TITLE.fullmatch(source.title) else source.title,
            source.metadata,
        )
        for number, source in enumerate(sources, start=1)
    )


def renamed(report: TruthfulnessReport, sources: Sequence[Source]) -> TruthfulnessReport:
    """A report on :func:`numbered` sources, as one on ``sources`` themselves."""
    ids = {str(number): source.id for number, source in enumerate(sources, start=1)}

    def name(source_id: str | None) -> str | None:
        return None if source_id is None else ids.get(source_id, source_id)

    def of(claim: Claim) -> Claim:
        return replace(
            claim,
            evidence=tuple(
                replace(item, source_id=ids.get(item.source_id, item.source_id)) for item in claim.evidence
            ),
            citations=tuple(
                replace(item, source_id=name(item.source_id), proposal=name(item.proposal))
                for item in claim.citations
            ),
            proposals=tuple(ids.get(item, item) for item in claim.proposals),
        )

    return replace(
        report,
        sources=tuple(sources),
        claims=tuple(map(of, report.claims)),
        citations=tuple(
            replace(item, source_id=name(item.source_id), proposal=name(item.proposal))
            for item in report.citations
        ),
    )

"""The judge: context and response in, a judgement out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from surefoot.endpoints.adapt import as_chat
from surefoot.endpoints.budget import Budget
from surefoot.endpoints.chat import ChatEndpoint
from surefoot.endpoints.decision import DecisionEndpoint
from surefoot.endpoints.loop import run_sync
from surefoot.endpoints.records import ChatLike, Usage
from surefoot.errors import ConfigurationError, InputError
from surefoot.judge.asking import Asker, ChatAsker, DecisionAsker, ReplyMode
from surefoot.judge.control import ControlMode
from surefoot.judge.prompts import PROMPT_VERSION, Material
from surefoot.judge.records import ClaimJudgement, Judgement, risk_of
from surefoot.judge.windows import Shown, estimate_tokens, select, whole, windows
from surefoot.judge.work import Unit, flags_of, judge_units
from surefoot.schema import ClaimKind, Reason, Source
from surefoot.segment import segment_answer
from surefoot.sources import SourceLike, coerce_sources

__all__ = ["ContextLike", "Judge", "ModelLike"]

ModelLike = str | ChatLike | DecisionEndpoint | Callable[..., Any]
"""The name of a model, an endpoint, a LangChain chat model or a function of a prompt."""

ContextLike = str | SourceLike | Iterable[SourceLike]

_LEAST_CONTEXT: Final = 256
_PROMPT_BYTES: Final = 4_096
"""More than the fixed part of the prompt has."""

_SURROUNDINGS: Final = 1_500
"""Tokens up to which a claim is shown together with the answer that it is part of."""

_INVENTIONS: Final = 2_500
"""Characters of the most inventions that a control has, in statement and answer together."""

_INLINE: Final = 20_000
"""Characters up to which a text is looked through right away; longer ones would hold up the event loop."""


class Judge:
    """Asks one or several language models how likely it is that a response is hallucinated.

    A judge may be used from many threads and event loops at once.

    Args:
        model: see :data:`ModelLike`; a sequence asks several models, each of which votes.
        base_url: of an OpenAI-compatible server, for models given by name.
        votes: replies of each model; the score is the median of all.
        reply: ``"schema"`` asks for JSON by a schema, ``"text"`` for a line of text, ``"logprobs"`` for one
            word whose probability is the score; ``"auto"`` takes a schema where there may be one.
        timeout: seconds for one attempt, for models given by name and functions.
        deadline_ms: milliseconds for a whole judgement; what is missing then is unknown.
        budget: for models given by name and functions; an endpoint has its own.
        max_context_tokens: of the sources in one call, estimated at a third of their bytes.
        max_tokens: of a reply.
        long_context: what happens to sources that are longer: ``"select"`` shows what speaks about the
            statement, and says ``partial_context``; ``"windows"`` shows all of it, window by window and
            claim by claim, and the best-supporting window counts.
        per_claim: judge each claim of the response by itself.
        on_attack: ``"flag"`` reports what looks like an attempt to influence the judge beside the score,
            ``"unknown"`` gives no score then.
        control: whether a low score is believed as it is. With ``"auto"``, a model that gave one (below 0.3)
            is asked once more, about the same text with a random invented statement put into it; if it calls
            that low risk as well, its score says nothing and is withheld. ``"always"`` asks at the same time
            as the question: more calls, but no more time. ``"never"`` does not. Decision models get the
            control as one more question of the same call, unless it is ``"never"``.

    Raises:
        ConfigurationError: an option cannot work.
        MissingExtraError: a model is given by name and the ``openai`` package is not installed.
    """

    def __init__(
        self,
        model: ModelLike | Sequence[ModelLike],
        *,
        base_url: str | None = None,
        votes: int = 1,
        reply: ReplyMode = "auto",
        timeout: float = 30.0,
        deadline_ms: float | None = None,
        budget: Budget | None = None,
        max_context_tokens: int = 8_000,
        max_tokens: int = 256,
        long_context: Literal["select", "windows"] = "select",
        per_claim: bool = False,
        on_attack: Literal["flag", "unknown"] = "flag",
        control: ControlMode = "auto",
    ) -> None:
        for name, value, least in (
            ("votes", votes, 1),
            ("max_context_tokens", max_context_tokens, _LEAST_CONTEXT),
            ("max_tokens", max_tokens, 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigurationError(f"{name} must be a whole number of at least {least}, not {value!r}")
        for name, choice, known in (
            ("reply", reply, ("auto", "schema", "text", "logprobs")),
            ("long_context", long_context, ("select", "windows")),
            ("on_attack", on_attack, ("flag", "unknown")),
            ("control", control, ("auto", "always", "never")),
        ):
            if choice not in known:
                raise ConfigurationError(f"{name} must be one of {', '.join(known)}, not {choice!r}")
        if deadline_ms is not None and not 0 < deadline_ms < float("inf"):
            raise ConfigurationError(f"deadline_ms must be a positive number, not {deadline_ms!r}")
        models = list(model) if isinstance(model, list | tuple) else [model]
        if not models:
            raise ConfigurationError("model must not be empty")
        self._askers: tuple[Asker, ...] = tuple(
            _asker(one, base_url=base_url, timeout=timeout, budget=budget, mode=reply, max_tokens=max_tokens)
            for one in models
        )
        self._votes = votes
        self._deadline = None if deadline_ms is None else deadline_ms / 1000.0
        self._room = max_context_tokens
        self._max_tokens = max_tokens
        self._long_context = long_context
        self._per_claim = per_claim
        self._distrust = on_attack == "unknown"
        self._control = control

    def __repr__(self) -> str:
        return f"Judge({self.model!r})"

    @property
    def model(self) -> str:
        """The models, joined by ``" + "``."""
        return " + ".join(asker.model for asker in self._askers)

    @property
    def prompt_version(self) -> str:
        """Version of the prompt text."""
        return PROMPT_VERSION

    @property
    def in_one_call(self) -> bool:
        """Whether all claims of an answer go in together, as they do to decision models."""
        return all(asker.in_one_call for asker in self._askers)

    @property
    def calls_per_claim(self) -> int:
        """Most replies that are asked for about one claim: votes of all models, and a control of each."""
        single = sum(not asker.in_one_call for asker in self._askers)
        return self._votes * len(self._askers) + (single if self._control != "never" else 0)

    def token_bound(self, sources: Sequence[Source], answer: str, claim: str, question: str | None) -> int:
        """Tokens that one call about a claim can use at most, reply included: one for each byte."""
        texts = [answer, claim, question or "", *(f"{source.title or ''}{source.text}" for source in sources)]
        # Every line and every run of brackets grows by a mark when it is quoted.
        if self._control != "never":  # the control may hold all claims of the answer, and an invention
            texts += [answer, " " * _INVENTIONS]
        size = sum(len(text.encode("utf-8", "replace")) + 2 * text.count("\n") + 64 for text in texts)
        return min(size, 4 * self._room + 8 * _SURROUNDINGS) * 2 + _PROMPT_BYTES + self._max_tokens

    def judge(self, context: ContextLike, response: str | None, *, question: str | None = None) -> Judgement:
        """:meth:`ajudge` for synchronous code; works where the thread already runs an event loop."""
        return run_sync(self.ajudge(context, response, question=question))

    def judge_claims(
        self,
        context: ContextLike,
        response: str | None,
        *,
        question: str | None = None,
        spans: Sequence[tuple[int, int]] | None = None,
    ) -> Judgement:
        """:meth:`ajudge_claims` for synchronous code; works where the thread already runs an event loop."""
        return run_sync(self.ajudge_claims(context, response, question=question, spans=spans))

    async def ajudge(
        self, context: ContextLike, response: str | None, *, question: str | None = None
    ) -> Judgement:
        """How likely it is that ``response`` says something that ``context`` does not.

        Args:
            context: text, or sources as for :meth:`surefoot.Verifier.verify`.
            response: ``None`` counts as empty.
            question: shown to the model.

        Returns:
            A judgement, whatever the endpoint does; its score is ``None`` where there was no valid reply.

        Raises:
            InputError: an argument has the wrong type.
            ConfigurationError: an option turns out not to work.
        """
        if self._per_claim:
            return await self.ajudge_claims(context, response, question=question)
        started = time.monotonic()
        sources, text = _checked(context, response, question)
        if problem := _empty(sources, text):
            return self._unknown(problem, started)
        if estimate_tokens(text) > self._room:
            return self._unknown(Reason.CLAIM_TOO_LONG, started)
        shown = whole(sources)
        if estimate_tokens(shown.text) > self._room:
            if self._long_context == "windows":
                return await self.ajudge_claims(context, response, question=question)
            claims = [text[start:end] for start, end in _claim_spans(text)] or [text]
            shown = await asyncio.to_thread(select, sources, claims, self._room)
            if not shown.text:
                shown = windows(sources, self._room)[0]
        material = Material(shown.text, text, question)
        unit = await _prepared(text, 0, len(text), [material], partial=shown.partial)
        (result,), usage = await self._run([unit], started)
        return self._judgement(result, usage, started)

    async def ajudge_claims(
        self,
        context: ContextLike,
        response: str | None,
        *,
        question: str | None = None,
        spans: Sequence[tuple[int, int]] | None = None,
        deadline: float | None = None,
    ) -> Judgement:
        """The same, claim by claim. Calls start in the order of the claims.

        Args:
            context: as for :meth:`ajudge`.
            response: as for :meth:`ajudge`.
            question: as for :meth:`ajudge`.
            spans: half-open ranges of ``response`` to judge, in code points; by default its claims, as
                :func:`surefoot.segment.segment_answer` finds them.
            deadline: value of ``time.monotonic()``, where it comes before that of ``deadline_ms``.

        Returns:
            A judgement with one entry in ``claims`` per span, in order.
        """
        started = time.monotonic()
        sources, text = _checked(context, response, question)
        if problem := _empty(sources, text):
            return self._unknown(problem, started)
        if spans is None:
            spans = _claim_spans(text)
        elif any(not 0 <= start <= end <= len(text) for start, end in spans):
            raise InputError("spans must lie within the response")
        if not spans:
            return self._unknown(Reason.NO_CHECKABLE_CLAIM, started)
        units = await self._units(sources, text, question, spans)
        results, usage = await self._run(units, started, deadline)
        scores = [result.score for result in results]
        score = None if None in scores else max(value for value in scores if value is not None)
        agreements = [result.agreement for result in results if result.agreement is not None]
        return Judgement(
            score=score,
            risk_level=risk_of(score),
            reasons=tuple(dict.fromkeys(reason for result in results for reason in result.reasons)),
            flags=tuple(sorted({flag for result in results for flag in result.flags})),
            agreement=min(agreements, default=None) if score is not None else None,
            claims=tuple(results),
            model=self.model,
            prompt_version=PROMPT_VERSION,
            usage=usage,
            seconds=time.monotonic() - started,
            detail=next((result.detail for result in results if result.detail), None),
        )

    async def _run(
        self, units: Sequence[Unit], started: float, deadline: float | None = None
    ) -> tuple[list[ClaimJudgement], Usage]:
        own = None if self._deadline is None else started + self._deadline
        limits = [limit for limit in (own, deadline) if limit is not None]
        return await judge_units(
            units,
            self._askers,
            votes=self._votes,
            deadline=min(limits, default=None),
            distrust=self._distrust,
            control=self._control,
        )

    async def _units(
        self,
        sources: Sequence[Source],
        text: str,
        question: str | None,
        spans: Sequence[tuple[int, int]],
    ) -> list[Unit]:
        shown = whole(sources)
        fits = estimate_tokens(shown.text) <= self._room
        every: list[Shown] = [shown]
        if not fits and self._long_context == "windows":
            every = windows(sources, self._room)
        surroundings = text if estimate_tokens(text) <= _SURROUNDINGS else None
        units: list[Unit] = []
        for start, end in spans:
            claim = text[start:end]
            if not claim.strip() or estimate_tokens(claim) > self._room:
                problem = Reason.CLAIM_TOO_LONG if claim.strip() else Reason.NOT_A_CLAIM
                units.append(Unit(claim, start, end, (), problem=problem))
                continue
            seen, partial = every, False
            if not fits and self._long_context == "select":
                seen = [await asyncio.to_thread(select, sources, [claim], self._room)]
                partial = True
                if not seen[0].text:  # no source speaks of it: some of them has to be shown all the same
                    seen = windows(sources, self._room)[:1]
            around = surroundings if claim.strip() != text.strip() else None
            materials = [Material(one.text, claim, question, around) for one in seen]
            units.append(await _prepared(claim, start, end, materials, partial=partial))
        return units

    def _judgement(self, result: ClaimJudgement, usage: Usage, started: float) -> Judgement:
        return Judgement(
            score=result.score,
            risk_level=result.risk_level,
            reasons=result.reasons,
            flags=result.flags,
            votes=result.votes,
            agreement=result.agreement,
            model=self.model,
            prompt_version=PROMPT_VERSION,
            usage=usage,
            seconds=time.monotonic() - started,
            detail=result.detail,
            controls=result.controls,
        )

    def _unknown(self, reason: Reason, started: float) -> Judgement:
        return Judgement(
            score=None,
            risk_level=risk_of(None),
            reasons=(reason,),
            model=self.model,
            prompt_version=PROMPT_VERSION,
            seconds=time.monotonic() - started,
        )


def _asker(
    model: Any,
    *,
    base_url: str | None,
    timeout: float,
    budget: Budget | None,
    mode: ReplyMode,
    max_tokens: int,
) -> Asker:
    if isinstance(model, str):
        endpoint = ChatEndpoint(model, base_url=base_url, timeout=timeout, budget=budget)
        return ChatAsker(endpoint, mode=mode, max_tokens=max_tokens, budget=None)
    if base_url is not None:
        raise ConfigurationError("base_url goes with the name of a model")
    if isinstance(model, ChatEndpoint | DecisionEndpoint) and budget is not None:
        raise ConfigurationError("an endpoint has its own budget: give it to the endpoint")
    if isinstance(model, DecisionEndpoint):
        return DecisionAsker(model)
    return ChatAsker(as_chat(model, timeout=timeout), mode=mode, max_tokens=max_tokens, budget=budget)


def _checked(
    context: ContextLike, response: str | None, question: str | None
) -> tuple[tuple[Source, ...], str]:
    for name, value in (("response", response), ("question", question)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"{name} must be a string or None, not {type(value).__name__}")
    alone = context is None or isinstance(context, str | Mapping | Source)
    records, _ = coerce_sources([context] if alone else context)  # type: ignore[list-item,arg-type]
    return records, response or ""


def _empty(sources: Sequence[Source], text: str) -> Reason | None:
    if not text.strip():
        return Reason.EMPTY_ANSWER
    return None if any(source.text.strip() for source in sources) else Reason.NO_SOURCES


def _claim_spans(text: str) -> list[tuple[int, int]]:
    return [(part.start, part.end) for part in segment_answer(text) if part.kind is ClaimKind.CLAIM]


async def _prepared(text: str, start: int, end: int, materials: Sequence[Material], *, partial: bool) -> Unit:
    texts = [text, materials[0].question, materials[0].answer, *(item.source for item in materials)]
    if sum(len(item) for item in texts if item) > _INLINE:
        flags = await asyncio.to_thread(flags_of, *texts)
    else:
        flags = flags_of(*texts)
    reasons = (Reason.PARTIAL_CONTEXT,) if partial else ()
    return Unit(text, start, end, tuple(materials), reasons, flags)

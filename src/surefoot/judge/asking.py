"""One question to one model: a vote, whatever happens on the way.

Nothing is raised here for what an endpoint does or fails to do: it becomes a vote without a score, and says
why. A wrong configuration is still raised: it is the caller's to mend.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar

from surefoot.endpoints.budget import Budget
from surefoot.endpoints.decision import DecisionEndpoint
from surefoot.endpoints.records import ChatLike, ChatReply, TokenLogprob, Usage
from surefoot.errors import (
    BudgetExceededError,
    EndpointError,
    EndpointTimeoutError,
    SurefootError,
)
from surefoot.judge.parsing import parse_reply
from surefoot.judge.prompts import SCORE_SCHEMA, Material, ReplyForm, build_decision, build_messages
from surefoot.judge.records import Vote
from surefoot.schema import Reason

__all__ = ["Asker", "Cast", "ChatAsker", "DecisionAsker", "ReplyMode"]

ReplyMode = Literal["auto", "schema", "text", "logprobs"]

_WORD_TOKENS: Final = 4
_LEAST_MASS: Final = 0.5
"""Probability that "yes" and "no" together need, before their ratio is taken for an answer."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cast:
    """A vote and what it used."""

    vote: Vote
    usage: Usage


class Asker(Protocol):
    """A model that can be asked about statements."""

    @property
    def model(self) -> str:
        """Its name."""
        ...

    @property
    def in_one_call(self) -> bool:
        """Whether statements about the same source go in together."""
        ...

    async def ask(self, materials: Sequence[Material], deadline: float | None) -> list[Cast]:
        """One vote per statement, in order.

        Args:
            materials: with the same source, question and answer.
            deadline: value of ``time.monotonic()``.
        """
        ...


class ChatAsker:
    """A chat model.

    Args:
        chat: see :func:`surefoot.endpoints.as_chat`.
        mode: how it is to reply; ``"auto"`` asks for a schema where the model may have one.
        max_tokens: of a reply.
        budget: for models that do not have their own.
    """

    in_one_call = False

    def __init__(self, chat: ChatLike, *, mode: ReplyMode, max_tokens: int, budget: Budget | None) -> None:
        self._chat = chat
        self._mode = mode
        self._max_tokens = max_tokens
        self._budget = budget

    @property
    def model(self) -> str:
        """Its name."""
        return self._chat.model

    async def ask(self, materials: Sequence[Material], deadline: float | None) -> list[Cast]:
        """One call per statement; the calls run at the same time, as far as the endpoint allows."""
        return list(await asyncio.gather(*(self._one(material, deadline) for material in materials)))

    async def _one(self, material: Material, deadline: float | None) -> Cast:
        form = self._form()
        messages = build_messages(material, form).messages
        reservation = None
        usage: Usage | None = None
        try:
            if self._budget is not None:
                tokens = sum(len(message["content"].encode("utf-8", "replace")) + 16 for message in messages)
                reservation = self._budget.reserve(tokens + self._max_tokens, None)
            reply = await _within(
                self._chat.complete(
                    messages,
                    max_tokens=_WORD_TOKENS if form == "word" else self._max_tokens,
                    schema=SCORE_SCHEMA if form == "schema" else None,
                    logprobs=form == "word",
                    deadline=deadline,
                ),
                deadline,
            )
            usage = reply.usage
        except EndpointError as error:
            usage = _usage_of(error)
            return Cast(_failed(self.model, error), usage)
        except SurefootError:
            raise
        except Exception as error:  # noqa: BLE001 - a chat of the caller's own may raise anything
            # The message of a foreign exception may hold secrets: only its type is told.
            failure = EndpointError(f"{self.model}: the model raised {type(error).__name__}")
            return Cast(_failed(self.model, failure), Usage())
        finally:
            if reservation is not None and self._budget is not None:
                self._budget.settle(reservation, usage)
        return Cast(_read(reply, form), reply.usage)

    def _form(self) -> ReplyForm:
        if self._mode == "logprobs":
            return "word"
        if self._mode == "auto" and self._chat.supports_schema is False:
            return "text"
        return "text" if self._mode == "text" else "schema"


class DecisionAsker:
    """A decision model: all statements about one source in one call."""

    in_one_call = True

    def __init__(self, endpoint: DecisionEndpoint) -> None:
        self._endpoint = endpoint

    @property
    def model(self) -> str:
        """Its name."""
        return self._endpoint.model

    async def ask(self, materials: Sequence[Material], deadline: float | None) -> list[Cast]:
        """One call; the score is one minus the probability that the statement is supported."""
        state, questions = build_decision(materials)
        try:
            reply = await _within(self._endpoint.decide(state, questions, deadline=deadline), deadline)
        except EndpointError as error:
            used = [_usage_of(error)] + [Usage()] * (len(materials) - 1)
            vote = _failed(self.model, error)
            return [Cast(vote, usage) for usage in used]
        casts = []
        for at in range(len(materials)):
            vote = Vote(reply.model, round(1.0 - reply.probabilities[str(at)], 12))
            casts.append(Cast(vote, Usage() if at else reply.usage))
        return casts


async def _within(call: Awaitable[T], deadline: float | None) -> T:
    """Endpoints keep deadlines themselves; this holds for those that do not."""
    try:
        async with asyncio.timeout(
            None if deadline is None else max(0.0, deadline - time.monotonic()) + 0.05
        ):
            return await call
    except EndpointError:
        raise
    except TimeoutError:
        raise EndpointTimeoutError("no reply before the deadline") from None


def _usage_of(error: EndpointError) -> Usage:
    return error.usage if isinstance(error.usage, Usage) else Usage()


def _failed(model: str, error: EndpointError) -> Vote:
    if isinstance(error, BudgetExceededError):
        reason = Reason.BUDGET_EXHAUSTED
    elif isinstance(error, EndpointTimeoutError):
        reason = Reason.JUDGE_TIMEOUT
    else:
        reason = Reason.JUDGE_FAILED
    return Vote(model, None, (reason,), str(error))


def _read(reply: ChatReply, form: ReplyForm) -> Vote:
    if form == "word" and reply.refusal is None and reply.finish_reason != "content_filter":
        score = _from_logprobs(reply.logprobs)
        if score is not None:
            return Vote(reply.model, score)
        detail = "no probabilities of yes and no in the reply"
        return Vote(reply.model, None, (Reason.JUDGE_REPLY_INVALID,), detail)
    parsed = parse_reply(reply.text, finish_reason=reply.finish_reason, refusal=reply.refusal)
    return Vote(reply.model, parsed.score, parsed.reasons, parsed.detail)


def _from_logprobs(tokens: Sequence[TokenLogprob] | None) -> float | None:
    """Probability of "yes" against "no" at the first token that is a word; ``None`` where it is neither."""
    first = next((token for token in tokens or () if token.token.strip(" \n\t\"'*▁Ġ")), None)
    if first is None:
        return None
    mass = {"yes": 0.0, "no": 0.0}
    seen: set[str] = set()
    for token, logprob in (*first.top, (first.token, first.logprob)):
        word: Any = token.strip(" \n\t\"'*.▁Ġ").lower()
        if token in seen or word not in mass or math.isnan(logprob):
            continue
        seen.add(token)
        mass[word] += math.exp(min(logprob, 0.0))
    total = mass["yes"] + mass["no"]
    return mass["yes"] / total if total >= _LEAST_MASS else None

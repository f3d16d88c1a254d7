"""What goes to an endpoint and what comes back: messages, replies and what they used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["ChatLike", "ChatReply", "DecisionReply", "Message", "TokenLogprob", "Usage"]

Message = Mapping[str, str]
"""``{"role": "system" | "user" | "assistant", "content": text}``."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one or more calls used.

    Attributes:
        calls: requests that were sent, retries included.
        input_tokens: tokens read, as the endpoint reported them, else estimated from above.
        output_tokens: tokens written, likewise.
        cost: money in the currency of the prices given to the endpoint; ``None`` where a price is unknown.
        seconds: wall time of the calls, waiting for a free slot and for retries included. For a sum of
            concurrent calls this is more than the time that passed.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0

    def __add__(self, other: object) -> Usage:
        """The sum; its cost is unknown as soon as that of one part is, unless that part has no calls."""
        if not isinstance(other, Usage):
            return NotImplemented
        costs = [part.cost for part in (self, other) if part.calls or part.cost is not None]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=sum(known) if known and len(known) == len(costs) else None,
            seconds=self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token of a reply.

    Attributes:
        token: its text.
        logprob: natural logarithm of its probability; at most 0.
        top: (token, logarithm) of the most likely alternatives, in the order of the endpoint.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A complete reply of a chat model.

    Attributes:
        text: what the model wrote; empty where it refused.
        model: the name of the model as the endpoint gave it, else as it was asked for.
        usage: of this call.
        finish_reason: ``"stop"``, ``"length"`` (cut at ``max_tokens``), ``"content_filter"`` ...; ``None``
            where the endpoint does not tell.
        refusal: why the model refused, in its own words or ``"content_filter"``; ``None`` where it did not.
        logprobs: one entry for each token; ``None`` where not asked for or not offered.
    """

    text: str
    model: str
    usage: Usage
    finish_reason: str | None = None
    refusal: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


@dataclass(frozen=True, slots=True)
class DecisionReply:
    """The reply of a decision model.

    Attributes:
        probabilities: for each question its probability of "yes", in [0, 1].
        model: the name of the model as the endpoint gave it, else as it was asked for.
        usage: of this call.
    """

    probabilities: Mapping[str, float]
    model: str
    usage: Usage = field(default_factory=Usage)


class ChatLike(Protocol):
    """Anything that answers a chat; see :func:`surefoot.endpoints.as_chat`."""

    @property
    def model(self) -> str:
        """Name of the model, for results and messages."""
        ...

    @property
    def supports_schema(self) -> bool | None:
        """Whether replies can be held to a schema; ``None`` until a call has shown it."""
        ...

    @property
    def supports_logprobs(self) -> bool | None:
        """Whether replies come with log probabilities; ``None`` until a call has shown it."""
        ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        logprobs: bool = False,
        deadline: float | None = None,
    ) -> ChatReply:
        """The reply to ``messages``; see :meth:`surefoot.endpoints.ChatEndpoint.complete`."""
        ...

    def complete_sync(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        logprobs: bool = False,
        deadline: float | None = None,
    ) -> ChatReply:
        """The same for callers without an event loop, or inside one that they do not want to use."""
        ...

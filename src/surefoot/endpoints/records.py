"""What goes to an endpoint and what comes back: requests, replies, and what they used."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, Protocol, TypedDict, Unpack

from surefoot.checks import check_whole
from surefoot.errors import ConfigurationError, InputError

__all__ = [
    "ChatLike",
    "ChatOptions",
    "ChatReply",
    "ChatRequest",
    "DecisionReply",
    "Message",
    "TokenLogprob",
    "Usage",
    "check_deadline",
    "time_left",
]

Message = Mapping[str, str]
"""``{"role": "system" | "developer" | "user" | "assistant", "content": text}``."""

_ROLES: Final = ("assistant", "developer", "system", "user")


@dataclass(frozen=True, slots=True)
class Usage:
    """What one or more calls used.

    Attributes:
        calls: requests that were sent, including retries.
        input_tokens: tokens read, as reported by the endpoint; otherwise an upper bound.
        output_tokens: tokens written, likewise.
        cost: money, in the currency of the endpoint's prices; ``None`` if a price is unknown.
        seconds: wall time of the calls, including retries and waiting for a free place. The sum over
            concurrent calls is more than the time that passed.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        """The sum. Its cost is unknown if the cost of a part with calls is unknown."""
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
        top: (token, logarithm) of the most likely alternatives, in the endpoint's order.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class ChatOptions(TypedDict, total=False):
    """The options of a call to a chat model; :class:`ChatRequest` describes them."""

    max_tokens: int
    schema: Mapping[str, Any] | None
    logprobs: bool
    deadline: float | None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A checked request to a chat model.

    Attributes:
        messages: the conversation; at least one message.
        max_tokens: limit on the tokens of the reply.
        schema: JSON Schema for the reply. OpenAI's strict mode requires every property to be listed in
            ``required``, and ``additionalProperties`` to be false. A server that does not support schemas is
            asked without one, so check the reply in any case.
        logprobs: ask for the log probability of each token; the reply has them if the server supports it.
        deadline: value of ``time.monotonic()`` by which the call ends, whatever happens. Waiting for a free
            place, attempts and pauses between them are included.

    Raises:
        InputError: there is no message, or one has an unknown role or a content that is not a string.
        ConfigurationError: an option has an invalid value.
    """

    messages: Sequence[Message]
    max_tokens: int = 256
    schema: Mapping[str, Any] | None = None
    logprobs: bool = False
    deadline: float | None = None

    def __post_init__(self) -> None:
        check_whole(max_tokens=self.max_tokens)
        check_deadline(self.deadline)
        if self.schema is not None:
            try:
                copied = json.loads(json.dumps(dict(self.schema), allow_nan=False))
            except (TypeError, ValueError, RecursionError):
                raise ConfigurationError("schema cannot be written as JSON") from None
            object.__setattr__(self, "schema", copied)
        if isinstance(self.messages, str | Mapping) or not self.messages:
            raise InputError("messages must be a non-empty list of {'role': ..., 'content': ...}")
        for message in self.messages:
            if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
                raise InputError(f"a message needs a role, one of {', '.join(_ROLES)}")
            if not isinstance(message.get("content"), str):
                raise InputError("the content of a message must be a string")
        copies = [{"role": item["role"], "content": item["content"]} for item in self.messages]
        object.__setattr__(self, "messages", copies)


def check_deadline(deadline: float | None) -> None:
    """Refuse a deadline that is neither ``None`` nor a number; NaN would count as "never".

    Raises:
        ConfigurationError: says so.
    """
    if deadline is not None and not (isinstance(deadline, int | float) and deadline == deadline):
        raise ConfigurationError("deadline must be a value of time.monotonic()")


def time_left(deadline: float | None) -> float:
    """Seconds until ``deadline``, negative after it; many if it is ``None``."""
    return 1e9 if deadline is None else min(1e9, deadline - monotonic())


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A complete reply of a chat model.

    Attributes:
        text: what the model wrote; empty if it refused.
        model: name of the model as given by the endpoint, otherwise as asked for.
        usage: of this call.
        finish_reason: ``"stop"``, ``"length"`` (cut at ``max_tokens``), ``"content_filter"`` ...; ``None`` if
            the endpoint does not say.
        refusal: why the model refused, in its own words, or ``"content_filter"``; ``None`` if it did not.
        logprobs: one entry per token; ``None`` if not asked for or not supported.
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
        probabilities: the probability of "yes" for each question, in [0, 1].
        model: name of the model as given by the endpoint, otherwise as asked for.
        usage: of this call.
    """

    probabilities: Mapping[str, float]
    model: str
    usage: Usage = field(default_factory=Usage)


class ChatLike(Protocol):
    """A chat model; :func:`surefoot.endpoints.as_chat` makes one of what you have."""

    @property
    def model(self) -> str:
        """Name of the model, for results and messages."""
        ...

    @property
    def supports_schema(self) -> bool | None:
        """Whether replies can be held to a schema; ``None`` if not known yet."""
        ...

    async def complete(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatReply:
        """The reply to ``messages``; :class:`ChatRequest` describes the options."""
        ...

    def complete_sync(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatReply:
        """:meth:`complete` for synchronous code, with or without a running event loop."""
        ...

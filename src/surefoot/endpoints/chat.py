"""OpenAI-compatible chat models: OpenAI, Azure, Ollama, vLLM, llama.cpp and others of that shape."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack
from urllib.parse import quote

from surefoot.endpoints.calls import Endpoint, EndpointOptions, Limits, token_bound
from surefoot.endpoints.http import Host, Outcome, read_key
from surefoot.endpoints.loop import run, run_sync
from surefoot.endpoints.records import ChatOptions, ChatReply, ChatRequest, Message, TokenLogprob, Usage
from surefoot.endpoints.wire import printable
from surefoot.errors import ConfigurationError

__all__ = ["Chat", "ChatEndpoint"]

_DEFAULT_URL: Final = "https://api.openai.com/v1"

_FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "logprobs": ("logprobs",),
    "json_schema": ("response_format", "json_schema", "json_object"),
    "json_object": ("response_format", "json_schema", "json_object"),
    "max_tokens": ("max_completion_tokens",),
    "temperature": ("temperature",),
    "seed": ("seed",),
}
"""Optional parts of a request, and the words in a complaint about each. Not all servers support them."""

_GUESSED: Final = ("logprobs", "json_schema", "json_object")
"""What is left out, in this order, if a complaint does not say what it is about."""


class Chat:
    """Base of what answers a chat: both forms of the call."""

    async def complete(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatReply:
        """The reply of the model.

        Args:
            messages: ``{"role": ..., "content": ...}``.
            options: ``max_tokens``, ``schema``, ``logprobs`` and ``deadline``; see
                :class:`~surefoot.endpoints.records.ChatRequest`.

        Raises:
            InputError: a message has the wrong shape.
            ConfigurationError: an option has an invalid value.
            EndpointTimeoutError: no reply in time.
            EndpointUnavailableError: no connection, 429 or 5xx after all retries, or the function raised.
            EndpointRejectedError: the server does not accept the request.
            EndpointReplyError: the reply is invalid, or larger than 1 MiB.
            BudgetExceededError: the call might exceed the budget.
        """
        return await run(self._reply(ChatRequest(messages, **options), asyncio.get_running_loop()))

    def complete_sync(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatReply:
        """:meth:`complete` for synchronous code, with or without a running event loop."""
        return run_sync(self._reply(ChatRequest(messages, **options), None))

    async def _reply(self, request: ChatRequest, callers_loop: asyncio.AbstractEventLoop | None) -> ChatReply:
        """The reply; runs on the shared loop."""
        raise NotImplementedError


class ChatEndpoint(Endpoint, Chat):
    """A chat model behind an OpenAI-compatible API.

    Args:
        model: name of the model, or of the deployment on Azure.
        base_url: address of the API, up to and including ``/v1``; by default ``OPENAI_BASE_URL``, otherwise
            OpenAI. A user and password in it are sent as basic authentication.
        api_key: the key; by default from the environment.
        api_key_env: environment variable with the key; ``None`` reads none. With ``azure_endpoint``,
            ``AZURE_OPENAI_API_KEY`` comes first. Local servers need no key.
        azure_endpoint: address of an Azure resource, instead of ``base_url``.
        api_version: of Azure; required with ``azure_endpoint``.
        headers: sent with every request.
        temperature: 0 by default, for reproducible replies; ``None`` sends none.
        seed: for servers that support one.
        options: ``timeout``, ``retries``, ``concurrency``, ``budget``, ``input_price``, ``output_price``; see
            :class:`~surefoot.endpoints.calls.Limits`.

    Raises:
        ConfigurationError: an option has an invalid value, or there is neither a key nor a ``base_url``.
        MissingExtraError: the extra ``judge`` is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = "OPENAI_API_KEY",
        azure_endpoint: str | None = None,
        api_version: str | None = None,
        headers: Mapping[str, str] | None = None,
        temperature: float | None = 0.0,
        seed: int | None = None,
        **options: Unpack[EndpointOptions],
    ) -> None:
        if azure_endpoint is not None:
            if base_url is not None or not api_version:
                raise ConfigurationError("azure_endpoint needs api_version, and excludes base_url")
            key = read_key(api_key, "AZURE_OPENAI_API_KEY", api_key_env)
            host = Host(
                azure_endpoint, option="azure_endpoint", key=key, key_header="api-key", headers=headers
            )
            version = quote(api_version, safe="")
            self._path = (
                f"/openai/deployments/{quote(str(model), safe='')}/chat/completions?api-version={version}"
            )
        else:
            key = read_key(api_key, api_key_env)
            given = base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT_URL
            host = Host(given, key=key, headers=headers)
            self._path = "/chat/completions"
        if key is None and not headers and (azure_endpoint or host.url == _DEFAULT_URL):
            raise ConfigurationError(
                f"{host.name} needs an API key: pass api_key, or set {api_key_env or 'api_key_env'}"
            )
        super().__init__(model, host, Limits(**options))
        self._temperature = temperature
        self._seed = seed
        self._lacks: frozenset[str] = frozenset()
        self._schema_seen = False

    @property
    def supports_schema(self) -> bool | None:
        """Whether the server accepts a schema; ``None`` until a call has shown it."""
        if {"json_schema", "json_object"} <= self._lacks:
            return False
        return True if self._schema_seen else None

    async def _reply(self, request: ChatRequest, callers_loop: asyncio.AbstractEventLoop | None) -> ChatReply:
        del callers_loop
        tokens = token_bound(message["content"] for message in request.messages)
        if request.schema is not None:
            tokens += token_bound([str(request.schema)])
        lacks = self._lacks
        async with self.calling(request.deadline) as call:
            while True:
                sent, body = self._body(request, lacks)
                outcome = await call.send(
                    self._path,
                    body,
                    input_tokens=tokens,
                    output_tokens=request.max_tokens,
                    final=partial(_names_a_feature, sent),
                )
                if 200 <= (outcome.status or 0) < 300:
                    break
                less = _rejected(outcome, sent)
                if less is None:
                    break
                lacks |= {less}
            reply = call.read(
                outcome, lambda parsed: _completion(parsed, self.model), shape="chat completion"
            )
            usage = call.usage()
        # Only now: requests are rejected for other reasons too, and then leaving out a part does not help.
        self._schema_seen |= "response_format" in body
        self._lacks |= lacks
        return replace(reply, usage=usage)

    def _body(self, request: ChatRequest, lacks: frozenset[str]) -> tuple[list[str], dict[str, Any]]:
        """The optional parts of a request that are not among ``lacks``, and the request."""
        schema = request.schema
        parts: dict[str, dict[str, Any]] = {"max_tokens": {"max_tokens": request.max_tokens}}
        if request.logprobs:
            parts["logprobs"] = {"logprobs": True, "top_logprobs": 5}
        if schema is not None and "json_schema" not in lacks:
            described = {"name": "reply", "schema": schema, "strict": True}
            parts["json_schema"] = {"response_format": {"type": "json_schema", "json_schema": described}}
        elif schema is not None:  # the way of llama-cpp-python and others
            parts["json_object"] = {"response_format": {"type": "json_object", "schema": schema}}
        if self._temperature is not None:
            parts["temperature"] = {"temperature": self._temperature}
        if self._seed is not None:
            parts["seed"] = {"seed": self._seed}
        sent = [name for name in parts if name not in lacks]
        body: dict[str, Any] = {"model": self.model, "messages": request.messages}
        if "max_tokens" in lacks:  # reasoning models of OpenAI
            body["max_completion_tokens"] = request.max_tokens
        for name in sent:
            body |= parts[name]
        return sent, body


def _complaint(outcome: Outcome) -> str:
    return outcome.body[:8192].decode("utf-8", "replace").lower()


def _blamed(outcome: Outcome, sent: Sequence[str]) -> str | None:
    """The part of a request that a complaint names."""
    text = _complaint(outcome)
    return next(
        (name for name in _FEATURES if name in sent and any(w in text for w in _FEATURES[name])), None
    )


def _names_a_feature(sent: Sequence[str], outcome: Outcome) -> bool:
    # llama-cpp-python answers 500 to a response_format that it does not know.
    return outcome.status in {500, 501} and _blamed(outcome, sent) in _GUESSED


def _rejected(outcome: Outcome, sent: Sequence[str]) -> str | None:
    """The part of a request to leave out next; ``None`` if none is left, or if the text was not accepted."""
    if outcome.status not in {400, 422, 500, 501} or "content_filter" in _complaint(outcome):
        return None
    return _blamed(outcome, sent) or next((name for name in _GUESSED if name in sent), None)


def _completion(parsed: Any, model: str) -> ChatReply:
    """The reply in the JSON of a chat completion.

    Raises:
        ValueError: it holds none; the message says why. Also TypeError, KeyError and AttributeError.
    """
    if "choices" not in parsed and parsed.get("error"):
        raise ValueError("an error with a status of success")
    if not isinstance(parsed["choices"], list) or not parsed["choices"]:
        raise ValueError("no choices")
    choice = parsed["choices"][0]
    message = choice["message"]
    content, refusal, finish = message.get("content"), message.get("refusal"), choice.get("finish_reason")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") in {"text", "output_text"})
    if refusal is not None and not isinstance(refusal, str):
        raise ValueError("the refusal is not text")
    if not refusal and finish == "content_filter":
        refusal = "content_filter"
    if content is None and (refusal or finish == "length"):
        content = ""  # nothing was written: it refused, or used up its tokens with thinking
    if not isinstance(content, str):
        raise ValueError("no content")
    named = parsed.get("model")
    return ChatReply(
        text=printable(content),
        model=printable(named) if isinstance(named, str) and named else model,
        usage=Usage(),
        finish_reason=finish if isinstance(finish, str) else None,
        refusal=printable(refusal) if refusal else None,
        logprobs=_logprobs(choice.get("logprobs")),
    )


def _logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    """The log probabilities of a choice; ``None`` if missing or of another shape."""
    try:
        tokens = [
            TokenLogprob(*_pair(entry), tuple(map(_pair, entry.get("top_logprobs") or ())))
            for entry in value["content"]
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return tuple(tokens) or None


def _pair(entry: Any) -> tuple[str, float]:
    token, log = entry["token"], entry["logprob"]
    # Rounding makes some servers report a little more than 0. NaN fails the comparison.
    if not isinstance(token, str) or isinstance(log, bool) or not -1e9 <= log <= 1e-3:
        raise ValueError("not a token with the logarithm of a probability")
    return printable(token), min(0.0, float(log))

"""OpenAI-compatible chat models: OpenAI, Azure, Ollama, vLLM, llama.cpp and others of that shape."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from surefoot.endpoints.budget import Budget
from surefoot.endpoints.calls import Caller, Ledger, Limits, check_deadline, parse_json, printable
from surefoot.endpoints.completion import read_completion
from surefoot.endpoints.features import Features
from surefoot.endpoints.http import Address, HttpClient, Outcome, read_key
from surefoot.endpoints.loop import run, run_sync
from surefoot.endpoints.records import ChatReply, Message
from surefoot.errors import ConfigurationError, EndpointReplyError, InputError

__all__ = ["ChatEndpoint", "check_messages", "token_bound"]

_DEFAULT_URL: Final = "https://api.openai.com/v1"
_MESSAGE_TOKENS: Final = 16
"""Tokens that a chat template puts around one message, from above."""

_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})


class ChatEndpoint:
    """A chat model behind an OpenAI-compatible API.

    Args:
        model: name of the model, or of the deployment on Azure.
        base_url: address of the API up to and with ``/v1``; ``OPENAI_BASE_URL``, else OpenAI, by default.
            User and password in it are sent as basic authentication.
        api_key: the key; by default from the environment.
        api_key_env: environment variable with the key; ``None`` reads none. With ``azure_endpoint``,
            ``AZURE_OPENAI_API_KEY`` comes first. Local servers need no key.
        azure_endpoint: address of an Azure resource, instead of ``base_url``.
        api_version: of Azure; required with ``azure_endpoint``.
        timeout: seconds for one attempt, from the connection to the last byte.
        retries: further attempts after timeouts, lost connections, 408, 409, 429 and 5xx.
        concurrency: calls at a time, over all threads and event loops.
        budget: see :class:`Budget`; may be shared with other endpoints.
        input_price: money for a million input tokens.
        output_price: money for a million output tokens.
        headers: sent with every request.
        temperature: 0 by default, for replies that can be reproduced; ``None`` sends none.
        seed: for servers that have one.

    Raises:
        ConfigurationError: an option cannot work, or there is neither a key nor a ``base_url``.
        MissingExtraError: the ``openai`` package is not installed.
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
        timeout: float = 30.0,
        retries: int = 2,
        concurrency: int = 8,
        budget: Budget | None = None,
        input_price: float | None = None,
        output_price: float | None = None,
        headers: Mapping[str, str] | None = None,
        temperature: float | None = 0.0,
        seed: int | None = None,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ConfigurationError("model must be the name of a model")
        if azure_endpoint is not None and (base_url is not None or not api_version):
            raise ConfigurationError("azure_endpoint needs api_version, and excludes base_url")
        self.model = printable(model)
        limits = Limits(
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
            budget=budget,
            input_price=input_price,
            output_price=output_price,
        )
        if azure_endpoint is not None:
            address = Address.parse(azure_endpoint, option="azure_endpoint")
            key = read_key(api_key, "AZURE_OPENAI_API_KEY", api_key_env)
        else:
            given = base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT_URL
            address = Address.parse(given)
            key = read_key(api_key, api_key_env)
        if key is None and not headers and (azure_endpoint or address.url == _DEFAULT_URL):
            raise ConfigurationError(
                f"{address.host} needs an API key: pass api_key, or set {api_key_env or 'api_key_env'}"
            )
        http = HttpClient(
            address,
            key=key,
            headers=headers,
            api_version=api_version if azure_endpoint is not None else None,
            connections=concurrency,
            timeout=timeout,
        )
        self._caller = Caller(http, limits)
        self._temperature = temperature
        self._seed = seed
        self._features = Features()
        self._schema_seen = False
        self._logprobs_seen: bool | None = None

    def __repr__(self) -> str:
        return f"ChatEndpoint({self.model!r}, host={self._caller.http.host!r})"

    @property
    def budget(self) -> Budget | None:
        """The budget that this endpoint was given."""
        return self._caller.limits.budget

    @property
    def supports_schema(self) -> bool | None:
        """Whether the server accepts a schema; ``None`` until a call has shown it."""
        if self._features.schema is None:
            return False
        return True if self._schema_seen else None

    @property
    def supports_logprobs(self) -> bool | None:
        """Whether the server returns log probabilities; ``None`` until a call has shown it."""
        return self._logprobs_seen if self._features.logprobs else False

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        logprobs: bool = False,
        deadline: float | None = None,
    ) -> ChatReply:
        """The reply of the model.

        Args:
            messages: ``{"role": ..., "content": ...}``.
            max_tokens: most tokens of the reply.
            schema: JSON Schema that the reply shall follow. For OpenAI's strict mode every property must be
                required and ``additionalProperties`` false. A server that accepts no schema is asked without:
                check the reply all the same.
            logprobs: ask for the log probability of each token; the reply has them where the server offers.
            deadline: value of ``time.monotonic()`` by which the call ends, whatever happens: waiting for a
                slot, attempts and pauses between them included.

        Raises:
            InputError: a message has the wrong shape.
            ConfigurationError: ``max_tokens`` or ``deadline`` is no such number.
            EndpointTimeoutError: too late.
            EndpointUnavailableError: no connection, 429 or 5xx to the last.
            EndpointRejectedError: the server does not accept the request.
            EndpointReplyError: the reply is not one, or larger than 1 MiB.
            BudgetExceededError: the call might exceed the budget.
        """
        return await run(self._complete(*self._checked(messages, max_tokens, schema, logprobs, deadline)))

    def complete_sync(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        logprobs: bool = False,
        deadline: float | None = None,
    ) -> ChatReply:
        """:meth:`complete` for synchronous code; works where the thread already runs an event loop."""
        return run_sync(self._complete(*self._checked(messages, max_tokens, schema, logprobs, deadline)))

    async def aclose(self) -> None:
        """Close the connections. The endpoint stays usable and opens new ones."""
        await run(self._caller.http.close())

    def close(self) -> None:
        """:meth:`aclose` for synchronous code."""
        run_sync(self._caller.http.close())

    def _checked(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        schema: Mapping[str, Any] | None,
        logprobs: bool,
        deadline: float | None,
    ) -> tuple[list[dict[str, str]], int, Mapping[str, Any] | None, bool, float | None]:
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise ConfigurationError("max_tokens must be a whole number of at least 1")
        check_deadline(deadline)
        copied = None
        if schema is not None:
            try:
                copied = json.loads(printable(json.dumps(dict(schema), ensure_ascii=False, allow_nan=False)))
            except (TypeError, ValueError, RecursionError):
                raise ConfigurationError("schema cannot be written as JSON") from None
        return check_messages(messages), max_tokens, copied, logprobs, deadline

    async def _complete(
        self,
        messages: list[dict[str, str]],
        max_tokens: int,
        schema: Mapping[str, Any] | None,
        logprobs: bool,
        deadline: float | None,
    ) -> ChatReply:
        ledger = Ledger()
        tokens = token_bound([message["content"] for message in messages])
        if schema is not None:
            tokens += token_bound([str(schema)])
        features = self._features
        async with self._caller.slot(deadline):
            while True:
                body = {"model": self.model, "messages": messages} | features.body(
                    max_tokens=max_tokens,
                    schema=schema,
                    logprobs=logprobs,
                    temperature=self._temperature,
                    seed=self._seed,
                )
                outcome = await self._caller.send(
                    "/chat/completions",
                    body,
                    input_tokens=tokens,
                    output_tokens=max_tokens,
                    deadline=deadline,
                    ledger=ledger,
                    final=partial(_names_a_feature, features, body),
                )
                if 200 <= (outcome.status or 0) < 300:
                    break
                less = None
                if outcome.status in {400, 422} or _names_a_feature(features, body, outcome):
                    less = features.without(_start_of(outcome), body)
                if less is None:
                    raise self._caller.rejected(outcome, ledger)
                features = less
        problem = None
        try:
            reply = read_completion(parse_json(outcome.body), model=self.model, usage=ledger.total())
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = str(error) if type(error) is ValueError else "not of the shape of a chat completion"
        if problem is not None:
            clean = self._caller.http.redactor.clean(problem)
            raise self._caller.error(EndpointReplyError, f"invalid reply: {clean}", ledger)
        # Only now: a request is rejected for other reasons too, and then less of it does not help.
        self._learn(features, body, reply)
        return reply

    def _learn(self, features: Features, sent: Mapping[str, Any], reply: ChatReply) -> None:
        """Remember what the server accepted, and whether it delivers what it accepts."""
        self._schema_seen |= "response_format" in sent
        if "logprobs" in sent:
            self._logprobs_seen = reply.logprobs is not None
        self._features = self._features.merged(features)


def _start_of(outcome: Outcome) -> str:
    return outcome.body[:8192].decode("utf-8", "replace")


def _names_a_feature(features: Features, sent: Mapping[str, Any], outcome: Outcome) -> bool:
    return outcome.status in {500, 501} and features.named(_start_of(outcome), sent)


def check_messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    """A copy of ``messages`` that can be sent.

    Raises:
        InputError: no message, an unknown role, or content that is no string.
    """
    if isinstance(messages, str | Mapping) or not messages:
        raise InputError("messages must be a list of {'role': ..., 'content': ...}, and not empty")
    checked = []
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            raise InputError(f"a message needs a role, one of {', '.join(sorted(_ROLES))}")
        content = message.get("content")
        if not isinstance(content, str):
            raise InputError("the content of a message must be a string")
        checked.append({"role": message["role"], "content": printable(content)})
    return checked


def token_bound(texts: Sequence[str]) -> int:
    """The most tokens that a byte-level tokenizer can make of ``texts``: one for each byte of UTF-8."""
    return sum(len(text.encode("utf-8", "replace")) + _MESSAGE_TOKENS for text in texts)

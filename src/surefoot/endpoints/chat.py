"""OpenAI-compatible chat models: OpenAI, Azure, Ollama, vLLM, llama.cpp and others of that shape."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from surefoot.endpoints.budget import Budget
from surefoot.endpoints.calls import Caller, Ledger, Limits, check_deadline, parse_json, printable
from surefoot.endpoints.http import Address, HttpClient, Outcome, read_key
from surefoot.endpoints.loop import run, run_sync
from surefoot.endpoints.records import ChatReply, Message, TokenLogprob
from surefoot.errors import ConfigurationError, EndpointReplyError, InputError

__all__ = ["ChatEndpoint", "check_messages"]

_DEFAULT_URL: Final = "https://api.openai.com/v1"
_MESSAGE_TOKENS: Final = 16
"""Tokens that a chat template puts around one message, from above."""

_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
_SCHEMA_STYLES: Final = ("json_schema", "json_object", None)
"""Ways to ask for a schema, best first: OpenAI's; that of llama-cpp-python and others; none."""


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
        self._schema_style = 0
        self._schema_seen = False
        self._logprobs: bool | None = None
        self._limit_name = "max_tokens"
        self._unwanted: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"ChatEndpoint({self.model!r}, host={self._caller.http.host!r})"

    @property
    def budget(self) -> Budget | None:
        """The budget that this endpoint was given."""
        return self._caller.limits.budget

    @property
    def supports_schema(self) -> bool | None:
        """Whether the server accepts a schema; ``None`` until a call has shown it."""
        if _SCHEMA_STYLES[self._schema_style] is None:
            return False
        return True if self._schema_seen else None

    @property
    def supports_logprobs(self) -> bool | None:
        """Whether the server returns log probabilities; ``None`` until a call has shown it."""
        return self._logprobs

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
        return check_messages(messages), max_tokens, schema, logprobs, deadline

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
        asked = _Asked(self, schema is not None, logprobs)
        async with self._caller.slot(deadline):
            while True:
                outcome = await self._caller.send(
                    "/chat/completions",
                    self._body(messages, max_tokens, schema, asked),
                    input_tokens=tokens,
                    output_tokens=max_tokens,
                    deadline=deadline,
                    ledger=ledger,
                )
                if 200 <= (outcome.status or 0) < 300:
                    break
                # Each round takes one feature away, so there are at most as many as there are features.
                if outcome.status not in {400, 422} or not asked.without(outcome):
                    raise self._caller.rejected(outcome, ledger)
        problem = None
        try:
            reply = _reply(parse_json(outcome.body), self.model, ledger)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = str(error) if type(error) is ValueError else "not of the shape of a chat completion"
        if problem is not None:
            clean = self._caller.http.redactor.clean(problem)
            raise self._caller.error(EndpointReplyError, f"invalid reply: {clean}", ledger)
        self._learn(asked, reply)
        return reply

    def _body(
        self, messages: list[dict[str, str]], max_tokens: int, schema: Mapping[str, Any] | None, asked: _Asked
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": messages, asked.limit_name: max_tokens}
        if self._temperature is not None and "temperature" not in asked.unwanted:
            body["temperature"] = self._temperature
        if self._seed is not None and "seed" not in asked.unwanted:
            body["seed"] = self._seed
        style = _SCHEMA_STYLES[asked.style]
        if schema is not None and style == "json_schema":
            described = {"name": "reply", "schema": dict(schema), "strict": True}
            body["response_format"] = {"type": style, "json_schema": described}
        elif schema is not None and style == "json_object":
            body["response_format"] = {"type": style, "schema": dict(schema)}
        if asked.logprobs:
            body |= {"logprobs": True, "top_logprobs": 5}
        return body

    def _learn(self, asked: _Asked, reply: ChatReply) -> None:
        """Remember what the server accepted: only after a success, because other things are rejected too."""
        if asked.has_schema:
            self._schema_style, self._schema_seen = asked.style, True
        if asked.wants_logprobs:
            self._logprobs = asked.logprobs and reply.logprobs is not None
        self._limit_name, self._unwanted = asked.limit_name, asked.unwanted


class _Asked:
    """The features that one call asks for, taken away one by one while the server rejects them."""

    def __init__(self, endpoint: ChatEndpoint, schema: bool, logprobs: bool) -> None:
        self.has_schema = schema
        self.wants_logprobs = logprobs
        self.style = endpoint._schema_style
        self.logprobs = logprobs and endpoint._logprobs is not False
        self.limit_name = endpoint._limit_name
        self.unwanted = endpoint._unwanted

    def without(self, outcome: Outcome) -> bool:
        """Take away what the server complains about; ``False`` where there is nothing left to take."""
        text = outcome.body[:8192].decode("utf-8", "replace").lower()
        if "content_filter" in text:
            return False
        schema = self.has_schema and _SCHEMA_STYLES[self.style] is not None
        if self.logprobs and "logprobs" in text:
            self.logprobs = False
        elif schema and any(
            word in text for word in ("response_format", "json_schema", "json_object", "schema")
        ):
            self.style += 1
        elif self.limit_name == "max_tokens" and "max_completion_tokens" in text:
            self.limit_name = "max_completion_tokens"
        elif "temperature" in text and "temperature" not in self.unwanted:
            self.unwanted |= {"temperature"}
        elif "seed" in text and "seed" not in self.unwanted:
            self.unwanted |= {"seed"}
        elif self.logprobs:
            self.logprobs = False
        elif schema:
            self.style += 1
        else:
            return False
        return True


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


def _reply(parsed: Any, model: str, ledger: Ledger) -> ChatReply:
    """Read a chat completion; raises ValueError, TypeError, KeyError or AttributeError where it is none."""
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
        raise ValueError("a refusal that is no text")
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
        usage=ledger.total(),
        finish_reason=finish if isinstance(finish, str) else None,
        refusal=printable(refusal) if refusal else None,
        logprobs=_logprobs(choice.get("logprobs")),
    )


def _logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    """The log probabilities of a choice; ``None`` where they are missing or not of that kind."""
    try:
        tokens = []
        for entry in value["content"]:
            top = tuple(
                (_text(one["token"]), _log(one["logprob"])) for one in entry.get("top_logprobs") or ()
            )
            tokens.append(TokenLogprob(_text(entry["token"]), _log(entry["logprob"]), top))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return tuple(tokens) or None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return printable(value)


def _log(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value > 1e-3:
        raise ValueError("no logarithm of a probability")
    return min(0.0, float(value))

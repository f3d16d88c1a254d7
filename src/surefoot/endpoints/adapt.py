"""Other ways to reach a model, made to look like a chat endpoint: LangChain models and plain functions."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from surefoot.endpoints.calls import check_deadline, printable, time_left
from surefoot.endpoints.chat import ChatEndpoint, check_messages
from surefoot.endpoints.loop import Slots, in_thread, run_sync
from surefoot.endpoints.records import ChatLike, ChatReply, Message, Usage
from surefoot.errors import (
    ConfigurationError,
    EndpointError,
    EndpointReplyError,
    EndpointTimeoutError,
    EndpointUnavailableError,
)

__all__ = ["as_chat"]

_MAX_CHARACTERS: Final = 1_048_576


def as_chat(model: Any, *, timeout: float = 60.0, concurrency: int = 8) -> ChatLike:
    """Make a chat of whatever ``model`` is.

    Args:
        model: the name of a model (:class:`ChatEndpoint` with its defaults), something that already is a
            chat, a LangChain chat model, or a function. A function may be ``async``; it gets the list of
            messages or, where its first parameter is called ``prompt`` or ``text``, or is annotated as
            ``str``, their contents as one string; and returns the reply as a string.
        timeout: seconds for a call of a LangChain model or function; endpoints have their own.
        concurrency: calls of a LangChain model or function at a time; endpoints have their own.

    Returns:
        The same object where it already is a chat.

    Raises:
        ConfigurationError: it is none of these, or an option cannot work.
    """
    if isinstance(model, str):
        return ChatEndpoint(model)
    if isinstance(model, type):
        raise ConfigurationError(f"{model.__name__} is a class; pass an instance of it")
    if isinstance(model, ChatEndpoint) or all(
        callable(getattr(model, name, None)) for name in ("complete", "complete_sync")
    ):
        chat: ChatLike = model
        return chat
    if callable(getattr(model, "invoke", None)) or callable(getattr(model, "ainvoke", None)):
        name = next(
            (
                value
                for key in ("model_name", "model", "deployment_name")
                if isinstance(value := getattr(model, key, None), str)
            ),
            type(model).__name__,
        )
        return _Called(
            name,
            call=getattr(model, "invoke", None),
            acall=getattr(model, "ainvoke", None),
            shape=_as_pairs,
            timeout=timeout,
            concurrency=concurrency,
        )
    if callable(model):
        target = model if inspect.isroutine(model) else type(model).__call__
        is_async = inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(target)
        return _Called(
            getattr(model, "__name__", type(model).__name__),
            call=None if is_async else model,
            acall=model if is_async else None,
            shape=_as_prompt if _takes_text(model) else list,
            timeout=timeout,
            concurrency=concurrency,
        )
    raise ConfigurationError(f"no chat model: {type(model).__name__}")


class _Called:
    """A chat that calls a function of the program: with a deadline, but without retries or budget."""

    def __init__(
        self,
        model: str,
        *,
        call: Callable[[Any], Any] | None,
        acall: Callable[[Any], Awaitable[Any]] | None,
        shape: Callable[[list[dict[str, str]]], Any],
        timeout: float,
        concurrency: int,
    ) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e9:
            raise ConfigurationError("timeout must be a positive number of seconds")
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise ConfigurationError("concurrency must be a whole number of at least 1")
        self.model = printable(model)
        self.supports_schema: bool | None = False
        self.supports_logprobs: bool | None = False
        self._call = call
        self._acall = acall
        self._shape = shape
        self._timeout = timeout
        self._slots = Slots(concurrency)

    def __repr__(self) -> str:
        return f"as_chat({self.model!r})"

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 256,
        schema: Mapping[str, Any] | None = None,
        logprobs: bool = False,
        deadline: float | None = None,
    ) -> ChatReply:
        """The reply; ``max_tokens``, ``schema`` and ``logprobs`` are not passed on.

        Raises:
            InputError: a message has the wrong shape.
            EndpointTimeoutError: too late. A function that is not ``async`` cannot be stopped: its thread
                goes on, and keeps its slot until it ends.
            EndpointUnavailableError: it raised an exception, whose message may hold secrets and is not told.
            EndpointReplyError: it returned something else than text, or more than 1,048,576 characters.
        """
        del max_tokens, schema, logprobs
        check_deadline(deadline)
        return await self._complete(check_messages(messages), deadline, asynchronous=self._acall is not None)

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
        del max_tokens, schema, logprobs
        check_deadline(deadline)
        return run_sync(self._complete(check_messages(messages), deadline, asynchronous=self._call is None))

    async def _complete(
        self, messages: list[dict[str, str]], deadline: float | None, *, asynchronous: bool
    ) -> ChatReply:
        started = time.monotonic()
        failure: EndpointError | None = None
        value: Any = None
        try:
            async with asyncio.timeout(time_left(deadline)):
                await asyncio.sleep(0)  # a deadline that is over already takes effect here
                await self._slots.acquire()
            left = time_left(deadline)
            value = await self._result(
                self._start(self._shape(messages), asynchronous=asynchronous),
                self._timeout if left is None else min(self._timeout, left),
            )
        except TimeoutError:
            failure = EndpointTimeoutError(f"{self.model}: no reply in time")
        except Exception as error:  # noqa: BLE001 - whatever the caller's function raises
            failure = EndpointUnavailableError(f"{self.model}: the model raised {type(error).__name__}")
        usage = Usage(calls=1, seconds=time.monotonic() - started) + _usage_of(value)
        text = _text_of(value)
        if failure is None and text is None:
            failure = EndpointReplyError(f"{self.model}: the model returned no text")
        if failure is None and text is not None and len(text) > _MAX_CHARACTERS:
            failure = EndpointReplyError(f"{self.model}: more than {_MAX_CHARACTERS} characters")
        if failure is not None:  # raised outside of the handlers, so that nothing is chained to it
            failure.usage = usage
            raise failure
        return ChatReply(text=printable(text or ""), model=self.model, usage=usage)

    def _start(self, argument: Any, *, asynchronous: bool) -> asyncio.Future[Any]:
        """Start the work, which holds the slot until it ends, even if nobody waits for it any more."""
        work: asyncio.Future[Any]
        if asynchronous and self._acall is not None:
            work = asyncio.ensure_future(_awaited(self._acall, argument))
            work.add_done_callback(lambda _: self._slots.release())
        else:
            call: Any = self._call
            thread = in_thread(lambda: call(argument))
            thread.add_done_callback(lambda _: self._slots.release())
            work = asyncio.wrap_future(thread)
        # Looked at even if it ends too late, or asyncio would complain about an exception nobody saw.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        return work

    async def _result(self, work: asyncio.Future[Any], timeout: float) -> Any:
        # asyncio.timeout would wait for the end of a task that ignores being cancelled.
        try:
            done, _ = await asyncio.wait({work}, timeout=max(0.0, timeout))
        finally:
            work.cancel()
        if not done:
            raise TimeoutError
        value = work.result()
        if inspect.isawaitable(value):  # a plain function that hands out a coroutine
            return await self._result(asyncio.ensure_future(_finish(value)), timeout)
        return value


async def _awaited(function: Callable[[Any], Awaitable[Any]], argument: Any) -> Any:
    return await _finish(function(argument))


async def _finish(value: Awaitable[Any]) -> Any:
    try:
        return await value
    except SystemExit as error:  # would end the event loop, and with it the calls of everybody else
        raise RuntimeError("SystemExit") from error


def _takes_text(function: Callable[..., Any]) -> bool:
    """Whether a function wants one string rather than a list of messages."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    if not parameters:
        return False
    first = parameters[0]
    return first.annotation in (str, "str") or first.name in {"prompt", "text"}


def _as_prompt(messages: list[dict[str, str]]) -> str:
    return "\n\n".join(message["content"] for message in messages)


def _as_pairs(messages: list[dict[str, str]]) -> list[tuple[str, str]]:
    """(role, content), which every LangChain chat model accepts."""
    return [(message["role"], message["content"]) for message in messages]


def _text_of(value: Any) -> str | None:
    """The text of what a model returned: a string, a LangChain message, or a list of content blocks."""
    content = getattr(value, "content", value)
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else _block(part) for part in content]
        return "".join(parts) if content else None
    return None


def _usage_of(value: Any) -> Usage:
    """The tokens that a LangChain message tells."""
    told = getattr(value, "usage_metadata", None)
    counts = [told.get(name) for name in ("input_tokens", "output_tokens")] if isinstance(told, dict) else []
    whole = [
        count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count >= 0
    ]
    return Usage(input_tokens=whole[0], output_tokens=whole[1]) if len(whole) == 2 else Usage()


def _block(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else None
    return text if isinstance(text, str) else ""

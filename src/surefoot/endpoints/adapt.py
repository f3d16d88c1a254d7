"""LangChain chat models and plain functions, made to look like a chat endpoint."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final

from surefoot.checks import check_positive, check_whole
from surefoot.endpoints.chat import Chat, ChatEndpoint
from surefoot.endpoints.loop import Slots
from surefoot.endpoints.records import ChatLike, ChatReply, ChatRequest, Message, Usage, time_left
from surefoot.endpoints.wire import printable
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
    """Make a chat model of ``model``.

    Args:
        model: the name of a model (:class:`ChatEndpoint` with its defaults), a chat model as of this package,
            a LangChain chat model, or a function. A function may be ``async``. It gets the list of messages
            or, if its first parameter is called ``prompt`` or ``text`` or annotated as ``str``, their
            contents as one string. It returns the reply as a string.
        timeout: seconds for a call of a LangChain model or function; endpoints have their own.
        concurrency: calls of a LangChain model or function at the same time; endpoints have their own.

    Returns:
        The same object if it is a chat model of this package already.

    Raises:
        ConfigurationError: it is none of these, or an option has an invalid value.
    """
    if isinstance(model, str):
        return ChatEndpoint(model)
    if isinstance(model, type):
        raise ConfigurationError(f"{model.__name__} is a class; pass an instance of it")
    if all(callable(getattr(model, name, None)) for name in ("complete", "complete_sync")):
        chat: ChatLike = model
        return chat
    call, acall = getattr(model, "invoke", None), getattr(model, "ainvoke", None)
    if callable(call) or callable(acall):
        names = [getattr(model, key, None) for key in ("model_name", "model", "deployment_name")]
        name = next((value for value in names if isinstance(value, str)), type(model).__name__)
        return _Called(name, call, acall, _as_pairs, timeout, concurrency)
    if callable(model):
        target = model if inspect.isroutine(model) else type(model).__call__
        is_async = inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(target)
        return _Called(
            getattr(model, "__name__", type(model).__name__),
            None if is_async else model,
            model if is_async else None,
            _as_prompt if _takes_text(model) else list,
            timeout,
            concurrency,
        )
    raise ConfigurationError(f"not a chat model: {type(model).__name__}")


class _Called(Chat):
    """A chat model that is a function of the program: with a time limit, but without retries or budget.

    A function that is not ``async`` runs in a thread. It cannot be stopped: after the timeout its thread goes
    on, and keeps its place until it ends. ``max_tokens``, ``schema`` and ``logprobs`` are not passed on.
    """

    supports_schema: bool | None = False

    def __init__(
        self,
        model: str,
        call: Callable[[Any], Any] | None,
        acall: Callable[[Any], Any] | None,
        shape: Callable[[Sequence[Message]], Any],
        timeout: float,
        concurrency: int,
    ) -> None:
        check_positive(timeout=timeout)
        check_whole(concurrency=concurrency)
        self.model = printable(model)
        self._call = call
        self._acall = acall
        self._shape = shape
        self._timeout = timeout
        self._slots = Slots(concurrency)

    def __repr__(self) -> str:
        return f"as_chat({self.model!r})"

    async def _reply(self, request: ChatRequest, callers_loop: asyncio.AbstractEventLoop | None) -> ChatReply:
        started = time.monotonic()
        value, problem = await self._result(request, callers_loop)
        usage = Usage(calls=1, seconds=time.monotonic() - started) + _usage_of(value)
        text = _text_of(value)
        failure: EndpointError | None = None
        if problem is not None and issubclass(problem, TimeoutError):
            failure = EndpointTimeoutError(f"{self.model}: no reply in time")
        elif problem is not None:  # its message may hold a secret: only the class is named
            failure = EndpointUnavailableError(f"{self.model}: the model raised {problem.__name__}")
        elif text is None:
            failure = EndpointReplyError(f"{self.model}: the model returned no text")
        elif len(text) > _MAX_CHARACTERS:
            failure = EndpointReplyError(f"{self.model}: more than {_MAX_CHARACTERS} characters")
        if failure is not None:
            failure.usage = usage
            raise failure
        return ChatReply(text=printable(text or ""), model=self.model, usage=usage)

    async def _result(
        self, request: ChatRequest, callers_loop: asyncio.AbstractEventLoop | None
    ) -> tuple[Any, type[BaseException] | None]:
        """What the function returned, or the class of what it raised."""
        here = asyncio.get_running_loop()
        slots = self._slots.here()
        try:
            async with asyncio.timeout(time_left(request.deadline)):
                await asyncio.sleep(0)  # a deadline that has passed takes effect here
                await slots.acquire()
        except TimeoutError:
            return None, TimeoutError
        argument = self._shape([dict(message) for message in request.messages])
        # An asynchronous client may be bound to the loop of its caller, so it has to be called there.
        target = callers_loop or here
        use_async = self._acall is not None and (callers_loop is not None or self._call is None)
        if use_async:
            work = asyncio.run_coroutine_threadsafe(_awaited(self._acall, argument), target)
        else:
            work = _in_thread(self._call, argument, target)
        work.add_done_callback(lambda _: here.is_closed() or here.call_soon_threadsafe(slots.release))
        result = asyncio.wrap_future(work)
        try:
            # asyncio.timeout would wait for the end of a task that ignores being cancelled.
            limit = max(0.0, min(self._timeout, time_left(request.deadline)))
            done, _ = await asyncio.wait({result}, timeout=limit)
        finally:
            result.cancel()
        return result.result() if done else (None, TimeoutError)


async def _awaited(function: Any, argument: Any) -> tuple[Any, type[BaseException] | None]:
    try:
        value = function(argument)
        return (await value if inspect.isawaitable(value) else value), None
    except BaseException as error:  # noqa: BLE001 - SystemExit would end the loop, and everybody's calls with it
        return None, type(error)


def _in_thread(
    function: Any, argument: Any, loop: asyncio.AbstractEventLoop
) -> Future[tuple[Any, type[BaseException] | None]]:
    """Call a function in a daemon thread: unlike one of a pool, it cannot keep the program alive."""
    future: Future[tuple[Any, type[BaseException] | None]] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            value = function(argument)
            if inspect.isawaitable(value):  # a plain function that returns a coroutine
                future.set_result(
                    asyncio.run_coroutine_threadsafe(_awaited(lambda _: value, None), loop).result()
                )
            else:
                future.set_result((value, None))
        except BaseException as error:  # noqa: BLE001 - whatever the function raises
            future.set_result((None, type(error)))

    threading.Thread(
        target=contextvars.copy_context().run, args=(work,), name="surefoot-model", daemon=True
    ).start()
    return future


def _takes_text(function: Callable[..., Any]) -> bool:
    """Whether a function wants one string rather than a list of messages."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    return bool(parameters) and (
        parameters[0].annotation in (str, "str") or parameters[0].name in {"prompt", "text"}
    )


def _as_prompt(messages: Sequence[Message]) -> str:
    return "\n\n".join(message["content"] for message in messages)


def _as_pairs(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """(role, content), which every LangChain chat model accepts."""
    return [(message["role"], message["content"]) for message in messages]


def _text_of(value: Any) -> str | None:
    """The text of what a model returned: a string, a LangChain message, or a list of content blocks."""
    content = getattr(value, "content", value)
    if isinstance(content, list) and content:
        return "".join(part if isinstance(part, str) else _block(part) for part in content)
    return content if isinstance(content, str) else None


def _block(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else None
    return text if isinstance(text, str) else ""


def _usage_of(value: Any) -> Usage:
    """The tokens that a LangChain message reports."""
    told = getattr(value, "usage_metadata", None)
    if isinstance(told, dict):
        read, written = told.get("input_tokens"), told.get("output_tokens")
        if type(read) is int and type(written) is int and min(read, written) >= 0:
            return Usage(input_tokens=read, output_tokens=written)
    return Usage()

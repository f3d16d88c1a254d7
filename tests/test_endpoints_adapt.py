"""Functions and LangChain models in the place of an endpoint."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import surefoot.endpoints
from surefoot.endpoints import ChatLike, as_chat
from surefoot.errors import (
    ConfigurationError,
    EndpointReplyError,
    EndpointTimeoutError,
    EndpointUnavailableError,
    InputError,
    MissingExtraError,
)

ASK = [{"role": "system", "content": "Rate."}, {"role": "user", "content": "It rains."}]
LONG = 20.0


def both(chat: ChatLike, **options: Any) -> list[str]:
    """The reply awaited, without a loop, and synchronously inside a loop."""

    async def inside() -> str:
        return chat.complete_sync(ASK, **options).text

    return [
        asyncio.run(chat.complete(ASK, **options)).text,  # type: ignore[arg-type]
        chat.complete_sync(ASK, **options).text,
        asyncio.run(inside()),
    ]


def with_messages(messages: list[dict[str, str]]) -> str:
    return f"{len(messages)} {messages[-1]['content']}"


async def with_messages_later(messages: list[dict[str, str]]) -> str:
    await asyncio.sleep(0)
    return with_messages(messages)


class Callable_:  # noqa: N801
    def __call__(self, messages: list[dict[str, str]]) -> str:
        return with_messages(messages)


class AsyncCallable:
    async def __call__(self, messages: list[dict[str, str]]) -> str:
        return with_messages(messages)


@pytest.mark.parametrize(
    "model",
    [
        with_messages,
        with_messages_later,
        lambda messages: with_messages(messages),
        lambda messages: with_messages_later(messages),
        Callable_(),
        AsyncCallable(),
        Callable_().__call__,
    ],
)
def test_functions_of_messages(model: Callable[..., Any]) -> None:
    assert both(as_chat(model)) == ["2 It rains."] * 3


def test_functions_of_text() -> None:
    def by_annotation(question: str) -> str:
        return question.upper()

    def by_name(prompt):  # type: ignore[no-untyped-def]
        return prompt.upper()

    async def later(text: str) -> str:
        return text.upper()

    for model in (by_annotation, by_name, later):
        assert both(as_chat(model)) == ["RATE.\n\nIT RAINS."] * 3


def test_what_is_known_of_a_function() -> None:
    chat = as_chat(with_messages)
    assert (chat.model, chat.supports_schema, chat.supports_logprobs) == ("with_messages", False, False)
    reply = chat.complete_sync(ASK, schema={"type": "object"}, logprobs=True, max_tokens=1)
    assert (reply.usage.calls, reply.usage.cost, reply.logprobs) == (1, None, None)
    assert reply.usage.seconds > 0
    assert as_chat(chat) is chat


@pytest.mark.parametrize("model", [None, 5, object(), [], ChatLike, dict])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(ConfigurationError):
        as_chat(model)


@pytest.mark.parametrize("value", [None, 0.5, b"0.5", {"text": "0.5"}, [], object()])
def test_replies_that_are_no_text(value: Any) -> None:
    with pytest.raises(EndpointReplyError, match="no text"):
        as_chat(lambda messages: value).complete_sync(ASK)


def test_a_reply_that_is_too_long() -> None:
    with pytest.raises(EndpointReplyError, match="more than"):
        as_chat(lambda messages: "x" * 2_000_000).complete_sync(ASK)


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyError, TimeoutError, StopIteration])
@pytest.mark.parametrize("later", [False, True])
def test_exceptions_of_a_function(error: type[BaseException], later: bool) -> None:
    def now(messages: object) -> str:
        raise error("key-in-the-message")

    async def soon(messages: object) -> str:
        raise error("key-in-the-message")

    chat = as_chat(soon if later else now)
    for call in (lambda: chat.complete_sync(ASK), lambda: asyncio.run(chat.complete(ASK))):  # type: ignore[arg-type]
        with pytest.raises((EndpointUnavailableError, EndpointTimeoutError)) as caught:
            call()
        assert "key" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
    assert as_chat(with_messages).complete_sync(ASK).text  # the shared loop is still there


def test_a_function_that_hangs_keeps_its_slot_and_nobody_waits() -> None:
    release = threading.Event()
    started = []

    def model(messages: object) -> str:
        started.append(1)
        release.wait(60)
        return "late"

    chat = as_chat(model, concurrency=2)
    try:
        for _ in range(4):
            start = time.monotonic()
            with pytest.raises(EndpointTimeoutError):
                chat.complete_sync(ASK, deadline=start + 0.2)
            assert time.monotonic() - start < LONG
        assert len(started) == 2
    finally:
        release.set()
    deadline = time.monotonic() + LONG
    assert chat.complete_sync(ASK, deadline=deadline).text == "late"  # the slots came back


def test_a_coroutine_that_ignores_being_cancelled() -> None:
    release = threading.Event()

    async def stubborn(messages: object) -> str:
        while not release.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return "late"

    chat = as_chat(stubborn)
    start = time.monotonic()
    try:
        with pytest.raises(EndpointTimeoutError):
            chat.complete_sync(ASK, deadline=start + 0.2)
        assert time.monotonic() - start < LONG
    finally:
        release.set()


def test_the_timeout() -> None:
    async def slow(messages: object) -> str:
        await asyncio.sleep(60)
        return "late"

    with pytest.raises(EndpointTimeoutError):
        as_chat(slow, timeout=0.1).complete_sync(ASK)


def test_a_deadline_that_is_over_calls_nothing() -> None:
    called: list[object] = []
    with pytest.raises(EndpointTimeoutError):
        as_chat(lambda messages: called.append(messages) or "x").complete_sync(
            ASK, deadline=time.monotonic() - 1
        )
    assert called == []


def test_concurrency() -> None:
    lock, active, most = threading.Lock(), 0, 0

    def model(messages: object) -> str:
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        time.sleep(0.02)
        with lock:
            active -= 1
        return "x"

    chat = as_chat(model, concurrency=3)

    async def run() -> None:
        await asyncio.gather(*(chat.complete(ASK) for _ in range(12)))

    asyncio.run(run())
    assert 1 < most <= 3


def test_a_synchronous_call_inside_an_asynchronous_model_does_not_hang() -> None:
    inner = as_chat(with_messages)

    async def outer(messages: list[dict[str, str]]) -> str:
        return inner.complete_sync(messages).text

    with pytest.raises(EndpointUnavailableError, match="ConfigurationError"):
        as_chat(outer).complete_sync(ASK, deadline=time.monotonic() + LONG)


def test_an_asynchronous_model_runs_in_the_loop_of_its_caller() -> None:
    async def run() -> bool:
        here = asyncio.get_running_loop()
        same = []

        async def model(messages: object) -> str:
            same.append(asyncio.get_running_loop() is here)
            return "x"

        await as_chat(model).complete(ASK)
        return same == [True]

    assert asyncio.run(run())


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": True}, {"concurrency": 0}, {"timeout": "1"}])
def test_options_that_cannot_work(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        as_chat(with_messages, **options)


def test_the_shape_of_messages_is_checked() -> None:
    with pytest.raises(InputError):
        as_chat(with_messages).complete_sync([])


def test_a_name_is_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    chat = as_chat("gpt-x")
    assert isinstance(chat, surefoot.endpoints.ChatEndpoint)
    assert chat.model == "gpt-x"
    chat.close()


def test_without_the_openai_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"surefoot\[judge\]"):
        as_chat("gpt-x")


# LangChain


def test_langchain_chat_models() -> None:
    fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    model = fakes.FakeListChatModel(responses=["0.25"])
    chat = as_chat(model)
    assert both(chat) == ["0.25"] * 3
    assert chat.model == "FakeListChatModel"


def test_langchain_gets_roles_and_gives_usage() -> None:
    fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    messages = pytest.importorskip("langchain_core.messages")
    seen: list[Any] = []

    class Model(fakes.FakeListChatModel):  # type: ignore[misc]
        def _generate(self, given: list[Any], *args: Any, **kwargs: Any) -> Any:
            seen.extend((message.type, message.content) for message in given)
            result = super()._generate(given, *args, **kwargs)
            result.generations[0].message = messages.AIMessage(
                content=[{"type": "text", "text": "0."}, "75", {"type": "image_url", "image_url": "x"}],
                usage_metadata={"input_tokens": 12, "output_tokens": 3, "total_tokens": 15},
            )
            return result

    reply = as_chat(Model(responses=["x"])).complete_sync(ASK)
    assert reply.text == "0.75"
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 12, 3)
    assert seen == [("system", "Rate."), ("human", "It rains.")]


class InvokeOnly:
    model_name = "local-7b"

    def invoke(self, messages: list[tuple[str, str]]) -> str:
        return messages[-1][1]


class AwaitOnly:
    model = "remote-7b"

    async def ainvoke(self, messages: list[tuple[str, str]]) -> str:
        return messages[-1][1]


@pytest.mark.parametrize(("model", "name"), [(InvokeOnly(), "local-7b"), (AwaitOnly(), "remote-7b")])
def test_half_of_the_interface_is_enough(model: Any, name: str) -> None:
    chat = as_chat(model)
    assert both(chat) == ["It rains."] * 3
    assert chat.model == name

"""Chat endpoints against a real server: every way in which it can go right or wrong."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("openai")

import scripted_endpoint as play
from surefoot.endpoints import ChatEndpoint, ChatReply, TokenLogprob
from surefoot.errors import (
    ConfigurationError,
    EndpointError,
    EndpointRejectedError,
    EndpointReplyError,
    EndpointTimeoutError,
    EndpointUnavailableError,
    InputError,
    SurefootError,
)

HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
LONG = 30.0
"""Seconds; nothing here takes that long unless a limit does not work."""

Chat = Callable[..., ChatEndpoint]


@pytest.fixture
def server() -> Iterator[play.ScriptedEndpoint]:
    with play.ScriptedEndpoint() as running:
        yield running


@pytest.fixture
def chat(server: play.ScriptedEndpoint) -> Iterator[Chat]:
    made: list[ChatEndpoint] = []

    def make(**options: Any) -> ChatEndpoint:
        settings = {"base_url": server.url, "api_key": "key", "retries": 0, "timeout": 10.0} | options
        made.append(ChatEndpoint("asked-for", **settings))
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.close()


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.endpoints.calls._FIRST_PAUSE", 0.01)


def test_a_good_reply(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.acts = [play.chat("fine", usage=(7, 3), logprobs=[("fi", -0.5), ("ne", 0.0)])]
    reply = chat(input_price=1.0, output_price=10.0, seed=4).complete_sync(HELLO, max_tokens=9, logprobs=True)
    assert (reply.text, reply.model, reply.finish_reason, reply.refusal) == (
        "fine",
        "scripted-1",
        "stop",
        None,
    )
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 7, 3)
    assert reply.usage.cost == pytest.approx(37e-6)
    assert reply.usage.seconds > 0
    assert reply.logprobs == (
        TokenLogprob("fi", -0.5, (("fi", -0.5),)),
        TokenLogprob("ne", 0.0, (("ne", 0.0),)),
    )
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer key"
    assert request.headers["accept-encoding"] == "identity"
    assert request.body == {
        "model": "asked-for",
        "messages": HELLO,
        "max_tokens": 9,
        "temperature": 0.0,
        "seed": 4,
        "logprobs": True,
        "top_logprobs": 5,
    }


@pytest.mark.parametrize(
    ("act", "text", "refusal"),
    [
        (play.chat(None, refusal="I cannot judge that"), "", "I cannot judge that"),
        (play.chat(None, finish_reason="content_filter"), "", "content_filter"),
        (play.chat(None, finish_reason="length"), "", None),
        (play.chat("", finish_reason=None, usage=None, model=""), "", None),
    ],
)
def test_a_model_that_writes_nothing(
    server: play.ScriptedEndpoint, chat: Chat, act: play.Act, text: str, refusal: str | None
) -> None:
    server.acts = [act]
    reply = chat().complete_sync(HELLO)
    assert (reply.text, reply.refusal) == (text, refusal)


def test_what_the_server_leaves_out_is_estimated_from_above(
    server: play.ScriptedEndpoint, chat: Chat
) -> None:
    server.acts = [play.chat("ok", usage=None, model="")]
    reply = chat().complete_sync([{"role": "user", "content": "ä" * 50}], max_tokens=20)
    assert reply.model == "asked-for"
    assert reply.usage.input_tokens >= 100
    assert reply.usage.output_tokens == 20


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1},
        {"prompt_tokens": 1.5, "completion_tokens": 1},
        {"prompt_tokens": 10**12, "completion_tokens": 1},
        {"prompt_tokens": "3", "completion_tokens": 1},
        [],
        "none",
    ],
)
def test_impossible_usage_is_not_believed(server: play.ScriptedEndpoint, chat: Chat, usage: object) -> None:
    server.acts = [play.chat("ok", usage=usage)]
    reply = chat().complete_sync(HELLO, max_tokens=20)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (21, 20)


def completion(**changes: object) -> play.Act:
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "0.5"}}
    return play.reply({"model": "m", "choices": [choice]} | changes)


BROKEN = {
    "empty": play.Act(b""),
    "no JSON": play.Act(b"<html>Bad gateway</html>"),
    "cut JSON": play.Act(b'{"choices": [{"message": {"content": "0.5"'),
    "NaN": play.Act(b'{"choices": [{"message": {"content": NaN}}]}'),
    "not UTF-8": play.Act(b'{"choices": [{"message": {"content": "\xff"}}]}'),
    "deep": play.Act(b"[" * 200_000),
    "long number": play.Act(b'{"choices": ' + b"9" * 10_000 + b"}"),
    "list": play.reply([]),
    "null": play.reply(None),
    "no choices": completion(choices=[]),
    "choices of another type": completion(choices="0.5"),
    "no message": completion(choices=[{}]),
    "no content": completion(choices=[{"message": {"content": None}, "finish_reason": "stop"}]),
    "content is a number": completion(choices=[{"message": {"content": 0.5}}]),
    "refusal is a number": completion(choices=[{"message": {"content": None, "refusal": 1}}]),
    "an error with status 200": play.error(200, "upstream broke"),
    "compressed": play.Act(b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"}),
    "oversized": play.oversized(),
    "endless": play.endless(),
    "oversized error": play.oversized(status=500),
    "endless error": play.endless(status=400),
}


@pytest.mark.parametrize("name", BROKEN)
def test_no_reply_at_all_is_made_of_a_broken_one(
    server: play.ScriptedEndpoint, chat: Chat, name: str
) -> None:
    server.default = BROKEN[name]
    with pytest.raises(EndpointReplyError, match=server.host) as caught:
        chat(retries=2).complete_sync(HELLO, deadline=time.monotonic() + LONG)
    assert len(server.requests) == 1  # the same would come again
    assert caught.value.usage.calls == 1
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": [{"token": "a", "logprob": 0.7}]},
        {"content": [{"token": "a", "logprob": True}]},
        {"content": [{"token": "a", "logprob": -(10**400)}]},
        {"content": [{"token": 1, "logprob": -1}]},
        "x",
    ],
)
def test_log_probabilities_that_are_none(server: play.ScriptedEndpoint, chat: Chat, logprobs: object) -> None:
    choice = {"message": {"content": "0.5"}, "finish_reason": "stop", "logprobs": logprobs}
    server.acts = [completion(choices=[choice])]
    endpoint = chat()
    reply = endpoint.complete_sync(HELLO, logprobs=True)
    assert (reply.text, reply.logprobs, endpoint.supports_logprobs) == ("0.5", None, False)


def test_content_in_parts(server: play.ScriptedEndpoint, chat: Chat) -> None:
    parts = [{"type": "text", "text": "0."}, {"type": "image"}, {"type": "text", "text": "5"}]
    server.acts = [completion(choices=[{"message": {"content": parts}}])]
    assert chat().complete_sync(HELLO).text == "0.5"


# Retries


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(
    "act",
    [play.error(status) for status in (408, 409, 429, 500, 502, 503, 504)]
    + [play.disconnect(), play.disconnect(5), play.Act(b"{}", length=500)],
    ids=lambda act: f"{act.status} {act.cut} {act.length}",
)
def test_what_may_pass_is_tried_again(server: play.ScriptedEndpoint, chat: Chat, act: play.Act) -> None:
    server.acts = [act, act]
    reply = chat(retries=2).complete_sync(HELLO)
    assert reply.text == "0.5"
    assert reply.usage.calls == len(server.requests) == 3


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        (play.error(503, "busy"), EndpointUnavailableError, r"HTTP 503: busy \(3 attempts\)"),
        (play.rate_limited(), EndpointUnavailableError, r"HTTP 429: slow down \(3 attempts\)"),
        (play.disconnect(), EndpointUnavailableError, r"connection lost .* \(3 attempts\)"),
        (play.hang(), EndpointTimeoutError, r"no complete reply within 0\.6 s \(3 attempts\)"),
        (play.drip(), EndpointTimeoutError, r"no complete reply within 0\.6 s \(3 attempts\)"),
        (
            play.slow(5.0, play.chat("late")),
            EndpointTimeoutError,
            r"no complete reply within 0\.6 s \(3 attempts\)",
        ),
    ],
)
def test_what_does_not_pass(
    server: play.ScriptedEndpoint, chat: Chat, act: play.Act, kind: type[EndpointError], message: str
) -> None:
    server.default = act
    with pytest.raises(kind, match=f"{server.host}: {message}") as caught:
        chat(retries=2, timeout=0.6 if kind is EndpointTimeoutError else 10.0).complete_sync(HELLO)
    assert len(server.requests) == caught.value.usage.calls == 3
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 405, 413, 418, 422])
def test_what_is_final_is_not_tried_again(server: play.ScriptedEndpoint, chat: Chat, status: int) -> None:
    server.default = play.error(status, headers={"Location": "/v1/elsewhere"})
    with pytest.raises(EndpointRejectedError, match=f"{server.host}: HTTP {status}"):
        chat(retries=2).complete_sync(HELLO)
    assert len(server.requests) == 1


def test_nobody_listens(server: play.ScriptedEndpoint, chat: Chat) -> None:
    endpoint = chat()
    server.close()
    with pytest.raises(EndpointUnavailableError, match=f"{server.host}: no connection") as caught:
        endpoint.complete_sync(HELLO)
    assert (caught.value.usage.calls, caught.value.usage.input_tokens) == (1, 0)


def test_a_server_that_came_back_is_reached_on_new_connections(
    server: play.ScriptedEndpoint, chat: Chat
) -> None:
    endpoint = chat(retries=1)
    assert endpoint.complete_sync(HELLO).text == "0.5"
    server.acts = [play.disconnect(), play.chat("back")]
    assert endpoint.complete_sync(HELLO).text == "back"


@pytest.mark.parametrize("form", ["seconds", "date", "milliseconds"])
def test_retry_after_is_honoured(server: play.ScriptedEndpoint, chat: Chat, form: str) -> None:
    # A date has whole seconds: two of them ask for more than one in any case.
    wish = {
        "seconds": {"Retry-After": "0.6"},
        "date": {"Retry-After": email.utils.formatdate(time.time() + 2, usegmt=True)},
        "milliseconds": {"Retry-After-Ms": "600"},
    }[form]
    server.acts = [play.error(429, headers=wish), play.chat("now")]
    assert chat(retries=1).complete_sync(HELLO).text == "now"
    first, second = server.requests
    assert second.at - first.at >= 0.6


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("wish", ["soon", "nan", "-5", "", "inf", "Mon, 99 Foo 2026 99:99:99 GMT", "9" * 400])
def test_a_senseless_retry_after_does_no_harm(server: play.ScriptedEndpoint, chat: Chat, wish: str) -> None:
    server.acts = [play.rate_limited(wish), play.chat("now")]
    assert chat(retries=1).complete_sync(HELLO, deadline=time.monotonic() + LONG).text == "now"


@pytest.mark.parametrize(
    ("wish", "deadline"), [("3600", None), ("20", 10.0)], ids=["an hour", "after the deadline"]
)
def test_nobody_waits_for_what_is_too_late(
    server: play.ScriptedEndpoint, chat: Chat, wish: str, deadline: float | None
) -> None:
    server.default = play.rate_limited(wish)
    start = time.monotonic()
    with pytest.raises(EndpointUnavailableError, match="asks to wait"):
        chat(retries=5).complete_sync(HELLO, deadline=deadline and start + deadline)
    assert len(server.requests) == 1
    assert time.monotonic() - start < 10.0


# Deadlines


@pytest.mark.parametrize(
    "act",
    [play.hang(), play.drip(), play.slow(20, play.chat("late")), play.error(500), play.disconnect()],
    ids=["hang", "drip", "slow", "500", "disconnect"],
)
def test_the_deadline_is_for_everything_together(
    server: play.ScriptedEndpoint, chat: Chat, act: play.Act
) -> None:
    server.default = act
    start = time.monotonic()
    with pytest.raises((EndpointTimeoutError, EndpointUnavailableError)):
        chat(retries=50).complete_sync(HELLO, deadline=start + 0.5)
    assert time.monotonic() - start < LONG / 2


def test_a_deadline_that_is_over_sends_nothing(server: play.ScriptedEndpoint, chat: Chat) -> None:
    with pytest.raises(EndpointTimeoutError):
        chat().complete_sync(HELLO, deadline=time.monotonic() - 1)
    assert server.requests == []


def test_waiting_for_a_slot_ends_at_the_deadline(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.default = play.hang()
    endpoint = chat(concurrency=1)

    async def both() -> list[ChatReply | BaseException]:
        deadline = time.monotonic() + 0.5
        calls = [endpoint.complete(HELLO, deadline=deadline) for _ in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [type(result) for result in asyncio.run(both())] == [EndpointTimeoutError] * 2
    assert len(server.requests) == 1


# What servers cannot do


@pytest.mark.parametrize("status", [400, 422])
def test_without_a_schema_where_the_server_rejects_it(
    server: play.ScriptedEndpoint, chat: Chat, status: int
) -> None:
    def act(request: play.Request) -> play.Act:
        if "response_format" in request.body:
            return play.error(status, "response_format is not supported")
        return play.chat("0.5")

    server.default = act
    endpoint = chat()
    assert endpoint.supports_schema is None
    reply = endpoint.complete_sync(HELLO, schema=SCHEMA)
    assert (reply.text, reply.usage.calls, endpoint.supports_schema) == ("0.5", 3, False)
    kinds = [request.body.get("response_format", {}).get("type") for request in server.requests]
    assert kinds == ["json_schema", "json_object", None]
    endpoint.complete_sync(HELLO, schema=SCHEMA)
    assert len(server.requests) == 4  # remembered


@pytest.mark.parametrize("status", [422, 500, 501])
def test_the_other_way_to_give_a_schema(server: play.ScriptedEndpoint, chat: Chat, status: int) -> None:
    """FastAPI answers 422; llama-cpp-python, which is built on it, 500."""

    def act(request: play.Request) -> play.Act:
        fine = request.body["response_format"]["type"] == "json_object"
        detail = [{"loc": ["response_format", "type"], "msg": "Input should be 'json_object'"}]
        return play.chat("0.5") if fine else play.reply({"detail": detail}, status=status)

    server.default = act
    endpoint = chat(retries=2)
    assert endpoint.complete_sync(HELLO, schema=SCHEMA).text == "0.5"
    assert endpoint.supports_schema is True
    assert len(server.requests) == 2
    assert server.requests[-1].body["response_format"] == {"type": "json_object", "schema": SCHEMA}


def test_a_schema_that_is_accepted(server: play.ScriptedEndpoint, chat: Chat) -> None:
    endpoint = chat()
    endpoint.complete_sync(HELLO, schema=SCHEMA)
    assert endpoint.supports_schema is True
    described = server.requests[0].body["response_format"]
    assert described == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
    }


def test_a_reasoning_model_that_takes_few_options(server: play.ScriptedEndpoint, chat: Chat) -> None:
    words = {
        "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "logprobs": "'logprobs' is not supported with this model.",
        "temperature": "Unsupported value: 'temperature' does not support 0.0 with this model.",
        "seed": "Unknown parameter: 'seed'.",
    }

    def act(request: play.Request) -> play.Act:
        wrong = next((name for name in words if name in request.body), None)
        return play.chat("0.5") if wrong is None else play.error(400, words[wrong])

    server.default = act
    endpoint = chat(seed=1)
    endpoint.complete_sync(HELLO, logprobs=True, schema=SCHEMA, max_tokens=12)
    assert len(server.requests) == 5
    assert set(server.requests[-1].body) == {"model", "messages", "max_completion_tokens", "response_format"}
    assert (endpoint.supports_schema, endpoint.supports_logprobs) == (True, False)
    endpoint.complete_sync(HELLO, logprobs=True, schema=SCHEMA)
    assert len(server.requests) == 6


def test_a_request_that_is_wrong_otherwise_teaches_nothing(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.acts = [play.error(400, "the context is too long")] * 4
    endpoint = chat()
    with pytest.raises(EndpointRejectedError, match="HTTP 400: the context is too long"):
        endpoint.complete_sync(HELLO, schema=SCHEMA, logprobs=True)
    assert (endpoint.supports_schema, endpoint.supports_logprobs) == (None, None)
    server.acts = []
    endpoint.complete_sync(HELLO, schema=SCHEMA, logprobs=True)
    assert {"response_format", "logprobs"} <= set(server.requests[-1].body)


@pytest.mark.usefixtures("quick_retries")
def test_a_broken_server_teaches_nothing(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.acts = [play.error(500, "out of memory")]
    endpoint = chat(retries=1)
    endpoint.complete_sync(HELLO, schema=SCHEMA)
    assert (len(server.requests), endpoint.supports_schema) == (2, True)
    server.default = play.error(500, "response_format broke the server")
    with pytest.raises(EndpointUnavailableError, match="HTTP 500"):
        endpoint.complete_sync(HELLO, schema=SCHEMA)
    assert endpoint.supports_schema is True


def test_a_filtered_prompt_is_not_sent_again(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.default = play.error(400, "filtered", code="content_filter")
    with pytest.raises(EndpointRejectedError, match="content_filter"):
        chat().complete_sync(HELLO, schema=SCHEMA)
    assert len(server.requests) == 1


# Any text, any option


# aiohttp finds a body above a megabyte worth a warning.
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.parametrize("text", ["", "\ud800 lone", "nul \0", "\u202e bidi", "x" * 2_000_000, "ümläut 日本"])
def test_any_text_can_be_sent(server: play.ScriptedEndpoint, chat: Chat, text: str) -> None:
    assert chat().complete_sync([{"role": "user", "content": text}]).text == "0.5"
    assert server.requests[0].prompt == text.replace("\ud800", "\N{REPLACEMENT CHARACTER}")


def test_lone_surrogates_of_the_server_do_not_come_through(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.acts = [play.chat("a\ud800b", refusal="\udfff")]
    reply = chat().complete_sync(HELLO)
    json.dumps([reply.text, reply.refusal], ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "messages",
    [
        [],
        "hello",
        {"role": "user", "content": "x"},
        [{"role": "user"}],
        [{"role": "root", "content": "x"}],
        [{"role": "user", "content": 5}],
        ["hello"],
        [{"content": "x"}],
    ],
)
def test_messages_of_another_shape(chat: Chat, messages: Any) -> None:
    with pytest.raises(InputError):
        chat().complete_sync(messages)


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 0},
        {"max_tokens": True},
        {"max_tokens": 1.5},
        {"deadline": math.nan},
        {"deadline": "soon"},
        {"schema": {"x": object()}},
    ],
)
def test_options_of_a_call(chat: Chat, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        chat().complete_sync(HELLO, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"timeout": 0},
        {"timeout": math.inf},
        {"timeout": True},
        {"retries": -1},
        {"retries": 1.0},
        {"concurrency": 0},
        {"input_price": -1.0},
        {"input_price": math.nan},
        {"base_url": "ftp://host/v1"},
        {"base_url": "host/v1"},
        {"base_url": "https://host/v1?version=1"},
        {"base_url": "https://host:port/v1"},
        {"base_url": "https://[::1/v1"},
        {"base_url": "https://" + "h" * 3000},
        {"base_url": None, "azure_endpoint": "https://x.example"},
        {"azure_endpoint": "https://x.example", "api_version": "1"},
        {"headers": {"X-A": "a\nb"}},
        {"api_key": "schlüssel"},
        {"api_key": "two\nlines"},
    ],
)
def test_options_that_cannot_work(options: dict[str, Any]) -> None:
    settings = {"model": "m", "base_url": "http://127.0.0.1:9/v1"} | options
    with pytest.raises(ConfigurationError):
        ChatEndpoint(**settings)


# Where the key and the address come from


def test_the_environment(server: play.ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigurationError, match=r"api\.openai\.com needs an API key.*OPENAI_API_KEY"):
        ChatEndpoint("m")
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment\n")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OTHER_KEY", "other")
    for options in ({}, {"api_key_env": "OTHER_KEY"}, {"api_key_env": None}, {"api_key": "given"}):
        endpoint = ChatEndpoint("m", **options)  # type: ignore[arg-type]
        endpoint.complete_sync(HELLO)
        endpoint.close()
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == [f"Bearer {key}" for key in ("from-environment", "other", "EMPTY", "given")]


def test_basic_authentication_and_headers(server: play.ScriptedEndpoint, chat: Chat) -> None:
    chat(base_url=server.url.replace("://", "://me:s%40cret@"), headers={"X-Team": "blue"}).complete_sync(
        HELLO
    )
    (request,) = server.requests
    assert request.headers["authorization"] == "Basic bWU6c0BjcmV0"
    assert request.headers["x-team"] == "blue"


def test_azure(server: play.ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    monkeypatch.setenv("OPENAI_API_KEY", "openai-key")
    endpoint = ChatEndpoint("my deployment", azure_endpoint=f"http://{server.host}", api_version="2025-01-01")
    assert endpoint.complete_sync(HELLO).text == "0.5"
    endpoint.close()
    (request,) = server.requests
    path = "/openai/deployments/my%20deployment/chat/completions?api-version=2025-01-01"
    assert (request.path, request.headers["api-key"]) == (path, "azure-key")
    assert "openai-key" not in str(request.headers)


def test_every_fault_is_an_error_of_surefoot() -> None:
    for kind in (EndpointTimeoutError, EndpointUnavailableError, EndpointRejectedError, EndpointReplyError):
        assert issubclass(kind, EndpointError)
        assert issubclass(kind, SurefootError)
    assert issubclass(EndpointTimeoutError, TimeoutError)

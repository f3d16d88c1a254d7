"""No key in a repr, a message, a log or an exception chain, however a server plays with it."""

from __future__ import annotations

import base64
import logging
import pprint
import traceback
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("openai")

import scripted_endpoint as play
from surefoot.endpoints import ChatEndpoint, DecisionEndpoint
from surefoot.endpoints.redaction import Redactor, Secret
from surefoot.errors import ConfigurationError, EndpointError

KEY = "key-7f3kZ0qLm29xVtYw"
PASSWORD = "pa55/w0rd+TXGhBn41"
HEADER = "hdr-Qe81mmzRk2"
SECRETS = (KEY, PASSWORD, HEADER)
HELLO = [{"role": "user", "content": "hello"}]


def forms(secret: str) -> set[str]:
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {secret, quote(secret, safe=""), encoded, secret[:8], secret[-8:]}


def assert_clean(text: str, secrets: tuple[str, ...] = SECRETS) -> None:
    for secret in secrets:
        for form in forms(secret):
            assert form not in text


def shown(error: BaseException) -> str:
    """Everything a logger, a debugger or an error tracker would show of an exception and its chain."""
    parts = ["".join(traceback.format_exception(error))]
    seen: BaseException | None = error
    while seen is not None:
        parts += [str(seen), repr(seen), pprint.pformat(seen.args), pprint.pformat(vars(seen))]
        seen = seen.__cause__ or seen.__context__
    return "\n".join(parts)


@pytest.fixture
def server() -> Iterator[play.ScriptedEndpoint]:
    with play.ScriptedEndpoint() as running:
        yield running


HELD = {"key": (KEY, HEADER), "userinfo": (PASSWORD, HEADER), "header": (HEADER,), "decision": (KEY, HEADER)}


def echo(status: int) -> Any:
    """A server that quotes the headers it got and all secrets, as they are, in halves and encoded."""

    def act(request: play.Request) -> play.Act:
        sent = [request.headers.get("authorization", ""), request.headers.get("x-secret", "")]
        known = [piece for secret in SECRETS for piece in forms(secret)]
        text = " ".join([*sent, *known, f"key{KEY}key", KEY[:10] + "****", KEY[:5] + "\u200b" + KEY[5:]])
        return play.error(status, text, code=KEY)

    return act


@pytest.fixture(params=["key", "userinfo", "header", "decision"])
def endpoint(request: pytest.FixtureRequest, server: play.ScriptedEndpoint) -> Iterator[Any]:
    options: dict[str, Any] = {"retries": 1, "timeout": 5.0, "headers": {"X-Secret": HEADER}}
    url = server.url
    if request.param == "userinfo":
        url = url.replace("://", f"://me:{quote(PASSWORD, safe='')}@")
    elif request.param != "header":
        options["api_key"] = KEY
    kind = DecisionEndpoint if request.param == "decision" else ChatEndpoint
    made = kind("m", base_url=url, **options)  # type: ignore[arg-type]
    made.held = HELD[request.param]
    yield made
    del made.held
    made.close()


def call(endpoint: Any) -> None:
    if isinstance(endpoint, DecisionEndpoint):
        endpoint.decide_sync("state", {"q": "true?"})
    else:
        endpoint.complete_sync(HELLO)


@pytest.mark.parametrize(
    "act",
    [
        *(echo(status) for status in (302, 400, 401, 403, 404, 422, 429, 500, 200)),
        play.disconnect(),
        play.drip(),
        play.endless(),
        play.Act(f'{{"error": "{KEY}'.encode()),
    ],
    ids=[
        "302",
        "400",
        "401",
        "403",
        "404",
        "422",
        "429",
        "500",
        "200",
        "disconnect",
        "drip",
        "endless",
        "cut",
    ],
)
def test_nothing_shows_a_secret(
    server: play.ScriptedEndpoint,
    endpoint: Any,
    act: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("surefoot.endpoints.calls._FIRST_PAUSE", 0.01)
    server.default = act
    caplog.set_level(logging.DEBUG)
    endpoint._caller.limits = type(endpoint._caller.limits)(timeout=1.0, retries=1)
    with pytest.raises(EndpointError) as caught:
        call(endpoint)
    sent = str([request.headers for request in server.requests])
    assert HEADER in sent  # it is sent where it belongs
    assert KEY in sent or KEY not in endpoint.held
    assert server.host in str(caught.value)
    assert_clean(shown(caught.value), endpoint.held)
    logged = "\n".join(f"{record.getMessage()} {record.args}" for record in caplog.records)
    assert_clean(logged, endpoint.held)
    assert caplog.records


def test_reprs(endpoint: Any, server: play.ScriptedEndpoint) -> None:
    public = {name: value for name, value in vars(endpoint).items() if name != "held"}
    text = "\n".join([repr(endpoint), str(endpoint), f"{endpoint}", pprint.pformat(public)])
    inner = endpoint._caller.http
    text += pprint.pformat(vars(endpoint._caller)) + pprint.pformat(
        {name: value for name, value in vars(inner).items() if name not in {"_client", "_closer"}}
    )
    assert server.host in text
    assert_clean(text)


@pytest.mark.parametrize(
    "url",
    [
        f"https://host.example/v1?key={KEY}",
        f"https://host.example/v1#{KEY}",
        f"https://me:{KEY}@host.example:port/v1",
        f"https://me:{KEY}@[::1/v1",
        f"ftp://me:{KEY}@host.example/v1",
        f"me:{KEY}@host.example",
        f"https://me:{KEY}@/v1",
    ],
)
def test_a_url_that_is_refused_is_not_quoted(url: str) -> None:
    for make in (ChatEndpoint, DecisionEndpoint):
        with pytest.raises(ConfigurationError) as caught:
            make("m", base_url=url)
        assert_clean(shown(caught.value))


@pytest.mark.parametrize("options", [{"api_key": KEY + "\n" + KEY}, {"headers": {"X-A": KEY + "ä"}}])
def test_a_key_that_is_refused_is_not_quoted(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ChatEndpoint("m", base_url="http://127.0.0.1:9/v1", **options)
    assert_clean(shown(caught.value))


def test_a_redirect_does_not_carry_the_key_elsewhere(server: play.ScriptedEndpoint) -> None:
    with play.ScriptedEndpoint() as elsewhere:
        server.default = play.Act(status=307, headers={"Location": f"{elsewhere.url}/chat/completions"})
        endpoint = ChatEndpoint("m", base_url=server.url, api_key=KEY, headers={"X-Secret": HEADER})
        with pytest.raises(EndpointError, match="redirect"):
            endpoint.complete_sync(HELLO)
        endpoint.close()
        assert elsewhere.requests == []


def test_a_secret_hides_itself() -> None:
    assert KEY not in f"{Secret(KEY)!r} {Secret(KEY)} {[Secret(KEY)]}"
    assert Secret(KEY).reveal() == KEY


@given(st.text(max_size=60), st.text(max_size=60))
def test_redaction_of_any_text(before: str, after: str) -> None:
    cleaned = Redactor([KEY]).clean(before + KEY + after)
    assert KEY not in cleaned
    assert cleaned.isprintable()


def test_other_words_stay() -> None:
    text = "The model `m` does not exist or you have no access to it"
    assert Redactor([KEY, PASSWORD]).clean(text) == text
    assert len(Redactor([]).clean("x " * 5000)) < 400

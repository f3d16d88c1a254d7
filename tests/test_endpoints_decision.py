"""Decision endpoints: all questions in one call, and a probability only where a valid one was given."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("openai")

import scripted_endpoint as play
from surefoot.endpoints import Budget, DecisionEndpoint
from surefoot.endpoints.decision import _answers
from surefoot.errors import (
    BudgetExceededError,
    ConfigurationError,
    EndpointRejectedError,
    EndpointReplyError,
    EndpointTimeoutError,
    EndpointUnavailableError,
    InputError,
)

QUESTIONS = {"a": "The parcel arrives within five days.", "b": "Returns are free."}
FINE = {"a": {"type": "noul", "noul": 0.98}, "b": {"type": "noul", "noul": 0}}


@pytest.fixture
def server() -> Iterator[play.ScriptedEndpoint]:
    with play.ScriptedEndpoint(default=play.decisions(FINE)) as running:
        yield running


@pytest.fixture
def endpoint(server: play.ScriptedEndpoint) -> Iterator[DecisionEndpoint]:
    made = DecisionEndpoint("asked-for", base_url=server.url, api_key="key", retries=0, timeout=10.0)
    yield made
    made.close()


def test_all_questions_in_one_call(server: play.ScriptedEndpoint, endpoint: DecisionEndpoint) -> None:
    reply = asyncio.run(endpoint.decide({"source": "five days", "n": [1, 2.5, None]}, QUESTIONS))
    assert reply.probabilities == {"a": 0.98, "b": 0.0}
    assert all(type(value) is float for value in reply.probabilities.values())
    assert (reply.model, reply.usage.calls, reply.usage.input_tokens) == ("noul-1", 1, 50)
    (request,) = server.requests
    assert request.path == "/v1/systemone"
    assert request.headers["authorization"] == "Bearer key"
    assert request.body == {
        "model": "asked-for",
        "state": {"source": "five days", "n": [1, 2.5, None]},
        "questions": {name: {"type": "noul", "instructions": text} for name, text in QUESTIONS.items()},
    }


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize(("flavour", "path"), [("systemone", "/v1/systemone"), ("openai", "/v1/decisions")])
def test_addresses(server: play.ScriptedEndpoint, suffix: str, flavour: Any, path: str) -> None:
    endpoint = DecisionEndpoint("m", base_url=f"http://{server.host}{suffix}", flavour=flavour)
    endpoint.decide_sync("five days", QUESTIONS)
    endpoint.close()
    assert [request.path for request in server.requests] == [path]


WRONG_ANSWERS = {
    "missing": {"a": {"type": "noul", "noul": 0.5}},
    "null": FINE | {"b": None},
    "bare": FINE | {"b": 0.5},
    "no type": FINE | {"b": {"noul": 0.5}},
    "another type": FINE | {"b": {"type": "score", "noul": 0.5}},
    "choice": FINE | {"b": {"type": "choice", "choice": "yes", "probabilities": {"yes": 1.0}}},
    "no number": FINE | {"b": {"type": "noul"}},
    "true": FINE | {"b": {"type": "noul", "noul": True}},
    "false": FINE | {"b": {"type": "noul", "noul": False}},
    "text": FINE | {"b": {"type": "noul", "noul": "0.5"}},
    "above": FINE | {"b": {"type": "noul", "noul": 1.0000001}},
    "below": FINE | {"b": {"type": "noul", "noul": -1e-9}},
    "percent": FINE | {"b": {"type": "noul", "noul": 98}},
    "list": FINE | {"b": {"type": "noul", "noul": [0.5]}},
    "huge": FINE | {"b": {"type": "noul", "noul": 10**400}},
    "none at all": {},
    "other ids": {"c": {"type": "noul", "noul": 0.5}},
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_one_wrong_answer_is_no_reply(
    server: play.ScriptedEndpoint, endpoint: DecisionEndpoint, name: str
) -> None:
    server.default = play.decisions(WRONG_ANSWERS[name])
    with pytest.raises(EndpointReplyError, match=f"{server.host}: invalid reply") as caught:
        endpoint.decide_sync("five days", QUESTIONS)
    assert caught.value.usage.calls == len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b'{"answers": {"a": {"type": "noul", "noul": NaN}, "b": {"type": "noul", "noul": 0.5}}}',
        b'{"answers": {"a": {"type": "noul", "noul": Infinity}, "b": {"type": "noul", "noul": 0.5}}}',
        b'{"answers": {"a": {"type": "noul", "noul": 0.9',
        b'{"answers": [0.9, 0.8]}',
        b'{"answers": null}',
        b'{"error": "overloaded"}',
        b"[0.9, 0.8]",
        b"0.9",
        b"",
    ],
)
def test_no_decision_at_all(server: play.ScriptedEndpoint, endpoint: DecisionEndpoint, body: bytes) -> None:
    server.default = play.Act(body)
    with pytest.raises(EndpointReplyError, match="invalid reply"):
        endpoint.decide_sync("five days", QUESTIONS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.one_of(json_values, st.fixed_dictionaries({"type": st.just("noul"), "noul": json_values})))
def test_whatever_is_answered_a_probability_is_one(answer: Any) -> None:
    try:
        _, probabilities = _answers({"answers": {"a": answer}}, {"a": "statement"})
    except (ValueError, TypeError, KeyError, AttributeError):
        return
    assert probabilities == {"a": answer["noul"]}
    assert type(answer["noul"]) in (int, float)
    assert 0.0 <= probabilities["a"] <= 1.0


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (play.error(401), EndpointRejectedError),
        (play.error(422), EndpointRejectedError),
        (play.rate_limited(), EndpointUnavailableError),
        (play.error(500), EndpointUnavailableError),
        (play.disconnect(), EndpointUnavailableError),
        (play.hang(), EndpointTimeoutError),
        (play.drip(), EndpointTimeoutError),
        (play.endless(), EndpointReplyError),
    ],
    ids=["401", "422", "429", "500", "disconnect", "hang", "drip", "endless"],
)
def test_faults(
    server: play.ScriptedEndpoint, endpoint: DecisionEndpoint, act: play.Act, kind: type[Exception]
) -> None:
    server.default = act
    with pytest.raises(kind, match=server.host):
        endpoint.decide_sync("five days", QUESTIONS, deadline=time.monotonic() + 1.0)


def test_the_budget_holds_here_too(server: play.ScriptedEndpoint) -> None:
    budget = Budget(tokens=400)
    endpoint = DecisionEndpoint("m", base_url=server.url, budget=budget)
    with pytest.raises(BudgetExceededError):
        endpoint.decide_sync("x" * 400, QUESTIONS)
    assert server.requests == []
    endpoint.decide_sync("x", QUESTIONS)
    endpoint.close()
    assert (budget.spent.calls, budget.spent.input_tokens) == (1, 50)
    assert endpoint.budget is budget


@pytest.mark.parametrize(
    ("state", "questions"),
    [
        ("x", {}),
        ("x", ["is it?"]),
        ("x", "is it?"),
        ("x", {"a": 1}),
        ("x", {1: "is it?"}),
        ("x", {chr(0xD800): "a", chr(0xDFFF): "b"}),
        (5, QUESTIONS),
        ({"a": object()}, QUESTIONS),
        ({"a": float("nan")}, QUESTIONS),
    ],
)
def test_what_cannot_be_asked(endpoint: DecisionEndpoint, state: Any, questions: Any) -> None:
    with pytest.raises(InputError):
        endpoint.decide_sync(state, questions)


def test_any_text_can_be_asked_about(server: play.ScriptedEndpoint, endpoint: DecisionEndpoint) -> None:
    server.default = lambda request: play.decisions(lambda *_: 0.5, request)
    statement = "lone \ud800, nul \0, " + json.dumps({"answers": {"a": {"type": "noul", "noul": 0.0}}})
    state = {"\ud800": ["\udfff", "x" * 100_000]}
    reply = endpoint.decide_sync(state, {"a\ud801": statement})
    assert list(reply.probabilities.values()) == [0.5]
    assert state == {"\ud800": ["\udfff", "x" * 100_000]}


@pytest.mark.parametrize("options", [{"flavour": "other"}, {"model": " "}, {"base_url": "host"}])
def test_options_that_cannot_work(options: dict[str, Any]) -> None:
    settings = {"model": "m", "base_url": "http://127.0.0.1:9"} | options
    with pytest.raises(ConfigurationError):
        DecisionEndpoint(**settings)

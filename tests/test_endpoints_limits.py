"""Budgets, concurrency, and event loops: what holds for many calls at a time."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("openai")

import scripted_endpoint as play
from surefoot.endpoints import Budget, ChatEndpoint, ChatReply, Usage
from surefoot.errors import (
    BudgetExceededError,
    ConfigurationError,
    EndpointError,
    EndpointTimeoutError,
    EndpointUnavailableError,
)

HELLO = [{"role": "user", "content": "hello"}]
INPUT_BOUND = 21
"""Tokens reserved for ``HELLO``: its bytes, and 16 for the template around a message."""

Chat = Callable[..., ChatEndpoint]


@pytest.fixture
def server() -> Iterator[play.ScriptedEndpoint]:
    with play.ScriptedEndpoint() as running:
        yield running


@pytest.fixture
def chat(server: play.ScriptedEndpoint) -> Iterator[Chat]:
    made: list[ChatEndpoint] = []

    def make(**options: Any) -> ChatEndpoint:
        settings = {"base_url": server.url, "retries": 0, "timeout": 20.0, "api_key_env": None} | options
        made.append(ChatEndpoint("m", **settings))
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.close()


def together(endpoint: ChatEndpoint, calls: int, **options: Any) -> list[ChatReply | BaseException]:
    async def run() -> list[ChatReply | BaseException]:
        every = [endpoint.complete(HELLO, **options) for _ in range(calls)]
        return await asyncio.gather(*every, return_exceptions=True)

    return asyncio.run(run())


# Usage


def test_usage_adds_up() -> None:
    total = Usage(1, 10, 2, 0.5, 1.0) + Usage(2, 5, 1, 0.25, 0.5)
    assert total == Usage(3, 15, 3, 0.75, 1.5)


def test_an_unknown_cost_stays_unknown_and_nothing_costs_nothing() -> None:
    assert (Usage(calls=1, cost=0.5) + Usage(calls=1)).cost is None
    assert (Usage() + Usage(calls=1, cost=0.5)).cost == 0.5
    assert (Usage() + Usage()).cost is None
    assert sum([Usage(1, cost=0.5), Usage(1, cost=0.0)], start=Usage()).cost == 0.5


# The budget by itself


@pytest.mark.parametrize("limit", [-1, float("nan"), float("inf"), True, "many"])
@pytest.mark.parametrize("name", ["tokens", "cost", "calls"])
def test_limits_that_cannot_work(name: str, limit: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Budget(**{name: limit})


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50), st.booleans()), max_size=40))
def test_a_budget_is_never_exceeded(steps: list[tuple[int, int, bool]]) -> None:
    budget = Budget(tokens=100)
    held: list[tuple[Any, int]] = []
    for wanted, used, settle in steps:
        try:
            held.append((budget.reserve(wanted, None), min(used, wanted)))
        except BudgetExceededError:
            reserved = sum(reservation.tokens for reservation, _ in held)
            assert budget.spent.input_tokens + reserved + wanted > 100
        if settle and held:
            reservation, amount = held.pop(0)
            budget.settle(reservation, Usage(1, amount))
        assert budget.spent.input_tokens + sum(reservation.tokens for reservation, _ in held) <= 100


def test_settling_twice_counts_once() -> None:
    budget = Budget(calls=3)
    reservation = budget.reserve(1, None)
    for _ in range(2):
        budget.settle(reservation, Usage(1, 1))
    assert budget.spent.calls == 1


def test_a_budget_of_money_needs_prices(server: play.ScriptedEndpoint) -> None:
    with pytest.raises(ConfigurationError, match="input_price"):
        ChatEndpoint("m", base_url=server.url, budget=Budget(cost=1.0), input_price=1.0)
    with pytest.raises(ConfigurationError, match="input_price"):
        Budget(cost=1.0).reserve(1, None)


# The budget of an endpoint


def test_nothing_is_sent_that_might_exceed_the_budget(server: play.ScriptedEndpoint, chat: Chat) -> None:
    budget = Budget(tokens=INPUT_BOUND + 10)
    endpoint = chat(budget=budget)
    with pytest.raises(BudgetExceededError, match="tokens"):
        endpoint.complete_sync(HELLO, max_tokens=11)
    assert server.requests == []
    server.default = play.chat("ok", usage=(5, 1))
    endpoint.complete_sync(HELLO, max_tokens=10)
    assert (budget.spent.calls, budget.spent.input_tokens, budget.spent.output_tokens) == (1, 5, 1)
    with pytest.raises(BudgetExceededError, match="on top of 6 used"):
        endpoint.complete_sync(HELLO, max_tokens=10)
    assert len(server.requests) == 1


def test_money(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.default = play.chat("ok", usage=(10, 10))
    budget = Budget(cost=0.001)
    endpoint = chat(budget=budget, input_price=10.0, output_price=20.0)  # 0.0003 a call
    results = together(endpoint, 20, max_tokens=10)
    paid = [result for result in results if isinstance(result, ChatReply)]
    assert len(paid) == len(server.requests) >= 2
    assert {type(result) for result in results} == {ChatReply, BudgetExceededError}
    assert budget.spent.cost == pytest.approx(0.0003 * len(paid))
    assert budget.spent.cost is not None
    assert budget.spent.cost <= 0.001


def test_calls_at_the_same_time_do_not_exceed_it_together(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.default = play.slow(0.1, play.chat("ok", usage=(1, 1)))
    budget = Budget(calls=7)
    results = together(chat(budget=budget, concurrency=30), 30)
    assert sum(isinstance(result, ChatReply) for result in results) == 7
    assert sum(isinstance(result, BudgetExceededError) for result in results) == 23
    assert len(server.requests) == budget.spent.calls == 7


def test_calls_wait_for_what_others_give_back(server: play.ScriptedEndpoint, chat: Chat) -> None:
    """The budget covers ten calls as they are, but only two at a time as they might be."""
    server.default = play.slow(0.02, play.chat("ok", usage=(1, 1)))
    budget = Budget(tokens=2 * (INPUT_BOUND + 100) + 20)
    results = together(chat(budget=budget, concurrency=10), 10, max_tokens=100)
    assert all(isinstance(result, ChatReply) for result in results)
    assert server.most_active <= 2


def test_waiting_for_the_budget_ends_at_the_deadline(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.default = play.hang()
    endpoint = chat(budget=Budget(tokens=INPUT_BOUND + 10))
    results = together(endpoint, 2, max_tokens=10, deadline=time.monotonic() + 0.5)
    assert [type(result) for result in results] == [EndpointTimeoutError] * 2
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("act", "tokens"),
    [
        (play.drip(), INPUT_BOUND + 10),
        (play.disconnect(), INPUT_BOUND + 10),
        (play.Act(b"nonsense"), INPUT_BOUND + 10),
        (play.endless(), INPUT_BOUND + 10),
        (play.error(400), 0),
        (play.error(500), 0),
        (play.rate_limited(), 0),
    ],
    ids=["drip", "disconnect", "nonsense", "endless", "400", "500", "429"],
)
def test_a_failed_call_counts_with_what_it_may_have_cost(
    server: play.ScriptedEndpoint, chat: Chat, act: play.Act, tokens: int
) -> None:
    server.default = act
    budget = Budget(tokens=1000, cost=10.0)
    endpoint = chat(budget=budget, input_price=1.0, output_price=1.0, timeout=1.0)
    with pytest.raises(EndpointError) as caught:
        endpoint.complete_sync(HELLO, max_tokens=10)
    assert budget.spent.calls == 1
    assert budget.spent.input_tokens + budget.spent.output_tokens == tokens
    assert budget.spent.cost == pytest.approx(tokens * 1e-6)
    assert (caught.value.usage.calls, caught.value.usage.cost) == (1, pytest.approx(tokens * 1e-6))


def test_each_attempt_counts(
    server: play.ScriptedEndpoint, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surefoot.endpoints.calls._FIRST_PAUSE", 0.01)
    server.default = play.error(503)
    with pytest.raises(BudgetExceededError) as caught:
        chat(budget=Budget(calls=2), retries=5).complete_sync(HELLO)
    assert len(server.requests) == caught.value.usage.calls == 2


def test_a_cancelled_call_counts_and_frees_its_slot(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.acts = [play.hang()]
    budget = Budget(tokens=1000)
    endpoint = chat(budget=budget, concurrency=1)

    async def run() -> ChatReply:
        call = asyncio.create_task(endpoint.complete(HELLO, max_tokens=10))
        while not server.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await endpoint.complete(HELLO, max_tokens=10)

    assert asyncio.run(run()).text == "0.5"
    assert budget.spent.calls == 2
    assert budget.spent.input_tokens >= INPUT_BOUND


def test_one_budget_for_two_endpoints(server: play.ScriptedEndpoint, chat: Chat) -> None:
    budget = Budget(calls=2)
    first, second = chat(budget=budget), chat(budget=budget)
    first.complete_sync(HELLO)
    second.complete_sync(HELLO)
    with pytest.raises(BudgetExceededError):
        first.complete_sync(HELLO)
    assert first.budget is second.budget is budget
    assert budget.exhausted


# Concurrency, threads and event loops


def test_concurrency_is_limited_over_threads_and_loops(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.default = play.slow(0.05, play.chat("ok"))
    endpoint = chat(concurrency=3)

    def in_a_loop(_: int) -> list[ChatReply | BaseException]:
        return together(endpoint, 4)

    with ThreadPoolExecutor(4) as pool:
        results = [reply for replies in pool.map(in_a_loop, range(4)) for reply in replies]
    assert [reply.text for reply in results if isinstance(reply, ChatReply)] == ["ok"] * 16
    assert 1 < server.most_active <= 3


def test_connections_are_reused_from_loop_to_loop(server: play.ScriptedEndpoint, chat: Chat) -> None:
    accepted = []
    original = server._server.get_request

    def counted() -> Any:
        accepted.append(1)
        return original()

    server._server.get_request = counted  # type: ignore[method-assign]
    endpoint = chat()
    for _ in range(5):
        assert asyncio.run(endpoint.complete(HELLO)).text == "0.5"
    assert len(server.requests) == 5
    assert len(accepted) == 1


def test_synchronously_inside_a_running_loop(chat: Chat) -> None:
    endpoint = chat()

    async def run() -> str:
        return endpoint.complete_sync(HELLO).text

    assert asyncio.run(run()) == "0.5"


def test_the_callers_loop_is_not_blocked(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.default = play.slow(0.3, play.chat("ok"))
    endpoint = chat()

    async def run() -> int:
        call = asyncio.create_task(endpoint.complete(HELLO))
        turns = 0
        while not call.done():
            await asyncio.sleep(0.001)
            turns += 1
        return turns

    assert asyncio.run(run()) > 3


def test_a_closed_endpoint_opens_again(chat: Chat) -> None:
    endpoint = chat()
    endpoint.complete_sync(HELLO)
    endpoint.close()
    endpoint.close()
    assert endpoint.complete_sync(HELLO).text == "0.5"
    asyncio.run(endpoint.aclose())


def test_an_endpoint_that_is_forgotten_is_closed(server: play.ScriptedEndpoint, chat: Chat) -> None:
    endpoint = ChatEndpoint("m", base_url=server.url)
    endpoint.complete_sync(HELLO)
    del endpoint
    gc.collect()  # an unclosed session would warn, and warnings are errors here
    assert chat().complete_sync(HELLO).text == "0.5"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_after_a_fork(server: play.ScriptedEndpoint) -> None:
    """In a process of its own: the test runner has threads, which make forking it a risk."""
    code = f"""
import os, sys
from surefoot.endpoints import ChatEndpoint
endpoint = ChatEndpoint("m", base_url={server.url!r}, timeout=20.0)
messages = [{{"role": "user", "content": "hello"}}]
assert endpoint.complete_sync(messages).text == "0.5"
child = os.fork()
if child == 0:
    ok = endpoint.complete_sync(messages).text == "0.5"
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert endpoint.complete_sync(messages).text == "0.5"
"""
    run_python(code)
    assert len(server.requests) == 3


def test_the_program_ends_quietly(server: play.ScriptedEndpoint) -> None:
    """With open connections, a call that hangs and a model in a thread that never returns."""
    server.acts = [play.chat("0.5"), play.hang()]
    code = f"""
import threading, time
from surefoot.endpoints import ChatEndpoint, as_chat
endpoint = ChatEndpoint("m", base_url={server.url!r})
messages = [{{"role": "user", "content": "hello"}}]
endpoint.complete_sync(messages)
started = threading.Event()
def stuck(messages):
    started.set()
    time.sleep(3600)
def quietly(chat):
    try:
        chat.complete_sync(messages)
    except BaseException:
        pass
for chat in (endpoint, as_chat(stuck)):
    threading.Thread(target=quietly, args=(chat,), daemon=True).start()
started.wait()
"""
    assert run_python(code) == ""


def run_python(code: str) -> str:
    source = Path(__file__).resolve().parents[1] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_no_thread_for_each_call(chat: Chat) -> None:
    endpoint = chat()
    endpoint.complete_sync(HELLO)
    before = {thread.name for thread in threading.enumerate()}
    for _ in range(5):
        endpoint.complete_sync(HELLO)
    assert {thread.name for thread in threading.enumerate()} - before <= set()
    assert "surefoot-endpoints" in before


def test_many_failures_do_not_use_up_the_slots(server: play.ScriptedEndpoint, chat: Chat) -> None:
    server.default = play.disconnect()
    endpoint = chat(concurrency=2)
    results = together(endpoint, 10)
    assert {type(result) for result in results} == {EndpointUnavailableError}
    server.default = play.chat("ok")
    assert endpoint.complete_sync(HELLO).text == "ok"

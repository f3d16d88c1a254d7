"""What chat and decision endpoints share: slots, deadline, retries, budget, and errors in words."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from surefoot.endpoints.budget import Budget
from surefoot.endpoints.http import HttpClient, Outcome
from surefoot.endpoints.loop import Slots
from surefoot.endpoints.records import Usage
from surefoot.errors import (
    BudgetExceededError,
    ConfigurationError,
    EndpointError,
    EndpointRejectedError,
    EndpointReplyError,
    EndpointTimeoutError,
    EndpointUnavailableError,
)

__all__ = ["Caller", "Ledger", "Limits", "check_deadline", "parse_json", "printable", "time_left"]

_RETRIED: Final = frozenset({408, 409, 429})
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 8.0
_LONGEST_WISH: Final = 60.0
"""Seconds; a server that asks to wait longer is as good as unavailable."""

_MOST_TOKENS: Final = 10**9
_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")


def printable(text: str) -> str:
    """``text`` with lone surrogates replaced, so that it can be sent as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.translate(_SURROGATES)
    return text


def check_deadline(deadline: float | None) -> None:
    """Refuse a deadline that is no time, which would count as "never".

    Raises:
        ConfigurationError: it is neither ``None`` nor a number; NaN included.
    """
    if deadline is None:
        return
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or math.isnan(deadline):
        raise ConfigurationError("deadline must be a value of time.monotonic()")


def parse_json(body: bytes) -> Any:
    """Strict JSON (RFC 8259): UTF-8, no NaN or Infinity.

    Raises:
        ValueError: it is not; too deep nesting and too long numbers included.
    """

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(body.decode("utf-8-sig"), parse_constant=refuse)
    except (ValueError, RecursionError):  # chained, they would quote the whole reply
        raise ValueError("not JSON") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How an endpoint may be used; the options that both kinds of endpoints have in common.

    Attributes:
        timeout: seconds for one attempt.
        retries: further attempts after a failure that may pass.
        concurrency: calls at a time.
        budget: what the calls may use together; may be shared with other endpoints.
        input_price: money for a million input tokens.
        output_price: money for a million output tokens.

    Raises:
        ConfigurationError: a value cannot work, or the budget limits money and a price is missing.
    """

    timeout: float = 30.0
    retries: int = 2
    concurrency: int = 8
    budget: Budget | None = None
    input_price: float | None = None
    output_price: float | None = None

    def __post_init__(self) -> None:
        _check("timeout", self.timeout, above=0.0)
        for name, whole, least in (("retries", self.retries, 0), ("concurrency", self.concurrency, 1)):
            if isinstance(whole, bool) or not isinstance(whole, int) or whole < least:
                raise ConfigurationError(f"{name} must be a whole number of at least {least}")
        for name, price in (("input_price", self.input_price), ("output_price", self.output_price)):
            if price is not None:
                _check(name, price, least=0.0)
        if self.budget is not None and self.budget.cost is not None and self.cost(1, 1) is None:
            raise ConfigurationError(
                "a budget with a cost needs input_price and output_price, per million tokens"
            )

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """Money for so many tokens; ``None`` without prices."""
        if self.input_price is None or self.output_price is None:
            return None
        return (input_tokens * self.input_price + output_tokens * self.output_price) / 1e6


def _check(name: str, value: float, *, above: float = -math.inf, least: float = -math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"{name} must be a finite number")
    if value <= above or value < least:
        raise ConfigurationError(f"{name} is too small: {value}")


@dataclass(slots=True)
class Ledger:
    """What one call has used so far, over all of its attempts."""

    started: float = field(default_factory=time.monotonic)
    usage: Usage = field(default_factory=Usage)

    def total(self) -> Usage:
        """The sum, with the time since the start."""
        passed = Usage(seconds=time.monotonic() - self.started)
        return self.usage + passed


class Caller:
    """Sends requests to one host within the limits.

    Args:
        http: the client.
        limits: see :class:`Limits`.
    """

    def __init__(self, http: HttpClient, limits: Limits) -> None:
        self.http = http
        self.limits = limits
        self._slots = Slots(limits.concurrency)

    @asynccontextmanager
    async def slot(self, deadline: float | None) -> AsyncIterator[None]:
        """Wait for one of the places that ``concurrency`` allows.

        Raises:
            EndpointTimeoutError: the deadline came first.
        """
        try:
            async with asyncio.timeout(time_left(deadline)):
                await self._slots.acquire()
        except TimeoutError:
            raise EndpointTimeoutError(
                f"{self.http.host}: the deadline passed before a call could start"
            ) from None
        try:
            yield
        finally:
            self._slots.release()

    async def send(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        input_tokens: int,
        output_tokens: int,
        deadline: float | None,
        ledger: Ledger,
        final: Callable[[Outcome], bool] | None = None,
    ) -> Outcome:
        """Send until there is an answer that a retry would not change.

        Args:
            path: below the address of the host.
            body: JSON object.
            input_tokens: most tokens that ``body`` can be.
            output_tokens: most tokens of the reply.
            deadline: value of ``time.monotonic()`` after which nothing may go on.
            ledger: gets what the attempts used.
            final: whether a reply with a status that may pass is known not to.

        Returns:
            A complete reply: 2xx, 3xx and 4xx that are final, and what ``final`` says is. What a 2xx reply
            says about its tokens is put into the ledger.

        Raises:
            BudgetExceededError: the next attempt might exceed the budget.
            EndpointTimeoutError: the last attempt, or the deadline, ran out.
            EndpointUnavailableError: no connection, 408, 409, 429 or 5xx to the last.
            EndpointReplyError: the reply is oversized or compressed.
        """
        attempt = 0
        while True:
            left = time_left(deadline)
            if left is not None and left <= 0.0:
                raise self.error(EndpointTimeoutError, "the deadline passed", ledger)
            timeout = self.limits.timeout if left is None else min(self.limits.timeout, left)
            outcome = await self._attempt(
                path, body, input_tokens, output_tokens, timeout=timeout, ledger=ledger
            )
            attempt += 1
            if outcome.failure is None and final is not None and final(outcome):
                return outcome
            if not _may_pass(outcome):
                if outcome.failure is not None:
                    raise self.error(EndpointReplyError, outcome.detail, ledger)
                return outcome
            kind = EndpointTimeoutError if outcome.failure == "timeout" else EndpointUnavailableError
            what = outcome.detail if outcome.failure else self.describe(outcome)
            times = "" if attempt == 1 else f" ({attempt} attempts)"
            if attempt > self.limits.retries:
                raise self.error(kind, what + times, ledger)
            pause = random.uniform(0.0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (attempt - 1)))  # noqa: S311
            if outcome.retry_after is not None:
                # Never before the time asked for, and not everybody in the same moment.
                pause = outcome.retry_after + pause / 4
                times += f", asks to wait {outcome.retry_after:.3g} s"
            left = time_left(deadline)
            if (left is not None and pause >= left) or (outcome.retry_after or 0.0) > _LONGEST_WISH:
                raise self.error(kind, what + times, ledger)
            await asyncio.sleep(pause)

    async def _attempt(
        self,
        path: str,
        body: Mapping[str, Any],
        input_tokens: int,
        output_tokens: int,
        *,
        timeout: float,
        ledger: Ledger,
    ) -> Outcome:
        limits = self.limits
        worst = Usage(1, input_tokens, output_tokens, limits.cost(input_tokens, output_tokens))
        reservation = None
        if limits.budget is not None:
            try:
                async with asyncio.timeout(timeout):
                    reservation = await limits.budget.acquire(input_tokens + output_tokens, worst.cost)
            except TimeoutError:
                return Outcome(failure="timeout", detail="calls under way hold the budget", sent=False)
            except BudgetExceededError as error:
                error.usage = ledger.total()
                raise
        started = time.monotonic()
        # Until the reply says less, the request may have cost everything: also when this is cancelled.
        used = worst
        try:
            outcome = await self.http.post(path, body, timeout=timeout)
            refused = outcome.status is not None and not 200 <= outcome.status < 300
            if refused or not outcome.sent:
                used = Usage(1, cost=limits.cost(0, 0))
            elif outcome.failure is None:
                used = self._reported(outcome.body, worst)
        finally:
            if reservation is not None and limits.budget is not None:
                took = Usage(cost=0.0, seconds=time.monotonic() - started)
                limits.budget.settle(reservation, used + took)
            ledger.usage = ledger.usage + used
        return outcome

    def _reported(self, body: bytes, worst: Usage) -> Usage:
        """What the reply says it used; numbers that cannot be are not believed."""
        try:
            usage = parse_json(body)["usage"]
            read = usage.get("prompt_tokens", usage.get("input_tokens"))
            written = usage.get("completion_tokens", usage.get("output_tokens", 0))
        except (ValueError, KeyError, TypeError, AttributeError):
            return worst
        for count in (read, written):
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST_TOKENS:
                return worst
        return Usage(1, read, written, self.limits.cost(read, written))

    def error(self, kind: type[EndpointError], what: str, ledger: Ledger) -> EndpointError:
        """An exception that names the host and holds what was used."""
        error = kind(f"{self.http.host}: {what}")
        error.usage = ledger.total()
        return error

    def rejected(self, outcome: Outcome, ledger: Ledger) -> EndpointError:
        """The exception for a final status other than 2xx."""
        kind = EndpointUnavailableError if (outcome.status or 0) >= 500 else EndpointRejectedError
        return self.error(kind, self.describe(outcome), ledger)

    def describe(self, outcome: Outcome) -> str:
        """Status and, where it says more, the server's own words without secrets."""
        status = outcome.status or 0
        meanings = {401: "not authorised: check the API key", 403: "not allowed", 407: "proxy credentials"}
        if status in meanings:
            return f"HTTP {status}, {meanings[status]}"  # servers quote keys in these replies
        if 300 <= status < 400:
            return f"HTTP {status}, a redirect, which is not followed"
        words = self.http.redactor.clean(_complaint(outcome.body))
        return f"HTTP {status}" + (f": {words}" if words else "")


def _complaint(body: bytes) -> str:
    """What an error body says: ``error.message`` and ``error.code`` or their like, else nothing."""
    try:
        parsed = parse_json(body)
    except ValueError:
        return ""
    error = parsed.get("error", parsed.get("detail", parsed)) if isinstance(parsed, dict) else None
    if isinstance(error, str):
        return error
    if isinstance(error, dict):
        parts = [error.get(name) for name in ("message", "code")]
        return ", ".join(part for part in parts if isinstance(part, str) and part)
    if isinstance(error, list):  # validation errors of FastAPI
        return json.dumps(error)[:4096]
    return ""


def time_left(deadline: float | None) -> float | None:
    """Seconds until ``deadline``, negative after it; ``None`` where there is none."""
    return None if deadline is None or deadline == math.inf else deadline - time.monotonic()


def _may_pass(outcome: Outcome) -> bool:
    if outcome.failure is not None:
        return outcome.failure in {"timeout", "connection"}
    return outcome.status in _RETRIED or (outcome.status or 0) >= 500

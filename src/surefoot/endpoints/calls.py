"""What chat and decision endpoints share: limits, a place among the running calls, retries, budget."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypedDict, TypeVar

from surefoot.checks import check_not_negative, check_positive, check_whole
from surefoot.endpoints.budget import Budget
from surefoot.endpoints.http import Host, Outcome
from surefoot.endpoints.loop import Slots
from surefoot.endpoints.records import Usage, time_left
from surefoot.endpoints.wire import parse_json, printable
from surefoot.errors import (
    BudgetExceededError,
    ConfigurationError,
    EndpointError,
    EndpointRejectedError,
    EndpointReplyError,
    EndpointTimeoutError,
    EndpointUnavailableError,
)

__all__ = ["Call", "Endpoint", "EndpointOptions", "Limits", "token_bound"]

_RETRIED: Final = frozenset({408, 409, 429})
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 8.0
_LONGEST_WISH: Final = 60.0
"""Seconds; a server that asks to wait longer is as good as unavailable."""

_MOST_TOKENS: Final = 10**9
_MESSAGE_TOKENS: Final = 16
"""Upper bound on the tokens that a chat template puts around one message."""

_MEANINGS: Final = {
    401: "not authorised: check the API key",
    403: "not allowed",
    407: "proxy credentials",
}
"""Statuses that say enough; servers quote keys in these replies."""

T = TypeVar("T")


class EndpointOptions(TypedDict, total=False):
    """The options that all endpoints share; :class:`Limits` describes them."""

    timeout: float
    retries: int
    concurrency: int
    budget: Budget | None
    input_price: float | None
    output_price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How an endpoint may be used.

    Attributes:
        timeout: seconds for one attempt, from the connection to the last byte.
        retries: further attempts after timeouts, lost connections, 408, 409, 429 and 5xx.
        concurrency: calls at the same time, over all threads and event loops.
        budget: limit on what the calls may use together; may be shared with other endpoints.
        input_price: money per million input tokens.
        output_price: money per million output tokens.

    Raises:
        ConfigurationError: a value is invalid, or the budget limits money and a price is missing.
    """

    timeout: float = 30.0
    retries: int = 2
    concurrency: int = 8
    budget: Budget | None = None
    input_price: float | None = None
    output_price: float | None = None

    def __post_init__(self) -> None:
        check_positive(timeout=self.timeout)
        check_whole(0, retries=self.retries)
        check_whole(concurrency=self.concurrency)
        check_not_negative(input_price=self.input_price, output_price=self.output_price)
        if self.budget is not None and self.budget.cost is not None and self.cost(1, 1) is None:
            raise ConfigurationError(
                "a budget with a cost needs input_price and output_price, per million tokens"
            )

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """Money for so many tokens; ``None`` without prices."""
        if self.input_price is None or self.output_price is None:
            return None
        return (input_tokens * self.input_price + output_tokens * self.output_price) / 1e6


class Endpoint:
    """A model behind a server.

    Args:
        model: name of the model.
        host: the server.
        limits: see :class:`Limits`.

    Raises:
        ConfigurationError: ``model`` is not a name.
    """

    def __init__(self, model: str, host: Host, limits: Limits) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ConfigurationError("model must be the name of a model")
        self.model = printable(model)
        self.host = host
        self.limits = limits
        self._slots = Slots(limits.concurrency)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, host={self.host.name!r})"

    @property
    def budget(self) -> Budget | None:
        """The budget that this endpoint was given."""
        return self.limits.budget

    @asynccontextmanager
    async def calling(self, deadline: float | None) -> AsyncIterator[Call]:
        """Take one of the ``concurrency`` places; to be used on the shared loop.

        Raises:
            EndpointTimeoutError: the deadline came first.
        """
        call = Call(self.host, self.limits, deadline)
        slots = self._slots.here()
        try:
            async with asyncio.timeout(time_left(deadline)):
                await slots.acquire()
        except TimeoutError:
            raise EndpointTimeoutError(
                f"{self.host.name}: the deadline passed before a call could start"
            ) from None
        try:
            yield call
        finally:
            slots.release()


class Call:
    """One call: its attempts, and what they used."""

    def __init__(self, host: Host, limits: Limits, deadline: float | None) -> None:
        self._host = host
        self._limits = limits
        self._deadline = deadline
        self._started = time.monotonic()
        self._used = Usage()

    def usage(self) -> Usage:
        """What was used so far."""
        return self._used + Usage(seconds=time.monotonic() - self._started)

    async def send(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        input_tokens: int,
        output_tokens: int,
        final: Callable[[Outcome], bool] = lambda _: False,
    ) -> Outcome:
        """Send until there is a reply that a retry would not change.

        Args:
            path: below the base URL of the host.
            body: JSON object.
            input_tokens: upper bound for the tokens of ``body``.
            output_tokens: upper bound for the tokens of the reply.
            final: whether a reply is known to be final although its status would be retried.

        Raises:
            BudgetExceededError: the next attempt might exceed the budget.
            EndpointTimeoutError: the last attempt timed out, or the deadline passed.
            EndpointUnavailableError: the last attempt got no connection, 408, 409, 429 or 5xx.
            EndpointReplyError: the reply is oversized or compressed.
        """
        for attempt in itertools.count(1):
            timeout = min(self._limits.timeout, time_left(self._deadline))
            if timeout <= 0.0:
                break
            outcome = await self._attempt(path, body, input_tokens, output_tokens, timeout)
            if outcome.failure == "reply":
                raise self.error(EndpointReplyError, outcome.detail)
            if outcome.failure is None and (final(outcome) or not _may_pass(outcome.status or 0)):
                return outcome
            what = outcome.detail or self._describe(outcome)
            if attempt > 1:
                what += f" ({attempt} attempts)"
            pause = random.uniform(0.0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (attempt - 1)))  # noqa: S311
            wish = outcome.retry_after or 0.0
            if outcome.retry_after is not None and attempt <= self._limits.retries:
                pause = wish + pause / 4  # never earlier than asked for, and not everybody at the same moment
                what += f", asks to wait {wish:.3g} s"
            too_late = wish > _LONGEST_WISH or pause >= time_left(self._deadline)
            if attempt > self._limits.retries or too_late:
                timed_out = outcome.failure == "timeout"
                raise self.error(EndpointTimeoutError if timed_out else EndpointUnavailableError, what)
            await asyncio.sleep(pause)
        raise self.error(EndpointTimeoutError, "the deadline passed")

    async def _attempt(
        self, path: str, body: Mapping[str, Any], input_tokens: int, output_tokens: int, timeout: float
    ) -> Outcome:
        limits, budget = self._limits, self._limits.budget
        worst = Usage(1, input_tokens, output_tokens, limits.cost(input_tokens, output_tokens))
        reservation = None
        if budget is not None:
            try:
                async with asyncio.timeout(timeout):
                    reservation = await budget.acquire(input_tokens + output_tokens, worst.cost)
            except TimeoutError:
                return Outcome(failure="timeout", detail="calls under way hold the budget", sent=False)
            except BudgetExceededError as error:
                error.usage = self.usage()
                raise
        started = time.monotonic()
        # Until the reply says less, the request may have cost everything, even if this is cancelled.
        used = worst
        try:
            outcome = await self._host.post(path, body, timeout=timeout)
            if not outcome.sent or (outcome.status is not None and not 200 <= outcome.status < 300):
                used = Usage(1, cost=limits.cost(0, 0))
            elif outcome.failure is None:
                used = self._reported(outcome.body) or worst
        finally:
            if budget is not None and reservation is not None:
                budget.settle(reservation, used + Usage(cost=0.0, seconds=time.monotonic() - started))
            self._used = self._used + used
        return outcome

    def _reported(self, body: bytes) -> Usage | None:
        """What the reply says it used; impossible numbers are not believed."""
        try:
            usage = parse_json(body)["usage"]
            counts = (
                usage.get("prompt_tokens", usage.get("input_tokens")),
                usage.get("completion_tokens", usage.get("output_tokens", 0)),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if not all(type(count) is int and 0 <= count <= _MOST_TOKENS for count in counts):
            return None
        return Usage(1, *counts, self._limits.cost(*counts))

    def read(self, outcome: Outcome, reader: Callable[[Any], T], *, shape: str) -> T:
        """What ``reader`` makes of the JSON of a reply.

        Args:
            outcome: a complete reply.
            reader: raises ValueError with a reason, or any other exception of data of the wrong shape.
            shape: what the reply should be, for messages.

        Raises:
            EndpointRejectedError: the status is 3xx or 4xx.
            EndpointUnavailableError: the status is 5xx.
            EndpointReplyError: the reply is invalid.
        """
        status = outcome.status or 0
        if not 200 <= status < 300:
            kind = EndpointUnavailableError if status >= 500 else EndpointRejectedError
            raise self.error(kind, self._describe(outcome))
        try:
            return reader(parse_json(outcome.body))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = str(error) if type(error) is ValueError else f"not of the shape of a {shape}"
        # Outside of the handler: a chained exception could quote the reply.
        raise self.error(EndpointReplyError, f"invalid reply: {self._host.redactor.clean(problem)}")

    def error(self, kind: type[EndpointError], what: str) -> EndpointError:
        """An exception that names the host and holds what was used."""
        error = kind(f"{self._host.name}: {what}")
        error.usage = self.usage()
        return error

    def _describe(self, outcome: Outcome) -> str:
        """The status and, if that does not say enough, the server's own words without secrets."""
        status = outcome.status or 0
        if 300 <= status < 400:
            return f"HTTP {status}, a redirect, which is not followed"
        if status in _MEANINGS:
            return f"HTTP {status}, {_MEANINGS[status]}"
        words = self._host.redactor.clean(_complaint(outcome.body))
        return f"HTTP {status}" + (f": {words}" if words else "")


def _complaint(body: bytes) -> str:
    """What an error body says: ``error.message`` and ``error.code`` or similar, otherwise nothing."""
    try:
        parsed = parse_json(body)
    except ValueError:
        return ""
    error = parsed.get("error", parsed.get("detail", parsed)) if isinstance(parsed, dict) else None
    if isinstance(error, dict):
        parts = [error.get(name) for name in ("message", "code")]
        return ", ".join(part for part in parts if isinstance(part, str) and part)
    if isinstance(error, list):  # validation errors of FastAPI
        return json.dumps(error)[:4096]
    return error if isinstance(error, str) else ""


def _may_pass(status: int) -> bool:
    return status in _RETRIED or status >= 500


def token_bound(texts: Iterable[str]) -> int:
    """Upper bound for the tokens of ``texts`` with any byte-level tokenizer: one per byte of UTF-8."""
    return sum(len(text.encode("utf-8", "replace")) + _MESSAGE_TOKENS for text in texts)

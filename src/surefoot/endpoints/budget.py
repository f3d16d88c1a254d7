"""A budget of tokens, money and calls that is never exceeded: reserve first, settle afterwards.

Counting what has been spent is not enough where calls run at the same time: fifty of them see the same
remainder. So each reserves the most that it can use before it is sent, and gives back what it did not use.
"""

from __future__ import annotations

import asyncio
import math
import threading
from concurrent.futures import Future
from dataclasses import dataclass

from surefoot.endpoints.records import Usage
from surefoot.errors import BudgetExceededError, ConfigurationError

__all__ = ["Budget", "Reservation"]


@dataclass(frozen=True, slots=True)
class Reservation:
    """The most that a call about to be sent can use."""

    tokens: int
    cost: float | None


class Budget:
    """A limit on what the calls of one or several endpoints use together. Safe under threads and tasks.

    Args:
        tokens: most input and output tokens together.
        cost: most money, in the currency of the prices given to the endpoints.
        calls: most requests; a retry is a request of its own.

    Raises:
        ConfigurationError: a limit is negative or not a finite number.
    """

    def __init__(
        self, *, tokens: int | None = None, cost: float | None = None, calls: int | None = None
    ) -> None:
        for name, limit in (("tokens", tokens), ("cost", cost), ("calls", calls)):
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not math.isfinite(limit):
                raise ConfigurationError(f"budget: {name} must be a finite number")
            if limit < 0:
                raise ConfigurationError(f"budget: {name} must not be negative: {limit}")
        self.tokens = tokens
        self.cost = cost
        self.calls = calls
        self._lock = threading.Lock()
        self._spent = Usage()
        self._reserved: dict[int, Reservation] = {}
        self._waiting: list[Future[None]] = []

    def __repr__(self) -> str:
        return f"Budget(tokens={self.tokens}, cost={self.cost}, calls={self.calls}, spent={self.spent})"

    @property
    def spent(self) -> Usage:
        """What settled calls have used. A call without a usable reply counts with all that it reserved."""
        with self._lock:
            return self._spent

    @property
    def exhausted(self) -> bool:
        """Whether not even a call of one token fits any more."""
        with self._lock:
            return self._lack(Reservation(1, 0.0)) is not None

    def reserve(self, tokens: int, cost: float | None) -> Reservation:
        """Set aside what a call can use at most.

        Args:
            tokens: input and output together.
            cost: ``None`` where the endpoint has no prices.

        Raises:
            BudgetExceededError: it does not fit into what is left; nothing is set aside.
            ConfigurationError: the budget limits the cost, and the endpoint has no prices.
        """
        with self._lock:
            return self._take(Reservation(tokens, cost))

    async def acquire(self, tokens: int, cost: float | None) -> Reservation:
        """:meth:`reserve`, but wait where calls under way may give back enough.

        What they reserve is several times what they use: without waiting, a budget would refuse calls while
        most of it is left.
        """
        wanted = Reservation(tokens, cost)
        while True:
            with self._lock:
                try:
                    return self._take(wanted)
                except BudgetExceededError:
                    if not self._reserved or self._lack(wanted, at_least=True):
                        raise
                ticket: Future[None] = Future()
                self._waiting.append(ticket)
            await asyncio.wrap_future(ticket)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Replace a reservation by what the call used; ``None`` where nothing was sent.

        A reservation can be settled once; further calls change nothing.
        """
        with self._lock:
            if self._reserved.pop(id(reservation), None) is not None and usage is not None:
                self._spent = self._spent + usage
            waiting, self._waiting = self._waiting, []
        for ticket in waiting:
            if ticket.set_running_or_notify_cancel():
                ticket.set_result(None)

    def _take(self, wanted: Reservation) -> Reservation:
        """Set aside or raise. The lock is held."""
        if self.cost is not None and wanted.cost is None:
            raise ConfigurationError(
                "a budget with a cost needs an endpoint with input_price and output_price"
            )
        lack = self._lack(wanted)
        if lack is not None:
            raise BudgetExceededError(f"not sent, the budget does not cover it: {lack}")
        self._reserved[id(wanted)] = wanted
        return wanted

    def _lack(self, wanted: Reservation, *, at_least: bool = False) -> str | None:
        """Which limit ``wanted`` would exceed, in words; ``None`` where none.

        The lock is held. With ``at_least``, calls under way are taken to give back all but the call itself.
        """
        held = [] if at_least else list(self._reserved.values())
        tokens = self._spent.input_tokens + self._spent.output_tokens + sum(part.tokens for part in held)
        cost = (self._spent.cost or 0.0) + sum(part.cost or 0.0 for part in held)
        calls = self._spent.calls + len(self._reserved)
        if self.calls is not None and calls + 1 > self.calls:
            return f"{calls} of {self.calls} calls are used or under way"
        if self.tokens is not None and tokens + wanted.tokens > self.tokens:
            return f"up to {wanted.tokens} tokens on top of {tokens} used or reserved, of {self.tokens}"
        if self.cost is not None and cost + (wanted.cost or 0.0) > self.cost:
            return f"up to {wanted.cost or 0.0:.6f} on top of {cost:.6f} used or reserved, of {self.cost}"
        return None

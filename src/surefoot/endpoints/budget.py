"""A budget of tokens, money and calls that is never exceeded: reserve first, settle afterwards.

Counting what has been spent is not enough if calls run at the same time: fifty of them see the same
remainder. So each one reserves the most that it can use before it is sent, and gives back the rest.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Final

from surefoot.checks import check_not_negative
from surefoot.endpoints.records import Usage
from surefoot.errors import BudgetExceededError, ConfigurationError

__all__ = ["Budget", "Reservation"]

_LOOK_AGAIN: Final = 0.01
"""Seconds between two looks at a budget that calls under way hold."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The most that a call about to be sent can use."""

    tokens: int
    cost: float | None


class Budget:
    """A limit on what the calls of one or several endpoints use together. Safe under threads and tasks.

    Args:
        tokens: limit on input and output tokens together.
        cost: limit on money, in the currency of the endpoints' prices.
        calls: limit on requests; every retry is a request.

    Raises:
        ConfigurationError: a limit is negative or not a finite number.
    """

    def __init__(
        self, *, tokens: int | None = None, cost: float | None = None, calls: int | None = None
    ) -> None:
        check_not_negative(tokens=tokens, cost=cost, calls=calls)
        self.tokens = tokens
        self.cost = cost
        self.calls = calls
        self._lock = threading.Lock()
        self._spent = Usage()
        self._reserved: dict[int, Reservation] = {}

    def __repr__(self) -> str:
        return f"Budget(tokens={self.tokens}, cost={self.cost}, calls={self.calls}, spent={self.spent})"

    @property
    def spent(self) -> Usage:
        """What settled calls have used. A call without a usable reply counts with all that it reserved."""
        with self._lock:
            return self._spent

    def reserve(self, tokens: int, cost: float | None) -> Reservation:
        """Set aside the most that a call can use.

        Args:
            tokens: input and output together.
            cost: ``None`` if the endpoint has no prices.

        Raises:
            BudgetExceededError: it does not fit into what is left; nothing is set aside.
            ConfigurationError: the budget limits the cost, and the endpoint has no prices.
        """
        if self.cost is not None and cost is None:
            raise ConfigurationError(
                "a budget with a cost needs an endpoint with input_price and output_price"
            )
        wanted = Reservation(tokens, cost)
        with self._lock:
            lack = self._lack(wanted)
            if lack is not None:
                raise BudgetExceededError(f"not sent, the budget does not cover it: {lack}")
            self._reserved[id(wanted)] = wanted
        return wanted

    async def acquire(self, tokens: int, cost: float | None) -> Reservation:
        """:meth:`reserve`, but wait while calls under way may give back enough.

        They reserve several times what they use: without waiting, a budget would refuse calls while most of
        it is left.
        """
        while True:
            try:
                return self.reserve(tokens, cost)
            except BudgetExceededError:
                with self._lock:
                    if self._lack(Reservation(tokens, cost), at_least=True):
                        raise
            await asyncio.sleep(_LOOK_AGAIN)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Replace a reservation by what the call used; ``None`` if nothing was sent.

        A reservation can be settled once; further calls change nothing.
        """
        with self._lock:
            if self._reserved.pop(id(reservation), None) is not None and usage is not None:
                self._spent = self._spent + usage

    def _lack(self, wanted: Reservation, *, at_least: bool = False) -> str | None:
        """Which limit ``wanted`` would exceed, in words; ``None`` if none. The lock is held.

        With ``at_least``, calls under way are taken to give back everything but the call itself.
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

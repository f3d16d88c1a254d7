"""One plan, run in two ways: by a caller that may block, and by an event loop that must not.

A plan is a generator. It yields work, is sent what the work returns or thrown what it raises, and yields
events in between. So the order of the stages, and what happens when one fails, is written once.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from surefoot.endpoints.loop import run_sync
from surefoot.pipeline.records import StageEvent

__all__ = ["Plan", "Work", "drive", "drive_async"]


@dataclass(frozen=True, slots=True)
class Work:
    """Something to be called.

    Attributes:
        call: may block, or return something to be awaited.
        acall: the same without blocking, where there is such a way.
    """

    call: Callable[[], Any]
    acall: Callable[[], Awaitable[Any]] | None = None


Plan = Generator[Work | StageEvent, Any, None]


def drive(plan: Plan) -> Iterator[StageEvent]:
    """Run a plan here and now; what has to be awaited runs on the event loop of the endpoints."""
    with closing(plan):
        step = next(plan, None)
        while step is not None:
            if isinstance(step, StageEvent):
                yield step
                step = next(plan, None)
                continue
            value, error = _called(step.call)
            if error is None and inspect.isawaitable(value):
                awaited = _awaited(value)
                value, error = _called(lambda: run_sync(awaited))  # noqa: B023 - called right away
            step = _next(plan, value, error)


async def drive_async(plan: Plan) -> AsyncIterator[StageEvent]:
    """Run a plan off the event loop: what may block in a thread."""
    with closing(plan):
        step = next(plan, None)
        while step is not None:
            if isinstance(step, StageEvent):
                yield step
                step = next(plan, None)
                continue
            value: Any
            if step.acall is not None:
                value, error = step.acall(), None
            else:
                # Caught in the thread: a StopIteration cannot be carried by a future.
                value, error = await asyncio.to_thread(_called, step.call)
            if error is None and inspect.isawaitable(value):
                try:
                    value = await value
                except Exception as raised:  # noqa: BLE001 - the plan decides what it means
                    error = raised
            step = _next(plan, value, error)


def _called(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001 - the plan decides what it means
        return None, error


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def _next(plan: Plan, value: Any, error: Exception | None) -> Work | StageEvent | None:
    try:
        return plan.send(value) if error is None else plan.throw(error)
    except StopIteration:
        return None

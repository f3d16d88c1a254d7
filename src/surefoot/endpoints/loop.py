"""One event loop in its own thread for everything that goes over the network.

Connections belong to the event loop that opened them. Callers have many loops: one per ``asyncio.run``, one
per thread of a web server, or none. With one shared loop behind them all, connections are reused, a limit on
concurrency is one limit, and a synchronous call works even if the caller's thread is running a loop.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from surefoot.errors import ConfigurationError

__all__ = ["Slots", "at_end", "run", "run_sync"]

T = TypeVar("T")


class _Background:
    """The loop and its thread, started at first use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.closers: list[Callable[[], Awaitable[None]]] = []

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        with self.lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                self.thread = threading.Thread(
                    target=self.loop.run_forever, name="surefoot-endpoints", daemon=True
                )
                self.thread.start()
            loop = self.loop
        return asyncio.run_coroutine_threadsafe(coroutine, loop)

    async def _wind_up(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:  # nobody waits for these calls any more
            task.cancel()
        closing = [asyncio.ensure_future(closer()) for closer in self.closers]
        if unfinished := {*tasks, *closing}:
            await asyncio.wait(unfinished, timeout=0.5)
        asyncio.get_running_loop().stop()

    def stop(self) -> None:
        """End the loop before the interpreter shuts down."""
        with self.lock:
            loop, thread, self.loop = self.loop, self.thread, None
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(self._wind_up(), loop)
            thread.join(timeout=1.0)
            if not thread.is_alive():
                loop.close()


_background = _Background()
_of_the_parent: list[_Background] = []


def _after_fork() -> None:
    # Threads do not survive a fork, and one may have held the lock. The parent's loop must not be garbage
    # collected: that would remove the parent's sockets from the epoll that both processes share.
    global _background
    _of_the_parent.append(_background)
    _background = _Background()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _background.stop())


def at_end(closer: Callable[[], Awaitable[None]]) -> None:
    """Have ``closer`` awaited on the shared loop when the program ends."""
    _background.closers.append(closer)


async def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` on the shared loop. Cancelling this cancels it."""
    return await asyncio.wrap_future(_background.submit(coroutine))


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` on the shared loop and wait for it, whether or not this thread is running a loop.

    Raises:
        ConfigurationError: called on the shared loop itself, which would wait for itself forever.
    """
    if threading.current_thread() is _background.thread:
        coroutine.close()
        raise ConfigurationError("a synchronous call from inside an asynchronous model: await it instead")
    future = _background.submit(coroutine)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # after Ctrl-C the call must not go on unnoticed
        raise


class Slots:
    """A semaphore for the shared loop, made anew after a fork, when the loop is another one."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._owner: asyncio.AbstractEventLoop | None = None
        self._semaphore = asyncio.Semaphore(size)

    def here(self) -> asyncio.Semaphore:
        """The semaphore; to be called on the shared loop."""
        loop = asyncio.get_running_loop()
        if self._owner is not loop:
            self._owner, self._semaphore = loop, asyncio.Semaphore(self._size)
        return self._semaphore

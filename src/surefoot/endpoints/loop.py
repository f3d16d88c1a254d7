"""One event loop in a thread of its own for everything that goes over the network.

Connections belong to the event loop that opened them. Callers have many loops: one for each
``asyncio.run``, one for each thread of a web server, or none. With a single loop behind them all, the
connections are reused, a limit on concurrency is one limit, and a synchronous call works where the
caller's thread already runs a loop.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from surefoot.errors import ConfigurationError

__all__ = ["Slots", "close_later", "in_thread", "run", "run_sync"]

T = TypeVar("T")


class _Background:
    """The loop and its thread, started at the first use and again after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def is_current_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="surefoot-endpoints", daemon=True
                )
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """End the loop at the end of the program, so that nothing runs in a half-dismantled one."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return

        async def wind_up() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            if tasks:  # connections being closed; calls that nobody waits for are not waited for either
                _, tasks = await asyncio.wait(tasks, timeout=0.3)
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=0.3)
            loop.stop()

        asyncio.run_coroutine_threadsafe(wind_up(), loop)
        thread.join(timeout=1.0)
        if not thread.is_alive():
            loop.close()


_background = _Background()
_of_the_parent: list[object] = []


def _start_afresh() -> None:
    # Threads do not survive a fork, and a lock may have been held by one. The parent's loop is kept out
    # of the garbage collection: cleaning it up would take the parent's sockets out of the shared epoll.
    global _background
    _of_the_parent.append(_background)
    _background = _Background()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
atexit.register(lambda: _background.stop())


def close_later(resource: Any, owner: int) -> None:
    """Close something that belongs to the shared loop, without waiting.

    Args:
        resource: has a coroutine function ``close``.
        owner: id of the process that opened it; in another one it is left alone.
    """
    if owner != os.getpid():
        _of_the_parent.append(resource)
        return
    coroutine = resource.close()
    try:
        _background.submit(coroutine)
    except RuntimeError:  # the program ends, and no thread can be started any more
        coroutine.close()


async def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` on the shared loop; cancelling this cancels it."""
    return await asyncio.wrap_future(_background.submit(coroutine))


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` on the shared loop and wait for it, whether or not this thread runs a loop.

    Raises:
        ConfigurationError: called on the shared loop itself, which would wait for itself for ever.
    """
    if _background.is_current_thread():
        coroutine.close()
        raise ConfigurationError("a synchronous call from inside an asynchronous model: await it instead")
    future = _background.submit(coroutine)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # Ctrl-C: the call must not go on behind the caller's back
        raise


def in_thread(function: Callable[[], T]) -> Future[T]:
    """Run a blocking function in a daemon thread: unlike a pool's, it cannot keep the program alive."""
    future: Future[T] = Future()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            # SystemExit would end the event loop that waits, and no asyncio future takes a StopIteration.
            plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
            future.set_exception(error if plain else RuntimeError(type(error).__name__))
        else:
            future.set_result(result)

    threading.Thread(target=work, name="surefoot-model", daemon=True).start()
    return future


class Slots:
    """At most ``size`` calls at a time, first come first served, over all threads and event loops."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()

    async def acquire(self) -> None:
        """Wait for a free slot. When cancelled, no slot is taken."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            ticket: Future[None] = Future()
            self._waiting.append(ticket)
        try:
            await asyncio.wrap_future(ticket)
        except asyncio.CancelledError:
            with self._lock:
                # The slot may have been handed over in the same moment: pass it on.
                given = ticket.done() and not ticket.cancelled()
                if not given and ticket in self._waiting:
                    self._waiting.remove(ticket)
            if given:
                self.release()
            raise

    def release(self) -> None:
        """Hand the slot to whoever waits longest."""
        with self._lock:
            while self._waiting:
                # False where the waiter gave up; then it is the turn of the next.
                if (ticket := self._waiting.popleft()).set_running_or_notify_cancel():
                    ticket.set_result(None)
                    return
            self._free += 1

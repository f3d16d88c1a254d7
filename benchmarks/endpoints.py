"""Concurrent calls of an endpoint that takes a fixed time: what the client itself adds.

The endpoint is a second process on the same machine that answers after ``--delay`` seconds. With 200 calls,
50 at a time, and 0.05 s each, 0.2 s is the least possible; the rest is the client, the server and whatever
else the machine does. The first round opens the connections and is reported apart.

With ``--judge`` the calls are those of ``Judge.ajudge`` with its default settings. The endpoint gives the
statement a low score and the control that follows a high one: two calls each.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.record import table
from surefoot.endpoints import ChatEndpoint
from surefoot.judge import Judge

__all__ = ["measure", "options", "server", "show"]

STATEMENT = "The parcel arrives within five days."
SOURCE = f"{STATEMENT} " * 40
MESSAGES = [
    {"role": "system", "content": "Rate how likely the answer is not supported, between 0 and 1."},
    {"role": "user", "content": f"Source: {SOURCE}Answer: 5 days."},
]
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
    "additionalProperties": False,
}
LOW, HIGH = '{"score": 0.1}', '{"score": 0.9}'


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that the endpoint takes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--judge", action="store_true", help="judgements, each with its control")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Send bursts of calls."""
    with server(options.delay) as url:
        started = time.perf_counter()
        endpoint = ChatEndpoint(
            "fixed", base_url=url, api_key="none", concurrency=options.concurrency, retries=0
        )
        construction = time.perf_counter() - started
        rounds = asyncio.run(_rounds(endpoint, options))
    walls, processors, pauses = zip(*rounds, strict=True)
    return {
        "floor_s": (1 + options.judge) * -(-options.calls // options.concurrency) * options.delay,
        "construction_s": round(construction, 3),
        "wall_s": {
            "first": round(walls[0], 3),
            "median": round(statistics.median(walls), 3),
            "worst": round(max(walls), 3),
        },
        "cpu_ms_per_call": round(1000 * statistics.median(processors) / options.calls, 2),
        "longest_pause_of_callers_loop_ms": round(1000 * statistics.median(pauses), 1),
    }


async def _rounds(endpoint: ChatEndpoint, options: argparse.Namespace) -> list[tuple[float, float, float]]:
    found = [await _burst(endpoint, options.calls, judge=options.judge) for _ in range(options.rounds)]
    await endpoint.aclose()
    return found


async def _burst(endpoint: ChatEndpoint, calls: int, *, judge: bool) -> tuple[float, float, float]:
    """Wall time and processor time of ``calls`` calls at once, and the longest pause of this event loop."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)

    watcher = asyncio.create_task(watch())
    processor, start = time.process_time(), time.perf_counter()
    if judge:
        one = Judge(endpoint)
        judged = await asyncio.gather(*(one.ajudge(SOURCE, STATEMENT) for _ in range(calls)))
        right = all((each.score, each.usage.calls) == (0.1, 2) for each in judged)
    else:
        sent = (endpoint.complete(MESSAGES, max_tokens=16, schema=SCHEMA) for _ in range(calls))
        right = all(reply.text == LOW for reply in await asyncio.gather(*sent))
    wall, processor = time.perf_counter() - start, time.process_time() - processor
    watcher.cancel()
    if not right:
        raise ValueError("a reply is not what was sent")
    return wall, processor, longest


@contextlib.contextmanager
def server(delay: float) -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(delay, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join(timeout=5)


def _serve(delay: float, connection: Any) -> None:
    """Answer every POST after ``delay`` seconds; the port goes through ``connection``."""

    def response(content: str) -> bytes:
        reply = {
            "id": "x",
            "object": "chat.completion",
            "model": "fixed",
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
            ],
            "usage": {"prompt_tokens": 300, "completion_tokens": 8, "total_tokens": 308},
        }
        body = json.dumps(reply)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + body).encode()

    low, high = response(LOW), response(HIGH)
    alone = f"| {STATEMENT}\\nSTATEMENT ".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                body = await reader.readexactly(length)
                await asyncio.sleep(delay)
                control = b"<<<STATEMENT " in body and alone not in body
                writer.write(high if control else low)
                await writer.drain()
        writer.close()

    async def forever() -> None:
        listening = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
        connection.send(listening.sockets[0].getsockname()[1])
        await listening.serve_forever()

    asyncio.run(forever())


def show(result: Mapping[str, Any]) -> str:
    """The figures of docs/endpoints.md and docs/benchmarks.md."""
    wall = result["wall_s"]
    rows = [
        ["least possible", f"{result['floor_s']:.2f} s"],
        ["first burst", f"{wall['first']:.2f} s"],
        ["median; slowest", f"{wall['median']:.2f} s; {wall['worst']:.2f} s"],
        ["processor time per call", f"{result['cpu_ms_per_call']} ms"],
    ]
    return table(["", "seconds"], rows)

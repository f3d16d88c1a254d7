"""Concurrent calls of an endpoint that takes a fixed time: what the client itself adds.

    python -m benchmarks.endpoints --json benchmarks/results/endpoints.json
    python -m benchmarks.endpoints --judge --rounds 3

With ``--judge`` the calls are those of ``Judge.ajudge`` with its default settings. The endpoint gives the
statement a low score, and a high one to the control that follows: two calls each.

The endpoint is a second process on the same machine that answers after ``--delay`` seconds. With 200 calls,
50 at a time, and 0.05 s each, 0.2 s is the least possible; the rest is the client, the server and whatever
else the machine is doing, whose load is recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.hardware import describe
from surefoot.endpoints import ChatEndpoint

MESSAGES = [
    {"role": "system", "content": "Rate how likely the answer is not supported, between 0 and 1."},
    {
        "role": "user",
        "content": "Source: " + "The parcel arrives within five days. " * 40 + "Answer: 5 days.",
    },
]
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
    "additionalProperties": False,
}
SOURCE = "The parcel arrives within five days. " * 40
STATEMENT = "The parcel arrives within five days."

REPLY = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "fixed",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": '{"score": 0.1}'},
            }
        ],
        "usage": {"prompt_tokens": 300, "completion_tokens": 8, "total_tokens": 308},
    }
).encode()


async def serve(delay: float) -> None:
    """Answer every POST with the same reply after ``delay`` seconds; the port goes to standard output."""
    response = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(REPLY)}\r\n\r\n".encode()
    )
    high = REPLY.replace(b"0.1", b"0.9")
    alone = f"| {STATEMENT}\\nSTATEMENT ".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                body = await reader.readexactly(length)
                await asyncio.sleep(delay)
                control = b"<<<STATEMENT " in body and alone not in body
                writer.write(response + (high if control else REPLY))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def server(delay: float) -> Iterator[str]:
    """The base URL of a server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.endpoints", "--serve", str(delay)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait(timeout=5)
        if process.stdout is not None:
            process.stdout.close()


async def completions(endpoint: ChatEndpoint, calls: int) -> None:
    """Bare calls, all at once."""
    replies = await asyncio.gather(
        *(endpoint.complete(MESSAGES, max_tokens=16, schema=SCHEMA) for _ in range(calls))
    )
    if any(reply.text != '{"score": 0.1}' for reply in replies):
        raise RuntimeError("a reply is not what was sent")


async def judgements(endpoint: ChatEndpoint, calls: int) -> None:
    """Judgements with the default settings, all at once."""
    from surefoot.judge import Judge

    judge = Judge(endpoint)
    results = await asyncio.gather(*(judge.ajudge(SOURCE, STATEMENT) for _ in range(calls)))
    if any((result.score, result.usage.calls) != (0.1, 2) for result in results):
        raise RuntimeError("a judgement is not what was sent")


async def burst(endpoint: ChatEndpoint, calls: int, *, judge: bool) -> tuple[float, float, float]:
    """Wall time and processor time of ``calls`` calls at once, and the longest pause of this event loop."""
    longest, done = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not done:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)

    watcher = asyncio.create_task(watch())
    processor, start = time.process_time(), time.perf_counter()
    await (judgements if judge else completions)(endpoint, calls)
    wall, processor = time.perf_counter() - start, time.process_time() - processor
    done = True
    await watcher
    return wall, processor, longest


def measure(
    *, calls: int, concurrency: int, delay: float, rounds: int, judge: bool = False
) -> dict[str, Any]:
    """One result record; the first round opens the connections and is told apart."""
    walls, processors, pauses = [], [], []
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    with server(delay) as url:
        started = time.perf_counter()
        endpoint = ChatEndpoint("fixed", base_url=url, api_key="none", concurrency=concurrency, retries=0)
        construction = time.perf_counter() - started
        for _ in range(rounds):
            wall, processor, pause = asyncio.run(burst(endpoint, calls, judge=judge))
            walls.append(wall)
            processors.append(processor)
            pauses.append(pause)
    return {
        "calls": calls,
        "concurrency": concurrency,
        "delay_s": delay,
        "rounds": rounds,
        "floor_s": round((1 + judge) * -(-calls // concurrency) * delay, 6),
        "construction_s": round(construction, 3),
        "wall_s": {
            "first": round(walls[0], 3),
            "median": round(statistics.median(walls), 3),
            "worst": round(max(walls), 3),
        },
        "cpu_ms_per_call": round(1000 * statistics.median(processors) / calls, 2),
        "longest_pause_of_callers_loop_ms": round(1000 * statistics.median(pauses), 1),
        "load_before": load,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that the endpoint takes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--judge", action="store_true", help="judgements, each with its control")
    parser.add_argument("--json", type=Path, help="write the result to this file")
    parser.add_argument("--serve", type=float, metavar="DELAY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(options.serve))
        return
    result = measure(
        calls=options.calls,
        concurrency=options.concurrency,
        delay=options.delay,
        rounds=options.rounds,
        judge=options.judge,
    )
    record = {"hardware": describe(), "judge" if options.judge else "endpoints": result}
    print(json.dumps(result, indent=2))
    if options.json:
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

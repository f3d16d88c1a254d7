"""A language-model endpoint on localhost that does what it is told: good, slow, broken, lying, silent.

A real HTTP server on a real socket. It plays one act for each request, from a list first and then by default,
and records every request.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a client sent.

    Attributes:
        at: ``time.monotonic()`` of its arrival.
        headers: names in lower case.
        body: parsed JSON, ``None`` where it is none.
    """

    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes
    at: float

    @property
    def prompt(self) -> str:
        """The contents of all chat messages, one after the other."""
        return "\n".join(message["content"] for message in self.body["messages"])


@dataclass(frozen=True)
class Act:
    """What the server does with one request.

    Attributes:
        delay: seconds before the status line.
        cut: close the connection after so many bytes of the body; -1 closes it without any reply.
        drip: send the body over and over, a byte at a time, with so many seconds in between, for ever.
        hang: send nothing at all until the server is closed.
        length: a Content-Length that may be a lie; ``None`` tells the truth.
        repeat: send the body so many times in all, as fast as it goes.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    drip: float | None = None
    hang: bool = False
    length: int | None = None
    repeat: int = 1


Player = Callable[[Request], Act]


def reply(value: object, **options: Any) -> Act:
    """``value`` as JSON."""
    return Act(json.dumps(value).encode(), **options)


def chat(
    text: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    logprobs: Sequence[tuple[str, float]] | None = None,
    usage: object = (40, 10),
    model: str = "scripted-1",
    **options: Any,
) -> Act:
    """A chat completion; ``usage`` is (prompt, completion) tokens, or sent as it is."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if refusal is not None:
        message["refusal"] = refusal
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish_reason}
    if logprobs is not None:
        choice["logprobs"] = {
            "content": [
                {"token": token, "logprob": value, "top_logprobs": [{"token": token, "logprob": value}]}
                for token, value in logprobs
            ]
        }
    body: dict[str, Any] = {"id": "x", "object": "chat.completion", "model": model, "choices": [choice]}
    if isinstance(usage, tuple):
        usage = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    if usage is not None:
        body["usage"] = usage
    return reply(body, **options)


def decisions(
    answers: Mapping[str, object] | Callable[[str, str], float],
    request: Request | None = None,
    *,
    model: str = "noul-1",
    **options: Any,
) -> Act:
    """The reply of a decision model: answers as they are, or a function of (id, statement)."""
    if callable(answers):
        assert request is not None
        answers = {
            name: {"type": "noul", "noul": answers(name, question["instructions"])}
            for name, question in request.body["questions"].items()
        }
    usage = {"input_tokens": 50, "output_tokens": 0}
    return reply({"model": model, "answers": answers, "usage": usage}, **options)


def error(status: int, message: str = "broken", *, code: str | None = None, **options: Any) -> Act:
    """An error in the shape of OpenAI."""
    body = {"error": {"message": message, "type": "error", "code": code}}
    return reply(body, status=status, **options)


def rate_limited(retry_after: str | None = None) -> Act:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return error(429, "slow down", headers=headers)


def slow(seconds: float, act: Act) -> Act:
    return replace(act, delay=seconds)


def disconnect(after: int = -1) -> Act:
    """Close the connection: without a reply, or after so many bytes of the body."""
    return replace(chat("0.5"), cut=after)


def oversized(size: int = 3_000_000, **options: Any) -> Act:
    """A valid JSON string that is too long."""
    return chat("x" * size, **options)


def endless(**options: Any) -> Act:
    """A body that goes on as fast as it can, without a length."""
    return Act(b" " * 65536, repeat=10**9, **options)


def drip(interval: float = 0.02, **options: Any) -> Act:
    """A body that trickles for ever."""
    return Act(b" ", drip=interval, **options)


def hang() -> Act:
    return Act(hang=True)


class ScriptedEndpoint:
    """The server.

    Args:
        acts: played for the first requests, in this order.
        default: played for all others: an act, or a function of the request.

    Attributes:
        url: base URL, with ``/v1``.
        requests: everything that was asked, in order of arrival.
        most_active: the most requests at the same time.
    """

    def __init__(self, *acts: Act | Player, default: Act | Player | None = None) -> None:
        self.acts: list[Act | Player] = list(acts)
        self.default: Act | Player = default if default is not None else chat("0.5")
        self.requests: list[Request] = []
        self.active = 0
        self.most_active = 0
        self.lock = threading.Lock()
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        self.port: int = self._server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}/v1"

    def __enter__(self) -> ScriptedEndpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def next_act(self, request: Request) -> Act:
        with self.lock:
            self.requests.append(request)
            act = self.acts.pop(0) if self.acts else self.default
        return act(request) if callable(act) else act


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of the play."""


class _Handler(BaseHTTPRequestHandler):
    endpoint: ScriptedEndpoint
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        endpoint = self.endpoint
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, body, raw, time.monotonic())
        with endpoint.lock:
            endpoint.active += 1
            endpoint.most_active = max(endpoint.most_active, endpoint.active)
        try:
            self._play(endpoint.next_act(request))
        except OSError:
            self.close_connection = True
        finally:
            with endpoint.lock:
                endpoint.active -= 1

    def _play(self, act: Act) -> None:
        released = self.endpoint.released
        if act.hang or (act.delay and released.wait(act.delay)):
            released.wait(60)
            self.close_connection = True
            return
        if act.cut == -1:
            self.close_connection = True
            return
        unending = act.drip is not None or act.repeat > 1
        head = {"Content-Type": "application/json", **act.headers}
        if act.length is not None or not unending:
            head.setdefault("Content-Length", str(len(act.body) if act.length is None else act.length))
        else:
            head["Connection"] = "close"
        lines = [f"HTTP/1.1 {act.status} Scripted", *(f"{name}: {value}" for name, value in head.items())]
        # In one piece: a status line alone would wait for an acknowledgement.
        start = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        if act.drip is not None:
            self.wfile.write(start)
            while not released.wait(act.drip):
                self.wfile.write(act.body[:1])
                self.wfile.flush()
            self.close_connection = True
        elif act.cut is not None:
            self.wfile.write(start + act.body[: act.cut])
            self.wfile.flush()
            self.close_connection = True
        else:
            self.wfile.write(start + act.body)
            for _ in range(act.repeat - 1):
                if released.is_set():
                    break
                self.wfile.write(act.body)
            self.wfile.flush()
            self.close_connection |= unending or act.length is not None

    def log_message(self, format: str, *args: Any) -> None:
        pass

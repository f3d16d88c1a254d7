"""One POST to one host: what was answered, or in which way it failed. Nothing is raised, nothing retried.

The ``openai`` client does the sending (headers, Azure paths, connection pool). Around it stands what a client
for untrusted servers needs: a limit on the size of every body, error bodies included, no redirects (they
would carry keys to other hosts), no compressed replies (a kilobyte can unpack to a megabyte).
"""

from __future__ import annotations

import asyncio
import base64
import email.utils
import importlib
import math
import os
import threading
import time
import weakref
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from surefoot.endpoints.loop import close_later
from surefoot.endpoints.redaction import Redactor, Secret
from surefoot.errors import ConfigurationError, missing_extra

__all__ = ["MAX_REPLY_BYTES", "Address", "HttpClient", "Outcome", "read_key"]

MAX_REPLY_BYTES: Final = 1_048_576
"""A verdict is a few hundred bytes; a server that sends more than this does not mean well."""

_MAX_URL: Final = 2048
_UNSENT: Final = frozenset(
    # of aiohttp and of httpx: no connection was made, so that the server saw nothing
    {"ClientConnectorError", "ConnectionTimeoutError", "ConnectError", "ConnectTimeout", "PoolTimeout"}
)
_TIMEOUTS: Final = frozenset({"TimeoutError", "TimeoutException"})


@dataclass(frozen=True, slots=True)
class Address:
    """Where the requests go: a base URL without credentials, and the credentials.

    Attributes:
        url: scheme, host, port and path, without a slash at the end.
        host: host, with the port where the URL has one; safe to show.
        basic: "user:password" of the URL, for an Authorization header.
    """

    url: str
    host: str
    basic: Secret | None = None

    @classmethod
    def parse(cls, url: str, *, option: str = "base_url") -> Address:
        """Check and split a URL.

        Raises:
            ConfigurationError: no http(s) URL, or one with a query or fragment. The message does not hold
                the URL, because the URL may hold a password.
        """
        problem = ConfigurationError(
            f"{option} must be a URL like https://host/v1, without query or fragment"
        )
        if not isinstance(url, str) or len(url) > _MAX_URL or not url.isascii() or not url.isprintable():
            raise problem
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError:
            parts = None
        if parts is None:
            raise problem  # outside of the handler: the chained ValueError would quote the URL
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise problem
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        host = name if port is None else f"{name}:{port}"
        basic = None
        if parts.username is not None or parts.password is not None:
            basic = Secret(f"{unquote(parts.username or '')}:{unquote(parts.password or '')}")
        return cls(f"{parts.scheme}://{host}{parts.path}".rstrip("/"), host, basic)


def read_key(key: str | None, *variables: str | None) -> Secret | None:
    """The key as given, else from the first environment variable that has one.

    Raises:
        ConfigurationError: it has characters that cannot stand in a header; the message does not hold it.
    """
    candidates = [key, *(os.environ.get(name) for name in variables if name)]
    value = next((stripped for one in candidates if one and (stripped := one.strip())), None)
    if value is None:
        return None
    if not value.isascii() or not value.isprintable():
        raise ConfigurationError("the API key has characters that cannot be sent in a header")
    return Secret(value)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request.

    Attributes:
        status: HTTP status, ``None`` where no status line came.
        body: of at most :data:`MAX_REPLY_BYTES`.
        failure: ``"timeout"``, ``"connection"`` or ``"reply"`` (oversized, compressed); ``None`` where a
            complete reply came, whatever its status.
        detail: the failure in words, safe to show.
        sent: whether the server can have started to work (and to bill).
        retry_after: seconds that the server asks to wait.
    """

    status: int | None = None
    body: bytes = b""
    failure: str | None = None
    detail: str = ""
    sent: bool = True
    retry_after: float | None = None


class _RefusedBodyError(Exception):
    """Raised while a body is read, to stop reading it."""


class HttpClient:
    """The ``openai`` client for one host, without its retries.

    Args:
        address: where to; for Azure the resource, to which the client adds its path.
        key: sent as bearer token, or as ``api-key`` to Azure.
        headers: sent with every request; they win over those that the client makes.
        api_version: makes it an Azure client.
        connections: most connections at a time.
        timeout: seconds, for the parts of a request; :meth:`post` has a limit for the whole.

    Raises:
        MissingExtraError: ``openai`` is not installed.
        ConfigurationError: a header has characters that cannot be sent.
    """

    def __init__(
        self,
        address: Address,
        *,
        key: Secret | None,
        headers: Mapping[str, str] | None = None,
        api_version: str | None = None,
        connections: int = 8,
        timeout: float = 30.0,
    ) -> None:
        with missing_extra("judge", purpose="call a language model"):
            importlib.import_module("openai")  # here, because it takes a second: not within a deadline
        self.host = address.host
        self._address = address
        self._key = key
        self._headers = {name: Secret(value) for name, value in _checked(headers or {}).items()}
        if address.basic is not None and not any(name.lower() == "authorization" for name in self._headers):
            token = base64.b64encode(address.basic.reveal().encode()).decode()
            self._headers["Authorization"] = Secret(f"Basic {token}")
        self._api_version = api_version
        self._connections = connections
        self._timeout = timeout
        self.redactor = Redactor(self._secrets())
        self._lock = threading.Lock()
        self._client: Any = None
        self._closer: Any = None
        self._response: Any = None
        self._pid = 0
        self._opened()  # its TLS set-up takes a tenth of a second, which is better spent here too

    def __repr__(self) -> str:
        return f"HttpClient({self.host})"

    async def post(self, path: str, body: Mapping[str, Any], *, timeout: float) -> Outcome:
        """Send ``body`` as JSON.

        Args:
            path: below the address, with a slash at the start.
            body: of plain values without lone surrogates.
            timeout: seconds for everything together, from the connection to the last byte of the reply.
        """
        import openai

        client = self._opened()
        outcome = None
        problem: BaseException | None = None
        try:
            async with asyncio.timeout(timeout):
                response = await client.post(
                    path, cast_to=self._response, body=dict(body), options={"timeout": timeout}
                )
            outcome = Outcome(status=response.status_code, body=response.content)
        except openai.APIStatusError as error:
            outcome = Outcome(
                status=error.status_code,
                body=error.response.content,
                retry_after=_retry_after(error.response.headers),
            )
        except Exception as error:  # noqa: BLE001 - a broken stream raises what the HTTP library likes
            problem = error
        return outcome or _failed(problem, timeout)

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._lock:
            client, self._client = self._client, None
            closer, self._closer = self._closer, None
        if client is not None and closer is not None and self._pid == os.getpid():
            closer.detach()
            await client.close()

    def _opened(self) -> Any:
        with self._lock:
            # A forked child must not write into its parent's connections.
            if self._client is None or self._pid != os.getpid():
                self._client = self._open()
                self._pid = os.getpid()
                self._closer = weakref.finalize(self, close_later, self._client, self._pid)
            return self._client

    def _open(self) -> Any:
        import openai

        headers = {"Accept-Encoding": "identity"}
        headers |= {name: secret.reveal() for name, secret in self._headers.items()}
        options: dict[str, Any] = {
            "api_key": self._key.reveal() if self._key else "EMPTY",  # what local servers expect
            "max_retries": 0,
            "default_headers": headers,
            "http_client": self._session(),
            "timeout": self._timeout,
        }
        if self._api_version is not None:
            return openai.AsyncAzureOpenAI(
                azure_endpoint=self._address.url, api_version=self._api_version, **options
            )
        return openai.AsyncOpenAI(base_url=self._address.url, **options)

    def _session(self) -> Any:
        """The connection pool, on aiohttp where it is installed: a third of the work of the other one."""
        import openai

        http = _http_library(openai)
        self._response = http.Response
        limits = http.Limits(max_connections=self._connections, max_keepalive_connections=self._connections)
        options = {
            "timeout": self._timeout,
            "limits": limits,
            "follow_redirects": False,
            "event_hooks": {"response": [_body_guard(http)]},
        }
        try:
            return openai.DefaultAioHttpClient(**options)
        except RuntimeError:
            return openai.DefaultAsyncHttpxClient(**options)

    def _secrets(self) -> list[str]:
        held = [self._key, self._address.basic, *self._headers.values()]
        words = [secret.reveal() for secret in held if secret is not None]
        if self._address.basic is not None:
            words.append(self._address.basic.reveal().partition(":")[2])
        # "Bearer xyz": the second word alone is the secret.
        words += [word.rpartition(" ")[2] for word in words]
        return [word for word in words if len(word) >= 4]


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not all(isinstance(part, str) and part.isascii() and part.isprintable() for part in (name, value)):
            raise ConfigurationError("headers: names and values must be printable ASCII strings")
    return dict(headers)


def _http_library(openai: Any) -> Any:
    """The module of the HTTP client that the installed ``openai`` is built on: it changed between majors."""
    base = next(cls for cls in openai.DefaultAsyncHttpxClient.__mro__ if cls.__name__ == "AsyncClient")
    return importlib.import_module(base.__module__.partition(".")[0])


def _body_guard(http: Any) -> Any:
    """A response hook that counts what is read and stops at the limit."""

    class Counted(http.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > MAX_REPLY_BYTES:
                    raise _RefusedBodyError(f"the reply is larger than {MAX_REPLY_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def guard(response: Any) -> None:
        if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
            raise _RefusedBodyError("the reply is compressed, which was not asked for")
        response.stream = Counted(response.stream)

    return guard


def _failed(problem: BaseException | None, timeout: float) -> Outcome:
    """The outcome for an exception, of which only the name of the class is told.

    The innermost exception of a network library knows best: aiohttp's loss of a connection, for one, is
    passed on as a timeout while connecting.
    """
    if type(problem) is TimeoutError:  # of asyncio.timeout
        return Outcome(failure="timeout", detail=f"no complete reply within {timeout:.3g} s")
    innermost, depth = problem, 0
    while problem is not None and depth < 16:
        if isinstance(problem, _RefusedBodyError):
            return Outcome(failure="reply", detail=str(problem))
        if type(problem).__module__.partition(".")[0] in {
            "aiohttp",
            "httpx",
            "httpx2",
            "httpcore",
            "httpcore2",
        }:
            innermost = problem
        problem, depth = problem.__cause__ or problem.__context__, depth + 1
    kinds = {cls.__name__ for cls in type(innermost).__mro__}
    sent = not kinds & _UNSENT
    if kinds & _TIMEOUTS:
        what = "no complete reply" if sent else "no connection"
        return Outcome(failure="timeout", detail=f"{what} within {timeout:.3g} s", sent=sent)
    what = "connection lost" if sent else "no connection"
    return Outcome(failure="connection", detail=f"{what} ({type(innermost).__name__})", sent=sent)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by ``Retry-After`` (RFC 9110, 10.2.3: seconds or a date) or ``retry-after-ms``."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, TypeError, OverflowError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None

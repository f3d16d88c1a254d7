"""One POST request to one host: the reply, or how it failed. Nothing is raised and nothing is retried.

``httpx2`` does the sending. What is added here protects against untrusted servers: a limit on the size of
every body, no redirects (they would carry keys to other hosts), no compressed replies (a kilobyte can unpack
to a megabyte), no cookies, and a limit on the time for everything together.
"""

from __future__ import annotations

import asyncio
import base64
import email.utils
import importlib
import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from surefoot.endpoints.loop import at_end
from surefoot.endpoints.redaction import Redactor, Secret
from surefoot.endpoints.wire import printable
from surefoot.errors import ConfigurationError, missing_extra

__all__ = ["MAX_REPLY_BYTES", "Host", "Outcome", "read_key"]

MAX_REPLY_BYTES: Final = 1_048_576
"""A verdict has a few hundred bytes; a server that sends more than this does not mean well."""

_MAX_URL: Final = 2048
_clients: Final[dict[asyncio.AbstractEventLoop, Any]] = {}
"""Connections by event loop: there is one shared loop per process, and a forked child keeps its parent's."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one request.

    Attributes:
        status: HTTP status; ``None`` if there was no complete reply.
        body: at most :data:`MAX_REPLY_BYTES`.
        failure: ``"timeout"``, ``"connection"`` or ``"reply"`` (oversized, compressed); ``None`` if a
            complete reply came, whatever its status.
        detail: the failure in words, safe to show.
        sent: whether the server may have started to work (and to bill).
        retry_after: seconds that the server asks to wait.
    """

    status: int | None = None
    body: bytes = b""
    failure: str | None = None
    detail: str = ""
    sent: bool = True
    retry_after: float | None = None


def read_key(key: str | None, *variables: str | None) -> Secret | None:
    """The key as given, otherwise from the first environment variable that has one.

    Raises:
        ConfigurationError: it has characters that are not allowed in a header; the message does not quote it.
    """
    candidates = [key, *(os.environ.get(name) for name in variables if name)]
    value = next((stripped for one in candidates if one and (stripped := one.strip())), None)
    if value is None:
        return None
    if not value.isascii() or not value.isprintable():
        raise ConfigurationError("the API key has characters that cannot be sent in a header")
    return Secret(value)


class Host:
    """A server: its address, and the headers that are sent to it.

    Args:
        url: base URL. A user and password in it are sent as basic authentication.
        key: sent in ``key_header``; as a bearer token if that is ``Authorization``.
        headers: sent with every request; they replace those made here.
        option: what the URL is called in messages.

    Raises:
        ConfigurationError: the URL is not an http(s) URL, or has a query or fragment, or a header has
            characters that cannot be sent. The message quotes neither, because they may hold secrets.
        MissingExtraError: ``httpx2`` is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        key: Secret | None,
        headers: Mapping[str, str] | None = None,
        option: str = "base_url",
        key_header: str = "Authorization",
    ) -> None:
        with missing_extra("judge", purpose="call a language model"):
            importlib.import_module("httpx2")
        self.url, self.name, login = _parse(url, option)
        self._headers: dict[str, Secret] = {}
        if login is not None:
            token = base64.b64encode(login.reveal().encode()).decode()
            self._headers["authorization"] = Secret(f"Basic {token}")
        elif key is not None:
            bearer = "Bearer " if key_header == "Authorization" else ""
            self._headers[key_header.lower()] = Secret(bearer + key.reveal())
        for name, value in (headers or {}).items():
            if not all(
                isinstance(part, str) and part.isascii() and part.isprintable() for part in (name, value)
            ):
                raise ConfigurationError("headers: names and values must be printable ASCII strings")
            self._headers[name.lower()] = Secret(value)
        words = [secret.reveal() for secret in (key, login, *self._headers.values()) if secret is not None]
        words += [word.rpartition(" ")[2] for word in words]  # of "Bearer xyz", the second word is the secret
        words += [login.reveal().partition(":")[2]] if login is not None else []
        self.redactor = Redactor(word for word in words if len(word) >= 4)

    async def post(self, path: str, body: Mapping[str, Any], *, timeout: float) -> Outcome:
        """Send ``body`` as JSON; to be called on the shared loop.

        Args:
            path: below the base URL, starting with a slash.
            body: plain values.
            timeout: seconds for everything together, from the connection to the last byte of the reply.
        """
        content = printable(json.dumps(body, ensure_ascii=False, allow_nan=False)).encode()
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        headers |= {name: secret.reveal() for name, secret in self._headers.items()}
        sent = False

        async def trace(event: str, _: object) -> None:
            nonlocal sent
            sent = sent or "send_request_headers" in event

        try:
            async with (
                asyncio.timeout(timeout),
                _client().stream(
                    "POST", self.url + path, content=content, headers=headers, extensions={"trace": trace}
                ) as response,
            ):
                encoding = response.headers.get("content-encoding", "identity").strip().lower()
                if encoding not in {"", "identity"}:
                    return Outcome(failure="reply", detail="the reply is compressed, which was not asked for")
                received = bytearray()
                async for chunk in response.aiter_raw():
                    received += chunk
                    if len(received) > MAX_REPLY_BYTES:
                        detail = f"the reply is larger than {MAX_REPLY_BYTES} bytes"
                        return Outcome(failure="reply", detail=detail)
            wait = _retry_after(response.headers)
            return Outcome(response.status_code, bytes(received), retry_after=wait)
        except TimeoutError:
            what = "no complete reply" if sent else "no connection"
            return Outcome(failure="timeout", detail=f"{what} within {timeout:.3g} s", sent=sent)
        except Exception as error:  # noqa: BLE001 - its message may hold a secret: only the class is named
            what = "connection lost" if sent else "no connection"
            return Outcome(failure="connection", detail=f"{what} ({type(error).__name__})", sent=sent)


def _client() -> Any:
    import httpx2

    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = httpx2.AsyncClient(
            timeout=None,  # the whole request has one
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30.0),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=False,
        )
        at_end(_clients[loop].aclose)
    return _clients[loop]


def _parse(url: str, option: str) -> tuple[str, str, Secret | None]:
    """A URL as its parts: without credentials and final slash, host and port, and "user:password"."""
    problem = ConfigurationError(f"{option} must be a URL like https://host/v1, without query or fragment")
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
    name += "" if port is None else f":{port}"
    login = None
    if parts.username is not None or parts.password is not None:
        login = Secret(f"{unquote(parts.username or '')}:{unquote(parts.password or '')}")
    return f"{parts.scheme}://{name}{parts.path}".rstrip("/"), name, login


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by ``Retry-After`` (RFC 9110, 10.2.3: seconds or a date) or ``retry-after-ms``."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "")
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

"""No network, no surprises: what holds for every test."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Before anything of the package is imported: hub libraries read these once, at import.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# The wheel's tests have no business with the checkout: scripts/test-wheel runs them elsewhere.
collect_ignore = [] if os.environ.get("SUREFOOT_INSTALLED") == "1" else ["installed"]

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", parent=settings.get_profile("dev"), derandomize=True, database=None, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


class NetworkUsedError(RuntimeError):
    """A test, or the code under test, reached for the network."""


def _is_local(host: object) -> bool:
    if host is None or host in ("", "localhost", b"localhost", "ip6-localhost"):
        return True
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse_remote(address: object) -> None:
    # Anything but (host, port, ...) is a path or a kernel address: local by nature.
    if isinstance(address, tuple) and address and not _is_local(address[0]):
        raise NetworkUsedError(f"tests run without network, but something went to {address!r}")


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Connecting, sending to, or resolving anything but this machine raises for the whole session."""
    patch = pytest.MonkeyPatch()
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    sendto, getaddrinfo = socket.socket.sendto, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _refuse_remote(address)
        return connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        _refuse_remote(address)
        return connect_ex(self, address)

    def guarded_sendto(self: socket.socket, data: Any, *rest: Any) -> int:
        _refuse_remote(rest[-1])
        return sendto(self, data, *rest)

    def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse_remote((host,))
        return getaddrinfo(host, *args, **kwargs)

    patch.setattr(socket.socket, "connect", guarded_connect)
    patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    patch.setattr(socket.socket, "sendto", guarded_sendto)
    patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
    yield
    patch.undo()

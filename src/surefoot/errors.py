"""The exception tree, and the helper that names a missing extra.

Three branches, because callers treat them differently: the caller's mistake (fix the call), a model
that cannot be trusted (fix the installation) and an endpoint that failed (retry, or fall back).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "BudgetExceededError",
    "ConfigurationError",
    "DownloadRefusedError",
    "EndpointError",
    "EndpointRejectedError",
    "EndpointReplyError",
    "EndpointTimeoutError",
    "EndpointUnavailableError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "ModelIntegrityError",
    "ModelNotFoundError",
    "SurefootError",
    "missing_extra",
]


class SurefootError(Exception):
    """Base of every exception that surefoot raises on purpose."""


class InputError(SurefootError, ValueError):
    """The caller's data has the wrong shape: wrong type, unknown field, malformed JSON."""


class ConfigurationError(SurefootError, ValueError):
    """An option has a value that cannot work: a negative budget, an unknown preset."""


class ModelError(SurefootError):
    """A model cannot be loaded, or does not behave as its manifest says."""


class ModelNotFoundError(ModelError):
    """No model of that name in the bundle, on disk or in the local hub cache."""


class ModelIntegrityError(ModelError):
    """A model file is damaged, of a refused kind, or its sha256 differs from the manifest."""


class DownloadRefusedError(ModelError):
    """The model is not on this machine, and nobody asked for the network."""


class EndpointError(SurefootError):
    """A language-model endpoint failed: unreachable, timed out, refused or replied nonsense.

    Attributes:
        usage: what the failed call used, a :class:`surefoot.endpoints.Usage`; ``None`` where nothing was.
    """

    usage: Any = None


class EndpointTimeoutError(EndpointError, TimeoutError):
    """No complete reply in time: the timeout of the last attempt, or the deadline of the call."""


class EndpointUnavailableError(EndpointError):
    """No connection, 429 or 5xx, and the retries are used up or would end after the deadline."""


class EndpointRejectedError(EndpointError):
    """The endpoint does not accept the request (3xx or 4xx): sending it again would not help."""


class EndpointReplyError(EndpointError):
    """The endpoint replied, but with something that is not a valid reply: cut, oversized, wrong shape."""


class BudgetExceededError(EndpointError):
    """The call was not sent, because it might have exceeded the budget."""


class MissingExtraError(SurefootError, ImportError):
    """An optional dependency is not installed; the message holds the command that installs it."""


@contextmanager
def missing_extra(extra: str, *, purpose: str) -> Iterator[None]:
    """Turn an ``ImportError`` raised in the block into a :class:`MissingExtraError`.

    Args:
        extra: name of the extra in ``pyproject.toml``, e.g. ``"pdf"``.
        purpose: what the caller wanted, as the end of "... is needed to".

    Raises:
        MissingExtraError: chained to the original ``ImportError``.
    """
    try:
        yield
    except ImportError as error:
        name = error.name or "a package"
        raise MissingExtraError(
            f"{name} is needed to {purpose}; install it with: pip install 'surefoot[{extra}]'",
            name=error.name,
        ) from error

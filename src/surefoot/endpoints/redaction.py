"""Keeping secrets out of everything that is shown: reprs, messages, logs, exception chains."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

__all__ = ["Redactor", "Secret"]

_FRAGMENT: Final = 8
"""A part of a secret of this length is treated as the secret: servers like to show the first half."""

_READ: Final = 4096
_SHOWN: Final = 300
_MASK: Final = "[redacted]"


class Secret:
    """A string that does not show itself in a repr, a format string or a traceback with variables."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return _MASK

    def reveal(self) -> str:
        """The string itself, for the one place that sends it."""
        return self._value


class Redactor:
    """Makes text from an endpoint fit to be shown.

    Args:
        secrets: strings that must not be shown; also not in part, percent-encoded or in base64.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            data = secret.encode("utf-8", "replace")
            forms |= {secret, quote(secret, safe=""), base64.b64encode(data).decode().rstrip("=")}
        self._whole = [Secret(form) for form in sorted(forms, key=len, reverse=True) if form]
        self._parts = frozenset(
            form[at : at + _FRAGMENT].casefold() for form in forms for at in range(len(form) - _FRAGMENT + 1)
        )

    def __repr__(self) -> str:
        return f"Redactor({len(self._whole)} strings)"

    def clean(self, text: str) -> str:
        """``text`` on one line, without control characters and secrets, cut to 300 characters."""
        # Invisible characters go first: they could split a secret in two halves that match nothing.
        text = " ".join("".join(c if c.isprintable() else " " for c in text[:_READ]).split())
        for secret in self._whole:
            text = text.replace(secret.reveal(), _MASK)
        text = re.sub(r"\S{8,}", self._mask, text)
        return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."

    def _mask(self, word: re.Match[str]) -> str:
        folded = word.group().casefold()
        parts = (folded[at : at + _FRAGMENT] for at in range(len(folded) - _FRAGMENT + 1))
        return _MASK if any(part in self._parts for part in parts) else word.group()

"""Checks of values from outside: options of the caller, and bytes and text of servers."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from surefoot.errors import ConfigurationError

__all__ = ["check_number", "parse_json", "printable"]

_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")


def check_number(
    name: str, value: object, *, least: float = 0.0, whole: bool = False, above: bool = False
) -> None:
    """Check an option that must be a finite number of at least ``least`` or, with ``above``, of more.

    Raises:
        ConfigurationError: it is not; ``True`` and ``False`` are not numbers here.
    """
    good = isinstance(value, int) or (isinstance(value, float) and not whole and math.isfinite(value))
    if good and not isinstance(value, bool) and (value > least if above else value >= least):  # type: ignore[operator]
        return
    kind = "a whole number" if whole else "a finite number"
    raise ConfigurationError(
        f"{name} must be {kind} {'above' if above else 'of at least'} {least:g}, not {value!r}"
    )


def printable(text: str) -> str:
    """``text`` with lone surrogates replaced by U+FFFD, so that it can be encoded as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.translate(_SURROGATES)
    return text


def parse_json(body: bytes) -> Any:
    """Parse strict JSON (RFC 8259): UTF-8, no NaN or Infinity.

    Raises:
        ValueError: it is not JSON, or is nested too deep.
    """

    def refuse(name: str) -> Any:
        raise ValueError(name)

    try:
        return json.loads(body.decode("utf-8-sig"), parse_constant=refuse)
    except (ValueError, RecursionError):  # a chained exception would quote the whole reply
        raise ValueError("not JSON") from None

"""Text and JSON as they go over the wire."""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["parse_json", "printable"]

_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")


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

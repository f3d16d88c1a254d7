"""Passages in whatever shape the caller has them: the text of each, and its first-stage score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Final

from surefoot.errors import ConfigurationError, InputError
from surefoot.schema import Source

__all__ = ["TEXT_FIELDS", "Passage", "PassageLike", "read_passages"]

PassageLike = str | Mapping[str, Any] | Source | None

TEXT_FIELDS: Final = ("expanded_context", "chunk_text", "text")
"""Where the text of a mapping is looked for by default; the first that is there and not empty is read."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage: the caller's object, the text read of it, and its first-stage score, if finite."""

    item: Any = field(hash=False)
    text: str
    score: float | None


def read_passages(passages: Iterable[PassageLike], text_fields: Sequence[str]) -> tuple[Passage, ...]:
    """One record per passage, in order. A generator is read once; nothing of the caller's is changed.

    Args:
        passages: strings, mappings, :class:`~surefoot.schema.Source` records, or ``None``.
        text_fields: keys of a mapping that may hold its text, the preferred one first. A field that is
            missing, ``None`` or blank is passed over; where all are, the passage is empty.

    Raises:
        InputError: a passage has the wrong type, or a mapping none of the fields; says which.
        ConfigurationError: ``text_fields`` is no list of names.
    """
    if isinstance(text_fields, str) or not all(isinstance(name, str) for name in text_fields):
        raise ConfigurationError("text_fields must be a list of field names")
    if not text_fields:
        raise ConfigurationError("text_fields must name at least one field")
    if not isinstance(passages, Iterable) or isinstance(passages, (str, bytes, Mapping)):
        raise InputError(f"passages must be a list of passages, not one {type(passages).__name__}")
    return tuple(_read(index, item, text_fields) for index, item in enumerate(passages))


def _read(index: int, item: object, text_fields: Sequence[str]) -> Passage:
    if item is None:
        return Passage(item, "", None)
    if isinstance(item, str):
        return Passage(item, item, None)
    if isinstance(item, Source):
        if not isinstance(item.text, str):
            raise InputError(f"passages[{index}]: the text of a Source must be a string")
        return Passage(item, item.text, _finite(item.metadata.get("score")))
    if isinstance(item, Mapping):
        return Passage(item, _text(index, item, text_fields), _finite(item.get("score")))
    raise InputError(
        f"passages[{index}] must be a string, a mapping, a Source or None, not {type(item).__name__}"
    )


def _text(index: int, item: Mapping[str, Any], text_fields: Sequence[str]) -> str:
    present = [name for name in text_fields if name in item]
    if not present:
        raise InputError(f"passages[{index}] has no text: one of {', '.join(text_fields)} is needed")
    for name in present:
        text = item[name]
        if text is not None and not isinstance(text, str):
            raise InputError(f"passages[{index}].{name} must be a string, not {type(text).__name__}")
        if text and not text.isspace():
            return text
    return ""


def _finite(score: object) -> float | None:
    if isinstance(score, bool) or not isinstance(score, Real):
        return None
    try:
        number = float(score)
    except OverflowError:  # an integer of thousands of digits
        return None
    return number if math.isfinite(number) else None

"""The text and the first-stage score of passages in whatever shape the caller has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from surefoot.errors import ConfigurationError, InputError
from surefoot.schema import Source
from surefoot.sources import TEXT_FIELDS, SourceLike

__all__ = ["TEXT_FIELDS", "Passage", "PassageLike", "read_passages"]

PassageLike = SourceLike


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage: the caller's object, its text, and its first-stage score if that is finite."""

    item: Any = field(hash=False)
    text: str
    score: float | None


def read_passages(passages: Iterable[PassageLike], text_fields: Sequence[str]) -> tuple[Passage, ...]:
    """One record per passage, in order. A generator is read once; the caller's objects are not changed.

    Args:
        passages: strings, mappings, :class:`~surefoot.schema.Source` records, or ``None``.
        text_fields: keys of a mapping that may hold its text, the preferred one first. Fields that are
            missing, ``None`` or blank are skipped; if all are, the passage is empty.

    Raises:
        InputError: a passage has the wrong type, or a mapping has none of the fields. Names the passage.
        ConfigurationError: ``text_fields`` is not a list of names.
    """
    if not text_fields or isinstance(text_fields, str) or not all(isinstance(f, str) for f in text_fields):
        raise ConfigurationError("text_fields must be a list of at least one field name")
    if not isinstance(passages, Iterable) or isinstance(passages, (str, bytes, Mapping)):
        raise InputError(f"passages must be a list of passages, not one {type(passages).__name__}")
    return tuple(_read(index, item, text_fields) for index, item in enumerate(passages))


def _read(index: int, item: object, text_fields: Sequence[str]) -> Passage:
    if item is None or isinstance(item, str):
        return Passage(item, item or "", None)
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
        raise InputError(f"passages[{index}] has no text: it needs one of {', '.join(text_fields)}")
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

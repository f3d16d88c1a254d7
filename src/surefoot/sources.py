"""Sources in whatever shape the caller has them, as :class:`~surefoot.schema.Source` records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from surefoot.errors import InputError
from surefoot.schema import Source

__all__ = ["SourceLike", "coerce_sources"]

SourceLike = str | Mapping[str, Any] | Source | None

TEXT_FIELDS: Final = ("expanded_context", "chunk_text", "text")
"""Where the text of a mapping is looked for; the first that is present and not empty wins."""

_ID_FIELDS: Final = ("id", "chunk_id", "doc_id")


def coerce_sources(sources: Iterable[SourceLike]) -> tuple[tuple[Source, ...], bool]:
    """One record per item, in order; nothing is dropped and nothing of the caller's is changed.

    Args:
        sources: strings, mappings (``text``, optional ``id``, ``title``, ``metadata``; other keys go to the
            metadata; a record or list as ``text`` is taken as JSON), records, or ``None`` for a source that
            could not be had. Ids default to the 1-based position.

    Returns:
        The records, and whether an id occurred twice (the second ``"a"`` is then called ``"a#2"``).

    Raises:
        InputError: an item or a field has the wrong type; the message names its position.
    """
    if not isinstance(sources, Iterable) or isinstance(sources, (str, bytes, Mapping)):
        raise InputError(f"sources must be a list of sources, not one {type(sources).__name__}")
    records: list[Source] = []
    taken: set[str] = set()
    copies: dict[str, int] = {}
    duplicated = False
    for index, item in enumerate(sources):
        record = _coerce(index, item)
        name, copy = record.id, copies.get(record.id, 2)
        while name in taken:
            duplicated = True
            name = f"{record.id}#{copy}"
            copy += 1
        copies[record.id] = copy
        taken.add(name)
        if name != record.id:
            record = Source(name, record.text, record.title, record.metadata)
        records.append(record)
    return tuple(records), duplicated


def _coerce(index: int, item: object) -> Source:
    if item is None:
        return Source(str(index + 1), "")
    if isinstance(item, str):
        return Source(str(index + 1), item)
    if isinstance(item, Source):
        if not isinstance(item.text, str) or not isinstance(item.id, str):
            raise InputError(f"sources[{index}]: id and text of a Source must be strings")
        return item
    if isinstance(item, Mapping):
        return _from_mapping(index, item)
    raise InputError(
        f"sources[{index}] must be a string, a mapping, a Source or None, not {type(item).__name__}"
    )


def _body(index: int, name: str, value: object) -> str:
    """The text of a field; a record or list in it becomes JSON, which is read value by value."""
    if isinstance(value, (Mapping, list)):
        try:
            return json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"sources[{index}].{name} cannot be written as JSON: {error}") from error
    if not isinstance(value, str):
        raise InputError(f"sources[{index}].{name} must be a string, not {type(value).__name__}")
    return value


def _from_mapping(index: int, item: Mapping[str, Any]) -> Source:
    found = [name for name in TEXT_FIELDS if item.get(name) is not None]
    if not found and not any(name in item for name in TEXT_FIELDS):
        raise InputError(f"sources[{index}] has no text: one of {', '.join(TEXT_FIELDS)} is needed")
    bodies = [_body(index, name, item[name]) for name in found]
    text = next((body for body in bodies if body.strip()), "")
    identifier: object = next(
        (item[name] for name in _ID_FIELDS if item.get(name) is not None), str(index + 1)
    )
    if isinstance(identifier, bool) or not isinstance(identifier, (str, int)):
        raise InputError(f"sources[{index}].id must be a string, not {type(identifier).__name__}")
    title = item.get("title")
    if title is not None and not isinstance(title, str):
        raise InputError(f"sources[{index}].title must be a string, not {type(title).__name__}")
    given = item.get("metadata")
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"sources[{index}].metadata must be a mapping, not {type(given).__name__}")
    own = {*TEXT_FIELDS, *_ID_FIELDS, "title", "metadata"}
    metadata = {**{key: value for key, value in item.items() if key not in own}, **(given or {})}
    return Source(str(identifier), text, title, metadata)

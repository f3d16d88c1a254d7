"""Citations that the caller keeps as data rather than as markers in the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from surefoot.citations.keys import Names, known_keys
from surefoot.citations.markers import find_markers
from surefoot.citations.resolve import citation
from surefoot.errors import InputError
from surefoot.schema import Citation, CitationStatus, Source

__all__ = ["citations_from_records", "placed"]

_ID_FIELDS = ("source_id", "chunk_id", "doc_id", "key")  # the narrower name is tried first
_FIELDS = frozenset({"marker", "text", "verification_score", "start", "end", *_ID_FIELDS})


def citations_from_records(
    records: Sequence[Mapping[str, object] | Citation], sources: Sequence[Source]
) -> tuple[Citation, ...]:
    """Read and resolve citation records.

    A mapping may hold ``marker`` (or ``text``), one or more of ``source_id``, ``chunk_id``, ``doc_id`` and
    ``key`` (strings or integers; the first that names a source counts), ``verification_score`` in [0, 1], and
    ``start`` with ``end``; ``None`` means absent. Without an id, the marker is read as in an answer. A record
    with nothing but words and a score stays ``not_checked`` with that score; one that names an unknown source
    is ``unresolved``.

    Returns:
        One citation per record, or several for a marker such as ``[1, 2]``. Without a position, ``start`` and
        ``end`` are -1.

    Raises:
        InputError: a record is malformed; the message names its index and the field.
    """
    if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Sequence):
        raise InputError(f"citations: expected a list of records, got {type(records).__name__}")
    names = Names(sources)
    known = known_keys(sources)
    citations: list[Citation] = []
    for index, record in enumerate(records):
        if isinstance(record, Citation):
            score = _share(index, record.verification_score)
            found = names.find(record.key if record.source_id is None else record.source_id)
            citations.append(citation(record.marker, record.start, record.end, record.key, found, score))
        elif isinstance(record, Mapping):
            citations.extend(_from_mapping(index, record, names, known))
        else:
            raise InputError(f"citations[{index}]: expected a mapping, got {type(record).__name__}")
    return tuple(citations)


def placed(citations: Sequence[Citation], answer: str) -> tuple[Citation, ...]:
    """The citations; those with a position show the text of the answer there.

    Raises:
        InputError: a position lies outside the answer.
    """
    for item in citations:
        if item.end > len(answer):
            raise InputError(
                f"citations: [{item.start}, {item.end}) lies outside the answer of {len(answer)} characters"
            )
    return tuple(c if c.start < 0 else replace(c, marker=answer[c.start : c.end]) for c in citations)


def _from_mapping(
    index: int, record: Mapping[str, object], names: Names, known: frozenset[str]
) -> list[Citation]:
    for name in record:
        if name not in _FIELDS:
            raise InputError(f"citations[{index}]: unknown field {name!r}")
    score = _share(index, record.get("verification_score"))
    marker, text = (_field(index, name, record.get(name), str, "text") for name in ("marker", "text"))
    written = marker if marker is not None else (text or "")
    start, end = (_field(index, name, record.get(name), int, "an integer") for name in ("start", "end"))
    if start is None and end is None:
        start = end = -1
    if start is None or end is None or not (0 <= start <= end or start == end == -1):
        raise InputError(f"citations[{index}].end: [{start}, {end}) is not a span")
    given = [key for name in _ID_FIELDS if (key := _key(index, name, record.get(name))) is not None]
    if given:
        key, found = next(((k, s) for k in given if (s := names.find(k)) is not None), (given[0], None))
        return [citation(written, start, end, key, found, score)]
    if not written.strip():
        raise InputError(f"citations[{index}]: needs one of the fields marker, text, {', '.join(_ID_FIELDS)}")
    keys = [key for item in find_markers(written, known=known) for key in item.keys]
    if not keys and names.find(written) is None and score is not None:
        # Words that name no source: the caller's score stands alone.
        return [Citation(written, start, end, written, None, CitationStatus.NOT_CHECKED, score)]
    return [citation(written, start, end, key, names.find(key), score) for key in keys or [written]]


def _field(index: int, name: str, value: Any, kinds: type | tuple[type, ...], expected: str) -> Any:
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
        raise InputError(f"citations[{index}].{name}: expected {expected}, got {type(value).__name__}")
    return value


def _key(index: int, name: str, value: object) -> str | None:
    key = _field(index, name, value, (str, int), "text or an integer")
    if isinstance(key, int) and abs(key) >= 10**18:
        raise InputError(f"citations[{index}].{name}: the integer is too large")
    return None if key is None else str(key)


def _share(index: int, value: object) -> float | None:
    score = _field(index, "verification_score", value, Real, "a number")
    if score is not None and not 0 <= score <= 1:  # NaN fails this too
        raise InputError(f"citations[{index}].verification_score: not within [0, 1]")
    return None if score is None else float(score)

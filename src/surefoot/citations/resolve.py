"""Inline citations: which sources the markers name, and which sentence each marker belongs to.

Three steps that do not know each other: :func:`find_markers` reads the answer, :func:`resolve` names
the sources, :func:`assign` hands markers to segments. :func:`strip_markers` gives the text that a
model should read instead. Whether a cited source *supports* its claim is judged in ``alce``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real

from surefoot.citations.keys import Names, known_keys
from surefoot.citations.markers import MAX_MARKERS, Marker, find_markers, mask_spans, strip_markers
from surefoot.errors import InputError
from surefoot.schema import Citation, CitationStatus, Source

__all__ = [
    "MAX_MARKERS",
    "Marker",
    "assign",
    "citations_from_records",
    "find_markers",
    "known_keys",
    "mask_spans",
    "resolve",
    "strip_markers",
]

_ID_FIELDS = ("source_id", "chunk_id", "doc_id", "key")  # the narrower name is tried first
_FIELDS = frozenset({"marker", "text", "verification_score", "start", "end", *_ID_FIELDS})


def resolve(
    markers: Sequence[Marker], sources: Sequence[Source], *, records: Sequence[Citation] = ()
) -> tuple[Citation, ...]:
    """One citation per marker and key, in order, then the records that no marker stands for.

    A key is tried as exact id, id without regard to case, title, title or file name (also without
    extension), and last as 1-based position, so that an id ``"2"`` wins over the second source. Where
    several sources bear a name, the first one has it. A page after a title is tolerated.

    Args:
        markers: from :func:`find_markers`.
        sources: the sources that the answer may cite.
        records: from :func:`citations_from_records`. One whose marker (or, without a marker, whose
            source) occurs in the answer lends its source and score to that occurrence: the first record
            to the first occurrence, the last record to those that remain.

    Returns:
        Citations with status ``not_checked``, or ``unresolved`` and ``source_id=None``.
    """
    names = Names(sources)
    lender = _Lender(records)
    citations: list[Citation] = []
    cache: dict[str, str | None] = {}
    for marker in markers:
        for key in marker.keys:
            if key not in cache:
                cache[key] = names.find(key)
            record = lender.take(marker, key, cache[key])
            if record is None:
                citations.append(_citation(marker.text, marker.start, marker.end, key, cache[key]))
            else:
                citations.append(
                    replace(record, marker=marker.text, start=marker.start, end=marker.end, key=key)
                )
    return (*citations, *lender.left())


def _citation(
    marker: str, start: int, end: int, key: str, source_id: str | None, score: float | None = None
) -> Citation:
    status = CitationStatus.UNRESOLVED if source_id is None else CitationStatus.NOT_CHECKED
    return Citation(marker, start, end, key, source_id, status, score)


class _Lender:
    """Hands records to the markers that they speak about, in order of occurrence."""

    def __init__(self, records: Sequence[Citation]) -> None:
        self._records = records
        self._slots: dict[tuple[str, str], list[int]] = {}
        self._taken: dict[tuple[str, str], int] = {}
        self._used: set[int] = set()
        for index, record in enumerate(records):
            if record.marker:
                slots = {(record.marker, record.key), (record.marker, "")}
            else:
                slots = {("", record.source_id)} if record.source_id is not None else set()
            for slot in slots:
                self._slots.setdefault(slot, []).append(index)

    def take(self, marker: Marker, key: str, source_id: str | None) -> Citation | None:
        """The record for this occurrence of ``key``, or ``None``."""
        candidates = [(marker.text, key), (key, key)]
        if len(marker.keys) == 1:
            candidates.append((marker.text, ""))
        if source_id is not None:
            candidates.append(("", source_id))
        for slot in candidates:
            if queue := self._slots.get(slot):
                turn = self._taken.get(slot, 0)
                self._taken[slot] = turn + 1
                index = queue[min(turn, len(queue) - 1)]
                self._used.add(index)
                return self._records[index]
        return None

    def left(self) -> tuple[Citation, ...]:
        """The records that were never taken."""
        return tuple(record for index, record in enumerate(self._records) if index not in self._used)


def citations_from_records(
    records: Sequence[Mapping[str, object] | Citation], sources: Sequence[Source]
) -> tuple[Citation, ...]:
    """Citations that the caller keeps as data rather than as markers.

    A mapping may hold ``marker`` (or ``text``), one or more of ``source_id``, ``chunk_id``, ``doc_id``
    and ``key`` (strings or integers; the first that names a source counts), ``verification_score`` in
    [0, 1] and ``start`` with ``end``; ``None`` stands for an absent field. Without an id the marker is
    read as in the answer. A record of nothing but words and a score stays ``not_checked`` with that
    score; one that names an absent source is ``unresolved``.

    Returns:
        One citation per record, or several for a marker such as ``[1, 2]``; without a position both
        ``start`` and ``end`` are -1.

    Raises:
        InputError: the message names the record's index and the field.
    """
    if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Sequence):
        raise InputError(f"citations: expected a list of records, got {type(records).__name__}")
    names = Names(sources)
    known = known_keys(sources)
    citations: list[Citation] = []
    for index, record in enumerate(records):
        if isinstance(record, Citation):
            citations.append(_from_citation(index, record, names))
        elif isinstance(record, Mapping):
            citations.extend(_from_mapping(index, record, names, known))
        else:
            raise InputError(f"citations[{index}]: expected a mapping, got {type(record).__name__}")
    return tuple(citations)


def _from_citation(index: int, record: Citation, names: Names) -> Citation:
    score = _score(index, record.verification_score)
    wanted = record.key if record.source_id is None else record.source_id
    found = names.find(wanted)
    return _citation(record.marker, record.start, record.end, record.key, found, score)


def _from_mapping(
    index: int, record: Mapping[str, object], names: Names, known: frozenset[str]
) -> list[Citation]:
    for name in record:
        if name not in _FIELDS:
            raise InputError(f"citations[{index}]: unknown field {name!r}")
    score = _score(index, record.get("verification_score"))
    marker = _text(index, "marker", record.get("marker"))
    text = _text(index, "text", record.get("text"))
    written = marker if marker is not None else (text or "")
    start, end = _position(index, record)
    given = [key for name in _ID_FIELDS if (key := _key(index, name, record.get(name))) is not None]
    if given:
        key, found = next(((k, s) for k in given if (s := names.find(k)) is not None), (given[0], None))
        return [_citation(written, start, end, key, found, score)]
    if not written.strip():
        raise InputError(f"citations[{index}]: needs one of the fields marker, text, {', '.join(_ID_FIELDS)}")
    keys = [key for item in find_markers(written, known=known) for key in item.keys]
    if not keys and names.find(written) is None and score is not None:
        status = CitationStatus.NOT_CHECKED  # words without a name: the caller's figure stands alone
        return [Citation(written, start, end, written, None, status, score)]
    return [_citation(written, start, end, key, names.find(key), score) for key in keys or [written]]


def _text(index: int, name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"citations[{index}].{name}: expected text, got {type(value).__name__}")


def _key(index: int, name: str, value: object) -> str | None:
    if isinstance(value, bool) or not (value is None or isinstance(value, (str, int))):
        raise InputError(
            f"citations[{index}].{name}: expected text or an integer, got {type(value).__name__}"
        )
    if isinstance(value, int) and abs(value) >= 10**18:
        raise InputError(f"citations[{index}].{name}: the integer is too large")
    return None if value is None else str(value)


def _score(index: int, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        kind = type(value).__name__
        raise InputError(f"citations[{index}].verification_score: expected a number, got {kind}")
    try:
        score = float(value)
    except (OverflowError, ValueError) as error:
        raise InputError(f"citations[{index}].verification_score: not a usable number") from error
    if not 0.0 <= score <= 1.0:  # NaN fails this too
        raise InputError(f"citations[{index}].verification_score: {score} is not within [0, 1]")
    return score


def _position(index: int, record: Mapping[str, object]) -> tuple[int, int]:
    start, end = record.get("start"), record.get("end")
    if start is None and end is None:
        return -1, -1
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"citations[{index}].{name}: expected an integer, got {type(value).__name__}")
    if not (isinstance(start, int) and isinstance(end, int)) or not (0 <= start <= end or start == end == -1):
        raise InputError(f"citations[{index}].end: [{start}, {end}) is not a span")
    return start, end


def assign(
    markers: Sequence[Marker], segments: Sequence[tuple[int, int]], answer: str
) -> tuple[tuple[int, ...], ...]:
    """Indices into ``markers`` for each segment; every marker belongs to one segment, if there is any.

    A marker that begins in a segment is its own. One between two segments belongs to the segment
    before, the usual place being after the full stop, unless it shares its line (or, after a blank
    line, its paragraph) with the segment after it only. One before all segments belongs to the first.

    Args:
        markers: from :func:`find_markers`, in order.
        segments: non-overlapping spans of ``answer``, in any order.
        answer: the text that both speak about.
    """
    order = sorted(range(len(segments)), key=lambda index: segments[index])
    starts = [segments[index][0] for index in order]
    lines = [match.start() for match in re.finditer("\n", answer)]
    blanks = [match.start() for match in re.finditer(r"\n(?=[ \t]*\n)", answer)]
    owned: list[list[int]] = [[] for _ in segments]
    for number, marker in enumerate(markers):
        after = bisect_right(starts, marker.start)  # place of the first segment that begins behind
        if not order:
            break
        before = after - 1
        if before < 0:
            chosen = 0
        elif marker.start < segments[order[before]][1] or after == len(order):
            chosen = before
        else:
            left = (segments[order[before]][1], marker.start)
            right = (marker.end, starts[after])
            by_line = _between(lines, *left) and not _between(lines, *right)
            by_paragraph = _between(blanks, *left) and not _between(blanks, *right)
            chosen = after if by_line or by_paragraph else before
        owned[order[chosen]].append(number)
    return tuple(tuple(numbers) for numbers in owned)


def _between(positions: Sequence[int], start: int, end: int) -> bool:
    return bisect_left(positions, start) < bisect_left(positions, max(start, end))

"""Which source each marker names, and which segment of the answer each marker belongs to."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from surefoot.citations.keys import Names
from surefoot.citations.markers import Marker
from surefoot.schema import Citation, CitationStatus, Source

__all__ = ["assign", "citation", "resolve"]


def resolve(
    markers: Sequence[Marker], sources: Sequence[Source], *, records: Sequence[Citation] = ()
) -> tuple[Citation, ...]:
    """One citation per marker and key, in order, then the records without a marker in the answer.

    A key is tried as exact id, as id in any case, as title or file name (also without extension), and last as
    1-based position; so an id ``"2"`` wins over the second source. If several sources have a name, the first
    one counts. A page after a title is ignored.

    Args:
        markers: from :func:`find_markers`.
        sources: the sources that the answer may cite.
        records: from :func:`citations_from_records`. If the marker of a record (or, without a marker, its
            source) occurs in the answer, that occurrence takes the record's source and score: the first
            occurrence those of the first record, and so on; the last record serves all that remain.

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
                citations.append(citation(marker.text, marker.start, marker.end, key, cache[key]))
            else:
                citations.append(
                    replace(record, marker=marker.text, start=marker.start, end=marker.end, key=key)
                )
    return (*citations, *lender.left())


def citation(
    marker: str, start: int, end: int, key: str, source_id: str | None, score: float | None = None
) -> Citation:
    """A citation that is not checked yet, or ``unresolved`` without a source."""
    status = CitationStatus.UNRESOLVED if source_id is None else CitationStatus.NOT_CHECKED
    return Citation(marker, start, end, key, source_id, status, score)


class _Lender:
    """Gives records to the markers that they describe, in order of occurrence."""

    def __init__(self, records: Sequence[Citation]) -> None:
        self._records = records
        self._queues: dict[tuple[str, str], deque[int]] = {}
        self._used: set[int] = set()
        for index, record in enumerate(records):
            if record.marker:
                slots = {(record.marker, record.key), (record.marker, "")}
            else:
                slots = {("", record.source_id)} if record.source_id is not None else set()
            for slot in slots:
                self._queues.setdefault(slot, deque()).append(index)

    def take(self, marker: Marker, key: str, source_id: str | None) -> Citation | None:
        """The record for this occurrence of ``key``, or ``None``."""
        slots = [(marker.text, key), (key, key)]
        if len(marker.keys) == 1:
            slots.append((marker.text, ""))
        if source_id is not None:
            slots.append(("", source_id))
        queue = next((self._queues[slot] for slot in slots if slot in self._queues), None)
        if queue is None:
            return None
        index = queue.popleft() if len(queue) > 1 else queue[0]
        self._used.add(index)
        return self._records[index]

    def left(self) -> tuple[Citation, ...]:
        """The records that were never taken."""
        return tuple(record for index, record in enumerate(self._records) if index not in self._used)


def assign(
    markers: Sequence[Marker | Citation], segments: Sequence[tuple[int, int]], answer: str
) -> tuple[tuple[int, ...], ...]:
    """Indices into ``markers`` for each segment; every marker belongs to one segment, if there is any.

    A marker that begins inside a segment belongs to it. A marker between two segments belongs to the one
    before, since markers usually follow the full stop, unless it shares its line (or, after a blank line, its
    paragraph) only with the one after. A marker before all segments belongs to the first.

    Args:
        markers: markers, or citations with a position.
        segments: non-overlapping spans of ``answer``, in any order.
        answer: the text that both refer to.
    """
    if not segments:
        return ()
    owned: list[list[int]] = [[] for _ in segments]
    order = sorted(range(len(segments)), key=lambda index: segments[index])
    starts = [segments[index][0] for index in order]
    lines = [match.start() for match in re.finditer("\n", answer)]
    blanks = [match.start() for match in re.finditer(r"\n(?=[ \t]*\n)", answer)]
    for number, marker in enumerate(markers):
        after = bisect_right(starts, marker.start)  # place of the first segment that begins later
        chosen = max(after - 1, 0)
        end = segments[order[chosen]][1]
        if after and end <= marker.start and after < len(order):
            left, right = (end, marker.start), (marker.end, starts[after])
            by_line = _between(lines, *left) and not _between(lines, *right)
            by_paragraph = _between(blanks, *left) and not _between(blanks, *right)
            chosen = after if by_line or by_paragraph else chosen
        owned[order[chosen]].append(number)
    return tuple(tuple(numbers) for numbers in owned)


def _between(positions: Sequence[int], start: int, end: int) -> bool:
    return bisect_left(positions, start) < bisect_left(positions, max(start, end))

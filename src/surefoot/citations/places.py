"""Where citations stand: markers found in the answer beside those that the caller handed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from surefoot.citations.markers import Marker
from surefoot.errors import InputError
from surefoot.schema import Citation

__all__ = ["anchors", "by_marker", "placed"]


def placed(citations: Sequence[Citation], answer: str) -> tuple[Citation, ...]:
    """The citations, those that were handed in with a position showing what stands there."""
    for citation in citations:
        if citation.end > len(answer):
            raise InputError(
                f"citations: [{citation.start}, {citation.end}) lies outside the answer, which has "
                f"{len(answer)} characters"
            )
    return tuple(c if c.start < 0 else replace(c, marker=answer[c.start : c.end]) for c in citations)


def anchors(markers: Sequence[Marker], citations: Sequence[Citation]) -> list[Marker]:
    """The markers, and the places of citations that were handed in with one of their own, in order."""
    places = {(marker.start, marker.end): marker for marker in markers}
    for c in citations:
        if c.start >= 0:
            places.setdefault((c.start, c.end), Marker(c.start, c.end, c.marker, (c.key,)))
    return [places[place] for place in sorted(places)]


def by_marker(markers: Sequence[Marker], citations: Sequence[Citation]) -> list[list[Citation]]:
    """The citations of each marker; those without a position belong to none."""
    at = {(marker.start, marker.end): index for index, marker in enumerate(markers)}
    grouped: list[list[Citation]] = [[] for _ in markers]
    for citation in citations:
        index = at.get((citation.start, citation.end))
        if index is not None:
            grouped[index].append(citation)
    return grouped

"""Citation markers: found, resolved to sources, judged, and left out of what a model reads."""

from __future__ import annotations

from surefoot.citations.resolve import (
    MAX_MARKERS,
    Marker,
    assign,
    citations_from_records,
    find_markers,
    known_keys,
    mask_spans,
    resolve,
    strip_markers,
)

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

"""Inline citations: markers are found, resolved to sources, checked, and removed from what a model reads.

:func:`find_markers` reads the answer, :func:`resolve` names the sources, :func:`assign` gives markers to
segments, and :func:`strip_markers` makes the text for the model. :mod:`surefoot.citations.alce` decides
whether a cited source supports its claim.
"""

from __future__ import annotations

from surefoot.citations.keys import known_keys
from surefoot.citations.markers import MAX_MARKERS, Marker, find_markers
from surefoot.citations.records import citations_from_records, placed
from surefoot.citations.resolve import assign, resolve
from surefoot.citations.stripping import strip_markers

__all__ = [
    "MAX_MARKERS",
    "Marker",
    "assign",
    "citations_from_records",
    "find_markers",
    "known_keys",
    "placed",
    "resolve",
    "strip_markers",
]

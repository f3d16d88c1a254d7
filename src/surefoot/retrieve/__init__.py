"""Retrieval: an index of passages, searched by vector, by words, or both.

>>> from surefoot import Index
>>> index = Index.build(["Returns are accepted within 30 days."])  # doctest: +SKIP
>>> index.search("how long may I return something", k=5)  # doctest: +SKIP
"""

from __future__ import annotations

from surefoot.retrieve.chunking import Chunker, PassageChunker, whole
from surefoot.retrieve.fusion import reciprocal_rank, weighted_scores
from surefoot.retrieve.index import Index
from surefoot.retrieve.records import Changes, Hit, Place, SourceInfo

__all__ = [
    "Changes",
    "Chunker",
    "Hit",
    "Index",
    "PassageChunker",
    "Place",
    "SourceInfo",
    "reciprocal_rank",
    "weighted_scores",
    "whole",
]

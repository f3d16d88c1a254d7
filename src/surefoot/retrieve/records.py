"""What retrieval gives back: frozen records that turn into plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.schema import Record, Source

__all__ = ["Changes", "Hit", "Place", "SourceInfo"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one ranked list has a passage.

    Attributes:
        rank: from 1.
        score: the list's own score: the cosine, -1 to 1, or the BM25 score, above 0.
    """

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Hit(Record):
    """One passage that was found.

    Attributes:
        id: names the passage: ``"source_id@start-end"``. The same passage of the same text has the same id in
            every index.
        source_id: id of the source that it is from.
        start, end: position in the source's text, in code points.
        text: ``source.text[start:end]``.
        title, metadata: of the source.
        rank: from 1.
        score: what the hits are ordered by: the fused score, or that of the one list that was asked for.
        dense: rank and cosine among the passages by vector, ``None`` where that list does not have it.
        bm25: rank and score among the passages by words, ``None`` where that list does not have it.
    """

    id: str
    source_id: str
    start: int
    end: int
    text: str
    title: str | None
    metadata: Mapping[str, Any] = field(hash=False)
    rank: int
    score: float
    dense: Place | None = None
    bm25: Place | None = None

    def to_source(self) -> Source:
        """The passage as a source of its own, as rerankers and checkers take it.

        Its metadata also hold ``source_id``, ``start`` and ``end``, so that a span of the passage is found in
        the document: add ``start``.
        """
        place = {"source_id": self.source_id, "start": self.start, "end": self.end}
        return Source(self.id, self.text, self.title, {**self.metadata, **place})


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What a filter sees of a source.

    Attributes:
        id, title, metadata: of the source.
        characters: length of its text in code points.
    """

    id: str
    title: str | None
    metadata: Mapping[str, Any] = field(hash=False)
    characters: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What an update did.

    Attributes:
        added, replaced, unchanged, removed: numbers of sources.
        passages: passages that are new.
        embedded: of these, the ones that had to be embedded; the others were known from before.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    passages: int = 0
    embedded: int = 0

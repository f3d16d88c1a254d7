"""The index: documents in, the passages that answer a query out."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np

from surefoot.errors import ConfigurationError, InputError
from surefoot.inference.embedding import Embedder
from surefoot.retrieve.chunking import (
    Chunker,
    PassageChunker,
    describe_chunker,
    restore_chunker,
    spans_of,
    whole,
)
from surefoot.retrieve.corpus import Corpus, Filter, plain_metadata
from surefoot.retrieve.dense import FLAT_LIMIT, DenseStore, Kind
from surefoot.retrieve.journal import embed_passages
from surefoot.retrieve.lexical import LexicalStore
from surefoot.retrieve.records import Changes, Hit
from surefoot.retrieve.search import Fusion, Mode, Parts, check_options, fused, hits, lists
from surefoot.retrieve.store import read_folder, write_folder
from surefoot.schema import Source, Span
from surefoot.sources import SourceLike, coerce_sources

__all__ = ["Index"]

Progress = Callable[[int, int], None]

DEFAULT_K: Final = 15
_DEPTH: Final = 100
DENSE_WEIGHT: Final = 0.7
"""Chosen on development collections: with 0.5 the words pull good passages down, see docs/retrieval.md."""
_LONGEST_TITLE: Final = 200
_MOST_DEAD: Final = 0.25
_ID_FIELDS: Final = ("id", "chunk_id", "doc_id")


class Index:
    """Passages of documents, found by meaning (vectors) and by words (BM25).

    Make one with :meth:`build` or :meth:`load`. It may be searched from many threads; an update waits for
    searches and they for it. One process at a time writes a folder.

    Args:
        embedder: makes the vectors; the bundled model by default.
        chunker: cuts documents into passages; a :class:`PassageChunker` by default.
        dense: ``"flat"``: compare with every vector; ``"hnsw"``: walk a graph; ``"auto"``: flat while that is
            fast.

    Raises:
        MissingExtraError: the extra ``retrieve`` is not installed.
        ModelError: the embedder's model cannot be loaded.
    """

    def __init__(
        self,
        *,
        embedder: Embedder | None = None,
        chunker: Chunker | None = None,
        dense: Kind | Literal["auto"] = "auto",
    ) -> None:
        if dense not in ("auto", "flat", "hnsw"):
            raise ConfigurationError(f"dense must be 'auto', 'flat' or 'hnsw', not {dense!r}")
        self._embedder = Embedder() if embedder is None else embedder
        self._chunker: Chunker | None = PassageChunker() if chunker is None else chunker
        self._wanted: Kind | Literal["auto"] = dense
        self._corpus = Corpus()
        self._dense = DenseStore(self._embedder.dimension, kind=dense)
        self._lexical = LexicalStore()
        self._unnamed = 0
        self._lock = threading.RLock()

    @classmethod
    def build(
        cls,
        sources: Iterable[SourceLike],
        *,
        embedder: Embedder | None = None,
        chunker: Chunker | None = None,
        dense: Kind | Literal["auto"] = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Make an index of sources.

        Args:
            sources: strings, mappings or records, see :func:`~surefoot.sources.coerce_sources`; a generator
                will do.
            embedder: see :class:`Index`.
            chunker: see :class:`Index`.
            dense: see :class:`Index`.
            checkpoint: see :meth:`add`.
            progress: see :meth:`add`.

        Raises:
            InputError, ConfigurationError, ModelError, MissingExtraError: as :meth:`add`.
        """
        index = cls(embedder=embedder, chunker=chunker, dense=dense)
        index.add(sources, checkpoint=checkpoint, progress=progress)
        return index

    def __len__(self) -> int:
        """Number of passages that count."""
        return int(np.count_nonzero(self._corpus.alive))

    @property
    def source_ids(self) -> list[str]:
        """The ids of the sources, in the order in which they came."""
        with self._lock:
            return [info.id for info in self._corpus.infos()]

    def source(self, source_id: str) -> Source:
        """A source as it was added, its whole text included.

        Raises:
            InputError: there is none of that id.
        """
        with self._lock:
            if source_id not in self._corpus:
                raise InputError(f"the index has no source {source_id[:200]!r}")
            return self._corpus.source(source_id)

    def add(
        self,
        sources: Iterable[SourceLike],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Changes:
        """Add sources, or replace those of the same id.

        A source whose text and title are those of the one in the index is not embedded again, and neither is
        an unchanged passage of a changed source. When something fails, or the caller interrupts, the index is
        as it was.

        Args:
            sources: a source without an id gets a number that no other has. Of two in one call with the same
                id, the second is called ``"a#2"``.
            checkpoint: a file for the vectors computed so far; a call with the same file takes them from
                there. The caller removes it once the index is saved.
            progress: called with (passages done, passages to do).

        Returns:
            What was done.

        Raises:
            InputError: a source has the wrong type, metadata that are not JSON, or the chunker gives no
                spans.
            ConfigurationError: the index was loaded without the chunker that it was made with.
            ModelError: the embedder fails.
        """
        with self._lock:
            if self._chunker is None:
                raise ConfigurationError(
                    "this index was made with a chunker that is not known here: give it to load()"
                )
            records, _ = coerce_sources(self._named(sources))
            fresh: list[tuple[Source, list[Span]]] = []
            metadata: list[Source] = []
            known: dict[str, int] = {}
            counts = {"added": 0, "replaced": 0, "unchanged": 0}
            for record in records:
                source = Source(record.id, record.text, record.title, plain_metadata(record))
                if source.id not in self._corpus:
                    counts["added"] += 1
                elif self._same(source):
                    counts["unchanged"] += 1
                    metadata.append(source)
                    continue
                else:
                    counts["replaced"] += 1
                    old = self._corpus.source(source.id)
                    known |= {
                        _read(old.title, text): row for text, row in self._corpus.texts_of(old.id).items()
                    }
                fresh.append((source, spans_of(source, self._chunker)))
            texts = [_read(source.title, span.of(source.text)) for source, spans in fresh for span in spans]
            stored = self._dense.vectors()
            vectors, embedded = embed_passages(
                texts,
                self._embedder,
                known={text: stored[row] for text, row in known.items()},
                checkpoint=checkpoint,
                progress=progress,
            )
            for source, spans in fresh:
                if source.id in self._corpus:
                    self._corpus.remove(source.id)
                self._corpus.add(source, spans)
            for source in metadata:
                self._corpus.update_metadata(source.id, source.metadata)
            self._dense.add(vectors)
            self._lexical.add(texts)
            if counts["replaced"]:
                self._lexical.changed()
            return Changes(**counts, passages=len(texts), embedded=embedded)

    def remove(self, source_ids: Iterable[str], *, missing_ok: bool = False) -> Changes:
        """Take sources out.

        Args:
            source_ids: their ids.
            missing_ok: pass over ids that the index does not have.

        Raises:
            InputError: an id is not in the index; then nothing is taken out.
        """
        if isinstance(source_ids, str):
            raise InputError("source_ids must be a list of ids, not one string")
        with self._lock:
            wanted = dict.fromkeys(source_ids)
            missing = [name for name in wanted if name not in self._corpus]
            if missing and not missing_ok:
                raise InputError(f"the index has no source {str(missing[0])[:200]!r}")
            found = [name for name in wanted if name in self._corpus]
            for name in found:
                self._corpus.remove(name)
            if found:
                self._lexical.changed()
            return Changes(removed=len(found))

    def search(
        self,
        query: str,
        k: int = DEFAULT_K,
        *,
        mode: Mode = "fusion",
        filter: Filter | None = None,
        fusion: Fusion = "rrf",
        dense_weight: float = DENSE_WEIGHT,
        depth: int = _DEPTH,
    ) -> list[Hit]:
        """Find passages.

        Args:
            query: any text; one of spaces only finds nothing.
            k: most passages to return; fewer where the index has fewer, or by words fewer match.
            mode: ``"dense"`` by vector, ``"bm25"`` by words, ``"fusion"`` both.
            filter: which sources may be found: a callable that is given a
                :class:`~surefoot.retrieve.SourceInfo`, or a mapping of metadata (or ``id``, ``title``) to a
                value or a list of values, all of which must match. It is applied before ranking, so that k
                passages are found where there are as many.
            fusion: ``"rrf"`` by ranks or ``"weighted"`` by scores, see :mod:`surefoot.retrieve.fusion`.
            dense_weight: share of the vectors, 0 to 1; the words have the rest.
            depth: passages that each list gives to the fusion, at least ``k``.

        Returns:
            The passages, best first, with their places in each list.

        Raises:
            InputError: the query is no string.
            ConfigurationError: an option is out of range.
            ModelError: the embedder fails.
        """
        if not isinstance(query, str):
            raise InputError(f"the query must be a string, not {type(query).__name__}")
        check_options(k, mode, fusion, dense_weight, depth)
        if not query.strip() or not len(self):
            return []
        vector = None if mode == "bm25" else self._embedder.embed([query], query=True)[0]
        with self._lock:
            parts = Parts(self._corpus, self._dense, self._lexical)
            near, match = lists(parts, query, vector, filter, mode=mode, depth=max(k, depth))
            order = fused(near, match, fusion, dense_weight) if mode == "fusion" else near or match
            return hits(parts, order[:k], near, match)

    def describe(self) -> dict[str, Any]:
        """What the index is made of, as plain values for JSON."""
        with self._lock:
            rows, alive = self._corpus.rows, len(self)
            if self._wanted != "auto":
                why = f"asked for: {self._wanted}"
            elif self._dense.kind == "flat":
                why = f"up to {FLAT_LIMIT} vectors: every one is compared"
            else:
                why = f"more than {FLAT_LIMIT} vectors: a graph is walked, which may miss a few"
            return {
                "sources": len(self._corpus),
                "passages": alive,
                "removed_passages": rows - alive,
                "dense": {"kind": self._dense.kind, "why": why, "mapped": self._dense.mapped},
                "bm25": {"terms": self._lexical.terms},
                "embedder": {"name": self._embedder.name, **self._embedder.settings},
                "chunker": describe_chunker(self._chunker),
            }

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index to a folder; a crash leaves the index that was there before.

        Rows that count no longer are left out, unless a graph would have to be built anew for less than a
        quarter of its rows.

        Raises:
            InputError: the folder holds something else than an index, or cannot be written.
        """
        with self._lock:
            dead = self._corpus.rows - len(self)
            if dead and (self._dense.kind == "flat" or dead > _MOST_DEAD * self._corpus.rows):
                kept = self._corpus.compact()
                self._dense.keep(kept)
                self._lexical.keep(kept)
            write_folder(Path(folder), self._write)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        embedder: Embedder | None = None,
        chunker: Chunker | None = None,
        mmap: bool = True,
        verify: bool = True,
    ) -> Self:
        """Read an index.

        Args:
            folder: as given to :meth:`save`.
            embedder: the one that it was made with; the bundled model by default.
            chunker: needed to add to an index that was made with a chunker of the caller's.
            mmap: read vectors, scores and texts as they are needed; otherwise all at once. To add to it, the
                vectors are read in any case.
            verify: compare every file with its sha256. Switch it off only for a folder that nothing else
                touches: a damaged file can end the process.

        Raises:
            InputError: the folder holds no index, one of a newer format, or a damaged one.
            ConfigurationError: the embedder is another one.
            ModelError, MissingExtraError: as :class:`Index`.
        """
        data, described = read_folder(Path(folder), verify=verify)
        try:
            settings, wanted = described["embedder"], described["dense"]
            unnamed, recorded = described["unnamed"], described["chunker"]
        except (KeyError, TypeError) as error:
            raise InputError(f"{folder}: the index is damaged: it does not say {error}") from error
        index = cls(embedder=embedder, chunker=chunker or restore_chunker(recorded) or whole, dense=wanted)
        if chunker is None and restore_chunker(recorded) is None:
            index._chunker = None
        own = index._embedder.settings
        different = sorted(key for key in own if own[key] != settings.get(key))
        if different:
            raise ConfigurationError(
                f"{folder} was made with another embedder (different: {', '.join(different)}); "
                "give the same one, or build the index anew"
            )
        index._corpus = Corpus.load(data, mapped=mmap)
        index._dense = DenseStore.load(
            data / "vectors.faiss", index._embedder.dimension, kind=wanted, mapped=mmap
        )
        index._lexical = LexicalStore.load(data / "bm25", mapped=mmap)
        index._unnamed = int(unnamed)
        if not index._corpus.rows == len(index._dense) == len(index._lexical):
            raise InputError(f"{folder}: the index is damaged: its parts have different lengths")
        return index

    def _write(self, folder: Path) -> dict[str, Any]:
        (folder / "bm25").mkdir()
        self._corpus.save(folder)
        self._dense.save(folder / "vectors.faiss")
        self._lexical.save(folder / "bm25", self._corpus.alive)
        return {
            "embedder": self._embedder.settings,
            "model": self._embedder.name,
            "dense": self._wanted,
            "chunker": describe_chunker(self._chunker),
            "unnamed": self._unnamed,
            "sources": len(self._corpus),
            "passages": len(self),
        }

    def _named(self, sources: Iterable[SourceLike]) -> Iterable[SourceLike]:
        """Sources without an id get the next number that is free, over all calls."""
        if not isinstance(sources, Iterable) or isinstance(sources, (str, bytes, Mapping)):
            return sources  # refused by what reads them next, with a message
        named: list[SourceLike] = []
        for item in sources:
            if isinstance(item, Mapping) and all(item.get(name) is None for name in _ID_FIELDS):
                named.append({**item, "id": self._next()})
            elif item is None or isinstance(item, str):
                named.append(Source(self._next(), item or ""))
            else:
                named.append(item)
        return named

    def _next(self) -> str:
        self._unnamed += 1
        while str(self._unnamed) in self._corpus:
            self._unnamed += 1
        return str(self._unnamed)

    def _same(self, source: Source) -> bool:
        old = self._corpus.source(source.id)
        return (old.text, old.title) == (source.text, source.title)


def _read(title: str | None, text: str) -> str:
    """What is embedded and searched of a passage: a short title speaks for every passage of its document."""
    return f"{title}\n{text}" if title and len(title) <= _LONGEST_TITLE else text

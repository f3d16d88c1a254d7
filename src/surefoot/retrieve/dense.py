"""Passages by vector: FAISS, exact while that is fast, a graph beyond.

Up to :data:`FLAT_LIMIT` vectors every search compares the query with all of them. Above, a hierarchical
navigable small world graph is searched (Malkov & Yashunin 2018, "Efficient and robust approximate nearest
neighbor search using hierarchical navigable small world graphs"), which may miss a few. Rows are never taken
out: what was removed is masked, and left out when the store is compacted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from surefoot.errors import InputError, missing_extra

__all__ = ["FLAT_LIMIT", "DenseStore", "Kind"]

Kind = Literal["flat", "hnsw"]
Vectors = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

FLAT_LIMIT: Final = 150_000
"""Vectors up to which ``kind="auto"`` compares with all of them; see docs/retrieval.md for what each
costs."""

_LINKS: Final = 16
_BUILD_EFFORT: Final = 100
_SEARCH_EFFORT: Final = 128
_FEW: Final = 0.1
"""A graph walk that may accept less than this share of the rows is replaced by comparing with just those."""


class DenseStore:
    """Unit vectors in rows, searched by cosine.

    Args:
        dimension: length of a vector.
        kind: ``"flat"``, ``"hnsw"``, or ``"auto"`` for flat, and hnsw beyond :data:`FLAT_LIMIT` rows.

    Raises:
        MissingExtraError: the extra ``retrieve`` is not installed.
    """

    def __init__(self, dimension: int, *, kind: Kind | Literal["auto"] = "auto") -> None:
        self.dimension = dimension
        self._wanted = kind
        self._index = self._new("hnsw" if kind == "hnsw" else "flat")
        self._mapped = False

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def kind(self) -> Kind:
        """What is searched now."""
        return "flat" if self._index is self._storage() else "hnsw"

    @property
    def mapped(self) -> bool:
        """Whether the vectors are read from a file as they are needed."""
        return self._mapped

    def vectors(self) -> Vectors:
        """All vectors, shape (rows, dimension): a view that must not be changed or kept."""
        storage = self._storage()
        if not len(self):
            return np.zeros((0, self.dimension), dtype=np.float32)
        view = _faiss().rev_swig_ptr(storage.get_xb(), len(self) * self.dimension)
        return np.asarray(view, dtype=np.float32).reshape(len(self), self.dimension)

    def add(self, vectors: Vectors) -> None:
        """Append rows.

        A graph is built by one thread, so that the same vectors in the same order make the same graph.
        """
        if not len(vectors):
            return
        kind = self.kind
        if self._wanted == "auto":
            kind = "hnsw" if len(self) + len(vectors) > FLAT_LIMIT else "flat"
        if kind != self.kind:
            self._rebuild(kind, self.vectors())
        elif self._mapped:  # FAISS ends the process when a mapped index is added to
            faiss = _faiss()
            self._index = faiss.deserialize_index(faiss.serialize_index(self._index))
            self._mapped = False
        self._append(self._index, vectors)

    def keep(self, rows: npt.NDArray[np.int64]) -> None:
        """Leave out all rows but these; they are renumbered in the order given."""
        kind: Kind = self.kind
        if self._wanted == "auto":
            kind = "hnsw" if len(rows) > FLAT_LIMIT else "flat"
        self._rebuild(kind, self.vectors()[rows])

    def search(self, query: Vectors, k: int, allowed: Mask | None) -> list[tuple[int, float]]:
        """The rows nearest to a query.

        Args:
            query: unit vector of shape (dimension,).
            k: most rows to return.
            allowed: bool array of shape (rows,), or ``None`` for all.

        Returns:
            (row, cosine), best first, equal cosines by row.
        """
        possible = len(self) if allowed is None else int(np.count_nonzero(allowed))
        k = min(k, possible)
        if k < 1:
            return []
        if allowed is not None and self.kind == "hnsw" and possible < _FEW * len(self):
            rows = np.flatnonzero(allowed)
            scores = self.vectors()[rows] @ query
        else:
            found, places = self._index.search(query[None, :], k, params=self._parameters(k, allowed))
            rows, scores = places[0][places[0] >= 0], found[0][places[0] >= 0]
        best = np.lexsort((rows, -scores))[:k]
        return [(int(rows[at]), float(scores[at])) for at in best]

    def save(self, path: Path) -> None:
        """Write one file."""
        _faiss().write_index(self._index, str(path))

    @classmethod
    def load(
        cls, path: Path, dimension: int, *, kind: Kind | Literal["auto"] = "auto", mapped: bool
    ) -> DenseStore:
        """Read what :meth:`save` wrote; ``mapped`` leaves the vectors in the file until they are needed.

        Raises:
            InputError: it is no such file.
        """
        faiss = _faiss()
        store = cls(dimension, kind=kind)
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
        except (RuntimeError, MemoryError) as error:
            raise InputError(f"{path.name} is no FAISS index that can be read") from error
        flat = isinstance(index, faiss.IndexFlat)
        if not flat and not isinstance(index, faiss.IndexHNSWFlat):
            raise InputError(f"{path.name} is a FAISS index of another kind: {type(index).__name__}")
        if index.d != dimension or index.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise InputError(f"{path.name} holds other vectors: {index.d} dimensions instead of {dimension}")
        store._index = index
        store._mapped = mapped
        return store

    def _new(self, kind: Kind) -> Any:
        faiss = _faiss()
        if kind == "flat":
            return faiss.IndexFlatIP(self.dimension)
        index = faiss.IndexHNSWFlat(self.dimension, _LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = _BUILD_EFFORT
        return index

    def _storage(self) -> Any:
        """The flat index with the vectors: the index itself, or what the graph lies over."""
        faiss = _faiss()
        if isinstance(self._index, faiss.IndexFlat):
            return self._index
        return faiss.downcast_index(self._index.storage)

    def _rebuild(self, kind: Kind, vectors: Vectors) -> None:
        index = self._new(kind)
        self._append(index, vectors)
        self._index, self._mapped = index, False

    def _append(self, index: Any, vectors: Vectors) -> None:
        faiss = _faiss()
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            if len(vectors):
                index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        finally:
            faiss.omp_set_num_threads(threads)

    def _parameters(self, k: int, allowed: Mask | None) -> Any:
        faiss = _faiss()
        selector = None
        if allowed is not None:
            selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        if self.kind == "flat":
            return faiss.SearchParameters(sel=selector)
        return faiss.SearchParametersHNSW(sel=selector, efSearch=max(_SEARCH_EFFORT, 2 * k))


def _faiss() -> Any:
    with missing_extra("retrieve", purpose="search passages by vector"):
        import faiss
    return faiss

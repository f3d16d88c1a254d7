"""Word weights and static word vectors: what evidence selection knows about words.

The table is the input embedding of the bundled sentence embedder, which needs no forward pass: a sentence
is the sum of its token vectors, weighted by inverse document frequency (idf).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from surefoot.inference.text import TextEncoder
from surefoot.models.manifest import bundled

__all__ = ["Lexicon", "Tokens", "load_lexicon"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """One text as the lexicon sees it; compared by identity, since arrays do not compare to one truth value.

    Attributes:
        ids: distinct token ids, ascending; token order carries no meaning here.
        vector: unit vector, or zeros for a text without a known token.
        count: number of tokens, repeats included.
        offsets: (start, end) of each token in code points, in order.
    """

    ids: npt.NDArray[np.int64]
    vector: Floats
    count: int
    offsets: list[tuple[int, int]]


class Lexicon:
    """Token ids, idf weights, and static vectors.

    Args:
        encoder: the tokenizer that the table was made for.
        table: int8 array of shape (vocabulary, width).
        scale: float array of shape (vocabulary,): ``table * scale[:, None]`` are the vectors.
        idf: float array of shape (vocabulary,): weight of each token, 0 or more.
    """

    def __init__(self, encoder: TextEncoder, table: npt.NDArray[np.int8], scale: Floats, idf: Floats) -> None:
        self._encoder = encoder
        self._table = table
        self._scale = scale.astype(np.float32)
        self.idf = idf.astype(np.float64)

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Read texts; empty ones give no ids and a zero vector."""
        return [
            self._tokens(encoding)
            for encoding in self._encoder.encode(
                [text.lower() if len(text.lower()) == len(text) else text for text in texts]
            )
        ]

    def best_cosines(
        self, ids: npt.NDArray[np.int64], among: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """For each token of ``ids`` [n] the best cosine with a token of ``among`` [m], 0 to 1 [n]."""
        if not len(ids) or not len(among):
            return np.zeros(len(ids))
        ours, theirs = self._directions(ids), self._directions(among)
        best: npt.NDArray[np.float64] = np.clip((ours @ theirs.T).max(axis=1), 0.0, 1.0).astype(np.float64)
        return best

    def _directions(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Unit vectors of tokens; the scale of a row does not change its direction."""
        rows = self._table[ids].astype(np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-9), dtype=np.float32)

    def _tokens(self, encoding: object) -> Tokens:
        sequence = np.asarray(encoding.ids, dtype=np.int64)  # type: ignore[attr-defined]
        ids, counts = np.unique(sequence, return_counts=True)
        if len(ids):
            weights = (self.idf[ids] * counts).astype(np.float32) * self._scale[ids]
            vector = weights @ self._table[ids].astype(np.float32)
            norm = float(np.linalg.norm(vector))
            vector = vector / np.float32(norm) if norm > 0 else vector
        else:
            vector = np.zeros(self._table.shape[1], dtype=np.float32)
        return Tokens(ids, vector, len(sequence), list(encoding.offsets))  # type: ignore[attr-defined]


@cache
def load_lexicon() -> Lexicon:
    """The bundled lexicon; loaded once per process.

    Raises:
        ModelIntegrityError: its files are missing or damaged.
    """
    resolved = bundled("static")
    table, scale, idf = (
        np.load(path, allow_pickle=False)
        for path in (resolved.model_path, resolved.file("scale.npy"), resolved.file("idf.npy"))
    )
    return Lexicon(TextEncoder(resolved.tokenizer_path), table, scale, idf)

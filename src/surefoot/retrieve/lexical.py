"""Passages by words: BM25 through ``bm25s``, over words of any script.

Every BM25 score depends on how many passages there are and on how long they are, so an update changes all of
them.
The token ids are kept, and the scores are computed anew from them at the first search after an update: by
sorting, which takes about a second for 100,000 passages, instead of the library's loop over them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surefoot.errors import InputError, missing_extra
from surefoot.inference.text import clean

__all__ = ["LexicalStore", "words"]

Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float32]

K1: Final = 1.2
B: Final = 0.75
"""Robertson & Zaragoza 2009, "The probabilistic relevance framework: BM25 and beyond"; the usual values."""

_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]+"
)
"""Scripts that are written without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""

_LONGEST: Final = 100
"""A longer word is no word that anybody asks for; its beginning stands for it."""

_PARTS: Final = re.compile(r"\s+|\S+")
_MOST_MARKS: Final = 30

_STOP: Final = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with".split()
)
"""The English words that Lucene leaves out."""


def words(text: str) -> list[str]:
    """The terms of a text: folded, stemmed as English, common words left out.

    Scripts without spaces give overlapping pairs of characters. A text of common words only keeps them.
    """
    return [word for part in _terms([text]) for word in part]


class LexicalStore:
    """Token ids of passages in rows, scored by BM25 as Lucene does."""

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self._parts: list[Ids] = []
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._scorer: Any = None

    def __len__(self) -> int:
        return sum(len(part) for part in self._lengths)

    @property
    def terms(self) -> int:
        """Number of different terms ever seen."""
        return len(self._vocabulary)

    def add(self, texts: Sequence[str]) -> None:
        """Append rows."""
        if not texts:
            return
        ids: list[int] = []
        lengths: list[int] = []
        known = self._vocabulary
        for terms in _terms(texts):
            ids.extend([known.setdefault(term, len(known)) for term in terms])
            lengths.append(len(terms))
        self._parts.append(np.array(ids, dtype=np.int32))
        self._lengths.append(np.array(lengths, dtype=np.int64))
        self._scorer = None

    def changed(self) -> None:
        """Some rows count no longer: compute the scores anew at the next search."""
        self._scorer = None

    def keep(self, rows: npt.NDArray[np.int64]) -> None:
        """Leave out all rows but these; they are renumbered in the order given."""
        ids, lengths = self._flat()
        ends = np.cumsum(lengths)
        kept = [ids[ends[row] - lengths[row] : ends[row]] for row in rows]
        self._parts = [np.concatenate([np.zeros(0, dtype=np.int32), *kept])]
        self._lengths = [lengths[rows]]
        self._scorer = None

    def prepare(self, alive: Mask) -> None:
        """Compute the scores, if they are out of date.

        Args:
            alive: bool array of shape (rows,): the rows that count.
        """
        if self._scorer is None:
            self._scorer = _scorer(self._flat(), self._vocabulary, alive)

    def search(self, query: str, k: int, allowed: Mask | None, alive: Mask) -> list[tuple[int, float]]:
        """The rows that share words with a query.

        Args:
            query: any text; a word that occurs twice counts twice.
            k: most rows to return.
            allowed: bool array of shape (rows,): rows that may be returned, or ``None`` for all that count.
            alive: as for :meth:`prepare`.

        Returns:
            (row, score), best first, equal scores by row; only scores above 0.
        """
        self.prepare(alive)
        ids = [self._vocabulary[word] for word in words(query) if word in self._vocabulary]
        if not ids or k < 1 or not len(self):
            return []
        scores: Scores = self._scorer.get_scores_from_ids(ids)
        if allowed is not None:
            scores = np.where(allowed, scores, np.float32(0))
        rows = np.flatnonzero(scores > 0)
        if len(rows) > k:
            # All that tie with the last one stay in until the order is settled by row.
            edge = np.partition(scores[rows], len(rows) - k)[len(rows) - k]
            rows = rows[scores[rows] >= edge]
        best = rows[np.lexsort((rows, -scores[rows]))[:k]]
        return [(int(row), float(scores[row])) for row in best]

    def save(self, folder: Path, alive: Mask) -> None:
        """Write a folder: the scores as ``bm25s`` stores them (NumPy arrays and JSON), and the token ids."""
        self.prepare(alive)
        self._scorer.save(folder, show_progress=False, allow_pickle=False)
        ids, lengths = self._flat()
        np.save(folder / "ids.npy", ids, allow_pickle=False)
        np.save(folder / "lengths.npy", lengths, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, *, mapped: bool) -> LexicalStore:
        """Read what :meth:`save` wrote; ``mapped`` leaves the arrays in their files until they are needed.

        Raises:
            InputError: it is no such folder.
        """
        store = cls()
        try:
            store._scorer = _bm25().load(folder, mmap=mapped, allow_pickle=False, show_progress=False)
            mode: Any = "r" if mapped else None
            ids = np.load(folder / "ids.npy", allow_pickle=False, mmap_mode=mode)
            lengths = np.load(folder / "lengths.npy", allow_pickle=False)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder.name} holds no BM25 scores that can be read: {error}") from error
        store._vocabulary = store._scorer.vocab_dict
        store._parts, store._lengths = [ids], [lengths]
        if int(lengths.sum()) != len(ids) or store._scorer.scores["num_docs"] != len(lengths):
            raise InputError(f"{folder.name}: the BM25 scores do not fit the token ids")
        return store

    def _flat(self) -> tuple[Ids, npt.NDArray[np.int64]]:
        if len(self._parts) != 1:
            self._parts = [np.concatenate([np.zeros(0, dtype=np.int32), *self._parts])]
            self._lengths = [np.concatenate([np.zeros(0, dtype=np.int64), *self._lengths])]
        return self._parts[0], self._lengths[0]


def _scorer(flat: tuple[Ids, npt.NDArray[np.int64]], vocabulary: dict[str, int], alive: Mask) -> Any:
    """A ``bm25s.BM25`` with the scores of Lucene's variant, of rows that count, computed without a loop."""
    ids, lengths = flat
    size = max(1, len(vocabulary))
    counted = np.repeat(alive, lengths)
    rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)[counted]
    terms = ids[counted].astype(np.int64)
    # One sort by (term, row) both counts the terms of a row and gives the order of the sparse columns.
    pairs, counts = np.unique((terms << 32) | rows, return_counts=True)
    columns, places = pairs >> 32, pairs & 0xFFFFFFFF
    found = np.bincount(columns, minlength=size)
    passages = int(np.count_nonzero(alive))
    mean = max(1.0, float(lengths[alive].sum()) / max(1, passages))
    idf = np.log1p((passages - found + 0.5) / (found + 0.5))
    scale = K1 * (1 - B + B * lengths[places] / mean)
    bm25 = _bm25()(k1=K1, b=B, method="lucene")
    bm25.scores = {
        "data": (idf[columns] * counts / (scale + counts)).astype(np.float32),
        "indices": places.astype(np.int32),
        "indptr": np.concatenate([[0], np.cumsum(found)]).astype(np.int64),
        "num_docs": len(lengths),
    }
    bm25.vocab_dict = vocabulary
    bm25.unique_token_ids_set = set(vocabulary.values())
    bm25.nonoccurrence_array = None
    return bm25


def _terms(texts: Iterable[str]) -> list[list[str]]:
    with missing_extra("retrieve", purpose="search passages by word"):
        import Stemmer
    stem = Stemmer.Stemmer("english").stemWords
    result = []
    for text in texts:
        folded = _folded(clean(text))
        found = [word[:_LONGEST] for word in _WORD.findall(folded)]
        if not folded.isascii() and _UNSPACED.search(folded):
            found = [part for word in _WORD.findall(folded) for part in _parts_of(word)]
        kept = [word for word in found if word not in _STOP]
        result.append(list(stem(kept or found)))
    return result


def _folded(text: str) -> str:
    """NFKC and case folding, in linear time.

    Normalising sorts the marks of a character, which takes the square of their number; so after 30 of them
    one that ends the sorting is put in, as the Stream-Safe Text Format does (Unicode Standard Annex 15).
    """
    if text.isascii():
        return text.casefold()
    parts = (part if len(part) <= _LONGEST else _stream_safe(part) for part in _PARTS.findall(text))
    return "".join(unicodedata.normalize("NFKC", part) for part in parts).casefold()


def _stream_safe(text: str) -> str:
    found: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MOST_MARKS:
            found.append("\N{COMBINING GRAPHEME JOINER}")
            marks = 1
        found.append(character)
    return "".join(found)


def _parts_of(word: str) -> list[str]:
    """``"東京タワー2"`` -> 東京, 京タ, タワ, ワー, 2: pairs within a run without spaces, other runs whole."""
    found: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        found += [word[end : run.start()][:_LONGEST]] if run.start() > end else []
        characters = run.group()
        found += [characters[at : at + 2] for at in range(max(1, len(characters) - 1))]
        end = run.end()
    return found + ([word[end:][:_LONGEST]] if end < len(word) else [])


def _bm25() -> Any:
    with missing_extra("retrieve", purpose="search passages by word"):
        import bm25s
    return bm25s.BM25

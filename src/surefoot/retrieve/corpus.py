"""The documents of an index and where their passages lie, in memory or in a mapped file."""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surefoot.errors import InputError
from surefoot.retrieve.records import SourceInfo
from surefoot.schema import Source, Span

__all__ = ["Corpus", "Filter", "plain_metadata"]

Filter = Callable[[SourceInfo], bool] | Mapping[str, Any]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

_TEXTS: Final = "texts.bin"
_SOURCES: Final = "sources.jsonl"
_PASSAGES: Final = "passages.npy"
_ALIVE: Final = "alive.npy"


@dataclass(slots=True, eq=False)
class _Document:
    """A source without its text, or with it where it is not in the file.

    Attributes:
        rows: its passages: neighbours, since a source is always added whole.
        text: ``None`` where it is in the file, at ``place`` (bytes).
    """

    info: SourceInfo
    rows: range
    text: str | None
    place: tuple[int, int] = (0, 0)


class Corpus:
    """Sources by id, and passages in rows; a row whose source was removed stays, and counts no longer."""

    def __init__(self) -> None:
        self._documents: dict[str, _Document] = {}
        self._owners: list[_Document | None] = []
        self._spans: Rows = np.zeros((0, 2), dtype=np.int64)
        self._places: Rows = np.zeros((0, 2), dtype=np.int64)
        self._file: mmap.mmap | bytes = b""
        self.alive: Mask = np.zeros(0, dtype=np.bool_)

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, source_id: str) -> bool:
        return source_id in self._documents

    @property
    def rows(self) -> int:
        """Rows, those that count no longer included."""
        return len(self._owners)

    def infos(self) -> Iterator[SourceInfo]:
        """The sources in the order in which they came."""
        return (document.info for document in self._documents.values())

    def source(self, source_id: str) -> Source:
        """A source with its whole text.

        Raises:
            KeyError: there is none of that id.
        """
        document = self._documents[source_id]
        info = document.info
        return Source(info.id, self._text(document), info.title, info.metadata)

    def texts_of(self, source_id: str) -> dict[str, int]:
        """Text of each passage of a source -> its row."""
        return {self.passage(row): row for row in self._documents[source_id].rows}

    def span(self, row: int) -> Span:
        """Where a passage lies in its source."""
        start, end = self._spans[row].tolist()
        return Span(start, end)

    def info(self, row: int) -> SourceInfo:
        """The source of a passage.

        Raises:
            KeyError: the row counts no longer.
        """
        owner = self._owners[row]
        if owner is None:
            raise KeyError(row)
        return owner.info

    def passage(self, row: int) -> str:
        """The text of a passage."""
        owner = self._owners[row]
        if owner is not None and owner.text is not None:
            start, end = self._spans[row].tolist()
            return owner.text[start:end]
        first, last = self._places[row].tolist()
        return self._decode(first, last)

    def add(self, source: Source, spans: Sequence[Span]) -> range:
        """Add a source of a new id; its metadata must be plain already.

        Returns:
            The rows of its passages.
        """
        rows = range(self.rows, self.rows + len(spans))
        info = SourceInfo(source.id, source.title, source.metadata, len(source.text))
        document = _Document(info, rows, source.text)
        self._documents[source.id] = document
        self._owners.extend([document] * len(spans))
        table = np.array([(span.start, span.end) for span in spans], dtype=np.int64).reshape(-1, 2)
        self._spans = np.concatenate([self._spans, table])
        self.alive = np.concatenate([self.alive, np.ones(len(spans), dtype=np.bool_)])
        return rows

    def update_metadata(self, source_id: str, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata of a source."""
        document = self._documents[source_id]
        info = document.info
        document.info = SourceInfo(info.id, info.title, metadata, info.characters)

    def remove(self, source_id: str) -> None:
        """Take a source out; its rows count no longer."""
        document = self._documents.pop(source_id)
        for row in document.rows:
            self._owners[row] = None
        alive = self.alive.copy()  # a search may still hold the old one, or it is a file
        alive[document.rows.start : document.rows.stop] = False
        self.alive = alive

    def allowed(self, wanted: Filter | None) -> Mask | None:
        """The rows that count and that a filter lets through; ``None`` where those are all rows."""
        if wanted is None:
            return None if self.alive.all() else self.alive
        test = wanted if callable(wanted) else _matcher(wanted)
        mask = np.zeros(self.rows, dtype=np.bool_)
        for document in self._documents.values():
            if document.rows and test(document.info):
                mask[document.rows.start : document.rows.stop] = True
        return mask

    def compact(self) -> Rows:
        """Leave out the rows that count no longer.

        Returns:
            The old numbers of the rows that are left, in their new order.
        """
        kept = np.flatnonzero(self.alive)
        in_file = int(np.searchsorted(kept, len(self._places)))
        new = {int(old): index for index, old in enumerate(kept)}
        for document in self._documents.values():
            if document.rows:
                first = new[document.rows.start]
                document.rows = range(first, first + len(document.rows))
        self._owners = [self._owners[row] for row in kept]
        self._spans = self._spans[kept]
        self._places = self._places[kept[:in_file]]
        self.alive = np.ones(len(kept), dtype=np.bool_)
        return kept

    def save(self, folder: Path) -> None:
        """Write the texts as they are, one after the other in UTF-8, and what describes them."""
        places = np.zeros((self.rows, 2), dtype=np.int64)
        at = 0
        with (folder / _TEXTS).open("wb") as texts, (folder / _SOURCES).open("w", encoding="ascii") as lines:
            for document in self._documents.values():
                text = self._text(document)
                data = text.encode("utf-8", errors="surrogatepass")
                texts.write(data)
                rows = slice(document.rows.start, document.rows.stop)
                places[rows] = at + _byte_positions(text)[self._spans[rows]]
                record = {
                    "id": document.info.id,
                    "title": document.info.title,
                    "metadata": document.info.metadata,
                    "characters": document.info.characters,
                    "rows": [document.rows.start, document.rows.stop],
                    "bytes": [at, at + len(data)],
                }
                lines.write(json.dumps(record, allow_nan=False) + "\n")
                at += len(data)
        np.save(folder / _PASSAGES, np.concatenate([self._spans, places], axis=1), allow_pickle=False)
        np.save(folder / _ALIVE, self.alive, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, *, mapped: bool) -> Corpus:
        """Read what :meth:`save` wrote; ``mapped`` leaves the texts in the file until they are needed.

        Raises:
            InputError: it does not hold together.
        """
        corpus = cls()
        mode: Any = "r" if mapped else None
        try:
            table = np.load(folder / _PASSAGES, allow_pickle=False, mmap_mode=mode)
            corpus.alive = np.load(folder / _ALIVE, allow_pickle=False)
            corpus._spans, corpus._places = table[:, :2], table[:, 2:]
            corpus._owners = [None] * len(table)
            with (folder / _TEXTS).open("rb") as stream:
                size = (folder / _TEXTS).stat().st_size
                if mapped and size:  # an empty file cannot be mapped
                    corpus._file = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
                else:
                    corpus._file = stream.read()
            with (folder / _SOURCES).open(encoding="ascii") as lines:
                for line in lines:
                    corpus._restore(json.loads(line), size)
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise InputError(f"the documents of the index cannot be read: {error}") from error
        if len(corpus.alive) != len(table) or any(
            (owner is None) == bool(alive) for owner, alive in zip(corpus._owners, corpus.alive, strict=True)
        ):
            raise InputError("the documents of the index do not fit its passages")
        return corpus

    def _restore(self, record: dict[str, Any], size: int) -> None:
        (first, last), (start, end) = record["rows"], record["bytes"]
        if not (0 <= first <= last <= self.rows and 0 <= start <= end <= size):
            raise ValueError("a position is outside its file")
        info = SourceInfo(record["id"], record["title"], record["metadata"], record["characters"])
        document = _Document(info, range(first, last), None, (start, end))
        self._documents[info.id] = document
        self._owners[first:last] = [document] * (last - first)

    def _text(self, document: _Document) -> str:
        return self._decode(*document.place) if document.text is None else document.text

    def _decode(self, start: int, end: int) -> str:
        return self._file[start:end].decode("utf-8", errors="surrogatepass")


def plain_metadata(source: Source) -> dict[str, Any]:
    """The metadata of a source as JSON would give them back: a copy that nobody else changes.

    Raises:
        InputError: they are not JSON: a date, a NaN, a key that is no string.
    """
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(source.metadata), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the metadata of source {source.id[:200]!r} are not JSON: {error}") from error
    return copy


def _matcher(wanted: Mapping[str, Any]) -> Callable[[SourceInfo], bool]:
    """Every key must match: equal to the value, or to one of a list; a list in the metadata needs one in
    common.
    """
    choices = {
        key: list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
        for key, value in wanted.items()
    }

    def test(info: SourceInfo) -> bool:
        own = {"id": info.id, "title": info.title}
        for key, accepted in choices.items():
            if key in info.metadata:
                value = info.metadata[key]
            elif key in own:
                value = own[key]
            else:
                return False
            if not any(item in accepted for item in (value if isinstance(value, list) else [value])):
                return False
        return True

    return test


def _byte_positions(text: str) -> Rows:
    """Position in UTF-8 of each code point and of the end; shape (len(text) + 1,)."""
    if text.isascii():
        return np.arange(len(text) + 1, dtype=np.int64)
    points = np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), dtype="<u4")
    sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

"""Vectors on disk while an index is being built, so that a build that was interrupted goes on where it was.

Records of one length are appended: digest of the text, vector, checksum. What a crash cut off at the end is
left out when the file is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final, Self

import numpy as np
import numpy.typing as npt

from surefoot.errors import InputError
from surefoot.inference.embedding import Embedder
from surefoot.inference.text import clean

__all__ = ["Journal", "embed_passages"]

Vectors = npt.NDArray[np.float32]

_MAGIC: Final = b"surefoot-journal-1\n"
_DIGEST: Final = 16
_CHECK: Final = 4

_AT_ONCE: Final = 256
"""Texts embedded between two steps of progress, and two additions to the journal."""


class Journal:
    """Vectors by text, kept in a file until the index that they are for is saved.

    Args:
        path: the file; made when the first vectors come.
        settings: what the vectors depend on. A file of other settings is of no use and is begun anew.

    Raises:
        InputError: the file cannot be read or written, or is no journal.
    """

    def __init__(self, path: Path, settings: Mapping[str, str | int]) -> None:
        self._path = path
        self._dimension = int(settings["dimension"])
        self._head = _MAGIC + json.dumps(dict(settings), sort_keys=True).encode("ascii") + b"\n"
        self._size = _DIGEST + 4 * self._dimension + _CHECK
        self._places: dict[bytes, int] = {}
        self._stream: IO[bytes] | None = None
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, text: str) -> Vectors | None:
        """The vector of a text, or ``None``."""
        place = self._places.get(_digest(text))
        if place is None:
            return None
        with self._path.open("rb") as stream:
            stream.seek(place + _DIGEST)
            return np.frombuffer(stream.read(4 * self._dimension), dtype="<f4").astype(np.float32)

    def put(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Append vectors; they are with the operating system when this returns.

        Raises:
            InputError: the file cannot be written.
        """
        try:
            stream = self._open()
            for text, vector in zip(texts, vectors, strict=True):
                record = _digest(text) + vector.astype("<f4").tobytes()
                self._places[record[:_DIGEST]] = stream.tell()
                stream.write(record + zlib.crc32(record).to_bytes(_CHECK, "little"))
            stream.flush()
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror or error}") from error

    def close(self) -> None:
        """Close the file and keep it."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def remove(self) -> None:
        """Take the file away: what was in it is in an index now."""
        self.close()
        self._places.clear()
        self._path.unlink(missing_ok=True)

    def _open(self) -> IO[bytes]:
        if self._stream is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self._path.open("ab")
            if self._stream.tell() == 0:
                self._stream.write(self._head)
        return self._stream

    def _read(self) -> None:
        if not self._path.exists():
            return
        try:
            with self._path.open("rb") as stream:
                head = stream.read(len(self._head))
                if head and not head.startswith(_MAGIC[: len(head)]):
                    raise InputError(f"{self._path} is no journal of surefoot's")
                end = len(self._head)
                while head == self._head and len(record := stream.read(self._size)) == self._size:
                    body, check = record[:-_CHECK], record[-_CHECK:]
                    if zlib.crc32(body) != int.from_bytes(check, "little"):
                        break
                    self._places[body[:_DIGEST]] = end
                    end += self._size
            os.truncate(self._path, end if head == self._head else 0)
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror or error}") from error


def embed_passages(
    texts: Sequence[str],
    embedder: Embedder,
    *,
    known: Mapping[str, Vectors],
    checkpoint: str | os.PathLike[str] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[Vectors, int]:
    """Vectors of texts: those that are known, those of the journal, and the others computed and journalled.

    Equal texts are computed once.

    Args:
        texts: what to embed.
        embedder: makes the vectors.
        known: vectors by text.
        checkpoint: path of the journal, or ``None`` for none.
        progress: called with (texts done, texts to do).

    Returns:
        Array of shape (len(texts), dimension), and how many vectors had to be computed.

    Raises:
        InputError: the journal cannot be read or written.
        ModelError: the embedder fails.
    """
    vectors = np.empty((len(texts), embedder.dimension), dtype=np.float32)
    journal = None if checkpoint is None else Journal(Path(checkpoint), embedder.settings)
    places: dict[str, list[int]] = {}
    for at, text in enumerate(texts):
        places.setdefault(text, []).append(at)
    missing: list[str] = []
    for text, where in places.items():
        found = known.get(text)
        if found is None and journal is not None:
            found = journal.get(text)
        if found is None:
            missing.append(text)
        else:
            vectors[where] = found
    done = len(texts) - sum(len(places[text]) for text in missing)
    if progress is not None and texts:
        progress(done, len(texts))
    with contextlib.ExitStack() as stack:
        if journal is not None:
            stack.enter_context(journal)
        for start in range(0, len(missing), _AT_ONCE):
            batch = missing[start : start + _AT_ONCE]
            made = embedder.embed(batch)
            if journal is not None:
                journal.put(batch, made)
            for text, vector in zip(batch, made, strict=True):
                vectors[places[text]] = vector
                done += len(places[text])
            if progress is not None:
                progress(done, len(texts))
    return vectors, len(missing)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(clean(text).encode("utf-8"), digest_size=_DIGEST).digest()

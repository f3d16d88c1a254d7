"""Retrieval collections read from JSON lines, plain or gzipped.

Two layouts are read: pairs ``NAME.jsonl`` with ``query``, ``passage`` and ``relevance``, whose distinct
passages are the corpus; and ``NAME.corpus.jsonl``, ``NAME.queries.jsonl``, ``NAME.qrels.tsv`` (query,
passage, relevance).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Collection", "Seen", "load_collections", "plain", "read_rows", "sample", "stable_share"]

_SHINGLE = 8
_SHARED = 0.2


@dataclass(frozen=True, slots=True)
class Collection:
    """Queries, passages and judgements.

    Attributes:
        name: of the collection.
        passages: texts of the corpus, a title in front where there is one.
        queries: texts of the queries that have a relevant passage.
        relevant: for each query, passage number to gain; gains are above 0.
    """

    name: str
    passages: tuple[str, ...]
    queries: tuple[str, ...]
    relevant: tuple[dict[int, float], ...]


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file."""
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as stream
    ):
        for line in stream:
            if line.strip():
                yield json.loads(line)


def load_collections(folders: Iterable[Path], names: Iterable[str] | None = None) -> list[Collection]:
    """Every collection with judgements; a corpus may lie in another folder, the last one wins."""
    files = {path.name.removesuffix(".gz"): path for folder in folders for path in sorted(folder.iterdir())}
    wanted = None if names is None else set(names)
    found = []
    for file, path in sorted(files.items()):
        name = file.removesuffix(".queries.jsonl")
        if file.endswith(".queries.jsonl") and (wanted is None or name in wanted):
            corpus = next((files[c] for c in _corpora(name) if c in files), None)
            if corpus is not None and f"{name}.qrels.tsv" in files:
                found.append(_judged(name, corpus, path, files[f"{name}.qrels.tsv"]))
        elif file.endswith(".jsonl") and file.count(".") == 1:
            name = file.removesuffix(".jsonl")
            if wanted is None or name in wanted:
                found.append(_pairs(name, path))
    return [collection for collection in found if collection.queries]


def _corpora(name: str) -> list[str]:
    """Where the corpus of a query set may be: under its own name, or without the split at its end."""
    return [f"{stem}.corpus.jsonl" for stem in (name, name.rpartition("_")[0]) if stem]


def _judged(name: str, corpus: Path, queries: Path, qrels: Path) -> Collection:
    rows = list(read_rows(corpus))
    texts = [" ".join(filter(None, (row.get("title", ""), row["text"]))) for row in rows]
    number = {str(row["pid"]): index for index, row in enumerate(rows)}
    gains: dict[str, dict[int, float]] = {}
    with gzip.open(qrels, "rt") if qrels.suffix == ".gz" else qrels.open() as stream:
        for line in stream:
            parts = line.split()
            if len(parts) >= 3 and parts[1] in number and _positive(parts[-1]):
                gains.setdefault(parts[0], {})[number[parts[1]]] = float(parts[-1])
    kept = [row for row in read_rows(queries) if str(row["qid"]) in gains]
    return Collection(
        name,
        tuple(texts),
        tuple(row["query"] for row in kept),
        tuple(gains[str(row["qid"])] for row in kept),
    )


def _positive(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def _pairs(name: str, path: Path) -> Collection:
    number: dict[str, int] = {}
    gains: dict[str, dict[int, float]] = {}
    for row in read_rows(path):
        index = number.setdefault(row["passage"], len(number))
        if row["relevance"] > 0:
            own = gains.setdefault(row["query"], {})
            own[index] = max(own.get(index, 0.0), float(row["relevance"]))
    return Collection(name, tuple(number), tuple(gains), tuple(gains.values()))


def sample(collection: Collection, queries: int, passages: int) -> Collection:
    """A fixed choice of queries, and of passages where there are more than ``passages``.

    What is relevant to a chosen query always stays; the rest is chosen by content alone.
    """
    chosen = sorted(range(len(collection.queries)), key=lambda i: stable_share(collection.queries[i]))[
        :queries
    ]
    kept = list(range(len(collection.passages)))
    if len(kept) > passages:
        needed = {row for i in chosen for row in collection.relevant[i]}
        others = sorted(
            (row for row in kept if row not in needed), key=lambda r: stable_share(collection.passages[r])
        )
        kept = sorted([*needed, *others[: max(0, passages - len(needed))]])
    place = {row: position for position, row in enumerate(kept)}
    return Collection(
        collection.name,
        tuple(collection.passages[row] for row in kept),
        tuple(collection.queries[i] for i in chosen),
        tuple({place[row]: gain for row, gain in collection.relevant[i].items()} for i in chosen),
    )


def plain(text: str) -> str:
    """Lower-case words and numbers only: what two copies of a text have in common."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def stable_share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone: the same split on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6], "big") / 2**48


class Seen:
    """Texts that must not be trained on, and anything that shares whole phrases with them.

    A text counts as seen when it is equal after :func:`plain`, or when a fifth of its runs of eight are.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._whole: set[int] = set()
        self._runs: set[int] = set()
        for text in texts:
            words = plain(text).split()
            self._whole.add(hash(" ".join(words)))
            self._runs.update(self._of(words))

    @staticmethod
    def _of(words: list[str]) -> list[int]:
        return [hash(" ".join(words[i : i + _SHINGLE])) for i in range(len(words) - _SHINGLE + 1)]

    def __contains__(self, text: str) -> bool:
        words = plain(text).split()
        if hash(" ".join(words)) in self._whole:
            return True
        runs = self._of(words)
        return bool(runs) and sum(run in self._runs for run in runs) >= _SHARED * len(runs)

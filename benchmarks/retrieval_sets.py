"""Retrieval collections from a folder: documents, queries, and what is relevant to which.

``DIR/retrieval/`` holds collections and pair files, gzipped or not:

* ``NAME.corpus.jsonl`` with ``{pid, text, title?}``, ``NAME.queries.jsonl`` with ``{qid, query}`` and
  ``NAME.qrels.tsv`` with query, document and grade. The corpus of ``NAME_PART`` may be called ``NAME``, and
  may lie in another folder of the same kind.
* ``NAME.jsonl`` with ``{query, passage, relevance, title?}``: the collection is all passages of the file, and
  a passage is relevant from grade 1. Nobody judged the passages of other queries, so that such a set says
  more about systems next to each other than about any of them.

Queries without a relevant document are left out and counted.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Collection", "load_collections"]


@dataclass(frozen=True, slots=True)
class Collection:
    """One test collection.

    Attributes:
        documents: (id, title, text) of every document; empty ones included.
        queries: (id, text) of those that take part.
        grades: query id -> document id -> grade, above 0.
        without: queries that were left out because nothing is relevant to them.
        total: queries with something relevant, before sampling.
        digest: of the contents.
    """

    name: str
    kind: str
    documents: list[tuple[str, str | None, str]]
    queries: list[tuple[str, str]]
    grades: Mapping[str, Mapping[str, float]]
    without: int
    total: int
    digest: str


def load_collections(
    folders: Sequence[Path], *, only: Sequence[str], limit: int, seed: int
) -> list[Collection]:
    """The collections whose queries lie in the first folder.

    Args:
        folders: the data, then further folders where a corpus may lie.
        only: their names; all by default.
        limit: most queries of each, drawn with ``seed``; 0 for all.

    Raises:
        ValueError: a name of ``only`` that there is not, a corpus that is missing, or a malformed row.
    """
    places = [folder / "retrieval" for folder in folders]
    found: dict[str, Collection] = {}
    for path in sorted(places[0].glob("*.jsonl*")):
        name = path.name.split(".jsonl")[0]
        if name.endswith(".queries"):
            base = name.removesuffix(".queries")
            if not only or base in only:
                found[base] = _judged(base, places, limit, seed)
        elif "." not in name and (not only or name in only):
            found[name] = _pairs(name, path, limit, seed)
    missing = [name for name in only if name not in found]
    if missing or not found:
        raise ValueError(f"{places[0]} has no collection {', '.join(missing) or 'at all'}")
    return list(found.values())


def _judged(name: str, places: Sequence[Path], limit: int, seed: int) -> Collection:
    corpus = _first(places, [f"{name}.corpus.jsonl", f"{name.rpartition('_')[0]}.corpus.jsonl"])
    queries = _first(places[:1], [f"{name}.queries.jsonl"])
    qrels = _first(places[:1], [f"{name}.qrels.tsv"])
    grades: dict[str, dict[str, float]] = {}
    for line in _lines(qrels):
        query, document, grade = line.split("\t")
        if float(grade) > 0:
            grades.setdefault(query, {})[document] = float(grade)
    documents = [(str(row["pid"]), row.get("title") or None, str(row["text"])) for row in _rows(corpus)]
    asked = [(str(row["qid"]), str(row["query"])) for row in _rows(queries)]
    return _made(name, "judged", documents, asked, grades, limit, seed)


def _pairs(name: str, path: Path, limit: int, seed: int) -> Collection:
    documents: dict[tuple[str | None, str], str] = {}
    asked: dict[str, str] = {}
    grades: dict[str, dict[str, float]] = {}
    for row in _rows(path):
        key = (row.get("title") or None, str(row["passage"]))
        document = documents.setdefault(key, f"p{len(documents)}")
        query = asked.setdefault(str(row["query"]), f"q{len(asked)}")
        if float(row["relevance"]) >= 1:
            grades.setdefault(query, {})[document] = 1.0
    return _made(
        name,
        "pairs",
        [(number, title, text) for (title, text), number in documents.items()],
        [(number, text) for text, number in asked.items()],
        grades,
        limit,
        seed,
    )


def _made(
    name: str,
    kind: str,
    documents: list[tuple[str, str | None, str]],
    asked: list[tuple[str, str]],
    grades: dict[str, dict[str, float]],
    limit: int,
    seed: int,
) -> Collection:
    known = {document for document, _, _ in documents}
    unknown = {document for judged in grades.values() for document in judged} - known
    if unknown:
        raise ValueError(
            f"{name}: {len(unknown)} judged documents are not in the corpus, e.g. {min(unknown)}"
        )
    answered = [item for item in asked if grades.get(item[0])]
    drawn = answered
    if limit and limit < len(answered):
        drawn = sorted(random.Random(seed).sample(answered, limit), key=answered.index)
    digest = hashlib.sha256(json.dumps([documents, drawn, grades], sort_keys=True).encode()).hexdigest()
    return Collection(name, kind, documents, drawn, grades, len(asked) - len(answered), len(answered), digest)


def _first(places: Sequence[Path], names: Sequence[str]) -> Path:
    for place in places:
        for name in names:
            for path in (place / name, place / f"{name}.gz"):
                if path.is_file():
                    return path
    raise ValueError(f"there is no {names[0]} in {', '.join(map(str, places))}; --corpora names more folders")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_lines(path), start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: not JSON") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}:{number}: no object")
        yield row


def _lines(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        yield from (line.rstrip("\n") for line in stream if line.strip())

"""Retrieval collections from a folder: documents, queries, and what is relevant to which.

``DIR/retrieval/`` holds collections and pair files, gzipped or not:

* ``NAME.corpus.jsonl`` with ``{pid, text, title?}``, ``NAME.queries.jsonl`` with ``{qid, query}`` and
  ``NAME.qrels.tsv`` with query, document and grade. The corpus of ``NAME_PART`` may be called ``NAME``, and
  may lie in another folder of the same kind.
* ``NAME.jsonl`` with ``{query, passage, relevance, title?}``: the collection is all passages of the file, and
  a passage is relevant from grade 1. Nobody judged the passages of other queries, so such a set compares
  systems, but says little about one of them alone.

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

from benchmarks.datasets import read_rows

__all__ = ["Collection", "load_collections"]


@dataclass(frozen=True, slots=True)
class Collection:
    """One test collection.

    Attributes:
        documents: (id, title, text) of every document; empty ones included.
        queries: (id, text) of those that take part.
        grades: query id -> document id -> grade, above 0.
        total: queries with something relevant, before sampling.
        digest: of the contents.
    """

    name: str
    documents: list[tuple[str, str | None, str]]
    queries: list[tuple[str, str]]
    grades: Mapping[str, Mapping[str, float]]
    total: int
    digest: str


def load_collections(
    folders: Sequence[Path], *, only: Sequence[str], limit: int, seed: int
) -> list[Collection]:
    """The collections whose queries lie in the first folder.

    Args:
        folders: the data, then further folders in which a corpus may lie.
        only: their names; all by default.
        limit: most queries of each, drawn with ``seed``; 0 for all.

    Raises:
        ValueError: there is no collection of a name in ``only``, a corpus is missing, or a row is malformed.
    """
    places = [folder / "retrieval" for folder in folders]
    found: dict[str, Collection] = {}
    for path in sorted(places[0].glob("*.jsonl*")):
        name = path.name.split(".jsonl")[0]
        base = name.removesuffix(".queries")
        if (only and base not in only) or "." in base:
            continue
        read = _judged(base, places) if name != base else _pairs(path)
        found[base] = _made(base, *read, limit, seed)
    missing = [name for name in only if name not in found]
    if missing or not found:
        raise ValueError(f"{places[0]} has no collection {', '.join(missing) or 'at all'}")
    return list(found.values())


Read = tuple[list[tuple[str, str | None, str]], list[tuple[str, str]], dict[str, dict[str, float]]]


def _judged(name: str, places: Sequence[Path]) -> Read:
    corpus = _first(places, [f"{name}.corpus.jsonl", f"{name.rpartition('_')[0]}.corpus.jsonl"])
    queries = _first(places[:1], [f"{name}.queries.jsonl"])
    grades: dict[str, dict[str, float]] = {}
    for line in _lines(_first(places[:1], [f"{name}.qrels.tsv"])):
        query, document, grade = line.split("\t")
        if float(grade) > 0:
            grades.setdefault(query, {})[document] = float(grade)
    documents = [(str(r["pid"]), r.get("title") or None, str(r["text"])) for _, r in read_rows(corpus)]
    return documents, [(str(row["qid"]), str(row["query"])) for _, row in read_rows(queries)], grades


def _pairs(path: Path) -> Read:
    documents: dict[tuple[str | None, str], str] = {}
    asked: dict[str, str] = {}
    grades: dict[str, dict[str, float]] = {}
    for _, row in read_rows(path):
        key = (row.get("title") or None, str(row["passage"]))
        document = documents.setdefault(key, f"p{len(documents)}")
        query = asked.setdefault(str(row["query"]), f"q{len(asked)}")
        if float(row["relevance"]) >= 1:
            grades.setdefault(query, {})[document] = 1.0
    texts = [(number, title, text) for (title, text), number in documents.items()]
    return texts, [(number, text) for text, number in asked.items()], grades


def _made(
    name: str,
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
    return Collection(name, documents, drawn, grades, len(answered), digest)


def _first(places: Sequence[Path], names: Sequence[str]) -> Path:
    for place in places:
        for name in names:
            for path in (place / name, place / f"{name}.gz"):
                if path.is_file():
                    return path
    raise ValueError(f"there is no {names[0]} in {', '.join(map(str, places))}; --corpora names more folders")


def _lines(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        yield from (line.rstrip("\n") for line in stream if line.strip())

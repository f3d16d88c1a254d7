"""Everything that the order of one candidate list may be made of, computed once and kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from training.rerank.first_stage import BM25, Embedder, top
from training.rerank.judged import Collection, stable_share
from training.rerank.pool import Group
from training.rerank.scoring import Scorer

from surefoot.evidence.lexicon import load_lexicon
from surefoot.inference.text import TextEncoder
from surefoot.models.manifest import bundled
from surefoot.rerank.fusion import lexical_shares

__all__ = ["Lists", "collection_lists", "group_lists", "with_logits"]

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class Lists:
    """The candidates of one query.

    Attributes:
        source: collection or training source.
        query: text.
        passages: texts of the candidates.
        rows: their numbers in the corpus.
        gains: of every relevant passage, by number, also of those that no retriever found.
        bm25, cosine, lexical, logit: signals, one number per candidate; ``logit`` is empty until scored.
        retrieved: for each first stage, positions among the candidates in its order.
    """

    source: str
    query: str
    passages: list[str]
    rows: list[int]
    gains: dict[int, float]
    bm25: Floats
    cosine: Floats
    lexical: Floats
    logit: Floats
    retrieved: dict[str, list[int]]


@cache
def _encoder() -> TextEncoder:
    return TextEncoder(bundled("static").tokenizer_path)


def _shares(query: str, passages: Sequence[str]) -> Floats:
    texts = [text.lower() for text in (query, *passages)]
    ids = [np.asarray(made.ids, np.int64) for made in _encoder().encode(texts)]
    return lexical_shares(ids[0], ids[1:], load_lexicon().idf)


def collection_lists(collection: Collection, embedder: Embedder, *, depth: int) -> list[Lists]:
    """BM25's and the embedder's first ``depth`` for every query."""
    index = BM25(collection.passages)
    vectors = embedder.encode(collection.passages)
    made = []
    for at, vector in enumerate(embedder.encode(collection.queries)):
        query = collection.queries[at]
        words, cosine = index.scores(query), vectors @ vector
        firsts = {"bm25": top(words, depth).tolist(), "embedder": top(cosine, depth).tolist()}
        rows = list(dict.fromkeys([*firsts["bm25"], *firsts["embedder"]]))
        place = {row: position for position, row in enumerate(rows)}
        passages = [collection.passages[row] for row in rows]
        made.append(
            Lists(
                collection.name,
                query,
                passages,
                rows,
                collection.relevant[at],
                words[rows].astype(np.float64),
                cosine[rows].astype(np.float64),
                _shares(query, passages),
                np.zeros(0),
                {name: [place[row] for row in found] for name, found in firsts.items()},
            )
        )
    return made


def group_lists(groups: Sequence[Group], per_source: int) -> list[Lists]:
    """Held-out groups as lists, at most ``per_source`` of each source, always the same ones."""
    made: list[Lists] = []
    taken: dict[str, int] = {}
    for group in sorted(groups, key=lambda g: stable_share(g.query)):
        if not group.held or taken.get(group.source, 0) >= per_source:
            continue
        taken[group.source] = taken.get(group.source, 0) + 1
        cosine = np.asarray(group.cosine, np.float64)
        words = np.asarray(group.lexical, np.float64)
        passages = list(group.passages)
        made.append(
            Lists(
                group.source, group.query, passages, list(range(len(passages))), {0: 1.0}, words, cosine,
                _shares(group.query, passages), np.zeros(0),
                {"bm25": top(words.astype(np.float32), len(words)).tolist(),
                 "embedder": top(cosine.astype(np.float32), len(words)).tolist()},
            )
        )  # fmt: skip
    return made


def with_logits(
    lists: Sequence[Lists], scorer: Scorer, cache: Path | None, key: str, say: Callable[[str], None]
) -> None:
    """Fill in the logits, query by query; what ``cache`` holds for this key is not computed again."""
    for number, item in enumerate(lists):
        digest = hashlib.sha256("\0".join([key, item.query, *item.passages]).encode("utf-8", "surrogatepass"))
        path = None if cache is None else cache / f"{digest.hexdigest()[:24]}.npy"
        if path is not None and path.is_file():
            item.logit = np.load(path, allow_pickle=False).astype(np.float64)
            continue
        item.logit = scorer.logits([(item.query, passage) for passage in item.passages]).astype(np.float64)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, item.logit)
        if number % 10 == 9:
            say(f"{item.source}: {number + 1}/{len(lists)}")

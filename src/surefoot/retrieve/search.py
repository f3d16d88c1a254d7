"""One search: the two lists, their fusion, and the records that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from surefoot.errors import ConfigurationError
from surefoot.retrieve.corpus import Corpus, Filter
from surefoot.retrieve.dense import DenseStore
from surefoot.retrieve.fusion import reciprocal_rank, weighted_scores
from surefoot.retrieve.lexical import LexicalStore
from surefoot.retrieve.records import Hit, Place

__all__ = ["Fusion", "List", "Mode", "Parts", "check_options", "fused", "hits", "lists"]

Fusion = Literal["rrf", "weighted"]
Mode = Literal["fusion", "dense", "bm25"]
List = list[tuple[int, float]]
"""(row, score), best first."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What an index consists of; rows mean the same in all of them."""

    corpus: Corpus
    dense: DenseStore
    lexical: LexicalStore


def lists(
    parts: Parts,
    query: str,
    vector: npt.NDArray[np.float32] | None,
    wanted: Filter | None,
    *,
    mode: Mode,
    depth: int,
) -> tuple[List, List]:
    """The passages near a query, and those that share words with it; a list not asked for is empty."""
    allowed = parts.corpus.allowed(wanted)
    near = [] if vector is None else parts.dense.search(vector, depth, allowed)
    match = [] if mode == "dense" else parts.lexical.search(query, depth, allowed, parts.corpus.alive)
    return near, match


def fused(near: List, match: List, fusion: Fusion, dense_weight: float) -> List:
    """One list of both; what only a list of weight 0 has is left out."""
    weights = [dense_weight, 1 - dense_weight]
    if fusion == "rrf":
        order = reciprocal_rank([[row for row, _ in near], [row for row, _ in match]], weights=weights)
    else:
        order = weighted_scores([near, match], minima=[-1.0, 0.0], weights=weights)
    return [(row, score) for row, score in order if score > 0]


def hits(parts: Parts, order: Sequence[tuple[int, float]], near: List, match: List) -> list[Hit]:
    """Records of rows, with their places in both lists."""
    dense, bm25 = (
        {row: Place(rank, score) for rank, (row, score) in enumerate(found, start=1)}
        for found in (near, match)
    )
    records = []
    for rank, (row, score) in enumerate(order, start=1):
        info, span = parts.corpus.info(row), parts.corpus.span(row)
        records.append(
            Hit(
                id=f"{info.id}@{span.start}-{span.end}",
                source_id=info.id,
                start=span.start,
                end=span.end,
                text=parts.corpus.passage(row),
                title=info.title,
                metadata=info.metadata,
                rank=rank,
                score=score,
                dense=dense.get(row),
                bm25=bm25.get(row),
            )
        )
    return records


def check_options(k: int, mode: str, fusion: str, dense_weight: float, depth: int) -> None:
    """Refuse what cannot work.

    Raises:
        ConfigurationError: an option is out of range.
    """
    for name, value in (("k", k), ("depth", depth)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigurationError(f"{name} must be 1 or more, not {value!r}")
    if mode not in ("fusion", "dense", "bm25"):
        raise ConfigurationError(f"mode must be 'fusion', 'dense' or 'bm25', not {mode!r}")
    if fusion not in ("rrf", "weighted"):
        raise ConfigurationError(f"fusion must be 'rrf' or 'weighted', not {fusion!r}")
    if not 0 <= dense_weight <= 1:
        raise ConfigurationError(f"dense_weight must be 0 to 1, not {dense_weight}")

"""Order retrieved passages by what a cross-encoder sees in (query, passage)."""

from __future__ import annotations

from surefoot.rerank.records import (
    Explanation,
    RankedSource,
    Ranking,
    RankingReason,
    SentenceEffect,
)
from surefoot.rerank.reranker import Reranker

__all__ = [
    "Explanation",
    "RankedSource",
    "Ranking",
    "RankingReason",
    "Reranker",
    "SentenceEffect",
]

"""Order retrieved passages by relevance to a query, with a cross-encoder."""

from __future__ import annotations

from surefoot.rerank.records import Explanation, RankedSource, Ranking, RankingReason, SentenceEffect
from surefoot.rerank.reranker import Reranker

__all__ = ["Explanation", "RankedSource", "Ranking", "RankingReason", "Reranker", "SentenceEffect"]

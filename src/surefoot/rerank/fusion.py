"""What the order of a reranker is made of when its logit is joined with cheaper signals.

A small cross-encoder knows less about the topic of a text than the bi-encoder it started from, and neither
weighs rare words as BM25 does (Robertson & Zaragoza 2009). So a weighted sum is taken, with weights fitted on
training collections.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["lexical_shares", "logit_share"]

_K1 = 1.5
_B = 0.75
_MEAN_LENGTH = 110.0
"""Tokens of a passage of mean length. It is a constant, so that a score does not depend on the other passages
of the list: about the mean over the training sources, whose passages have 36 to 185 tokens on average.
"""


def lexical_shares(
    query: npt.NDArray[np.int64], passages: Sequence[npt.NDArray[np.int64]], idf: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """BM25 of passages, as a share of what a passage full of the query's tokens would get.

    No corpus is needed: ``idf`` is a fixed table and the mean length a constant, so that each passage's share
    is its own.

    Args:
        query: token ids of the query in order, without special tokens.
        passages: token ids of each passage, likewise.
        idf: weight of every token of the vocabulary, ``1 + ln((n + 1) / (df + 1))``; the 1 is taken off, so
            that words which occur everywhere count nothing.

    Returns:
        One number in [0, 1) per passage; 0 where the query has no token of any weight.
    """
    tokens = np.unique(query)
    weights = np.maximum(idf[tokens] - 1.0, 0.0)
    total = float(weights.sum())
    shares = np.zeros(len(passages), np.float64)
    if total <= 0:
        return shares
    for row, ids in enumerate(passages):
        wanted = ids[np.isin(ids, tokens)]
        if not len(wanted):
            continue
        found, counts = np.unique(wanted, return_counts=True)
        saturated = counts / (counts + _K1 * (1 - _B + _B * len(ids) / _MEAN_LENGTH))
        shares[row] = float((weights[np.searchsorted(tokens, found)] * saturated).sum()) / total
    return shares


def logit_share(query: str, long_query: float) -> float:
    """How much of its weight the logit keeps beside this query, above 0 to 1.

    The network reads query and passage in one window, so that a long query leaves the passage little room,
    and it has learnt mostly from short ones. Beyond ``long_query`` words its weight falls with the square of
    the length.

    Args:
        query: text; words are what stands between spaces.
        long_query: words up to which the logit keeps all of it; 0 is no limit.
    """
    words = len(query.split())
    return min(1.0, (long_query / words) ** 2) if long_query and words else 1.0

"""The logit combined with cheaper signals, for models whose manifest gives the weights.

A small cross-encoder knows less about the topic of a text than the bi-encoder that it was trained from, and
neither weighs rare words as BM25 does (Robertson & Zaragoza 2009). The weights of the sum were fitted on
training collections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from surefoot.inference.text import TextEncoder
from surefoot.models.manifest import bundled
from surefoot.models.records import Fusion

__all__ = ["fused_scores", "lexical_shares", "logit_share"]

_K1 = 1.5
_B = 0.75
_MEAN_LENGTH = 110.0
"""Mean tokens per passage: a constant, so that no score depends on the other passages. In the training
collections passages have 36 to 185 tokens on average."""


def fused_scores(fusion: Fusion, query: str, logits: Mapping[str, float]) -> dict[str, float]:
    """The score that decides the order, for each text that has a logit. No score depends on another text.

    Raises:
        ModelError: a bundled model that the signals need is missing or damaged.
    """
    scored = list(logits)
    weight = fusion.logit * logit_share(query, fusion.long_query)
    totals = np.array([weight * logits[text] for text in scored], dtype=np.float64)
    if fusion.lexical and scored:
        from surefoot.evidence.lexicon import load_lexicon

        ids = [
            np.asarray(encoding.ids, dtype=np.int64)
            for encoding in _tokenizer().encode([text.lower() for text in (query, *scored)])
        ]
        totals += fusion.lexical * lexical_shares(ids[0], ids[1:], load_lexicon().idf)
    if fusion.cosine and scored:
        from surefoot.inference.embedding import Embedder  # heavy, and rarely needed

        vectors = Embedder().embed([query, *scored]).astype(np.float64)
        # Row by row: a matrix product may round a row differently in a batch of another size.
        totals += fusion.cosine * (vectors[1:] * vectors[0]).sum(axis=1)
    return {text: float(total) for text, total in zip(scored, totals, strict=True)}


@cache
def _tokenizer() -> TextEncoder:
    return TextEncoder(bundled("static").tokenizer_path)


def lexical_shares(
    query: npt.NDArray[np.int64], passages: Sequence[npt.NDArray[np.int64]], idf: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """BM25 of each passage as a share, 0 to below 1, of what a passage full of the query's tokens would get.

    Args:
        query: token ids of the query, without special tokens.
        passages: token ids of each passage, likewise.
        idf: weight of every token of the vocabulary, ``1 + ln((n + 1) / (df + 1))``. The 1 is subtracted, so
            that tokens that occur everywhere count nothing.

    Returns:
        One number per passage; 0 if no token of the query has any weight.
    """
    tokens = np.unique(query)
    weights = np.maximum(idf[tokens] - 1.0, 0.0)
    total = float(weights.sum())
    shares = np.zeros(len(passages), np.float64)
    if total <= 0:
        return shares
    for row, ids in enumerate(passages):
        found, counts = np.unique(ids[np.isin(ids, tokens)], return_counts=True)
        saturated = counts / (counts + _K1 * (1 - _B + _B * len(ids) / _MEAN_LENGTH))
        shares[row] = float((weights[np.searchsorted(tokens, found)] * saturated).sum()) / total
    return shares


def logit_share(query: str, long_query: float) -> float:
    """The share of its weight, above 0 to 1, that the logit keeps for a query of this length.

    The model reads query and passage in one window and was trained mostly on short queries; a long one leaves
    the passage little room. Beyond ``long_query`` words (0 is no limit) the weight falls with the square of
    the length.
    """
    words = len(query.split())
    return min(1.0, (long_query / words) ** 2) if long_query and words else 1.0

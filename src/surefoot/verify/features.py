"""What is known of a claim beside its evidence without asking a model: words that the sources lack.

A lexical share ranks hallucinations well and misses swaps and negations; an NLI model is the other way round.
These features are joined with the model's probability in :class:`surefoot.models.monotone.Monotone`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

import numpy as np

from surefoot.evidence.index import Ranked
from surefoot.evidence.lexicon import Lexicon, Tokens

__all__ = ["features_of", "source_words"]

_WORD: Final = re.compile(r"\w+")
_ENOUGH_WORDS: Final = 5_000
"""Sources of more words are all long; counting further would cost time and change nothing."""


def features_of(
    claim: Tokens, ranked: Sequence[Ranked], lexicon: Lexicon, *, source_words: float
) -> dict[str, float]:
    """The features of a claim by name.

    ``aligned``: mean over the claim's tokens, weighted by idf, of the best cosine of their static vector with
    a token of the ranked sentences. ``unseen_near``: share of the claim's idf weight that none of them holds.
    ``overlap``: share that the best one holds. All are 0 to 1; ``source_words`` is passed on.

    Args:
        claim: its tokens.
        ranked: the best sentences, best first; at least one.
        lexicon: word weights and vectors.
        source_words: see :func:`source_words`.
    """
    weights = lexicon.idf[claim.ids]
    total = float(weights.sum()) or 1.0
    near = np.unique(np.concatenate([item.sentence.tokens.ids for item in ranked]))
    best = lexicon.best_cosines(claim.ids, near)
    return {
        "aligned": float(best @ weights) / total,
        "unseen_near": 1.0 - float(weights[np.isin(claim.ids, near)].sum()) / total,
        "overlap": ranked[0].overlap,
        "source_words": source_words,
    }


def source_words(texts: Sequence[str]) -> float:
    """ln(1 + words in all texts), counted up to a few thousand."""
    count = 0
    for text in texts:
        count += sum(1 for _ in islice(_WORD.finditer(text), _ENOUGH_WORDS - count))
        if count >= _ENOUGH_WORDS:
            break
    return math.log(1 + count)

"""The logit joined with cheaper signals, for models whose manifest says with which, and how much of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from surefoot.models.manifest import bundled
from surefoot.models.records import Fusion
from surefoot.rerank.fusion import lexical_shares
from surefoot.runtime import TextEncoder

__all__ = ["fused_scores"]


def fused_scores(
    fusion: Fusion, query: str, texts: Sequence[str], logits: Mapping[str, float]
) -> dict[str, float]:
    """The score that the order follows, for each text that has a logit.

    Args:
        fusion: weights.
        query: as scored.
        texts: all texts of the list, those without a logit included: the lexical share of one depends on
            the mean length of all, and must not depend on how many were scored in time.
        logits: by text.

    Raises:
        ModelError: a bundled model that the signals need is missing or damaged.
    """
    scored = [text for text in texts if text in logits]
    totals = np.array([fusion.logit * logits[text] for text in scored], dtype=np.float64)
    if fusion.lexical and scored:
        from surefoot.lexicon import load_lexicon

        ids = [
            np.asarray(encoding.ids, dtype=np.int64)
            for encoding in _tokenizer().encode([text.lower() for text in (query, *texts)])
        ]
        shares = lexical_shares(ids[0], ids[1:], load_lexicon().idf)
        by_text = dict(zip(texts, shares, strict=True))
        totals += fusion.lexical * np.array([by_text[text] for text in scored])
    if fusion.cosine and scored:
        from surefoot.embed import Embedder  # heavy, and rarely needed

        vectors = Embedder().embed([query, *scored]).astype(np.float64)
        totals += fusion.cosine * (vectors[1:] @ vectors[0])
    return {text: float(total) for text, total in zip(scored, totals, strict=True)}


@cache
def _tokenizer() -> TextEncoder:
    return TextEncoder(bundled("static").tokenizer_path)

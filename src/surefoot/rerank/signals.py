"""The logit joined with cheaper signals, for models whose manifest says with which, and how much of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from surefoot.inference.text import TextEncoder
from surefoot.models.manifest import bundled
from surefoot.models.records import Fusion
from surefoot.rerank.fusion import lexical_shares, logit_share

__all__ = ["fused_scores"]


def fused_scores(fusion: Fusion, query: str, logits: Mapping[str, float]) -> dict[str, float]:
    """The score that the order follows, for each text that has a logit; no text's depends on another's.

    Args:
        fusion: weights.
        query: as scored.
        logits: by text.

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
        # Row by row: a product of matrices may round a row differently in other company.
        totals += fusion.cosine * (vectors[1:] * vectors[0]).sum(axis=1)
    return {text: float(total) for text, total in zip(scored, totals, strict=True)}


@cache
def _tokenizer() -> TextEncoder:
    return TextEncoder(bundled("static").tokenizer_path)

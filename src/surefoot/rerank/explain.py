"""Which sentences make a passage relevant: each is left out once and scored alone once.

Leaving a sentence out (occlusion, Zeiler & Fergus 2014) shows what it adds in its place; the contributions do
not sum to the score. Two sentences that say the same contribute little each, because the other one remains.
The score of a sentence alone tells them apart from sentences that do not matter.
"""

from __future__ import annotations

from surefoot.inference.pairs import Progress
from surefoot.inference.relevance import RelevanceModel
from surefoot.rerank.records import SentenceEffect
from surefoot.schema import Span
from surefoot.segment import sentence_spans

__all__ = ["sentence_effects"]


def sentence_effects(
    model: RelevanceModel,
    query: str,
    text: str,
    window: Span,
    score: float,
    *,
    room: int,
    progress: Progress | None = None,
) -> tuple[SentenceEffect, ...]:
    """The effect of each sentence of a window, in order. Costs two pairs per sentence.

    Args:
        model: the model that scored the window.
        query: as scored.
        text: the whole passage; positions in the result refer to it.
        window: position of the window in ``text``.
        score: logit of (query, window).
        room: tokens that a text may have beside the query. A text that is empty, or that no longer fits
            once it is cut differently, has no score.
        progress: called with (pairs done, pairs to do).
    """
    shown = window.of(text)
    spans = sentence_spans(shown)
    texts = [shown[:start] + shown[end:] for start, end in spans] + [shown[start:end] for start, end in spans]
    fits = [0 < count <= room for count in model.pairs.encoder.count(texts)]
    wanted = [(query, part) for part, fitting in zip(texts, fits, strict=True) if fitting]
    scored = iter(model.score(wanted, progress=progress))
    scores = [next(scored) if fitting else None for fitting in fits]
    return tuple(
        SentenceEffect(
            text=shown[start:end],
            start=window.start + start,
            end=window.start + end,
            contribution=None if rest is None else score - rest,
            alone=alone,
        )
        for (start, end), rest, alone in zip(spans, scores, scores[len(spans) :], strict=False)
    )

"""Which sentences of a passage make it relevant: each one is left out, and each one is read alone.

Leaving out shows what a sentence adds in its place (occlusion: Zeiler and Fergus 2014); contributions do not
sum to the score. Two sentences that say the same contribute little each, since the other one remains; the
score of a sentence alone tells them apart from sentences that do not matter.
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
    """The effect of each sentence of a window.

    Args:
        model: what scored the window.
        query: as scored.
        text: the whole passage.
        window: position of the window in ``text``.
        score: logit of (query, window).
        room: tokens that a text may have beside the query.
        progress: called with (pairs done, pairs to do).

    Returns:
        In the order of the text; positions are those in ``text``. Costs two pairs a sentence. A figure is
        ``None`` where its text is empty, or would not fit beside the query once it is cut anew.
    """
    shown = window.of(text)
    spans = sentence_spans(shown)
    without = [shown[:start] + shown[end:] for start, end in spans]
    alone = [shown[start:end] for start, end in spans]
    texts = [*without, *alone]
    fits = [0 < count <= room for count in model.pairs.encoder.count(texts)]
    wanted = [(query, part) for part, fitting in zip(texts, fits, strict=True) if fitting]
    scored = iter(model.score(wanted, progress=progress))
    scores = [next(scored) if fitting else None for fitting in fits]
    effects = []
    for index, (start, end) in enumerate(spans):
        rest = scores[index]
        effects.append(
            SentenceEffect(
                text=alone[index],
                start=window.start + start,
                end=window.start + end,
                contribution=None if rest is None else score - rest,
                alone=scores[len(spans) + index],
            )
        )
    return tuple(effects)

"""From scores to an order: by score, then what was not scored, then what is empty."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from surefoot.models.records import Calibration
from surefoot.rerank.passages import Passage
from surefoot.rerank.records import RankedSource
from surefoot.rerank.scoring import Best

__all__ = ["distinct_texts", "order"]


def distinct_texts(passages: Sequence[Passage]) -> dict[str, int]:
    """Each text that is not blank, with the index of the passage where it occurs first; in that order."""
    firsts: dict[str, int] = {}
    for index, passage in enumerate(passages):
        if passage.text and not passage.text.isspace():
            firsts.setdefault(passage.text, index)
    return firsts


def order(
    passages: Sequence[Passage],
    firsts: Mapping[str, int],
    scored: Mapping[str, Best],
    unread: Collection[str],
    *,
    calibration: Calibration,
    threshold: float | None,
    fused: Mapping[str, float] | None = None,
) -> list[RankedSource]:
    """All passages that reach the threshold, in their final order.

    Args:
        passages: in the order of the first stage.
        firsts: of :func:`distinct_texts`.
        scored: the best window of each text that has a score.
        unread: texts that were not scored though they have something to score; they pass any threshold.
        calibration: from score to relevance. It is increasing, but rounds: the order is that of the scores.
        threshold: least relevance, or ``None``.
        fused: the score of each text that has a logit, where it is not the logit itself.
    """
    keyed: list[tuple[tuple[int, float, int], float | None]] = []
    for index, passage in enumerate(passages):
        best = scored.get(passage.text)
        if best is not None:
            score = best.score if fused is None else fused[passage.text]
            relevance = calibration.support(score)
            if threshold is None or relevance >= threshold:
                keyed.append(((0, -score, index), relevance))
        elif passage.text in unread:
            keyed.append(((1, 0.0, index), None))
        elif threshold is None:
            keyed.append(((2, 0.0, index), None))
    keyed.sort(key=lambda entry: entry[0])
    ranked = []
    for rank, ((_, _, index), value) in enumerate(keyed, 1):
        passage = passages[index]
        best = scored.get(passage.text)
        first = firsts.get(passage.text, index)
        ranked.append(
            RankedSource(
                item=passage.item,
                text=passage.text,
                index=index,
                first_stage_rank=index + 1,
                rank=rank,
                reranker_score=None if best is None else best.score,
                relevance=value,
                fused_score=None if best is None or fused is None else fused[passage.text],
                window=None if best is None else best.window,
                windows=0 if best is None else best.windows,
                first_stage_score=passage.score,
                duplicate_of=None if first == index else first,
            )
        )
    return ranked

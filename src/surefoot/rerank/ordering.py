"""From scores to an order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from surefoot.models.records import Calibration
from surefoot.rerank.passages import Passage
from surefoot.rerank.records import RankedSource
from surefoot.rerank.scoring import Best

__all__ = ["distinct_texts", "order"]


def distinct_texts(passages: Sequence[Passage]) -> dict[str, int]:
    """Each text that is not blank, with the index of the first passage that has it, in that order."""
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
    """The passages that reach the threshold: by score, then those not scored, then the empty ones.

    Args:
        passages: in the order of the first stage, which decides ties.
        firsts: from :func:`distinct_texts`.
        scored: the best window of each text that has a score.
        unread: texts that were not scored although they have tokens; they pass any threshold.
        calibration: from score to relevance. It is increasing but rounds, so the order follows the scores.
        threshold: least relevance, or ``None``. Empty passages reach none.
        fused: the score of each text that has a logit, if it is not the logit itself.
    """
    found: list[tuple[tuple[int, float], RankedSource]] = []
    for index, passage in enumerate(passages):
        text = passage.text
        best, first = scored.get(text), firsts.get(text, index)
        ranked = RankedSource(
            item=passage.item,
            text=text,
            index=index,
            first_stage_rank=index + 1,
            rank=0,
            first_stage_score=passage.score,
            duplicate_of=None if first == index else first,
        )
        if best is not None:
            score = best.score if fused is None else fused[text]
            relevance = calibration.support(score)
            if threshold is None or relevance >= threshold:
                ranked = replace(
                    ranked,
                    reranker_score=best.score,
                    relevance=relevance,
                    fused_score=None if fused is None else score,
                    window=best.window,
                    windows=best.windows,
                )
                found.append(((0, -score), ranked))
        elif text in unread:
            found.append(((1, 0.0), ranked))
        elif threshold is None:
            found.append(((2, 0.0), ranked))
    found.sort(key=lambda entry: entry[0])
    return [replace(ranked, rank=rank) for rank, (_, ranked) in enumerate(found, 1)]

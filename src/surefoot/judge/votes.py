"""From several votes to one score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from surefoot.judge.records import Vote, risk_of
from surefoot.schema import Reason, RiskLevel

__all__ = ["Tally", "tally"]


@dataclass(frozen=True, slots=True)
class Tally:
    """What the votes come to.

    Attributes:
        score: median of the valid votes; ``None`` unless they are more than half of all.
        reasons: of a missing score; ``votes_missing``, ``votes_differ`` and oddities beside one.
        agreement: share of the valid votes with the risk level of the score; ``None`` below two.
        detail: what went wrong first.
    """

    score: float | None
    reasons: tuple[Reason, ...]
    agreement: float | None
    detail: str | None


def tally(votes: Sequence[Vote]) -> Tally:
    """Sum up votes: the median, which one outlier cannot move far, of at least a majority."""
    valid = [vote.score for vote in votes if vote.score is not None]
    reasons = tuple(dict.fromkeys(reason for vote in votes for reason in vote.reasons))
    detail = next((vote.detail for vote in votes if vote.detail), None)
    if 2 * len(valid) <= len(votes):
        return Tally(None, reasons, None, detail)
    score = float(median(valid))
    levels = [risk_of(value) for value in valid]
    if len(valid) < len(votes):
        reasons = (*reasons, Reason.VOTES_MISSING)
    if RiskLevel.LOW in levels and RiskLevel.HIGH in levels:
        reasons = (*reasons, Reason.VOTES_DIFFER)
    agreement = levels.count(risk_of(score)) / len(levels) if len(levels) > 1 else None
    return Tally(score, reasons, agreement, detail)

"""What a cascade hands back: the report, and what the judge was asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from surefoot.endpoints.records import Usage
from surefoot.judge.records import ClaimJudgement, plain
from surefoot.schema import Reason, TruthfulnessReport, Verdict

__all__ = ["CascadeReport", "Decision"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one claim in the review band.

    Attributes:
        claim: its index in ``report.claims``.
        local_verdict, local_support: of the local model.
        judgement: of the judge; ``None`` where it was not asked, because a limit came first.
        settled: the judge's verdict replaced the local one.
        differs: judge and local model lean to different sides: support of 0.5 or more, and less.
        reasons: why it is not settled; ``judge_differs``.
    """

    claim: int
    local_verdict: Verdict
    local_support: float | None
    judgement: ClaimJudgement | None
    settled: bool
    differs: bool
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class CascadeReport:
    """The result of a cascade.

    Attributes:
        report: with the verdicts of the judge where it settled a claim, and figures to match. The support of
            such a claim is one minus the judge's score; it is not calibrated.
        local: the report of the local model alone.
        decisions: one for each claim in the review band, in the order of asking: the most uncertain first.
        usage: of the judge.
        model: of the judge.
        prompt_version: of the judge's prompt.
        degraded: a claim in the band has no verdict of the judge, or a step of the local check failed.
        reasons: why it is degraded.
        seconds: time that both took.
        detail: what went wrong first, for people.
    """

    report: TruthfulnessReport
    local: TruthfulnessReport
    decisions: tuple[Decision, ...]
    usage: Usage
    model: str
    prompt_version: str
    degraded: bool
    reasons: tuple[Reason, ...]
    seconds: float
    detail: str | None = None

    @property
    def asked(self) -> tuple[int, ...]:
        """Indices of the claims that were sent to the judge, in that order."""
        return tuple(item.claim for item in self.decisions if item.judgement is not None)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dicts, lists, strings and numbers; ``local`` is left out."""
        return {
            "report": self.report.to_dict(),
            "decisions": plain(self.decisions),
            "usage": plain(self.usage),
            "model": self.model,
            "prompt_version": self.prompt_version,
            "degraded": self.degraded,
            "reasons": plain(self.reasons),
            "seconds": self.seconds,
            "detail": self.detail,
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """The result as ASCII-only JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

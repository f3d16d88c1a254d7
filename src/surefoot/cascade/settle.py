"""From the judge's score to a verdict, and from verdicts to the figures of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from surefoot.cascade.records import Decision
from surefoot.endpoints.records import Usage
from surefoot.judge.records import ClaimJudgement, risk_of
from surefoot.schema import Claim, Reason, RiskLevel, TruthfulnessReport, Verdict
from surefoot.verify.summary import summarise

__all__ = ["Judged", "decided", "endpoint_failure", "failures", "summed_up"]

_CITATION_REASONS: Final = frozenset(
    {Reason.UNRESOLVED_CITATION, Reason.CITATION_NOT_SUPPORTING, Reason.CITATION_MISSING}
)
_RECOMPUTED: Final = frozenset(
    {
        Reason.CHECKER_FAILED,
        Reason.CITATIONS_NOT_CHECKED,
        Reason.CLAIM_TOO_LONG,
        Reason.DEADLINE,
        Reason.LANGUAGE,
        Reason.TOO_MANY_CLAIMS,
    }
)
"""Reasons of a report that follow from its claims: the judge may have settled the claims that had them."""


@dataclass(slots=True)
class Judged:
    """What the judge said, claim by claim, and what it used."""

    judgements: dict[int, ClaimJudgement] = field(default_factory=dict)
    left_out: dict[int, Reason] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    detail: str | None = None


def endpoint_failure(judgement: ClaimJudgement) -> Reason | None:
    """Why a claim has no score, where that lies with the endpoint and not with the claim."""
    if judgement.score is not None:
        return None
    gone = (Reason.JUDGE_FAILED, Reason.JUDGE_TIMEOUT, Reason.BUDGET_EXHAUSTED)
    return next((reason for reason in judgement.reasons if reason in gone), None)


_FAILURES: Final = frozenset(
    {
        Reason.JUDGE_FAILED,
        Reason.JUDGE_TIMEOUT,
        Reason.JUDGE_REFUSED,
        Reason.JUDGE_REPLY_INVALID,
        Reason.JUDGE_REPLY_AMBIGUOUS,
        Reason.BUDGET_EXHAUSTED,
        Reason.HOSTILE_TEXT,
        Reason.CONTROL_FAILED,
        Reason.CONTROL_SKIPPED,
        Reason.CLAIM_TOO_LONG,
    }
)


def failures(reasons: Sequence[Reason]) -> list[Reason]:
    """The reasons for which the judge has no say."""
    return [reason for reason in reasons if reason in _FAILURES]


def decided(index: int, claim: Claim, judged: Judged) -> tuple[Decision, Claim]:
    """The decision on a claim, and the claim after it."""
    judgement = judged.judgements.get(index)
    local = Decision(index, claim.verdict, claim.support, judgement, settled=False, differs=False)
    if judgement is None:
        reasons: tuple[Reason, ...] = (judged.left_out.get(index, Reason.JUDGE_FAILED),)
        return replace(local, reasons=reasons), replace(claim, reasons=(*claim.reasons, *reasons))
    if judgement.score is None or judgement.flags:
        # A score that hostile text may have made decides nothing, in either direction.
        reasons = tuple(failures(judgement.reasons)) or (Reason.JUDGE_FAILED,)
        return replace(local, reasons=reasons), replace(claim, reasons=_joined(claim.reasons, reasons))
    support = 1.0 - judgement.score
    differs = claim.support is not None and (claim.support >= 0.5) != (support >= 0.5)
    marks = (Reason.JUDGE_DIFFERS,) if differs else ()
    level = risk_of(judgement.score)
    if level is RiskLevel.MEDIUM:
        reasons = (Reason.UNCERTAIN, *marks)
        return (
            replace(local, differs=differs, reasons=reasons),
            replace(claim, reasons=_joined(claim.reasons, reasons)),
        )
    if level is RiskLevel.LOW:
        verdict = Verdict.SUPPORTED
    else:
        against = claim.contradiction is not None and claim.contradiction >= 0.5
        verdict = Verdict.CONTRADICTED if against else Verdict.UNSUPPORTED
    kept = tuple(reason for reason in claim.reasons if reason in _CITATION_REASONS)
    settled = replace(
        claim, verdict=verdict, support=support, reasons=(Reason.JUDGED, *marks, *kept), detail=claim.detail
    )
    return replace(local, settled=True, differs=differs, reasons=marks), settled


def _joined(first: Sequence[Reason], then: Sequence[Reason]) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys((*first, *then)))


def summed_up(local: TruthfulnessReport, claims: tuple[Claim, ...]) -> TruthfulnessReport:
    """The local report with other verdicts, and its figures anew."""
    if claims == local.claims:
        return local
    # Where citations are required, a report without groundedness names the reason.
    optional = local.citation_groundedness is None and Reason.CITATIONS_NOT_CHECKED not in local.reasons
    return summarise(
        local.answer,
        local.question,
        local.sources,
        claims,
        local.citations,
        reasons=[reason for reason in local.reasons if reason not in _RECOMPUTED],
        mode="optional" if optional else "required",
        model=local.model,
        seconds=local.seconds,
    )

"""Reports made by hand, to test renderings apart from the check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from surefoot.schema import (
    Citation,
    CitationStatus,
    Claim,
    ClaimKind,
    Evidence,
    Reason,
    RiskLevel,
    Source,
    TruthfulnessReport,
    Verdict,
)


def evidence(source: Source, text: str, *, entailment: float = 0.9, contradiction: float = 0.02) -> Evidence:
    """Evidence for ``text``, which has to stand in the source."""
    start = source.text.index(text)
    neutral = max(0.0, 1 - entailment - contradiction)
    return Evidence(source.id, start, start + len(text), text, 0.8, entailment, neutral, contradiction)


def claim(answer: str, text: str, verdict: Verdict, *reasons: Reason, **fields: Any) -> Claim:
    """A claim whose text stands in the answer."""
    start = answer.index(text)
    return Claim(text, start, start + len(text), verdict=verdict, reasons=reasons, **fields)


def citation(answer: str, marker: str, status: CitationStatus, **fields: Any) -> Citation:
    """The first ``marker`` of the answer; its key is what the brackets hold."""
    start = answer.index(marker)
    return Citation(marker, start, start + len(marker), marker.strip("[]"), status=status, **fields)


def report(**changes: Any) -> TruthfulnessReport:
    """A report with every verdict, a wrong citation, a refusal and a source that nothing rests on."""
    policy = Source(
        "refund-policy",
        "Refund policy\n\nA customer may return any item within 10 days of delivery. "
        "The refund is paid within 5 working days of the return. Opened software is excluded.",
        "Refund policy, edition of March",
    )
    shipping = Source("shipping.md", "Parcels go out on working days before noon. Delivery takes 3 days.")
    unused = Source("careers", "We are hiring drivers.", "Careers")
    answer = (
        "You can return any item within 15 days of delivery. [1] "
        "The refund is paid within 5 working days. [2] "
        "Returns are free for members. Delivery takes about a week.\n\nIs there anything else?"
    )
    first = citation(
        answer, "[1]", CitationStatus.NOT_SUPPORTING, source_id=policy.id, verification_score=0.03
    )
    second = citation(
        answer,
        "[2]",
        CitationStatus.NOT_SUPPORTING,
        source_id=shipping.id,
        verification_score=0.11,
        proposal=policy.id,
    )
    claims = (
        claim(
            answer,
            "You can return any item within 15 days of delivery. [1]",
            Verdict.CONTRADICTED,
            Reason.NUMBER_MISMATCH,
            support=0.03,
            contradiction=0.94,
            evidence=(
                evidence(
                    policy, "A customer may return any item within 10 days of delivery.", entailment=0.03
                ),
            ),
            citations=(first,),
            citation_recall=False,
            detail="claim: 15 days; evidence: 10 days",
        ),
        claim(
            answer,
            "The refund is paid within 5 working days. [2]",
            Verdict.SUPPORTED,
            Reason.ENTAILED,
            Reason.CITATION_NOT_SUPPORTING,
            support=0.97,
            contradiction=0.01,
            evidence=(evidence(policy, "The refund is paid within 5 working days of the return."),),
            citations=(second,),
            citation_recall=False,
        ),
        claim(
            answer,
            "Returns are free for members.",
            Verdict.UNSUPPORTED,
            Reason.NO_RELEVANT_EVIDENCE,
            Reason.CITATION_MISSING,
            support=0.08,
            contradiction=0.05,
        ),
        claim(
            answer,
            "Delivery takes about a week.",
            Verdict.REVIEW,
            Reason.UNCERTAIN,
            support=0.41,
            contradiction=0.44,
            evidence=(evidence(shipping, "Delivery takes 3 days.", entailment=0.4, contradiction=0.44),),
            proposals=(shipping.id,),
        ),
        claim(
            answer,
            "Is there anything else?",
            Verdict.NOT_CHECKABLE,
            Reason.NOT_A_CLAIM,
            kind=ClaimKind.QUESTION,
        ),
    )
    result = TruthfulnessReport(
        answer=answer,
        question="Can I send it back?",
        sources=(policy, shipping, unused),
        claims=claims,
        citations=(first, second),
        score=0.178,
        nli_faithfulness=0.25,
        citation_groundedness=0.07,
        citation_recall=0.0,
        citation_precision=0.0,
        uncited_claims=2,
        coverage=0.87,
        least_support=0.41,
        risk_level=RiskLevel.HIGH,
        degraded=False,
        reasons=(),
        model="verify 1",
        seconds=0.12,
    )
    return replace(result, **changes)


def empty_report(*reasons: Reason, answer: str = "", **changes: Any) -> TruthfulnessReport:
    """A report of an answer without any claim: every figure is undefined."""
    return report(
        answer=answer,
        claims=(),
        citations=(),
        score=None,
        nli_faithfulness=None,
        citation_groundedness=None,
        citation_recall=None,
        citation_precision=None,
        uncited_claims=0,
        coverage=None,
        least_support=None,
        risk_level=RiskLevel.UNKNOWN,
        reasons=reasons,
        **changes,
    )

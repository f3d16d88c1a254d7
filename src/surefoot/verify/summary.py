"""The figures of a report: what is summed up from claims and citations, and when it is undefined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from surefoot.citations.alce import CitationMode, citation_figures
from surefoot.schema import (
    Citation,
    CitationStatus,
    Claim,
    ClaimKind,
    Reason,
    RiskLevel,
    Source,
    TruthfulnessReport,
    Verdict,
)

__all__ = ["summarise"]

FAITHFULNESS_WEIGHT: Final = 0.6
GROUNDEDNESS_WEIGHT: Final = 0.4

_WEAKEST: Final = 5
"""One claim is a noisy judge of an answer, and all of them hide a single wrong one."""

_FAILURES: Final = frozenset(
    {
        Reason.CHECKER_FAILED,
        Reason.CLAIM_TOO_LONG,
        Reason.DEADLINE,
        Reason.LANGUAGE,
        Reason.TOO_MANY_CLAIMS,
    }
)
"""Why a claim was not checked at all; ``uncertain`` is not among them: that one was, and stays open."""


def summarise(
    answer: str,
    question: str | None,
    sources: tuple[Source, ...],
    claims: tuple[Claim, ...],
    citations: tuple[Citation, ...],
    *,
    reasons: Sequence[Reason],
    mode: CitationMode,
    model: str,
    seconds: float,
) -> TruthfulnessReport:
    """Make the report out of finished claims and citations.

    Where no claim at all could be checked, there is nothing to sum up: faithfulness, score and least support
    are ``None``. Where some were, the others count as not supported, so that a check that fails in part never
    makes an answer look better, and ``coverage`` says how much was checked.

    Args:
        answer: as checked.
        question: carried along.
        sources: as checked, empty ones included.
        claims: with their verdicts.
        citations: with their statuses.
        reasons: what is already known of the whole, such as ``no_sources``.
        mode: whether missing citations count against the answer.
        model: name of the NLI model, or ``"none"`` if none was needed.
        seconds: time that the check took.
    """
    checkable = [claim for claim in claims if claim.kind is ClaimKind.CLAIM]
    figures = citation_figures(claims, citations, citations=mode)
    checked = [claim for claim in checkable if not _left_out(claim)]
    undefined = Reason.NO_SOURCES in reasons or not checkable
    faithfulness = None
    if not undefined and checked:
        faithfulness = sum(claim.verdict is Verdict.SUPPORTED for claim in checkable) / len(checkable)
    groundedness = None if undefined else figures.groundedness
    broken = dict.fromkeys(reason for claim in checkable for reason in claim.reasons if reason in _FAILURES)
    unchecked = any(
        citation.status is CitationStatus.NOT_CHECKED and citation.source_id is not None
        for claim in checkable
        for citation in claim.citations
    )
    late = Reason.DEADLINE in reasons
    if (
        not undefined and unchecked and not broken and not late
    ):  # the figures would be those of the other citations
        broken[Reason.CHECKER_FAILED] = None
    if not undefined and groundedness is None and mode == "required":
        broken[Reason.CITATIONS_NOT_CHECKED] = None
    written = sum(not character.isspace() for character in answer)
    covered = sum(not character.isspace() for claim in checked for character in claim.text)
    return TruthfulnessReport(
        answer=answer,
        question=question,
        sources=sources,
        claims=claims,
        citations=citations,
        score=_score(faithfulness, groundedness, mode),
        nli_faithfulness=faithfulness,
        citation_groundedness=groundedness,
        citation_recall=None if undefined else figures.recall,
        citation_precision=None if undefined else figures.precision,
        uncited_claims=figures.uncited_claims,
        coverage=covered / written if written else None,
        least_support=None if faithfulness is None else _least_support(checkable),
        risk_level=_risk(faithfulness, checkable),
        degraded=bool(broken) or late or Reason.TOO_MANY_MARKERS in reasons,
        reasons=tuple(dict.fromkeys([*reasons, *broken])),
        model=model,
        seconds=seconds,
    )


def _left_out(claim: Claim) -> bool:
    """Whether a claim was not checked at all; a judge may have decided one that the local model could not."""
    return claim.verdict is Verdict.REVIEW and any(
        reason in _FAILURES or reason is Reason.NO_SOURCES for reason in claim.reasons
    )


def _least_support(claims: Sequence[Claim]) -> float:
    lowest = sorted(claim.support or 0.0 for claim in claims)[:_WEAKEST]
    return sum(lowest) / len(lowest)


def _score(faithfulness: float | None, groundedness: float | None, mode: CitationMode) -> float | None:
    if faithfulness is None:
        return None
    if groundedness is None:
        return round(faithfulness, 3) if mode == "optional" else None
    return round(FAITHFULNESS_WEIGHT * faithfulness + GROUNDEDNESS_WEIGHT * groundedness, 3)


def _risk(faithfulness: float | None, claims: Sequence[Claim]) -> RiskLevel:
    if faithfulness is None:
        return RiskLevel.UNKNOWN
    doubt = 1.0 - faithfulness
    if doubt >= 0.7:
        return RiskLevel.HIGH
    if doubt >= 0.3 or any(claim.verdict is Verdict.CONTRADICTED for claim in claims):
        return RiskLevel.MEDIUM
    return RiskLevel.LOW

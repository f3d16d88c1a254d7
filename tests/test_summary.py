"""Figures that cannot be had are said to be missing, never made up from the rest."""

from __future__ import annotations

from surefoot.schema import (
    Citation,
    CitationStatus,
    Claim,
    Reason,
    Source,
    TruthfulnessReport,
    Verdict,
)
from surefoot.verify.summary import summarise

ANSWER = "A fee of 5% applies [1] [2]."


def summary(*citations: Citation) -> TruthfulnessReport:
    claim = Claim(ANSWER, 0, len(ANSWER), verdict=Verdict.SUPPORTED, support=0.9, citations=citations)
    return summarise(
        ANSWER,
        None,
        (Source("1", "A fee of 5% applies."), Source("2", "Another text.")),
        (claim,),
        citations,
        reasons=(),
        mode="required",
        model="m",
        seconds=0.0,
    )


def cited(key: str, status: CitationStatus, score: float | None) -> Citation:
    return Citation(f"[{key}]", 0, 3, key, key, status, score)


def test_a_citation_that_could_not_be_checked_degrades_the_report() -> None:
    report = summary(cited("1", CitationStatus.SUPPORTING, 0.9), cited("2", CitationStatus.NOT_CHECKED, None))
    assert report.degraded
    assert Reason.CHECKER_FAILED in report.reasons


def test_checked_citations_do_not() -> None:
    report = summary(cited("1", CitationStatus.SUPPORTING, 0.9))
    assert not report.degraded
    assert report.reasons == ()


def test_a_score_without_groundedness_is_undefined_with_a_reason() -> None:
    report = summary(cited("1", CitationStatus.NOT_CHECKED, None))
    assert report.nli_faithfulness == 1.0
    assert report.citation_groundedness is None
    assert report.score is None
    assert Reason.CITATIONS_NOT_CHECKED in report.reasons

"""Figures that cannot be had are said to be missing, never made up from the rest."""

from __future__ import annotations

import pytest

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


def _weakest(*supports: float | None) -> float | None:
    claims = tuple(
        Claim("a claim", 0, 7, verdict=Verdict.REVIEW, reasons=(Reason.UNCERTAIN,), support=support)
        for support in supports
    )
    return summarise(
        "a claim", None, (Source("1", "x"),), claims, (), reasons=(), mode="optional", model="m", seconds=0.0
    ).least_support


def test_least_support_is_the_mean_of_the_three_weakest_claims() -> None:
    assert _weakest(0.9, 0.2, 0.8, 0.4, 0.6) == pytest.approx((0.2 + 0.4 + 0.6) / 3)
    assert _weakest(0.9, 0.5) == pytest.approx(0.7)
    assert _weakest(0.9, None) == pytest.approx(0.45), "what could not be checked is not taken for supported"
    assert _weakest() is None

"""Figures that cannot be had are said to be missing, never made up from the rest."""

from __future__ import annotations

import pytest

from surefoot.citations.alce import CitationMode
from surefoot.report.wording import reason_words, undefined_because
from surefoot.schema import (
    Citation,
    CitationStatus,
    Claim,
    Reason,
    RiskLevel,
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


NOT_CHECKED = (
    Reason.LANGUAGE,
    Reason.CLAIM_TOO_LONG,
    Reason.CHECKER_FAILED,
    Reason.DEADLINE,
    Reason.TOO_MANY_CLAIMS,
)


def judged(*claims: tuple[Verdict, Reason], mode: CitationMode = "optional") -> TruthfulnessReport:
    """The report on an answer of one character a claim."""
    made = tuple(
        Claim("x", at, at + 1, verdict=verdict, reasons=(reason,))
        for at, (verdict, reason) in enumerate(claims)
    )
    sources = (Source("1", "x"),)
    return summarise("x" * len(made), None, sources, made, (), reasons=(), mode=mode, model="m", seconds=0.0)


@pytest.mark.parametrize("mode", ["optional", "required"])
@pytest.mark.parametrize("reason", NOT_CHECKED)
def test_where_nothing_could_be_checked_the_figures_are_undefined(reason: Reason, mode: CitationMode) -> None:
    report = judged((Verdict.REVIEW, reason), (Verdict.REVIEW, reason), mode=mode)
    assert report.nli_faithfulness is None
    assert report.score is None
    assert report.least_support is None
    assert report.risk_level is RiskLevel.UNKNOWN
    assert report.coverage == 0
    assert report.degraded
    assert reason in report.reasons
    words = reason_words(reason)
    assert undefined_because(report, "score") == f"undefined ({words})"
    assert undefined_because(report, "nli_faithfulness") == f"undefined ({words})"


@pytest.mark.parametrize("reason", NOT_CHECKED)
def test_beside_one_that_was_a_claim_not_checked_counts_as_not_supported(
    reason: Reason,
) -> None:
    report = judged((Verdict.SUPPORTED, Reason.ENTAILED), (Verdict.REVIEW, reason))
    assert report.nli_faithfulness == report.score == report.coverage == 0.5
    assert report.degraded


def test_an_uncertain_claim_was_checked() -> None:
    report = judged((Verdict.REVIEW, Reason.UNCERTAIN))
    assert report.nli_faithfulness == 0.0
    assert report.coverage == 1.0
    assert not report.degraded


def test_what_a_judge_decided_was_checked() -> None:
    report = judged((Verdict.SUPPORTED, Reason.JUDGED), (Verdict.REVIEW, Reason.LANGUAGE))
    assert report.nli_faithfulness == 0.5


def _weakest(*supports: float | None) -> float | None:
    claims = tuple(
        Claim("a claim", 0, 7, verdict=Verdict.REVIEW, reasons=(Reason.UNCERTAIN,), support=support)
        for support in supports
    )
    return summarise(
        "a claim", None, (Source("1", "x"),), claims, (), reasons=(), mode="optional", model="m", seconds=0.0
    ).least_support


def test_least_support_is_the_mean_of_the_five_weakest_claims() -> None:
    assert _weakest(0.9, 0.2, 0.8, 0.4, 0.6, 0.5, 0.95) == pytest.approx((0.2 + 0.4 + 0.5 + 0.6 + 0.8) / 5)
    assert _weakest(0.9, 0.5) == pytest.approx(0.7)
    assert _weakest(0.9, None) == pytest.approx(0.45), "what could not be checked is not taken for supported"
    assert _weakest() is None

"""What every rendering of a report says: its figures, codes in plain words, and text made safe to show."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.schema import (
    Citation,
    CitationStatus,
    Claim,
    ClaimKind,
    Evidence,
    Reason,
    TruthfulnessReport,
    Verdict,
)

__all__ = [
    "SYMBOLS",
    "Figure",
    "checkable_claims",
    "citation_words",
    "citations_elsewhere",
    "claim_reasons",
    "figures",
    "headline",
    "main_evidence",
    "notes",
    "printable",
    "reason_words",
    "undefined_because",
]

_MAIN_RELEVANCE = 0.2

SYMBOLS = {
    Verdict.SUPPORTED: "✓",
    Verdict.CONTRADICTED: "✗",
    Verdict.UNSUPPORTED: "○",
    Verdict.REVIEW: "?",
    Verdict.NOT_CHECKABLE: "–",
}
_REASONS = {
    Reason.ENTAILED: "the evidence says the same",
    Reason.VERBATIM: "stands word for word in a source",
    Reason.CONTRADICTED_BY_EVIDENCE: "the evidence says otherwise",
    Reason.NO_SUPPORTING_EVIDENCE: "the sources speak of it, but do not say this",
    Reason.NO_RELEVANT_EVIDENCE: "no source speaks of it",
    Reason.UNCERTAIN: "the evidence is neither clearly for nor clearly against",
    Reason.NUMBER_MISMATCH: "a number differs from the evidence",
    Reason.UNIT_MISMATCH: "a unit differs from the evidence",
    Reason.DATE_MISMATCH: "a date differs from the evidence",
    Reason.NAME_MISMATCH: "a name differs from the evidence",
    Reason.NEGATION_MISMATCH: "one of claim and evidence is negated",
    Reason.CLAIM_TOO_LONG: "not checked: too long for the model",
    Reason.LANGUAGE: "not checked: the model does not read this language",
    Reason.TOO_MANY_CLAIMS: "not checked: the answer has more claims than the limit",
    Reason.DEADLINE: "not checked: the time was up",
    Reason.CHECKER_FAILED: "not checked: a step of the check failed",
    Reason.NOT_A_CLAIM: "nothing to check",
    Reason.EMPTY_ANSWER: "empty answer",
    Reason.NO_SOURCES: "no sources",
    Reason.NO_CHECKABLE_CLAIM: "no checkable claim",
    Reason.NO_CITATIONS: "no citations",
    Reason.DUPLICATE_SOURCE_ID: "two sources have the same id; the later one is marked with #2",
    Reason.TOO_MANY_MARKERS: "the answer has more citation markers than the limit; the rest was not read",
    Reason.JUDGED: "a language model was asked, and decided",
    Reason.JUDGE_DIFFERS: "the language model and the local model lean to different sides",
    Reason.JUDGE_FAILED: "the language model could not be asked",
    Reason.JUDGE_TIMEOUT: "the language model did not reply in time",
    Reason.JUDGE_REFUSED: "the language model refused",
    Reason.JUDGE_REPLY_INVALID: "the reply of the language model holds no valid score",
    Reason.JUDGE_REPLY_AMBIGUOUS: "the reply of the language model holds several scores",
    Reason.JUDGE_WAVERED: "the reply of the language model holds other scores before the last",
    Reason.VOTES_DIFFER: "some votes say low risk and others high",
    Reason.VOTES_MISSING: "some of the votes are missing",
    Reason.BUDGET_EXHAUSTED: "not sent to the language model: the budget does not cover it",
    Reason.PARTIAL_CONTEXT: "the language model was shown only the part of the sources that speaks of it",
    Reason.HOSTILE_TEXT: "the texts hold something that tries to influence a language model",
    Reason.CONTROL_FAILED: "the language model lets an invented statement pass too",
    Reason.CONTROL_SKIPPED: "the language model was not tried with an invented statement",
    Reason.UNRESOLVED_CITATION: "a citation names no source",
    Reason.CITATION_NOT_SUPPORTING: "the cited source does not support it",
    Reason.CITATION_MISSING: "it cites nothing",
    Reason.CITATIONS_NOT_CHECKED: "no citation could be checked",
}
_KINDS = {
    ClaimKind.CLAIM: "a claim",
    ClaimKind.QUESTION: "a question",
    ClaimKind.REFUSAL: "says that there is no answer",
    ClaimKind.GREETING: "a greeting",
    ClaimKind.META: "speaks about the answer itself",
    ClaimKind.HEADING: "a heading",
    ClaimKind.CODE: "code",
    ClaimKind.TOO_SHORT: "too short to check",
}
_STATUSES = {
    CitationStatus.SUPPORTING: "supports the claim",
    CitationStatus.IRRELEVANT: "adds nothing: the other cited sources do as well",
    CitationStatus.NOT_SUPPORTING: "does not support the claim",
    CitationStatus.UNRESOLVED: "names no source",
    CitationStatus.NOT_CHECKED: "not checked",
}


def _visible() -> dict[int, str]:
    # C0, DEL and C1 drive a terminal; bidi embeddings, overrides and isolates reorder what is read;
    # the line and paragraph separators break a layout.
    codes = [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029]
    table = {code: f"<U+{code:04X}>" for code in codes}
    table.update(dict.fromkeys(range(0xD800, 0xE000), "�"))  # unpaired surrogates have no encoding
    table.update({0x09: " ", 0x0A: " ", 0x0D: " "})
    return table


_INLINE = _visible()
_BLOCK = {**_INLINE, 0x09: "\t", 0x0A: "\n", 0x0D: "\n"}


def printable(text: str, *, lines: bool = False) -> str:
    """``text`` with nothing left in it that acts instead of being read.

    Control characters and bidirectional overrides are shown as ``<U+001B>``, unpaired surrogates as
    U+FFFD. Tabs and line ends become spaces; with ``lines`` they stay, and a carriage return is one.
    """
    if lines:
        return text.replace("\r\n", "\n").translate(_BLOCK)
    return text.translate(_INLINE)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a report, ready to be shown.

    Attributes:
        name: field of :class:`~surefoot.schema.TruthfulnessReport`.
        label: its name for people.
        value: the figure as text; ``"undefined (why)"`` where it is ``None``.
        share: the figure where it is a share between 0 and 1, for a bar; else ``None``.
        explanation: what it means, in a sentence.
    """

    name: str
    label: str
    value: str
    share: float | None
    explanation: str


_NOT_CHECKED = (
    Reason.LANGUAGE,
    Reason.CLAIM_TOO_LONG,
    Reason.TOO_MANY_CLAIMS,
    Reason.CHECKER_FAILED,
    Reason.DEADLINE,
)


def undefined_because(report: TruthfulnessReport, name: str) -> str:
    """``"undefined (no checkable claim)"``: why the figure ``name`` is ``None``."""
    order = [Reason.EMPTY_ANSWER, Reason.NO_SOURCES, Reason.NO_CHECKABLE_CLAIM]
    if name.startswith("citation_"):
        order.append(Reason.NO_CITATIONS)
    elif report.nli_faithfulness is None:
        order.extend(_NOT_CHECKED)
    order.append(Reason.CITATIONS_NOT_CHECKED)
    why = next((reason for reason in order if reason in report.reasons), None)
    if why is None and name.startswith("citation_") and not report.citations:
        why = Reason.NO_CITATIONS
    return f"undefined ({_REASONS[why]})" if why else "undefined"


def figures(report: TruthfulnessReport) -> tuple[Figure, ...]:
    """The figures of a report in the order in which they are shown."""
    checkable = checkable_claims(report)
    supported = sum(claim.verdict is Verdict.SUPPORTED for claim in checkable)
    formula = "0.6 × faithfulness + 0.4 × citation groundedness."
    if report.score is not None and report.citation_groundedness is None:
        formula = "Faithfulness alone: the answer has no citations, and none are required."

    def share(name: str, label: str, value: float | None, explanation: str) -> Figure:
        text = undefined_because(report, name) if value is None else f"{value:.3f}"
        return Figure(name, label, text, value, explanation)

    return (
        share("score", "score", report.score, formula),
        share(
            "nli_faithfulness",
            "faithfulness",
            report.nli_faithfulness,
            f"Share of checkable claims that the sources support: {supported} of {len(checkable)}.",
        ),
        share(
            "citation_groundedness",
            "citation groundedness",
            report.citation_groundedness,
            "How far each cited source alone supports its claim, on average.",
        ),
        Figure(
            "uncited_claims",
            "uncited claims",
            str(report.uncited_claims),
            None,
            "Checkable claims that cite no source.",
        ),
        share(
            "coverage",
            "coverage",
            report.coverage,
            "Share of the answer's characters in claims that were checked.",
        ),
        Figure(
            "risk_level",
            "risk",
            str(report.risk_level),
            None,
            "Low, medium or high by the share of claims without support; a contradicted claim is never low.",
        ),
        share(
            "citation_recall",
            "citation recall",
            report.citation_recall,
            "Share of checkable claims that their cited sources, read together, support.",
        ),
        share(
            "citation_precision",
            "citation precision",
            report.citation_precision,
            "Share of citations that their claim needs.",
        ),
    )


def headline(report: TruthfulnessReport) -> str:
    """The report in one sentence: how many claims are supported, contradicted and so on."""
    checkable = checkable_claims(report)
    if not checkable or Reason.NO_SOURCES in report.reasons:
        why = undefined_because(report, "score").removeprefix("undefined").strip(" ()")
        return f"Nothing was checked: {why}." if why else "Nothing was checked."
    words = {
        Verdict.SUPPORTED: "supported",
        Verdict.CONTRADICTED: "contradicted",
        Verdict.UNSUPPORTED: "unsupported",
        Verdict.REVIEW: "to review",
    }
    counts = {verdict: sum(claim.verdict is verdict for claim in checkable) for verdict in words}
    parts = [f"{count} {words[verdict]}" for verdict, count in counts.items() if count]
    noun = "claim" if len(checkable) == 1 else "claims"
    return f"{len(checkable)} checkable {noun}: {', '.join(parts)}."


def notes(report: TruthfulnessReport) -> tuple[str, ...]:
    """What else the report's reasons say, beside what :func:`headline` says."""
    said = (Reason.EMPTY_ANSWER, Reason.NO_SOURCES, Reason.NO_CHECKABLE_CLAIM)
    return tuple(_REASONS[reason] for reason in report.reasons if reason not in said)


def reason_words(reason: Reason) -> str:
    """A reason code in plain words."""
    return _REASONS[reason]


def citation_words(citation: Citation) -> str:
    """What became of a citation in plain words, without its marker."""
    words = _STATUSES[citation.status]
    if citation.verification_score is not None:
        words += f" ({citation.verification_score:.2f})"
    return words


def claim_reasons(claim: Claim) -> tuple[str, ...]:
    """Why a claim has its verdict, in plain words; the decisive reason first."""
    words = [
        _KINDS[claim.kind]
        if reason is Reason.NOT_A_CLAIM and claim.kind is not ClaimKind.CLAIM
        else _REASONS[reason]
        for reason in claim.reasons
    ]
    if not words and claim.kind is not ClaimKind.CLAIM:
        words = [_KINDS[claim.kind]]
    return (*words, claim.detail) if claim.detail else tuple(words)


def main_evidence(claim: Claim) -> tuple[Evidence, ...]:
    """The evidence to show first: the best, and what else says a good part of the claim.

    The rest was read together with it, and matters less.
    """
    return claim.evidence[:1] + tuple(
        item for item in claim.evidence[1:] if item.relevance >= _MAIN_RELEVANCE
    )


def citations_elsewhere(report: TruthfulnessReport) -> tuple[Citation, ...]:
    """The citations that belong to no claim."""
    owned = {citation for claim in report.claims for citation in claim.citations}
    return tuple(citation for citation in report.citations if citation not in owned)


def checkable_claims(report: TruthfulnessReport) -> list[Claim]:
    """The claims that count: everything but ``not_checkable``."""
    return [claim for claim in report.claims if claim.verdict is not Verdict.NOT_CHECKABLE]

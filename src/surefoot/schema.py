"""Frozen records that pass between the steps, and nothing else.

All positions are half-open ``[start, end)`` ranges in Unicode code points of the text they speak
about, so that ``answer[claim.start:claim.end] == claim.text`` and
``source.text[ev.start:ev.end] == ev.text`` hold exactly for any text.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, Final

__all__ = [
    "Citation",
    "CitationStatus",
    "Claim",
    "ClaimKind",
    "Evidence",
    "Reason",
    "Record",
    "RiskLevel",
    "Source",
    "Span",
    "TruthfulnessReport",
    "Verdict",
    "plain",
]


_DEEPEST: Final = 100


def plain(value: Any, depth: int = 0) -> Any:
    """``value`` as JSON has it. A caller's metadata may hold anything, even itself.

    Args:
        value: records become mappings, and NumPy's numbers Python's. NaN, infinities and anything else that
            JSON does not have become strings.
        depth: containers nested deeper than 100 become ``"..."``.
    """
    if isinstance(value, (bool, str)) or value is None:
        return str(value) if isinstance(value, StrEnum) else value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if depth >= _DEEPEST:
        return "..."
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), depth + 1) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    return str(value)


class Record:
    """Base of the frozen dataclasses that turn into JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, strings and numbers."""
        return plain(self)  # type: ignore[no-any-return]

    def to_json(self, *, indent: int | None = None) -> str:
        """The record as ASCII-only JSON, valid even where a text holds lone surrogates."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


class Verdict(StrEnum):
    """What the sources say about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"
    REVIEW = "review"
    """Not decided: the evidence is in the band between, or a step could not be carried out."""
    NOT_CHECKABLE = "not_checkable"
    """Nothing to check: a question, a greeting, a refusal, a heading, code."""


class ClaimKind(StrEnum):
    """What a segment of the answer is; only ``CLAIM`` is checked."""

    CLAIM = "claim"
    QUESTION = "question"
    REFUSAL = "refusal"
    GREETING = "greeting"
    META = "meta"
    HEADING = "heading"
    CODE = "code"
    TOO_SHORT = "too_short"


class Reason(StrEnum):
    """Why a verdict or a figure is what it is. Codes are stable; more may be added."""

    # verdicts
    ENTAILED = "entailed"
    VERBATIM = "verbatim"
    CONTRADICTED_BY_EVIDENCE = "contradicted_by_evidence"
    NO_SUPPORTING_EVIDENCE = "no_supporting_evidence"
    NO_RELEVANT_EVIDENCE = "no_relevant_evidence"
    UNCERTAIN = "uncertain"
    NUMBER_MISMATCH = "number_mismatch"
    UNIT_MISMATCH = "unit_mismatch"
    DATE_MISMATCH = "date_mismatch"
    NAME_MISMATCH = "name_mismatch"
    NEGATION_MISMATCH = "negation_mismatch"
    # could not be carried out
    CLAIM_TOO_LONG = "claim_too_long"
    LANGUAGE = "language"
    TOO_MANY_CLAIMS = "too_many_claims"
    DEADLINE = "deadline"
    CHECKER_FAILED = "checker_failed"
    # not checkable
    NOT_A_CLAIM = "not_a_claim"
    # the whole report
    EMPTY_ANSWER = "empty_answer"
    NO_SOURCES = "no_sources"
    NO_CHECKABLE_CLAIM = "no_checkable_claim"
    NO_CITATIONS = "no_citations"
    DUPLICATE_SOURCE_ID = "duplicate_source_id"
    TOO_MANY_MARKERS = "too_many_markers"
    # the judge
    JUDGED = "judged"
    JUDGE_DIFFERS = "judge_differs"
    JUDGE_FAILED = "judge_failed"
    JUDGE_TIMEOUT = "judge_timeout"
    JUDGE_REFUSED = "judge_refused"
    JUDGE_REPLY_INVALID = "judge_reply_invalid"
    JUDGE_REPLY_AMBIGUOUS = "judge_reply_ambiguous"
    JUDGE_WAVERED = "judge_wavered"
    VOTES_DIFFER = "votes_differ"
    VOTES_MISSING = "votes_missing"
    BUDGET_EXHAUSTED = "budget_exhausted"
    PARTIAL_CONTEXT = "partial_context"
    HOSTILE_TEXT = "hostile_text"
    CONTROL_FAILED = "control_failed"
    CONTROL_SKIPPED = "control_skipped"
    # citations
    UNRESOLVED_CITATION = "unresolved_citation"
    CITATION_NOT_SUPPORTING = "citation_not_supporting"
    CITATION_MISSING = "citation_missing"
    CITATIONS_NOT_CHECKED = "citations_not_checked"


class RiskLevel(StrEnum):
    """Hallucination risk: low < 0.3 <= medium < 0.7 <= high; ``UNKNOWN`` where it is undefined."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    UNKNOWN = "unknown"


class CitationStatus(StrEnum):
    """What became of a citation marker."""

    SUPPORTING = "supporting"
    """The cited source supports the claim alone, or is needed for the joined sources to do so."""
    IRRELEVANT = "irrelevant"
    """Alone insufficient, and the other cited sources do as well without it (ALCE precision 0)."""
    NOT_SUPPORTING = "not_supporting"
    """The cited sources, joined, do not support the claim."""
    UNRESOLVED = "unresolved"
    """The marker names no source: out of range, or an unknown id or title."""
    NOT_CHECKED = "not_checked"
    """The marker stands on nothing checkable, or the claim could not be checked."""


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of code points."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: [{self.start}, {self.end})")

    def __len__(self) -> int:
        return self.end - self.start

    def of(self, text: str) -> str:
        """The text that this span covers in ``text``."""
        return text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Source:
    """One document, passage or record that an answer may stand on.

    Attributes:
        id: unique within one check; a second ``"a"`` is read as ``"a#2"``, and the report says so.
        text: plain text or Markdown.
        title: shown to people and matched by ``(Source: title)`` markers.
        metadata: anything of the caller's; carried along, never read.
    """

    id: str
    text: str
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of a source that was shown to the model for a claim.

    The probabilities belong to the whole premise that the span was part of: several evidence
    records of one claim may share them, when their sentences were read together.

    Attributes:
        source_id: id of the source.
        start, end: position in ``source.text``.
        text: ``source.text[start:end]``.
        relevance: share of the claim's weighted content that the span covers, 0 to 1.
        entailment, neutral, contradiction: NLI probabilities of (premise, claim); sum to 1.
    """

    source_id: str
    start: int
    end: int
    text: str
    relevance: float
    entailment: float
    neutral: float
    contradiction: float


@dataclass(frozen=True, slots=True)
class Citation:
    """One target of an inline marker; ``[1, 2]`` makes two of them over the same span.

    Attributes:
        marker: the marker as written, ``answer[start:end]``.
        start, end: position of the marker in the answer; both -1 for citations handed in as records
            without a position.
        key: what the marker names, as written: ``"1"``, ``"policy.pdf"``.
        source_id: the source it resolves to, or ``None``.
        status: see :class:`CitationStatus`.
        verification_score: support of the claim by this source alone, 0 to 1; ``None`` if not checked.
        proposal: id of a source that does support the claim, where this one does not; never applied.
    """

    marker: str
    start: int
    end: int
    key: str
    source_id: str | None = None
    status: CitationStatus = CitationStatus.NOT_CHECKED
    verification_score: float | None = None
    proposal: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, list item or table row of the answer, with its verdict.

    Attributes:
        text: ``answer[start:end]``, citation markers and all.
        kind: what the segment is; everything but ``claim`` is ``not_checkable``.
        verdict, reasons: the decision and why; the first reason is the decisive one.
        support: calibrated probability that the sources support the claim, 0 to 1, or ``None``
            where it was not computed. 0.5 is the model's decision threshold.
        contradiction: probability that on-topic evidence contradicts the claim, 0 to 1, or ``None``.
        evidence: what the decision rests on, best first.
        citations: the markers that belong to the claim.
        citation_recall: the cited sources, joined, support the claim (ALCE); ``None`` without citations.
        proposals: ids of sources that support the claim though it cites none of them.
        block: index of the paragraph, list item, or row in the answer.
    """

    text: str
    start: int
    end: int
    kind: ClaimKind = ClaimKind.CLAIM
    verdict: Verdict = Verdict.REVIEW
    reasons: tuple[Reason, ...] = ()
    support: float | None = None
    contradiction: float | None = None
    evidence: tuple[Evidence, ...] = ()
    citations: tuple[Citation, ...] = ()
    citation_recall: bool | None = None
    proposals: tuple[str, ...] = ()
    detail: str | None = None
    block: int = 0


@dataclass(frozen=True, slots=True)
class TruthfulnessReport(Record):
    """The result of checking one answer.

    Every figure is ``None`` where it is undefined, and ``reasons`` then says why.

    Attributes:
        answer: the text that was checked, as given.
        question: the question, if one was given.
        sources: the sources, in the order given; empty ones included.
        claims: every segment of the answer in order, not only the checkable ones.
        citations: every marker in order, those outside any claim included.
        score: 0.6 x ``nli_faithfulness`` + 0.4 x ``citation_groundedness``, rounded to 3 digits.
        nli_faithfulness: supported claims / checkable claims, 0 to 1. A claim that could not be checked
            (language, length, time, a failure) counts as not supported; ``None`` where none could be.
        citation_groundedness: mean ``verification_score`` of the citations, 0 to 1; 0 for an answer
            without any citation, ``None`` when citations are optional and absent.
        citation_recall: share of checkable claims whose cited sources, joined, support them (ALCE).
        citation_precision: share of citations that are supporting (ALCE).
        uncited_claims: checkable claims without a marker.
        coverage: share of the answer's non-space characters that lies in claims that were checked, 0 to 1.
        least_support: mean support of the five least supported checkable claims, 0 to 1; a claim that could
            not be checked counts 0. It ranks answers by the risk of a hallucination better than the least or
            the mean of all; it is not the probability of one.
        risk_level: from 1 - ``nli_faithfulness``, never below ``medium`` with a contradicted claim.
        degraded: a step could not be carried out; the claims concerned are ``review``.
        reasons: why a figure is undefined or the report degraded.
        model: name and version of the NLI model.
        seconds: time that the check took.
    """

    answer: str
    question: str | None
    sources: tuple[Source, ...]
    claims: tuple[Claim, ...]
    citations: tuple[Citation, ...]
    score: float | None
    nli_faithfulness: float | None
    citation_groundedness: float | None
    citation_recall: float | None
    citation_precision: float | None
    uncited_claims: int
    coverage: float | None
    least_support: float | None
    risk_level: RiskLevel
    degraded: bool
    reasons: tuple[Reason, ...]
    model: str
    seconds: float

    def as_scores(self) -> dict[str, float | int | None]:
        """The four figures under the names that earlier truthfulness scorers gave them."""
        return {
            "score": self.score,
            "nli_faithfulness": self.nli_faithfulness,
            "citation_groundedness": self.citation_groundedness,
            "uncited_claims": self.uncited_claims,
        }

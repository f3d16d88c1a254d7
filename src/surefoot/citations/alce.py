"""Citation recall and precision after ALCE (Gao et al. 2023, arXiv:2305.14627), and proposed sources.

A callback says what supports a claim, so this module needs no model. Per claim:

* *recall*: the cited sources, joined, support the claim;
* *precision* of a citation: recall holds and the citation is not irrelevant. It is irrelevant if it fails
  alone and the other sources support the claim without it.

One departure from the paper: joining is taken to be monotone. If one cited source suffices, so do the joined
ones, and any other that fails alone is irrelevant. A model may score a long premise below its best part; this
also saves the joined call. The answer is never rewritten: better sources are only proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, Literal

from surefoot.schema import Citation, CitationStatus, Claim, ClaimKind, Reason, Verdict

__all__ = ["CitationFigures", "Support", "check_citations", "citation_figures", "merge_citations"]

Support = Callable[[int, tuple[str, ...]], float | None]
"""``support(claim_index, source_ids)``: calibrated probability, 0 to 1, that these sources, joined, support
the claim; ``None`` if it could not be computed."""

CitationMode = Literal["required", "optional"]

_THRESHOLD: Final = 0.5
"""Calibrated support from which a claim counts as supported."""


@dataclass(frozen=True, slots=True)
class CitationFigures:
    """The citation figures of a whole answer; ``None`` if undefined.

    Attributes:
        recall: share of checkable claims that their citations, joined, support. An uncited claim counts 0;
            one whose citations could not be checked is left out.
        precision: supporting citations / checked citations; unresolved ones count as checked.
        groundedness: mean ``verification_score``. An unresolved citation counts 0; one without a score is
            left out.
        uncited_claims: number of checkable claims without a marker.
    """

    recall: float | None
    precision: float | None
    groundedness: float | None
    uncited_claims: int


def check_citations(
    claims: Sequence[Claim],
    support: Support,
    *,
    citations: CitationMode = "required",
) -> tuple[Claim, ...]:
    """Check the citations of claims, and propose a source where citations fail or are missing.

    Sets the status, ``verification_score`` and ``proposal`` of each citation and the claim's
    ``citation_recall``, ``proposals`` and (appended) citation reasons, nothing else. A score that a citation
    already has comes from the caller: it is kept and does not affect the decision.

    The proposal is the first source of the claim's own evidence that is not cited, if it supports the claim
    alone. A contradicted or unsupported claim gets none, because a citation would not make it true.

    Args:
        claims: with ``citations`` resolved and ``evidence`` best first.
        support: see :data:`Support`; anything outside [0, 1] counts as ``None``. Called once per claim and
            set of sources: n times for n citations and, only if none suffices alone, once for all of them
            and up to n times for all but one.
        citations: with ``"optional"``, an uncited claim is neither flagged nor given a proposal.
    """
    return tuple(_Check(index, claim, support).run(citations) for index, claim in enumerate(claims))


def _checkable(claim: Claim) -> bool:
    return claim.kind is ClaimKind.CLAIM and claim.verdict is not Verdict.NOT_CHECKABLE


class _Check:
    """The check of one claim; each support value is computed once."""

    def __init__(self, index: int, claim: Claim, support: Support) -> None:
        self._index = index
        self._claim = claim
        self._ask = support
        self._memo: dict[frozenset[str], float | None] = {}
        resolved = (c.source_id for c in claim.citations if c.status is not CitationStatus.UNRESOLVED)
        self._cited = tuple(dict.fromkeys(source_id for source_id in resolved if source_id is not None))

    def run(self, mode: CitationMode) -> Claim:
        claim = self._claim
        if not _checkable(claim):
            return claim
        recall = self._recall()
        status = {source_id: self._status(source_id, recall) for source_id in self._cited}
        judged = tuple(self._judge(citation, status) for citation in claim.citations)
        wrong = (CitationStatus.UNRESOLVED, CitationStatus.NOT_SUPPORTING)
        proposals: tuple[str, ...] = ()
        # Recall is None without citations, and if the cited sources could not be checked.
        missing = not judged and mode == "required"
        if recall is False or missing or any(c.status in wrong for c in judged):
            proposals = self._proposals()
        if proposals:
            judged = tuple(replace(c, proposal=proposals[0]) if c.status in wrong else c for c in judged)
        return replace(
            claim,
            citations=judged,
            citation_recall=recall,
            proposals=proposals if recall is False or missing else (),
            reasons=self._reasons(judged, mode),
        )

    def _support(self, source_ids: tuple[str, ...]) -> float | None:
        key = frozenset(source_ids)
        if key not in self._memo:
            value = self._ask(self._index, source_ids)
            self._memo[key] = float(value) if value is not None and 0.0 <= value <= 1.0 else None
        return self._memo[key]

    def _holds(self, source_ids: tuple[str, ...]) -> bool | None:
        value = self._support(source_ids)
        return None if value is None else value >= _THRESHOLD

    def _suffices(self, source_ids: tuple[str, ...]) -> bool | None:
        """Whether the joined sources support the claim; monotone, see the module docstring."""
        if any(self._holds((source_id,)) for source_id in source_ids):
            return True
        return self._holds(source_ids)

    def _recall(self) -> bool | None:
        if self._cited:
            return self._suffices(self._cited)
        # Unresolved markers alone support nothing; a record without a source says nothing.
        unresolved = any(c.status is CitationStatus.UNRESOLVED for c in self._claim.citations)
        return False if unresolved else None

    def _status(self, source_id: str, recall: bool | None) -> CitationStatus:
        alone = self._holds((source_id,))
        if recall is False:
            return CitationStatus.NOT_SUPPORTING
        if recall is None or alone is None:
            return CitationStatus.NOT_CHECKED
        if alone:
            return CitationStatus.SUPPORTING
        others = tuple(other for other in self._cited if other != source_id)
        without = self._suffices(others)
        if without is None:
            return CitationStatus.NOT_CHECKED
        return CitationStatus.IRRELEVANT if without else CitationStatus.SUPPORTING

    def _judge(self, citation: Citation, status: dict[str, CitationStatus]) -> Citation:
        source_id = citation.source_id
        if source_id is None or source_id not in status:
            return citation
        score = citation.verification_score
        if score is None:
            score = self._support((source_id,))
        return replace(citation, status=status[source_id], verification_score=score)

    def _proposals(self) -> tuple[str, ...]:
        if self._claim.verdict in (Verdict.CONTRADICTED, Verdict.UNSUPPORTED):
            return ()
        other = next((e.source_id for e in self._claim.evidence if e.source_id not in self._cited), None)
        return (other,) if other is not None and self._holds((other,)) else ()

    def _reasons(self, judged: Sequence[Citation], mode: CitationMode) -> tuple[Reason, ...]:
        statuses = {citation.status for citation in judged}
        added = {
            Reason.UNRESOLVED_CITATION: CitationStatus.UNRESOLVED in statuses,
            Reason.CITATION_NOT_SUPPORTING: CitationStatus.NOT_SUPPORTING in statuses,
            Reason.CITATION_MISSING: not judged and mode == "required",
        }
        return tuple(dict.fromkeys([*self._claim.reasons, *(r for r, applies in added.items() if applies)]))


def merge_citations(citations: Sequence[Citation], claims: Sequence[Claim]) -> tuple[Citation, ...]:
    """All ``citations`` of the answer in their order, each as checked with its claim.

    Args:
        citations: from :func:`~surefoot.citations.resolve`.
        claims: from :func:`check_citations`.
    """
    judged = {(c.start, c.end, c.key): c for claim in claims for c in claim.citations if c.start >= 0}
    return tuple(judged.get((c.start, c.end, c.key), c) for c in citations)


def citation_figures(
    claims: Sequence[Claim], all_citations: Sequence[Citation], *, citations: CitationMode = "required"
) -> CitationFigures:
    """The figures of the answer.

    Args:
        claims: from :func:`check_citations`; those not checkable are skipped.
        all_citations: every citation, including those outside claims, from :func:`merge_citations`.
        citations: without any citation, groundedness (and recall, if there are claims) is 0.0 with
            ``"required"`` and ``None`` with ``"optional"``.
    """
    checkable = [claim for claim in claims if _checkable(claim)]
    uncited = sum(not claim.citations for claim in checkable)
    absent = not all_citations
    recalls = [
        float(claim.citation_recall or False)
        for claim in checkable
        if claim.citation_recall is not None or not claim.citations
    ]
    checked = [c for c in all_citations if c.status is not CitationStatus.NOT_CHECKED]
    scores = [score for c in all_citations if (score := _score(c)) is not None]
    optional = absent and citations == "optional"
    return CitationFigures(
        recall=None if optional or not recalls else fmean(recalls),
        precision=fmean(c.status is CitationStatus.SUPPORTING for c in checked) if checked else None,
        groundedness=(None if optional else 0.0) if absent else (fmean(scores) if scores else None),
        uncited_claims=uncited,
    )


def _score(citation: Citation) -> float | None:
    return 0.0 if citation.status is CitationStatus.UNRESOLVED else citation.verification_score

"""Citation recall and precision after ALCE (Gao et al. 2023, arXiv:2305.14627), and repair proposals.

What supports what is asked through a callback, so that this module knows no model. Per claim:

* *recall*: the cited sources, joined, support the claim;
* *precision* of a citation: recall holds and the citation is not irrelevant, that is, it does not both
  fail alone and leave the others as good without it.

One departure: joining is taken to be monotone. Where one cited source suffices, the joined ones do, and
another that fails alone is irrelevant. A model's score of a long premise may fall below that of its
best part; and the joined call is saved. Nothing here rewrites an answer: a better source is proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from surefoot.schema import Citation, CitationStatus, Claim, ClaimKind, Reason, Verdict

__all__ = ["CitationFigures", "Support", "check_citations", "citation_figures", "merge_citations"]

Support = Callable[[int, tuple[str, ...]], float | None]
"""``support(claim_index, source_ids)``: calibrated probability, 0 to 1, that these sources, joined, support
the claim; ``None`` where it could not be computed."""

CitationMode = Literal["required", "optional"]


@dataclass(frozen=True, slots=True)
class CitationFigures:
    """The citation figures of a whole answer; ``None`` where undefined.

    Attributes:
        recall: share of checkable claims that their citations, joined, support; an uncited claim
            counts 0, one whose citations could not be checked is left out.
        precision: supporting / checked citations; an unresolved one counts as checked.
        groundedness: mean ``verification_score``; an unresolved citation counts 0, one that was not
            checked and has no score of the caller's is left out.
        uncited_claims: checkable claims without a marker.
    """

    recall: float | None
    precision: float | None
    groundedness: float | None
    uncited_claims: int


def check_citations(
    claims: Sequence[Claim],
    support: Support,
    *,
    threshold: float = 0.5,
    citations: CitationMode = "required",
    max_proposals: int = 3,
) -> tuple[Claim, ...]:
    """The claims with their citations judged, and with proposals where citations fail or are missing.

    Set are the status, ``verification_score`` and ``proposal`` of each citation and the claim's
    ``citation_recall``, ``proposals`` and, appended, citation reasons; nothing else. A score
    that a citation already has is the caller's: it is kept, and does not enter the decision.

    Proposed are sources of the claim's own evidence that support it alone and are not cited, best
    first. A claim decided contradicted or unsupported gets none: a citation would not mend it.

    Args:
        claims: with ``citations`` resolved and ``evidence`` best first.
        support: see :data:`Support`; anything not in [0, 1] counts as ``None``. Called once per claim
            and set of sources: with one citation once; with n of them n times, and only where none
            suffices alone once for all and up to n times for all but one.
        threshold: support from which a claim counts as supported.
        citations: with ``"optional"`` an uncited claim is neither flagged nor given proposals.
        max_proposals: evidence sources tried per claim.

    Returns:
        One claim per claim, in order.
    """
    return tuple(
        _Check(index, claim, support, threshold).run(citations, max_proposals)
        for index, claim in enumerate(claims)
    )


def _checkable(claim: Claim) -> bool:
    return claim.kind is ClaimKind.CLAIM and claim.verdict is not Verdict.NOT_CHECKABLE


class _Check:
    """The check of one claim, with the support values that it asked for."""

    def __init__(self, index: int, claim: Claim, support: Support, threshold: float) -> None:
        self._index = index
        self._claim = claim
        self._ask = support
        self._threshold = threshold
        self._memo: dict[frozenset[str], float | None] = {}
        resolved = (c.source_id for c in claim.citations if c.status is not CitationStatus.UNRESOLVED)
        self._cited = tuple(dict.fromkeys(source_id for source_id in resolved if source_id is not None))

    def run(self, mode: CitationMode, max_proposals: int) -> Claim:
        claim = self._claim
        if not _checkable(claim):
            return claim
        recall = self._recall()
        status = {source_id: self._status(source_id, recall) for source_id in self._cited}
        judged = tuple(self._judge(citation, status) for citation in claim.citations)
        wrong = (CitationStatus.UNRESOLVED, CitationStatus.NOT_SUPPORTING)
        proposals: tuple[str, ...] = ()
        # recall is None without citations, and where the cited sources could not be checked
        missing = not judged and mode == "required"
        if recall is False or missing or any(c.status in wrong for c in judged):
            proposals = self._proposals(max_proposals)
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
        return None if value is None else value >= self._threshold

    def _suffices(self, source_ids: tuple[str, ...]) -> bool | None:
        """Whether the joined sources support the claim; monotone, see the module's text."""
        if any(self._holds((source_id,)) for source_id in source_ids):
            return True
        return self._holds(source_ids)

    def _recall(self) -> bool | None:
        if self._cited:
            return self._suffices(self._cited)
        # unresolved markers alone support nothing; a record without a source says nothing
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

    def _proposals(self, limit: int) -> tuple[str, ...]:
        if self._claim.verdict in (Verdict.CONTRADICTED, Verdict.UNSUPPORTED):
            return ()
        seen = dict.fromkeys(e.source_id for e in self._claim.evidence if e.source_id not in self._cited)
        scored = [(self._support((source_id,)), source_id) for source_id in list(seen)[:limit]]
        good = [(score, source_id) for score, source_id in scored if score is not None]
        good = [pair for pair in good if pair[0] >= self._threshold]
        return tuple(source_id for _, source_id in sorted(good, key=lambda pair: -pair[0]))

    def _reasons(self, judged: Sequence[Citation], mode: CitationMode) -> tuple[Reason, ...]:
        added: list[Reason] = []
        if any(c.status is CitationStatus.UNRESOLVED for c in judged):
            added.append(Reason.UNRESOLVED_CITATION)
        if any(c.status is CitationStatus.NOT_SUPPORTING for c in judged):
            added.append(Reason.CITATION_NOT_SUPPORTING)
        if not judged and mode == "required":
            added.append(Reason.CITATION_MISSING)
        return tuple(dict.fromkeys([*self._claim.reasons, *added]))


def merge_citations(citations: Sequence[Citation], claims: Sequence[Claim]) -> tuple[Citation, ...]:
    """``citations`` in their order, each as the claim that it belongs to left it.

    Args:
        citations: all of the answer, from ``citations.resolve``.
        claims: from :func:`check_citations`.
    """
    judged = {(c.start, c.end, c.key): c for claim in claims for c in claim.citations if c.start >= 0}
    return tuple(judged.get((c.start, c.end, c.key), c) for c in citations)


def citation_figures(
    claims: Sequence[Claim], all_citations: Sequence[Citation], *, citations: CitationMode = "required"
) -> CitationFigures:
    """The figures of the answer.

    Args:
        claims: from :func:`check_citations`; those not checkable are passed over.
        all_citations: every citation, those outside claims included, from :func:`merge_citations`.
        citations: an answer without any citation has groundedness (and recall, where it has claims)
            0.0 with ``"required"`` and ``None`` with ``"optional"``.
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

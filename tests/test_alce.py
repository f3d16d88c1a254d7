from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.citations import assign, find_markers, resolve
from surefoot.citations.alce import CitationFigures, check_citations, citation_figures, merge_citations
from surefoot.schema import Citation, CitationStatus, Claim, ClaimKind, Evidence, Reason, Source, Verdict

Table = Mapping[str, float | None]


class Support:
    """Looks joined sources up in a table: ``"a b"`` is the support of both together, 0.0 by default."""

    def __init__(self, table: Table) -> None:
        self.table = {frozenset(names.split()): value for names, value in table.items()}
        self.calls: list[tuple[int, tuple[str, ...]]] = []

    def __call__(self, index: int, source_ids: tuple[str, ...]) -> float | None:
        self.calls.append((index, source_ids))
        return self.table.get(frozenset(source_ids), 0.0)


def cite(source_id: str | None, at: int = 0, score: float | None = None) -> Citation:
    status = CitationStatus.NOT_CHECKED if source_id else CitationStatus.UNRESOLVED
    return Citation(f"[{source_id}]", at, at + 3, source_id or "16", source_id, status, score)


def claim(*cited: str | None, evidence: str = "", verdict: Verdict = Verdict.SUPPORTED) -> Claim:
    found = tuple(Evidence(name, 0, 1, "x", 1.0, 0.9, 0.1, 0.0) for name in evidence.split())
    citations = tuple(cite(source_id, at * 3) for at, source_id in enumerate(cited))
    return Claim("Staff may fly.", 0, 14, verdict=verdict, evidence=found, citations=citations)


def run(subject: Claim, table: Table) -> tuple[Claim, list[str], Support]:
    support = Support(table)
    (result,) = check_citations([subject], support)
    return result, [citation.status.value for citation in result.citations], support


def test_single_supporting_source_takes_one_call() -> None:
    result, statuses, support = run(claim("a", evidence="a b"), {"a": 0.9})
    assert (result.citation_recall, statuses) == (True, ["supporting"])
    assert result.citations[0].verification_score == 0.9
    assert support.calls == [(0, ("a",))]
    assert (result.proposals, result.reasons) == ((), ())


def test_single_wrong_source_with_proposal() -> None:
    # the cited document is not the one that the answer came from
    result, statuses, _ = run(claim("a", evidence="b a c"), {"a": 0.1, "b": 0.6, "c": 0.8})
    assert (result.citation_recall, statuses) == (False, ["not_supporting"])
    assert result.proposals == ("b",)
    assert result.citations[0].proposal == "b"
    assert result.citations[0].source_id == "a"
    assert result.reasons == (Reason.CITATION_NOT_SUPPORTING,)


def test_sources_that_support_only_together_are_both_supporting() -> None:
    result, statuses, _ = run(claim("a", "b"), {"a": 0.2, "b": 0.3, "a b": 0.8})
    assert (result.citation_recall, statuses) == (True, ["supporting", "supporting"])
    assert [citation.verification_score for citation in result.citations] == [0.2, 0.3]


def test_a_source_that_can_be_left_out_is_irrelevant() -> None:
    result, statuses, support = run(claim("a", "b"), {"a": 0.9, "b": 0.1, "a b": 0.9})
    assert (result.citation_recall, statuses) == (True, ["supporting", "irrelevant"])
    assert support.calls == [(0, ("a",)), (0, ("b",))]
    assert result.citations[1].proposal is None


def test_leave_one_out_among_three() -> None:
    # a and b are needed together; c adds nothing
    table = {"a b": 0.8, "a b c": 0.8, "a c": 0.3, "b c": 0.2}
    result, statuses, support = run(claim("a", "b", "c"), table)
    assert (result.citation_recall, statuses) == (True, ["supporting", "supporting", "irrelevant"])
    asked = [frozenset(source_ids) for _, source_ids in support.calls]
    assert len(asked) == len(set(asked)) == 7  # three alone, all, three times all but one


def test_two_that_suffice_alone_are_both_supporting() -> None:
    result, statuses, _ = run(claim("a", "b"), {"a": 0.9, "b": 0.8, "a b": 0.9})
    assert (result.citation_recall, statuses) == (True, ["supporting", "supporting"])


def test_joining_is_monotone() -> None:
    result, statuses, _ = run(claim("a", "b"), {"a": 0.9, "b": 0.1, "a b": 0.3})
    assert (result.citation_recall, statuses) == (True, ["supporting", "irrelevant"])


def test_joined_sources_that_fail_are_all_not_supporting() -> None:
    result, statuses, support = run(claim("a", "b"), {"a": 0.2, "b": 0.3, "a b": 0.4})
    assert (result.citation_recall, statuses) == (False, ["not_supporting"] * 2)
    assert len(support.calls) == 3


def test_half_is_enough() -> None:
    at, below = (run(claim("a"), {"a": value})[0] for value in (0.5, 0.49))
    assert (at.citation_recall, below.citation_recall) == (True, False)


def test_the_same_source_twice_counts_as_one_in_the_join() -> None:
    result, statuses, support = run(claim("a", "a"), {"a": 0.9})
    assert (result.citation_recall, statuses) == (True, ["supporting", "supporting"])
    assert len(support.calls) == 1


def test_only_unresolved_markers() -> None:
    result, statuses, support = run(claim(None, evidence="a"), {"a": 0.9})
    assert (result.citation_recall, statuses) == (False, ["unresolved"])
    assert result.citations[0].proposal == "a"
    assert result.citations[0].verification_score is None
    assert result.proposals == ("a",)
    assert result.reasons == (Reason.UNRESOLVED_CITATION,)
    assert support.calls == [(0, ("a",))]


def test_unresolved_beside_a_good_one_leaves_recall() -> None:
    result, statuses, _ = run(claim("a", None, evidence="a b"), {"a": 0.9, "b": 0.7})
    assert (result.citation_recall, statuses) == (True, ["supporting", "unresolved"])
    assert [citation.proposal for citation in result.citations] == [None, "b"]
    assert result.proposals == ()  # the claim itself is cited well


def test_uncited_claim_gets_proposals() -> None:
    result, statuses, _ = run(claim(evidence="a b a"), {"a": 0.9, "b": 0.4})
    assert (result.citation_recall, statuses, result.proposals) == (None, [], ("a",))
    assert result.reasons == (Reason.CITATION_MISSING,)


def test_citations_optional_neither_flags_nor_asks() -> None:
    support = Support({"a": 0.9})
    (result,) = check_citations([claim(evidence="a")], support, citations="optional")
    assert (result.reasons, result.proposals, support.calls) == ((), (), [])


@pytest.mark.parametrize("verdict", [Verdict.CONTRADICTED, Verdict.UNSUPPORTED])
def test_a_false_claim_is_not_mended_by_a_citation(verdict: Verdict) -> None:
    result, _, _ = run(claim("a", evidence="b", verdict=verdict), {"b": 0.9})
    assert (result.proposals, result.citations[0].proposal) == ((), None)


def test_one_source_is_tried_as_a_proposal_and_never_a_cited_one() -> None:
    result, _, support = run(claim("a", evidence="a b c"), {"c": 0.9})
    assert result.proposals == ()
    assert support.calls == [(0, ("a",)), (0, ("b",))]


@pytest.mark.parametrize(
    "skipped", [claim("a", verdict=Verdict.NOT_CHECKABLE), replace(claim("a"), kind=ClaimKind.QUESTION)]
)
def test_what_is_not_checkable_is_left_alone(skipped: Claim) -> None:
    support = Support({"a": 0.9})
    assert check_citations([skipped], support) == (skipped,)
    assert support.calls == []


@pytest.mark.parametrize("broken", [None, math.nan, math.inf, -0.1, 1.5])
def test_a_checker_that_broke_decides_nothing(broken: float | None) -> None:
    result, statuses, _ = run(claim("a", None), {"a": broken})
    assert (result.citation_recall, statuses) == (None, ["not_checked", "unresolved"])
    assert result.citations[0].verification_score is None


def test_one_unknown_source_beside_a_sufficient_one() -> None:
    result, statuses, _ = run(claim("a", "b"), {"a": 0.9, "b": None})
    assert (result.citation_recall, statuses) == (True, ["supporting", "not_checked"])


def test_unknown_leave_one_out_decides_nothing_for_that_citation() -> None:
    table = {"a b c": 0.9, "a b": None}
    _, statuses, _ = run(claim("a", "b", "c"), table)
    assert statuses == ["supporting", "supporting", "not_checked"]


def test_the_callers_score_is_kept_and_does_not_decide() -> None:
    given_score = replace(claim(), citations=(cite("a", score=0.95),))
    result, statuses, _ = run(given_score, {"a": 0.1})
    assert statuses == ["not_supporting"]
    assert result.citations[0].verification_score == 0.95


def test_reasons_are_appended_once_and_the_first_stays() -> None:
    subject = replace(claim(None), reasons=(Reason.ENTAILED, Reason.UNRESOLVED_CITATION))
    result, _, _ = run(subject, {})
    assert result.reasons == (Reason.ENTAILED, Reason.UNRESOLVED_CITATION)


def test_indices_and_inputs() -> None:
    subjects = [claim("a"), claim("b")]
    before = list(subjects)
    support = Support({"a": 0.9, "b": 0.9})
    results = check_citations(subjects, support)
    assert support.calls == [(0, ("a",)), (1, ("b",))]
    assert subjects == before
    assert len(results) == 2
    with pytest.raises(FrozenInstanceError):
        results[0].citation_recall = None  # type: ignore[misc]


def figures(subjects: list[Claim], table: Table, mode: str = "required") -> CitationFigures:
    claims = check_citations(subjects, Support(table), citations=mode)  # type: ignore[arg-type]
    every = [citation for subject in claims for citation in subject.citations]
    return citation_figures(claims, every, citations=mode)  # type: ignore[arg-type]


class TestFigures:
    def test_by_hand(self) -> None:
        subjects = [claim("a"), claim("a", "b"), claim(None), claim()]
        # claims: 1, 1, 0, uncited 0; citations: supporting, supporting, irrelevant, unresolved
        got = figures(subjects, {"a": 0.9, "b": 0.1})
        assert got.recall == 0.5
        assert got.precision == 0.5
        assert got.groundedness == pytest.approx((0.9 + 0.9 + 0.1 + 0.0) / 4)
        assert got.uncited_claims == 1

    def test_an_answer_without_citations(self) -> None:
        assert figures([claim()], {}) == CitationFigures(0.0, None, 0.0, 1)
        assert figures([claim()], {}, "optional") == CitationFigures(None, None, None, 1)

    def test_optional_citations_count_where_there_are_some(self) -> None:
        assert figures([claim("a"), claim()], {"a": 0.8}, "optional") == CitationFigures(0.5, 1.0, 0.8, 1)

    def test_nothing_checkable(self) -> None:
        heading = replace(claim("a"), kind=ClaimKind.HEADING, verdict=Verdict.NOT_CHECKABLE)
        assert figures([heading], {"a": 0.9}) == CitationFigures(None, None, None, 0)
        assert citation_figures([], []) == CitationFigures(None, None, 0.0, 0)

    def test_what_could_not_be_checked_is_left_out(self) -> None:
        assert figures([claim("a"), claim("b")], {"a": 0.8, "b": None}) == CitationFigures(1.0, 1.0, 0.8, 0)

    def test_scores_of_records_outside_claims_count(self) -> None:
        record = Citation("", -1, -1, "a", "a", CitationStatus.NOT_CHECKED, 0.4)
        assert citation_figures([], [record]).groundedness == 0.4

    def test_a_callers_score_does_not_rescue_an_unresolved_citation(self) -> None:
        assert citation_figures([], [cite(None, score=0.9)]).groundedness == 0.0


def test_merge_keeps_order_and_those_outside_claims() -> None:
    outside = cite("z", 40)
    record = Citation("", -1, -1, "a", "a", CitationStatus.NOT_CHECKED, 0.4)
    claims = check_citations([claim("a", "b")], Support({"a": 0.9}))
    merged = merge_citations((*claim("a", "b").citations, outside, record), claims)
    assert merged == (*claims[0].citations, outside, record)


def test_from_answer_to_figures() -> None:
    answer = "Refunds take 30 days. [2] Staff may fly [1, 2]. It is free [16]."
    sources = (Source("fly", "Staff may fly."), Source("pay", "Nothing."), Source("refund", "30 days."))
    markers = find_markers(answer)
    citations = resolve(markers, sources)
    segments = [(0, 21), (26, 47), (48, len(answer))]
    claims = []
    for (start, end), owned in zip(segments, assign(markers, segments, answer), strict=True):
        mine = [c for c in citations if any(c.start == markers[number].start for number in owned)]
        found = (Evidence("refund", 0, 8, "30 days.", 1.0, 0.9, 0.1, 0.0),)
        claims.append(Claim(answer[start:end], start, end, citations=tuple(mine), evidence=found))

    def support(index: int, source_ids: tuple[str, ...]) -> float:
        return 0.9 if {0: "refund", 1: "fly", 2: "?"}[index] in source_ids else 0.1

    checked = check_citations(claims, support)
    merged = merge_citations(citations, checked)
    assert [(c.key, c.status.value, c.proposal) for c in merged] == [
        ("2", "not_supporting", "refund"),
        ("1", "supporting", None),
        ("2", "irrelevant", None),
        ("16", "unresolved", None),
    ]
    got = citation_figures(checked, merged)
    assert (got.recall, got.precision) == (pytest.approx(1 / 3), 0.25)
    assert got.groundedness == pytest.approx((0.1 + 0.9 + 0.1 + 0.0) / 4)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", None]), max_size=5),
    st.lists(st.sampled_from("abcd"), max_size=4),
    st.dictionaries(
        st.frozensets(st.sampled_from("abcd"), min_size=1), st.none() | st.floats(0, 1), max_size=15
    ),
)
def test_invariants(cited: list[str | None], evidence: list[str], table: dict[frozenset[str], float]) -> None:
    result, _, support = run(
        claim(*cited, evidence=" ".join(evidence)), {" ".join(names): value for names, value in table.items()}
    )
    statuses = {citation.status for citation in result.citations}
    if result.citation_recall is not True:
        assert not statuses & {CitationStatus.SUPPORTING, CitationStatus.IRRELEVANT}
    if result.citation_recall is not False:
        assert CitationStatus.NOT_SUPPORTING not in statuses
    for old, new in zip(claim(*cited).citations, result.citations, strict=True):
        assert (old.key, old.source_id, old.start) == (new.key, new.source_id, new.start)
        assert new.proposal not in cited or new.proposal is None
    for proposal in result.proposals:
        assert (table.get(frozenset({proposal})) or 0.0) >= 0.5
    asked = [frozenset(source_ids) for _, source_ids in support.calls]
    assert len(asked) == len(set(asked))

"""The verifier end to end on the bundled model: figures, undefined cases, bad input, properties."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Source, Verdict, Verifier
from surefoot.errors import ConfigurationError, InputError, ModelError
from surefoot.inference.entailment import Entailment, NliModel
from surefoot.schema import CitationStatus, ClaimKind, Reason, RiskLevel, TruthfulnessReport
from surefoot.verify.check import ALL_STEPS

REFUNDS = (
    "Customers may return goods within ten days of delivery. A restocking fee of 5% applies to opened items. "
    "Refunds are paid to the original card within five business days."
)
HOURS = (
    "The office opens at 9 a.m. and closes at 5 p.m. from Tuesday to Saturday. Visitors may park for free."
)


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return Verifier()


def check_offsets(report: TruthfulnessReport, answer: str) -> None:
    texts = {source.id: source.text for source in report.sources}
    assert report.answer == answer
    previous = 0
    for claim in report.claims:
        assert answer[claim.start : claim.end] == claim.text
        assert claim.start >= previous
        previous = claim.end
        for evidence in claim.evidence:
            assert texts[evidence.source_id][evidence.start : evidence.end] == evidence.text
    for citation in report.citations:
        if citation.start >= 0:
            assert answer[citation.start : citation.end] == citation.marker
    json.loads(report.to_json())


def test_a_supported_and_a_wrong_claim(verifier: Verifier) -> None:
    answer = (
        "A restocking fee of 5% applies to opened items [1]. "
        "You can return goods within 15 days of delivery [1]."
    )
    report = verifier.verify(answer, [REFUNDS, HOURS])
    right, wrong = report.claims
    assert right.verdict is Verdict.SUPPORTED
    assert right.evidence[0].text == "A restocking fee of 5% applies to opened items."
    assert right.citations[0].status is CitationStatus.SUPPORTING
    assert wrong.verdict is Verdict.CONTRADICTED
    assert Reason.NUMBER_MISMATCH in wrong.reasons or Reason.CONTRADICTED_BY_EVIDENCE in wrong.reasons
    assert wrong.citations[0].status is CitationStatus.NOT_SUPPORTING
    assert report.nli_faithfulness == 0.5
    assert report.risk_level is RiskLevel.MEDIUM
    assert not report.degraded
    check_offsets(report, answer)


def test_the_score_is_the_stated_formula(verifier: Verifier) -> None:
    report = verifier.verify(
        "A fee of 5% applies to opened items [1]. Dogs and cats are welcome everywhere [2].", [REFUNDS, HOURS]
    )
    assert report.nli_faithfulness is not None
    assert report.citation_groundedness is not None
    scores = [citation.verification_score for citation in report.citations]
    assert report.citation_groundedness == pytest.approx(sum(s for s in scores if s is not None) / 2)
    assert report.score == round(0.6 * report.nli_faithfulness + 0.4 * report.citation_groundedness, 3)
    assert report.as_scores() == {
        "score": report.score,
        "nli_faithfulness": report.nli_faithfulness,
        "citation_groundedness": report.citation_groundedness,
        "uncited_claims": 0,
    }


def test_without_citations_groundedness_is_zero_or_dropped() -> None:
    answer = "A restocking fee of 5% applies to opened items."
    required = Verifier().verify(answer, [REFUNDS])
    assert required.citation_groundedness == 0
    assert required.score == 0.6
    assert required.uncited_claims == 1
    assert Reason.NO_CITATIONS in required.reasons
    optional = Verifier(citations="optional").verify(answer, [REFUNDS])
    assert optional.citation_groundedness is None
    assert optional.score == 1.0


def test_records_with_a_position_belong_to_the_claim_around_it(verifier: Verifier) -> None:
    answer = "A restocking fee of 5% applies to opened items. The office opens at 9 a.m. on Tuesdays."
    first, second = answer.index(" The office"), len(answer)
    records = [
        {"source_id": "1", "start": first, "end": first, "verification_score": 0.9},
        {"source_id": "2", "start": first + 1, "end": second},
    ]
    report = verifier.verify(answer, [REFUNDS, HOURS], citations=records)
    check_offsets(report, answer)
    fee, hours = report.claims
    assert [c.source_id for c in fee.citations] == ["1"]
    assert [c.source_id for c in hours.citations] == ["2"]
    assert fee.citations[0].verification_score == 0.9
    assert hours.citations[0].status is CitationStatus.SUPPORTING
    assert report.uncited_claims == 0
    assert [c.status for c in report.citations] == [CitationStatus.SUPPORTING] * 2


def test_a_position_outside_the_answer_is_an_error(verifier: Verifier) -> None:
    with pytest.raises(InputError, match=r"lies outside the answer of 12 characters"):
        verifier.verify("Twelve chars", ["Source."], citations=[{"source_id": "1", "start": 3, "end": 13}])


def test_a_deadline_that_passes_before_the_citations_degrades(verifier: Verifier) -> None:
    verifier.load()
    answer = "A restocking fee of 5% applies to opened items [2]. The office opens at 9 a.m. [1]."
    late = Verifier(deadline=3.0)
    report = late.verify(answer, [REFUNDS, HOURS], progress=lambda done, total: time.sleep(3.1))
    assert all(Reason.DEADLINE not in claim.reasons for claim in report.claims)
    assert {c.status for c in report.citations} == {CitationStatus.NOT_CHECKED}
    assert report.degraded
    assert Reason.DEADLINE in report.reasons
    assert Reason.CHECKER_FAILED not in report.reasons
    assert report.score is None


def test_records_of_the_callers_own_count_as_citations(verifier: Verifier) -> None:
    report = verifier.verify(
        "A restocking fee of 5% applies to opened items.",
        [REFUNDS],
        citations=[
            {"source_id": "1", "verification_score": 0.8},
            {"source_id": "1", "verification_score": 0.4},
        ],
    )
    assert report.citation_groundedness == pytest.approx(0.6)


def test_a_wrong_citation_gets_a_proposal(verifier: Verifier) -> None:
    report = verifier.verify("A restocking fee of 5% applies to opened items [2].", [REFUNDS, HOURS])
    assert report.citations[0].status is CitationStatus.NOT_SUPPORTING
    assert report.citations[0].proposal == "1"
    assert Reason.CITATION_NOT_SUPPORTING in report.claims[0].reasons


def test_an_out_of_range_citation_is_unresolved(verifier: Verifier) -> None:
    report = verifier.verify("A restocking fee of 5% applies to opened items [16].", [REFUNDS, HOURS])
    assert report.citations[0].status is CitationStatus.UNRESOLVED
    assert report.citations[0].source_id is None
    assert report.citation_groundedness == 0


def test_a_claim_may_rest_on_two_sources() -> None:
    first = "Marie Curie was born in Warsaw in 1867."
    second = "Marie Curie won the Nobel Prize in Physics in 1903."
    verifier = Verifier(steps=ALL_STEPS - {"window"})
    claim = verifier.verify(
        "Marie Curie was born in Warsaw and won the Nobel Prize in Physics.", [first, second]
    ).claims[0]
    assert {evidence.source_id for evidence in claim.evidence} == {"1", "2"}
    # Both sentences were read in one premise: each alone cannot support the claim.
    assert len({(e.entailment, e.neutral, e.contradiction) for e in claim.evidence}) == 1


@pytest.mark.parametrize(
    ("claim", "premises"),
    [("The family from Lyon took the cat Minka home.", 3), ("Rex is a young dog.", 2)],
)
def test_the_passage_around_the_second_sentence_is_read_only_where_the_claim_would_fail(
    claim: str, premises: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = "The shelter keeps its own records of every animal that comes and goes. " * 6
    sources = [
        f"Rex is a young dog that was found in March. {noise}",
        f"A family from Lyon came to the shelter in spring. {noise} Rex was the one they took home.",
        f"Families adopt cats in Lyon more often than dogs. {noise}",
    ]
    read: list[tuple[str, str]] = []
    score = NliModel.score

    def watched(self: NliModel, pairs: Sequence[tuple[str, str]], **kwargs: Any) -> list[Entailment]:
        read.extend(pairs)
        return score(self, pairs, **kwargs)

    monkeypatch.setattr(NliModel, "score", watched)
    Verifier().check_claims([claim], sources)
    assert len({premise for premise, text in read if text == claim}) == premises
    read.clear()
    without = Verifier(steps=ALL_STEPS - {"second_window"})
    without.check_claims([claim], sources)
    assert len({premise for premise, text in read if text == claim}) == 2
    read.clear()
    Verifier(steps=ALL_STEPS - {"window"}).check_claims([claim], sources)
    assert len({premise for premise, text in read if text == claim}) == 1, "no window, no second one"


def test_late_evidence_in_a_long_source_is_found(verifier: Verifier) -> None:
    filler = " ".join(f"Paragraph {i} deals with matters of inventory and shelving." for i in range(400))
    report = verifier.verify("Opened items carry a restocking fee of 5%.", [f"{filler}\n\n{REFUNDS}"])
    assert report.claims[0].verdict is Verdict.SUPPORTED


@pytest.mark.parametrize("answer", [None, "", " \n\t "])
def test_an_empty_answer_is_undefined(verifier: Verifier, answer: str | None) -> None:
    report = verifier.verify(answer, [REFUNDS])
    assert report.score is None
    assert report.nli_faithfulness is None
    assert report.coverage is None
    assert report.risk_level is RiskLevel.UNKNOWN
    assert Reason.EMPTY_ANSWER in report.reasons
    assert report.claims == ()


@pytest.mark.parametrize("sources", [[], [None], [""], ["  ", None]])
def test_no_source_is_undefined_never_correct(verifier: Verifier, sources: list[Any]) -> None:
    report = verifier.verify("A restocking fee of 5% applies to opened items [1].", sources)
    assert report.score is None
    assert report.nli_faithfulness is None
    assert report.risk_level is RiskLevel.UNKNOWN
    assert Reason.NO_SOURCES in report.reasons
    assert [claim.verdict for claim in report.claims] == [Verdict.REVIEW]
    assert len(report.sources) == len(sources)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("Hello there! How can I help you?", None),
        ("What is the refund period for opened goods?", ClaimKind.QUESTION),
        ("The documents do not say anything about refunds for pets.", ClaimKind.REFUSAL),
        ("# Refunds and returns", ClaimKind.HEADING),
        ("```python\nx = 1\n```", ClaimKind.CODE),
    ],
)
def test_nothing_checkable_is_undefined(verifier: Verifier, answer: str, kind: ClaimKind | None) -> None:
    report = verifier.verify(answer, [REFUNDS])
    assert report.score is None
    assert report.coverage == 0
    assert Reason.NO_CHECKABLE_CLAIM in report.reasons
    assert all(claim.verdict is Verdict.NOT_CHECKABLE for claim in report.claims)
    if kind is not None:
        assert kind in {claim.kind for claim in report.claims}


def test_not_checkable_parts_are_left_out_of_the_denominator(verifier: Verifier) -> None:
    report = verifier.verify(
        "Hello! A restocking fee of 5% applies to opened items. Anything else?", [REFUNDS]
    )
    assert report.nli_faithfulness == 1.0
    assert report.coverage is not None
    assert 0 < report.coverage < 1


def test_a_foreign_claim_is_for_review(verifier: Verifier) -> None:
    answer = "Die Rückgabe ist innerhalb von zehn Tagen nach der Lieferung möglich."
    claim = verifier.verify(answer, [REFUNDS]).claims[0]
    assert claim.verdict is Verdict.REVIEW
    assert claim.reasons[0] is Reason.LANGUAGE
    other = Verifier(multilingual=True).verify(answer, [REFUNDS]).claims[0]
    assert Reason.LANGUAGE not in other.reasons


def test_an_overlong_claim_is_for_review_not_cut(verifier: Verifier) -> None:
    claim = verifier.check_claims(["the fee of five percent applies to goods " * 80], [REFUNDS])[0]
    assert claim.verdict is Verdict.REVIEW
    assert claim.reasons == (Reason.CLAIM_TOO_LONG,)


def test_claims_beyond_the_limit_are_for_review_and_degrade() -> None:
    answer = "A restocking fee of 5% applies to opened items. " * 3
    report = Verifier(max_claims=1).verify(answer, [REFUNDS])
    assert [claim.verdict for claim in report.claims] == [Verdict.SUPPORTED, Verdict.REVIEW, Verdict.REVIEW]
    assert report.degraded
    assert Reason.TOO_MANY_CLAIMS in report.reasons


def test_a_deadline_that_has_passed_leaves_review() -> None:
    answer = "\n\n".join(f"Fee number {i} of 5% applies to opened items." for i in range(60))
    report = Verifier(deadline=1e-9).verify(answer, [REFUNDS])
    assert report.degraded
    assert Reason.DEADLINE in report.reasons
    assert {claim.verdict for claim in report.claims} == {Verdict.REVIEW}


def test_progress_reaches_the_end(verifier: Verifier) -> None:
    steps: list[tuple[int, int]] = []
    answer = "\n\n".join(f"Fee number {i} of 5% applies to opened items." for i in range(40))
    verifier.verify(answer, [REFUNDS], progress=lambda *step: steps.append(step))
    assert steps[-1] == (40, 40)
    assert len(steps) > 1


def test_exhaustive_reaches_the_same_verdicts_on_clear_cases(verifier: Verifier) -> None:
    answer = (
        "A restocking fee of 5% applies to opened items. You can return goods within 15 days of delivery."
    )
    selected = verifier.verify(answer, [REFUNDS, HOURS])
    exhaustive = verifier.verify(answer, [REFUNDS, HOURS], exhaustive=True)
    assert [claim.verdict for claim in selected.claims] == [claim.verdict for claim in exhaustive.claims]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, ["a"]), "answer must be a string"),
        (("a", "one text"), "sources must be a list"),
        (("a", [1]), r"sources\[0\]"),
    ],
)
def test_wrong_types_are_refused(verifier: Verifier, arguments: tuple[Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        verifier.verify(*arguments)


@pytest.mark.parametrize(
    "options",
    [{"citations": "never"}, {"threads": 0}, {"max_claims": -1}, {"deadline": 0}, {"steps": {"magic"}}],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Verifier(**options)


def test_an_unknown_model_is_an_error_not_a_score() -> None:
    with pytest.raises(ModelError):
        Verifier("no-such-model").verify("A fee applies to opened items.", [REFUNDS])


def test_inputs_are_not_changed(verifier: Verifier) -> None:
    sources: list[Any] = [{"text": REFUNDS, "page": 3, "metadata": {"a": [1]}}, None, Source("x", HOURS)]
    citations = [{"source_id": "x", "verification_score": 0.5}]
    before = copy.deepcopy((sources, citations))
    verifier.verify("Visitors may park for free at the office.", sources, citations=citations)
    assert (sources, citations) == before


def test_duplicate_ids_are_told_apart_and_said(verifier: Verifier) -> None:
    sources = [{"id": "a", "text": REFUNDS}, {"id": "a", "text": HOURS}]
    report = verifier.verify("Visitors may park for free at the office.", sources)
    assert Reason.DUPLICATE_SOURCE_ID in report.reasons
    assert report.claims[0].evidence[0].source_id == "a#2"
    check_offsets(report, report.answer)


ODD = [
    "Fee \ud800 of 5% applies to opened items. And a second sentence follows here.",
    "NUL \0 and \x1b[31m control \x07 characters stand in this sentence.",
    "\u202eevil text reversed here now\u202c. Another sentence follows after that.",
    "Cafe\u0301 re\u0301sume\u0301 nai\u0308ve words combine in this sentence.",
    "السعر خمسة في المئة من القيمة. A fee of 5% applies to opened items.",
    "\ufeffA fee of 5% applies to opened items.\r\nAnother line\u2028and another one here.",
    "👩‍👩‍👧‍👦 family emoji stand in this long sentence 🎉. Done with it all now.",
]


@pytest.mark.parametrize("text", ODD)
def test_odd_text_on_both_sides(verifier: Verifier, text: str) -> None:
    report = verifier.verify(text, [text, REFUNDS])
    check_offsets(report, text)
    assert report.claims


@settings(max_examples=60)
@given(st.text(max_size=300), st.lists(st.one_of(st.none(), st.text(max_size=200)), max_size=4))
def test_any_text_gives_a_report_with_exact_offsets(answer: str, sources: list[str | None]) -> None:
    report = Verifier().verify(answer, sources)
    check_offsets(report, answer)
    assert len(report.sources) == len(sources)


WORDS = [
    "fee",
    "opened",
    "items",
    "ten",
    "days",
    "the",
    "of",
    "applies",
    "return",
    "goods",
    "[1]",
    "5%",
    "not",
]


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(st.sampled_from(WORDS), min_size=4, max_size=9).map(lambda w: " ".join(w) + "."), max_size=3
    ),
    st.permutations(
        [REFUNDS, HOURS, "Opened goods are not returned after ten days.", "Items cost five dollars."]
    ),
)
def test_the_order_of_sources_changes_no_verdict(sentences: list[str], sources: list[str]) -> None:
    verifier = Verifier()
    answer = " ".join(sentences)

    def outcome(given: list[str]) -> list[tuple[str, float | None]]:
        return [(claim.verdict, claim.support) for claim in verifier.verify(answer, given).claims]

    assert outcome(sources) == outcome(sorted(sources))


def test_the_same_answer_from_many_threads(verifier: Verifier) -> None:
    answer = "A restocking fee of 5% applies to opened items. Visitors may park for free."
    expected = [claim.support for claim in verifier.verify(answer, [REFUNDS, HOURS]).claims]
    with ThreadPoolExecutor(16) as pool:
        reports = list(pool.map(lambda _: verifier.verify(answer, [REFUNDS, HOURS]), range(64)))
    assert all([claim.support for claim in report.claims] == expected for report in reports)


def test_verifiers_share_one_model() -> None:
    first, second = Verifier(), Verifier()
    first.load()
    second.load()
    assert first.is_loaded
    assert first._model is second._model


def test_a_10_mb_source(verifier: Verifier) -> None:
    filler = "The quick brown fox jumps over the lazy dog near the river bank today. " * 70_000
    source = filler[:5_000_000] + REFUNDS + " " + filler[:5_000_000]
    report = verifier.verify("A restocking fee of 5% applies to opened items.", [source])
    assert report.claims[0].verdict is Verdict.SUPPORTED
    check_offsets(report, report.answer)


def test_5000_sources(verifier: Verifier) -> None:
    sources = [
        f"Record {i}: the parcel weighs {i} grams and ships from depot {i % 17}." for i in range(5_000)
    ]
    sources[3_210] = REFUNDS
    report = verifier.verify("A restocking fee of 5% applies to opened items.", sources)
    assert report.claims[0].verdict is Verdict.SUPPORTED
    assert report.claims[0].evidence[0].source_id == "3211"
    assert len(report.sources) == 5_000


def test_2000_claims_each_get_a_verdict(verifier: Verifier) -> None:
    answer = "\n".join(f"- Fee number {i % 40} of 5% applies to opened items." for i in range(2_000))
    report = verifier.verify(answer, [REFUNDS])
    assert len(report.claims) == 2_000
    assert all(claim.support is not None for claim in report.claims)
    check_offsets(report, answer)


def test_exhaustive_citation_scores_come_from_the_cited_source_alone(verifier: Verifier) -> None:
    report = verifier.verify(
        "A restocking fee of 5% applies to opened items [2].", [REFUNDS, HOURS], exhaustive=True
    )
    assert report.citations[0].status is CitationStatus.NOT_SUPPORTING


def test_check_claims_takes_any_iterable_and_names_bad_items(verifier: Verifier) -> None:
    claims = verifier.check_claims((text for text in ["A fee of 5% applies to opened items.", ""]), [REFUNDS])
    assert [claim.verdict for claim in claims] == [Verdict.SUPPORTED, Verdict.NOT_CHECKABLE]
    with pytest.raises(InputError, match=r"claims\[1\] must be a string"):
        verifier.check_claims(["a", 5], [REFUNDS])  # type: ignore[list-item]
    with pytest.raises(InputError, match="not one string"):
        verifier.check_claims("one claim", [REFUNDS])
    assert verifier.check_claims(["A fee applies to goods."], [])[0].reasons == (Reason.NO_SOURCES,)


def test_a_foreign_answer_degrades_the_report(verifier: Verifier) -> None:
    report = verifier.verify(
        "Die Rückgabe ist innerhalb von zehn Tagen nach der Lieferung möglich.", [REFUNDS]
    )
    assert report.degraded
    assert Reason.LANGUAGE in report.reasons


def test_metadata_that_json_cannot_say_does_not_stop_the_report(verifier: Verifier) -> None:
    source: dict[Any, Any] = {"text": REFUNDS, "distance": float("nan"), "when": object(), 5: "five"}
    source |= {"page": np.int64(3), "itself": source}
    report = verifier.verify("A restocking fee of 5% applies to opened items.", [source])
    metadata = json.loads(report.to_json())["sources"][0]["metadata"]
    assert (metadata["distance"], metadata["page"]) == ("nan", 3)


class _FailingModel:
    """Stands for a model that breaks on one claim: everything else goes to the real one."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def score(self, pairs: Any, **options: Any) -> Any:
        if any("opened" in claim for _, claim in pairs):
            raise ModelError("broken on purpose")
        return self._real.score(pairs, **options)


def test_a_broken_check_is_review_and_takes_nobody_along() -> None:
    verifier = Verifier()
    verifier.load()
    verifier._model = _FailingModel(verifier._model)  # type: ignore[assignment]
    report = verifier.verify(
        "A fee of 5% applies to opened goods [1]. Visitors may always park for free there [2].",
        [REFUNDS, HOURS],
    )
    broken, whole = report.claims
    assert broken.verdict is Verdict.REVIEW
    assert broken.reasons[0] is Reason.CHECKER_FAILED
    assert broken.support is None
    assert Reason.CHECKER_FAILED not in whole.reasons
    assert report.degraded
    assert Reason.CHECKER_FAILED in report.reasons

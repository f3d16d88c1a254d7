"""The decision rules, on made-up probabilities."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.evidence.index import Premise, Ranked, Sentence
from surefoot.evidence.lexicon import Tokens
from surefoot.facts import FactCheck, FactStatus
from surefoot.facts import FactMismatch as Mismatch
from surefoot.inference.entailment import Entailment
from surefoot.models.manifest import Calibration
from surefoot.models.monotone import Monotone
from surefoot.schema import Reason, Verdict
from surefoot.verify.decide import MISMATCH_SUPPORT, Scored, decide, doubtful, settled

PLAIN = Calibration(a=1.0, b=0.0, review_low=0.35, review_high=0.5, contradiction=0.5)


def scored(entailment: float, contradiction: float, relevance: float = 1.0) -> Scored:
    tokens = Tokens(None, None, 0, [])  # type: ignore[arg-type]
    part = Ranked(Sentence(0, 0, 1, "x", tokens, 0, 0), relevance, relevance)
    log_odds = math.log(entailment / (1 - entailment))
    return Scored(
        Premise("x", (part,)), Entailment(entailment, 1 - entailment - contradiction, contradiction, log_odds)
    )


def mismatch(kind: Reason) -> FactCheck:
    return FactCheck(FactStatus.DISAGREE, (Mismatch(kind, "15", "10", 0, 2),), 0, 1)


def test_no_premise_is_no_evidence() -> None:
    decision = decide([], None, PLAIN)
    assert decision.verdict is Verdict.UNSUPPORTED
    assert decision.reasons == (Reason.NO_RELEVANT_EVIDENCE,)
    assert decision.support == 0.0


@pytest.mark.parametrize(
    ("entailment", "verdict"),
    [(0.95, Verdict.SUPPORTED), (0.5, Verdict.SUPPORTED), (0.45, Verdict.REVIEW), (0.3, Verdict.UNSUPPORTED)],
)
def test_bands(entailment: float, verdict: Verdict) -> None:
    assert decide([scored(entailment, 0.01)], None, PLAIN).verdict is verdict


def test_the_best_premise_counts_not_the_worst_or_the_mean() -> None:
    decision = decide([scored(0.02, 0.01), scored(0.8, 0.01), scored(0.02, 0.01)], None, PLAIN)
    assert decision.verdict is Verdict.SUPPORTED
    assert decision.best is not None
    assert decision.best.score.entailment == 0.8


def test_contradiction_is_looked_at_first() -> None:
    lenient = replace(PLAIN, b=4.0)  # a support of 0.86 for this premise
    premise = [scored(0.1, 0.85)]
    decision = decide(premise, None, lenient)
    assert decision.verdict is Verdict.CONTRADICTED
    assert decision.support == MISMATCH_SUPPORT
    assert decide(premise, None, lenient, contradiction_first=False).verdict is Verdict.SUPPORTED


def test_the_premise_that_supports_best_decides_what_contradicts() -> None:
    other_reading = [scored(0.8, 0.05), scored(0.1, 0.85)]
    decision = decide(other_reading, None, PLAIN)
    assert decision.verdict is Verdict.SUPPORTED
    assert decision.contradiction == 0.05
    assert decide([scored(0.2, 0.7), scored(0.1, 0.85)], None, PLAIN).verdict is Verdict.CONTRADICTED


def test_contradiction_off_topic_does_not_count() -> None:
    assert decide([scored(0.1, 0.85, relevance=0.1)], None, PLAIN).verdict is Verdict.UNSUPPORTED


def test_a_claim_that_fails_is_called_contradicted_where_its_evidence_says_the_opposite() -> None:
    wary = replace(PLAIN, contradiction=0.9)
    assert decide([scored(0.2, 0.7)], None, wary).verdict is Verdict.CONTRADICTED
    assert decide([scored(0.2, 0.5)], None, wary).verdict is Verdict.UNSUPPORTED
    assert decide([scored(0.2, 0.7, relevance=0.1)], None, wary).verdict is Verdict.UNSUPPORTED
    # What is supported all the same, or nearly so, is not: from 0.9 on it would be.
    assert decide([scored(0.2, 0.7)], None, replace(wary, b=1.0)).verdict is Verdict.REVIEW
    assert decide([scored(0.2, 0.7)], None, replace(wary, b=4.0)).verdict is Verdict.SUPPORTED
    assert decide([scored(0.05, 0.94)], None, replace(wary, b=4.0)).verdict is Verdict.CONTRADICTED


def test_contradiction_by_the_best_premise_lowers_support_before_it_is_likely() -> None:
    terms = [
        {"input": "entailment", "sign": 1, "side": "any", "knots": [-6, 6], "rise": [6.0]},
        {"input": "contradiction_odds", "sign": -1, "side": "any", "knots": [-6, 6], "rise": [6.0]},
    ]
    data = {"bias": -6.0, "long_bias": 0.0, "long": [4.0, 5.5], "terms": terms}
    weighing = replace(PLAIN, kind="monotone", decision=Monotone.from_dict(data))
    features = {"aligned": 1.0, "unseen_near": 0.0, "overlap": 1.0, "source_words": 5.0}
    found = [
        decide([scored(0.5, against)], None, weighing, features=features).support
        for against in (0.05, 0.15, 0.25, 0.35, 0.45)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.7 > 0.4 > found[-1]
    # The odds are those of the premise that counts, not of one that says something else.
    both = decide([scored(0.5, 0.05), scored(0.1, 0.45)], None, weighing, features=features)
    assert both.support == found[0]


def test_two_sure_premises_at_odds_are_for_review() -> None:
    decision = decide([scored(0.97, 0.01), scored(0.01, 0.97)], None, PLAIN)
    assert decision.verdict is Verdict.REVIEW
    assert decision.best is not None
    assert decision.best.score.contradiction == 0.97, "the premise that objects is shown"
    assert decision.support < 0.5


@pytest.mark.parametrize("kind", [Reason.NUMBER_MISMATCH, Reason.UNIT_MISMATCH, Reason.DATE_MISMATCH])
def test_a_mismatch_outweighs_entailment(kind: Reason) -> None:
    decision = decide([scored(0.99, 0.001)], mismatch(kind), PLAIN)
    assert decision.verdict is Verdict.CONTRADICTED
    assert decision.reasons[0] is kind
    assert decision.support < 0.5


def test_a_name_mismatch_is_at_most_for_review() -> None:
    assert decide([scored(0.99, 0.001)], mismatch(Reason.NAME_MISMATCH), PLAIN).verdict is Verdict.REVIEW
    assert decide([scored(0.1, 0.001)], mismatch(Reason.NAME_MISMATCH), PLAIN).verdict is Verdict.UNSUPPORTED


@given(
    st.floats(min_value=0.001, max_value=0.998),
    st.sampled_from([None, *(mismatch(k) for k in Reason if k.value.endswith("_mismatch"))]),
)
def test_facts_never_raise_a_verdict(entailment: float, facts: FactCheck | None) -> None:
    order = [Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.REVIEW, Verdict.SUPPORTED]
    without = decide([scored(entailment, 0.0005)], None, PLAIN)
    with_facts = decide([scored(entailment, 0.0005)], facts, PLAIN)
    assert order.index(with_facts.verdict) <= order.index(without.verdict)
    assert with_facts.support <= without.support


def test_a_claim_is_doubtful_until_one_premise_makes_it_likely() -> None:
    assert doubtful([scored(0.49, 0.01), scored(0.2, 0.7)])
    assert not doubtful([scored(0.49, 0.01), scored(0.51, 0.01)])


def test_settled_only_when_sure_and_unopposed() -> None:
    assert settled([scored(0.95, 0.01)])
    assert not settled([scored(0.7, 0.01)])
    assert not settled([scored(0.95, 0.01), scored(0.1, 0.8)])

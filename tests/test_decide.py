"""The decision rules, on made-up probabilities."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.entailment import Entailment
from surefoot.evidence import Premise, Ranked, Sentence
from surefoot.facts import FactCheck, FactStatus
from surefoot.facts import FactMismatch as Mismatch
from surefoot.lexicon import Tokens
from surefoot.models.manifest import Calibration
from surefoot.schema import Reason, Verdict
from surefoot.verify.decide import Scored, decide, settled

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
    assert decision.support == pytest.approx(0.15), "no more than contradiction leaves"
    assert decide(premise, None, lenient, contradiction_first=False).verdict is Verdict.SUPPORTED


def test_the_premise_that_supports_best_decides_what_contradicts() -> None:
    other_reading = [scored(0.8, 0.05), scored(0.1, 0.85)]
    decision = decide(other_reading, None, PLAIN)
    assert decision.verdict is Verdict.SUPPORTED
    assert decision.contradiction == 0.05
    assert decide([scored(0.2, 0.7), scored(0.1, 0.85)], None, PLAIN).verdict is Verdict.CONTRADICTED


def test_contradiction_off_topic_does_not_count() -> None:
    assert decide([scored(0.1, 0.85, relevance=0.1)], None, PLAIN).verdict is Verdict.UNSUPPORTED


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


def test_settled_only_when_sure_and_unopposed() -> None:
    assert settled([scored(0.95, 0.01)])
    assert not settled([scored(0.7, 0.01)])
    assert not settled([scored(0.95, 0.01), scored(0.1, 0.8)])

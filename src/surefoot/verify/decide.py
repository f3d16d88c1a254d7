"""From scored premises and compared facts to a verdict: the rules, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from surefoot.evidence.index import Premise
from surefoot.facts import FactCheck
from surefoot.inference.entailment import Entailment
from surefoot.models.manifest import Calibration
from surefoot.schema import Reason, Verdict

__all__ = ["Decision", "Scored", "decide", "doubtful", "settled"]

_ON_TOPIC: Final = 0.4
"""Share of the claim's weighted words that a premise must cover before its contradiction counts: models
call two sentences about different things contradictory."""

_SURE: Final = 0.85
"""Probability of entailment from which no more premises are read, and beside which a contradiction is a
conflict. It is the model's own, not calibrated: it says how clear a premise is, not how often it is right."""

_AGAINST: Final = 0.6
"""Probability of contradiction from which a claim that fails anyway is called contradicted."""

_IRRELEVANT: Final = 0.15

VERBATIM_SUPPORT: Final = 0.95
"""Least support of a claim that stands word for word in a source."""

MISMATCH_SUPPORT: Final = 0.3
"""Most that support can be where a number, unit, date or sign of the claim disagrees with its evidence, or
the evidence contradicts it so clearly that support does not matter."""

NAME_SUPPORT: Final = 0.45
"""The same for a name: names vary too much in form for more than a review."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A premise with its probabilities."""

    premise: Premise
    score: Entailment


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on one claim; ``best`` is the premise that it rests on."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    support: float
    contradiction: float
    best: Scored | None


def settled(scored: Sequence[Scored]) -> bool:
    """Whether a further premise is not worth its cost: supported for sure, and nothing against it."""
    return max(item.score.entailment for item in scored) >= _SURE and _contradiction(scored) < 0.2


def doubtful(scored: Sequence[Scored]) -> bool:
    """Whether no premise makes the claim more likely entailed than not, by the model's own measure."""
    return max(item.score.log_odds for item in scored) < 0


def _capped(support: float, facts: FactCheck | None) -> float:
    """Support after the facts were compared; never raised."""
    if facts is None or not facts.mismatches:
        return support
    hard = any(mismatch.kind is not Reason.NAME_MISMATCH for mismatch in facts.mismatches)
    return min(support, MISMATCH_SUPPORT if hard else NAME_SUPPORT)


def decide(
    scored: Sequence[Scored],
    facts: FactCheck | None,
    calibration: Calibration,
    *,
    verbatim: bool = False,
    contradiction_first: bool = True,
    features: Mapping[str, float] | None = None,
) -> Decision:
    """Decide one claim.

    Contradiction is looked at first: a premise that contradicts a claim shares nearly all of its words, so
    that another premise easily passes as support. It counts where even the premise that supports the claim
    best contradicts it: premises of one claim overlap, and one that is read out of its context often seems
    to contradict what the fuller one says. From the calibration's threshold on it overrules support; where
    support fails by itself, less of it (:data:`_AGAINST`) makes the difference between a claim that its
    evidence contradicts and one that it does not bear.

    Args:
        scored: every premise that was read; may be empty.
        facts: comparison of the claim with its evidence, or ``None`` where it was not made.
        calibration: of the model.
        verbatim: a sentence of the sources says the claim word for word.
        contradiction_first: off, a contradiction overrules nothing that is supported; a calibration may still
            weigh it.
        features: of the claim, where the calibration asks for them.
    """
    if not scored:
        return Decision(Verdict.UNSUPPORTED, (Reason.NO_RELEVANT_EVIDENCE,), 0.0, 0.0, None)
    best = max(scored, key=lambda item: item.score.log_odds)
    if features is not None:
        features = {**features, "contradiction_odds": best.score.contradiction_odds}
    support = calibration.support(best.score.log_odds, features)
    contradiction = best.score.contradiction if best.premise.relevance >= _ON_TOPIC else 0.0
    if verbatim:
        return Decision(
            Verdict.SUPPORTED, (Reason.VERBATIM,), max(support, VERBATIM_SUPPORT), contradiction, best
        )
    mismatches = () if facts is None else facts.mismatches
    kinds = tuple(dict.fromkeys(mismatch.kind for mismatch in mismatches))
    if contradiction >= calibration.contradiction and (contradiction_first or support < 0.5):
        support = min(_capped(support, facts), MISMATCH_SUPPORT)
        reasons = (Reason.CONTRADICTED_BY_EVIDENCE, *kinds)
        return Decision(Verdict.CONTRADICTED, reasons, support, contradiction, best)
    opposed = _contradiction(scored)
    if best.score.entailment >= _SURE and opposed >= _SURE and not kinds:
        # Two premises at odds, each for sure: neither is believed, and the one that objects is shown.
        worst = next(item for item in scored if item.score.contradiction == opposed)
        return Decision(Verdict.REVIEW, (Reason.UNCERTAIN,), min(support, 0.49), opposed, worst)
    support = _capped(support, facts)
    hard = [kind for kind in kinds if kind is not Reason.NAME_MISMATCH]
    if hard:
        return Decision(Verdict.CONTRADICTED, kinds, support, contradiction, best)
    if support >= calibration.review_high:
        return Decision(Verdict.SUPPORTED, (Reason.ENTAILED,), support, contradiction, best)
    if support >= calibration.review_low:
        return Decision(Verdict.REVIEW, (*kinds, Reason.UNCERTAIN), support, contradiction, best)
    if contradiction >= _AGAINST:
        reasons = (Reason.CONTRADICTED_BY_EVIDENCE, *kinds)
        return Decision(Verdict.CONTRADICTED, reasons, support, contradiction, best)
    relevant = max(item.premise.relevance for item in scored) >= _IRRELEVANT
    reason = Reason.NO_SUPPORTING_EVIDENCE if relevant else Reason.NO_RELEVANT_EVIDENCE
    return Decision(Verdict.UNSUPPORTED, (reason, *kinds), support, contradiction, best)


def _contradiction(scored: Sequence[Scored]) -> float:
    return max(
        (item.score.contradiction for item in scored if item.premise.relevance >= _ON_TOPIC), default=0.0
    )

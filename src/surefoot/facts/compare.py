"""Facts of a claim against the sentences of its evidence.

A value only counts against the claim when a sentence about the same thing carries another one in
its place. Whatever cannot be bound like that is left open: a wrong alarm would strip true text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.facts.dates import compare_dates
from surefoot.facts.extract import Reading, read_sentence
from surefoot.facts.names import mentioned, rival_name
from surefoot.facts.negation import compare_polarity, has_negation, read_polarity
from surefoot.facts.records import Fact, FactCheck, FactMismatch, FactStatus
from surefoot.facts.values import compare_numbers, derivable
from surefoot.facts.words import word_set
from surefoot.schema import Reason

__all__ = ["compare_facts"]

_MAX_CLAIM_FACTS = 48
_MAX_PAIRS = 4096
"""Bound on (claim fact, evidence fact) pairs per claim, for texts that are tables."""
_RULE = word_set(
    "must require requires required minimum maximum eligible eligibility needs need limit shall may "
    "allowed entitled threshold qualify cannot permitted"
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A fact of the evidence next to a fact of the claim."""

    result: str
    sentence: int
    fact: Fact
    shared: frozenset[str]  # claim words in its clause
    cover: float  # share of the claim's words in its sentence
    near: int  # words next to both facts
    lead: frozenset[str]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a rival value must share with the claim; tuned on training data for precision."""

    number_cover: float = 0.5
    date_cover: float = 0.5
    name_cover: float = 0.75
    clause_share: float = 0.3
    clause_words: int = 1


_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class _Flip:
    """A sentence that says what the claim says, and where the two differ in sign, if they do."""

    sentence: int
    claim: tuple[int, int] | None
    evidence: tuple[int, int] | None


def _reason(claim: Fact, rival: _Candidate) -> Reason:
    if claim.kind in ("date", "time"):
        return Reason.DATE_MISMATCH
    if rival.result == "unit":
        return Reason.UNIT_MISMATCH
    return Reason.NUMBER_MISMATCH


def _near(a: Fact, b: Fact) -> int:
    return (
        len(a.after & b.after) + len(a.before & b.before) + len(a.after & b.before) + len(a.before & b.after)
    )


def _counts_same(claim: Fact, other: Fact) -> bool:
    """Whether two numbers count the same kind of thing, as far as the words next to them tell."""
    if claim.kind == "ordinal":
        return bool(claim.after & other.after)
    if claim.kind == "label" or claim.kind == "score":
        return True
    if claim.dimension == "count":
        if claim.after and other.after:
            return bool(claim.after & other.after)
        return bool(claim.before & other.before) and not (claim.after or other.after)
    return True


def _is_one(fact: Fact) -> bool:
    """Whether the number is a bare one, which is more often a pronoun or an article than a count."""
    return fact.dimension == "count" and fact.values == (1.0,)


def _candidates(claim: Reading, index: int, sentences: Sequence[Reading]) -> list[_Candidate]:
    fact = claim.facts[index]
    dated = fact.kind in ("date", "time")
    found: list[_Candidate] = []
    pairs = 0
    negated = has_negation(claim.words)
    told = claim.name_keys & claim.keys & frozenset().union(*(r.keys for r in sentences))
    for s, reading in enumerate(sentences):
        turned = negated != has_negation(reading.words)
        # The subject may be named in a sentence nearby and be a pronoun here.
        common = claim.keys & reading.keys | told
        cover = len(common) / len(claim.keys) if claim.keys else 0.0
        rule = bool(claim.words & _RULE and reading.words & _RULE)
        for k, other in enumerate(reading.facts):
            pairs += 1
            if pairs > _MAX_PAIRS:
                return found
            if dated != (other.kind in ("date", "time")):
                continue
            result = compare_dates(fact, other) if dated else compare_numbers(fact, other, rule=rule)
            if result == "unrelated" or (result in ("different", "unit") and (turned or _is_one(other))):
                continue  # "not 12" is true of an 11
            found.append(
                _Candidate(
                    result,
                    s,
                    other,
                    claim.keys & reading.clauses[k],
                    cover,
                    _near(fact, other),
                    reading.lead[k],
                )
            )
    return found


def _binds(claim: Reading, fact: Fact, rival: _Candidate) -> bool:
    """Whether the rival stands where the claim's fact would stand, so that it speaks against it."""
    dated = fact.kind in ("date", "time")
    if not claim.keys or rival.cover < (_LIMITS.date_cover if dated else _LIMITS.number_cover):
        return False
    if len(rival.shared) < _LIMITS.clause_words or len(rival.shared) < _LIMITS.clause_share * len(claim.keys):
        return False
    if dated:
        return True
    return _counts_same(fact, rival.fact) and (rival.near > 0 or fact.kind in ("label", "score"))


def _check_fact(claim: Reading, index: int, sentences: Sequence[Reading]) -> tuple[bool, _Candidate | None]:
    """Whether the fact was found, and what speaks against it."""
    fact = claim.facts[index]
    found = _candidates(claim, index, sentences)
    matches = [c for c in found if c.result == "same"]
    rivals = (
        []
        if _is_one(fact)
        else [c for c in found if c.result in ("different", "unit") and _binds(claim, fact, c)]
    )
    if not matches:
        if any(c.result == "close" for c in found) or not rivals:
            return False, None
        if fact.kind not in ("date", "time") and derivable(fact, [c.fact for c in found]):
            return False, None
        return False, max(rivals, key=lambda c: (c.cover, c.near, len(c.shared), -c.sentence))
    best = max(matches, key=lambda c: (len(c.shared), c.near, c.cover, -c.sentence))
    for rival in sorted(rivals, key=lambda c: (-len(c.shared), c.sentence)):
        if _beats(claim, fact, best, rival):
            return False, rival
    on_topic = best.cover >= 0.25 or best.near > 0 or not claim.keys
    return on_topic, None


def _beats(claim: Reading, fact: Fact, match: _Candidate, rival: _Candidate) -> bool:
    """Whether the right value stands on the wrong subject and the rival on the right one."""
    here = match.sentence == rival.sentence
    nouns = match.fact.after, fact.after
    other_noun = fact.dimension == "count" and all(nouns) and not nouns[0] & nouns[1]
    if here and other_noun and rival.fact.after & fact.after and match.shared <= rival.shared:
        return True  # "20 points and 10 rebounds" for "10 points": another noun is counted
    if not match.shared < rival.shared:
        return False
    extra = rival.shared - match.shared
    if here:
        own = match.lead - claim.keys
        return bool(own) and bool(extra & (claim.name_keys | rival.lead))
    return match.cover < 0.5 * rival.cover and len(extra) >= 2 and bool(match.lead - claim.keys)


def _check_name(claim: Reading, name: Fact, sentences: Sequence[Reading]) -> tuple[bool, Fact | None]:
    for reading in sentences:
        if mentioned(name, reading.words, reading.names):
            return True, None
    others = claim.keys - claim.name_keys
    if len(others) < 2:
        return False, None
    for reading in sentences:
        if len(others & reading.keys) < _LIMITS.name_cover * len(others):
            continue
        if has_negation(claim.words) != has_negation(reading.words):
            continue  # "not by A" is true of "by B"
        rival = rival_name(claim.tokens, name, reading.tokens, reading.names, claim.words)
        if rival is not None:
            return False, rival
    return False, None


def _check_polarity(claim: Reading, sentences: Sequence[Reading]) -> _Flip | None:
    """The polarity of the claim against the sentence that says the same; ``None``: no such sentence."""
    own = read_polarity(claim.tokens, claim.figures)
    worst: _Flip | None = None
    for index, reading in enumerate(sentences):
        if len(claim.keys & reading.keys) < 0.5 * len(claim.keys):
            continue
        other = read_polarity(reading.tokens, reading.figures)
        result, concept = compare_polarity(own, other)
        if result == "same":
            return _Flip(index, None, None)
        if result == "different" and worst is None:
            worst = _Flip(index, own.spans[concept], other.spans[concept])
    return worst


def compare_facts(claim: str, sentences: Sequence[str]) -> FactCheck:
    """Compare the numbers, dates, names and polarity of a claim with its evidence.

    Args:
        claim: one sentence, citation markers and list numbers removed.
        sentences: the evidence, one sentence per item. The order only decides which of several
            equally good mismatches is shown.

    Returns:
        The check. ``DISAGREE`` may lower a verdict; ``AGREE`` must never raise one, since facts may
        agree in a sentence that says something else.
    """
    if not claim.strip() or not sentences:
        return FactCheck(FactStatus.UNRELATED, (), 0, 0)
    reading = read_sentence(claim)
    evidence = [read_sentence(s) for s in sentences]
    if any(claim == s for s in sentences):
        total = min(len(reading.facts), _MAX_CLAIM_FACTS) + len(reading.names)
        return FactCheck(FactStatus.AGREE if total else FactStatus.UNRELATED, (), total, total)
    mismatches: list[FactMismatch] = []
    agreed = total = figures = figures_agreed = 0
    for index, fact in enumerate(reading.facts[:_MAX_CLAIM_FACTS]):
        ok, rival = _check_fact(reading, index, evidence)
        figures += 1
        figures_agreed += ok
        if rival is not None:
            mismatches.append(
                FactMismatch(_reason(fact, rival), fact.text, rival.fact.text, fact.start, fact.end)
            )
    names_agreed = 0
    for name in reading.names[:_MAX_CLAIM_FACTS]:
        ok, other = _check_name(reading, name, evidence)
        names_agreed += ok
        total += 1
        if other is not None:
            mismatches.append(FactMismatch(Reason.NAME_MISMATCH, name.text, other.text, name.start, name.end))
    total += figures
    agreed = figures_agreed + names_agreed
    flip = _check_polarity(reading, evidence)
    if flip is not None and not (flip.claim and figures_agreed < figures):
        # "not 12" is true of an 11: a sign only counts where the figures agree.
        total += 1
        agreed += flip.claim is None
        if flip.claim and flip.evidence:
            (start, end), (a, b) = flip.claim, flip.evidence
            shown = sentences[flip.sentence][a:b]
            mismatches.append(FactMismatch(Reason.NEGATION_MISMATCH, claim[start:end], shown, start, end))
    mismatches.sort(key=lambda m: (m.claim_start, m.claim_end))
    if mismatches:
        return FactCheck(FactStatus.DISAGREE, tuple(mismatches), agreed, total)
    complete = figures_agreed == figures if figures else agreed > 0
    status = FactStatus.AGREE if complete and agreed else FactStatus.UNRELATED
    return FactCheck(status, (), agreed, total)

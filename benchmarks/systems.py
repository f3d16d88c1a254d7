"""What is measured: surefoot, two trivial rules, and the straightforward NLI check.

A system answers two calls: ``claims`` checks claims that are given one by one, ``answer`` splits an answer
into claims by itself, as it would in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from benchmarks.datasets import AnswerRow, passages_of
from surefoot import Source, Verifier
from surefoot.inference.entailment import NliModel
from surefoot.models.manifest import resolve_model
from surefoot.schema import Claim, ClaimKind, Reason, Verdict
from surefoot.verify import ABLATIONS

__all__ = ["SYSTEMS", "AnswerClaim", "Outcome", "System", "build", "outcome_of"]

DECISION = 0.5
PASSAGE_TOKENS = 200
CUT = (512, 256)
"""Characters of a passage and of a claim that the straightforward check reads."""
FAULTS = frozenset(
    (Reason.CLAIM_TOO_LONG, Reason.LANGUAGE, Reason.TOO_MANY_CLAIMS, Reason.DEADLINE, Reason.CHECKER_FAILED)
)
STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being between both but by can could
    did do does during each for from had has have having he her here hers him his how i if in into is it its
    just me more most my no not of off on once only or other our out over own same she should so some such
    than that the their them then there these they this those through to too under until up very was we were
    what when where which while who whom why will with would you your s t
    """.split()
)
Scorer = Callable[[Sequence[tuple[str, str]]], list[float]]
"""(premise, claim) pairs -> probability of entailment of each."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a system says about a claim.

    Attributes:
        score: support, 0 to 1; 0 if the system abstained.
        supported: its decision.
        rejected: it abstained, or rejects the claim whatever the score: no threshold can bring it back.
    """

    score: float
    supported: bool
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """A claim that a system found in an answer, at ``answer[start:end]``."""

    start: int
    end: int
    outcome: Outcome


class System(Protocol):
    """One system under measurement."""

    def claims(self, premise: str, claims: Sequence[str]) -> list[Outcome]:
        """Check claims against one source."""

    def answer(self, row: AnswerRow) -> list[AnswerClaim]:
        """Split an answer into claims and check them against its context."""


class Rule:
    """A simple check of each claim by itself; an answer's claims are its sentences of at least four words."""

    def claims(self, premise: str, claims: Sequence[str]) -> list[Outcome]:
        return [self.check(premise, [premise], claim) for claim in claims]

    def answer(self, row: AnswerRow) -> list[AnswerClaim]:
        passages = passages_of(row.context)
        return [
            AnswerClaim(start, end, self.check(row.context, passages, row.answer[start:end]))
            for start, end in sentences(row.answer)
            if len(row.answer[start:end].split()) >= 4
        ]

    def check(self, context: str, passages: Sequence[str], claim: str) -> Outcome:
        """Check one claim against a context, which is given whole and by passage."""
        raise NotImplementedError


def _decided(score: float) -> Outcome:
    return Outcome(score, score >= DECISION)


class AlwaysSupported(Rule):
    """Everything is supported."""

    def check(self, context: str, passages: Sequence[str], claim: str) -> Outcome:
        del context, passages, claim
        return _decided(1.0)


class UnseenShare(Rule):
    """Support is the share of the claim's content words that occur anywhere in the source.

    Words are lower-cased runs of letters and digits without stop words. The threshold of 0.5 was set before
    anything was measured.
    """

    def check(self, context: str, passages: Sequence[str], claim: str) -> Outcome:
        del passages
        words = _content_words(claim)
        if not words:
            return Outcome(0.0, supported=False, rejected=True)
        return _decided(len(words & _content_words(context)) / len(words))


@lru_cache(maxsize=256)
def _content_words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower())) - STOP_WORDS


class Straightforward(Rule):
    """The usual NLI check: every passage against every claim, and the best entailment decides at 0.5.

    The source is cut at sentence ends into passages of at most 200 words and punctuation marks (about 250
    word pieces), as a store of chunks would hold it. Passages are then cut at 512 characters and claims at
    256. Each claim is one call of the model. The model is the bundled one; ``python -m benchmarks verify``
    shows that sentence-transformers computes the same with its weights.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def check(self, context: str, passages: Sequence[str], claim: str) -> Outcome:
        del context
        pairs = [(piece[: CUT[0]], claim[: CUT[1]]) for text in passages for piece in pack_passages(text)]
        return _decided(max(self._scorer(pairs))) if pairs else _decided(0.0)


class Surefoot:
    """A ``Verifier``, at its defaults or with some steps switched off."""

    def __init__(self, *, exhaustive: bool = False, **options: Any) -> None:
        self._exhaustive = exhaustive
        self._verifier = Verifier(**options)

    def claims(self, premise: str, claims: Sequence[str]) -> list[Outcome]:
        sources = [Source(id="1", text=premise)]
        checked = self._verifier.check_claims(list(claims), sources, exhaustive=self._exhaustive)
        return [outcome_of(claim) for claim in checked]

    def answer(self, row: AnswerRow) -> list[AnswerClaim]:
        sources = [Source(id=str(i), text=text) for i, text in enumerate(passages_of(row.context), start=1)]
        report = self._verifier.verify(
            row.answer, sources, question=row.question, exhaustive=self._exhaustive
        )
        return [
            AnswerClaim(claim.start, claim.end, outcome_of(claim))
            for claim in report.claims
            if claim.kind is ClaimKind.CLAIM and claim.verdict is not Verdict.NOT_CHECKABLE
        ]


def outcome_of(claim: Claim) -> Outcome:
    """How a verdict counts.

    A claim is supported if its verdict is ``supported``, or ``review`` with support of at least 0.5: what is
    left to a person counts as the model leans. A ``review`` because a step failed, and a text held not to be
    a claim, count as not supported with score 0.
    """
    support = claim.support
    faulty = support is None or not FAULTS.isdisjoint(claim.reasons)
    if claim.verdict is Verdict.NOT_CHECKABLE or (claim.verdict is Verdict.REVIEW and faulty):
        return Outcome(0.0, supported=False, rejected=True)
    if claim.verdict is Verdict.REVIEW:
        return _decided(support or 0.0)
    supported = claim.verdict is Verdict.SUPPORTED
    if support is None:  # decided without a probability
        return Outcome(float(supported), supported)
    rejected = claim.verdict is Verdict.CONTRADICTED or (not supported and support >= DECISION)
    return Outcome(support, supported, rejected)


STEPS = {re.sub(r"\W+", "_", f"ablation_{name}"): dict(options) for name, options in ABLATIONS.items()}
SYSTEMS = ("always_supported", "unseen_share", "straightforward", "exhaustive", "surefoot", *STEPS)


def build(name: str, *, model: str | None, threads: int | None) -> System:
    """Make one of :data:`SYSTEMS`; ``ablation_NAME`` is surefoot with that step switched off."""
    if name == "always_supported":
        return AlwaysSupported()
    if name == "unseen_share":
        return UnseenShare()
    if name == "straightforward":
        return Straightforward(nli_scorer(model, threads))
    return Surefoot(model=model, threads=threads, exhaustive=name == "exhaustive", **STEPS.get(name, {}))


def nli_scorer(model: str | None, threads: int | None) -> Scorer:
    """Entailment probabilities by a model of surefoot's; a premise that is too long is cut at its end."""
    nli = NliModel(resolve_model(model, task="nli"), threads=threads)

    def fitting(premise: str, claim: str) -> str:
        room = nli.pairs.room(claim)
        while len(premise) > room and nli.pairs.encoder.count([premise])[0] > room:
            premise = premise[:-16]
        return premise

    return lambda pairs: [
        found.entailment for found in nli.score([(fitting(*pair), pair[1]) for pair in pairs])
    ]


@lru_cache(maxsize=64)
def pack_passages(text: str, limit: int = PASSAGE_TOKENS) -> tuple[str, ...]:
    """Cut a text into passages of at most ``limit`` words and punctuation marks, at sentence ends.

    A sentence that is longer by itself is cut between words.
    """
    passages: list[str] = []
    start: int | None = None
    end = used = 0
    for first, last in sentences(text):
        tokens = [(first + m.start(), first + m.end()) for m in re.finditer(r"\w+|[^\w\s]", text[first:last])]
        for at in range(0, len(tokens), limit):
            piece = tokens[at : at + limit]
            if start is not None and used + len(piece) > limit:
                passages.append(text[start:end])
                start = None
            if start is None:
                start, used = piece[0][0], 0
            end, used = piece[-1][1], used + len(piece)
    if start is not None:
        passages.append(text[start:end])
    return tuple(passages)


def sentences(text: str) -> list[tuple[int, int]]:
    """Positions of sentences by the simple rule: a full stop, "!" or "?" before white space, or a newline."""
    found: list[tuple[int, int]] = []
    start = 0
    for gap in re.finditer(r"(?<=[.!?])\s+|\n+|\Z", text):
        piece = text[start : gap.start()]
        if piece.strip():
            lead = len(piece) - len(piece.lstrip())
            found.append((start + lead, start + len(piece.rstrip())))
        start = gap.end()
    return found

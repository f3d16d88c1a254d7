"""What surefoot is measured against: two trivial rules, and the straightforward NLI check.

A system answers two calls: ``claims`` for claims handed in one by one, ``answer`` for an answer that the
system segments itself, as it would in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from benchmarks.datasets import AnswerRow, passages_of

__all__ = [
    "AlwaysSupported",
    "AnswerClaim",
    "Outcome",
    "PairScorer",
    "Straightforward",
    "System",
    "UnseenShare",
    "cross_encoder_scorer",
    "pack_passages",
    "sentences",
]

DECISION = 0.5
PairScorer = Callable[[Sequence[tuple[str, str]]], list[float]]
"""(premise, claim) pairs -> probability of entailment of each."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a system says about a claim.

    Attributes:
        score: support, 0 to 1; 0 where the system abstained.
        supported: its decision; a claim left to a person is decided by ``score`` >= 0.5.
        strict: it released the claim by itself: what it left to a person counts as not released.
        abstained: it could not carry the check out, or held the text not to be a claim.
        review: it left the decision to a person.
        veto: it rejects the claim whatever the score, so that no threshold can bring it back.
    """

    score: float
    supported: bool
    strict: bool
    abstained: bool = False
    review: bool = False
    veto: bool = False


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """A claim that a system found in an answer, at ``answer[start:end]``."""

    start: int
    end: int
    outcome: Outcome


class System(Protocol):
    """One system under measurement."""

    name: str
    uses_surefoot: bool

    def describe(self) -> dict[str, object]:
        """Settings, as plain values: part of the result, and of what makes a checkpoint valid."""

    def claims(self, premise: str, claims: Sequence[str]) -> list[Outcome]:
        """Check claims against one source."""

    def answer(self, row: AnswerRow) -> list[AnswerClaim]:
        """Segment an answer and check its claims against its context."""


def _decided(score: float) -> Outcome:
    return Outcome(score=score, supported=score >= DECISION, strict=score >= DECISION)


def _plain_claims(answer: str) -> list[tuple[int, int]]:
    """Sentences of at least four words."""
    return [(start, end) for start, end in sentences(answer) if len(answer[start:end].split()) >= 4]


class AlwaysSupported:
    """Releases everything."""

    name = "always_supported"
    uses_surefoot = False

    def describe(self) -> dict[str, object]:
        return {"rule": "every claim is supported"}

    def claims(self, premise: str, claims: Sequence[str]) -> list[Outcome]:
        del premise
        return [_decided(1.0) for _ in claims]

    def answer(self, row: AnswerRow) -> list[AnswerClaim]:
        return [AnswerClaim(start, end, _decided(1.0)) for start, end in _plain_claims(row.answer)]


_STOP_WORDS = """
a about after all also am an and any are as at be because been before being between both but by can could did
do does during each for from had has have having he her here hers him his how i if in into is it its just me
more most my no not of off on once only or other our out over own same she should so some such than that the
their them then there these they this those through to too under until up very was we were what when where
which while who whom why will with would you your s t
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


class UnseenShare:
    """Support = share of the claim's content words that occur anywhere in the source.

    Words are lower-cased runs of letters and digits without stop words. The threshold of 0.5 was set
    before anything was measured; the leave-one-set-out figures show what a chosen one gives.
    """

    name = "unseen_share"
    uses_surefoot = False

    def describe(self) -> dict[str, object]:
        return {"rule": "share of content words found in the source >= 0.5", "threshold": "a priori"}

    def claims(self, premise: str, claims: Sequence[str]) -> list[Outcome]:
        seen = _content_words(premise)
        return [self._check(claim, seen) for claim in claims]

    def answer(self, row: AnswerRow) -> list[AnswerClaim]:
        seen = _content_words(row.context)
        return [
            AnswerClaim(start, end, self._check(row.answer[start:end], seen))
            for start, end in _plain_claims(row.answer)
        ]

    def _check(self, claim: str, seen: frozenset[str]) -> Outcome:
        words = _content_words(claim)
        if not words:
            return Outcome(score=0.0, supported=False, strict=False, abstained=True)
        return _decided(len(words & seen) / len(words))


def _content_words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower())) - STOP_WORDS


class Straightforward:
    """The usual NLI check: every passage against every claim, the best entailment decides at 0.5.

    The source is cut into passages of at most 200 words and punctuation marks (about 250 word pieces) at
    sentence ends, as a store of chunks would hold it. Passages are then cut at 512 characters and claims at
    256, and each claim is one call of the model. Claims of an answer are its sentences of four words or more.

    Args:
        scorer: entailment probabilities of pairs.
        scorer_name: what computes them, for the record.
        difference_from_surefoot: largest difference of its probabilities from those of surefoot's model on a
            few pairs, for the record: it shows whether both hold the same weights.
        cut: whether to cut at 512 and 256 characters; without, the model's own 512 tokens are the limit.
    """

    def __init__(
        self,
        scorer: PairScorer,
        *,
        scorer_name: str,
        cut: bool = True,
        uses_surefoot: bool = False,
        difference_from_surefoot: float | None = None,
    ):
        self.name = "straightforward" if cut else "straightforward_nocut"
        self.uses_surefoot = uses_surefoot
        self._scorer = scorer
        self._scorer_name = scorer_name
        self._cut = cut
        self._difference = difference_from_surefoot

    def describe(self) -> dict[str, object]:
        return {
            "rule": "best entailment over passages >= 0.5",
            "scorer": self._scorer_name,
            "difference_from_surefoot": self._difference,
            "passage_tokens": PASSAGE_TOKENS,
            "cut_characters": [512, 256] if self._cut else None,
        }

    def claims(self, premise: str, claims: Sequence[str]) -> list[Outcome]:
        return [self._check(pack_passages(premise), claim) for claim in claims]

    def answer(self, row: AnswerRow) -> list[AnswerClaim]:
        passages = tuple(piece for text in passages_of(row.context) for piece in pack_passages(text))
        return [
            AnswerClaim(start, end, self._check(passages, row.answer[start:end]))
            for start, end in _plain_claims(row.answer)
        ]

    def _check(self, passages: Sequence[str], claim: str) -> Outcome:
        if not passages:
            return _decided(0.0)
        if self._cut:
            pairs = [(passage[:512], claim[:256]) for passage in passages]
        else:
            pairs = [(passage, claim) for passage in passages]
        return _decided(max(self._scorer(pairs)))


def cross_encoder_scorer(checkpoint: Path, *, threads: int | None) -> PairScorer:
    """Entailment probabilities by the CrossEncoder of sentence-transformers, in float32 on the CPU.

    Raises:
        ImportError: sentence-transformers or torch is not installed.
        ValueError: the checkpoint names no entailment label.
    """
    import torch
    from sentence_transformers import CrossEncoder

    if threads:
        torch.set_num_threads(threads)
    # Beyond the local folder there is nothing to fetch: a missing file must fail, not download.
    model: Any = CrossEncoder(
        str(checkpoint),
        max_length=512,
        device="cpu",
        local_files_only=True,
        model_kwargs={"dtype": torch.float32},
    )
    labels = {str(name).lower(): int(index) for index, name in model.config.id2label.items()}
    if "entailment" not in labels:
        raise ValueError(f"{checkpoint}: no label is called entailment: {labels}")
    entailment = labels["entailment"]

    def score(pairs: Sequence[tuple[str, str]]) -> list[float]:
        with torch.inference_mode():
            probabilities = model.predict(list(pairs), apply_softmax=True, show_progress_bar=False)
        return [float(row[entailment]) for row in probabilities]

    return score


PASSAGE_TOKENS = 200


@lru_cache(maxsize=8)
def pack_passages(text: str, limit: int = PASSAGE_TOKENS) -> tuple[str, ...]:
    """Cut a text into passages of at most ``limit`` words and punctuation marks, at sentence ends.

    A sentence that is longer by itself is cut at words. Deterministic, and the same for every system
    that uses it, whatever its own tokenizer.
    """
    passages: list[str] = []
    start: int | None = None
    end = used = 0
    for first, last in sentences(text):
        for piece_start, piece_end, size in _pieces(text, first, last, limit):
            if start is not None and used + size > limit:
                passages.append(text[start:end])
                start = None
            if start is None:
                start, used = piece_start, 0
            end, used = piece_end, used + size
    if start is not None:
        passages.append(text[start:end])
    return tuple(passages)


def _pieces(text: str, start: int, end: int, limit: int) -> list[tuple[int, int, int]]:
    tokens = [(start + m.start(), start + m.end()) for m in re.finditer(r"\w+|[^\w\s]", text[start:end])]
    return [
        (chunk[0][0], chunk[-1][1], len(chunk))
        for chunk in (tokens[i : i + limit] for i in range(0, len(tokens), limit))
    ]


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

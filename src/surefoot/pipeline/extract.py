"""The answerer that writes nothing of its own: it quotes the sentences that speak most about the question.

Sentences are cut and ranked by :mod:`surefoot.evidence.index`, as in a check, so the check finds each quote
word for word. Where there is a reranker, it orders the best of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from surefoot.citations import find_markers, known_keys, strip_markers
from surefoot.errors import ConfigurationError
from surefoot.evidence.index import EvidenceIndex, Ranked
from surefoot.evidence.lexicon import load_lexicon
from surefoot.pipeline.prompt import REFUSAL
from surefoot.pipeline.records import Draft, Quote
from surefoot.rerank import Reranker
from surefoot.schema import ClaimKind, Source
from surefoot.segment import plain_text, segment_answer

__all__ = ["ExtractiveAnswerer", "evidence_strength"]

_CANDIDATES: Final = 16
"""Sentences that the reranker reads for an answer."""

_MARGIN: Final = 0.5
_MARGIN_OF_WORDS: Final = 0.8

_SAME: Final = 0.8
"""Share of common words from which two sentences say the same."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Candidate:
    ranked: Ranked
    text: str
    words: frozenset[str]


class ExtractiveAnswerer:
    """Answers by quoting; a generator that needs no language model.

    Args:
        reranker: orders the sentences; without one, or where its model cannot be loaded, they are ordered
            by the words that they share with the question.
        max_sentences: most sentences of an answer, at least 1.
        margin: a sentence after the first is quoted only if its relevance is at least this share of that of
            the first, 0 to 1; by default 0.5 by the reranker's relevance and 0.8 by common words, which
            differ less.

    Raises:
        ConfigurationError: an option is out of range.
    """

    def __init__(
        self, reranker: Reranker | None = None, *, max_sentences: int = 2, margin: float | None = None
    ) -> None:
        if isinstance(max_sentences, bool) or not isinstance(max_sentences, int) or max_sentences < 1:
            raise ConfigurationError(f"max_sentences must be a whole number of at least 1: {max_sentences!r}")
        if margin is not None and not 0 <= margin <= 1:
            raise ConfigurationError(f"margin must be between 0 and 1, not {margin!r}")
        self._reranker = reranker
        self._max_sentences = max_sentences
        self._margin = margin

    @property
    def model(self) -> str:
        """Name of the generator."""
        return "extractive"

    def __call__(self, question: str, sources: Sequence[Source]) -> Draft:
        """Quote what answers ``question``.

        Args:
            question: any text.
            sources: ``[Doc n]`` is ``sources[n - 1]``.

        Returns:
            The quotes, best first, each followed by its marker; the refusal where there is nothing to quote.
        """
        candidates = _candidates(question, sources)
        chosen: list[Quote] = []
        words: list[frozenset[str]] = []
        scored, margin = self._scored(question, candidates)
        for candidate, relevance in scored:
            if len(chosen) == self._max_sentences:
                break
            if chosen and relevance < margin * chosen[0].relevance:
                break
            if any(_alike(candidate.words, other) for other in words):
                continue
            sentence = candidate.ranked.sentence
            chosen.append(
                Quote(
                    sentence.source + 1,
                    sources[sentence.source].id,
                    sentence.start,
                    sentence.end,
                    candidate.text,
                    relevance,
                )
            )
            words.append(candidate.words)
        if not chosen:
            return Draft(REFUSAL, self.model)
        # A paragraph each: a quote without a full stop must not run into the next.
        answer = "\n\n".join(f"{quote.text} [Doc {quote.number}]" for quote in chosen)
        return Draft(answer, self.model, quotes=tuple(chosen))

    def _scored(
        self, question: str, candidates: Sequence[_Candidate]
    ) -> tuple[list[tuple[_Candidate, float]], float]:
        """The candidates with a relevance from 0 to 1, best first; and the margin that goes with it."""
        by_words = [(item, min(1.0, item.ranked.rank_score / 2)) for item in candidates]
        if self._reranker is None or not candidates:
            return by_words, _MARGIN_OF_WORDS if self._margin is None else self._margin
        ranking = self._reranker.rerank(question, [item.text for item in candidates], top_k=None)
        if ranking.degraded:
            return by_words, _MARGIN_OF_WORDS if self._margin is None else self._margin
        ordered = [(candidates[found.index], found.relevance or 0.0) for found in ranking]
        return ordered, _MARGIN if self._margin is None else self._margin


def evidence_strength(question: str, sources: Sequence[Source]) -> float:
    """How far the best sentence of ``sources`` speaks of what is asked.

    The mean of two figures: the share of the question's words, weighted by how rare they are, that the
    sentence contains, and the cosine of static word vectors. 0 to 1. It tells what the sources do not speak
    of; it cannot tell whether what they say of it answers the question.
    """
    ranked = EvidenceIndex(sources, load_lexicon()).rank(question, limit=1)
    return min(1.0, ranked[0].rank_score / 2) if ranked else 0.0


def _candidates(question: str, sources: Sequence[Source]) -> list[_Candidate]:
    """The sentences worth quoting, those with the most words of the question first."""
    index = EvidenceIndex(sources, load_lexicon())
    known = known_keys(sources)
    found: list[_Candidate] = []
    for ranked in index.rank(question, limit=4 * _CANDIDATES):
        text = ranked.sentence.text
        # What a source cites means something else among ours.
        markers = find_markers(text, known=known)
        text = " ".join(plain_text(strip_markers(text, 0, len(text), markers)).split())
        if _is_one_claim(text):
            found.append(_Candidate(ranked, text, frozenset(_WORD.findall(text.lower()))))
            if len(found) == _CANDIDATES:
                break
    return found


def _is_one_claim(text: str) -> bool:
    """Whether a sentence stays one statement in an answer: no heading, question, code or fragment."""
    segments = segment_answer(text)
    return len(segments) == 1 and segments[0].kind is ClaimKind.CLAIM


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _SAME * min(len(one), len(other))

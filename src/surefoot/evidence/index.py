"""Which source sentences speak about a claim, and the premises made of them.

The check costs one forward pass per (premise, claim), so everything rests on few, short, well-chosen
premises. Two levels keep the selection itself cheap: blocks of a few hundred words are ranked by the claim's
words they contain, and only the best blocks are split into sentences, which are ranked by idf-weighted
token overlap plus the cosine of static vectors. Joining the best sentences of several passages lets a
claim rest on two sources at once, which the best single passage cannot (ALCE, Gao et al. 2023).

Nothing here depends on the order of the sources: ties are broken by text, and joined sentences of different
sources are ordered by rank.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from surefoot.evidence.lexicon import Lexicon, Tokens
from surefoot.evidence.structured import Reading, read_json, read_tables
from surefoot.inference.text import TextEncoder
from surefoot.schema import Source
from surefoot.segment import plain_text, sentence_spans

__all__ = ["EvidenceIndex", "Premise", "Ranked", "Sentence"]

_BLOCK_CHARACTERS: Final = 1_500
_BLOCKS_PER_CLAIM: Final = 12
_SENTENCE_TOKENS: Final = 96
"""Longer sentences are read in pieces of this size; half of a piece is repeated in the next."""

_WORD: Final = re.compile(r"[a-z0-9]{2,40}|[^\W\d_a-z]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence (or a piece of a long one) of a source: ``source.text[start:end]``.

    ``text`` is what the model reads: the same without markup, or what a record or table row says in words.
    """

    source: int
    start: int
    end: int
    text: str
    tokens: Tokens
    order: int
    """Position among the sentences of its block, for windows."""
    block: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A sentence and how it speaks about one claim.

    ``overlap`` is the share of the claim's idf weight that the sentence covers, 0 to 1; ``rank_score`` adds
    the cosine of static vectors.
    """

    sentence: Sentence
    overlap: float
    rank_score: float


@dataclass(frozen=True, slots=True)
class Premise:
    """What the model reads for a claim: ``text`` is its parts, joined by spaces, in reading order."""

    text: str
    parts: tuple[Ranked, ...]

    @property
    def relevance(self) -> float:
        """Overlap of the best part, 0 to 1."""
        return max((part.overlap for part in self.parts), default=0.0)


@dataclass(frozen=True, slots=True)
class _Block:
    source: int
    start: int
    end: int
    text: str
    """What is searched: the text of the block, or what its records say."""
    readings: tuple[Reading, ...] = ()
    """The values of a block of records; empty for running text."""


class EvidenceIndex:
    """The sources of one check, ready to be asked about claims.

    Args:
        sources: in the caller's order; empty texts are allowed and never selected.
        lexicon: word weights and vectors.
        static: rank by static vectors as well as by overlap.
    """

    def __init__(self, sources: Sequence[Source], lexicon: Lexicon, *, static: bool = True) -> None:
        self.sources = sources
        self.lexicon = lexicon
        self._static = static
        self._blocks = [
            block for index, source in enumerate(sources) for block in _blocks(index, source.text)
        ]
        self._postings: dict[str, npt.NDArray[np.int64]] | None = None
        self._text_rank: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._sentences: dict[int, tuple[Sentence, ...]] = {}
        self._tables: dict[int, dict[int, Reading]] = {}
        self._claims: dict[str, Tokens] = {}

    def rank(self, claim: str, *, limit: int, only: Collection[str] | None = None) -> list[Ranked]:
        """The sentences that speak about ``claim``, best first.

        Args:
            claim: its text without citation markers.
            limit: at most so many.
            only: ids of the sources to look at; all of them by default.
        """
        blocks = self._candidate_blocks(claim, only)
        self._split(blocks)
        tokens = self.tokens_of(claim)
        seen: set[str] = set()
        ranked: list[Ranked] = []
        # By text, so that of two sources with the same sentence the same one wins in any order of sources.
        for block in sorted(blocks, key=lambda index: self._blocks[index].text):
            for sentence in self._sentences[block]:
                if sentence.text in seen:  # the same passage retrieved twice is one piece of evidence
                    continue
                seen.add(sentence.text)
                ranked.append(self._rank_one(sentence, tokens))
        ranked.sort(key=lambda item: (-item.rank_score, item.sentence.text, item.sentence.order))
        return ranked[:limit]

    def joined(self, ranked: Sequence[Ranked], encoder: TextEncoder, room: int) -> Premise | None:
        """As many of ``ranked`` as fit into ``room`` tokens, best first, joined in reading order."""
        chosen: list[Ranked] = []
        used = 0
        for item, size in zip(ranked, encoder.count([item.sentence.text for item in ranked]), strict=True):
            if used + size > room:
                if not chosen:
                    continue
                break
            chosen.append(item)
            used += size
        return _premise(chosen) if chosen else None

    def window(self, best: Ranked, claim: str, encoder: TextEncoder, room: int) -> Premise | None:
        """The passage around a sentence: it and its neighbours, nearest first, within ``room`` tokens."""
        home = self._sentences[best.sentence.block]
        at = next(index for index, sentence in enumerate(home) if sentence is best.sentence)
        sizes = encoder.count([sentence.text for sentence in home])
        low, high, used = at, at + 1, sizes[at]
        if used > room:
            return None
        while True:
            # The sentence before is preferred: it holds what a pronoun refers to.
            if low > 0 and used + sizes[low - 1] <= room and at - low <= high - 1 - at:
                low -= 1
                used += sizes[low]
            elif high < len(home) and used + sizes[high] <= room:
                used += sizes[high]
                high += 1
            elif low > 0 and used + sizes[low - 1] <= room:
                low -= 1
                used += sizes[low]
            else:
                break
        tokens = self.tokens_of(claim)
        return _premise([self._rank_one(sentence, tokens) for sentence in home[low:high]])

    def windows(
        self, claim: str, encoder: TextEncoder, room: int, *, only: Collection[str] | None = None
    ) -> Iterator[Premise]:
        """Every window of every source (or of ``only`` some), overlapping by about a quarter."""
        everything = self._blocks_of(only)
        self._split(everything)
        tokens = self.tokens_of(claim)
        by_source: dict[int, list[Sentence]] = {}
        for block in everything:
            by_source.setdefault(self._blocks[block].source, []).extend(self._sentences[block])
        for sentences in by_source.values():
            sizes = encoder.count([sentence.text for sentence in sentences])
            low = 0
            while low < len(sentences):
                high, used = low, 0
                while high < len(sentences) and (used + sizes[high] <= room or high == low):
                    used += sizes[high]
                    high += 1
                parts = sentences[low:high]
                if used <= room:
                    yield _premise([self._rank_one(sentence, tokens) for sentence in parts])
                else:  # one sentence, beside a claim that leaves it too little room
                    for piece in self._cut(parts[0], encoder, room):
                        yield _premise([self._rank_one(piece, tokens)])
                if high >= len(sentences):
                    break
                back, repeated = high, 0
                while back - 1 > low and repeated + sizes[back - 1] <= room // 4:
                    back -= 1
                    repeated += sizes[back]
                low = back

    def verbatim(self, claim: str, ranked: Sequence[Ranked]) -> Ranked | None:
        """A sentence that says the claim word for word, of at least six words, and nothing else."""
        words = _plain_words(claim)
        if sum(word[0].isalnum() for word in words) < 6:
            return None
        return next((item for item in ranked if _plain_words(item.sentence.text) == words), None)

    def shown(self, sentence: Sentence) -> str:
        """The sentence as it stands in its source."""
        return self.sources[sentence.source].text[sentence.start : sentence.end]

    def tokens_of(self, claim: str) -> Tokens:
        """The tokens of a claim; read once."""
        tokens = self._claims.get(claim)
        if tokens is None:
            tokens = self._claims[claim] = self.lexicon.tokens([claim])[0]
        return tokens

    def _rank_one(self, sentence: Sentence, claim: Tokens) -> Ranked:
        weights = self.lexicon.idf[claim.ids]
        total = float(weights.sum())
        shared = np.isin(claim.ids, sentence.tokens.ids, assume_unique=True)
        overlap = float(weights[shared].sum()) / total if total > 0 else 0.0
        cosine = max(0.0, float(claim.vector @ sentence.tokens.vector)) if self._static else 0.0
        return Ranked(sentence, min(1.0, overlap), overlap + cosine)

    def _candidate_blocks(self, claim: str, only: Collection[str] | None) -> list[int]:
        allowed = self._blocks_of(only)
        if len(allowed) <= _BLOCKS_PER_CLAIM:
            return allowed
        if self._postings is None:
            self._postings, self._text_rank = self._read_blocks()
        scores = np.zeros(len(self._blocks))
        for word in sorted(_coarse_words(claim)):
            where = self._postings.get(word)
            if where is not None:
                scores[where] += np.log(1.0 + (len(self._blocks) - len(where) + 0.5) / (len(where) + 0.5))
        here = np.asarray(allowed, dtype=np.int64)
        # A block that shares no word with the claim is no evidence, even where too few do.
        here = here[scores[here] > 0]
        here = here[np.lexsort((self._text_rank[here], -scores[here]))]
        # Copies of one passage must not crowd out everything else.
        _, first = np.unique(self._text_rank[here], return_index=True)
        return [int(index) for index in here[np.sort(first)[:_BLOCKS_PER_CLAIM]]]

    def _read_blocks(self) -> tuple[dict[str, npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
        """Which blocks hold a word, and the rank of each block's text among all; equal texts rank equal."""
        texts = [block.text for block in self._blocks]
        postings: dict[str, list[int]] = {}
        for index, text in enumerate(texts):
            for word in _coarse_words(text):
                postings.setdefault(word, []).append(index)
        rank = {text: place for place, text in enumerate(sorted(set(texts)))}
        return (
            {word: np.asarray(where, dtype=np.int64) for word, where in postings.items()},
            np.asarray([rank[text] for text in texts], dtype=np.int64),
        )

    def _blocks_of(self, only: Collection[str] | None) -> list[int]:
        return [
            index
            for index, block in enumerate(self._blocks)
            if only is None or self.sources[block.source].id in only
        ]

    def _split(self, blocks: Sequence[int]) -> None:
        missing = [index for index in blocks if index not in self._sentences]
        found = [(index, reading) for index in missing for reading in self._readings(index)]
        grouped: dict[int, list[Sentence]] = {index: [] for index in missing}
        tokens = self.lexicon.tokens([reading.text for _, reading in found])
        for (index, reading), counted in zip(found, tokens, strict=True):
            home = grouped[index]
            for piece, piece_tokens in self._pieces(reading, self._blocks[index].source, counted):
                place = (self._blocks[index].source, piece.start, piece.end)
                home.append(Sentence(*place, piece.text, piece_tokens, len(home), index))
        self._sentences.update({index: tuple(sentences) for index, sentences in grouped.items()})

    def _readings(self, index: int) -> Iterator[Reading]:
        """What the sentences of a block say, and where."""
        block = self._blocks[index]
        if block.readings:
            yield from block.readings
            return
        rows: dict[int, Reading] = {}
        if "|" in block.text:
            if block.source not in self._tables:
                self._tables[block.source] = read_tables(self.sources[block.source].text)
            rows = self._tables[block.source]
        for start, end in sentence_spans(block.text):
            row = rows.get(block.start + start)
            said = plain_text(block.text[start:end] if row is None else row.text)
            if said:
                yield Reading(block.start + start, block.start + end, said)

    def _cut(self, sentence: Sentence, encoder: TextEncoder, room: int) -> Iterator[Sentence]:
        """Overlapping pieces of a sentence, of ``room`` tokens each."""
        offsets = encoder.encode([sentence.text])[0].offsets
        literal = self.shown(sentence) == sentence.text
        step = max(1, room // 2)
        for first in range(0, max(1, len(offsets) - step), step):
            begin, end = offsets[first][0], offsets[min(first + room, len(offsets)) - 1][1]
            text = sentence.text[begin:end]
            # A piece may take a token more than it had within the sentence.
            if encoder.count([text])[0] > room:
                end = offsets[min(first + room, len(offsets)) - 2][1]
                text = sentence.text[begin:end]
            place = (
                (sentence.start + begin, sentence.start + end) if literal else (sentence.start, sentence.end)
            )
            tokens = self.lexicon.tokens([text])[0]
            yield replace(sentence, start=place[0], end=place[1], text=text, tokens=tokens)

    def _pieces(self, reading: Reading, source: int, tokens: Tokens) -> list[tuple[Reading, Tokens]]:
        """A reading that is too long in overlapping pieces, each with its own span where it has one."""
        if tokens.count <= 2 * _SENTENCE_TOKENS:
            return [(reading, tokens)]
        literal = self.sources[source].text.startswith(reading.text, reading.start)
        pieces: list[Reading] = []
        for first in range(0, tokens.count - _SENTENCE_TOKENS // 2, _SENTENCE_TOKENS // 2):
            last = min(first + _SENTENCE_TOKENS, tokens.count) - 1
            begin, end = tokens.offsets[first][0], tokens.offsets[last][1]
            span = (reading.start + begin, reading.start + end) if literal else (reading.start, reading.end)
            pieces.append(Reading(*span, reading.text[begin:end]))
        return list(zip(pieces, self.lexicon.tokens([piece.text for piece in pieces]), strict=True))


def _premise(parts: Sequence[Ranked]) -> Premise:
    """Join parts: sources by their best part, and each source's parts as they stand in it."""
    best: dict[int, tuple[float, str]] = {}
    for part in parts:
        key = (-part.rank_score, part.sentence.text)
        source = part.sentence.source
        best[source] = min(best.get(source, key), key)
    ordered = sorted(
        parts, key=lambda part: (best[part.sentence.source], part.sentence.start, part.sentence.order)
    )
    return Premise(" ".join(part.sentence.text for part in ordered), tuple(ordered))


def _coarse_words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _plain_words(text: str) -> list[str]:
    """Words and marks: a sign, a currency or a comma can change what a sentence says; quotes cannot."""
    return re.findall(r"\w+|[^\w\s\"'“”‘’*`]", text.lower().rstrip(" .!"))


def _blocks(source: int, text: str) -> list[_Block]:
    """Cut a text into blocks of bounded size: records between values, prose where it pauses."""
    records = read_json(text)
    if records is not None:
        return _record_blocks(source, records)
    blocks: list[_Block] = []
    start, size = 0, len(text)
    while start < size:
        end = min(start + _BLOCK_CHARACTERS, size)
        if end < size:
            floor = start + _BLOCK_CHARACTERS // 3
            for separator in ("\n\n", "\n", ". ", " "):
                cut = text.rfind(separator, floor, end)
                if cut >= 0:
                    end = cut + len(separator)
                    break
        piece = text[start:end]
        if not piece.isspace():
            blocks.append(_Block(source, start, end, piece))
        start = end
    return blocks


def _record_blocks(source: int, records: Sequence[Reading]) -> list[_Block]:
    blocks: list[_Block] = []
    held: list[Reading] = []
    size = 0
    for reading in records:
        if held and size + len(reading.text) > _BLOCK_CHARACTERS:
            blocks.append(_record_block(source, held))
            held, size = [], 0
        held.append(reading)
        size += len(reading.text)
    if held:
        blocks.append(_record_block(source, held))
    return blocks


def _record_block(source: int, held: Sequence[Reading]) -> _Block:
    text = " ".join(reading.text for reading in held)
    return _Block(source, held[0].start, held[-1].end, text, tuple(held))

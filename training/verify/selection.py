"""Claims beside their evidence as the package reads it, and what is known before any model runs.

A training pair, a held-out pair and a measured pair all pass through here: the best three sentences joined,
within 128 tokens, and the passage around the best one. The features cost no forward pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from surefoot.evidence.index import EvidenceIndex, Premise, Ranked
from surefoot.evidence.lexicon import Lexicon, load_lexicon
from surefoot.inference.text import TextEncoder
from surefoot.models.manifest import bundled
from surefoot.schema import Source
from surefoot.verify.features import features_of, source_words

__all__ = ["FEATURES", "Reader", "Selected", "shared_encoder"]

RANKED: Final = 8
FEW: Final = 3
ROOM: Final = 128
LONGEST: Final = 512
LEAST: Final = 32

STOP: Final = frozenset(
    "a about after all also am an and any are as at be because been before being between both but by "
    "can could did do does during each for from had has have having he her here hers him his how i "
    "if in into is it its just me more most my no not of off on once only or other our out over own "
    "same she should so some such than that the their them then there these they this those through "
    "to too under until up very was we were what when where which while who whom why will with would "
    "you your s t".split()
)

FEATURES: Final = (
    "aligned",  # idf mean of the best cosine of each token of the claim, in the ranked sentences
    "unseen",  # share of content words that occur nowhere in the sources: the baseline
    "source_words",  # ln(1 + words)
)
"""What is known of a claim and its sources without a model, in the order of the array."""

_WORD: Final = re.compile(r"\w+")
_NOTHING: Final = Premise("", ())


@dataclass(frozen=True, slots=True)
class Selected:
    """One claim with its premises: ``premises`` [1 to 3] texts, ``relevance`` [same] overlaps.

    They are sentences joined, the passage around the best one, and the one around the next, which is read
    only where the others leave the claim in doubt. A passage that an earlier premise repeats is empty.
    """

    claim: str
    premises: tuple[str, ...]
    relevance: tuple[float, ...]
    features: tuple[float, ...]
    verbatim: bool


@cache
def shared_encoder() -> TextEncoder:
    """The tokenizer of the bundled verifier."""
    return TextEncoder(bundled("verify").tokenizer_path)


class Reader:
    """Sources, asked about claims."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)
        self._lexicon: Lexicon = load_lexicon()
        self._encoder = shared_encoder()
        self.index = EvidenceIndex(
            [Source(id=str(place), text=text) for place, text in enumerate(texts, start=1)], self._lexicon
        )
        self._words = frozenset(word.lower() for text in texts for word in _WORD.findall(text))

    def rank(self, claim: str) -> list[Ranked]:
        """The eight best sentences."""
        return self.index.rank(claim, limit=RANKED)

    def joined(self, ranked: Sequence[Ranked], claim: str) -> Premise | None:
        """Up to three of ``ranked``, within the room."""
        room = min(self.room(claim), ROOM)
        few = list(ranked[:FEW])
        return self.index.joined(few, self._encoder, room) or self.index.joined(
            few, self._encoder, self.room(claim)
        )

    def window(self, best: Ranked, claim: str) -> Premise | None:
        """The passage around a sentence."""
        return self.index.window(best, claim, self._encoder, min(self.room(claim), ROOM))

    def room(self, claim: str) -> int:
        """Tokens that a premise may have beside this claim."""
        return LONGEST - self._encoder.pair_overhead - self._encoder.count([claim])[0]

    def cover(self, claim: str, premise: str) -> float:
        """Share of the claim's idf weight in a premise, 0 to 1."""
        ours, theirs = self._lexicon.tokens([claim, premise])
        weights = self._lexicon.idf[ours.ids]
        total = float(weights.sum())
        return float(weights[np.isin(ours.ids, theirs.ids)].sum()) / total if total else 0.0

    def select(self, claim: str) -> Selected | None:
        """Premises and features; ``None`` where the package would not ask the model."""
        if self.room(claim) < LEAST:
            return None
        ranked = self.rank(claim)
        if not ranked:
            return None
        verbatim = self.index.verbatim(claim, ranked)
        first = self.joined([verbatim] if verbatim else ranked, claim)
        if first is None:
            return None
        found = [first]
        for best in () if verbatim else ranked[:2]:
            window = self.window(best, claim)
            known = window is None or any(window.text == premise.text for premise in found)
            found.append(_NOTHING if known or window is None else window)
        return Selected(
            claim,
            tuple(premise.text for premise in found),
            tuple(premise.relevance for premise in found),
            tuple(float(value) for value in self._features(claim, ranked)),
            verbatim is not None,
        )

    def _features(self, claim: str, ranked: Sequence[Ranked]) -> list[float]:
        content = {word.lower() for word in _WORD.findall(claim)} - STOP
        tokens = self._lexicon.tokens([claim])[0]
        known = features_of(tokens, ranked, self._lexicon, source_words=source_words(self._texts))
        unseen = 1 - len(content & self._words) / len(content) if content else 0.0
        return [known["aligned"], unseen, known["source_words"]]

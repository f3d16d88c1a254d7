"""Claims beside their evidence exactly as the package reads it, and what is known before any model runs.

A training pair, a held-out pair and a measured pair all pass through here: the best three sentences joined,
within 128 tokens, and the passage around the best one. The features cost no forward pass.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np

from surefoot.evidence.index import EvidenceIndex, Premise, Ranked
from surefoot.evidence.lexicon import Lexicon, load_lexicon
from surefoot.facts import compare_facts, extract_facts
from surefoot.facts.negation import has_negation
from surefoot.inference.text import TextEncoder
from surefoot.models.manifest import bundled
from surefoot.schema import Reason, Source

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
    "unseen_all",  # share of content words that occur nowhere in the sources
    "unseen_near",  # idf share of the claim's tokens outside the ranked sentences
    "unseen_read",  # the same outside the joined premise
    "overlap",  # idf overlap of the best sentence
    "cosine",  # static cosine of the best sentence
    "aligned",  # idf mean of the best cosine of each token of the claim, in the ranked sentences
    "aligned_low",  # mean of the worst fifth of these
    "bigrams",  # share of the claim's word pairs that occur in the sources
    "figures_missing",  # share of the claim's numbers and dates whose digits occur nowhere
    "names_missing",  # share of the claim's names with a word that occurs nowhere
    "hard_mismatch",  # number, unit, date or sign at odds
    "name_mismatch",
    "agreed",  # share of the facts that were found
    "negation_differs",  # claim and best sentence differ in whether they hold a negation
    "claim_words",  # ln
    "source_words",  # ln
    "gap",  # rank score of the first over the second sentence
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
        words = [word.lower() for text in texts for word in _WORD.findall(text)]
        self._words = frozenset(words)
        self._pairs = frozenset(pairwise(words))
        self._count = len(words)

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
            tuple(float(value) for value in self._features(claim, ranked, first)),
            verbatim is not None,
        )

    def _features(self, claim: str, ranked: Sequence[Ranked], first: Premise) -> list[float]:
        words = [word.lower() for word in _WORD.findall(claim)]
        content = {word for word in words if word not in STOP}
        pairs = set(pairwise(words))
        tokens = self._lexicon.tokens([claim])[0]
        weights = self._lexicon.idf[tokens.ids]
        total = float(weights.sum()) or 1.0
        near = np.unique(np.concatenate([item.sentence.tokens.ids for item in ranked]))
        read = np.unique(np.concatenate([part.sentence.tokens.ids for part in first.parts]))
        best = self._lexicon.best_cosines(tokens.ids, near)
        order = np.argsort(best, kind="stable")[: max(1, math.ceil(len(best) / 5))]
        facts = compare_facts(claim, [item.sentence.text for item in ranked])
        hard = sum(mismatch.kind is not Reason.NAME_MISMATCH for mismatch in facts.mismatches)
        own = extract_facts(claim)
        figures = [fact for fact in own if fact.kind != "name"]
        names = [fact for fact in own if fact.kind == "name"]

        def missing(texts: Sequence[str], pattern: str) -> float:
            found = [re.findall(pattern, text.lower()) for text in texts]
            found = [pieces for pieces in found if pieces]
            lost = sum(any(piece not in self._words for piece in pieces) for pieces in found)
            return lost / len(found) if found else 0.0

        top = ranked[0]
        return [
            1 - len(content & self._words) / len(content) if content else 0.0,
            1 - float(weights[np.isin(tokens.ids, near)].sum()) / total,
            1 - float(weights[np.isin(tokens.ids, read)].sum()) / total,
            top.overlap,
            top.rank_score - top.overlap,
            float((best * weights).sum()) / total if len(best) else 0.0,
            float(best[order].mean()) if len(best) else 0.0,
            len(pairs & self._pairs) / len(pairs) if pairs else 0.0,
            missing([fact.text for fact in figures], r"\d+"),
            missing([fact.text for fact in names], r"\w+"),
            float(min(hard, 2)),
            float(min(len(facts.mismatches) - hard, 2)),
            facts.agreed / facts.total if facts.total else 0.5,
            float(has_negation(_bag(claim)) != has_negation(_bag(top.sentence.text))),
            math.log(1 + len(words)),
            math.log(1 + self._count),
            top.rank_score - (ranked[1].rank_score if len(ranked) > 1 else 0.0),
        ]


def _bag(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w']+", text.lower()))

"""Training pairs from documents, in the shapes that the package makes of them at inference.

From a claim that people called supported: the pair itself, an edit of the claim (false), the same edit of
claim and document (true), and the claim with the sentence that bears it left out (unsupported). From a claim
that people called unsupported: the pair.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from training.verify.edits import OF_CLAIMS, find_edit
from training.verify.pairs import Pair
from training.verify.selection import Reader
from training.verify.sources import Row

from surefoot.segment import sentence_spans

__all__ = ["Case", "cases", "neighbours", "pairs_of", "sentences_of"]

_LEAD: Final = 0.2
"""How much more of the claim the left-out sentence must cover than every sentence that stays."""

_ENOUGH: Final = 0.5

_WORDS_OF_A_CLAIM: Final = (8, 35)
"""A sentence of a document that stands for a claim has at least and at most so many words."""

_NEGATED: Final = 0.3
"""Share of the claims that can only be negated which are."""


@dataclass(frozen=True, slots=True)
class Case:
    """A claim and a whole document; ``label`` as in :data:`~training.verify.pairs.LABELS`."""

    document: str
    claim: str
    label: str
    source: str
    kind: str


def sentences_of(text: str) -> list[str]:
    """The sentences of a text with at least five words."""
    found = (text[start:end] for start, end in sentence_spans(text))
    return [sentence for sentence in found if len(sentence.split()) >= 5]


def cases(rows: Iterable[Row], *, seed: int, edited: float = 1.0) -> Iterator[Case]:
    """What is made of labelled rows.

    Args:
        rows: claims of one sentence with their documents.
        seed: decides what is edited.
        edited: share of the supported claims that are edited or lose their evidence.
    """
    for row in rows:
        rng = random.Random(f"{seed}:{row.source}:{row.premise[:200]}:{row.claim}")
        given = {"supported": "entailment", "contradicted": "contradiction"}.get(row.label, "not_entailment")
        yield Case(row.premise, row.claim, given, row.source, "given")
        if row.label != "supported" or rng.random() >= edited:
            continue
        edit = find_edit(row.claim, row.premise, rng)
        if edit is not None and edit.kind == "negation" and rng.random() >= _NEGATED:
            edit = None  # nearly every claim can be negated, and no document with it: "not" must not tell
        if edit is None or (edit.kind not in OF_CLAIMS and rng.random() < 0.3):
            yield from _left_out(row)
        elif edit.kind in OF_CLAIMS or rng.random() < 0.5:
            # A document can only be negated where it has the claim's words.
            yield Case(row.premise, edit.apply(row.claim), "contradiction", row.source, edit.kind)
        else:
            document = edit.apply(row.premise)
            if document == row.premise:
                continue  # it has the words only as parts of others, so the edited claim would be false
            yield Case(document, edit.apply(row.claim), "entailment", row.source, f"{edit.kind}, both")
            yield Case(document, row.claim, "contradiction", row.source, f"{edit.kind}, source")


def neighbours(rows: Iterable[Row], *, seed: int) -> Iterator[Case]:
    """A sentence of each document as the claim: of the document that has it, and of what is left without it.

    What stands beside the evidence is on the same topic and in the same words, yet says something else. The
    same sentence is claimed both ways, so that the claim alone tells nothing.
    """
    least, most = _WORDS_OF_A_CLAIM
    for document, source in {row.premise: row.source for row in rows}.items():
        rng = random.Random(f"{seed}:neighbour:{document[:200]}")
        fitting = [part for part in sentences_of(document) if least <= len(part.split()) <= most]
        if len(fitting) < 4:
            continue
        claim = rng.choice(fitting)
        for case in _left_out(Row(source, "", document, claim, "supported")):
            yield replace(case, kind="neighbour")
            yield Case(document, claim, "entailment", source, "own sentence")


def pairs_of(found: Iterable[Case], *, seed: int) -> Iterator[Pair]:
    """The joined sentences of each case, and now and then the passage instead."""
    for case in found:
        rng = random.Random(f"{seed}:{case.document[:200]}:{case.claim}:{case.kind}")
        reader = _reader(case.document)
        if reader.room(case.claim) < 48:
            continue
        ranked = reader.rank(case.claim)
        joined = reader.joined(ranked, case.claim) if ranked else None
        if joined is None:
            continue
        window = reader.window(ranked[0], case.claim)
        premise, shape = joined, "joined"
        if window is not None and rng.random() < 0.4:
            # A passage that leaves out one of two supporting sentences does not support the claim; that it
            # does is only sure where it covers the claim as well as the joined sentences do.
            least = reader.cover(case.claim, joined.text) - 0.02
            if case.label != "entailment" or reader.cover(case.claim, window.text) >= least:
                premise, shape = window, "window"
        yield Pair(premise.text, case.claim, case.label, case.source, f"{case.kind}, {shape}")


@lru_cache(maxsize=4)
def _reader(document: str) -> Reader:
    return Reader([document])


def _left_out(row: Row) -> Iterator[Case]:
    """The claim against its document without the sentence that bears it."""
    ranked = _reader(row.premise).rank(row.claim)
    if len(ranked) < 3 or ranked[0].overlap < _ENOUGH or ranked[0].overlap - ranked[1].overlap < _LEAD:
        return
    best = ranked[0].sentence
    rest = (row.premise[: best.start] + " " + row.premise[best.end :]).strip()
    yield Case(rest, row.claim, "not_entailment", row.source, "left out")

"""Labelled pairs in other clothes, for what people's pairs lack: company, chatter, two statements at once.

``crowded``
    a short premise among other sentences on the same things, as the joined sentences of a document are.
``chatty``
    a claim as somebody says it in a conversation.
``doubled``
    two claims about one document as one: true where both are, false where one is not.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from training.verify.pairs import Pair
from training.verify.selection import STOP
from training.verify.shapes import Case, sentences_of
from training.verify.sources import Row

__all__ = ["chatty", "crowded", "doubled"]

_WORDS: Final = re.compile(r"\w+")
_COMMON: Final = 400
"""A word that more premises than this have says nothing about what a premise is about."""

_ALIKE: Final = 0.5
"""Premises that share more of their words are versions of each other, often with another label."""

_LEADS: Final = (
    "Yes, ", "Yeah, ", "Yes! ", "Oh yes, ", "Well, ", "I know that ", "I think ", "Did you know that ",
    "That's right, ", "Sure, ", "I read that ", "I heard that ", "Oh, ", "As far as I know, ", "Actually, ",
    "That is interesting! ", "Cool, ", "I believe ", "It seems that ", "According to the text, ",
    "Based on the given information, ", "It is said that ",
)  # fmt: skip
_ENDS: Final = ("!", ".", ".", "", ", I think.", ", right?", ", you know.")


def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORDS.findall(text.lower()) if word not in STOP)


def crowded(pairs: Sequence[Pair], *, seed: int, most: int = 2) -> Iterator[Pair]:
    """Each pair with one to ``most`` other premises of its set before or after its own.

    The others share words with the claim, less than the premise itself does, and are no version of it, so
    that the label stays what it was. Pairs for which nothing is found are passed over.
    """
    by_word: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    texts = list({(pair.source, pair.premise) for pair in pairs})
    texts.sort()
    words = [_content(text) for _, text in texts]
    for place, (source, _) in enumerate(texts):
        for word in words[place]:
            by_word[source, word].append(place)
    for pair in pairs:
        rng = random.Random(f"{seed}:crowd:{pair.premise[:200]}:{pair.claim}")
        claim, own = _content(pair.claim), _content(pair.premise)
        shared = len(claim & own)
        rare = sorted(claim | own, key=lambda word: (len(by_word[pair.source, word]), word))
        rare = [word for word in rare if 1 < len(by_word[pair.source, word]) <= _COMMON][:6]
        near = sorted({place for word in rare for place in by_word[pair.source, word]})
        rng.shuffle(near)
        chosen: list[int] = []
        for place in near[:200]:
            theirs = words[place]
            least = min(len(theirs), len(own)) or 1
            if (
                len(theirs & own) / least < _ALIKE
                and len(theirs & claim) <= max(1, shared - 1)
                and len(theirs) >= 4
            ):
                chosen.append(place)
            if len(chosen) == most:
                break
        if not chosen:
            continue
        parts = [texts[place][1] for place in chosen[: rng.randint(1, most)]]
        parts.insert(rng.randint(0, len(parts)), pair.premise)
        yield replace(pair, premise=" ".join(part.strip() for part in parts), kind=f"{pair.kind}, crowded")


def chatty(pair: Pair, *, seed: int) -> Pair:
    """The same pair, its claim worded as in a conversation; what it claims stays the same."""
    rng = random.Random(f"{seed}:chat:{pair.claim}")
    claim = pair.claim.strip()
    if rng.random() < 0.8:
        lead = rng.choice(_LEADS)
        # The first word stays as it is where it may be a name.
        first = claim.split(" ", 1)[0]
        if lead[-2] != "!" and first.lower() in STOP and first != "I":
            claim = claim[0].lower() + claim[1:]
        claim = lead + claim
    if rng.random() < 0.5:
        claim = claim.rstrip(" .!?") + rng.choice(_ENDS)
    if rng.random() < 0.25:
        claim = claim.lower()
    return replace(pair, claim=claim, kind=f"{pair.kind}, chatty")


def doubled(rows: Iterable[Row], *, seed: int) -> Iterator[Case]:
    """Two statements as one claim, of rows whose claims are right summaries or answers of several sentences.

    A true one joins two sentences of one summary; a false one joins a sentence with one of another row.
    """
    whole = [row for row in rows if row.label == "supported"]
    found = [(row, [text for text in sentences_of(row.claim) if len(text.split()) <= 22]) for row in whole]
    found = [(row, texts) for row, texts in found if len(texts) >= 2]
    for place, (row, texts) in enumerate(found):
        rng = random.Random(f"{seed}:double:{row.premise[:200]}")
        one, two = rng.sample(texts, 2)
        yield Case(row.premise, _both(one, two, rng), "entailment", row.source, "doubled")
        strange = rng.choice(found[(place + rng.randint(1, 400)) % len(found)][1])
        if strange not in texts:
            parts = [one, strange]
            rng.shuffle(parts)
            yield Case(row.premise, _both(*parts, rng), "not_entailment", row.source, "doubled, strange")


def _both(one: str, two: str, rng: random.Random) -> str:
    first = two.split(" ", 1)[0]
    low = two[0].lower() + two[1:] if first.lower() in STOP and first != "I" else two
    between = rng.choice((", and ", " and ", "; ", ", while "))
    return f"{one.rstrip(' .')}{between}{low}"

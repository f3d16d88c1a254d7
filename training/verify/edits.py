"""Small edits that make a true claim false: names, numbers, units, dates, roles, negation.

Most edits can be made to the claim alone, which breaks it, or to claim and sources alike, which leaves it
true. Both are made in equal numbers, so that an odd name in the claim says nothing by itself. Negation and
exchanged roles fit the claim only.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from surefoot.facts import extract_facts

__all__ = ["EDITS", "OF_CLAIMS", "Edit", "find_edit"]

_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_UNITS: Final = (
    ("days", "weeks", "months", "years", "hours", "minutes"),
    ("million", "billion", "thousand"),
    ("miles", "kilometres", "metres", "feet"),
    ("kg", "pounds", "tonnes"),
    ("pounds", "dollars", "euros"),
)
_PAIRS: Final = (
    ("increased", "decreased"), ("increase", "decrease"), ("rose", "fell"), ("higher", "lower"),
    ("more", "fewer"), ("before", "after"), ("first", "last"), ("largest", "smallest"), ("won", "lost"),
    ("best", "worst"), ("north", "south"), ("east", "west"), ("northern", "southern"), ("eastern", "western"),
    ("above", "below"), ("older", "younger"), ("opened", "closed"), ("always", "never"), ("all", "none"),
    ("father", "mother"), ("son", "daughter"), ("brother", "sister"), ("husband", "wife"), ("up", "down"),
    ("better", "worse"), ("gained", "lost"), ("most", "least"), ("majority", "minority"), ("early", "late"),
    ("beginning", "end"), ("male", "female"), ("men", "women"), ("buy", "sell"), ("accepted", "rejected"),
    ("agreed", "refused"), ("guilty", "innocent"), ("failed", "succeeded"), ("with", "without"),
)  # fmt: skip
_AUXILIARY: Final = re.compile(
    r"\b(is|are|was|were|has|have|had|will|would|can|could|should|does|did)\b(?! not\b)"
)
_NOT: Final = re.compile(r"\b(is|are|was|were|has|have|had|will|would|can|could|should|does|did) not\b")


_EITHER_WAY: Final = frozenset(
    "a against also an and are as between bordered borders called co-wrote cooperated cousin differs "
    "divorced drew equals faced fought friend friends from had has have is known like married met named near "
    "neighbor neighbour nor of or played resembles sibling the through to together twin versus vs was were "
    "with worked".split()
)
"""Words that may stand between two names which can be exchanged without changing what is said."""

OF_CLAIMS: Final = frozenset({"negation", "roles"})
"""Kinds of edits that cannot be made to the sources as well."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``old`` by ``new``, as whole words; ``kind`` says what was changed."""

    kind: str
    old: str
    new: str

    def apply(self, text: str) -> str:
        """``text`` with every ``old`` replaced."""
        return re.sub(rf"(?<!\w){re.escape(self.old)}(?!\w)", lambda _: self.new, text)


def _names(claim: str, source: str, rng: random.Random) -> Edit | None:
    own = [fact for fact in extract_facts(claim) if fact.kind == "name" and fact.text in source]
    low = claim.lower()
    others = sorted(
        {fact.text for fact in extract_facts(source[:6000]) if fact.kind == "name" and len(fact.text) > 2}
    )
    rng.shuffle(own)
    for fact in own:
        size = len(fact.text.split())
        choice = [
            name
            for name in others
            if len(name.split()) == size
            and name.isupper() == fact.text.isupper()
            and not any(word in low for word in name.lower().split())
        ]
        if choice:
            return Edit("name", fact.text, rng.choice(choice))
    return None


def _numbers(claim: str, source: str, rng: random.Random) -> Edit | None:
    own = list(re.finditer(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w,.]?\d)", claim))
    own = [match for match in own if match.group().strip(",") in source]
    if not own:
        return None
    old = rng.choice(own).group().strip(",")
    digits = old.replace(",", "")
    same = {
        found
        for found in re.findall(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?", source[:6000])
        if len(found.strip(",")) == len(old) and found.strip(",") != old and found.strip(",") not in claim
    }
    if same and rng.random() < 0.6:
        return Edit("number", old, rng.choice(sorted(same)).strip(","))
    if "." in digits:
        new = f"{float(digits) * rng.choice((0.5, 0.8, 1.2, 1.5, 2.0)):.{len(digits.split('.')[1])}f}"
    elif len(digits) > 15:
        return None
    elif len(digits) == 4 and digits[:2] in ("18", "19", "20"):
        new = str(int(digits) + rng.choice((-10, -3, -2, -1, 1, 2, 3, 10)))
    else:
        value = int(digits)
        new = (
            str(max(1, value + rng.choice((-2, -1, 1, 2, 3))))
            if value < 20
            else str(max(1, round(value * rng.choice((0.5, 0.7, 0.9, 1.1, 1.3, 2.0)))))
        )
        if "," in old:
            new = f"{int(new):,}"
    return None if new == old else Edit("number", old, new)


def _units(claim: str, source: str, rng: random.Random) -> Edit | None:
    found = [
        (word, group)
        for group in (*_UNITS, _MONTHS, _DAYS)
        for word in group
        if re.search(rf"\b{word}\b", claim) and re.search(rf"\b{word}\b", source)
    ]
    if not found:
        return None
    word, group = rng.choice(found)
    new = rng.choice([other for other in group if other != word])
    return Edit("date" if word in (*_MONTHS, *_DAYS) else "unit", word, new)


def _opposites(claim: str, source: str, rng: random.Random) -> Edit | None:
    found = [
        (one, two)
        for pair in _PAIRS
        for one, two in (pair, pair[::-1])
        if re.search(rf"\b{one}\b", claim) and re.search(rf"\b{one}\b", source)
    ]
    if not found:
        return None
    one, two = rng.choice(found)
    return Edit("opposite", one, two)


def _roles(claim: str, source: str, rng: random.Random) -> Edit | None:
    """Two names of the claim exchanged: who did what to whom."""
    names = [fact.text for fact in extract_facts(claim) if fact.kind == "name" and fact.text in source]
    found = []
    for one, two in pairwise(names):
        match = re.search(rf"(?<!\w){re.escape(one)}( [^,;:.()]+ ){re.escape(two)}(?!\w)", claim)
        if not match or one.lower() == two.lower():
            continue
        words = match.group(1).lower().split()
        if len(words) < 8 and set(words) - _EITHER_WAY and "and" not in words:
            found.append(Edit("roles", match.group(), f"{two}{match.group(1)}{one}"))
    return rng.choice(found) if found else None


def _negation(claim: str, source: str, rng: random.Random) -> Edit | None:
    del source
    there = [match.group() for match in _NOT.finditer(claim)]
    if there:
        old = rng.choice(there)
        return Edit("negation", old, old.removesuffix(" not"))
    places = [match.group() for match in _AUXILIARY.finditer(claim)]
    if len(places) != 1:
        return None
    return Edit("negation", places[0], f"{places[0]} not")


EDITS: Final[Sequence[Callable[[str, str, random.Random], Edit | None]]] = (
    _names,
    _numbers,
    _units,
    _opposites,
    _roles,
    _negation,
)


def find_edit(claim: str, source: str, rng: random.Random) -> Edit | None:
    """An edit that changes what a claim says, or ``None``; every kind that fits is equally likely.

    Args:
        claim: a true statement.
        source: what it is true by; what is replaced occurs in it, except of :data:`OF_CLAIMS`.
        rng: decides.
    """
    kinds = list(EDITS)
    rng.shuffle(kinds)
    for make in kinds:
        edit = make(claim, source, rng)
        if edit is not None and edit.apply(claim) != claim:
            return edit
    return None

"""Statements of our own that no source can hold, and the control that is made of them.

A control is a text that was judged, asked about once more with an invention put into it. Everything else
stays as it was: the same sources, the same answer, the same words, and with them whatever in these tells the
model what to reply. A model that looks at the source sees the invention. A model that rates such a text as
low as the text alone has either been told to, or does not notice inventions; its low score then says nothing
in both cases.

Nobody can name the control in advance: the sentences are drawn anew for each call, with names that
nobody has, and stand before or behind the text at random. They read like details of a report rather than
like nonsense. The text itself stays in one piece: a sentence inside it might break up the very words that
have to be tried.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from surefoot.judge.prompts import Material

__all__ = ["control_of", "invention"]

_CHARACTERS_EACH: Final = 600
_MOST: Final = 8
"""One invention for so many characters, so that it is no trifle in a long text; and no more than these."""

_random: Final = secrets.SystemRandom()

_ONSETS: Final = "b br d f fr g gr h j k kl l m n p r s st t tr v w y".split()
_VOWELS: Final = "a e i o u a e o ei ia".split()
_CODAS: Final = "l n r s m nd rk ld n r l th".split()
_FAMILY: Final = "sen berg mann well ova ikin ster gaard etti ides low ham quist ardo".split()
_TOWN: Final = "by dorf ville ham stad mouth field nes burg haven ford vik".split()
_FIRM: Final = ("& Sons", "Holdings", "Institute", "Works", "Partners", "Trust", "Foundation")
_MONTHS: Final = (
    "January February March April May June July August September October November December"
).split()

_TEMPLATES: Final = (
    "{person} of {place} confirmed this on {date}.",
    "The figure was raised to {number} after a complaint by {person}.",
    "{firm} paid {number} euros for it in {year}.",
    "In {place} the same has applied to {number} households since {year}.",
    "{person} had asked for {number} days instead.",
    "It was first described by {person} in {year}, on page {number} of the {place} register.",
    "About {number} people in {place} were affected, among them {person}.",
    "It goes back to {person}, who lived in {place} until {year}.",
    "{firm} has reported {number} cases from {place}.",
    "A copy has been kept in {place} since {date}.",
    "{person} took over from {firm} on {date}.",
    "The town of {place} contributed {number} euros, and {firm} the rest.",
)


def invention(known: str) -> str:
    """One sentence about people and places that do not exist.

    Args:
        known: text, case-folded, that holds none of its names.
    """
    return _random.choice(_TEMPLATES).format_map(
        {
            "person": f"{_name(known, '')} {_name(known, _random.choice(_FAMILY))}",
            "place": _name(known, _random.choice(_TOWN)),
            "firm": f"{_name(known, '')} {_random.choice(_FIRM)}",
            "number": str(_random.randrange(12, 9_000)),
            "year": str(_random.randrange(1911, 2024)),
            "date": f"{_random.randrange(1, 29)} {_random.choice(_MONTHS)} {_random.randrange(1931, 2024)}",
        }
    )


def control_of(materials: Sequence[Material]) -> Material:
    """Statements about one source as a single one, with inventions in it that differ in every call.

    Args:
        materials: with the same source, question and answer; at least one.
    """
    first = materials[0]
    statements = [item.statement for item in materials]
    known = "\n".join((first.source, *statements, first.answer or "", first.question or "")).casefold()
    size = sum(map(len, statements))
    made = [invention(known) for _ in range(min(_MOST, 1 + size // _CHARACTERS_EACH))]
    answer = None if first.answer is None else _put_in([first.answer], made)
    return Material(first.source, _put_in(statements, made), first.question, answer)


def _name(known: str, ending: str) -> str:
    name = ""
    for more in (0.3, *[0.6] * 20):  # a text that holds all of them is not looked through for ever
        start = _random.choice(_ONSETS) + _random.choice(_VOWELS)
        if _random.random() < more:
            start += _random.choice(_ONSETS) + _random.choice(_VOWELS)
        name = (start + _random.choice(_CODAS) + ending).capitalize()
        if name.casefold() not in known:
            break
    return name


def _put_in(texts: Sequence[str], sentences: Sequence[str]) -> str:
    """The texts one after the other, and each sentence before, behind or between them, at random."""
    parts = list(texts)
    for sentence in sentences:
        parts.insert(_random.randrange(len(parts) + 1), sentence)
    return " ".join(parts)

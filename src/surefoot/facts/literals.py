"""Number literals and number words: tokens -> value and precision."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.facts.units import SCALE
from surefoot.facts.words import Token, word_list

__all__ = ["FRACTION", "ORDINAL", "STARTS", "Literal", "parse_literal", "read_number"]

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3}){1,6}(?:\.\d{1,12})?")
_LAKHS = re.compile(r"\d{1,2}(?:,\d{2}){1,5},\d{3}(?:\.\d{1,12})?")
_PLAIN = re.compile(r"\d{1,18}(?:\.\d{1,12})?")
_DOTTED = re.compile(r"\d{1,3}(?:\.\d{3}){2,6}(?:,\d{1,2})?")
_DOTTED_COMMA = re.compile(r"\d{1,3}\.\d{3},\d{1,2}")
_COMMA = re.compile(r"\d{1,9},\d{1,2}")

_ONES = {
    word: float(value)
    for value, word in enumerate(
        word_list(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
            "sixteen seventeen eighteen nineteen"
        )
    )
}
_TENS = {
    word: float(10 * value)
    for value, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
_ORDINAL_ONES = word_list(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINAL: dict[str, float] = {word: float(i) for i, word in enumerate(_ORDINAL_ONES, start=1)}
FRACTION: dict[str, float] = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourths": 4,
    "fifth": 5, "fifths": 5, "sixths": 6, "sevenths": 7, "eighth": 8, "eighths": 8, "tenth": 10,
    "tenths": 10,
}  # fmt: skip
"""Denominators of fraction words."""
STARTS = frozenset(_ONES) | frozenset(_TENS) | frozenset(ORDINAL) | frozenset(FRACTION) | {"a", "an"}
"""Words that a number or share may start with."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A number as read: its readings, the unit of its last place, and the token after it.

    ``factor`` is the product of its scale words ("5 million": 1e6), 1 without any.
    """

    values: tuple[float, ...]
    step: float
    end: int
    factor: float = 1.0
    digits: bool = True

    @property
    def scaled(self) -> bool:
        """Whether a scale word or suffix was applied."""
        return self.factor != 1.0

    def times(self, factor: float, end: int) -> Literal:
        """The number with one more scale word, which ends before token ``end``."""
        values = tuple(v * factor for v in self.values[:1])
        return Literal(values, self.step * factor, end, self.factor * factor, self.digits)


def parse_literal(text: str) -> tuple[tuple[float, ...], float] | None:
    """Readings and last place of a digit literal, or ``None`` for versions, identifiers, lists.

    "1.500" keeps both readings; "1.500.000" and "1.234,5" are continental and "12,34,567" is Indian
    notation.
    """
    text = text.replace("·", ".")  # the raised point of British journals
    if _PLAIN.fullmatch(text):
        value = float(text)
        whole, _, decimals = text.partition(".")
        step = 10.0 ** -len(decimals)
        if len(decimals) == 3 and len(whole) <= 3 and whole.strip("0"):
            return (value, value * 1000), step
        return (value,), step
    if _THOUSANDS.fullmatch(text) or _LAKHS.fullmatch(text):
        text = text.replace(",", "")
    elif _DOTTED.fullmatch(text) or _DOTTED_COMMA.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    elif _COMMA.fullmatch(text):
        text = text.replace(",", ".")
    else:
        return None
    return (float(text),), 10.0 ** -len(text.partition(".")[2])


def _read_words(tokens: Sequence[Token], i: int) -> Literal | None:
    """Number words from token ``i``: "twenty-five", "two hundred and six", "a dozen"."""
    total, current, j = 0.0, 0.0, i
    seen, factor = False, 1.0
    low = tokens[i].low
    if low in ("a", "an"):
        if i + 1 < len(tokens) and tokens[i + 1].low in SCALE and tokens[i + 1].low != "k":
            current, j, seen = 1.0, i + 1, True
        else:
            return None
    size = len(tokens)
    last_small = False  # a ones word was read: another may not follow directly
    while j < size and j - i < 24:
        low = tokens[j].low
        if low in _ONES and not last_small:
            current += _ONES[low]
            last_small = True
        elif low in _TENS and not last_small and current % 100 == 0:
            current += _TENS[low]
            if j + 2 < size and tokens[j + 1].text == "-" and 1 <= _ONES.get(tokens[j + 2].low, 0) <= 9:
                current += _ONES[tokens[j + 2].low]
                j += 2
                last_small = True
        elif seen and low == "hundred" and current:
            current *= 100
            last_small = False
        elif seen and low in SCALE and len(low) > 3 and low != "hundred" and (current or total):
            total += (current or 1) * SCALE[low]
            current, factor, last_small = 0.0, factor * SCALE[low], False
        elif (
            seen
            and low == "and"
            and tokens[j - 1].low in ("hundred", "thousand", "million")
            and j + 1 < size
            and (tokens[j + 1].low in _ONES or tokens[j + 1].low in _TENS)
        ):
            pass
        else:
            break
        seen = True
        j += 1
    if not seen or j == i:
        return None
    value = total + current
    step = 1.0
    if factor != 1.0 and current == 0:
        step = SCALE.get(tokens[j - 1].low, 1.0) if tokens[j - 1].low != "dozen" else 1.0
    elif current:
        factor = 1.0
    return Literal((value,), step, j, factor, digits=False)


def read_number(tokens: Sequence[Token], i: int) -> Literal | None:
    """The number that starts at token ``i``, with scale words applied, or ``None``.

    Suffixes glued to a currency amount ("$5m") are left to the caller, who knows the currency.
    """
    token = tokens[i]
    size = len(tokens)
    if not token.text[0].isdigit():
        read = _read_words(tokens, i)
        if read is None:
            return None
        return _and_a_half(tokens, read)
    parsed = parse_literal(token.text)
    if parsed is None:
        return None
    values, step = parsed
    j = i + 1
    # "1 500" and "1 500 000": groups of exactly three digits, one space apart.
    if token.text.isdigit() and len(token.text) <= 3 and not token.text.startswith("0"):
        joined = token.text
        while (
            j < size
            and j - i < 6
            and len(tokens[j].text) == 3
            and tokens[j].text.isdigit()
            and tokens[j].start == tokens[j - 1].end + 1
        ):
            joined += tokens[j].text
            j += 1
        if j > i + 1:
            values = (float(joined),)
    read = Literal(values, step, j)
    while j < size and tokens[j].low in SCALE and tokens[j].low not in ("k", "mm", "tn", "dozen"):
        # A scale word is written next to its number, possibly glued ("5bn").
        if len(tokens[j].low) <= 3 and tokens[j].start - tokens[j - 1].end > 1:
            break
        j += 1
        read = read.times(SCALE[tokens[j - 1].low], j)
    if read.scaled or j >= size:
        return _and_a_half(tokens, read)
    if tokens[j].text == "-" and j + 1 < size and tokens[j + 1].low in SCALE and len(tokens[j + 1].low) > 4:
        return read.times(SCALE[tokens[j + 1].low], j + 2)
    if tokens[j].start == tokens[j - 1].end and tokens[j].text in ("k", "K", "M"):
        return read.times(1e3 if tokens[j].low == "k" else 1e6, j + 1)
    return _and_a_half(tokens, read)


def _and_a_half(tokens: Sequence[Token], read: Literal) -> Literal:
    """The number with a following "and a half" and its scale word: "two and a half million"."""
    j = read.end
    if read.scaled or [t.low for t in tokens[j : j + 3]] != ["and", "a", "half"]:
        return read
    half = Literal((read.values[0] + 0.5,), 0.5, j + 3, digits=read.digits)
    if j + 3 < len(tokens) and tokens[j + 3].low in SCALE and len(tokens[j + 3].low) > 4:
        return half.times(SCALE[tokens[j + 3].low], j + 4)
    return half

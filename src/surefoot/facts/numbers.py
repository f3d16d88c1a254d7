"""Numbers in text: counts, percentages, money, quantities with units, ordinals, ranges, labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from surefoot.facts.amounts import Amount, make_fact, read_amount, unit_at, words_after
from surefoot.facts.literals import FRACTION, ORDINAL, STARTS, Literal
from surefoot.facts.records import Fact
from surefoot.facts.units import CURRENCY_SIGN
from surefoot.facts.words import CHANGE, STOP, Token, stem, word_list, word_set

__all__ = ["find_numbers"]

_LABELS = word_set(
    "section article chapter phase type grade level figure fig table page route highway version rule "
    "class category step stage room flight channel schedule paragraph clause part appendix item "
    "question exhibit number no form volume vol act scene season episode book title division group tier "
    "line gate runway interstate amendment protocol resolution no. cohort arm annex proposition "
    "regulation"
)
_SCORE = frozenset(
    stem(w)
    for w in word_list("win lose beat defeat draw score victory tie lead trail thrash triumph rout edge")
)
_ORDINAL_SUFFIX = frozenset({"st", "nd", "rd", "th"})
_MAX_FACTS = 512
"""Numbers kept per text; beyond that it is a table, not a sentence."""


def _glued(tokens: Sequence[Token], i: int) -> bool:
    """Whether token ``i`` is the tail of an identifier: "H1N1", "COVID-19", "v1.2", "#5"."""
    if not i:
        return False
    prev = tokens[i - 1]
    if prev.end != tokens[i].start:
        return False
    if (prev.text.isalnum() and prev.low not in ("s", "c", "a", "usd", "rs")) or prev.text in (
        "_",
        "#",
        ":",
        "@",
        "/",
        "\\",
    ):
        return True
    if prev.text in ("-", "‑", ".", ",") and i > 1 and tokens[i - 2].end == prev.start:
        return tokens[i - 2].text.isalnum() or prev.text != "-"
    return False


def _identifierwords_after(tokens: Sequence[Token], amount: Amount) -> bool:
    """Whether a digit literal goes on into something that is no number: "3D", "4(2)", "2:1", "3/4"."""
    j = amount.end
    if not amount.read.digits or j >= len(tokens) or tokens[j].start != tokens[j - 1].end:
        return False
    nxt = tokens[j]
    if nxt.word or nxt.text in ("_", "@"):
        return True
    if nxt.text == "(":
        return j + 1 < len(tokens) and tokens[j + 1].text[0].isalnum()
    if nxt.text in (":", "/", "×") and amount.end == amount.read.end:
        return j + 1 < len(tokens) and tokens[j + 1].text[0].isdigit()
    return False


def _fraction(text: str, tokens: Sequence[Token], i: int) -> tuple[Fact, int] | None:
    """A share in words, in percent: "half", "a third", "two-thirds", "three quarters of"."""
    low = tokens[i].low
    size = len(tokens)
    top, j = 1.0, i
    if low in ("a", "an", "one"):
        j = i + 1
    elif low in ("two", "three", "four", "five", "seven", "nine"):
        top, j = {"two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "seven": 7.0, "nine": 9.0}[low], i + 1
    if j > i and j < size and tokens[j].text == "-":
        j += 1
    if j >= size or tokens[j].low not in FRACTION:
        return None
    word = tokens[j].low
    prev = tokens[i - 1].low if i else ""
    nxt = tokens[j + 1].low if j + 1 < size else ""
    if word == "half" and (
        prev in ("second", "first", "the", "other", "one", "and", "-", "better")
        or nxt in ("-", "time", "brother")
    ):
        return None
    if word != "half" and (j == i or (nxt not in ("of",) and not word.endswith("s")) or prev == "and"):
        return None
    if (word == "quarters" and top == 1.0) or (top >= FRACTION[word]):
        return None
    value = top / FRACTION[word]
    read = Literal((value * 100,), 2.0, j + 1, digits=False)
    k = j + 1
    if nxt in ("a", "an"):  # half a million, half an hour
        unit = unit_at(tokens, j + 2, adjacent=False)
        if unit:
            read = Literal((value,), 0.1, unit[1], digits=False)
            return make_fact(text, tokens, Amount(read, i, unit[1], unit[0])), unit[1]
        scale = {"million": 1e6, "billion": 1e9, "dozen": 12.0}.get(tokens[j + 2].low if j + 2 < size else "")
        if scale:
            read = Literal((value * scale,), scale / 10, j + 3, scale, digits=False)
            found = unit_at(tokens, j + 3, adjacent=False)
            k = found[1] if found else j + 3
            return make_fact(text, tokens, Amount(read, i, k, found[0] if found else "")), k
        return None
    return make_fact(text, tokens, Amount(read, i, k, "%"), comparator="~"), k


def _ordinal(text: str, tokens: Sequence[Token], i: int) -> tuple[Fact, int] | None:
    low = tokens[i].low
    size = len(tokens)
    if low in ORDINAL:
        prev = tokens[i - 1].low if i else ""
        if prev in ("at", "-") or (
            low == "second" and prev not in ("the", "a", "his", "her", "its", "their", "finished", "in")
        ):
            return None
        read = Literal((ORDINAL[low],), 1.0, i + 1, digits=False)
        return make_fact(
            text, tokens, Amount(read, i, i + 1), kind="ordinal", dimension="ordinal", comparator="="
        ), i + 1
    if tokens[i].text.isdigit() and len(low) <= 4 and i + 1 < size and tokens[i + 1].low in _ORDINAL_SUFFIX:
        if tokens[i + 1].start != tokens[i].end:
            return None
        read = Literal((float(low),), 1.0, i + 2)
        return make_fact(
            text, tokens, Amount(read, i, i + 2), kind="ordinal", dimension="ordinal", comparator="="
        ), i + 2
    return None


def find_numbers(text: str, tokens: Sequence[Token], taken: frozenset[int] | set[int]) -> Iterator[Fact]:
    """Numbers of ``text`` in order; tokens whose index is in ``taken`` belong to dates."""
    stems = {stem(t.low) for t in tokens} if any(t.low == "from" for t in tokens) else set()
    changes = bool(stems & CHANGE)
    i, made, size = 0, 0, len(tokens)
    while i < size and made < _MAX_FACTS:
        if not (tokens[i].text[0].isdigit() or tokens[i].low in STARTS) or i in taken or _glued(tokens, i):
            i += 1
            continue
        for finder in (_fraction, _ordinal):
            hit = finder(text, tokens, i)
            if hit:
                break
        if hit:
            yield hit[0]
            i, made = hit[1], made + 1
            continue
        amount = read_amount(tokens, i)
        if amount is None or any(k in taken for k in range(i, amount.end)):
            i += 1
            continue
        fact, i = _one(text, tokens, amount, taken, changes=changes)
        if fact is not None:
            made += 1
            yield fact


def _one(text: str, tokens: Sequence[Token], amount: Amount, taken: frozenset[int] | set[int], *,
         changes: bool) -> tuple[Fact | None, int]:  # fmt: skip
    """The fact that ``amount`` begins (alone, as a label or as a range) and the token after it."""
    i, j, size = amount.start, amount.end, len(tokens)
    if _identifierwords_after(tokens, amount):
        while j < size and tokens[j].start == tokens[j - 1].end and tokens[j].text not in (",", ";", "."):
            j += 1
        return None, j
    prev = tokens[i - 1] if i else None
    if prev is not None and prev.text in ("-", "−", "–") and prev.end == tokens[i].start:
        if i == 1 or tokens[i - 2].end != prev.start:
            read = Literal(tuple(-v for v in amount.read.values), amount.read.step, amount.read.end)
            return make_fact(text, tokens, Amount(read, i - 1, j, amount.unit)), j
        return None, j
    if prev is not None and prev.word and not amount.unit and not amount.read.scaled:
        if prev.low in _LABELS or prev.low.rstrip("s") in _LABELS:
            if (
                j + 1 < size
                and tokens[j].low in ("-", "–", "and", "or", "to", "/", ",")
                and tokens[j + 1].text[0].isdigit()
            ):
                return None, j + 2  # "stages 1-2", a list
            label = stem(prev.low)
            return make_fact(
                text, tokens, amount, kind="label", unit=label, dimension="label:" + label, comparator="="
            ), j
        named = prev.text[0].isupper() and prev.low not in STOP and not prev.low.endswith(("'s", "'"))
        if named and amount.read.digits:
            score = (
                j < size
                and tokens[j].text in ("-", "–")
                and {stem(t.low) for t in tokens[max(0, i - 7) : i]} & _SCORE
            )
            if not score:
                return None, j  # "Boeing 747", "Windows 10"
    joined = _range(text, tokens, amount, taken, changes=changes)
    if joined:
        return joined
    if tokens[i].low == "one" and j == i + 1 and not words_after(tokens, j):
        return None, j  # the pronoun
    return make_fact(text, tokens, amount), j


def _range(text: str, tokens: Sequence[Token], amount: Amount, taken: frozenset[int] | set[int], *,
           changes: bool) -> tuple[Fact, int] | None:  # fmt: skip
    i, j, size = amount.start, amount.end, len(tokens)
    if j >= size or tokens[j].low not in ("-", "–", "—", "‑", "to", "and", "in", "or"):
        return None
    link = tokens[j].low
    lows = {t.low for t in tokens[max(0, i - 2) : i]}
    if link == "and" and "between" not in lows:
        return None
    k = j + 1
    if k < size and tokens[k].text in CURRENCY_SIGN:
        k += 1
    if k >= size or k in taken:
        return None
    other = read_amount(tokens, k)
    if other is None or _identifierwords_after(tokens, other):
        return None
    low, high = amount.read.values[0], other.read.values[0]
    if link == "in":  # "one in five"
        if (
            other.unit
            or amount.unit
            or not (1 <= low < high <= 1000 and low <= 10)
            or words_after(tokens, other.end) & {"second"}
        ):
            return None
        read = Literal((100 * low / high,), 1.0, other.end, digits=False)
        return make_fact(text, tokens, Amount(read, i, other.end, "%"), comparator="~"), other.end
    if amount.unit and other.unit and amount.unit != other.unit:
        return None
    if amount.unit and not other.unit and not amount.sign:
        return None
    if link == "to" and "from" in lows and changes:
        return None  # a change: two values
    if other.read.scaled and not amount.read.scaled and low * other.read.factor < high:
        low *= other.read.factor  # "5-10 million"
    if link not in ("and", "or", "to") and not amount.unit and not other.unit:
        near = {stem(t.low) for t in tokens[max(0, i - 7) : i]} | {
            stem(t.low) for t in tokens[other.end : other.end + 3]
        }
        if low >= high or near & _SCORE:
            return make_fact(text, tokens, Amount(other.read, i, other.end), values=(low, high), kind="score",
                         dimension="score", comparator="="), other.end  # fmt: skip
    if low >= high:
        return None
    merged = Amount(other.read, i, other.end, amount.unit or other.unit)
    fact = make_fact(text, tokens, merged, values=(low, high), kind="range")
    return fact, other.end

"""An amount: a number with its currency or unit, its bound, and the words beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.facts.literals import Literal, read_number
from surefoot.facts.records import Fact
from surefoot.facts.units import CURRENCY, CURRENCY_SIGN, UNIT, UNIT_CASED, base_factor
from surefoot.facts.words import STOP, Token, context_key, word_set

__all__ = ["Amount", "make_fact", "read_amount", "unit_at", "words_after"]

_PREFIX_COMPARATORS: tuple[tuple[tuple[str, ...], str], ...] = tuple(
    (tuple(phrase.split()), sign)
    for sign, phrases in {
        ">=": "at least|no less than|not less than|no fewer than|not fewer than|minimum of|minimum"
        "|no sooner than",
        "<=": "up to|at most|no more than|not more than|maximum of|maximum|not exceed|not exceeding"
        "|no later than|not to exceed|as much as|as many as|no longer than|cannot exceed",
        ">": "more than|over|above|exceeding|exceeds|exceeded|exceed|greater than|in excess of|higher than"
        "|larger than|longer than|upwards of|>",
        "<": "less than|under|below|fewer than|lower than|smaller than|shorter than|<",
        "~": "about|approximately|around|roughly|nearly|almost|some|circa|approx|approx .|estimated|close to"
        "|~|≈|just over|just under|just above|just below|a little over|slightly over|slightly under|nearing",
    }.items()
    for phrase in phrases.split("|")
)
_SUFFIX_COMPARATORS = {
    ("or", "more"): ">=", ("or", "above"): ">=", ("or", "older"): ">=", ("or", "over"): ">=",
    ("and", "over"): ">=", ("and", "older"): ">=", ("and", "above"): ">=", ("or", "longer"): ">=",
    ("or", "higher"): ">=", ("or", "later"): ">=", ("or", "greater"): ">=", ("and", "up"): ">=",
    ("or", "less"): "<=", ("or", "fewer"): "<=", ("or", "under"): "<=", ("or", "below"): "<=",
    ("or", "younger"): "<=", ("or", "lower"): "<=", ("and", "under"): "<=", ("or", "so"): "~",
}  # fmt: skip
_MODIFIER = word_set(
    "full consecutive calendar business working more additional metric further straight whole extra of "
    "other or so long light nautical"
)
_DAYKINDS = {"business": "business day", "working": "business day"}
_RATE = frozenset(
    {"second", "minute", "hour", "day", "week", "month", "quarter", "year", "kg", "l", "km", "mile", "m2"}
)
_ADVERB_RATE = {
    "hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter",
    "annually": "year", "yearly": "year", "annual": "year",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit, as tokens ``[start, end)``."""

    read: Literal
    start: int
    end: int
    unit: str = ""
    sign: bool = False  # the currency stood before the number


def unit_at(tokens: Sequence[Token], j: int, *, adjacent: bool) -> tuple[str, int] | None:
    """The unit that starts at token ``j`` and the token after it."""
    size = len(tokens)
    if j >= size:
        return None
    text, low = tokens[j].text, tokens[j].low
    nxt = tokens[j + 1].low if j + 1 < size else ""
    if low == "per" and nxt == "cent":
        return "%", j + 2
    if low == "percentage" and nxt in ("point", "points"):
        return "pp", j + 2
    if low in ("percent", "%") and nxt in ("point", "points"):
        return "pp", j + 2
    if low == "basis" and nxt in ("point", "points"):
        return "bp", j + 2
    if low in ("degree", "degrees", "°"):
        if nxt in ("c", "celsius", "centigrade"):
            return "°C", j + 2
        if nxt in ("f", "fahrenheit"):
            return "°F", j + 2
        return "degree", j + 1
    if low in ("square", "sq") and j + 1 < size:
        k = j + 2 if nxt == "." else j + 1
        inner = UNIT.get(tokens[k].low) if k < size else None
        if inner in ("m", "km", "ft", "mile"):
            return inner + "2", k + 1
        return None
    if low in ("us", "u.s.", "canadian", "australian", "hong") and nxt in ("dollar", "dollars"):
        return {"canadian": "CAD", "australian": "AUD"}.get(low, "USD"), j + 2
    if low == "pounds" and nxt == "sterling":
        return "GBP", j + 2
    if text in UNIT_CASED:
        return (UNIT_CASED[text], j + 1) if UNIT_CASED[text] else None
    if low in CURRENCY and low not in ("won", "cad"):
        return CURRENCY[low], j + 1
    unit = UNIT.get(low)
    if unit is None:
        return None
    if len(low) == 1 and low.isalpha() and not (adjacent or low in "gm") and text != "L":
        return None
    if (
        len(low) <= 2
        and text[0].isupper()
        and low not in ("mb", "gb", "kb", "tb", "hz", "km", "kg", "cm", "ml", "l")
    ):
        return None  # "MI", "PP": an acronym
    return unit, j + 1


def read_amount(tokens: Sequence[Token], i: int) -> Amount | None:
    """The number at token ``i`` with the currency before it and the unit after it."""
    read = read_number(tokens, i)
    if read is None:
        return None
    size = len(tokens)
    start, unit, sign = i, "", False
    if i and tokens[i - 1].text in CURRENCY_SIGN and tokens[i].start - tokens[i - 1].end <= 1:
        unit, sign, start = CURRENCY_SIGN[tokens[i - 1].text], True, i - 1
        if start and tokens[start - 1].end == tokens[start].start and tokens[start].text == "$":
            prefix = tokens[start - 1].text
            named = {
                "US": "USD",
                "A": "AUD",
                "AU": "AUD",
                "C": "CAD",
                "CA": "CAD",
                "HK": "HKD",
                "NZ": "NZD",
                "S": "SGD",
            }
            if prefix in named:
                unit, start = named[prefix], start - 1
    elif i and tokens[i - 1].low in (
        "usd",
        "eur",
        "gbp",
        "inr",
        "rs",
        "jpy",
        "chf",
        "cny",
        "rmb",
        "cad",
        "aud",
    ):
        unit, sign, start = CURRENCY[tokens[i - 1].low], True, i - 1
    elif i > 1 and tokens[i - 1].text == "." and tokens[i - 2].low == "rs":
        unit, sign, start = "INR", True, i - 2
    j = read.end
    if sign and j < size and not read.scaled and tokens[j].start - tokens[j - 1].end <= 1:
        factor = {"m": 1e6, "mm": 1e6, "b": 1e9, "k": 1e3, "tn": 1e12, "t": 1e12}.get(tokens[j].low)
        if factor and (tokens[j].start == tokens[j - 1].end or tokens[j].text in ("m", "M", "B")):
            j += 1
            read = read.times(factor, j)
    if unit:
        return Amount(read, start, j, unit, sign)
    k = j
    if k + 1 < size and tokens[k].text in ("-", "‑") and tokens[k].start == tokens[k - 1].end:
        k += 1
    if [t.low for t in tokens[k : k + 2]] in (["or", "more"], ["or", "fewer"], ["or", "less"]):
        k += 2  # "10 or more years": the bound is read later
    found = unit_at(tokens, k, adjacent=k < size and tokens[k].start == tokens[k - 1].end)
    if found is None and k < size and tokens[k].low in _MODIFIER:
        kind = _DAYKINDS.get(tokens[k].low)
        found = unit_at(tokens, k + 1, adjacent=False)
        if found and kind and found[0] == "day":
            found = (kind, found[1])
    if found:
        return Amount(read, start, found[1], found[0])
    return Amount(read, start, j)


def _prefix_comparator(tokens: Sequence[Token], start: int) -> str:
    lows = [t.low for t in tokens[max(0, start - 5) : start]]
    while lows and lows[-1] in ("a", "an", "the", "of", "by", "total"):
        if lows[-1] == "of" and len(lows) > 1 and lows[-2] in ("minimum", "maximum", "excess"):
            lows.pop()
            break
        lows.pop()
    best = ("", 0)
    for phrase, sign in _PREFIX_COMPARATORS:
        bare = phrase[:-1] if phrase[-1] == "of" else phrase
        for words in {phrase, bare}:
            if len(words) > best[1] and tuple(lows[-len(words) :]) == words:
                best = (sign, len(words))
    if best[0] == ">" and len(lows) > best[1] and lows[-best[1] - 1] in ("no", "not"):
        return "<="
    if best[0] == "<" and len(lows) > best[1] and lows[-best[1] - 1] in ("no", "not"):
        return ">="
    return best[0]


def _suffix_comparator(tokens: Sequence[Token], end: int) -> str:
    if end < len(tokens) and tokens[end].text == "+":
        return ">="
    for k in (end, end + 1, end - 3):  # "10 or more", "10 employees or more", "10 or more years"
        pair = (tokens[k].low, tokens[k + 1].low) if 0 <= k < len(tokens) - 1 else ("", "")
        if pair in _SUFFIX_COMPARATORS:
            return _SUFFIX_COMPARATORS[pair]
    return ""


def _before(tokens: Sequence[Token], start: int) -> frozenset[str]:
    words: list[str] = []
    for k in range(start - 1, max(-1, start - 6), -1):
        token = tokens[k]
        if not token.word:
            if token.text == "-":
                continue
            break
        if token.low not in STOP:
            words.append(context_key(token.low))
            if len(words) == 2:
                break
    return frozenset(words)


def words_after(tokens: Sequence[Token], end: int) -> frozenset[str]:
    """Keys of up to three content words that follow token ``end``: what a count counts."""
    words: list[str] = []
    for k in range(end, min(len(tokens), end + 5)):
        token = tokens[k]
        if token.text == "-" or (k == end and token.low in ("of", "in", "or")):
            continue
        if k == end + 1 and token.low in ("the", "its", "all", "their", "our", "more"):
            continue
        if not token.word or token.low in STOP or token.low in UNIT:
            break
        words.append(context_key(token.low))
        if len(words) == 3:
            break
    return frozenset(words)


def _rate(tokens: Sequence[Token], end: int) -> tuple[str, int]:
    """The unit after "per", "a", "/" or as an adverb ("monthly"): the rate and the token after it."""
    if end < len(tokens) and tokens[end].low in _ADVERB_RATE:
        return _ADVERB_RATE[tokens[end].low], end + 1
    if end + 1 < len(tokens) and tokens[end].low in ("per", "a", "an", "/", "each", "every"):
        unit = UNIT.get(tokens[end + 1].low, "h" if tokens[end + 1].low == "h" else "")
        unit = {"h": "hour"}.get(unit, unit)
        if unit in _RATE:
            return unit, end + 2
    return "", end


def make_fact(text: str, tokens: Sequence[Token], amount: Amount, *, values: tuple[float, ...] | None = None,
          start: int | None = None, kind: str = "", unit: str | None = None, dimension: str = "",
          comparator: str = "") -> Fact:  # fmt: skip
    """The fact for ``amount``; the keywords replace what would be read off the tokens."""
    first = amount.start if start is None else start
    per, end = _rate(tokens, amount.end) if kind not in ("ordinal", "label", "score") else ("", amount.end)
    if per and amount.unit == "" and end - amount.end == 1:
        per, end = "", amount.end  # "ten annual reports"
    unit = amount.unit if unit is None else unit
    dim = dimension or (
        "money" if (len(unit) == 3 and unit.isupper()) or unit == "cent" else base_factor(unit)[0]
    )
    kind = kind or {"money": "money", "percent": "percent", "points": "percent", "count": "number"}.get(
        dim, "quantity"
    )
    sign = comparator or _suffix_comparator(tokens, end) or _prefix_comparator(tokens, first) or "="
    a, b = tokens[first].start, tokens[end - 1].end
    return Fact(kind, text[a:b], a, b, values or amount.read.values, unit, dim, per, sign, amount.read.step,
                _before(tokens, first), words_after(tokens, end))  # fmt: skip

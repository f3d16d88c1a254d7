"""Polarity: negation cues and antonyms, compared only between sentences that otherwise say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.facts.words import STOP, Token, context_key, stem, word_list, word_set

__all__ = ["Polarity", "compare_polarity", "has_negation", "read_polarity"]

_CUES = word_set("not n't never no without cannot neither nor none nobody nothing")
_IMPLICIT = word_set(
    "fail failed fails failing lack lacks lacked lacking unable refuse refused refuses prevent prevents "
    "prevented denied deny denies"
)
_SKIP_AFTER = word_set(
    "only just least more less fewer later longer necessarily exceed exceeding earlier sooner doubt "
    "merely simply matter one other to quite very all always every everyone until before after because "
    "even first last entirely completely fully"
)
_DET = frozenset({"the", "a", "an", "be", "been", "being", "have"})
_CONTRAST = word_set(
    "but rather instead only until except unless if otherwise else whether why would could may might "
    "should nothing nobody nor neither hardly barely rarely seldom"
)
"""Words after which a negated sentence and its positive twin may both hold."""
_PAIRS = word_list(
    "allow/prohibit permit/prohibit allow/forbid allow/ban accept/reject approve/reject increase/decrease "
    "rise/fall open/closed include/exclude "
    "gain/lose higher/lower more/less more/fewer larger/smaller greater/lesser positive/negative "
    "safe/unsafe legal/illegal lawful/unlawful possible/impossible eligible/ineligible "
    "effective/ineffective success/failure win/lose best/worst first/last maximum/minimum "
    "upregulate/downregulate inside/outside male/female required/optional mandatory/voluntary "
    "enable/disable agree/disagree guilty/innocent convict/acquit present/absent taxable/exempt "
    "profit/loss import/export buy/sell hot/cold improve/worsen raise/lower strengthen/weaken "
    "grow/shrink expand/contract appear/disappear known/unknown aware/unaware available/unavailable "
    "able/unable old/young likely/unlikely true/false valid/invalid visible/invisible paid/unpaid "
    "changed/unchanged upheld/overturned public/private major/minor alive/dead internal/external"
)
_CONCEPT: dict[str, tuple[str, int]] = {}
for _pair in _PAIRS:
    _a, _b = (stem(w) for w in _pair.split("/"))
    if _a in _CONCEPT:
        _key, _sign = _CONCEPT[_a]
    elif _b in _CONCEPT:
        _key, _sign = _CONCEPT[_b][0], -_CONCEPT[_b][1]
    else:
        _key, _sign = _a, 1
    _CONCEPT.setdefault(_a, (_key, _sign))
    _CONCEPT.setdefault(_b, (_key, -_sign))


@dataclass(frozen=True, slots=True)
class Polarity:
    """The content words of a sentence with the sign each is used with.

    Attributes:
        signs: concept -> the set of signs (+1, -1) it occurs with; antonyms share a concept.
        spans: concept -> code points of its first occurrence, cue included.
        beside: concept -> the concepts within two content words of its first occurrence.
        cues: the number of negation cues.
        open: a word stands in it after which the comparison is not safe ("if", "but", a question).
        marked: concepts that are antonyms or negated, where the sign says something.
    """

    signs: dict[str, frozenset[int]]
    spans: dict[str, tuple[int, int]]
    beside: dict[str, frozenset[str]]
    cues: int
    open: bool
    marked: frozenset[str]


def has_negation(words: frozenset[str]) -> bool:
    """Whether any negation cue is among the lower-cased words, whatever its scope."""
    return not words.isdisjoint(_CUES) or any(w.endswith("n't") for w in words)


def _cue(tokens: Sequence[Token], k: int) -> bool:
    low = tokens[k].low
    if low in _CUES or low.endswith("n't"):
        following = [t.low for t in tokens[k + 1 : k + 4]]
        while following and following[0] in _DET:
            following.pop(0)
        prev = tokens[k - 1].low if k else ""
        return not (following and following[0] in _SKIP_AFTER) and not (
            low == "not" and prev in ("or", "if", "why")
        )
    return low in _IMPLICIT and k + 1 < len(tokens) and (tokens[k + 1].low == "to" or low.startswith("lack"))


def _before_after(tokens: Sequence[Token], k: int, skip: frozenset[int]) -> tuple[str, int] | None:
    """The concept of "before surgery" and where it ends; none when a number or date is near."""
    near = range(k, min(k + 4, len(tokens)))
    if any(j in skip for j in near):
        return None
    for j in near:
        if j > k and tokens[j].word and tokens[j].low not in STOP:
            return "before " + context_key(tokens[j].low), tokens[j].end
    return None


def read_polarity(tokens: Sequence[Token], skip: frozenset[int]) -> Polarity:
    """The signs of the content words; tokens whose index is in ``skip`` (numbers, dates) are left out.

    A cue applies to the next content word of its clause.
    """
    order: list[str] = []
    signs: dict[str, set[int]] = {}
    spans: dict[str, tuple[int, int]] = {}
    marked: set[str] = set()
    cues, negative, cue_start = 0, False, 0

    def add(key: str, sign: int, start: int, end: int) -> None:
        order.append(key)
        signs.setdefault(key, set()).add(sign)
        spans.setdefault(key, (start, end))

    for k, token in enumerate(tokens):
        low = token.low
        if not token.word:
            negative = negative and token.text not in ",;:()"
            continue
        if _cue(tokens, k):
            cues += 1
            negative, cue_start = not negative, token.start
            continue
        if low in ("before", "after"):
            phrase = _before_after(tokens, k, skip)
            if phrase:
                add(phrase[0], 1 if low == "before" else -1, token.start, phrase[1])
                marked.add(phrase[0])
            continue
        root = stem(low)
        if k in skip or (low in STOP and root not in _CONCEPT):
            continue
        if root in ("more", "less", "few", "fewer") and k and tokens[k - 1].low in ("no", "not", "or", "and"):
            continue  # a bound: "no more than"
        key, sign = _CONCEPT.get(root, ("", 1))
        if key:
            marked.add(key[:6])
        key = key[:6] or root[:6]
        if negative:
            marked.add(key)
        add(key, -sign if negative else sign, cue_start if negative else token.start, token.end)
        negative = False
    beside: dict[str, frozenset[str]] = {}
    for n, key in enumerate(order):
        beside.setdefault(key, frozenset(order[max(0, n - 2) : n + 3]) - {key})
    lows = {t.low for t in tokens}
    unsafe = "?" in lows or not lows.isdisjoint(_CONTRAST)
    return Polarity(
        {k: frozenset(v) for k, v in signs.items()},
        spans,
        beside,
        cues,
        unsafe,
        frozenset(marked & signs.keys()),
    )


def compare_polarity(claim: Polarity, evidence: Polarity) -> tuple[str, str]:
    """Whether two sentences say the same thing with opposite sign.

    Returns:
        ``(result, concept)``: ``same``, ``different`` or ``unrelated``; ``concept`` is the word in
        which they differ.
    """
    keys = set(claim.signs)
    shared = keys & set(evidence.signs)
    if len(keys) < 3 or len(shared) < max(3, 0.85 * len(keys)) or len(evidence.signs) > 2 * len(keys) + 2:
        return "unrelated", ""
    flipped = [
        k
        for k in shared
        if len(claim.signs[k]) == len(evidence.signs[k]) == 1 and claim.signs[k] != evidence.signs[k]
    ]
    mixed = any(len(claim.signs[k] | evidence.signs[k]) > 1 for k in shared.difference(flipped))
    if not flipped:
        return ("same", "") if shared & claim.marked and shared == keys and not mixed else ("unrelated", "")
    if len(flipped) > 1 or mixed or claim.open or evidence.open:
        return "unrelated", ""
    # Both negate something: the two may cancel out.
    if claim.cues and evidence.cues:
        return "unrelated", ""
    concept = flipped[0]
    return ("different", concept) if claim.beside[concept] & evidence.beside[concept] else ("unrelated", "")

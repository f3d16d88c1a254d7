"""Tokens with offsets, a light English stemmer, and the clauses of a sentence."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "CHANGE",
    "STOP",
    "Token",
    "clause_ids",
    "context_key",
    "stem",
    "tokenize",
    "word_list",
    "word_set",
]

# Every quantifier is bounded and every alternative starts with another class of character, so the
# scan is linear on any text.
_TOKEN = re.compile(
    r"(?:[A-Z]\.){2,8}"
    r"|(?!USD|EUR|GBP|INR|Rs|Q[1-4]|FY)[^\W\d_]{1,8}\d[^\W_]{0,16}"  # "H1N1", "A5X"
    r"|[^\W\d_]{1,64}(?:['’][^\W\d_]{1,16}){0,2}"
    r"|\d{1,40}(?:[.,·]\d{1,40}){0,8}"
    r"|[^\w\s]|_"
)


def word_list(text: str) -> list[str]:
    """The words of a space-separated table."""
    return text.split()


def word_set(text: str) -> frozenset[str]:
    """The words of a space-separated table, as a set."""
    return frozenset(text.split())


class Token(NamedTuple):
    """A word, number literal or sign; ``low`` is lower-cased with straight apostrophes."""

    text: str
    low: str
    start: int
    end: int
    word: bool
    """Whether it is made of letters."""


STOP = word_set(
    "a an the this that these those and or but nor so yet if then than as of in on at by for with about "
    "against between into through during before after above below to from up down out off over under "
    "again once here there when where why how all any both each few more most other some such only own "
    "same too very can will just should now is am are was were be been being have has had having do "
    "does did doing would could may might must shall i me my we our you your he him his she her it its "
    "they them their who whom which what whose also per via within without upon among amongst around "
    "while whereas since until till although though because however not no never none neither n't "
    "cannot s t re ve ll d m 's according approximately roughly nearly almost least less at total"
)

_IRREGULAR = {
    "rose": "rise", "risen": "rise", "fell": "fall", "fallen": "fall", "grew": "grow", "grown": "grow",
    "paid": "pay", "bought": "buy", "sold": "sell", "sale": "sell", "sales": "sell", "won": "win",
    "lost": "lose", "led": "lead", "held": "hold", "made": "make", "took": "take", "taken": "take",
    "gave": "give", "given": "give", "began": "begin", "begun": "begin", "went": "go", "gone": "go",
    "came": "come", "said": "say", "saw": "see", "seen": "see", "became": "become", "wrote": "write",
    "written": "write", "ran": "run", "met": "meet", "left": "leave", "found": "find", "spent": "spend",
    "sent": "send", "built": "build", "kept": "keep", "cost": "cost", "shrank": "shrink",
    "sank": "sink", "beat": "beat", "drew": "draw", "people": "person", "persons": "person",
    "men": "man", "women": "woman", "children": "child", "feet": "foot", "died": "die", "dies": "die",
    "dying": "die", "death": "die", "deaths": "die", "dead": "die", "opened": "open",
}  # fmt: skip

_BREAK = frozenset({";", ":", ",", "(", ")", "—", "–", "and", "but", "while", "whereas", "versus", "vs"})


def tokenize(text: str) -> list[Token]:
    """Words, number literals and signs of ``text`` with their positions, in linear time."""
    found = []
    for match in _TOKEN.finditer(text):
        word = match.group()
        low = word.lower()
        if "’" in low:
            low = low.replace("’", "'")
        found.append(Token(word, low, match.start(), match.end(), word[0].isalpha()))
    return found


def _undouble(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A light stem: plural, -ed, -ing, -ly and a final e are dropped; some irregular forms are known."""
    low = word.lower().removesuffix("'s").removesuffix("'")
    if low in _IRREGULAR:
        low = _IRREGULAR[low]
    if len(low) > 4 and low.endswith(("ies", "ied")):
        low = low[:-3] + "y"
    elif len(low) > 3 and low.endswith("s") and not low.endswith(("ss", "us", "is")):
        low = low[:-1]
    if len(low) > 5 and low.endswith("ing"):
        low = _undouble(low[:-3])
    elif len(low) > 4 and low.endswith("ed"):
        low = _undouble(low[:-2])
    elif len(low) > 5 and low.endswith("ly"):
        low = low[:-2]
    if len(low) > 3 and low.endswith("e"):
        low = low[:-1]
    return low


CHANGE = frozenset(
    stem(word)
    for word in word_list(
        "rise fall grow increase decrease decline drop jump climb gain slip shrink raise lower reduce cut "
        "change move expand improve slide slid surge plunge tumble edge double soar swell extend reduction"
    )
)
"""Stems of verbs after which "from X to Y" is a change, not a range."""


def context_key(word: str) -> str:
    """The stem cut to six letters, so that "approve" and "approval" meet; for context overlap only."""
    return stem(word)[:6]


def clause_ids(tokens: list[Token]) -> list[int]:
    """The number of the clause that each token stands in, cut at commas, colons, brackets and "and"."""
    ids: list[int] = []
    current = 0
    for token in tokens:
        if token.low in _BREAK:
            current += 1
        ids.append(current)
    return ids

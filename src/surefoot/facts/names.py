"""Names: capitalised sequences and acronyms, and whether another name stands in a claim's slot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from surefoot.facts.records import Fact
from surefoot.facts.words import STOP, Token, context_key, stem, word_set

__all__ = ["find_names", "mentioned", "rival_name"]

_LINK = word_set("of the de la le van von der den bin al ibn du da dos &")
_TITLES = word_set(
    "mr mrs ms dr prof professor sir lord lady president prime minister senator judge justice "
    "chancellor king queen prince princess pope saint st captain general colonel major sergeant mayor "
    "governor secretary ceo the director chairman actor actress singer"
)
_NOT_NAMES = word_set(
    "yesterday today tomorrow meanwhile recently later earlier finally "
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june "
    "july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec i "
    "i'm i'd i'll i've"
)
_GENERIC = word_set(
    "inc ltd llc plc corp corporation company co group university college school city county state "
    "river lake mount street road avenue park hospital bank institute department ministry court act "
    "committee council commission federal trade office agency authority association society board union "
    "party american british french german united states north south east west new national "
    "international"
)


def _capital(token: Token) -> bool:
    return token.text[0].isupper()


def find_names(text: str, tokens: Sequence[Token], taken: frozenset[int] | set[int]) -> Iterator[Fact]:
    """Names of ``text``; a lone capitalised word at the start of a sentence is no name.

    Text in capitals or title case yields none, because there the case says nothing.
    """
    words = [t for t in tokens if t.word]
    if len(words) > 3 and not any(t.text[0].islower() and t.low not in STOP for t in words):
        return
    inner = {
        t.text for k, t in enumerate(tokens) if k and tokens[k - 1].text not in ".!?:\"“'" and _capital(t)
    }
    i, size = 0, len(tokens)
    while i < size:
        if i in taken or not _is_name_token(tokens, i):
            i += 1
            continue
        j = i + 1
        while j < size and j - i < 12 and j not in taken:
            if _is_name_token(tokens, j):
                j += 1
            elif (
                (tokens[j].low in _LINK or tokens[j].text in ("-", "."))
                and j + 1 < size
                and j + 1 not in taken
                and _is_name_token(tokens, j + 1)
                and (tokens[j].text != "." or len(tokens[j - 1].text) <= 2)
            ):
                j += 2
            else:
                break
        first = i == 0 or tokens[i - 1].text in ".!?:"
        start = i
        if first and j > start + 1 and tokens[start].low in STOP:
            start += 1
            while start < j and not _is_name_token(tokens, start):
                start += 1
        lone = j - start == 1
        model = (
            j < size
            and j not in taken
            and tokens[j].text.isdigit()
            and tokens[j].start - tokens[j - 1].end <= 1
        )
        if model and not (lone and first and start == i):
            j += 1  # "the Boeing 747"
        if start < j and not (lone and first and start == i and not _sure(tokens[i], inner)):
            keys = tuple(
                t.low.removesuffix("'s").replace(".", "")
                for t in tokens[start:j]
                if (t.word or t.text.isdigit()) and t.low not in _LINK and t.low not in _TITLES
            )
            keys = tuple(k for k in keys if len(k) > 1 or k.isdigit())
            a, b = tokens[start].start, tokens[j - 1].end
            if keys:
                yield Fact("name", text[a:b], a, b, dimension="name", words=keys)
        i = j


def _is_name_token(tokens: Sequence[Token], i: int) -> bool:
    token = tokens[i]
    return token.word and _capital(token) and token.low not in _NOT_NAMES and token.text != "I"


def _sure(token: Token, inner: set[str]) -> bool:
    """Whether a lone word at the start of a sentence is a name all the same."""
    return token.low not in STOP and ((len(token.text) > 1 and token.text.isupper()) or token.text in inner)


def _initials(words: Sequence[str]) -> str:
    return "".join(w[0] for w in words)


def _alike(a: str, b: str) -> bool:
    """The same word up to inflection or a slip: "Russia" and "Russian", "Muammar" and "Moammar"."""
    if a == b or stem(a) == stem(b):
        return True
    if min(len(a), len(b)) < 4:
        return False
    common = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        common += 1
    if common >= 4 and max(len(a), len(b)) - common <= 4:
        return True
    return 5 <= len(a) <= 24 and abs(len(a) - len(b)) <= 2 and SequenceMatcher(None, a, b).ratio() >= 0.8


def mentioned(name: Fact, words: frozenset[str] | set[str], names: Sequence[Fact]) -> bool:
    """Whether the evidence speaks of ``name``: by any telling token, by its acronym or expansion."""
    if any(w.isdigit() and w not in words for w in name.words):
        return False
    telling = [w for w in name.words if w not in _GENERIC and not w.isdigit()]
    if any(w in words for w in telling) or (not telling and all(w in words for w in name.words)):
        return True
    if len(name.words) > 1:
        acronym = _initials(name.words)
        if acronym in words or acronym + "s" in words:
            return True
    elif 2 <= len(name.words[0]) <= 6 and name.text[:2].isupper():
        target = name.words[0]
        # "Securities and Exchange Commission" is read as two names: its tail will do.
        initials = [_initials(n.words) for n in names]
        if any(i.startswith(target) or (len(i) > 1 and target.endswith(i)) for i in initials):
            return True
    candidates = {w for n in names for w in n.words}
    return any(_alike(t, w) for t in telling for w in candidates)


def _neighbour(tokens: Sequence[Token], k: int, step: int) -> str:
    """The content word next to a name, titles and articles skipped; of prepositions only "by" counts."""
    for _ in range(3):
        k += step
        if not 0 <= k < len(tokens) or not tokens[k].word:
            return ""
        low = tokens[k].low
        if low == "by" and step < 0:
            return "by"
        if low in ("the", "a", "an", "is", "was", "has", "had") or low in _TITLES:
            continue
        return "" if low in STOP or _capital(tokens[k]) else context_key(low)
    return ""


def _index_at(tokens: Sequence[Token], position: int) -> int:
    low, high = 0, len(tokens)
    while low < high:
        mid = (low + high) // 2
        if tokens[mid].start < position:
            low = mid + 1
        else:
            high = mid
    return low


def rival_name(
    claim_tokens: Sequence[Token],
    name: Fact,
    sentence_tokens: Sequence[Token],
    names: Sequence[Fact],
    claim_words: frozenset[str] | set[str],
) -> Fact | None:
    """The one other name in the slot of ``name``: next to the same word on the same side.

    Only a slot next to a content word or "by" counts, because "in Paris" and "in France" may both be true.
    """
    i, j = _index_at(claim_tokens, name.start), _index_at(claim_tokens, name.end)
    left, right = _neighbour(claim_tokens, i, -1), _neighbour(claim_tokens, j - 1, 1)
    found: list[Fact] = []
    for other in names:
        if any(w in claim_words for w in other.words) or len(other.words) + len(name.words) < 3:
            continue
        if other.text.isupper() != name.text.isupper():
            continue
        a, b = _index_at(sentence_tokens, other.start), _index_at(sentence_tokens, other.end)
        if (left and _neighbour(sentence_tokens, a, -1) == left) or (
            right and _neighbour(sentence_tokens, b - 1, 1) == right and not left
        ):
            found.append(other)
    return found[0] if len(found) == 1 else None

"""A sentence read once: its tokens, facts, content words and clauses."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from surefoot.facts.dates import find_dates
from surefoot.facts.names import find_names
from surefoot.facts.numbers import find_numbers
from surefoot.facts.records import Fact
from surefoot.facts.words import STOP, Token, clause_ids, context_key, tokenize, word_set

__all__ = ["Reading", "extract_facts", "read_sentence"]

_CACHED_LENGTH = 4000
"""Longer texts are not kept in the cache, so that it holds a few megabytes at most."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the comparison needs to know about one sentence.

    Attributes:
        facts: numbers and dates, in order.
        names: names, in order.
        keys: context keys of the content words outside numbers and dates.
        clauses: per number or date, the context keys of its clause.
        lead: per number or date, the keys that stand before it in its own clause.
        words: every lower-cased word, names included.
        name_keys: the context keys of the names.
        figures: the indices of the tokens of numbers and dates.
    """

    tokens: tuple[Token, ...]
    facts: tuple[Fact, ...]
    names: tuple[Fact, ...]
    keys: frozenset[str]
    clauses: tuple[frozenset[str], ...]
    lead: tuple[frozenset[str], ...]
    words: frozenset[str]
    name_keys: frozenset[str]
    figures: frozenset[int]


def _covered(tokens: list[Token], starts: list[int], facts: Iterable[Fact]) -> set[int]:
    taken: set[int] = set()
    for fact in facts:
        k = bisect_left(starts, fact.start)
        while k < len(tokens) and tokens[k].start < fact.end:
            taken.add(k)
            k += 1
    return taken


def _facts(text: str, tokens: list[Token]) -> tuple[list[Fact], list[Fact], set[int]]:
    """Numbers and dates in order, names in order, and the tokens of the former."""
    starts = [t.start for t in tokens]
    dates = list(find_dates(text))
    dated = _covered(tokens, starts, dates)
    figures = list(find_numbers(text, tokens, dated)) if tokens else []
    taken = dated | _covered(tokens, starts, figures)
    names = list(find_names(text, tokens, taken))
    return sorted([*dates, *figures], key=lambda f: (f.start, f.end)), names, taken


def extract_facts(text: str) -> tuple[Fact, ...]:
    """Every number, date and name of ``text``, in order of position.

    Linear in the length of ``text``; any string is accepted. ``text[f.start:f.end] == f.text``.
    """
    figures, names, _ = _facts(text, tokenize(text))
    return tuple(sorted([*figures, *names], key=lambda f: (f.start, f.end)))


_AFTER_NAME = word_set("is was has had will can paid won lost owns got and or does did")


def _letter_name(tokens: list[Token], k: int) -> bool:
    """Whether "A" is a name ("A paid 5") and not the article."""
    if tokens[k].text != "A" or k + 1 >= len(tokens):
        return False
    return k > 0 or tokens[k + 1].low in _AFTER_NAME


def _read(text: str) -> Reading:
    tokens = tokenize(text)
    figures, names, taken = _facts(text, tokens)
    ids = clause_ids(tokens)
    starts = [t.start for t in tokens]
    by_clause: dict[int, set[str]] = {}
    keys: set[str] = set()
    content: list[tuple[int, str]] = []
    for k, token in enumerate(tokens):
        if k in taken or not token.word or (token.low in STOP and not _letter_name(tokens, k)):
            continue
        key = context_key(token.low)
        keys.add(key)
        content.append((k, key))
        by_clause.setdefault(ids[k], set()).add(key)
    clauses: list[frozenset[str]] = []
    leads: list[frozenset[str]] = []
    positions = [k for k, _ in content]
    for fact in figures:
        k = bisect_left(starts, fact.start)
        clause = ids[k] if k < len(ids) else 0
        here = by_clause.get(clause, set())
        lead: set[str] = set()
        p = bisect_left(positions, k) - 1
        while p >= 0 and ids[positions[p]] == clause and len(lead) < 12:
            lead.add(content[p][1])
            p -= 1
        if not lead and p >= 0:
            # Nothing stands before it in its clause: the words of the clause before carry on.
            here = here | by_clause[ids[positions[p]]]
        clauses.append(frozenset(here))
        leads.append(frozenset(lead))
    name_keys = frozenset(context_key(w) for n in names for w in n.words)
    return Reading(
        tuple(tokens),
        tuple(figures),
        tuple(names),
        frozenset(keys),
        tuple(clauses),
        tuple(leads),
        frozenset(t.low.removesuffix("'s").replace(".", "") for t in tokens if t.word or t.text.isdigit()),
        name_keys,
        frozenset(taken),
    )


_read_cached = lru_cache(maxsize=1024)(_read)


def read_sentence(text: str) -> Reading:
    """The reading of one sentence, cached when it is short."""
    return _read_cached(text) if len(text) <= _CACHED_LENGTH else _read(text)

"""Claims from questions and their answers: "Who wrote X?" and "A" make "A wrote X."

Only forms that a rule turns into a sentence are taken. The false claim puts another name of the same passages
in the answer's place, so that true and false claims are worded alike.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from typing import Final

from training.verify.sources import Row

from surefoot.facts import extract_facts

__all__ = ["question_claims", "stated"]

_VERB: Final = re.compile(
    r"^(is|are|was|were|has|had|will|can|could|did|does|[a-z]+ed|wrote|won|sang|led|began|became|made|ran|built|held)\b"
)
_AUXILIARY: Final = re.compile(r"^(did|do|does)\b")
_PLACED: Final = re.compile(
    r"^(?P<head>.{15,}\b(?:by|of|in|for|with|at|from|on|to|as|is|was)) (?:which|what) "
    r"(?P<noun>(?:[\w'-]+ ){0,4}[\w'-]+)$",
    re.I,
)
_CHOICE: Final = re.compile(r",?\s*(?:,|:)?\s*(?P<one>[^,:?]+?) or (?P<two>[^,:?]+?)\s*$")
_GLUED: Final = re.compile(r"(?<=[.!?])(?=[A-Z\"])")
_MOST_WORDS: Final = 6


def stated(question: str, answer: str) -> str | None:
    """The sentence that a question and its answer make, or ``None``.

    >>> stated("Who wrote the novel Emma?", "Jane Austen")
    'Jane Austen wrote the novel Emma.'
    >>> stated("Emma is a novel by which English writer?", "Jane Austen")
    'Emma is a novel by the English writer Jane Austen.'
    """
    text = " ".join(question.split()).rstrip("?. ")
    if text.count("?") or not 0 < len(answer.split()) <= _MOST_WORDS:
        return None
    answer = answer.strip().rstrip(".")
    first, _, rest = text.partition(" ")
    if first.lower() in ("who", "what"):
        rest = _CHOICE.sub("", rest) if " or " in rest else rest
        if _VERB.match(rest) and not _AUXILIARY.match(rest) and len(rest.split()) > 2:
            return f"{answer[0].upper()}{answer[1:]} {rest}."
        return None
    placed = _PLACED.match(text)
    if placed and not re.search(r"\b(did|do|does)\b", placed["head"], re.I):
        return f"{placed['head']} the {placed['noun']} {answer}."
    return None


def question_claims(rows: Iterable[Row], *, seed: int) -> Iterator[Row]:
    """A true and a false claim of each question whose form is known; rows without an answer give none.

    Args:
        rows: with a question, an answer as the claim, labelled ``supported``; others are passed over.
        seed: decides which name is put in.
    """
    for row in rows:
        if row.label != "supported" or not row.question:
            continue
        claim = stated(row.question, row.claim)
        premise = _GLUED.sub(" ", row.premise)
        if claim is None or row.claim.lower() not in premise.lower():
            continue
        rng = random.Random(f"{seed}:{row.question}")
        other = _other(row, premise, rng)
        false = other and stated(row.question, other)
        if not false:
            continue
        yield Row(row.source, "true", premise, claim, "supported")
        yield Row(row.source, "false", premise, false, "unsupported")


def _other(row: Row, premise: str, rng: random.Random) -> str | None:
    """Another name, number or date of the passages; the one that the question offers, where it offers one."""
    text = row.question.rstrip("?. ")
    choice = _CHOICE.search(text) if " or " in text else None
    if choice:
        both = [choice["one"].split(",")[-1].strip(), choice["two"].strip()]
        left = [name for name in both if name.lower() != row.claim.lower()]
        return left[0] if len(left) == 1 else None
    answer = row.claim.lower()
    kinds = {fact.kind for fact in extract_facts(f"It is {row.claim}.")} or {"name"}
    shape = re.sub(r"\d", "0", row.claim)
    found = sorted(
        {
            fact.text
            for fact in extract_facts(premise)
            if fact.kind in kinds
            and fact.text.lower() not in answer
            and answer not in fact.text.lower()
            and fact.text.lower() not in row.question.lower()
            and ("0" not in shape or re.sub(r"\d", "0", fact.text) == shape)
        }
    )
    if not found and re.fullmatch(r"1[5-9]00|20\d\d|1[5-9]\d\d", row.claim):
        return str(int(row.claim) + rng.choice((-7, -3, -2, -1, 1, 2, 3, 7)))
    return rng.choice(found) if found else None

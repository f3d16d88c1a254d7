"""A clause said as a sentence: as it stood, in the passive, denied, with a helping verb, as a question."""

from __future__ import annotations

import re
from typing import Final

from training.verify.clauses import Clause, Phrase, inflected

__all__ = [
    "DETERMINER",
    "finite",
    "is_many",
    "low",
    "negated",
    "question_of",
    "said",
    "said_passively",
    "sentence",
    "tail_of",
    "with_helper",
]

DETERMINER: Final = re.compile(
    r"^(?:(?:the|a|an|this|that|these|those|its|his|her|their|our|my|your|each|every|some|any|all|both|another)"
    r"\s+)+",
    re.I,
)
_AUXILIARY: Final = {"is", "are", "was", "were", "has", "have", "had"}


def low(phrase: str) -> str:
    return phrase[0].lower() + phrase[1:] if DETERMINER.match(phrase) else phrase


def sentence(*parts: str) -> str:
    text = " ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."


def finite(clause: Clause, plural: bool) -> str:
    if clause.form and clause.form.split()[0] not in _AUXILIARY:
        if clause.tense == "past" or not clause.simple:
            return clause.form
    elif clause.form and not clause.copula:
        return clause.form
    if clause.tense == "past":
        return "were" if clause.copula and plural else inflected(clause.verb, "VBD")
    return inflected(clause.verb, "VBP" if plural else "VBZ")


def said(clause: Clause, subject: Phrase | None = None, object_: Phrase | None = None) -> str:
    """The clause as a sentence of its own, with other phrases in its places where they are given."""
    who, what = subject or clause.subject, object_ or clause.object
    plural = who.plural or (bool(clause.subjects) and subject is None)
    whole = (
        " and ".join(low(one.text) for one in clause.subjects)
        if clause.subjects and subject is None
        else low(who.text)
    )
    return sentence(whole, finite(clause, plural), low(what.text) if what else "", clause.rest)


def said_passively(
    clause: Clause, subject: Phrase | None = None, object_: Phrase | None = None
) -> str | None:
    """``object was done rest by subject``; ``None`` where the verb group is not one plain verb."""
    who, what = subject or clause.subject, object_ or clause.object
    if (
        what is None
        or not clause.simple
        or clause.verb in ("have", "mean", "become", "include", "contain", "resemble")
    ):
        return None
    verb = {
        ("past", False): "was",
        ("past", True): "were",
        ("present", False): "is",
        ("present", True): "are",
    }
    return sentence(
        low(what.text),
        verb[clause.tense, what.plural],
        inflected(clause.verb, "VBN"),
        clause.rest,
        "by",
        low(who.text),
    )


def with_helper(clause: Clause, helper: str) -> str | None:
    """The clause with a helping verb before the plain form: ``A may win B rest.``"""
    if not clause.simple:
        return None
    return sentence(
        subject_of(clause),
        helper,
        inflected(clause.verb, "VB"),
        low(clause.object.text) if clause.object else "",
        clause.rest,
    )


def subject_of(clause: Clause) -> str:
    return (
        " and ".join(low(one.text) for one in clause.subjects)
        if clause.subjects
        else low(clause.subject.text)
    )


def is_many(clause: Clause) -> bool:
    return clause.subject.plural or bool(clause.subjects)


def negated(clause: Clause) -> str | None:
    """The clause with ``not``."""
    if not clause.simple:
        first, _, rest = clause.form.partition(" ")
        if first not in _AUXILIARY:
            return None
        return sentence(
            subject_of(clause),
            f"{first} not {rest}",
            low(clause.object.text) if clause.object else "",
            clause.rest,
        )
    if clause.copula:
        return sentence(subject_of(clause), f"{finite(clause, is_many(clause))} not", clause.rest)
    return with_helper(
        clause, "did not" if clause.tense == "past" else "do not" if is_many(clause) else "does not"
    )


def question_of(clause: Clause) -> str | None:
    if clause.copula:
        return f"{finite(clause, is_many(clause)).capitalize()} {subject_of(clause)} {clause.rest}?"
    if not clause.simple:
        return None
    helper = "Did" if clause.tense == "past" else "Do" if is_many(clause) else "Does"
    return (
        f"{helper} "
        + sentence(
            subject_of(clause),
            inflected(clause.verb, "VB"),
            low(clause.object.text) if clause.object else "",
            clause.rest,
        )
        .rstrip(".")
        .replace(subject_of(clause)[0].upper(), subject_of(clause)[0], 1)
        + "?"
    )


def tail_of(clause: Clause) -> str:
    rest = " ".join(part for part in (low(clause.object.text) if clause.object else "", clause.rest) if part)
    return f" {rest}." if rest else "."

"""Frozen records of the fact check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from surefoot.schema import Reason

__all__ = ["DateValue", "Fact", "FactCheck", "FactMismatch", "FactStatus"]


class FactStatus(StrEnum):
    """What the facts of the evidence say about the facts of a claim."""

    AGREE = "agree"
    """Every number and date of the claim (or, without any, every name, or its polarity) was found."""
    DISAGREE = "disagree"
    """At least one on-topic sentence carries another value in the place of the claim's."""
    UNRELATED = "unrelated"
    """Nothing to compare, or the evidence says nothing about it."""


@dataclass(frozen=True, slots=True)
class FactMismatch:
    """A fact of the claim that the evidence contradicts.

    Attributes:
        kind: one of the ``*_MISMATCH`` reasons.
        claim_text: ``claim[claim_start:claim_end]``.
        evidence_text: what the evidence has in its place, as written there.
        claim_start, claim_end: half-open range of code points in the claim.
    """

    kind: Reason
    claim_text: str
    evidence_text: str | None
    claim_start: int
    claim_end: int


@dataclass(frozen=True, slots=True)
class FactCheck:
    """The result for one claim.

    Attributes:
        status: the verdict over all facts.
        mismatches: in the order of the claim; non-empty exactly when ``status`` is ``DISAGREE``.
        agreed: facts of the claim that were found, at most ``total``.
        total: facts of the claim: numbers, dates, names, and its polarity where a cue shows it.
    """

    status: FactStatus
    mismatches: tuple[FactMismatch, ...]
    agreed: int
    total: int


@dataclass(frozen=True, slots=True)
class DateValue:
    """A calendar date or clock time, possibly partial; ``None`` where a part is not stated.

    Attributes:
        years, months, days: inclusive ranges, so that a decade, a quarter or "5-7 March" fit.
        weekday: 0 (Monday) to 6.
        minutes: readings of the clock time in minutes after midnight: "9:00" may be morning or evening.
    """

    years: tuple[int, int] | None = None
    months: tuple[int, int] | None = None
    days: tuple[int, int] | None = None
    weekday: int | None = None
    minutes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """A number, date or name with its position.

    Attributes:
        kind: ``number``, ``percent``, ``money``, ``quantity``, ``ordinal``, ``range``, ``label``
            ("Section 5"), ``date``, ``time`` or ``name``.
        text, start, end: ``text[start:end]`` in code points.
        values: numeric readings in ``unit``, scale words applied; ``(low, high)`` for a range; several
            for an ambiguous notation. Empty for dates and names.
        unit: canonical unit, currency or label word; empty for a plain count.
        dimension: what may be compared: ``time``, ``money``, ``percent``, ``count`` ...
        per: the unit of a rate ("a month" is ``month``), or empty.
        comparator: ``=``, ``~`` (about), ``>``, ``>=``, ``<``, ``<=``; for dates ``before``, ``after``,
            ``since``, ``until`` or ``=``.
        step: the unit of the last place that was written, in ``unit``; the precision of the value.
        before, after: stems of the words next to a number, which say what it counts.
        dates: readings of a date or time ("3/5/2024" has two).
        words: the tokens of a name, lower-cased, without titles and connectors.
    """

    kind: str
    text: str
    start: int
    end: int
    values: tuple[float, ...] = ()
    unit: str = ""
    dimension: str = ""
    per: str = ""
    comparator: str = "="
    step: float = 0.0
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    dates: tuple[DateValue, ...] = ()
    words: tuple[str, ...] = ()

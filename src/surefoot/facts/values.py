"""How a number of the evidence stands to a number of the claim.

The claim may round, never sharpen: 85.19 supports "85%" and "about 85", and 85 does not support
85.19. Bounds ("at least") are read as intervals.
"""

from __future__ import annotations

from surefoot.facts.records import Fact
from surefoot.facts.units import base_factor, to_base

__all__ = ["compare_numbers", "derivable"]

_UP = (">", ">=")
_DOWN = ("<", "<=")
_CALENDAR = frozenset({"month", "quarter", "year", "decade", "century"})
_SECONDS = {
    "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0, "month": 2629800.0,
    "quarter": 7889400.0, "year": 31557600.0,
}  # fmt: skip


def _near(a: float, b: float, share: float) -> bool:
    return abs(a - b) <= share * max(abs(a), abs(b)) + 1e-12


def _trailing(value: float) -> float:
    """The unit of the last non-zero digit of a whole number, capped: 1200 -> 100."""
    step = 1.0
    while step < 1e12 and value and value % (step * 10) == 0:
        step *= 10
    return step


def _scalar(claim: float, evidence: float, claim_step: float, evidence_step: float, *, converted: float,
            approx: bool, hedged: bool, bound: bool) -> str:  # fmt: skip
    """``same``, ``close`` or ``different`` for two single values in one unit."""
    if _near(claim, evidence, 1e-9):
        return "same"
    gap = abs(claim - evidence)
    if converted and _near(claim, evidence, converted):
        return "same"
    if claim_step > evidence_step * 1.001:
        if gap <= claim_step / 2 * (1 + 1e-9):
            return "same"
        if 0 < abs(evidence) - abs(claim) < claim_step and _near(claim, evidence, 0.1):
            return "close"  # cut off instead of rounded
    if approx:
        return (
            "same"
            if _near(claim, evidence, 0.05)
            else "close"
            if _near(claim, evidence, 0.2)
            else "different"
        )
    if hedged and _near(claim, evidence, 0.05):
        return "close"
    round_step = _trailing(abs(claim))
    if round_step >= 100 and not bound and gap <= round_step / 2:
        return "close"  # 1,200 for 1,234: a rounding that does not say so
    return "different"


def _bounded(claim: Fact, evidence: Fact, c: float, e: float, scalar: str, *, rule: bool) -> str:
    """The comparison where at least one side is a bound."""
    fc, gc = claim.comparator, evidence.comparator
    if fc in _UP or fc in _DOWN:
        sign = 1.0 if fc in _UP else -1.0
        same_way = gc in (_UP if fc in _UP else _DOWN)
        other_way = gc in (_DOWN if fc in _UP else _UP)
        if other_way:
            return "different" if sign * (e - c) <= 0 else "close"
        if scalar == "same":
            return "same" if same_way or len(fc) == 2 or gc == "~" else "close"
        beyond = sign * (e - c) > 0
        if same_way:
            return (
                ("different" if rule else "close")
                if beyond
                else ("close" if scalar == "close" else "different")
            )
        if beyond:
            return "close" if rule else "same"
        return "close" if scalar == "close" else "different"
    if scalar != "different":
        return scalar
    return "close" if (c > e) == (gc in _UP) else "different"


def _range_against(claim: Fact, evidence: Fact, c: tuple[float, ...], e: tuple[float, ...]) -> str:
    """The comparison where at least one side is a range."""
    if claim.kind == "range" and evidence.kind == "range":
        if all(_near(a, b, 0.01) for a, b in zip(c, e, strict=False)):
            return "same"
        return (
            "close"
            if _near(c[0], e[0], 0.01) == _near(c[1], e[1], 0.01) and c[0] <= e[0] <= e[1] <= c[1]
            else "different"
        )
    if claim.kind == "range":
        inside = c[0] <= e[0] <= c[1]
        if evidence.comparator in ("=", "~"):
            return "same" if inside else "different"
        return "close" if inside else "different"
    low, high = e[0], e[1]
    if claim.comparator in _UP:
        return "same" if low >= c[0] else "different" if high < c[0] else "close"
    if claim.comparator in _DOWN:
        return "same" if high <= c[0] else "different" if low > c[0] else "close"
    return "close" if low * 0.95 <= c[0] <= high * 1.05 else "different"


def _units(claim: Fact, evidence: Fact) -> tuple[str, str, str] | None:
    """The common dimension and both units, "pounds" resolved by what it meets; ``None``: not comparable."""
    cu, eu = claim.unit, evidence.unit
    cd, ed = claim.dimension, evidence.dimension
    if "pound" in (cu, eu) and cu != eu:
        other = ed if cu == "pound" else cd
        if other == "money":
            cu, eu = ("GBP" if cu == "pound" else cu), ("GBP" if eu == "pound" else eu)
            return "money", cu, eu
        if other == "mass":
            return "mass", ("lb" if cu == "pound" else cu), ("lb" if eu == "pound" else eu)
    return (cd, cu, eu) if cd == ed else None


def _plain_equal(claim: Fact, evidence: Fact) -> bool:
    return any(_near(a, b, 1e-9) for a in claim.values for b in evidence.values)


def compare_numbers(claim: Fact, evidence: Fact, *, rule: bool = False) -> str:
    """How the evidence's number stands to the claim's.

    Args:
        claim: a number of the claim.
        evidence: a number of the evidence.
        rule: the sentences state a requirement, where "at least 18" and "at least 21" conflict.

    Returns:
        ``same``, ``close`` (compatible, not confirmed), ``different``, ``unit`` (the same figure in
        another currency or in points for per cent), or ``unrelated`` (not comparable).
    """
    if "score" in (claim.kind, evidence.kind):
        if claim.kind != evidence.kind:
            return "unrelated"
        return "same" if sorted(claim.values) == sorted(evidence.values) else "different"
    units = _units(claim, evidence)
    if units is None:
        dims = {claim.dimension, evidence.dimension}
        if not _plain_equal(claim, evidence):
            return "unrelated"
        if dims == {"percent", "points"}:
            return "unit"
        if dims == {"time", "business day"} and {claim.unit, evidence.unit} == {"day", "business day"}:
            return "unit" if claim.unit == "business day" else "close"
        return (
            "close"
            if "count" in dims and not dims & {"ordinal"} and not any(":" in d for d in dims)
            else "unrelated"
        )
    dimension, cu, eu = units
    if dimension == "money" and cu != eu and "cent" not in (cu, eu):
        return "unit" if _plain_equal(claim, evidence) and claim.values[0] not in (0.0, 1.0) else "unrelated"
    rate = 1.0
    if claim.per != evidence.per and claim.per and evidence.per:
        if claim.per not in _SECONDS or evidence.per not in _SECONDS:
            return "unrelated"
        rate = _SECONDS[claim.per] / _SECONDS[evidence.per]
    converted = 0.0
    if cu != eu or rate != 1.0:
        converted = 0.03
        if dimension == "time" and (cu in _CALENDAR) != (eu in _CALENDAR):
            converted = 0.06  # a month of 28 to 31 days
    results = []
    for cv in claim.values if claim.kind != "range" else (None,):
        for ev in evidence.values if evidence.kind != "range" else (None,):
            results.append(
                _one_pair(claim, evidence, cv, ev, (cu, eu), rate=rate, converted=converted, rule=rule)
            )
    best = min(results, key=("same", "close", "different").index)
    if best == "different" and rate != 1.0:
        return "unit" if _plain_equal(claim, evidence) else "unrelated"
    return best


def _one_pair(claim: Fact, evidence: Fact, cv: float | None, ev: float | None, units: tuple[str, str], *,
              rate: float, converted: float, rule: bool) -> str:  # fmt: skip
    cu, eu = units
    c = tuple(to_base(cu, v) for v in (claim.values if cv is None else (cv,)))
    e = tuple(to_base(eu, v) * rate for v in (evidence.values if ev is None else (ev,)))
    if cv is None or ev is None:
        return _range_against(claim, evidence, c, e)
    bound = claim.comparator in (*_UP, *_DOWN) or evidence.comparator in (*_UP, *_DOWN)
    scalar = _scalar(
        c[0],
        e[0],
        claim.step * base_factor(cu)[1],
        evidence.step * base_factor(eu)[1] * rate,
        converted=converted,
        approx=claim.comparator == "~",
        hedged=evidence.comparator == "~",
        bound=bound,
    )
    if bound:
        return _bounded(claim, evidence, c[0], e[0], scalar, rule=rule)
    return scalar


def derivable(claim: Fact, evidence: list[Fact]) -> bool:
    """Whether the claim's number is a sum, difference, or share of numbers of the evidence.

    Such a number cannot be bound to one place of the evidence, so nothing is said about it.
    """
    if not claim.values or claim.kind == "range":
        return False
    target = to_base(claim.unit, claim.values[0])
    values = [
        to_base(f.unit, f.values[0])
        for f in evidence[:24]
        if f.values and (f.dimension == claim.dimension or claim.dimension in ("percent", "points"))
    ]
    tolerance = max(claim.step * base_factor(claim.unit)[1] / 2, 1e-9)
    if len(values) > 2 and abs(sum(values) - target) <= tolerance:
        return True
    for i, a in enumerate(values):
        for b in values[i + 1 :]:
            if abs(a + b - target) <= tolerance or abs(abs(a - b) - abs(target)) <= tolerance:
                return True
            small, large = sorted((abs(a), abs(b)))
            if claim.dimension in ("percent", "points") and large and small:
                shares = (100 * small / large, 100 * (large - small) / large, 100 * (large - small) / small)
                if any(abs(s - abs(target)) <= max(tolerance, 0.51) for s in shares):
                    return True
            elif claim.dimension == "count" and small and large / small == target:
                return True
    return False
